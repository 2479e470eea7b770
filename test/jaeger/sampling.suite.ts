/**
 * `tail_sampling` of `otel-collector.yaml` in a real collector, told to keep a tenth of what is unremarkable and to wait
 * for ten seconds: what it keeps is whole, and what a user would miss is kept.
 */
import { assert, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Config from "../../examples/jaeger/Config.ts"
import { search, type StoredTrace } from "../../examples/jaeger/Query.ts"
import { StopReason } from "../../src/event/StopReason.ts"
import * as Names from "../../src/telemetry/Names.ts"
import { binomialBounds, type Run, runsOf } from "./Runs.ts"
import { send } from "./Sending.ts"
import { live, samples, Standing, standing, sum, until } from "./Standing.ts"

const percent = 10
const each = 100
const unremarkable = 1000

/** How many runs the sampler has in memory; as many as are sent at first, and hardly more. */
const inMemory = 3000

const sampler = ["collector", "processors", "tail_sampling"]

const sampling = standing({
  env: { BURSAR_KEEP_PERCENT: String(percent), BURSAR_DECISION_WAIT: "10s" },
  change: (config) =>
    [
      [[...sampler, "decision_wait_after_root_received"], "1s"] as const,
      [[...sampler, "num_traces"], inMemory] as const,
      [["collector", "connectors", "span_metrics", "metrics_flush_interval"], "1s"] as const,
    ].reduce((config, [at, value]) => Config.set(config, at, value), config),
})

const stops = StopReason.literals.filter((reason) => reason !== "completed")

/** Over before they are judged, that is before the wait has passed. */
const quick: ReadonlyArray<Run> = [
  ...stops.flatMap((reason) => runsOf(each / 2, `quick/${reason}`, reason)),
  ...runsOf(20, "overrun", "completed", { root: { [Names.overrun]: true } }),
  ...runsOf(20, "assumed", "completed", { chat: { [Names.certainty]: "assumed" } }),
  ...runsOf(20, "slow", "completed", { durationMillis: 301_000 }),
]
const rest = runsOf(unremarkable, "rest", "completed")

/** Still going on when they are judged; a mark has told of the stop. */
const long = stops.flatMap((reason) => runsOf(each / 2, `long/${reason}`, reason, { isMarked: true }))

/** Still going on when they are judged, and nothing has told of anything yet: what a wait that is too short costs. */
const unseen = runsOf(each, "unseen", "budget:money")

/** Of another service, to make the sampler forget the others: it knows of them by its caches alone then. */
const later = runsOf(inMemory, "later", "completed")

const spansOf = (runs: ReadonlyArray<Run>) => runs.flatMap(({ early, late }) => [...early, ...late])
const earlyOf = (runs: ReadonlyArray<Run>) => runs.flatMap(({ early }) => early)
const lateOf = (runs: ReadonlyArray<Run>) => runs.flatMap(({ late }) => late)

const sender = { resource: { "service.name": "bursar" } }
const another = { resource: { "service.name": "another" } }

const verdicts = ({ telemetry }: Standing["Service"]) =>
  Effect.map(samples(telemetry), (all) => {
    const name = "otelcol_processor_tail_sampling_global_count_traces_sampled"
    return { kept: sum(all, name, { sampled: "true" }), dropped: sum(all, name, { sampled: "false" }) }
  })

const judged = (stack: Standing["Service"], runs: number) =>
  until(`verdicts on ${runs} runs`, verdicts(stack), ({ dropped, kept }) => kept + dropped >= runs)

/** More traces than are sent. */
const everything = 5000

/** What Jaeger has, by the id of the trace. */
const stored = ({ query }: Standing["Service"]) =>
  Effect.map(
    search(query, { service: "bursar", limit: everything }),
    (traces) => new Map(traces.map((trace) => [trace.traceId, trace])),
  )

/** The ids of the traces that one query finds for a reason. */
const foundFor = ({ query }: Standing["Service"], reason: StopReason) =>
  Effect.map(search(query, { service: "bursar", tags: { [Names.stopReason]: reason }, limit: everything }), (traces) =>
    traces.map(({ traceId }) => traceId),
  )

const isWhole = (run: Run, trace: StoredTrace | undefined): boolean => {
  const ids = new Set(trace?.spans.map(({ spanId }) => spanId))
  return spansOf([run]).every(({ spanId }) => ids.has(spanId)) && ids.size === spansOf([run]).length
}

layer(sampling, live)("tail sampling", (it) => {
  it.effect("keeps every run that failed or was stopped, whole, and a tenth of the others", (context) =>
    Effect.gen(function* () {
      const stack = yield* Standing
      yield* send(stack.otlp, earlyOf([...quick, ...rest, ...long, ...unseen]), sender)
      yield* send(stack.otlp, lateOf([...quick, ...rest]), sender)
      const runs = quick.length + rest.length + long.length + unseen.length
      const { dropped, kept } = yield* judged(stack, runs)
      assert.strictEqual(kept + dropped, runs)
      assert.isAtMost(runs, inMemory)
      yield* send(stack.otlp, spansOf(later), another)
      yield* judged(stack, runs + later.length)
      yield* send(stack.otlp, lateOf([...long, ...unseen]), sender)

      const wanted = [...quick, ...long]
      const keptOf = (runs: ReadonlyArray<Run>) => runs.filter(({ traceId }) => found.has(traceId))
      const { found } = yield* until(
        `${kept} whole runs`,
        Effect.map(stored(stack), (found) => {
          const due = [...wanted, ...[...rest, ...unseen].filter(({ traceId }) => found.has(traceId))]
          const missing = due.filter((run) => !isWhole(run, found.get(run.traceId))).map(({ id }) => id)
          return { found, stored: found.size, missing }
        }),
        ({ missing, stored }) => stored >= kept && missing.length === 0,
      )
      assert.strictEqual(found.size, kept)
      const sampled = keptOf(rest)
      const isTenth = binomialBounds(unremarkable, percent / 100, 1e-6)
      assert.isAtLeast(sampled.length, isTenth.least)
      assert.isAtMost(sampled.length, isTenth.most)

      for (const reason of stops) {
        const ended = keptOf([...wanted, ...unseen]).filter((run) => run.reason === reason)
        assert.sameMembers(
          yield* foundFor(stack, reason),
          ended.map(({ traceId }) => traceId),
          reason,
        )
      }

      const counted = yield* until(
        "the counts of all runs",
        Effect.map(samples(stack.metrics), (all) =>
          sum(all, "traces_span_metrics_calls_total", { span_name: "invoke_agent lead", service_name: "bursar" }),
        ),
        (calls) => calls >= runs,
      )
      assert.strictEqual(counted, runs)

      context.task.meta.figures = {
        "traces sent": runs,
        "traces kept by the collector": kept,
        "traces stored": found.size,
        "failed or stopped, sent": wanted.length,
        "failed or stopped, stored whole": keptOf(wanted).length,
        "failed or stopped, lost": wanted.length - keptOf(wanted).length,
        "others, sent": rest.length,
        "others, stored": `${sampled.length} (between ${isTenth.least} and ${isTenth.most})`,
        "stopped only after the verdict and without a mark, stored": `${keptOf(unseen).length} of ${unseen.length}`,
        "spans per run": (spansOf(wanted).length / wanted.length).toFixed(1),
        "runs in the metrics": counted,
      }
    }),
  )
})
