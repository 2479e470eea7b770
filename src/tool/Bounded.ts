/**
 * Running what may not end by itself. Work that is out of time, or that nobody wants any more, is interrupted: fibers
 * stop, promises see their `AbortSignal`, processes get their signals. It has a while to end in; if it ignores even that
 * it is left behind, and whatever it brings later is brought to nobody.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type { Restore } from "./Setting.ts"

/** How long interrupted work may take to end: more than a process group gets to react to a signal. */
const graceMillis = 10_000

/**
 * What bounds some work.
 *
 * **Units**: `millis` of passing time; `leftMillis` is asked anew when a time is up, since a paused account's stands still.
 */
export interface Bounds<E> {
  readonly millis?: number
  readonly leftMillis?: () => number | undefined
  /** What it ends with when its time is over. */
  readonly late: E
  readonly restore: Restore
}

/**
 * The exit of some work within its bounds: its own, `late` if its time was over first, or an interruption if the caller was
 * interrupted. It is started where nothing can interrupt it, and lets the interruption of the caller in through `restore`.
 */
export const within = <A, E, R>(
  work: Effect.Effect<A, E, R>,
  of: Bounds<E>,
): Effect.Effect<Exit.Exit<A, E>, never, R> =>
  Effect.flatMap(inBackground(work), (fiber) => {
    const done = fiber.pollUnsafe()
    return done === undefined ? waitFor(fiber, of) : Effect.succeed(done)
  })

const waitFor = <A, E>(fiber: Fiber.Fiber<A, E>, of: Bounds<E>): Effect.Effect<Exit.Exit<A, E>> =>
  Effect.gen(function* (): Effect.fn.Return<Exit.Exit<A, E>> {
    const left = () => of.leftMillis?.() ?? Infinity
    let own = of.millis ?? Infinity
    for (;;) {
      const wait = Math.min(own, left())
      const waited = yield* Effect.exit(awaitFor(fiber, wait, of.restore))
      if (Exit.isSuccess(waited) && Option.isSome(waited.value)) return waited.value.value
      own -= wait
      if (Exit.isSuccess(waited) && own > 0 && left() > 0) continue
      yield* end(fiber)
      return Exit.isSuccess(waited) ? Exit.fail(of.late) : Exit.failCause(waited.cause)
    }
  })

/** One alarm, and no fiber that waits: what runs here may be a hundred thousand calls at once. */
const awaitFor = <A, E>(
  fiber: Fiber.Fiber<A, E>,
  millis: number,
  restore: Restore,
): Effect.Effect<Option.Option<Exit.Exit<A, E>>> =>
  Number.isFinite(millis)
    ? Effect.flatMap(Effect.forkDetach(Effect.sleep(millis), { startImmediately: true }), (alarm) =>
        Effect.onExit(restore(firstOf(fiber, alarm)), () => Effect.sync(() => alarm.interruptUnsafe())),
      )
    : restore(Effect.map(Fiber.await(fiber), Option.some))

const firstOf = <A, E>(
  fiber: Fiber.Fiber<A, E>,
  alarm: Fiber.Fiber<void>,
): Effect.Effect<Option.Option<Exit.Exit<A, E>>> =>
  Effect.callback((resume) => {
    const forget = [
      fiber.addObserver((exit) => resume(Effect.succeed(Option.some(exit)))),
      alarm.addObserver(() => resume(Effect.succeed(Option.none()))),
    ]
    return Effect.sync(() => {
      for (const one of forget) one()
    })
  })

/** Interrupts, and waits for the end no longer than the grace. */
const end = (fiber: Fiber.Fiber<unknown, unknown>): Effect.Effect<void> =>
  Effect.suspend(() => {
    fiber.interruptUnsafe()
    return Effect.flatMap(inBackground(Effect.timeoutOption(Fiber.await(fiber), graceMillis)), Fiber.await)
  })

/** In a fiber of its own, which can be interrupted and which only this module ends. */
const inBackground = <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.forkDetach(work, { startImmediately: true })
