/**
 * Waiting for more: elastic slices. A child that needs more than its slice gives back what of its explore is free, holds
 * nothing, and stands in line at its parent until the whole of what it needs fits. It is refused at once when all that
 * its open siblings could still return would not cover it.
 *
 * First come, first served: one large ask can hold up small ones behind it. Nobody holds while waiting, and a sibling
 * that waits itself counts for nothing, so two waiting children never block each other: the first in line is served or
 * refused by what the others still have.
 */
import * as Result from "effect/Result"
import * as Accounts from "./Account.ts"
import type { Account } from "./Account.ts"
import { type Books, notOpen, type Waiting } from "./Books.ts"
import { payDebts } from "./Debt.ts"
import {
  type Amounts,
  amounts,
  type Dimension,
  dimensions,
  type Grant,
  invalidAmount,
  map,
  min,
  nonZero,
  onlyCapped,
  subtract,
  validate,
  zero,
} from "./Dimension.ts"
import type { Refusal, Shortage } from "./Refusal.ts"
import type { Reserve } from "./Reserve.ts"

/** What a child waits for: as much as `need`, at least `least`. */
export interface Need {
  readonly need: Grant
  readonly least: Grant
}

/** How a wait ended. */
export type Ended = Result.Result<Amounts, Refusal>

/**
 * Joins the line at the parent; `onEnd` is called once, at once or later.
 *
 * **Fails with** `NotOpen`, `InvalidAmount` (also for a root, which has no one to ask), `Insufficient`.
 */
export const wait = (books: Books, id: string, wanted: Need, onEnd: (ended: Ended) => void): void => {
  const refused = (reason: Refusal) => onEnd(books.refused("wait", id, id, reason))
  const [need, least] = [validate(wanted.need, "need"), validate(wanted.least, "least")]
  if (Result.isFailure(need)) return refused(need.failure)
  if (Result.isFailure(least)) return refused(least.failure)
  const child = books.account(id)
  if (child.parent === undefined) return refused(invalidAmount("wait", child.path, "a root has no one to ask"))
  const parent = books.account(child.parent.id)
  for (const account of [child, parent]) if (account.state !== "Open") return refused(notOpen(account))
  if (books.isWaiting(id)) return refused(invalidAmount("wait", child.path, "it stands in line already"))
  const { reserve } = child.parent
  const asked = onlyCapped(amounts(need.success), child.caps)
  const floor = min(asked, onlyCapped(amounts(least.success), child.caps))
  const waiting: Waiting = { child: id, reserve, need: asked, least: floor, onEnd }
  // First in line, it is refused at once where even all that could come would not do; then nothing has changed.
  const first = books.headOfLine(parent.id) === undefined
  const hopeless = first ? shortEvenWith(books, parent, waiting, freeOf(child)) : []
  if (hopeless.length > 0) return refused({ _tag: "Insufficient", shortages: hopeless })
  const returned = giveBack(books, parent, child, reserve)
  books.joinLine(parent.id, waiting)
  const shown = { need: nonZero(asked), least: nonZero(floor), returned: nonZero(returned) }
  books.record({ _tag: "Waited", account: id, parent: parent.id, ...shown })
  payDebts(books)
  serve(books, parent.id)
}

/** Leaves the line, if it stands in one. */
export const leave = (books: Books, id: string, reason: Refusal): void => {
  const waiting = books.leaveLine(id)
  if (waiting === undefined) return
  waiting.onEnd(books.refused("wait", id, id, reason))
  const parent = books.account(id).parent
  if (parent !== undefined) serve(books, parent.id)
  serve(books, id)
}

/** Serves and refuses from the head of a line until the head can neither be served nor is hopeless. */
export const serve = (books: Books, parentId: string): void => {
  for (;;) {
    const head = books.headOfLine(parentId)
    if (head === undefined) return
    const parent = books.account(parentId)
    // Nobody is served by a parent that stands still, or whose new work has ended: a freeze is about to reach all who wait.
    if (parent.state !== "Open") return
    const room = map((d) => (parent.caps[d] ? Accounts.spendable(parent, head.reserve, d) : Number.MAX_SAFE_INTEGER))
    if (dimensions.every((d) => head.least[d] <= room[d])) give(books, parent, head, min(head.need, room))
    else if (shortEvenWith(books, parent, head, zero).length > 0) giveUp(books, parent, head)
    else return
    // Whoever stands in its own line waited for what it gave back, and is decided with it.
    serve(books, head.child)
  }
}

/** After something changed in an account: its own line, and the line it could return something to. */
export const serveAround = (books: Books, id: string): void => {
  if (!books.hasLines) return
  serve(books, id)
  const { parent } = books.account(id)
  if (parent !== undefined) serve(books, parent.id)
}

/** What a child has free in explore. */
const freeOf = (child: Account): Amounts =>
  onlyCapped(
    map((d) => Accounts.free(child.funds.explore, d)),
    child.caps,
  )

const giveBack = (books: Books, parent: Account, child: Account, reserve: Reserve): Amounts => {
  const free = freeOf(child)
  const [from, to] = [child.funds.explore, parent.funds[reserve]]
  books.put(Accounts.withFund(child, "explore", { ...from, allocated: subtract(from.allocated, free) }))
  books.put(Accounts.withFund(parent, reserve, { ...to, carved: subtract(to.carved, free) }))
  return free
}

/** What the reserve has now, and all that open siblings that do not wait themselves could still return to it. */
const couldReturn = (books: Books, parent: Account, head: Waiting): Amounts => {
  const siblings = books
    .childrenOf(parent.id)
    .filter((one) => one.id !== head.child && one.parent!.reserve === head.reserve && !books.isWaiting(one.id))
  return map((d) => {
    const now = Accounts.available(parent, head.reserve, d)
    if (now === undefined) return Number.MAX_SAFE_INTEGER
    return siblings.reduce((sum, one) => sum + unspent(one, d), now)
  })
}

const unspent = (self: Account, d: Dimension): number =>
  self.caps[d] ? Accounts.granted(self)[d] - Accounts.used(self)[d] : 0

const give = (books: Books, parent: Account, head: Waiting, given: Amounts): void => {
  books.leaveLine(head.child)
  const child = books.account(head.child)
  const fund = parent.funds[head.reserve]
  const vector = onlyCapped(given, child.caps)
  books.put(Accounts.withFund(parent, head.reserve, { ...fund, carved: map((d) => fund.carved[d] + vector[d]) }))
  books.put(Accounts.raise(child, "explore", vector))
  books.record({ _tag: "Served", account: head.child, parent: parent.id, amounts: nonZero(vector) })
  head.onEnd(Result.succeed(vector))
}

const giveUp = (books: Books, parent: Account, head: Waiting): void => {
  books.leaveLine(head.child)
  const shortages = shortEvenWith(books, parent, head, zero)
  head.onEnd(books.refused("wait", head.child, head.child, { _tag: "Insufficient", shortages }))
}

/** Where `least` is more than all that could still be there, together with what the child itself gives back. */
const shortEvenWith = (books: Books, parent: Account, one: Waiting, own: Amounts): ReadonlyArray<Shortage> => {
  const possible = couldReturn(books, parent, one)
  return dimensions.flatMap((d): ReadonlyArray<Shortage> => {
    const available = parent.caps[d] ? possible[d] + own[d] : Number.MAX_SAFE_INTEGER
    if (one.least[d] <= available) return []
    const shortage = { dimension: d, reserve: one.reserve, asked: one.least[d], available, account: parent.path }
    return [{ ...shortage, whose: "parent" }]
  })
}
