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
import type { Account, State } from "./Account.ts"
import {
  type Carving,
  ceiling,
  decideGrant,
  type EvenCarving,
  evenShare,
  fitsShare,
  type Opening,
  shortOfFloor,
} from "./Carve.ts"
import { cover, payDebt } from "./Cover.ts"
import {
  add,
  type Amounts,
  amounts,
  dimensions,
  type Dimension,
  type Grant,
  isZero,
  map,
  nonZero,
  subtract,
  validate,
  zero,
} from "./Dimension.ts"
import type { Entry } from "./Entry.ts"
import type { Refusal } from "./Refusal.ts"
import { type Reserve, split, undivided } from "./Reserve.ts"
import { childDeadline, clamp, divide, endOf, shift, type Window } from "./Window.ts"

/**
 * Names a hold: the account it was placed on and the id its maker gave it.
 *
 * @category holds
 * @since 0.1.0
 */
export interface HoldRef {
  readonly account: string
  readonly id: string
}

/**
 * An amount set aside for one call in flight. It leaves `Pending` exactly once.
 *
 * @category holds
 * @since 0.1.0
 */
export interface Hold extends HoldRef {
  readonly reserve: Reserve
  readonly amounts: Amounts
  readonly state: "Pending" | "Settled" | "Voided" | "Assumed"
}

/** Structural caps of a tree. */
export interface Limits {
  readonly maxDepth: number
  readonly maxOpenChildren: number
}

/** Deep chains are hard to read in a trace and leave nothing at the bottom; see the module docs of `Reserve`. */
export const defaultLimits: Limits = { maxDepth: 16, maxOpenChildren: 1024 }

const ok = Result.succeed
const refuse = (reason: Refusal): Result.Result<never, Refusal> => Result.fail(reason)

/** @since 0.1.0 */
export class Ledger {
  readonly #accounts = new Map<string, Account>()
  readonly #children = new Map<string, Set<string>>()
  readonly #holds = new Map<string, Map<string, Hold>>()
  readonly #debtors = new Set<string>()
  readonly #record: (entry: Entry) => void
  readonly #nowMillis: () => number
  readonly #limits: Limits
  #root = ""

  private constructor(options: LedgerOptions) {
    this.#record = options.record
    this.#nowMillis = options.nowMillis
    this.#limits = options.limits ?? defaultLimits
  }

  /**
   * Opens a tree with one account.
   *
   * **Fails with** `InvalidAmount` for a bad amount, `Insufficient` when the grant does not cover one answer.
   */
  static openRoot(options: LedgerOptions & Opening & { readonly grant: Grant }): Result.Result<Ledger, Refusal> {
    const ledger = new Ledger(options)
    const valid = validate(options.grant, "grant")
    if (Result.isFailure(valid)) return refuse(valid.failure)
    const made = ledger.#make({ ...options, path: options.name, depth: 0, parent: undefined, grant: valid.success })
    if (Result.isFailure(made)) return refuse(made.failure)
    ledger.#root = options.id
    ledger.#adopt(made.success)
    ledger.#record({ _tag: "Opened", ...openingOf(made.success) })
    return ok(ledger)
  }

  // --- queries

  get root(): Account {
    return this.account(this.#root)
  }

  /** The account with that id; an unknown id is a mistake of the host, not a refusal. */
  account(id: string): Account {
    const account = this.#accounts.get(id)
    if (account === undefined) throw new Error(`no account has the id ${id}`)
    return account
  }

  /** Every account ever opened, parents before their children. */
  get accounts(): ReadonlyArray<Account> {
    return [...this.#accounts.values()]
  }

  /** The open children of an account. */
  childrenOf(id: string): ReadonlyArray<Account> {
    return [...(this.#children.get(id) ?? [])].map((child) => this.account(child))
  }

  /** The holds of an account that are still pending. */
  pendingHolds(id: string): ReadonlyArray<Hold> {
    return [...(this.#holds.get(id)?.values() ?? [])].filter((hold) => hold.state === "Pending")
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
    const end = endOf(this.account(id).window, reserve)
    return end === undefined ? undefined : Math.max(0, end - this.#nowMillis())
  }

  // --- holds

  /**
   * Sets amounts aside for one call before it is made.
   *
   * **Fails with** `Insufficient` (every short dimension), `NotOpen`, `DeadlinePassed`, `IdConflict`, `InvalidAmount`.
   */
  hold(ref: HoldRef, reserve: Reserve, wanted: Grant): Result.Result<Hold, Refusal> {
    const refused = (reason: Refusal) => this.#refused("hold", ref.account, ref.id, reason)
    const valid = validate(wanted, "hold")
    if (Result.isFailure(valid)) return refused(valid.failure)
    const self = this.account(ref.account)
    const closed = notWorking(self, reserve)
    if (closed !== undefined) return refused(closed)
    if (this.#holds.get(ref.account)?.has(ref.id) === true) return refused({ _tag: "IdConflict", id: ref.id })
    const late = this.#late(self, reserve)
    if (late !== undefined) return refused(late)
    const vector = amounts(valid.success)
    const placed = Accounts.hold(self, reserve, vector)
    if (Result.isFailure(placed)) return refused(placed.failure)
    const hold: Hold = { ...ref, reserve, amounts: vector, state: "Pending" }
    this.#accounts.set(ref.account, placed.success.account)
    this.#holds.get(ref.account)!.set(ref.id, hold)
    this.#record({
      _tag: "Held",
      account: ref.account,
      hold: ref.id,
      reserve,
      amounts: nonZero(vector),
      moved: nonZero(placed.success.moved),
    })
    return ok(hold)
  }

  /**
   * Books what a call really used. A bill above the hold is booked in full and covered along the path to the root; what
   * nothing covers is debt. `covered` tells whether the hold's own reserve paid the whole bill.
   *
   * **Fails with** `AlreadyResolved`, `UnknownId`, `InvalidAmount`.
   */
  settle(ref: HoldRef, actual: Grant): Result.Result<Settlement, Refusal> {
    const refused = (reason: Refusal) => this.#refused("settle", ref.account, ref.id, reason)
    const valid = validate(actual, "actual")
    if (Result.isFailure(valid)) return refused(valid.failure)
    const pending = this.#pending(ref)
    if (Result.isFailure(pending)) return refused(pending.failure)
    const hold = pending.success
    const bill = amounts(valid.success)
    const { account, excess } = Accounts.resolve(this.account(ref.account), hold, bill)
    this.#resolve(hold, "Settled", account)
    this.#record({ _tag: "Settled", ...resolvedOf(hold), held: nonZero(hold.amounts), actual: nonZero(bill) })
    const settlement = isZero(excess) ? withinHold : this.#overrun(hold, excess)
    this.#payDebts()
    return ok(settlement)
  }

  /**
   * Gives a hold back whole: the call was certainly never billed.
   *
   * **Fails with** `AlreadyResolved`, `UnknownId`.
   */
  void(ref: HoldRef): Result.Result<Hold, Refusal> {
    return this.#release(ref, "Voided", zero)
  }

  /**
   * Books a hold whole: what the call used cannot be known.
   *
   * **Fails with** `AlreadyResolved`, `UnknownId`.
   */
  assume(ref: HoldRef): Result.Result<Hold, Refusal> {
    return this.#release(ref, "Assumed", undefined)
  }

  // --- children

  /**
   * Carves a child out of what the parent has left.
   *
   * **Fails with** `Insufficient` (of the parent, or below the child's minimum), `NotOpen`, `TooDeep`,
   * `TooManyChildren`, `DeadlinePassed`, `IdConflict`, `InvalidAmount`.
   */
  carve(parentId: string, carving: Carving): Result.Result<Account, Refusal> {
    const refused = (reason: Refusal) => this.#refused("carve", parentId, carving.id, reason)
    const parent = this.account(parentId)
    const reserve = carving.reserve ?? "explore"
    const obstacle = this.#cannotCarve(parent, carving.id, reserve)
    if (obstacle !== undefined) return refused(obstacle)
    const charge = amounts(carving.charge ?? {})
    const given = decideGrant(parent, reserve, carving, charge)
    if (Result.isFailure(given)) return refused(given.failure)
    const deadline = childDeadline({
      parent: parent.window,
      reserve,
      nowMillis: this.#nowMillis(),
      askedMillis: carving.wallClockMillis,
      neededMillis: carving.minimumMillis ?? 0,
    })
    if (Result.isFailure(deadline)) return refused(deadline.failure)
    const made = this.#make({
      ...carving,
      path: `${parent.path}/${carving.name}`,
      depth: parent.depth + 1,
      parent: { id: parentId, reserve },
      grant: given.success,
      deadlineMillis: deadline.success,
    })
    if (Result.isFailure(made)) return refused(made.failure)
    const child = made.success
    this.#accounts.set(parentId, Accounts.giveToChild(parent, reserve, Accounts.granted(child), charge))
    this.#adopt(child)
    this.#children.get(parentId)!.add(child.id)
    this.#record({
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
   * what the reserve has left after the charges. The rest is refused before it spends anything.
   */
  carveAll(
    parentId: string,
    batch: ReadonlyArray<EvenCarving>,
    reserve: Reserve = "explore",
  ): ReadonlyArray<Result.Result<Account, Refusal>> {
    const parent = this.account(parentId)
    const left = Accounts.availableIn(parent, reserve)
    let count = batch.length
    while (count > 0 && !batch.slice(0, count).every((one) => fitsShare(evenShare(left, one.charge, count), one.floor)))
      count--
    return batch.map((one, index) => {
      const grant = evenShare(left, one.charge, index < count ? count : count + 1)
      return index < count
        ? this.carve(parentId, {
            ...one,
            reserve,
            ask: { _tag: "AtMost", grant: ceiling(grant, one.most), floor: one.floor },
          })
        : this.#refused("carve", parentId, one.id, {
            _tag: "Insufficient",
            shortages: shortOfFloor(one, grant, { parent, reserve }),
          })
    })
  }

  /**
   * Ends an account and gives what it did not use back to the reserve that funded it.
   *
   * **Fails with** `NotQuiescent` while a hold is pending or a child open, `NotOpen` when it is closed already.
   */
  close(id: string): Result.Result<Account, Refusal> {
    const self = this.account(id)
    if (self.state === "Closed") return this.#refused("close", id, id, notOpen(self))
    if (self.pendingHolds > 0 || self.openChildren > 0) {
      const { pendingHolds, openChildren } = self
      return this.#refused("close", id, id, { _tag: "NotQuiescent", pendingHolds, openChildren })
    }
    const closed: Account = { ...self, state: "Closed" }
    this.#accounts.set(id, closed)
    this.#holds.set(id, new Map())
    if (self.parent !== undefined) {
      const parent = this.account(self.parent.id)
      this.#accounts.set(parent.id, Accounts.takeFromChild(parent, self, self.parent.reserve))
      this.#children.get(parent.id)!.delete(id)
      if (this.#debtors.delete(id)) this.#debtors.add(parent.id)
    }
    this.#record({
      _tag: "Closed",
      account: id,
      granted: nonZero(Accounts.granted(self)),
      own: nonZero(Accounts.ownUsed(self)),
      children: nonZero(self.childrenUsed),
      returned: nonZero(Accounts.unused(self)),
      debt: nonZero(self.debt),
    })
    this.#payDebts()
    return ok(closed)
  }

  // --- the rest of an account's life

  /** Moves what is free in a reserve to a senior one. **Fails with** `Insufficient`, `NotOpen`, `InvalidAmount`. */
  move(id: string, from: Reserve, to: Reserve, wanted: Grant): Result.Result<Account, Refusal> {
    const refused = (reason: Refusal) => this.#refused("move", id, id, reason)
    const valid = validate(wanted, "move")
    if (Result.isFailure(valid)) return refused(valid.failure)
    const self = this.account(id)
    if (self.state !== "Open") return refused(notOpen(self))
    const vector = Accounts.missingIn(self, to, add(amounts(Accounts.availableIn(self, to)), amounts(valid.success)))
    const shortages = Accounts.shortagesOf(self, from, vector)
    if (shortages.length > 0) return refused({ _tag: "Insufficient", shortages })
    const moved = Accounts.move(self, from, to, vector)
    this.#accounts.set(id, moved)
    this.#record({ _tag: "Moved", account: id, from, to, amounts: nonZero(vector) })
    return ok(moved)
  }

  /**
   * Changes the caps of the root: raises at once into explore, lowers to no less than what is used, held, carved or kept
   * in a senior reserve. A dimension left out stays as it is.
   */
  amend(caps: Grant): Result.Result<Account, Refusal> {
    const self = this.root
    const valid = validate(caps, "amend")
    if (Result.isFailure(valid)) return this.#refused("amend", self.id, self.id, valid.failure)
    if (self.state === "Closed") return this.#refused("amend", self.id, self.id, notOpen(self))
    const before = Accounts.granted(self)
    const fund = self.funds.explore
    const change = map((d) => {
      const cap = valid.success[d]
      if (cap === undefined || !self.caps[d]) return 0
      return Math.max(cap - before[d], -Accounts.free(fund, d))
    })
    const amended = Accounts.withFund(self, "explore", { ...fund, allocated: add(fund.allocated, change) })
    this.#accounts.set(self.id, amended)
    this.#record({
      _tag: "Amended",
      account: self.id,
      from: nonZero(before),
      to: nonZero(Accounts.granted(amended)),
      wanted: valid.success,
    })
    this.#payDebts()
    return ok(this.root)
  }

  /**
   * Ends new work in an account and everything below it, top down. With `closingWork` the verification and the wrap-up
   * may still be paid; without, nothing new may start. The first cause stays.
   */
  freeze(id: string, cause: string, options?: { readonly closingWork?: boolean }): void {
    const closingWork = options?.closingWork ?? false
    const state: State = closingWork ? "Frozen" : "Draining"
    let changed = false
    this.#walk(id, (self) => {
      if (self.state === "Closed" || self.state === "Draining" || self.state === state) return
      changed = true
      this.#accounts.set(self.id, { ...self, state, cause: self.state === "Frozen" ? self.cause : cause })
    })
    if (changed) this.#record({ _tag: "Frozen", account: id, cause, closingWork })
  }

  /** Stops holds, carves and the time of an account and everything below it. **Fails with** `NotOpen`. */
  pause(id: string, cause: string): Result.Result<Account, Refusal> {
    if (this.account(id).state !== "Open") return this.#refused("pause", id, id, notOpen(this.account(id)))
    const pausedAtMillis = this.#nowMillis()
    this.#walk(id, (self) => {
      if (self.state === "Open") this.#accounts.set(self.id, { ...self, state: "Paused", cause: id, pausedAtMillis })
    })
    this.#record({ _tag: "Paused", account: id, cause })
    return ok(this.account(id))
  }

  /**
   * Lets a paused account go on. Its deadline, and those below it, move by the time it was paused, but not past the
   * point at which its parent must go on. **Fails with** `NotOpen` when it is not paused itself.
   */
  resume(id: string): Result.Result<Account, Refusal> {
    const paused = this.account(id)
    if (paused.state !== "Paused" || paused.cause !== id) return this.#refused("resume", id, id, notOpen(paused))
    const pausedMillis = this.#nowMillis() - paused.pausedAtMillis!
    this.#walk(id, (self) => {
      if (self.state !== "Paused" || self.cause !== id) return
      const window = self.window === undefined ? undefined : this.#within(self, shift(self.window, pausedMillis))
      this.#accounts.set(self.id, { ...self, state: "Open", cause: "", pausedAtMillis: undefined, window })
    })
    this.#record({ _tag: "Resumed", account: id, pausedMillis })
    return ok(this.account(id))
  }

  // --- inside

  #make(
    options: Opening & {
      readonly path: string
      readonly depth: number
      readonly parent: Account["parent"]
      readonly grant: Grant
      readonly deadlineMillis?: number | undefined
    },
  ): Result.Result<Account, Refusal> {
    if (this.#accounts.has(options.id)) return refuse({ _tag: "IdConflict", id: options.id })
    const allocated = split(options.grant, options.reserves ?? undivided, options.path)
    if (Result.isFailure(allocated)) return refuse(allocated.failure)
    const openedAtMillis = this.#nowMillis()
    const own = options.wallClockMillis === undefined ? undefined : openedAtMillis + options.wallClockMillis
    const deadlineMillis = options.deadlineMillis ?? own
    const window =
      deadlineMillis === undefined
        ? undefined
        : divide({ openedAtMillis, deadlineMillis }, options.window ?? { _tag: "Scope" })
    return ok(Accounts.make({ ...options, allocated: allocated.success, window }))
  }

  #adopt(account: Account): void {
    this.#accounts.set(account.id, account)
    this.#children.set(account.id, new Set())
    this.#holds.set(account.id, new Map())
  }

  #cannotCarve(parent: Account, id: string, reserve: Reserve): Refusal | undefined {
    if (parent.state !== "Open" && !(parent.state === "Frozen" && reserve === "verify")) return notOpen(parent)
    if (this.#accounts.has(id)) return { _tag: "IdConflict", id }
    if (parent.depth + 1 > this.#limits.maxDepth) return { _tag: "TooDeep", limit: this.#limits.maxDepth }
    const limit = this.#limits.maxOpenChildren
    return parent.openChildren >= limit ? { _tag: "TooManyChildren", limit } : undefined
  }

  #late(self: Account, reserve: Reserve): Refusal | undefined {
    const end = endOf(self.window, reserve)
    if (end === undefined || this.#nowMillis() < end) return undefined
    return { _tag: "DeadlinePassed", reserve, leftMillis: 0, neededMillis: 1 }
  }

  #within(self: Account, window: Window): Window {
    const parent = self.parent === undefined ? undefined : this.account(self.parent.id)
    const limit = parent === undefined ? undefined : endOf(parent.window, self.parent!.reserve)
    return limit === undefined ? window : clamp(window, limit)
  }

  #pending(ref: HoldRef): Result.Result<Hold, Refusal> {
    const hold = this.#holds.get(ref.account)?.get(ref.id)
    if (hold === undefined) return refuse({ _tag: "UnknownId", id: ref.id })
    return hold.state === "Pending" ? ok(hold) : refuse({ _tag: "AlreadyResolved", id: ref.id, state: hold.state })
  }

  #resolve(hold: Hold, state: Hold["state"], account: Account): Hold {
    const resolved: Hold = { ...hold, state }
    this.#accounts.set(account.id, account)
    this.#holds.get(hold.account)!.set(hold.id, resolved)
    return resolved
  }

  #release(ref: HoldRef, state: "Voided" | "Assumed", bill: Amounts | undefined): Result.Result<Hold, Refusal> {
    const pending = this.#pending(ref)
    if (Result.isFailure(pending)) return this.#refused(state.toLowerCase(), ref.account, ref.id, pending.failure)
    const hold = pending.success
    const { account } = Accounts.resolve(this.account(ref.account), hold, bill ?? hold.amounts)
    const resolved = this.#resolve(hold, state, account)
    this.#record({ _tag: state, ...resolvedOf(hold), held: nonZero(hold.amounts) })
    this.#payDebts()
    return ok(resolved)
  }

  #overrun(hold: Hold, excess: Amounts): Settlement {
    const covered = cover(this.#pathOf(hold.account), hold.reserve, excess)
    const [self, ...above] = covered.path
    const debt = add(self!.debt, covered.uncovered)
    for (const account of [{ ...self!, overran: true, debt }, ...above]) this.#accounts.set(account.id, account)
    if (!isZero(covered.uncovered)) this.#debtors.add(hold.account)
    this.#record({
      _tag: "Overran",
      ...resolvedOf(hold),
      excess: nonZero(excess),
      covered: covered.sources,
      debt: nonZero(covered.uncovered),
    })
    const elsewhere = covered.sources.filter((s) => s.account !== self!.path || s.reserve !== hold.reserve)
    const short = dimensions.filter((d) => elsewhere.some((s) => s.dimension === d) || covered.uncovered[d] > 0)
    return { excess, covered: short.length === 0, short }
  }

  /** Whatever has become free on the path of a debtor pays its debt first. */
  #payDebts(): void {
    for (const id of this.#debtors) {
      const before = this.account(id)
      const paid = payDebt(this.#pathOf(id))
      if (paid.sources.length === 0) continue
      for (const account of paid.path) this.#accounts.set(account.id, account)
      const after = this.account(id)
      if (isZero(after.debt)) this.#debtors.delete(id)
      this.#record({
        _tag: "DebtPaid",
        account: id,
        paid: nonZero(subtract(before.debt, after.debt)),
        covered: paid.sources,
      })
    }
  }

  #pathOf(id: string): ReadonlyArray<Account> {
    const self = this.account(id)
    return self.parent === undefined ? [self] : [self, ...this.#pathOf(self.parent.id)]
  }

  #walk(id: string, visit: (account: Account) => void): void {
    visit(this.account(id))
    for (const child of this.#children.get(id) ?? []) this.#walk(child, visit)
  }

  #refused(operation: string, account: string, id: string, reason: Refusal): Result.Result<never, Refusal> {
    this.#record({ _tag: "Refused", account, operation, id, reason })
    return refuse(reason)
  }
}

/** Where a ledger writes its entries and reads the time. */
export interface LedgerOptions {
  readonly record: (entry: Entry) => void
  readonly nowMillis: () => number
  readonly limits?: Limits
}

/** What became of a settled hold. */
export interface Settlement {
  /** What the bill exceeded the hold by. */
  readonly excess: Amounts
  /** True when the hold's own reserve paid the whole bill. */
  readonly covered: boolean
  /** The dimensions that were covered from elsewhere, or not at all. */
  readonly short: ReadonlyArray<Dimension>
}

const withinHold: Settlement = { excess: zero, covered: true, short: [] }

const notOpen = (self: Account): Refusal => ({
  _tag: "NotOpen",
  account: self.path,
  state: self.state.toLowerCase(),
  cause: self.cause,
})

/** A hold for work needs an open account; closing work may also be paid from a frozen one. */
const notWorking = (self: Account, reserve: Reserve): Refusal | undefined => {
  if (self.state === "Open") return undefined
  const closingWork = reserve === "output" || reserve === "verify"
  return self.state === "Frozen" && closingWork ? undefined : notOpen(self)
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

const resolvedOf = (hold: Hold) => ({ account: hold.account, hold: hold.id, reserve: hold.reserve })
