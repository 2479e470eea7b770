import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Case, missingNeeds } from "./Case.ts"
import { differences } from "./Judge.ts"
import { play } from "./Play.ts"

const read = (file: string) => readFileSync(file, "utf8").trimEnd().split("\n")
const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Case))

const lines = read("test/cases/open.jsonl")
const cases = lines.map((line) => decode(line))

/** Our own: the process dies in the middle of a call, and one model stands in for another. */
const own = ["crash", "fallback"].flatMap((name) => read(`test/cases/${name}.jsonl`)).map((line) => decode(line))

describe("scripted cases", () => {
  for (const one of [...cases, ...own].filter((each) => missingNeeds(each).length === 0)) {
    it.live(`${one.id} ${one.title}`, () =>
      Effect.map(play(one), (played) => assert.deepStrictEqual(differences(one, played), [])),
    )
  }

  it("none is skipped", () => {
    const skipped = [...cases, ...own].filter((one) => missingNeeds(one).length > 0)
    assert.deepStrictEqual(skipped, [])
    assert.strictEqual(cases.length, 24)
  })

  it.live("options that did not reach the request are named", () => {
    const one = cases.find(({ options }) => options !== undefined)!
    const { m1: set, ...others } = one.options!
    const dropped = { ...one, options: { ...others, m1: { ...set, seed: 8 } } }
    return Effect.map(play(dropped), (played) =>
      assert.match(differences(dropped, played).join(), /request 0 options: expected .*"seed",7.*, got .*"seed",8/),
    )
  })

  it.live("a wrong expectation is named", () => {
    const [first] = cases
    const wrong = { ...first!, expect: { ...first!.expect, steps: 5, kept: ["call_001"] } }
    return Effect.map(play(wrong), (played) =>
      assert.deepStrictEqual(differences(wrong, played), [
        "steps: expected 5, got 4",
        "kept: expected call_001, got call_001 call_002 call_003",
      ]),
    )
  })
})

const runner = (text: string | undefined) => {
  const folder = mkdtempSync(join(tmpdir(), "bursar-cases-"))
  try {
    const file = join(folder, "cases.jsonl")
    if (text !== undefined) writeFileSync(file, text)
    return spawnSync(process.execPath, ["test/cases/run.ts", file], { encoding: "utf8" })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

describe("the runner of cases", () => {
  it("prints a line a case and a closing count", () => {
    const other = lines[1]!.replace('"prices":', '"needs":["telepathy"],"prices":')
    const { status, stdout } = runner([lines[0], other].join("\n"))
    assert.strictEqual(status, 0)
    assert.match(stdout, /^passed {3}O-01 /m)
    assert.match(stdout, /^skipped {2}O-02 .*\(needs telepathy\)/m)
    assert.match(stdout, /^1 passed, 0 failed, 1 skipped$/m)
  })

  it("ends with 1 when a case fails, and shows the difference", () => {
    const { status, stdout } = runner(lines[0]!.replace('"tool_calls":3,"in":560', '"tool_calls":4,"in":560'))
    assert.strictEqual(status, 1)
    assert.match(stdout, /^failed {3}O-01 .*\n\s+tool_calls: expected 4, got 3$/m)
  })

  it("takes a line that is no case for a failure", () => {
    const { status, stdout } = runner('{"id": 1}\n')
    assert.strictEqual(status, 1)
    assert.match(stdout, /^failed {3}line 1: not a case/m)
  })

  it("says what is wrong with a file that cannot be read", () => {
    const { status, stderr } = runner(undefined)
    assert.strictEqual(status, 2)
    assert.match(stderr, /cannot read .*: give a file of cases/)
  })
})
