import { assert, describe, it } from "@effect/vitest"
import * as Audit from "../../src/journal/Audit.ts"
import * as Line from "../../src/journal/Line.ts"
import * as Reading from "../../src/journal/Reading.ts"
import * as Replay from "../../src/journal/Replay.ts"
import * as Show from "../../src/journal/Show.ts"
import { everything } from "./Written.ts"

const encoded = everything().map(Line.encode)
const lines = encoded.map(({ line }) => line)
const content = encoded
  .flatMap(({ contents }) => contents)
  .map((one) => `${JSON.stringify(one)}\n`)
  .join("")

type Json = { [key: string]: unknown }

/** Every place inside of a value, by the names that lead there. */
const placesIn = (value: unknown, to: ReadonlyArray<string> = []): ReadonlyArray<ReadonlyArray<string>> =>
  typeof value === "object" && value !== null
    ? Object.entries(value).flatMap(([key, inner]) => [[...to, key], ...placesIn(inner, [...to, key])])
    : []

/** What somebody who edits a log by hand could write in place of a value. */
const otherThan = (value: unknown): unknown => {
  if (typeof value === "number") return value + 1
  if (typeof value === "string") return value === "x" ? "y" : "x"
  if (typeof value === "boolean") return !value
  return Array.isArray(value) ? [] : {}
}

const edit = (line: string, place: ReadonlyArray<string>, how: "change" | "remove"): string => {
  const whole = JSON.parse(line) as Json
  const parent = place.slice(0, -1).reduce((at, key) => at[key] as Json, whole)
  const key = place.at(-1)!
  if (how === "change") parent[key] = otherThan(parent[key])
  else if (Array.isArray(parent)) parent.splice(Number(key), 1)
  else delete parent[key]
  return JSON.stringify(whole)
}

/** Every log in which one value of one line was edited, with the kind of event and the field. */
function* edited(how: "change" | "remove"): Generator<readonly [field: string, log: string]> {
  for (const [index, line] of lines.entries()) {
    const event = JSON.parse(line) as { readonly _tag: string }
    for (const place of placesIn(event)) {
      const other = edit(line, place, how)
      const field = place.filter((key) => !/^\d+$/.test(key)).join(".")
      if (other !== line) yield [`${event._tag}.${field}`, `${lines.with(index, other).join("\n")}\n`]
    }
  }
}

/** The fields in which an edit is not found. */
const unnoticed = (how: "change" | "remove"): ReadonlyArray<string> => {
  const fields = new Set<string>()
  for (const [field, log] of edited(how)) {
    const read = Reading.read({ log, content })
    const audit = Audit.audit(read.events)
    Replay.replay(read.events)
    assert.isNotEmpty(Show.show(read.events))
    if (audit.isSound && read.unreadable.length === 0) fields.add(field)
  }
  return [...fields].toSorted()
}

/** What nothing else in a journal depends on. */
const independent =
  /\.(at|bursar|by|cause|certainty|code|detail|message|model|name|note|policy|providerId|reason|retryable|short|used|version|why)\b/

/** What is recorded to be believed: where it says less, nothing else says more. */
const believed = [
  "AgentStarted.acceptance",
  "AgentStarted.untrusted",
  "ApprovalRequested.digest",
  "ApprovalRequested.params",
  "CallEnded.untrusted",
  "CallStarted.key",
  "Carved.content",
  "Refused",
  "RunStarted.task",
  "Stopping.step",
  "Verified.evidence",
  "Verified.rules",
  "Verified.stateDigest",
]

describe("a log that was edited in one place", () => {
  it.each(["change", "remove"] as const)(
    "%s: never breaks audit, replay or show, and is found out where it matters",
    (how) => {
      const missed = unnoticed(how).filter(
        (field) => !independent.test(field) && !believed.some((known) => field.startsWith(known)),
      )
      assert.deepStrictEqual(missed, [])
    },
  )
})
