import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Tracer from "effect/Tracer"
import type { Event } from "../../src/index.ts"
import { StopReason } from "../../src/event/StopReason.ts"
import { all } from "../support/journalled.ts"
import { play, type Stop, stops } from "./everyStop.ts"
import * as InMemory from "./InMemory.ts"
import { broken } from "./laws.ts"
import { type Row, shapeOf } from "./Row.ts"

interface Ran {
  readonly rows: ReadonlyArray<Row>
  readonly events: ReadonlyArray<Event.Recorded>
}

const traced = (stop: Stop): Effect.Effect<Ran, unknown> =>
  Effect.gen(function* () {
    const { tracer, rows } = InMemory.make()
    const events = yield* Effect.provideService(play(stop), Tracer.Tracer, tracer)
    return { rows: rows(), events }
  })

describe("a run that stops", () => {
  it("has an example for every reason there is", () => {
    assert.deepStrictEqual(stops.map(({ reason }) => reason).toSorted(), [...StopReason.literals].toSorted())
  })

  for (const stop of stops) {
    it.effect(`for ${stop.reason} keeps the laws of traces`, () =>
      Effect.gen(function* () {
        const { events, rows } = yield* traced(stop)
        const ended = all(events, "RunEnded")
        assert.deepStrictEqual(
          ended.map(({ reason }) => reason),
          [stop.reason],
        )
        assert.deepStrictEqual(broken(rows, events), [])
        const { attributes, name } = rows.find(({ parentId }) => parentId === undefined)!
        assert.deepStrictEqual(
          [name, attributes["bursar.stop.reason"], attributes["bursar.result"]],
          ["invoke_agent lead", stop.reason, ended[0]!.result],
        )
      }),
    )

    it.effect(`for ${stop.reason} is traced the same each time`, () =>
      Effect.gen(function* () {
        const [one, other] = [yield* traced(stop), yield* traced(stop)]
        assert.deepStrictEqual(shapeOf(other.rows), shapeOf(one.rows))
      }),
    )
  }
})

describe("the laws", () => {
  const completed = stops.find(({ reason }) => reason === "budget:money")!
  const cancelled = stops.find(({ reason }) => reason === "cancelled")!
  type Edit = (rows: ReadonlyArray<Row>) => ReadonlyArray<Row>
  const change =
    (start: string, how: (row: Row) => Partial<Row>): Edit =>
    (rows) => {
      const at = rows.findIndex(({ name }) => name.startsWith(start))
      return rows.map((row, index) => (index === at ? { ...row, ...how(row) } : row))
    }
  const say = (attributes: Readonly<Record<string, unknown>>) => (row: Row) => ({
    attributes: { ...row.attributes, ...attributes },
  })
  const without =
    (start: string): Edit =>
    (rows) => {
      const at = rows.findIndex(({ name }) => name.startsWith(start))
      return rows.filter((_, index) => index !== at)
    }
  const cases: ReadonlyArray<readonly [string, Stop, Edit, RegExp]> = [
    ["a span between two others is missing", completed, without("bursar.step"), /has no parent/],
    ["a second root", completed, change("chat", () => ({ parentId: undefined })), /has 2 roots/],
    ["a span that came twice", completed, (rows) => [...rows, rows[0]!], /has a span twice/],
    [
      "a span without its run",
      completed,
      change("chat", ({ attributes }) => ({
        attributes: Object.fromEntries(Object.entries(attributes).filter(([key]) => key !== "bursar.run.id")),
      })),
      /chat small has no bursar.run.id/,
    ],
    ["an agent without a span", cancelled, change("invoke_agent sleeper", () => ({ name: "else" })), /has 0 spans/],
    [
      "an agent under another",
      cancelled,
      change("invoke_agent sleeper", say({ "bursar.node.id": "lead" })),
      /the span of lead is under that of lead/,
    ],
    [
      "usage that nobody booked",
      completed,
      change("chat", say({ "gen_ai.usage.input_tokens": 11 })),
      /input tokens on/,
    ],
    ["usage twice", completed, change("invoke_agent", say({ "gen_ai.usage.input_tokens": 1 })), /tells of usage/],
    [
      "usage of an assumption",
      completed,
      change("chat", say({ "bursar.usage.certainty": "assumed" })),
      /tells of usage/,
    ],
    [
      "an event that is missing",
      completed,
      change("invoke_agent", () => ({ events: [] })),
      /Refused \d+ of lead has no/,
    ],
    ["a span outside of its parent", completed, change("chat", () => ({ startNanos: -1n })), /starts before/],
    ["a span after its parent", completed, change("chat", () => ({ endNanos: 10n ** 18n })), /ends after bursar.step/],
    [
      "a cancelled run in red",
      cancelled,
      change("invoke_agent", () => ({ status: { code: "error", message: "" } })),
      /ended with cancelled and is error/,
    ],
    [
      "a child that says why the run stopped",
      cancelled,
      change("invoke_agent sleeper", say({ "bursar.run.stop.reason": "cancelled" })),
      /invoke_agent sleeper says why the run stopped/,
    ],
    [
      "another reason of the run than its own",
      completed,
      change("bursar.mark", say({ "bursar.run.stop.reason": "deadline" })),
      /says that the run stopped for deadline/,
    ],
    [
      "a run that does not say why it stopped",
      completed,
      change("invoke_agent", say({ "bursar.run.stop.reason": "deadline" })),
      /no agent says that the run stopped for budget:money/,
    ],
    ["a start without a mark", completed, without("bursar.start"), /has no mark of its start/],
    ["a mark that takes time", completed, change("bursar.mark", () => ({ endNanos: 10n ** 9n })), /takes time/],
    ["a mark that is not kept", completed, change("bursar.mark", say({ "bursar.keep": false })), /not to be kept/],
    [
      "a link into its own trace",
      completed,
      change("chat", ({ traceId, spanId }) => ({ links: [{ traceId, spanId, attributes: {} }] })),
      /links into its own trace/,
    ],
  ]
  for (const [name, stop, edit, complaint] of cases) {
    it.effect(`find ${name}`, () =>
      Effect.gen(function* () {
        const { events, rows } = yield* traced(stop)
        const found = broken(edit(rows), events)
        assert.isTrue(
          found.some((one) => complaint.test(one)),
          found.join("; "),
        )
      }),
    )
  }
})
