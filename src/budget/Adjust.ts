/**
 * Correcting an assumption. A hold whose outcome was unknown was booked whole; when its bill becomes known after all, the
 * difference is put right, once, even if the account has closed meanwhile.
 */
import * as Result from "effect/Result"
import * as Accounts from "./Account.ts"
import type { Account } from "./Account.ts"
import type { Books, Hold, HoldRef } from "./Books.ts"
import { cover } from "./Cover.ts"
import { payDebts } from "./Debt.ts"
import {
  type Amounts,
  amounts,
  type Grant,
  invalidAmount,
  isZero,
  min,
  nonZero,
  subtract,
  validate,
  zero,
} from "./Dimension.ts"
import { countUnpriced, overrun, unpricedIn } from "./Holds.ts"
import { serveAround } from "./Line.ts"
import type { Refusal } from "./Refusal.ts"
import type { Reserve } from "./Reserve.ts"

/**
 * Corrects an assumed hold to its real bill. What was assumed too much is free again; what was assumed too little is
 * covered like an over-run. On a closed account both land on the nearest open account above it, in the reserve that
 * funded the way down, and the rows of the closed ones are put right as well.
 *
 * **Fails with** `AlreadyResolved`, `UnknownId`, `InvalidAmount`.
 */
export const adjust = (books: Books, ref: HoldRef, actual: Grant): Result.Result<Hold, Refusal> => {
  const refused = (reason: Refusal) => books.refused("adjust", ref.account, ref.id, reason)
  const valid = validate(actual, "actual")
  if (Result.isFailure(valid)) return refused(valid.failure)
  const bill = amounts(valid.success)
  const hold = books.hold(ref)
  if (hold === undefined) return refused({ _tag: "UnknownId", id: ref.id })
  const known = hold.resolution
  if (hold.state === "Adjusted" && known !== undefined && isZero(subtract(known.bill, bill)))
    return Result.succeed(hold)
  if (hold.state !== "Assumed") return refused({ _tag: "AlreadyResolved", id: ref.id, state: hold.state })
  const uncountable = books.uncountable("actual", bill, hold.amounts)
  if (uncountable !== undefined) return refused(uncountable)
  const closed = closedPath(books, ref.account)
  const owner = nearestOpen(books, ref.account)
  if (owner === undefined) return refused(invalidAmount("adjust", "a closed run", "its books are final"))
  const reserve = closed.at(-1)?.parent?.reserve ?? hold.reserve
  const excess = subtract(bill, min(bill, hold.amounts))
  if (!isZero(excess) && !cover(books.pathOf(owner), reserve, excess).path.every(Accounts.isExact))
    return refused(invalidAmount("actual", "more than can be counted", "look at what was reported"))
  giveBack(books, { hold, closed, owner, reserve }, subtract(hold.amounts, min(bill, hold.amounts)))
  const corrected = unpricedIn(hold, bill) - unpricedIn(hold, hold.amounts)
  books.put(countUnpriced(books.account(ref.account), corrected))
  const resolution = { bill, settlement: { excess: zero, covered: true, short: [] } }
  const adjusted: Hold = { ...hold, state: "Adjusted", resolution }
  books.putHold(adjusted)
  books.count(bill, hold.amounts)
  const shown = { held: nonZero(hold.amounts), actual: nonZero(bill), landedOn: owner }
  books.record({ _tag: "Adjusted", account: ref.account, hold: ref.id, reserve: hold.reserve, ...shown })
  if (!isZero(excess))
    overrun(books, { ...hold, account: owner, reserve }, excess, cover(books.pathOf(owner), reserve, excess))
  payDebts(books)
  serveAround(books, owner)
  return Result.succeed(adjusted)
}

/** The closed accounts from here up. */
const closedPath = (books: Books, id: string): ReadonlyArray<Account> => {
  const path = books.pathOf(id)
  const firstOpen = path.findIndex((account) => account.state !== "Closed")
  return firstOpen < 0 ? path : path.slice(0, firstOpen)
}

const nearestOpen = (books: Books, id: string): string | undefined =>
  books.pathOf(id).find((account) => account.state !== "Closed")?.id

/** Takes `less` out of what was used, at the account itself, at the closed ones above it, and where they lead to. */
const giveBack = (
  books: Books,
  at: {
    readonly hold: Hold
    readonly closed: ReadonlyArray<Account>
    readonly owner: string
    readonly reserve: Reserve
  },
  less: Amounts,
): void => {
  let reserve = at.hold.reserve
  let own = true
  for (const account of [...at.closed, books.account(at.owner)]) {
    const fund = account.funds[reserve]
    const corrected = Accounts.withFund(account, reserve, { ...fund, used: subtract(fund.used, less) })
    books.put(own ? corrected : { ...corrected, childrenUsed: subtract(account.childrenUsed, less) })
    reserve = account.parent?.reserve ?? reserve
    own = false
  }
}
