/**
 * Budgets that cannot be overspent: a tree of accounts, each carved out of what its parent has left.
 *
 * An **account** is what one agent may spend, in {@link dimensions}, split into {@link reserves}. Before a call is made
 * its worst case is **held**; afterwards the hold is **settled** with what was really used, **voided** when nothing can
 * have been billed, or **assumed** in full when that cannot be known. A child is **carved** from its parent and
 * **closed** on every exit, and what it did not use is available to the parent again.
 *
 * **The rules.** In each reserve `available = allocated - held - carved - used`, and nothing is held or carved beyond it.
 * Money flows only upward: a hold that is short in `output`, `verify` or `retry` may take the rest from `explore`, never
 * the other way. A bill above its hold is booked in full: from the hold's own reserve, the account's other reserves, the
 * explore of those above, then their senior reserves; what nothing covers is debt, and the next refund pays it. Every
 * operation decides and applies in one synchronous step, over all dimensions or none, and has an id: delivered twice, it is
 * applied once.
 *
 * **The invariants**, at every moment: each reserve balances (I1) and agrees with its open children and pending holds (I2);
 * what the root was granted is what all accounts have available, hold and have used (I3); without over-runs the bills of
 * the tree never exceed the root's grant, and with them by no more than the sum of the over-runs (I4, I5); debt exists only
 * where nothing is left up to the root (I6); a hold is resolved once, an account closed once (I7) and gives back exactly
 * what it did not use (I8).
 *
 * **Example** (Ten dollars, one child, one bill above its hold)
 *
 * ```ts
 * import { Budget } from "bursar"
 * import * as Result from "effect/Result"
 *
 * const ledger = Result.getOrThrow(
 *   Budget.Ledger.openRoot({
 *     id: "root",
 *     name: "root",
 *     grant: { money: 1000 },
 *     reserves: { _tag: "Explicit", output: { money: 200 } },
 *     record: () => {},
 *     nowMillis: () => 0,
 *   }),
 * )
 * // 800 are left to explore with; a child gets 300 of them.
 * Result.getOrThrow(ledger.carve("root", { id: "kid", name: "kid", ask: { _tag: "Exactly", grant: { money: 300 } } }))
 * ledger.reachable("root", "explore").money // => 500
 * // The child holds 250 for a call that is billed 330: 50 come from its own explore, 30 from the root's.
 * const hold = Result.getOrThrow(ledger.hold({ account: "kid", id: "call" }, "explore", { money: 250 }))
 * Result.getOrThrow(ledger.settle(hold, { money: 330 })).short // => ["money"]
 * ledger.reachable("root", "explore").money // => 470
 * // It returns nothing, since it used all it had; the answer's 200 were not touched.
 * Budget.unused(Result.getOrThrow(ledger.close("kid"))).money // => 0
 * ledger.reachable("root", "output").money // => 670
 * Budget.used(ledger.root).money // => 330
 * ```
 *
 * The arithmetic is pure (`Account`, `Cover`, `Reserve`, `Window`, `Carve`); the operations (`Holds`, `Children`, `Life`,
 * `Line`, `Adjust`) apply it to the `Books` of a tree; `Restore` runs them again from their entries; {@link Ledger} is
 * those operations bound to one tree, and this module wraps it for Effects. The room knows nothing of agents, models or
 * the journal.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import type { Amounts, Grant } from "./Dimension.ts"
import type { Hold, Settlement } from "./Books.ts"
import { calls } from "./Holds.ts"
import type { Ledger } from "./Ledger.ts"
import { BudgetError, type Refusal } from "./Refusal.ts"
import type { Reserve } from "./Reserve.ts"

export { available, granted, ownUsed, unused, used } from "./Account.ts"
export type { Account, Fund, State } from "./Account.ts"
export { formatMoney, FromJson, nanoUsdPerUsd, parse } from "./Amount.ts"
export type { Input, Parsed } from "./Amount.ts"
export type { Ask, Carving, EvenCarving, Opening } from "./Carve.ts"
export type { Source } from "./Cover.ts"
export { add, amounts, dimensions, isZero, nonZero, zero } from "./Dimension.ts"
export type { Amounts, Capped, Dimension, Grant } from "./Dimension.ts"
export { Entry } from "./Entry.ts"
export { Ledger } from "./Ledger.ts"
export { defaultLimits } from "./Books.ts"
export type { Hold, HoldRef, Limits, Settlement } from "./Books.ts"
export type { LedgerOptions } from "./Ledger.ts"
export { explain } from "./Explain.ts"
export { coordinator, plan } from "./Plan.ts"
export type { PlannedLevel, PlannedNode } from "./Plan.ts"
export { BudgetError, describe, Refusal } from "./Refusal.ts"
export type { Shortage } from "./Refusal.ts"
export { defaultShares, forAgent, reserves, split, splitCounter, undivided } from "./Reserve.ts"
export type { PerReserve, Plan, Reserve, Shares } from "./Reserve.ts"
export { RestoreFailure } from "./Restore.ts"
export { imbalances, statement, violations } from "./Statement.ts"
export type { Row } from "./Statement.ts"
export { endOf } from "./Window.ts"
export type { Window, WindowPlan } from "./Window.ts"

/**
 * An account of a ledger, ready to be spent from.
 *
 * @category accounts
 * @since 0.1.0
 */
export interface Purse {
  readonly ledger: Ledger
  readonly account: string
}

/**
 * How a call is booked once it has ended.
 *
 * @category spending
 * @since 0.1.0
 */
export type Booking =
  | { readonly _tag: "Settle"; readonly actual: Grant }
  | { readonly _tag: "Void" }
  | { readonly _tag: "Assume" }

/**
 * One call that costs something: its worst case, the call itself, and how it is booked afterwards.
 *
 * @category spending
 * @since 0.1.0
 */
export interface Attempt<A, E = never, R = never> {
  /** Nobody knows the price of the call: money is not held, and the statement says that it is not known. */
  readonly unpriced?: boolean | undefined
  /** The worst case, possibly shrunk to what can be reached; a dimension left out of `reachable` is uncapped. */
  readonly hold: (reachable: Grant) => Grant
  readonly use: (hold: Hold) => Effect.Effect<A, E, R>
  book(exit: Exit.Exit<A, E>, hold: Hold): Booking
}

/**
 * A call's result together with how it was booked; `settlement` is absent when the hold was voided or assumed.
 *
 * @category spending
 * @since 0.1.0
 */
export interface Spent<A, E> {
  readonly exit: Exit.Exit<A, E>
  readonly hold: Hold
  readonly booking: Booking["_tag"]
  readonly settlement: Settlement | undefined
}

/**
 * Holds, runs, books: the only way anything in Bursar spends.
 *
 * The hold is placed before `use` starts and resolved exactly once on every exit. `use` alone can be interrupted; then
 * the hold is booked by `book` all the same, and the interruption takes effect right after. A `book` that throws, or
 * answers with a bill that cannot be, has the hold assumed.
 *
 * **Fails with** `BudgetError` when the hold is refused, or its id has paid for a call before; `use` has not started then.
 * A failure of `use` is in `exit`.
 *
 * @category spending
 * @since 0.1.0
 */
export const spend = <A, E, R>(
  purse: Purse,
  place: { readonly id: string; readonly reserve: Reserve },
  attempt: Attempt<A, E, R>,
): Effect.Effect<Spent<A, E>, BudgetError, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.suspend(() => {
      const { ledger, account } = purse
      const { id, reserve } = place
      const placed = ledger.hold({ account, id }, reserve, attempt.hold(ledger.reachable(account, reserve)), attempt)
      if (Result.isFailure(placed)) return Effect.fail(errorOf(purse, "hold", placed.failure))
      const hold = placed.success
      // An id that was used before is answered with its hold as it is now, and that one pays for no second call.
      const again = spentAlready(hold)
      if (again !== undefined) return Effect.fail(errorOf(purse, "hold", again))
      calls.add(hold)
      // Even a `use` or `book` that throws must not leave the hold behind.
      return restore(Effect.suspend(() => attempt.use(hold))).pipe(
        Effect.exit,
        Effect.flatMap((exit) => {
          const booking = Result.try(() => attempt.book(exit, hold))
          const booked = resolve(
            ledger,
            hold,
            Result.getOrElse(booking, () => assume),
          )
          return Result.isFailure(booking) ? Effect.die(booking.failure) : Effect.succeed({ exit, hold, ...booked })
        }),
      )
    }),
  )

const spentAlready = (hold: Hold): Refusal | undefined => {
  if (hold.state !== "Pending") return { _tag: "AlreadyResolved", id: hold.id, state: hold.state }
  return calls.has(hold) ? { _tag: "IdConflict", id: hold.id } : undefined
}

const assume: Booking = { _tag: "Assume" }

const resolve = (
  ledger: Ledger,
  hold: Hold,
  booking: Booking,
): { readonly booking: Booking["_tag"]; readonly settlement: Settlement | undefined } => {
  switch (booking?._tag) {
    case "Settle": {
      const settled = ledger.settle(hold, booking.actual)
      if (Result.isSuccess(settled)) return { booking: "Settle", settlement: settled.success }
      // Swept meanwhile: the hold was assumed, and the bill that is known now corrects it where the books allow.
      if (isSwept(settled.failure)) {
        ledger.adjust(hold, booking.actual)
        return { booking: "Settle", settlement: undefined }
      }
      // A bill that is not a natural number tells nothing: the hold is booked instead.
      if (settled.failure._tag !== "InvalidAmount") throw broken(settled.failure)
      return resolve(ledger, hold, assume)
    }
    case "Void": {
      const voided = ledger.void(hold)
      if (Result.isFailure(voided) && !isSwept(voided.failure)) throw broken(voided.failure)
      return { booking: "Void", settlement: undefined }
    }
    // Nor does a booking of no known kind.
    default: {
      const assumed = ledger.assume(hold)
      if (Result.isFailure(assumed) && !isSwept(assumed.failure)) throw broken(assumed.failure)
      return { booking: "Assume", settlement: undefined }
    }
  }
}

/** The account was swept while the call was still running. */
const isSwept = (refusal: Refusal): boolean => refusal._tag === "AlreadyResolved" && refusal.state === "Assumed"

/** A hold that this function placed cannot be refused its resolution: that would be a broken law. */
const broken = (refusal: Refusal): Error => new Error(`a hold could not be resolved: ${refusal._tag}`)

/**
 * Waits until more of what the parent has left is in the account's explore: as much as `need`, at least `least`. While it
 * waits the account has nothing free and holds nothing; interrupting it leaves the line.
 *
 * **Fails with** `BudgetError` at once when all that open siblings could still return would not cover `least`, and when
 * the account is frozen meanwhile.
 *
 * @category spending
 * @since 0.1.0
 */
export const waitFor = (
  purse: Purse,
  wanted: { readonly need: Grant; readonly least: Grant },
): Effect.Effect<Amounts, BudgetError> =>
  Effect.callback((resume) => {
    const { ledger, account } = purse
    ledger.wait(account, wanted, (ended) => {
      const answer = Result.mapError(ended, (refusal) => errorOf(purse, "wait", refusal))
      // Not at once: the ledger is still inside the operation that ended the wait, and resuming runs the waiting fiber.
      queueMicrotask(() => resume(Effect.fromResult(answer)))
    })
    return Effect.sync(() => ledger.leaveLine(account))
  })

/** A refusal as the failure of an Effect, naming the account by its path. */
export const errorOf = (purse: Purse, operation: string, reason: Refusal): BudgetError =>
  new BudgetError({ operation, account: purse.ledger.account(purse.account).path, reason })

/**
 * A clock for a ledger: absolute milliseconds that only ever go forward.
 *
 * @category deadlines
 * @since 0.1.0
 */
export const monotonicMillis: Effect.Effect<() => number> = Clock.clockWith((clock) =>
  Effect.sync(() => {
    const startMillis = clock.currentTimeMillisUnsafe()
    const startNanos = clock.monotonicTimeNanosUnsafe()
    return () => startMillis + Number((clock.monotonicTimeNanosUnsafe() - startNanos) / 1_000_000n)
  }),
)
