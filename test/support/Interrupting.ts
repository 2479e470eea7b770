/**
 * Interrupting a program at a chosen operation, deterministically: a scheduler that counts the operations of all fibers,
 * makes the fiber at the chosen one yield, and strikes before anything else runs.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Scheduler from "effect/Scheduler"

class Interrupting extends Scheduler.MixedScheduler {
  count = 0
  readonly #at: number
  readonly #strike: () => void

  constructor(at: number, strike: () => void) {
    super()
    this.#at = at
    this.#strike = strike
  }

  override shouldYield(fiber: Fiber.Fiber<unknown, unknown>): boolean {
    if (++this.count !== this.#at) return super.shouldYield(fiber)
    queueMicrotask(this.#strike)
    return true
  }
}

/** Runs `self` in a fiber of its own and interrupts it at operation `at`; answers with how many operations there were. */
export const interruptAt = <A, E, R>(self: Effect.Effect<A, E, R>, at: number): Effect.Effect<number, never, R> =>
  Effect.gen(function* () {
    const target: { fiber?: Fiber.Fiber<A, E> } = {}
    const scheduler = new Interrupting(at, () => target.fiber?.interruptUnsafe())
    const fiber = yield* self.pipe(Effect.provideService(Scheduler.Scheduler, scheduler), Effect.forkChild)
    target.fiber = fiber
    yield* Fiber.await(fiber)
    return scheduler.count
  })
