/**
 * Rates of tools: at most so many calls in a window of time, over all runs of the process, or of all processes that share
 * a `RateLimiter` store. A call beyond its rate waits.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as RateLimiter from "effect/persistence/RateLimiter"
import type { Contract } from "./Contract.ts"
import type { ToolFailure } from "./ToolSet.ts"

/** Loaded when a tool has a quota, and not before. */
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

/** Waits until one more call is within the rate; fails, and counts nothing, where that would take too long. */
export const awaitTurn = (tool: string, { quota }: Contract, withinMillis: number): Effect.Effect<void, ToolFailure> =>
  quota === undefined
    ? Effect.void
    : Effect.flatMap(limiter, (limits) => turn(limits, { tool, ...quota }, withinMillis))

const turn = (
  limits: RateLimiter.RateLimiter,
  of: { readonly tool: string; readonly limit: number; readonly windowMillis: number },
  withinMillis: number,
): Effect.Effect<void, ToolFailure> =>
  limits
    .consume({ key: `bursar/tool/${of.tool}`, limit: of.limit, window: of.windowMillis, algorithm: "token-bucket" })
    .pipe(
      Effect.asVoid,
      Effect.catch(({ reason }) => {
        if (reason._tag !== "RateLimitExceeded") return Effect.fail(unreadable)
        const waits = Math.max(1, Math.ceil(Duration.toMillis(reason.retryAfter)))
        return waits >= withinMillis
          ? Effect.fail(exceeded(waits))
          : Effect.andThen(Effect.sleep(waits), turn(limits, of, withinMillis - waits))
      }),
    )

const unreadable: ToolFailure = { code: "EQUOTA", class: "transient", message: "the rate of the tool cannot be read" }

const exceeded = (retryAfterMillis: number): ToolFailure => ({
  code: "EQUOTA",
  class: "transient",
  message: `the tool is used too often: it is free again in ${retryAfterMillis} ms`,
  retryAfterMillis,
})
