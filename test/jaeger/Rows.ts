/**
 * What Jaeger stored, as the neutral spans that the laws of traces are stated over.
 *
 * Its answers do not say everything. Times are whole microseconds, so that the order of what began within one is lost,
 * and a span may seem to last up to two longer than its parent (`toleranceNanos`). A link has no attributes: why it is
 * there follows from where it is. Lists are JSON texts. Events are in their order.
 */
import type { StoredSpan, StoredTrace } from "../../examples/jaeger/Query.ts"
import type { Row } from "../telemetry/Row.ts"

/** Start and length are cut to whole microseconds, each by itself. */
export const toleranceNanos = 2_000n

/** What Jaeger makes of the status and the kind of a span, in place of what they were. */
const own = { kind: "span.kind", error: "error", code: "otel.status_code", message: "otel.status_description" } as const

const text = (value: unknown, otherwise: string): string => (typeof value === "string" ? value : otherwise)

const statusOf = ({ attributes }: StoredSpan): Row["status"] => {
  const message = text(attributes[own.message], "")
  if (attributes[own.error] === true) return { code: "error", message }
  return { code: attributes[own.code] === "OK" ? "ok" : "unset", message }
}

const rowOf = (span: StoredSpan, parent: StoredSpan | undefined): Row => {
  const start = BigInt(span.startMicros) * 1_000n
  const kind = parent?.name === "bursar.continuation" || span.name === "bursar.continuation" ? "continues" : undefined
  const names: ReadonlyArray<string> = Object.values(own)
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    parentId: span.parentSpanId,
    name: span.name,
    kind: text(span.attributes[own.kind], "internal"),
    startNanos: start,
    endNanos: start + BigInt(span.durationMicros) * 1_000n,
    attributes: Object.fromEntries(Object.entries(span.attributes).filter(([key]) => !names.includes(key))),
    events: span.events,
    links: span.links.map((link) => ({ ...link, attributes: kind === undefined ? {} : { "bursar.link": kind } })),
    status: statusOf(span),
  }
}

/** All spans of some traces. */
export const rowsOf = (traces: ReadonlyArray<StoredTrace>): ReadonlyArray<Row> =>
  traces.flatMap(({ spans }) => {
    const byId = new Map(spans.map((span) => [span.spanId, span]))
    return spans.map((span) => rowOf(span, byId.get(span.parentSpanId ?? "")))
  })
