/**
 * Interleavings by seed: a scheduler that runs whichever ready fiber a random number picks, and makes a running one step
 * aside at random operations. Nothing in it waits for a timer or for input, so the same seed is the same run.
 */
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import type * as Scheduler from "effect/Scheduler"

/** Random numbers by seed; neighbouring seeds have nothing in common. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ (seed >>> 13)
  }

  /** From 0 up to 1, without 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }

  /** A whole number from `least` to `most`, both included. */
  between(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1))
  }

  chance(of: number): boolean {
    return this.next() < of
  }

  pick<A>(items: ReadonlyArray<A>): A {
    return items[Math.floor(this.next() * items.length)]!
  }
}

/** More tasks than any run of these needs: one that goes on is endless. */
const enough = 1_000_000

/** How often to look again when no fiber is ready: one may be resumed right after another. */
const patience = 20

const rightAfter = Promise.resolve()

class Shuffling implements Scheduler.Scheduler {
  readonly executionMode = "async"
  readonly #random: Random
  readonly #stepAside: number
  readonly #ready: Array<() => void> = []
  readonly #dispatcher: Scheduler.SchedulerDispatcher = {
    scheduleTask: (task) => void this.#ready.push(task),
    flush: () => {
      while (this.#ready.length > 0) this.#runOne()
    },
  }

  constructor(random: Random, stepAside: number) {
    this.#random = random
    this.#stepAside = stepAside
  }

  shouldYield(): boolean {
    return this.#random.chance(this.#stepAside)
  }

  makeDispatcher(): Scheduler.SchedulerDispatcher {
    return this.#dispatcher
  }

  /** Runs ready fibers, in random order and with what they left to be done right after them, until none is ready. */
  async drain(): Promise<void> {
    for (let tasks = 0, idle = 0; idle < patience; tasks++) {
      if (tasks === enough) throw new Error(`still not at its end after ${enough} tasks`)
      idle = this.#ready.length === 0 ? idle + 1 : 0
      if (idle === 0) this.#runOne()
      await rightAfter
    }
  }

  #runOne(): void {
    const place = Math.floor(this.#random.next() * this.#ready.length)
    const task = this.#ready[place]!
    this.#ready[place] = this.#ready.at(-1)!
    this.#ready.pop()
    task()
  }
}

/** Runs an Effect that waits for nothing but its own fibers; `undefined` when all of them are stuck. */
export const runShuffled = async <A, E>(
  self: Effect.Effect<A, E>,
  random: Random,
): Promise<Exit.Exit<A, E> | undefined> => {
  const scheduler = new Shuffling(random, random.pick([0, 0.02, 0.05, 0.2]))
  const fiber = Effect.runFork(Effect.andThen(Effect.yieldNow, self), { scheduler })
  await scheduler.drain()
  return fiber.pollUnsafe()
}

/** Steps aside so many times, at once: the fiber itself runs only after the last. */
export const ticks = (count: number): Effect.Effect<void> =>
  count === 0
    ? Effect.void
    : Effect.callback(function (resume) {
        const dispatcher = this.makeDispatcher()
        let left = count
        const step = (): void => (--left > 0 ? dispatcher.scheduleTask(step, 0) : resume(Effect.void))
        dispatcher.scheduleTask(step, 0)
      })
