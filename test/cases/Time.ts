/**
 * How time passes in a case.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"

/** The longest a case may take in virtual time. */
export const curtainMillis = Duration.toMillis("7 days")

/** One step of the clock where requests leave the process: short enough to miss no time that a case names. */
const stepMillis = 10

/** Lets time pass, and none of it while a request is under way. */
export const pass = (millis: number, isQuiet: (() => boolean) | undefined): Effect.Effect<void> =>
  Effect.gen(function* () {
    if (isQuiet === undefined) return yield* TestClock.adjust(millis)
    for (let left = millis; left > 0; left -= stepMillis) {
      yield* turnOfNode
      while (!isQuiet()) yield* turnOfNode
      yield* TestClock.adjust(Math.min(left, stepMillis))
    }
  })

const turnOfNode = Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))
