import { assert, describe, it } from "@effect/vitest"
import { metrics as sdk } from "@opentelemetry/sdk-node"
import * as Effect from "effect/Effect"
import { Agent, type Event, Proposal } from "../../src/index.ts"
import { dimensions } from "../../src/budget/Dimension.ts"
import { Metrics } from "../../src/otel/index.ts"
import * as Names from "../../src/telemetry/Names.ts"
import { type Any, driven, kit, questions, resumed, says, use } from "../support/driven.ts"
import { all } from "../support/journalled.ts"
import { bare, calls, plays } from "../support/scripts.ts"
import { canary, play, stops } from "../telemetry/everyStop.ts"

interface Point {
  readonly name: string
  readonly unit: string
  readonly labels: Readonly<Record<string, unknown>>
  /** The sum of a counter, the sum and the count of a histogram. */
  readonly sum: number
  readonly count: number
  readonly boundaries: ReadonlyArray<number>
}

/** Runs with a meter provider, and answers with every point of it at the end. */
const counted = <A, E, R>(self: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const exporter = new sdk.InMemoryMetricExporter(sdk.AggregationTemporality.CUMULATIVE)
    const reader = new sdk.PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
    const provider = new sdk.MeterProvider({ readers: [reader] })
    const value = yield* Effect.provide(self, Metrics.layer(provider))
    const { resourceMetrics } = yield* Effect.promise(() => reader.collect())
    yield* Effect.promise(() => provider.shutdown())
    return { value, points: resourceMetrics.scopeMetrics.flatMap(({ metrics }) => metrics.flatMap(pointsOf)) }
  })

const pointsOf = ({ dataPoints, descriptor }: sdk.MetricData): ReadonlyArray<Point> =>
  dataPoints.map(({ attributes, value }) => ({
    name: descriptor.name,
    unit: descriptor.unit,
    labels: attributes,
    ...(typeof value === "number"
      ? { sum: value, count: 1, boundaries: [] }
      : "buckets" in value
        ? { sum: value.sum ?? 0, count: value.count, boundaries: value.buckets.boundaries }
        : { sum: value.sum ?? 0, count: value.count, boundaries: [] }),
  }))

const sum = (points: ReadonlyArray<Point>, name: string, labels: Readonly<Record<string, unknown>> = {}): number =>
  of(points, name, labels).reduce((total, point) => total + point.sum, 0)

const of = (points: ReadonlyArray<Point>, name: string, labels: Readonly<Record<string, unknown>> = {}) =>
  points.filter(
    (point) => point.name === name && Object.entries(labels).every(([key, value]) => point.labels[key] === value),
  )

const booked = (events: ReadonlyArray<Event.Recorded>, tag: "Settled" | "Assumed", d: (typeof dimensions)[number]) =>
  tag === "Settled"
    ? all(events, "Settled").reduce((total, { actual }) => total + (actual[d] ?? 0), 0)
    : all(events, "Assumed").reduce((total, { held }) => total + (held[d] ?? 0), 0)

describe("metrics of a run", () => {
  for (const stop of stops) {
    it.effect(`that stops for ${stop.reason} are those of its books, each counted once`, () =>
      Effect.gen(function* () {
        const { points, value: events } = yield* counted(play(stop))
        const { metric, label } = Names
        assert.deepStrictEqual(
          of(points, metric.runCompleted).map(({ labels, sum }) => [labels[Names.stopReason], sum]),
          [[stop.reason, 1]],
        )
        for (const d of dimensions) {
          const labels = { [label.dimension]: Names.dimension(d) }
          // What was spent by a process that nobody listened to is not counted by the one that ends its run.
          if (stop.reason !== "owner_lost") {
            const [settled, assumed] = [booked(events, "Settled", d), booked(events, "Assumed", d)]
            assert.strictEqual(sum(points, metric.used, labels), settled + assumed, d)
            assert.strictEqual(sum(points, metric.assumed, labels), assumed, d)
          }
          assert.strictEqual(sum(points, metric.held, labels), 0, d)
        }
        assert.strictEqual(sum(points, metric.nodeOpen), 0)
        assert.strictEqual(sum(points, metric.holdPending), 0)
        assert.strictEqual(sum(points, metric.violation), 0)
        const agents = of(points, metric.agentDuration).reduce((total, { count }) => total + count, 0)
        if (stop.reason !== "owner_lost") assert.strictEqual(agents, all(events, "AgentStarted").length)
      }),
    )
  }

  it.effect("are told apart by few words, and never by a text, a run or an account", () =>
    Effect.gen(function* () {
      const names = new Set<string>()
      for (const stop of stops) {
        const { points } = yield* counted(play(stop))
        for (const { labels, name } of points) {
          names.add(name)
          const text = JSON.stringify(labels)
          assert.notInclude(text, canary)
          assert.notMatch(text, /"run"|lead\/|step-/)
        }
      }
      // What no example of a stop comes to.
      const rare = [Names.metric.violation, Names.metric.overrun]
      assert.sameMembers(
        [...names],
        Object.values(Names.metric).filter((name) => !rare.includes(name as never)),
      )
    }),
  )

  it.effect("of requests bear the names of the conventions, their units and their buckets", () =>
    Effect.gen(function* () {
      const { points, value: events } = yield* counted(play(stops.find(({ reason }) => reason === "budget:money")!))
      const [duration] = of(points, "gen_ai.client.operation.duration")
      const requests = all(events, "Decided").length
      assert.deepStrictEqual([duration?.unit, duration?.count], ["s", requests])
      assert.deepStrictEqual(
        [duration?.boundaries.length, duration?.boundaries[0], duration?.boundaries.at(-1)],
        [14, 0.01, 81.92],
      )
      assert.deepStrictEqual(duration?.labels, {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "small",
        "gen_ai.response.model": "small",
      })
      const [input] = of(points, "gen_ai.client.token.usage", { "gen_ai.token.type": "input" })
      assert.deepStrictEqual([input?.unit, input?.boundaries.at(-1)], ["{token}", 4 ** 13])
      assert.strictEqual(input?.sum, booked(events, "Settled", "inputTokens"))
      assert.strictEqual(
        sum(points, "bursar.cost", { "bursar.usage.certainty": "exact" }),
        booked(events, "Settled", "money"),
      )
      assert.deepStrictEqual(
        of(points, "gen_ai.invoke_agent.inference_calls").map(({ sum, labels }) => [sum, labels]),
        [[requests, { "gen_ai.agent.name": "lead" }]],
      )
    }),
  )

  it.effect("of failed requests say why, and an assumed one has no tokens", () =>
    Effect.gen(function* () {
      const { points } = yield* counted(play(stops.find(({ reason }) => reason === "model_error")!))
      assert.sameMembers(
        of(points, "gen_ai.client.operation.duration").map(({ labels }) => labels["error.type"]),
        ["http_429", "cut", "http_400"],
      )
      assert.deepStrictEqual(of(points, "gen_ai.client.token.usage"), [])
    }),
  )

  it.effect("of a resumed run are those of what it does now", () => {
    const tools = kit({ pay: [{ effect: "irreversible", approval: true }, ({ key }) => Effect.succeed(key)] })
    const clerk = Agent.make("root", {
      ...bare,
      policy: plays(calls(use("pay")), Proposal.finish("fine")),
      toolkit: tools.toolkit,
    }) as unknown as Any
    return Effect.gen(function* () {
      const events: Array<Event.Recorded> = []
      const budget = { steps: 40, toolCalls: 40 }
      const first = yield* counted(driven(clerk, { budget, events }, (handle) => handle.await))
      const [question] = questions(first.value)
      const second = yield* counted(resumed(clerk, events, [says(question!, "approved")]))
      const steps = (points: ReadonlyArray<Point>) =>
        sum(points, Names.metric.used, { [Names.label.dimension]: "steps" })
      assert.deepStrictEqual([steps(first.points), steps(second.points)], [1, 1])
      assert.deepStrictEqual(
        [first, second].map(({ points }) => sum(points, Names.metric.runCompleted)),
        [0, 1],
      )
      assert.deepStrictEqual(
        [first, second].map(({ points }) => sum(points, Names.metric.granted, { [Names.label.dimension]: "steps" })),
        [40, 0],
      )
    }).pipe(Effect.provide(tools.handlers))
  })

  it.effect("of a cancelled one tell how long its end took", () =>
    Effect.gen(function* () {
      const { points } = yield* counted(play(stops.find(({ reason }) => reason === "cancelled")!))
      assert.deepStrictEqual(
        of(points, Names.metric.cancelLatency).map(({ labels }) => labels),
        [{ "bursar.cause": "cancelled" }],
      )
    }),
  )
})
