/**
 * Reading traces back from Jaeger, through the JSON API that its pages use.
 *
 * What is not there yet is an empty answer, not a failure: a span is found some hundred milliseconds after its export.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** Jaeger did not answer, or with an error. */
export class QueryFailed extends Schema.TaggedError<QueryFailed>()("QueryFailed", {
  url: Schema.String,
  what: Schema.String,
}) {
  override get message(): string {
    return `${this.url}: ${this.what}`
  }
}

/** A span as Jaeger stored it. */
export interface StoredSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | undefined
  readonly name: string
  /** Those of the span and what Jaeger makes of its kind and status: `span.kind`, `error`, `otel.status_description`. */
  readonly attributes: Readonly<Record<string, unknown>>
  readonly events: ReadonlyArray<{ readonly name: string; readonly attributes: Readonly<Record<string, unknown>> }>
  /** Spans that it refers to other than as its parent. */
  readonly links: ReadonlyArray<{ readonly traceId: string; readonly spanId: string }>
  readonly service: string
  readonly resource: Readonly<Record<string, unknown>>
  readonly startMicros: number
  readonly durationMicros: number
  /** What Jaeger found wrong with it, such as a parent that is missing. */
  readonly warnings: ReadonlyArray<string>
}

/** A trace as Jaeger stored it. */
export interface StoredTrace {
  readonly traceId: string
  readonly spans: ReadonlyArray<StoredSpan>
  /** The whole answer about it, to search for what must not be there. */
  readonly text: string
}

/**
 * What to search for. Tags are compared as text, the whole of it. With storage on disk (Badger, as in `jaeger.yaml`) a
 * trace is found that has the operation and every tag on whichever of its spans; in memory they have to be on one span.
 */
export interface Search {
  readonly service: string
  readonly operation?: string | undefined
  readonly tags?: Readonly<Record<string, string>> | undefined
  /** At most so many traces, the newest first; 1,500 is the most that Jaeger's pages ask for, and what stands in. */
  readonly limit?: number | undefined
}

interface Tag {
  readonly key: string
  readonly value: unknown
}

interface JsonTrace {
  readonly traceID: string
  readonly spans: ReadonlyArray<{
    readonly traceID: string
    readonly spanID: string
    readonly operationName: string
    readonly references?: ReadonlyArray<{ readonly refType: string; readonly traceID: string; readonly spanID: string }>
    readonly startTime: number
    readonly duration: number
    readonly tags?: ReadonlyArray<Tag>
    readonly logs?: ReadonlyArray<{ readonly fields: ReadonlyArray<Tag> }>
    readonly processID: string
    readonly warnings?: ReadonlyArray<string> | null
  }>
  readonly processes: Readonly<Record<string, { readonly serviceName: string; readonly tags?: ReadonlyArray<Tag> }>>
}

interface Answer {
  readonly data?: ReadonlyArray<JsonTrace> | null
  readonly errors?: ReadonlyArray<{ readonly code?: number; readonly msg: string }> | null
}

/** The traces that have what is searched for, whole; `query` is the address of Jaeger. */
export const search = (query: string, { limit, operation, service, tags }: Search) => {
  const url = new URL("/api/traces", query)
  url.searchParams.set("service", service)
  url.searchParams.set("limit", String(limit ?? 1500))
  if (operation !== undefined) url.searchParams.set("operation", operation)
  if (tags !== undefined) url.searchParams.set("tags", JSON.stringify(tags))
  return traces(url)
}

/** A trace by its id; undefined while no span of it is there. */
export const find = (query: string, traceId: string): Effect.Effect<StoredTrace | undefined, QueryFailed> =>
  Effect.map(traces(new URL(`/api/traces/${traceId}`, query)), ([trace]) => trace)

/** The answer to a search of Jaeger's pages, such as the links of `jaeger-ui.json` have it. */
export const follow = (query: string, link: string): Effect.Effect<ReadonlyArray<StoredTrace>, QueryFailed> => {
  const url = new URL(link, query)
  url.pathname = "/api/traces"
  return traces(url)
}

const traces = (url: URL): Effect.Effect<ReadonlyArray<StoredTrace>, QueryFailed> => {
  const failed = (what: string) => new QueryFailed({ url: url.href, what })
  return Effect.tryPromise({
    try: (signal) =>
      fetch(url, { signal }).then(async (response) => ({ status: response.status, text: await response.text() })),
    catch: (error) => failed(String(error)),
  }).pipe(
    Effect.flatMap(({ status, text }) => {
      // That a trace is not there, Jaeger says with a status.
      if (status === 404) return Effect.succeed([])
      if (status !== 200) return Effect.fail(failed(`status ${status}: ${text.slice(0, 500)}`))
      const { data, errors } = JSON.parse(text) as Answer
      const [error] = errors ?? []
      return error === undefined ? Effect.succeed((data ?? []).map(decoded)) : Effect.fail(failed(error.msg))
    }),
  )
}

const decoded = (trace: JsonTrace): StoredTrace => ({
  traceId: trace.traceID,
  text: JSON.stringify(trace),
  spans: trace.spans.map((span) => {
    const references = span.references ?? []
    const parent = references.find(({ refType, traceID }) => refType === "CHILD_OF" && traceID === span.traceID)
    const process = trace.processes[span.processID]
    return {
      traceId: span.traceID,
      spanId: span.spanID,
      parentSpanId: parent?.spanID,
      name: span.operationName,
      attributes: record(span.tags),
      events: (span.logs ?? []).map(({ fields }) => {
        const { event, ...attributes } = record(fields)
        return { name: String(event), attributes }
      }),
      links: references
        .filter((reference) => reference !== parent)
        .map(({ spanID, traceID }) => ({ traceId: traceID, spanId: spanID })),
      service: process?.serviceName ?? "",
      resource: record(process?.tags),
      startMicros: span.startTime,
      durationMicros: span.duration,
      warnings: span.warnings ?? [],
    }
  }),
})

const record = (tags: ReadonlyArray<Tag> = []): Readonly<Record<string, unknown>> =>
  Object.fromEntries(tags.map(({ key, value }) => [key, value]))
