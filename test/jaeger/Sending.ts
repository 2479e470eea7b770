/** Spans written by hand, sent to the collector as OTLP in JSON. */
import { createHash } from "node:crypto"
import * as Effect from "effect/Effect"

type Value = string | number | boolean | ReadonlyArray<string>

export type Attributes = Readonly<Record<string, Value>>

export interface SentSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly startMillis: number
  readonly endMillis: number
  readonly attributes: Attributes
  readonly error?: string
  readonly events?: ReadonlyArray<{ readonly name: string; readonly attributes: Attributes }>
}

export interface Sender {
  /** Attributes of the resource; its `service.name` is the service in Jaeger. */
  readonly resource: Attributes
  readonly scope?: string
  readonly scopeAttributes?: Attributes
}

/** An id of that many bytes, the same for the same words. */
export const idOf = (bytes: 8 | 16, ...words: ReadonlyArray<string | number>): string =>
  createHash("sha256")
    .update(words.join("/"))
    .digest("hex")
    .slice(0, bytes * 2)

const valueOf = (value: Value): unknown => {
  if (typeof value === "string") return { stringValue: value }
  if (typeof value === "boolean") return { boolValue: value }
  if (typeof value === "number") return { intValue: String(value) }
  return { arrayValue: { values: value.map(valueOf) } }
}

const listOf = (attributes: Attributes = {}) =>
  Object.entries(attributes).map(([key, value]) => ({ key, value: valueOf(value) }))

const nanosOf = (millis: number): string => `${Math.round(millis)}000000`

const jsonOf = (span: SentSpan) => ({
  traceId: span.traceId,
  spanId: span.spanId,
  ...(span.parentSpanId === undefined ? {} : { parentSpanId: span.parentSpanId }),
  name: span.name,
  kind: 1,
  startTimeUnixNano: nanosOf(span.startMillis),
  endTimeUnixNano: nanosOf(span.endMillis),
  attributes: listOf(span.attributes),
  events: (span.events ?? []).map(({ name, attributes }) => ({
    name,
    timeUnixNano: nanosOf(span.startMillis),
    attributes: listOf(attributes),
  })),
  status: span.error === undefined ? {} : { code: 2, message: span.error },
})

/** As many as a batch of Bursar's own exporter has. */
const most = 2048

/** Sends them in their order; dies when the collector does not take them. */
export const send = (otlp: string, spans: ReadonlyArray<SentSpan>, sender: Sender): Effect.Effect<void> =>
  Effect.forEach(
    Array.from({ length: Math.ceil(spans.length / most) }, (_, n) => spans.slice(n * most, (n + 1) * most)),
    (batch) => post(`${otlp}/v1/traces`, requestOf(batch, sender)),
    { discard: true },
  )

const requestOf = (spans: ReadonlyArray<SentSpan>, { resource, scope, scopeAttributes }: Sender) => ({
  resourceSpans: [
    {
      resource: { attributes: listOf(resource) },
      scopeSpans: [
        { scope: { name: scope ?? "bursar", attributes: listOf(scopeAttributes) }, spans: spans.map(jsonOf) },
      ],
    },
  ],
})

const post = (url: string, body: unknown): Effect.Effect<void> =>
  Effect.promise(async (signal) => {
    const headers = { "content-type": "application/json" }
    const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body), signal })
    const text = await response.text()
    if (!response.ok || text.includes('partialSuccess":{"')) throw new Error(`${url}: ${response.status} ${text}`)
  })
