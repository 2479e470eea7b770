/**
 * Holds: an amount set aside before a call, and resolved exactly once after it.
 */
import * as Result from "effect/Result"
import * as Accounts from "./Account.ts"
import type { Account } from "./Account.ts"
import { type Books, type Hold, type HoldRef, notOpen, refuse } from "./Books.ts"
import { cover, type Covered } from "./Cover.ts"
import {
  add,
  type Amounts,
  amounts,
  dimensions,
  type Dimension,
  type Grant,
  invalidAmount,
  isZero,
  nonZero,
  validate,
  zero,
} from "./Dimension.ts"
import { payDebts } from "./Life.ts"
import type { Refusal } from "./Refusal.ts"
import type { Reserve } from "./Reserve.ts"
import { endOf } from "./Window.ts"

const ok = Result.succeed

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

/** A hold for work needs an open account; closing work may also be paid from a frozen one. */
const notWorking = (self: Account, reserve: Reserve): Refusal | undefined => {
  if (self.state === "Open") return undefined
  const closingWork = reserve === "output" || reserve === "verify"
  return self.state === "Frozen" && closingWork ? undefined : notOpen(self)
}

const resolvedOf = (hold: Hold) => ({ account: hold.account, hold: hold.id, reserve: hold.reserve })

/**
 * Sets amounts aside for one call before it is made.
 *
 * **Fails with** `Insufficient` (every short dimension), `NotOpen`, `DeadlinePassed`, `IdConflict`, `InvalidAmount`.
 */
export const place = (books: Books, ref: HoldRef, reserve: Reserve, wanted: Grant): Result.Result<Hold, Refusal> => {
  const refused = (reason: Refusal) => books.refused("hold", ref.account, ref.id, reason)
  const valid = validate(wanted, "hold")
  if (Result.isFailure(valid)) return refused(valid.failure)
  const self = books.account(ref.account)
  const closed = notWorking(self, reserve)
  if (closed !== undefined) return refused(closed)
  if (books.hold(ref) !== undefined) return refused({ _tag: "IdConflict", id: ref.id })
  const tooLate = late(books, self, reserve)
  if (tooLate !== undefined) return refused(tooLate)
  const vector = amounts(valid.success)
  if (isZero(vector)) return refused(invalidAmount("hold", 0, "hold at least one unit of some dimension"))
  const shortages = Accounts.shortagesOf(self, reserve, vector)
  const uncountable = shortages.length > 0 ? undefined : books.uncountable("hold", vector)
  if (uncountable !== undefined) return refused(uncountable)
  const placed = Accounts.hold(self, reserve, vector)
  if (Result.isFailure(placed)) return refused(placed.failure)
  const hold: Hold = { ...ref, reserve, amounts: vector, state: "Pending" }
  books.put(placed.success.account)
  books.putHold(hold)
  books.count(vector)
  books.record({
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
export const settle = (books: Books, ref: HoldRef, actual: Grant): Result.Result<Settlement, Refusal> => {
  const refused = (reason: Refusal) => books.refused("settle", ref.account, ref.id, reason)
  const valid = validate(actual, "actual")
  if (Result.isFailure(valid)) return refused(valid.failure)
  const found = pending(books, ref)
  if (Result.isFailure(found)) return refused(found.failure)
  const hold = found.success
  const bill = amounts(valid.success)
  const uncountable = books.uncountable("actual", bill, hold.amounts)
  if (uncountable !== undefined) return refused(uncountable)
  const [self, ...above] = books.pathOf(ref.account)
  const { account, excess } = Accounts.resolve(self!, hold, bill)
  const covered = cover([account, ...above], hold.reserve, excess)
  if (!covered.path.every(Accounts.isExact))
    return refused(invalidAmount("actual", "more than can be counted", wrongBill))
  resolve(books, hold, "Settled", { account, booked: bill })
  books.record({ _tag: "Settled", ...resolvedOf(hold), held: nonZero(hold.amounts), actual: nonZero(bill) })
  const settlement = isZero(excess) ? withinHold : overrun(books, hold, excess, covered)
  payDebts(books)
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
  if (hold === undefined) return refuse({ _tag: "UnknownId", id: ref.id })
  return hold.state === "Pending" ? ok(hold) : refuse({ _tag: "AlreadyResolved", id: ref.id, state: hold.state })
}

const resolve = (
  books: Books,
  hold: Hold,
  state: Hold["state"],
  as: { readonly account: Account; readonly booked: Amounts },
): Hold => {
  const resolved: Hold = { ...hold, state }
  books.put(as.account)
  books.putHold(resolved)
  books.count(as.booked, hold.amounts)
  return resolved
}

/**
 * Resolves a hold without a bill: voided, nothing of it is used; assumed, all of it.
 *
 * **Fails with** `AlreadyResolved`, `UnknownId`.
 */
export const release = (books: Books, ref: HoldRef, state: "Voided" | "Assumed"): Result.Result<Hold, Refusal> => {
  const found = pending(books, ref)
  if (Result.isFailure(found))
    return books.refused(state === "Voided" ? "void" : "assume", ref.account, ref.id, found.failure)
  const hold = found.success
  const booked = state === "Voided" ? zero : hold.amounts
  const { account } = Accounts.resolve(books.account(ref.account), hold, booked)
  const resolved = resolve(books, hold, state, { account, booked })
  books.record({ _tag: state, ...resolvedOf(hold), held: nonZero(hold.amounts) })
  payDebts(books)
  return ok(resolved)
}

const overrun = (books: Books, hold: Hold, excess: Amounts, covered: Covered): Settlement => {
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
  const elsewhere = covered.sources.filter((s) => s.account !== self!.path || s.reserve !== hold.reserve)
  const short = dimensions.filter((d) => elsewhere.some((s) => s.dimension === d) || covered.uncovered[d] > 0)
  return { excess, covered: short.length === 0, short }
}
