/**
 * Starting a span at once, outside of Effect: listeners of the journal have no fiber of their own.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type * as Fiber from "effect/Fiber"
import * as LogLevel from "effect/LogLevel"
import * as Option from "effect/Option"
import * as References from "effect/References"
import * as Tracer from "effect/Tracer"
import * as Capture from "./Capture.ts"
import { CurrentRoom, type Room } from "./Room.ts"

/** What it takes to start spans and to write on them, read from a fiber. */
export interface Source {
  readonly tracer: StartingTracer
  readonly clock: Clock.Clock
  readonly annotations: Readonly<Record<string, unknown>>
  readonly links: ReadonlyArray<Tracer.SpanLink>
  /** False where spans of the current level are not looked at. */
  readonly sampled: boolean
  readonly content: Capture.Options | undefined
  readonly room: Room | undefined
}

/** A tracer that takes the attributes of a span at its start: then a sampler can look at them, and it costs less. */
export interface StartingTracer extends Tracer.Tracer {
  readonly start?: (
    options: Parameters<Tracer.Tracer["span"]>[0],
    attributes: Readonly<Record<string, unknown>>,
  ) => Tracer.Span
}

/** Whether a tracer is provided and switched on. */
export const isTraced = ({ cache }: Fiber.Fiber<unknown, unknown>): boolean =>
  cache.tracerEnabled && cache.tracer !== undefined

/** `undefined` where no tracer is provided, or it is switched off. */
export const sourceOf = (fiber: Fiber.Fiber<unknown, unknown>): Source | undefined => {
  const { tracer } = fiber.cache
  if (tracer === undefined || !isTraced(fiber)) return undefined
  return {
    tracer,
    clock: fiber.getRef(Clock.Clock),
    annotations: fiber.getRef(References.TracerSpanAnnotations),
    links: fiber.getRef(References.TracerSpanLinks),
    sampled: !LogLevel.isGreaterThan(
      fiber.getRef(References.MinimumTraceLevel),
      fiber.getRef(References.CurrentTraceLevel),
    ),
    content: fiber.getRef(Capture.Content),
    room: fiber.getRef(CurrentRoom),
  }
}

/** The span that a new one belongs under: the current one, but for those that pass nothing on. */
export const parentOf = (fiber: Fiber.Fiber<unknown, unknown>): Tracer.AnySpan | undefined => {
  let span = fiber.cache.span
  while (span?._tag === "Span" && Context.get(span.annotations, Tracer.DisablePropagation)) {
    span = Option.getOrUndefined(span.parent)
  }
  return span
}

/** Starts a span; without a parent it is the root of a trace. */
export const start = (
  source: Source,
  options: {
    readonly name: string
    readonly kind: Tracer.SpanKind
    readonly parent: Tracer.AnySpan | undefined
    readonly links: ReadonlyArray<Tracer.SpanLink>
    readonly attributes: Readonly<Record<string, unknown>>
    /** True for a trace of its own, whatever the tracer takes for current. */
    readonly root?: boolean
  },
): Tracer.Span => {
  const { attributes, parent } = options
  const { tracer } = source
  const asked = {
    name: options.name,
    kind: options.kind,
    parent: parent === undefined ? Option.none() : Option.some(parent),
    annotations: Context.empty(),
    links: source.links.length === 0 && options.links.length === 0 ? [] : [...source.links, ...options.links],
    startTime: source.clock.currentTimeNanosUnsafe(),
    root: options.root ?? false,
    sampled: parent?.sampled !== false && source.sampled,
  }
  const span = tracer.start === undefined ? tracer.span(asked) : tracer.start(asked, attributes)
  for (const key in source.annotations) span.attribute(key, source.annotations[key])
  if (tracer.start !== undefined) return span
  for (const key in attributes) if (attributes[key] !== undefined) span.attribute(key, attributes[key])
  return span
}
