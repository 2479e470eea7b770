/**
 * Names for runs.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"

/** The time and a few random letters: sorts by time, and two runs never share one by accident. */
export const make: Effect.Effect<string> = Effect.gen(function* () {
  const now = new Date(yield* Clock.currentTimeMillis).toISOString()
  const random = yield* Random.nextIntBetween(0, 36 ** 6)
  return `${now.slice(0, 19).replace(/[-:]/g, "").replace("T", "-")}-${random.toString(36).padStart(6, "0")}`
})
