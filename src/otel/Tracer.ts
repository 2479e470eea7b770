/**
 * An Effect `Tracer` that makes the spans of an OpenTelemetry SDK, at the price of the SDK.
 *
 * It leaves sampling, limits and export to the SDK behind the `Tracer` of `@opentelemetry/api`. Its law: an Effect span
 * is in the context of OpenTelemetry only inside {@link enter} and {@link withOtelContext}. A hook around every Effect
 * primitive, as in `@effect/opentelemetry`, costs ten times the span itself.
 */
import * as Otel from "@opentelemetry/api"
import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"
import * as Headers from "effect/http/Headers"
import * as HttpTraceContext from "effect/http/HttpTraceContext"
import * as Propagation from "../telemetry/Propagation.ts"
import type { StartingTracer } from "../telemetry/Start.ts"
import type { Enter } from "../telemetry/Propagation.ts"
import { hrTime, messageOf, toAttributes, toAttributeValue } from "./internal/attributes.ts"

/**
 * What the spans of a tracer tell beyond names, times, attributes and status.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options {
  /**
   * Writes each error of a failed span as an `exception` event, with its message and stack. Off when absent: both can
   * quote what a user, a tool or a provider wrote.
   */
  readonly exceptions?: boolean | undefined
}

/**
 * Makes an Effect tracer out of an OpenTelemetry one.
 *
 * A span takes its parent from Effect. Without one it takes the span that is active in OpenTelemetry's context, unless
 * it was asked to be a root. What Effect does not sample is never shown to the SDK.
 *
 * **Status**: success leaves it unset; an interruption too, and sets `effect.fiber.interrupted`; a failure or a defect
 * is an error with the message of the first one.
 *
 * **Example** (Collecting spans in memory)
 *
 * ```ts
 * import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base"
 * import { Tracer as OtelTracer } from "bursar/otel"
 * import * as Effect from "effect/Effect"
 * import * as Tracer from "effect/Tracer"
 *
 * const exporter = new InMemorySpanExporter()
 * const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
 * const tracer = OtelTracer.make(provider.getTracer("example"))
 *
 * const program = Effect.void.pipe(Effect.withSpan("inner"), Effect.withSpan("outer"))
 * await Effect.runPromise(Effect.provideService(program, Tracer.Tracer, tracer))
 * exporter.getFinishedSpans().map(({ name }) => name) // => ["inner", "outer"]
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (tracer: Otel.Tracer, options: Options = {}): Tracer.Tracer => {
  const exceptions = options.exceptions ?? false
  const start = (asked: SpanOptions, attributes: Readonly<Record<string, unknown>>): Tracer.Span =>
    asked.sampled ? new SdkSpan(tracer, asked, { attributes, exceptions }) : new Tracer.NativeSpan(asked)
  const made: StartingTracer = { span: (asked) => start(asked, {}), start }
  return made
}

/**
 * Gives a function that runs synchronous code with the current Effect span active in OpenTelemetry's context.
 *
 * Promises started inside keep that context; what follows in the fiber does not. Without a span the code just runs.
 *
 * **Example** (An instrumented client)
 *
 * ```ts
 * import { trace } from "@opentelemetry/api"
 * import { Tracer } from "bursar/otel"
 * import * as Effect from "effect/Effect"
 *
 * const program = Effect.gen(function* () {
 *   const enter = yield* Tracer.enter
 *   return enter(() => trace.getActiveSpan()?.spanContext().spanId ?? "no span")
 * })
 * await Effect.runPromise(program) // => "no span"
 * ```
 *
 * @see {@link withOtelContext} for code that returns a promise
 * @category context
 * @since 0.1.0
 */
export const enter: Effect.Effect<<A>(run: () => A) => A> = Effect.withFiber((fiber) => {
  const { span } = fiber.cache
  return Effect.succeed((run) => entering(span, run))
})

/** @internal */
export const entering: Enter = (span, run) => {
  if (span === undefined) return run()
  const context = contextOf(span)
  return Otel.context.with(context.setValue(Entered, Otel.trace.getSpan(context)), run)
}

/**
 * `Effect.tryPromise` with the current Effect span active in OpenTelemetry's context: for a client whose own
 * instrumentation is to find its parent and send it on.
 *
 * **Example** (A request whose instrumentation sees the span)
 *
 * ```ts no-run
 * import { Tracer } from "bursar/otel"
 *
 * const page = Tracer.withOtelContext({
 *   try: (signal) => fetch("http://127.0.0.1:8080/", { signal }),
 *   catch: () => "unavailable" as const,
 * })
 * ```
 *
 * @see {@link enter} for code that returns no promise
 * @category context
 * @since 0.1.0
 */
export const withOtelContext = <A, E>(options: {
  readonly try: (signal: AbortSignal) => PromiseLike<A>
  readonly catch: (error: unknown) => E
}): Effect.Effect<A, E> =>
  Effect.flatMap(enter, (enter) =>
    Effect.tryPromise({ try: (signal) => enter(() => options.try(signal)), catch: options.catch }),
  )

/**
 * Runs an Effect as part of the trace that a request came with, by its W3C (or B3) headers. A header that is missing or
 * cannot be read changes nothing.
 *
 * **Example** (A server that is asked to run an agent)
 *
 * ```ts
 * import { Tracer } from "bursar/otel"
 * import * as Effect from "effect/Effect"
 * import * as Option from "effect/Option"
 *
 * const headers = { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" }
 * const traceId = Effect.map(Effect.option(Effect.currentParentSpan), Option.map(({ traceId }) => traceId))
 * await Effect.runPromise(Tracer.incoming(headers)(traceId)) // => Option.some("0af7651916cd43dd8448eb211c80319c")
 * ```
 *
 * @category context
 * @since 0.1.0
 */
export const incoming =
  (headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>) =>
  <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, Exclude<R, Tracer.ParentSpan>> => {
    const parent = HttpTraceContext.fromHeaders(Headers.fromInput(headers))
    return Option.isNone(parent)
      ? (self as Effect.Effect<A, E, Exclude<R, Tracer.ParentSpan>>)
      : Effect.withParentSpan(self, parent.value, { captureStackTrace: false })
  }

/**
 * The W3C headers of the current span, for a request that no instrumentation sees; empty where nothing is traced.
 *
 * **Example** (Headers for a message)
 *
 * ```ts
 * import { Tracer } from "bursar/otel"
 * import * as Effect from "effect/Effect"
 *
 * await Effect.runPromise(Tracer.outgoing) // => {}
 * ```
 *
 * @category context
 * @since 0.1.0
 */
export const outgoing: Effect.Effect<{ readonly traceparent?: string }> = Propagation.outgoing

type SpanOptions = Parameters<Tracer.Tracer["span"]>[0]

const kinds: Readonly<Record<Tracer.SpanKind, Otel.SpanKind>> = {
  internal: Otel.SpanKind.INTERNAL,
  client: Otel.SpanKind.CLIENT,
  server: Otel.SpanKind.SERVER,
  producer: Otel.SpanKind.PRODUCER,
  consumer: Otel.SpanKind.CONSUMER,
}

class SdkSpan implements Tracer.Span {
  readonly _tag = "Span"
  readonly name: string
  readonly kind: Tracer.SpanKind
  readonly parent: Option.Option<Tracer.AnySpan>
  readonly annotations: Context.Context<never>
  readonly links: Array<Tracer.SpanLink>
  readonly spanId: string
  readonly traceId: string
  readonly sampled: boolean
  readonly otel: Otel.Span
  readonly #around: Otel.Context
  readonly #exceptions: boolean
  #inside: Otel.Context | undefined
  readonly #attributes: Map<string, unknown> | undefined
  status: Tracer.SpanStatus

  constructor(
    tracer: Otel.Tracer,
    options: SpanOptions,
    {
      attributes,
      exceptions,
    }: { readonly attributes: Readonly<Record<string, unknown>>; readonly exceptions: boolean },
  ) {
    this.name = options.name
    this.kind = options.kind
    this.annotations = options.annotations
    this.links = options.links
    this.status = { _tag: "Started", startTime: options.startTime }
    this.#exceptions = exceptions
    const place = placeOf(options)
    this.parent = place.parent
    this.#around = place.context
    this.otel = tracer.startSpan(
      options.name,
      {
        kind: kinds[options.kind],
        startTime: hrTime(options.startTime),
        attributes: toAttributes(attributes),
        ...(options.links.length === 0 ? {} : { links: options.links.map(toLink) }),
      },
      place.context,
    )
    const { spanId, traceFlags, traceId } = this.otel.spanContext()
    this.spanId = spanId
    this.traceId = traceId
    this.sampled = (traceFlags & Otel.TraceFlags.SAMPLED) !== 0
    // The SDK's own spans tell what they hold; whatever else stands behind the API need not.
    if (!holdsAttributes(this.otel)) this.#attributes = new Map(Object.entries(attributes))
  }

  get attributes(): ReadonlyMap<string, unknown> {
    return this.#attributes ?? new Map(Object.entries(holdsAttributes(this.otel) ? this.otel.attributes : {}))
  }

  /** OpenTelemetry's context with this span in it; most spans have no child and never need one. */
  get inside(): Otel.Context {
    this.#inside ??= Otel.trace.setSpan(this.#around, this.otel)
    return this.#inside
  }

  attribute(key: string, value: unknown): void {
    if (this.status._tag === "Ended") return
    this.#attributes?.set(key, value)
    if (!this.sampled) return
    const converted = toAttributeValue(value)
    if (converted !== undefined) this.otel.setAttribute(key, converted)
  }

  event(name: string, startTime: bigint, attributes?: Record<string, unknown>): void {
    if (this.status._tag === "Ended" || !this.sampled) return
    this.otel.addEvent(name, attributes === undefined ? undefined : toAttributes(attributes), hrTime(startTime))
  }

  addLinks(links: ReadonlyArray<Tracer.SpanLink>): void {
    if (this.status._tag === "Ended") return
    for (const link of links) this.links.push(link)
    this.otel.addLinks(links.map(toLink))
  }

  end(endTime: bigint, exit: Exit.Exit<unknown, unknown>): void {
    if (this.status._tag === "Ended") return
    const { startTime } = this.status
    this.status = { _tag: "Ended", startTime, endTime, exit }
    // A span of no length at all is taken for a mistake by Jaeger, and shown with a warning.
    const time = hrTime(endTime > startTime ? endTime : startTime + 1n)
    if (exit._tag === "Failure" && this.sampled) this.#fail(exit.cause, time)
    this.otel.end(time)
  }

  #fail(cause: Cause.Cause<unknown>, time: Otel.HrTime): void {
    const first = cause.reasons.find((reason) => reason._tag !== "Interrupt")
    if (first === undefined) {
      if (cause.reasons.length > 0) this.otel.setAttribute("effect.fiber.interrupted", true)
      return
    }
    const message = messageOf(first._tag === "Fail" ? first.error : first.defect)
    this.otel.setStatus({ code: Otel.SpanStatusCode.ERROR, message })
    if (this.#exceptions) for (const error of Cause.prettyErrors(cause)) this.otel.recordException(error, time)
  }
}

const holdsAttributes = (span: Otel.Span): span is Otel.Span & { readonly attributes: Otel.Attributes } =>
  "attributes" in span && typeof span.attributes === "object" && span.attributes !== null

interface Place {
  readonly parent: Option.Option<Tracer.AnySpan>
  /** With the parent in it, or no span at all. */
  readonly context: Otel.Context
}

// In a context that we entered: our span there. A fiber started from a callback inside it has not asked for a parent.
const Entered = Otel.createContextKey("bursar/otel/Entered")

const placeOf = (options: SpanOptions): Place => {
  if (Option.isSome(options.parent)) return { parent: options.parent, context: contextOf(options.parent.value) }
  const active = Otel.context.active()
  const span = options.root ? undefined : Otel.trace.getSpan(active)
  if (span === undefined || span === active.getValue(Entered) || !Otel.trace.isSpanContextValid(span.spanContext())) {
    return { parent: Option.none(), context: Otel.trace.deleteSpan(active) }
  }
  const { spanId, traceFlags, traceId } = span.spanContext()
  const sampled = (traceFlags & Otel.TraceFlags.SAMPLED) !== 0
  return { parent: Option.some(Tracer.externalSpan({ spanId, traceId, sampled })), context: active }
}

// A child inherits the context its parent began in, and with it the baggage; what is active around a fiber's next turn
// may be another fiber's.
const contextOf = (span: Tracer.AnySpan): Otel.Context => {
  if (span instanceof SdkSpan) return span.inside
  return Otel.trace.setSpanContext(Otel.context.active(), spanContextOf(span))
}

const spanContextOf = (span: Tracer.AnySpan): Otel.SpanContext =>
  span instanceof SdkSpan
    ? span.otel.spanContext()
    : {
        traceId: span.traceId,
        spanId: span.spanId,
        traceFlags: span.sampled ? Otel.TraceFlags.SAMPLED : Otel.TraceFlags.NONE,
        isRemote: span._tag === "ExternalSpan",
      }

const toLink = ({ attributes, span }: Tracer.SpanLink): Otel.Link => ({
  context: spanContextOf(span),
  attributes: toAttributes(attributes),
})
