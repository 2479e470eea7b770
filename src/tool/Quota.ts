/**
 * Rates of tools: at most so many calls in a window of time, over all runs of the process, or of all processes that share
 * a `RateLimiter` store. A call beyond its rate waits.
 */
import * as Effect from "effect/Effect"
import * as Rate from "../model/Rate.ts"
import type { Contract } from "./Contract.ts"
import type { ToolFailure } from "./ToolSet.ts"

/** Waits until one more call is within the rate; fails, and counts nothing, where that would take too long. */
export const awaitTurn = (tool: string, { quota }: Contract, withinMillis: number): Effect.Effect<void, ToolFailure> =>
  quota === undefined ? Effect.void : turn({ key: `bursar/tool/${tool}`, ...quota }, withinMillis)

const turn = (rate: Rate.Rate, withinMillis: number): Effect.Effect<void, ToolFailure> =>
  Rate.take(rate).pipe(
    Effect.mapError(() => unreadable),
    Effect.flatMap((waits) => {
      if (waits === 0) return Effect.void
      return waits >= withinMillis
        ? Effect.fail(exceeded(waits))
        : Effect.andThen(Effect.sleep(waits), turn(rate, withinMillis - waits))
    }),
  )

const unreadable: ToolFailure = { code: "EQUOTA", class: "transient", message: "the rate of the tool cannot be read" }

const exceeded = (retryAfterMillis: number): ToolFailure => ({
  code: "EQUOTA",
  class: "transient",
  message: `the tool is used too often: it is free again in ${retryAfterMillis} ms`,
  retryAfterMillis,
})
