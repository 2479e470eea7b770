/**
 * Holds: an amount set aside before a call, and resolved exactly once after it.
 */
import * as Result from "effect/Result"
import * as Accounts from "./Account.ts"
import type { Account } from "./Account.ts"
import {
  type Books,
  type Hold,
  type HoldRef,
  notOpen,
  refuse,
  type Request,
  type Settlement,
  underOf,
} from "./Books.ts"
import { cover, type Covered } from "./Cover.ts"
import { payDebts } from "./Debt.ts"
import {
  add,
  type Amounts,
  amounts,
  dimensions,
  equals,
  type Grant,
  invalidAmount,
  isZero,
  nonZero,
  subtract,
  validate,
  wrongIn,
  zero,
} from "./Dimension.ts"
import { serveAround } from "./Line.ts"
import type { Refusal } from "./Refusal.ts"
import type { Reserve } from "./Reserve.ts"
import { endOf } from "./Window.ts"

const ok = Result.succeed

/** The holds that pay, or paid, for a call of `Budget.spend`, or may have done so before a restore: for no other one. */
export const calls = new WeakSet<Hold>()

const withinHold: Settlement = { excess: zero, covered: true, short: [] }

/** A hold for work needs an open account; closing work may also be paid from a frozen one. */
const notWorking = (self: Account, reserve: Reserve): Refusal | undefined => {
  if (self.state === "Open") return undefined
  const closingWork = reserve === "output" || reserve === "verify"
  return self.state === "Frozen" && closingWork ? undefined : notOpen(self)
}

const resolvedOf = (hold: Hold) => ({ account: hold.account, hold: hold.id, reserve: hold.reserve })

/** What there is to say about a hold beside its amounts. */
export interface About {
  /** Nobody knows what the call costs: its money is not held, and counted as unknown if it was billed. */
  readonly unpriced?: boolean | undefined
}

/** Whether a bill leaves open what was paid: tokens of an unknown price, and no money beside them. */
const isUnknown = (hold: Hold, bill: Amounts): boolean =>
  hold.unpriced === true && bill.money === 0 && bill.inputTokens + bill.outputTokens > 0

/** Counts a call whose money nobody knows, or no longer does. */
export const countUnpriced = (self: Account, more: number): Account =>
  more === 0 ? self : { ...self, unpricedCalls: self.unpricedCalls + more }

/** How many calls of unknown money a resolution adds: one or none. */
export const unpricedIn = (hold: Hold, bill: Amounts): number => (isUnknown(hold, bill) ? 1 : 0)

/**
 * Sets amounts aside for one call before it is made.
 *
 * **Fails with** `Insufficient` (every short dimension), `NotOpen`, `DeadlinePassed`, `IdConflict`, `InvalidAmount`.
 */
export const place = (
  books: Books,
  ref: HoldRef,
  reserve: Reserve,
  wanted: Grant,
  about: About = plain,
): Result.Result<Hold, Refusal> => {
  if (!books.hasAnswered("hold", ref.account, ref.id)) return placeNow(books, ref, { reserve, wanted, about })
  return books.once(requestOf(books, ref, reserve, wanted), () => placeNow(books, ref, { reserve, wanted, about }))
}

const plain: About = {}

/** Only a refusal needs it: a hold itself shows what was asked under its id. */
const requestOf = (books: Books, ref: HoldRef, reserve: Reserve, wanted: Grant): Request =>
  books.request("hold", ref.account, ref.id, { reserve, wanted })

const placeNow = (
  books: Books,
  ref: HoldRef,
  of: { readonly reserve: Reserve; readonly wanted: Grant; readonly about: About },
): Result.Result<Hold, Refusal> => {
  const { reserve, wanted, about } = of
  const refused = (reason: Refusal) =>
    books.refused("hold", ref.account, ref.id, reason, requestOf(books, ref, reserve, wanted))
  const wrong = wrongIn(wanted, "hold")
  if (wrong !== undefined) return refused(wrong)
  const vector = amounts(wanted)
  const placedBefore = books.hold(ref)
  if (placedBefore !== undefined) return placedAgain(books, placedBefore, reserve, vector)
  const self = books.account(ref.account)
  const closed = notWorking(self, reserve) ?? late(books, self, reserve)
  if (closed !== undefined) return refused(closed)
  if (isZero(vector)) return refused(invalidAmount("hold", 0, "hold at least one unit of some dimension"))
  const uncountable = books.uncountable("hold", vector)
  if (uncountable !== undefined && Accounts.fitsIn(self, reserve, vector)) return refused(uncountable)
  const placed = Accounts.hold(self, reserve, vector)
  if (Result.isFailure(placed)) return refused(placed.failure)
  const known: Hold = { account: ref.account, id: ref.id, reserve, amounts: vector, state: "Pending" }
  const hold = about.unpriced === true ? { ...known, ...unpriced } : known
  books.put(placed.success.account)
  books.putHold(hold)
  books.count(vector)
  const [shown, moved] = [nonZero(vector), nonZero(placed.success.moved)]
  const entry = { _tag: "Held", account: ref.account, hold: ref.id, reserve, amounts: shown, moved } as const
  books.record(about.unpriced === true ? { ...entry, ...unpriced } : entry)
  return ok(hold)
}

const unpriced = { unpriced: true } as const

/** The same hold delivered again is answered with the hold as it is now: nothing is set aside twice. */
const placedAgain = (books: Books, hold: Hold, reserve: Reserve, wanted: Amounts): Result.Result<Hold, Refusal> =>
  hold.reserve === reserve && equals(subtract(hold.amounts, hold.extended ?? zero), wanted)
    ? ok(hold)
    : books.refused("hold", hold.account, hold.id, { _tag: "IdConflict", id: hold.id })

/**
 * Adds to a pending hold; refused, it stays as it was.
 *
 * **Fails with** `Insufficient`, `NotOpen`, `AlreadyResolved`, `UnknownId`, `InvalidAmount`.
 */
export const extend = (books: Books, ref: HoldRef, extra: Grant, id?: string): Result.Result<Hold, Refusal> => {
  const request = books.request("extendHold", ref.account, id, { hold: ref.id, extra })
  return books.once(request, () => {
    const refused = (reason: Refusal) => books.refused("extendHold", ref.account, ref.id, reason, request)
    const valid = validate(extra, "extra")
    if (Result.isFailure(valid)) return refused(valid.failure)
    const found = pending(books, ref)
    if (Result.isFailure(found)) return refused(found.failure)
    const [hold, self, vector] = [found.success, books.account(ref.account), amounts(valid.success)]
    const closed = notWorking(self, hold.reserve) ?? late(books, self, hold.reserve)
    if (closed !== undefined) return refused(closed)
    const uncountable = books.uncountable("extra", vector)
    if (uncountable !== undefined && Accounts.fitsIn(self, hold.reserve, vector)) return refused(uncountable)
    const placed = Accounts.hold(self, hold.reserve, vector)
    if (Result.isFailure(placed)) return refused(placed.failure)
    const more = add(hold.extended ?? zero, vector)
    const extended: Hold = { ...hold, amounts: add(hold.amounts, vector), extended: more }
    books.put({ ...placed.success.account, pendingHolds: self.pendingHolds })
    books.putHold(extended)
    if (calls.has(hold)) calls.add(extended)
    books.count(vector)
    const moved = isZero(placed.success.moved) ? {} : { moved: nonZero(placed.success.moved) }
    books.record({
      _tag: "Extended",
      ...resolvedOf(hold),
      amounts: nonZero(vector),
      ...moved,
      ...underOf(request),
    })
    return ok(extended)
  })
}

/**
 * Books what a call really used. A bill above the hold is booked in full and covered along the path to the root; what
 * nothing covers is debt. `covered` tells whether the hold's own reserve paid the whole bill.
 *
 * **Fails with** `AlreadyResolved` (unless with the same bill), `UnknownId`, `InvalidAmount`.
 */
export const settle = (books: Books, ref: HoldRef, actual: Grant): Result.Result<Settlement, Refusal> => {
  const refused = (reason: Refusal) => books.refused("settle", ref.account, ref.id, reason)
  const wrong = wrongIn(actual, "actual")
  if (wrong !== undefined) return refused(wrong)
  const bill = amounts(actual)
  const hold = books.hold(ref)
  const known = hold?.state === "Settled" ? hold.resolution : undefined
  if (known !== undefined && equals(known.bill, bill)) return ok(known.settlement)
  if (hold === undefined || hold.state !== "Pending") return refused(notPending(ref, hold))
  const uncountable = books.uncountable("actual", bill, hold.amounts)
  if (uncountable !== undefined) return refused(uncountable)
  const { account: resolved, excess } = Accounts.resolve(books.account(ref.account), hold, bill)
  const account = countUnpriced(resolved, unpricedIn(hold, bill))
  const covered = isZero(excess)
    ? undefined
    : cover([account, ...books.pathOf(ref.account).slice(1)], hold.reserve, excess)
  if (covered !== undefined && !covered.path.every(Accounts.isExact)) {
    return refused(invalidAmount("actual", "more than can be counted", wrongBill))
  }
  const settlement = covered === undefined ? withinHold : settlementOf(hold, excess, covered)
  books.put(account)
  books.putHold({ ...hold, state: "Settled", resolution: { bill, settlement } })
  books.count(bill, hold.amounts)
  const [held, shown] = [nonZero(hold.amounts), nonZero(bill)]
  books.record({ _tag: "Settled", account: hold.account, hold: hold.id, reserve: hold.reserve, held, actual: shown })
  if (covered !== undefined) overrun(books, hold, excess, covered)
  payDebts(books)
  serveAround(books, ref.account)
  return ok(settlement)
}

const wrongBill = "look at what was reported; the hold can be assumed"

const late = (books: Books, self: Account, reserve: Reserve): Refusal | undefined => {
  const end = endOf(self.window, reserve)
  if (end === undefined || books.nowMillis() < end) return undefined
  return { _tag: "DeadlinePassed", reserve, leftMillis: 0, neededMillis: 1 }
}

const pending = (books: Books, ref: HoldRef): Result.Result<Hold, Refusal> => {
  const hold = books.hold(ref)
  return hold?.state === "Pending" ? ok(hold) : refuse(notPending(ref, hold))
}

const notPending = (ref: HoldRef, hold: Hold | undefined): Refusal =>
  hold === undefined ? { _tag: "UnknownId", id: ref.id } : { _tag: "AlreadyResolved", id: ref.id, state: hold.state }

/**
 * Resolves a hold without a bill: voided, nothing of it is used; assumed, all of it. The same again changes nothing.
 *
 * **Fails with** `AlreadyResolved`, `UnknownId`.
 */
export const release = (books: Books, ref: HoldRef, state: "Voided" | "Assumed"): Result.Result<Hold, Refusal> => {
  const hold = books.hold(ref)
  if (hold?.state === state || (state === "Assumed" && hold?.state === "Adjusted")) return ok(hold)
  if (hold?.state !== "Pending") {
    return books.refused(state === "Voided" ? "void" : "assume", ref.account, ref.id, notPending(ref, hold))
  }
  const booked = state === "Voided" ? zero : hold.amounts
  const { account } = Accounts.resolve(books.account(ref.account), hold, booked)
  const resolved: Hold = { ...hold, state }
  books.put(countUnpriced(account, unpricedIn(hold, booked)))
  books.putHold(resolved)
  books.count(booked, hold.amounts)
  books.record({ _tag: state, ...resolvedOf(hold), held: nonZero(hold.amounts) })
  payDebts(books)
  serveAround(books, ref.account)
  return ok(resolved)
}

/** Books what is above a hold from wherever it was covered; what nothing covers is debt. */
export const overrun = (books: Books, hold: Hold, excess: Amounts, covered: Covered): void => {
  const [self, ...above] = covered.path
  const debt = add(self!.debt, covered.uncovered)
  for (const account of [{ ...self!, overran: true, debt }, ...above]) books.put(account)
  if (!isZero(covered.uncovered)) books.debtors.add(hold.account)
  books.record({
    _tag: "Overran",
    ...resolvedOf(hold),
    excess: nonZero(excess),
    covered: covered.sources,
    debt: nonZero(covered.uncovered),
  })
}

const settlementOf = (hold: Hold, excess: Amounts, covered: Covered): Settlement => {
  const { path } = covered.path[0]!
  const elsewhere = covered.sources.filter((source) => source.account !== path || source.reserve !== hold.reserve)
  const short = dimensions.filter((d) => elsewhere.some((s) => s.dimension === d) || covered.uncovered[d] > 0)
  return { excess, covered: short.length === 0, short }
}
