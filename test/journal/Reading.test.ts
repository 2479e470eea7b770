import { assert, describe, it } from "@effect/vitest"
import * as Line from "../../src/journal/Line.ts"
import * as Reading from "../../src/journal/Reading.ts"
import { everything } from "./Written.ts"

const sound = everything()

/** The two files of a run. */
const files = (() => {
  const encoded = sound.map(Line.encode)
  const contents = encoded.flatMap((one) => one.contents.map((content) => `${JSON.stringify(content)}\n`))
  return { log: encoded.map(({ line }) => `${line}\n`).join(""), content: [...new Set(contents)].join("") }
})()

const linesOf = (text: string): ReadonlyArray<string> => text.trimEnd().split("\n")

describe("reading the files of a run", () => {
  it("gives the events as they were", () => {
    assert.deepInclude(Reading.read(files), { events: sound, unreadable: [], isCutOff: false })
  })

  it("gives them without texts where these were dropped", () => {
    const { events, unreadable } = Reading.read({ ...files, content: "" })
    assert.deepStrictEqual([events.length, unreadable.length], [sound.length, 0])
    assert.notInclude(JSON.stringify(events), "the task of lead")
  })

  it("leaves out what was cut off at the end, of either file", () => {
    const cut = { log: files.log.slice(0, -3), content: files.content.slice(0, -3) }
    const { events, unreadable, isCutOff } = Reading.read(cut)
    assert.deepStrictEqual([events.length, unreadable, isCutOff], [sound.length - 1, [], true])
  })

  it.each([
    ["no JSON", "oops", "it is not JSON"],
    ["an empty line", "", "it is not JSON"],
    ["no event", "{}", "it has no seq, at or run"],
    ["null", "null", "it has no seq, at or run"],
    ["an unknown event", '{"seq":3,"at":"2026-01-01T00:00:00.000Z","run":"r","_tag":"Danced"}', "(Danced)"],
    [
      "another time",
      '{"seq":3,"at":"today","run":"r","_tag":"RunEnded","agent":"a","reason":"completed","result":"full"}',
      "its time",
    ],
  ])("says which line is %s, and reads the others", (_, line, what) => {
    const log = `${linesOf(files.log).with(3, line).join("\n")}\n`
    const { events, unreadable } = Reading.read({ ...files, log })
    assert.deepStrictEqual(events, sound.toSpliced(3, 1))
    assert.deepStrictEqual(
      unreadable.map((one) => [one.file, one.line]),
      [["log", 4]],
    )
    assert.include(unreadable[0]!.what, what)
  })

  it("says which line of the contents is none", () => {
    const content = `${linesOf(files.content).with(0, "oops").join("\n")}\n`
    const { events, unreadable } = Reading.read({ ...files, content })
    assert.strictEqual(events.length, sound.length)
    assert.deepStrictEqual(unreadable, [{ file: "content", line: 1, what: "it is no text with its hash" }])
  })
})
