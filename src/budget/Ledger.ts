/**
 * The tree of accounts: a mutable map of immutable records, and the operations that change it.
 *
 * Each operation is synchronous: it decides and applies in one go, so no other fiber can come between the check and the
 * debit. A refused operation changes nothing. A hold touches one account, carve and close two, a cover the path to the
 * root, a freeze the subtree; the cost does not grow with the number of open accounts.
 *
 * Ids of accounts and holds are made by the caller and never used twice.
 */
import * as Result from "effect/Result"
import * as Accounts from "./Account.ts"
import type { Account } from "./Account.ts"
import { Books, type Hold, type HoldRef, notOpen, refuse } from "./Books.ts"
import * as Holds from "./Holds.ts"
import * as Life from "./Life.ts"
import { type Carving, decideGrant, type EvenCarving, evenly, type Opening } from "./Carve.ts"
import {
  amounts,
  dimensions,
  type Dimension,
  type Grant,
  invalidAmount,
  isNatural,
  nonZero,
  validate,
} from "./Dimension.ts"
import type { Entry } from "./Entry.ts"
import type { Refusal } from "./Refusal.ts"
import { type Reserve, split, undivided } from "./Reserve.ts"
import { childDeadline, divide, endOf, invalidTime } from "./Window.ts"

/** Structural caps of a tree. */
export interface Limits {
  readonly maxDepth: number
  readonly maxOpenChildren: number
}

/** Deep chains are hard to read in a trace and leave nothing at the bottom; see the module docs of `Reserve`. */
export const defaultLimits: Limits = { maxDepth: 16, maxOpenChildren: 1024 }

const ok = Result.succeed

/** @since 0.1.0 */
export class Ledger {
  readonly #books: Books
  readonly #limits: Limits
  #root = ""

  private constructor(options: LedgerOptions) {
    this.#books = new Books(options)
    this.#limits = options.limits ?? defaultLimits
  }

  /**
   * Opens a tree with one account.
   *
   * **Fails with** `InvalidAmount` for a bad amount, time or limit, `Insufficient` when the grant does not cover one
   * answer, `DeadlinePassed` when there is no time for it.
   */
  static openRoot(options: LedgerOptions & Opening & { readonly grant: Grant }): Result.Result<Ledger, Refusal> {
    const ledger = new Ledger(options)
    for (const [name, limit] of Object.entries(ledger.#limits)) {
      if (!isNatural(limit)) return refuse(invalidAmount(`limits.${name}`, limit, "give a whole number, 0 or more"))
    }
    const valid = validate(options.grant, "grant")
    if (Result.isFailure(valid)) return refuse(valid.failure)
    const made = ledger.#make({ ...options, path: options.name, depth: 0, parent: undefined, grant: valid.success })
    if (Result.isFailure(made)) return refuse(made.failure)
    ledger.#root = options.id
    ledger.#books.adopt(made.success)
    ledger.#books.record({ _tag: "Opened", ...openingOf(made.success) })
    return ok(ledger)
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

  /** The holds of an account that are still pending. */
  pendingHolds(id: string): ReadonlyArray<Hold> {
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
  hold(ref: HoldRef, reserve: Reserve, wanted: Grant): Result.Result<Hold, Refusal> {
    return Holds.place(this.#books, ref, reserve, wanted)
  }

  /**
   * Books what a call really used. A bill above the hold is booked in full and covered along the path to the root; what
   * nothing covers is debt.
   *
   * **Fails with** `AlreadyResolved`, `UnknownId`, `InvalidAmount`.
   */
  settle(ref: HoldRef, actual: Grant): Result.Result<Holds.Settlement, Refusal> {
    return Holds.settle(this.#books, ref, actual)
  }

  /**
   * Gives a hold back whole: the call was certainly never billed.
   *
   * **Fails with** `AlreadyResolved`, `UnknownId`.
   */
  void(ref: HoldRef): Result.Result<Hold, Refusal> {
    return Holds.release(this.#books, ref, "Voided")
  }

  /**
   * Books a hold whole: what the call used cannot be known.
   *
   * **Fails with** `AlreadyResolved`, `UnknownId`.
   */
  assume(ref: HoldRef): Result.Result<Hold, Refusal> {
    return Holds.release(this.#books, ref, "Assumed")
  }

  // --- children

  /**
   * Carves a child out of what the parent has left.
   *
   * **Fails with** `Insufficient` (of the parent, or below the child's minimum), `NotOpen`, `TooDeep`,
   * `TooManyChildren`, `DeadlinePassed`, `IdConflict`, `InvalidAmount`.
   */
  carve(parentId: string, carving: Carving): Result.Result<Account, Refusal> {
    const refused = (reason: Refusal) => this.#books.refused("carve", parentId, carving.id, reason)
    const parent = this.account(parentId)
    const reserve = carving.reserve ?? "explore"
    const obstacle = this.#cannotCarve(parent, carving.id, reserve)
    if (obstacle !== undefined) return refused(obstacle)
    const validCharge = validate(carving.charge ?? {}, "charge")
    if (Result.isFailure(validCharge)) return refused(validCharge.failure)
    const charge = amounts(validCharge.success)
    const given = decideGrant(parent, reserve, carving, charge)
    if (Result.isFailure(given)) return refused(given.failure)
    const uncountable = this.#books.uncountable("charge", charge)
    if (uncountable !== undefined) return refused(uncountable)
    const made = this.#make({
      ...carving,
      path: `${parent.path}/${carving.name}`,
      depth: parent.depth + 1,
      parent: { id: parentId, reserve },
      grant: given.success,
    })
    if (Result.isFailure(made)) return refused(made.failure)
    const child = made.success
    this.#books.put(Accounts.giveToChild(parent, reserve, Accounts.granted(child), charge))
    this.#books.adopt(child)
    this.#books.count(charge)
    this.#books.record({
      _tag: "Carved",
      ...openingOf(child),
      parent: parentId,
      reserve,
      asked: nonZero(amounts(carving.ask.grant)),
      charge: nonZero(charge),
    })
    return ok(child)
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
    return evenly(this.account(parentId), reserve, batch).map((decided, index) => {
      if (Result.isSuccess(decided)) return this.carve(parentId, decided.success)
      const { id } = batch[index]!
      const reason = this.#cannotCarve(this.account(parentId), id, reserve) ?? decided.failure
      return this.#books.refused("carve", parentId, id, reason)
    })
  }

  /**
   * Ends an account and gives what it did not use back to the reserve that funded it.
   *
   * **Fails with** `NotQuiescent` while a hold is pending or a child open, `NotOpen` when it is closed already.
   */
  close(id: string): Result.Result<Account, Refusal> {
    const self = this.account(id)
    if (self.state === "Closed") return this.#books.refused("close", id, id, notOpen(self))
    if (self.pendingHolds > 0 || self.openChildren > 0) {
      const { pendingHolds, openChildren } = self
      return this.#books.refused("close", id, id, { _tag: "NotQuiescent", pendingHolds, openChildren })
    }
    const closed: Account = { ...self, state: "Closed" }
    this.#books.bury(closed)
    if (self.parent !== undefined) {
      const parent = this.account(self.parent.id)
      this.#books.put(Accounts.takeFromChild(parent, self, self.parent.reserve))
      if (this.#books.debtors.delete(id)) this.#books.debtors.add(parent.id)
    }
    this.#books.record({
      _tag: "Closed",
      account: id,
      granted: nonZero(Accounts.granted(self)),
      own: nonZero(Accounts.ownUsed(self)),
      children: nonZero(self.childrenUsed),
      returned: nonZero(Accounts.unused(self)),
      debt: nonZero(self.debt),
    })
    Life.payDebts(this.#books)
    return ok(closed)
  }

  // --- the rest of an account's life

  /**
   * Moves what is free in a reserve to a senior one. **Fails with** `Insufficient`, `NotOpen`, `InvalidAmount` (also for a
   * reserve that is not senior).
   */
  move(id: string, from: Reserve, to: Reserve, wanted: Grant): Result.Result<Account, Refusal> {
    return Life.move(this.#books, id, { from, to }, wanted)
  }

  /**
   * Changes the caps of the root: raises at once into explore, lowers to no less than what is used, held, carved or kept
   * in a senior reserve. A dimension left out stays as it is; one opened without a cap cannot get one.
   *
   * **Fails with** `InvalidAmount`, `NotOpen`.
   */
  amend(caps: Grant): Result.Result<Account, Refusal> {
    return Life.amend(this.#books, this.#root, caps)
  }

  /**
   * Ends new work in an account and everything below it, top down. With `closingWork` the verification and the wrap-up
   * may still be paid; without, nothing new may start. The first cause stays; a later one is only recorded.
   */
  freeze(id: string, cause: string, options?: { readonly closingWork?: boolean }): void {
    Life.freeze(this.#books, id, cause, options)
  }

  /** Stops holds, carves and the time of an account and everything below it. **Fails with** `NotOpen`. */
  pause(id: string, cause: string): Result.Result<Account, Refusal> {
    return Life.pause(this.#books, id, cause)
  }

  /**
   * Lets a paused account go on. Its deadline, and those below it, move by the time it was paused, but not past the
   * point at which its parent must go on. **Fails with** `NotOpen` when it is not paused itself, or its parent is still.
   */
  resume(id: string): Result.Result<Account, Refusal> {
    return Life.resume(this.#books, id)
  }

  // --- inside

  #make(
    options: Opening & {
      readonly path: string
      readonly depth: number
      readonly parent: Account["parent"]
      readonly grant: Grant
    },
  ): Result.Result<Account, Refusal> {
    if (this.#books.has(options.id)) return refuse({ _tag: "IdConflict", id: options.id })
    const openedAtMillis = this.#books.nowMillis()
    const wrongTime = invalidTime(options, openedAtMillis)
    if (wrongTime !== undefined) return refuse(wrongTime)
    const deadline = childDeadline({
      parent: options.parent === undefined ? undefined : this.account(options.parent.id).window,
      reserve: options.parent?.reserve ?? "explore",
      nowMillis: openedAtMillis,
      askedMillis: options.wallClockMillis,
      neededMillis: options.minimumMillis ?? 0,
    })
    if (Result.isFailure(deadline)) return refuse(deadline.failure)
    const allocated = split(options.grant, options.reserves ?? undivided, options.path)
    if (Result.isFailure(allocated)) return refuse(allocated.failure)
    const deadlineMillis = deadline.success
    const window =
      deadlineMillis === undefined
        ? undefined
        : divide({ openedAtMillis, deadlineMillis }, options.window ?? { _tag: "Scope" })
    return ok(Accounts.make({ ...options, allocated: allocated.success, window }))
  }

  #cannotCarve(parent: Account, id: string, reserve: Reserve): Refusal | undefined {
    if (parent.state !== "Open") return notOpen(parent)
    if (reserve === "output") return invalidAmount("reserve", reserve, "fund a child from explore, retry or verify")
    if (this.#books.has(id)) return { _tag: "IdConflict", id }
    if (parent.depth + 1 > this.#limits.maxDepth) return { _tag: "TooDeep", limit: this.#limits.maxDepth }
    const limit = this.#limits.maxOpenChildren
    return parent.openChildren >= limit ? { _tag: "TooManyChildren", limit } : undefined
  }
}

/** Where a ledger writes its entries and reads the time. */
export interface LedgerOptions {
  readonly record: (entry: Entry) => void
  readonly nowMillis: () => number
  readonly limits?: Limits
}

const openingOf = (self: Account) => ({
  account: self.id,
  path: self.path,
  grant: grantOf(self),
  reserves: {
    explore: nonZero(self.opening.explore),
    retry: nonZero(self.opening.retry),
    verify: nonZero(self.opening.verify),
    output: nonZero(self.opening.output),
  },
  ...(self.window === undefined ? {} : { window: self.window }),
})

/** The caps of an account, as a grant: a cap of zero is shown, an uncapped dimension left out. */
const grantOf = (self: Account): Grant => {
  const total = Accounts.granted(self)
  return Object.fromEntries(dimensions.filter((d) => self.caps[d]).map((d) => [d, total[d]]))
}
