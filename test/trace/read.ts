/**
 * Reading stored traces: as Jaeger's query API gives them back, or as they were exported (OTLP as JSON).
 */
import * as Otlp from "../otel/otlp.ts"
import type { Row } from "../telemetry/Row.ts"

interface JaegerTag {
  readonly key: string
  readonly value: unknown
}

interface JaegerReference {
  readonly refType: string
  readonly traceID: string
  readonly spanID: string
}

interface JaegerSpan {
  readonly traceID: string
  readonly spanID: string
  readonly operationName: string
  readonly references?: ReadonlyArray<JaegerReference>
  /** Microseconds. */
  readonly startTime: number
  readonly duration: number
  readonly tags: ReadonlyArray<JaegerTag>
  readonly logs?: ReadonlyArray<{ readonly fields: ReadonlyArray<JaegerTag> }>
}

/** The spans of a file, whichever of the two it is. Throws for another one. */
export const read = (text: string): ReadonlyArray<Row> => {
  const stored = JSON.parse(text) as { readonly data?: unknown; readonly resourceSpans?: unknown }
  if (Array.isArray(stored.data)) {
    const traces = stored.data as ReadonlyArray<{ readonly spans: ReadonlyArray<JaegerSpan> }>
    return traces.flatMap(({ spans }) => spans.map(fromJaeger))
  }
  if (!Array.isArray(stored.resourceSpans)) throw new Error("it holds neither Jaeger's data nor OTLP's resourceSpans")
  return Otlp.fromJson(Buffer.from(text)).map(({ parentSpanId, ...span }) => ({ ...span, parentId: parentSpanId }))
}

const attributesOf = (tags: ReadonlyArray<JaegerTag>): Readonly<Record<string, unknown>> =>
  Object.fromEntries(tags.map(({ key, value }) => [key, value]))

const isParent = (span: JaegerSpan) => (one: JaegerReference) =>
  one.refType === "CHILD_OF" && one.traceID === span.traceID

const fromJaeger = (span: JaegerSpan): Row => {
  const { "otel.status_code": code, "otel.status_description": message, ...attributes } = attributesOf(span.tags)
  const parent = span.references?.find(isParent(span))
  return {
    traceId: span.traceID,
    spanId: span.spanID,
    parentId: parent?.spanID,
    name: span.operationName,
    kind: typeof attributes["span.kind"] === "string" ? attributes["span.kind"] : "internal",
    startNanos: BigInt(span.startTime) * 1_000n,
    endNanos: BigInt(span.startTime + span.duration) * 1_000n,
    attributes,
    events: (span.logs ?? []).map(({ fields }) => {
      const { event, ...rest } = attributesOf(fields)
      return { name: String(event), attributes: rest }
    }),
    links: (span.references ?? [])
      .filter((one) => one !== parent)
      .map(({ spanID, traceID }) => ({ traceId: traceID, spanId: spanID, attributes: {} })),
    status: {
      code: code === "ERROR" ? "error" : code === "OK" ? "ok" : "unset",
      message: typeof message === "string" ? message : "",
    },
  }
}
