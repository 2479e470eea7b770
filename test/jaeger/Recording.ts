/**
 * Runs whose spans go through the collector into Jaeger, each on a virtual clock and with an exporter of its own, and
 * what is stored of them: exactly the spans that were started, none less and none more.
 */
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Tracer from "effect/Tracer"
import { TestClock } from "effect/testing"
import { find, type StoredTrace } from "../../examples/jaeger/Query.ts"
import type { StartingTracer } from "../../src/telemetry/Start.ts"
import { layer } from "../otel/exporting.ts"
import { idOf, type Row } from "../telemetry/Row.ts"
import { rowsOf } from "./Rows.ts"
import { type Standing, until } from "./Standing.ts"

/** Every span that was started, in that order. */
export interface Started {
  readonly traceId: string
  readonly spanId: string
}

/** Notes what a tracer starts. */
const noting = (tracer: StartingTracer, started: Array<Started>): StartingTracer => {
  const note = (span: Tracer.Span): Tracer.Span => {
    if (span.sampled) started.push({ traceId: span.traceId, spanId: span.spanId })
    return span
  }
  const { start } = tracer
  return {
    span: (asked) => note(tracer.span(asked)),
    ...(start === undefined ? {} : { start: (asked, attributes) => note(start(asked, attributes)) }),
  }
}

/** A day and a bit ago, so that a run that lets a day pass ends in the past, and within what a search looks back. */
export const beginMillis = Date.now() - 26 * 3_600_000

/** With one seed, on a virtual clock that stands where all of them begin. */
export const virtual = <A, E, R>(self: Effect.Effect<A, E, R>) =>
  Effect.andThen(TestClock.setTime(beginMillis), self).pipe(
    Random.withSeed("laws"),
    Effect.provide(TestClock.layer(), { local: true }),
  )

/** Runs it with its spans going to the collector; when it has ended, they have been sent. */
export const sending = <A, E>(self: Effect.Effect<A, E>, { otlp }: Pick<Standing["Service"], "otlp">) =>
  Effect.gen(function* () {
    const started: Array<Started> = []
    const noted = Effect.flatMap(Tracer.Tracer, (tracer) =>
      Effect.provideService(self, Tracer.Tracer, noting(tracer, started)),
    )
    const variables = { OTEL_EXPORTER_OTLP_ENDPOINT: otlp, OTEL_METRICS_EXPORTER: "none", OTEL_LOGS_EXPORTER: "none" }
    const exporter = layer(variables, { shutdownTimeout: "60 seconds" })
    const value = yield* noted.pipe(Effect.provide(exporter, { local: true }))
    return { value, started }
  })

export interface Stored {
  readonly traces: ReadonlyArray<StoredTrace>
  /** In the order in which they started. */
  readonly rows: ReadonlyArray<Row>
  /** Started, and not stored. */
  readonly lost: number
  /** Stored, and not started; or stored twice. */
  readonly surplus: number
}

/** Reads back the traces of what was started, when as many spans of them are there. */
export const stored = ({ query }: Pick<Standing["Service"], "query">, started: ReadonlyArray<Started>) =>
  Effect.gen(function* () {
    const due = Map.groupBy(started, ({ traceId }) => traceId)
    const traces = yield* Effect.forEach(due, ([traceId, spans]) =>
      until(`${spans.length} spans of ${traceId}`, find(query, traceId), (trace) => {
        return (trace?.spans.length ?? 0) >= spans.length
      }),
    )
    const place = new Map(started.map((span, index) => [idOf(span), index]))
    const whole = traces.filter((trace) => trace !== undefined)
    const rows = rowsOf(whole).toSorted((a, b) => (place.get(idOf(a)) ?? 0) - (place.get(idOf(b)) ?? 0))
    const ids = new Set(rows.map(idOf))
    const lost = started.filter((span) => !ids.has(idOf(span))).length
    return { traces: whole, rows, lost, surplus: rows.length - (started.length - lost) } satisfies Stored
  })
