/**
 * The tree of accounts: a mutable map of immutable records, and the operations that change it.
 *
 * Each operation is synchronous: it decides and applies in one go, so no other fiber can come between the check and the
 * debit. A refused operation changes nothing. A hold touches one account, carve and close two, a cover the path to the
 * root, a freeze the subtree; the cost does not grow with the number of open accounts.
 *
 * Ids are made by the caller. The same id with the same content is answered as before and applied once; with other
 * content it is refused with `IdConflict`; a refused id stays refused. Ids live as long as their account.
 */
import * as Result from "effect/Result"
import * as Accounts from "./Account.ts"
import type { Account } from "./Account.ts"
import { Books, type Hold, type HoldRef, type Limits, refuse, type Settlement } from "./Books.ts"
import type { Carving, EvenCarving, Opening } from "./Carve.ts"
import { dimensions, type Dimension, type Grant, invalidAmount, isNatural } from "./Dimension.ts"
import type { Entry } from "./Entry.ts"
import type { About } from "./Holds.ts"
import type * as Line from "./Line.ts"
import { operations } from "./Operations.ts"
import type { Refusal } from "./Refusal.ts"
import type { Reserve } from "./Reserve.ts"
import { pendingIn, restore, type RestoreFailure } from "./Restore.ts"
import { endOf } from "./Window.ts"

/** @since 0.1.0 */
export class Ledger {
  readonly #books: Books
  readonly #root: string
  readonly #named = new Map<string, number>()

  private constructor(books: Books, root: string) {
    this.#books = books
    this.#root = root
  }

  /**
   * Opens a tree with one account.
   *
   * **Fails with** `InvalidAmount` for a bad amount, time or limit, `Insufficient` when the grant does not cover one
   * answer, `DeadlinePassed` when there is no time for it.
   */
  static openRoot(options: LedgerOptions & Opening & { readonly grant: Grant }): Result.Result<Ledger, Refusal> {
    for (const [name, limit] of Object.entries(options.limits ?? {})) {
      if (!isNatural(limit)) return refuse(invalidAmount(`limits.${name}`, limit, "give a whole number, 0 or more"))
    }
    const books = new Books(options)
    return Result.map(operations.openRoot(books, options), ({ id }) => new Ledger(books, id))
  }

  /**
   * The tree as it was when the last of `entries` was written, in their order and from the first one on: accounts,
   * holds (also those still pending), debts, windows, answers to ids, and the numbers of {@link freshId}. From then on
   * it is like any other, with the limits it was opened with.
   *
   * Written to `record` is only what is due before anything else can happen: what is missing of the last operation, if
   * the journal ends in the middle of it, and that those who stood in line have left it, since nobody waits any more.
   * With it the journal can be restored again.
   *
   * A hold that is still pending may have paid for a call: resolve it. It pays for no other one.
   *
   * **Fails with** `RestoreFailure` at the first entry that the books contradict; see `Restore` for what is not found.
   *
   * **Example** (Going on with what a journal says)
   *
   * ```ts
   * import { Budget } from "bursar"
   * import * as Result from "effect/Result"
   *
   * const journal: Array<{ entry: Budget.Entry }> = []
   * const options = { record: (entry: Budget.Entry) => void journal.push({ entry }), nowMillis: () => 0 }
   * const before = Result.getOrThrow(Budget.Ledger.openRoot({ id: "root", name: "root", grant: { steps: 3 }, ...options }))
   * before.hold({ account: "root", id: "call" }, "explore", { steps: 2 })
   *
   * const after = Result.getOrThrow(Budget.Ledger.restore([...journal], options))
   * for (const hold of after.pendingHolds()) after.assume(hold)
   * after.reachable("root", "explore") // => { steps: 1 }
   * journal.map(({ entry }) => entry._tag) // => ["Opened", "Held", "Assumed"]
   * ```
   */
  static restore(
    entries: ReadonlyArray<{ readonly entry: Entry }>,
    options: Omit<LedgerOptions, "limits">,
  ): Result.Result<Ledger, RestoreFailure> {
    return Result.map(restore(entries, options), ({ books, root, numbers }) => {
      const ledger = new Ledger(books, root)
      for (const [name, number] of numbers) ledger.#named.set(name, number)
      return ledger
    })
  }

  // --- queries

  get root(): Account {
    return this.account(this.#root)
  }

  /** The account with that id; an unknown id is a mistake of the host, not a refusal. */
  account(id: string): Account {
    return this.#books.account(id)
  }

  /** Every account ever opened, parents before their children. */
  get accounts(): ReadonlyArray<Account> {
    return this.#books.accounts
  }

  /** The open children of an account. */
  childrenOf(id: string): ReadonlyArray<Account> {
    return this.#books.childrenOf(id)
  }

  /** The holds that are still pending: of an account, or of the whole tree. */
  pendingHolds(id?: string): ReadonlyArray<Hold> {
    if (id === undefined) return pendingIn(this.#books)
    return this.#books.holdsOf(id).filter((hold) => hold.state === "Pending")
  }

  /** What a hold in `reserve` could take at most now; a dimension left out is uncapped. */
  reachable(id: string, reserve: Reserve): Grant {
    const self = this.account(id)
    const most: { [D in Dimension]?: number } = {}
    for (const d of dimensions) {
      const limit = Accounts.reachable(self, reserve, d)
      if (limit !== undefined) most[d] = limit
    }
    return most
  }

  /** Milliseconds until `reserve` may no longer dispatch; `undefined` without a deadline. */
  leftMillis(id: string, reserve: Reserve): number | undefined {
    const { window, pausedAtMillis } = this.account(id)
    const end = endOf(window, reserve)
    return end === undefined ? undefined : Math.max(0, end - (pausedAtMillis ?? this.#books.nowMillis()))
  }

  // --- holds

  /**
   * Sets amounts aside for one call before it is made.
   *
   * **Fails with** `Insufficient` (every short dimension), `NotOpen`, `DeadlinePassed`, `IdConflict`, `InvalidAmount`.
   */
  hold(ref: HoldRef, reserve: Reserve, wanted: Grant, about?: About): Result.Result<Hold, Refusal> {
    return operations.hold(this.#books, ref, reserve, wanted, about)
  }

  /**
   * Books what a call really used. A bill above the hold is booked in full and covered along the path to the root; what
   * nothing covers is debt.
   *
   * **Fails with** `AlreadyResolved`, `UnknownId`, `InvalidAmount`.
   */
  settle(ref: HoldRef, actual: Grant): Result.Result<Settlement, Refusal> {
    return operations.settle(this.#books, ref, actual)
  }

  /**
   * Gives a hold back whole: the call was certainly never billed.
   *
   * **Fails with** `AlreadyResolved`, `UnknownId`.
   */
  void(ref: HoldRef): Result.Result<Hold, Refusal> {
    return operations.release(this.#books, ref, "Voided")
  }

  /**
   * Books a hold whole: what the call used cannot be known.
   *
   * **Fails with** `AlreadyResolved`, `UnknownId`.
   */
  assume(ref: HoldRef): Result.Result<Hold, Refusal> {
    return operations.release(this.#books, ref, "Assumed")
  }

  /**
   * Adds to a pending hold; refused, it stays as it was.
   *
   * **Fails with** `Insufficient`, `NotOpen`, `AlreadyResolved`, `UnknownId`, `InvalidAmount`, `IdConflict`.
   */
  extendHold(ref: HoldRef, extra: Grant, id?: string): Result.Result<Hold, Refusal> {
    return operations.extendHold(this.#books, ref, extra, id)
  }

  /**
   * Corrects an assumed hold once its bill is known: what was assumed too much is free again, what was assumed too
   * little is covered like an over-run. On a closed account it lands on the nearest open one above.
   *
   * **Fails with** `AlreadyResolved` (also the second time with another bill), `UnknownId`, `InvalidAmount`.
   */
  adjust(ref: HoldRef, actual: Grant): Result.Result<Hold, Refusal> {
    return operations.adjust(this.#books, ref, actual)
  }

  // --- children

  /**
   * Carves a child out of what the parent has left.
   *
   * **Fails with** `Insufficient` (of the parent, or below the child's minimum), `NotOpen`, `TooDeep`,
   * `TooManyChildren`, `DeadlinePassed`, `IdConflict`, `InvalidAmount`.
   */
  carve(parentId: string, carving: Carving): Result.Result<Account, Refusal> {
    return operations.carve(this.#books, parentId, carving)
  }

  /**
   * Carves a batch in equal parts: the longest prefix for which every minimum fits an equal share, rounded down, of
   * what the reserve has left after the charges. The rest is refused before it spends anything, for its own minimum or
   * for one before it in the batch.
   */
  carveAll(
    parentId: string,
    batch: ReadonlyArray<EvenCarving>,
    reserve: Reserve = "explore",
  ): ReadonlyArray<Result.Result<Account, Refusal>> {
    return operations.carveAll(this.#books, parentId, batch, reserve)
  }

  /**
   * Ends an account and gives what it did not use back to the reserve that funded it.
   *
   * Closing a closed account again answers the same and changes nothing.
   *
   * **Fails with** `NotQuiescent` while a hold is pending or a child open.
   */
  close(id: string): Result.Result<Account, Refusal> {
    return operations.close(this.#books, id)
  }

  /**
   * Gives an open child more of what the reserve that funds it has left in its parent; it goes into the child's explore.
   *
   * **Fails with** `Insufficient`, `NotOpen`, `InvalidAmount`, `IdConflict`.
   */
  topUp(child: string, wanted: Grant, id?: string): Result.Result<Account, Refusal> {
    return operations.topUp(this.#books, child, wanted, id)
  }

  /** Takes back part of what is free in a child's explore. **Fails with** the same as {@link topUp}. */
  reclaim(child: string, wanted: Grant, id?: string): Result.Result<Account, Refusal> {
    return operations.reclaim(this.#books, child, wanted, id)
  }

  /**
   * Gives back what of a child's explore is free and stands in line at its parent until `least` of `need` fits; see
   * `Line`. `onEnd` is called once, at once or later, with what was added or with why it was refused; it is still inside
   * the operation that ended the wait, so it must not start another one.
   */
  wait(child: string, wanted: Line.Need, onEnd: (ended: Line.Ended) => void): void {
    operations.wait(this.#books, child, wanted, onEnd)
  }

  /** Leaves the line; the wait ends refused. */
  leaveLine(child: string): void {
    operations.leave(this.#books, child, { _tag: "DeadlinePassed", reserve: "explore", leftMillis: 0, neededMillis: 1 })
  }

  /** Whether a child stands in line at its parent. */
  isWaiting(child: string): boolean {
    return this.#books.isWaiting(child)
  }

  /**
   * Ends an account and everything below it that nobody looks after any more: freezes, books pending holds whole, closes
   * bottom up. A bill that becomes known later still corrects its hold.
   */
  sweep(id: string, cause: string): void {
    operations.sweep(this.#books, id, cause)
  }

  /** An id for a child or a call of an account: its path and a number, the same in every replay. */
  freshId(account: string, name: string): string {
    const count = (this.#named.get(`${account}/${name}`) ?? 0) + 1
    this.#named.set(`${account}/${name}`, count)
    return `${account}/${name}-${count}`
  }

  // --- the rest of an account's life

  /**
   * Moves what is free in a reserve to a senior one. **Fails with** `Insufficient`, `NotOpen`, `InvalidAmount` (also for a
   * reserve that is not senior).
   */
  move(account: string, from: Reserve, to: Reserve, wanted: Grant, id?: string): Result.Result<Account, Refusal> {
    return operations.move(this.#books, account, { from, to, wanted }, id)
  }

  /**
   * Changes the caps of the root: raises at once into explore, lowers to no less than what is used, held, carved or kept
   * in a senior reserve. A dimension left out stays as it is; one opened without a cap cannot get one.
   *
   * **Fails with** `InvalidAmount`, `NotOpen`.
   */
  amend(caps: Grant, id?: string): Result.Result<Account, Refusal> {
    return operations.amend(this.#books, this.#root, caps, id)
  }

  /**
   * Ends new work in an account and everything below it, top down. With `closingWork` the verification and the wrap-up
   * may still be paid; without, nothing new may start. The first cause stays; a later one is only recorded.
   */
  freeze(id: string, cause: string, options?: { readonly closingWork?: boolean }): void {
    operations.freeze(this.#books, id, cause, options)
  }

  /** Stops holds, carves and the time of an account and everything below it. **Fails with** `NotOpen`. */
  pause(id: string, cause: string): Result.Result<Account, Refusal> {
    return operations.pause(this.#books, id, cause)
  }

  /**
   * Lets a paused account go on. Its deadline, and those below it, move by the time it was paused, but not past the
   * point at which its parent must go on. **Fails with** `NotOpen` when it is not paused itself, or its parent is still.
   */
  resume(id: string): Result.Result<Account, Refusal> {
    return operations.resume(this.#books, id)
  }
}

/** Where a ledger writes its entries and reads the time. */
export interface LedgerOptions {
  readonly record: (entry: Entry) => void
  readonly nowMillis: () => number
  readonly limits?: Limits
}
