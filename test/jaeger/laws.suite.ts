/**
 * The laws of traces (T1 to T11) over what Jaeger stored of runs that stop for every reason there is, of one that goes on
 * in another process, of one that is killed and of one too large for a trace.
 */
import { assert, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { search } from "../../examples/jaeger/Query.ts"
import type { Event } from "../../src/index.ts"
import * as Names from "../../src/telemetry/Names.ts"
import { canary, play, type Stop, stops } from "../telemetry/everyStop.ts"
import { broken } from "../telemetry/laws.ts"
import { shapeOf } from "../telemetry/Row.ts"
import { type Started, sending, stored, virtual } from "./Recording.ts"
import { toleranceNanos } from "./Rows.ts"
import { live, Standing, standing } from "./Standing.ts"

const sent = (stop: Stop, stack: Standing["Service"]) =>
  Effect.map(virtual(sending(play(stop), stack)), ({ started, value }) => ({ stop, started, events: value }))

/**
 * On a virtual clock what is last in an agent begins when the agent ends; an instant is a nanosecond long when it is
 * exported, and Jaeger sees it end so much too late.
 */
const isInstant = /^clock skew adjustment disabled; not applying calculated delta of -[\d.]*0001m?s$/

/** What a journal says, but for which traces it is told in. */
const withoutTraces = (events: ReadonlyArray<Event.Recorded>) =>
  events.map(({ event, ...rest }) => ({ ...rest, event: { ...event, trace: undefined } }))

const count = (text: string, word: string): number => text.split(word).length - 1

const rootOf = (started: ReadonlyArray<Started>): string => started[0]!.traceId

layer(standing(), live)("what Jaeger stored", (it) => {
  it.effect("of a run that stops for each reason keeps the laws of traces, and holds no content", (context) =>
    Effect.gen(function* () {
      const stack = yield* Standing
      const runs = yield* Effect.forEach(stops, (stop) => sent(stop, stack))
      const again = yield* Effect.forEach(stops, (stop) => sent(stop, stack))
      const figures = { spans: 0, stored: 0, lost: 0, surplus: 0, "canary hits": 0, bytes: 0, journals: 0 }
      for (const [n, { events, started, stop }] of runs.entries()) {
        const { lost, rows, surplus, traces } = yield* stored(stack, started)
        const text = traces.map((trace) => trace.text).join("\n")
        assert.deepStrictEqual([lost, surplus], [0, 0], stop.reason)
        assert.deepStrictEqual(broken(rows, events, { toleranceNanos }), [], stop.reason)
        const warnings = traces.flatMap(({ spans }) => spans.flatMap((span) => span.warnings))
        assert.deepStrictEqual(
          warnings.filter((one) => !isInstant.test(one)),
          [],
          stop.reason,
        )
        const { rows: others } = yield* stored(stack, again[n]!.started)
        assert.deepStrictEqual(shapeOf(others), shapeOf(rows), stop.reason)
        assert.include(JSON.stringify(events), canary)
        assert.include(text, stop.reason)
        figures.journals += count(JSON.stringify(events), canary)
        figures.spans += started.length
        figures.stored += rows.length
        figures.lost += lost
        figures.surplus += surplus
        figures.bytes += text.length
        figures["canary hits"] += count(text, canary)
        const untraced = yield* virtual(play(stop))
        assert.deepStrictEqual(withoutTraces(events), withoutTraces(untraced), stop.reason)
      }
      assert.strictEqual(figures["canary hits"], 0)
      context.task.meta.figures = {
        runs: runs.length,
        "runs again, traced the same": again.length,
        "spans sent": figures.spans,
        "spans stored": figures.stored,
        lost: figures.lost,
        "stored twice or unasked": figures.surplus,
        "spans per run": (figures.stored / runs.length).toFixed(1),
        "canaries in the journals": figures.journals,
        "bytes of traces searched for them": figures.bytes,
        "canary hits": figures["canary hits"],
      }
      for (const { started, stop } of runs) {
        const tags = { [Names.runStopReason]: stop.reason }
        const found = yield* search(stack.query, { service: "bursar", tags })
        const due = [...runs, ...again].filter((run) => run.stop.reason === stop.reason)
        assert.sameMembers(
          found.map(({ traceId }) => traceId),
          due.map((run) => rootOf(run.started)),
          `${stop.reason} ${rootOf(started)}`,
        )
      }
    }),
  )
})
