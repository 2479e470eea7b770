/**
 * A tracer over the real SDK whose spans stay here.
 */
import * as Api from "@opentelemetry/api"
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base"
import * as Effect from "effect/Effect"
import * as Tracer from "effect/Tracer"
import { Tracer as OtelTracer } from "../../src/otel/index.ts"
import type { Row } from "./Row.ts"

/** A tracer, and the spans that have ended, in the order in which they started. */
export const make = (): { readonly tracer: Tracer.Tracer; readonly rows: () => ReadonlyArray<Row> } => {
  const exporter = new InMemorySpanExporter()
  const started: Array<string> = []
  const order = {
    onStart: (span: { spanContext: () => Api.SpanContext }) => void started.push(span.spanContext().spanId),
    onEnd: () => {},
    forceFlush: () => Promise.resolve(),
    shutdown: () => Promise.resolve(),
  }
  const provider = new BasicTracerProvider({ spanProcessors: [order, new SimpleSpanProcessor(exporter)] })
  return {
    tracer: OtelTracer.make(provider.getTracer("test")),
    rows: () => {
      const place = new Map(started.map((id, index) => [id, index]))
      return exporter
        .getFinishedSpans()
        .map(rowOf)
        .toSorted((a, b) => place.get(a.spanId)! - place.get(b.spanId)!)
    },
  }
}

const nanosOf = ([seconds, nanos]: Api.HrTime): bigint => BigInt(seconds) * 1_000_000_000n + BigInt(nanos)

const codes = ["unset", "ok", "error"] as const

const rowOf = (span: ReadableSpan): Row => ({
  ...span.spanContext(),
  parentId: span.parentSpanContext?.spanId,
  name: span.name,
  kind: Api.SpanKind[span.kind].toLowerCase(),
  startNanos: nanosOf(span.startTime),
  endNanos: nanosOf(span.endTime),
  attributes: span.attributes,
  events: span.events.map(({ name, attributes = {} }) => ({ name, attributes })),
  links: span.links.map(({ context: { traceId, spanId }, attributes = {} }) => ({ traceId, spanId, attributes })),
  status: { code: codes[span.status.code], message: span.status.message ?? "" },
})

/** Runs an Effect, and answers with what it comes to and the spans that it left. */
export const traced = <A, E, R>(self: Effect.Effect<A, E, R>) => {
  const { tracer, rows } = make()
  return Effect.map(Effect.provideService(self, Tracer.Tracer, tracer), (value) => ({ value, rows: rows() }))
}

/** The only span of that name. */
export const one = (rows: ReadonlyArray<Row>, name: string): Row => {
  const [found, ...more] = rows.filter((row) => row.name === name)
  if (found === undefined || more.length > 0)
    throw new Error(`not one span named ${name}: ${JSON.stringify(rows.map(({ name }) => name))}`)
  return found
}
