/**
 * The trace on its way out of the process and into foreign code: W3C headers, and the context that instrumentations of
 * others look into.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Tracer from "effect/Tracer"
import { isTraced, parentOf } from "./Start.ts"
import { headersOf } from "./Writer.ts"

/** The W3C context of the current span, for a request or a process that starts there; nothing where nothing is traced. */
export const outgoing: Effect.Effect<{ readonly traceparent?: string }> = Effect.withFiber((fiber) => {
  const span = isTraced(fiber) ? parentOf(fiber) : undefined
  return Effect.succeed(span === undefined ? {} : headersOf(span))
})

/** Runs synchronous code where instrumentations of others find `span`, or just runs it where there are none. */
export type Enter = <A>(span: Tracer.AnySpan | undefined, run: () => A) => A

/** How foreign code is entered; provided by whoever brings the instrumentations. */
export const Entering = Context.Reference<Enter>("bursar/telemetry/Entering", {
  defaultValue: () => (_span, run) => run(),
})

/** A function that runs code with the current span to be found by instrumentations of others, such as those of HTTP clients. */
export const enter: Effect.Effect<<A>(run: () => A) => A> = Effect.withFiber((fiber) => {
  const entering = fiber.getRef(Entering)
  const { span } = fiber.cache
  return Effect.succeed((run) => entering(span, run))
})
