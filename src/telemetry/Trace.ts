/**
 * Spans for what Bursar does, on whatever Effect tracer is provided. With none, no span object is made.
 *
 * A stop is a value, so an Effect that succeeds may still stand for a failed run: `fail` marks the span as an error with
 * a type and a fixed sentence, never with the text of a provider or a user.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as HttpTraceContext from "effect/http/HttpTraceContext"
import * as Schema from "effect/Schema"
import * as Tracer from "effect/Tracer"
import * as Names from "./Names.ts"

/**
 * A span to write to; one that ignores everything when tracing is off.
 *
 * @category spans
 * @since 0.1.0
 */
export interface TraceSpan {
  /** False where nothing that is written here is kept. */
  readonly isOn: boolean
  readonly attributes: (attributes: Readonly<Record<string, unknown>>) => void
  readonly event: (name: string, attributes?: Readonly<Record<string, unknown>>) => void
  /** Marks the span as failed although the Effect inside it succeeds. */
  readonly fail: (errorType: string, sentence: string) => void
  /** W3C context of this span, for a request made inside it. */
  readonly headers: Readonly<Record<string, string>>
}

/** What a span that stands for a failed run or call ends with. */
export class SpanFailure extends Schema.TaggedError<SpanFailure>()("SpanFailure", { sentence: Schema.String }) {
  override get message(): string {
    return this.sentence
  }
}

/**
 * The facts that stand on every span of an agent; set around its run.
 *
 * @category spans
 * @since 0.1.0
 */
export const Facts = Context.Reference<Readonly<Record<string, unknown>>>("bursar/telemetry/Facts", {
  defaultValue: () => ({}),
})

const off: TraceSpan = { isOn: false, attributes: () => {}, event: () => {}, fail: () => {}, headers: {} }

/** Whether a tracer is provided and switched on in this fiber. */
const isTracing = (fiber: Fiber.Fiber<unknown, unknown>): boolean =>
  fiber.cache.tracerEnabled && fiber.context.mapUnsafe.has(Tracer.TracerKey)

/**
 * Runs `use` inside a span of that name, with the facts of the current agent and `attributes` set at its start.
 *
 * @category spans
 * @since 0.1.0
 */
export const span = <A, E, R>(
  name: string,
  options: {
    readonly kind?: Tracer.SpanKind
    /** Computed only where there is a span to have them. */
    readonly attributes?: () => Readonly<Record<string, unknown>>
  },
  use: (span: TraceSpan) => Effect.Effect<A, E, R>,
): Effect.Effect<A, E, Exclude<R, Tracer.ParentSpan>> =>
  Effect.withFiber((fiber) => {
    if (!isTracing(fiber)) return use(off) as Effect.Effect<A, E, Exclude<R, Tracer.ParentSpan>>
    const clock = fiber.getRef(Clock.Clock)
    const attributes = { ...fiber.getRef(Facts), [Names.schema]: Names.schemaVersion, ...options.attributes?.() }
    return Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(Effect.makeSpan(name, { kind: options.kind ?? "internal", attributes }), (made) => {
        const writer = write(made, clock)
        return restore(Effect.withParentSpan(use(writer), made, { captureStackTrace: false })).pipe(
          Effect.onExit((exit) =>
            Effect.sync(() => made.end(clock.currentTimeNanosUnsafe(), writer.failure ?? withoutText(exit, made))),
          ),
        )
      }),
    )
  })

interface Writer extends TraceSpan {
  failure: Exit.Exit<never, SpanFailure> | undefined
}

const write = (made: Tracer.Span, clock: Clock.Clock): Writer => {
  const writer: Writer = {
    isOn: true,
    failure: undefined,
    attributes: (attributes) => {
      for (const [key, value] of Object.entries(attributes)) if (value !== undefined) made.attribute(key, value)
    },
    event: (name, attributes) => made.event(name, clock.currentTimeNanosUnsafe(), { ...attributes }),
    fail: (errorType, sentence) => {
      made.attribute(Names.errorType, errorType)
      writer.failure = Exit.fail(new SpanFailure({ sentence }))
    },
    headers: HttpTraceContext.toHeaders(made),
  }
  return writer
}

/** Values and failures may hold what a user or a provider wrote: the span gets the tag of a failure and no more. */
const withoutText = <A, E>(exit: Exit.Exit<A, E>, made: Tracer.Span): Exit.Exit<unknown, unknown> => {
  if (Exit.isSuccess(exit)) return Exit.void
  const failed = exit.cause.reasons.find((reason) => reason._tag !== "Interrupt")
  if (failed === undefined) return exit
  const error: unknown = failed._tag === "Fail" ? failed.error : failed.defect
  made.attribute(Names.errorType, tagOf(error))
  return Exit.fail(new SpanFailure({ sentence: `Ended by ${tagOf(error)}.` }))
}

const tagOf = (error: unknown): string => {
  if (typeof error !== "object" || error === null) return typeof error
  if ("_tag" in error && typeof error._tag === "string") return error._tag
  return error instanceof Error ? error.name : "an unknown failure"
}

/** An instant on the current span, without a span of its own. */
export const event = (name: string, attributes?: Readonly<Record<string, unknown>>): Effect.Effect<void> =>
  Effect.withFiber((fiber) => {
    const current = fiber.cache.span
    if (isTracing(fiber) && current?._tag === "Span") {
      current.event(name, fiber.getRef(Clock.Clock).currentTimeNanosUnsafe(), { ...attributes })
    }
    return Effect.void
  })
