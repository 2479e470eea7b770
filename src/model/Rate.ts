/**
 * Rates: at most so many of something in a window of time, over all runs of the process, or of all processes that share a
 * `RateLimiter` store. It tells how long to wait; waiting, and what that costs, is the caller's.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as RateLimiter from "effect/persistence/RateLimiter"

/**
 * So many of what is called `key` in a window.
 *
 * **Units**: milliseconds of `windowMillis`.
 */
export interface Rate {
  readonly key: string
  readonly limit: number
  readonly windowMillis: number
}

/** The store of the rates cannot be read. */
export const unreadable = { _tag: "RateUnreadable" } as const

/** Loaded when something has a rate, and not before. */
const module = Effect.promise(() => import("effect/persistence/RateLimiter"))

let ofProcess: RateLimiter.RateLimiter | undefined

/** The limiter in context, else one that the whole process shares. */
const limiter: Effect.Effect<RateLimiter.RateLimiter> = Effect.gen(function* () {
  const limits = yield* module
  const provided = yield* Effect.serviceOption(limits.RateLimiter)
  if (Option.isSome(provided)) return provided.value
  const layer = Layer.provide(limits.layer, limits.layerStoreMemory)
  return (ofProcess ??= yield* Effect.provide(limits.RateLimiter, layer))
})

/**
 * Takes `amount` of a rate and answers with 0; or takes nothing, and answers with the milliseconds after which to ask
 * again. More than the whole rate lets through is let through once the whole rate is free.
 *
 * **Fails with** {@link unreadable} when the store cannot be read.
 */
export const take = (rate: Rate, amount = 1): Effect.Effect<number, typeof unreadable> =>
  Effect.flatMap(limiter, (limits) =>
    limits.consume({
      key: rate.key,
      limit: rate.limit,
      window: rate.windowMillis,
      tokens: Math.min(amount, rate.limit),
      algorithm: "token-bucket",
    }),
  ).pipe(
    Effect.as(0),
    Effect.catch(({ reason }) =>
      reason._tag === "RateLimitExceeded"
        ? Effect.succeed(Math.max(1, Math.ceil(Duration.toMillis(reason.retryAfter))))
        : Effect.fail(unreadable),
    ),
  )
