/**
 * Opening, feeding and closing accounts: what passes between a parent and its children.
 */
import * as Result from "effect/Result"
import * as Accounts from "./Account.ts"
import type { Account } from "./Account.ts"
import { type Books, notOpen, refuse } from "./Books.ts"
import { type Carving, decideGrant, type EvenCarving, evenly, type Opening } from "./Carve.ts"
import { payDebts } from "./Debt.ts"
import {
  addChecked,
  type Amounts,
  amounts,
  type Dimension,
  dimensions,
  type Grant,
  invalidAmount,
  maximum,
  nonZero,
  onlyCapped,
  subtract,
  validate,
  wrongIn,
  zero,
} from "./Dimension.ts"
import { leave, serveAround } from "./Line.ts"
import type { Refusal, Shortage } from "./Refusal.ts"
import { type Reserve, split, undivided } from "./Reserve.ts"
import { childDeadline, divide, invalidTime } from "./Window.ts"

const ok = Result.succeed

/** Opens the first account of a tree. */
export const openRoot = (
  books: Books,
  opening: Opening & { readonly grant: Grant },
): Result.Result<Account, Refusal> => {
  const valid = validate(opening.grant, "grant")
  if (Result.isFailure(valid)) return refuse(valid.failure)
  const made = make(books, { ...opening, path: opening.name, depth: 0, parent: undefined, grant: valid.success })
  if (Result.isFailure(made)) return made
  books.adopt(made.success)
  books.record({ _tag: "Opened", ...openingOf(made.success) })
  return made
}

/**
 * Carves a child out of what the parent has left.
 *
 * **Fails with** `Insufficient` (of the parent, or below the child's minimum), `NotOpen`, `TooDeep`,
 * `TooManyChildren`, `DeadlinePassed`, `IdConflict`, `InvalidAmount`.
 */
export const carve = (
  books: Books,
  parentId: string,
  carving: Carving,
  content: unknown = carving,
): Result.Result<Account, Refusal> =>
  books.unlessRefused({ operation: "carve", account: parentId, id: carving.id, content }, () => {
    if (books.wasCarvedBy(carving.id, parentId, content)) return ok(books.account(carving.id))
    const refused = (reason: Refusal) => books.refused("carve", parentId, carving.id, reason)
    const parent = books.account(parentId)
    const reserve = carving.reserve ?? "explore"
    const obstacle = cannotCarve(books, parent, { id: carving.id, reserve })
    if (obstacle !== undefined) return refused(obstacle)
    const wrongCharge = carving.charge === undefined ? undefined : wrongIn(carving.charge, "charge")
    if (wrongCharge !== undefined) return refused(wrongCharge)
    const charge = carving.charge === undefined ? zero : amounts(carving.charge)
    const given = decideGrant(parent, reserve, carving, charge)
    if (Result.isFailure(given)) return refused(given.failure)
    const uncountable = books.uncountable("charge", charge)
    if (uncountable !== undefined) return refused(uncountable)
    const [path, depth] = [`${parent.path}/${carving.name}`, parent.depth + 1]
    const made = make(books, { ...carving, path, depth, parent: { id: parentId, reserve }, grant: given.success })
    if (Result.isFailure(made)) return refused(made.failure)
    const child = made.success
    books.put(Accounts.giveToChild(parent, reserve, amounts(given.success), charge))
    books.adopt(child, content)
    books.count(charge)
    const asked = nonZero(amounts(carving.ask.grant))
    const paid = nonZero(charge)
    books.record({ _tag: "Carved", ...openingOf(child), parent: parentId, reserve, asked, charge: paid })
    return ok(child)
  })

/**
 * Carves a batch in equal parts: the longest prefix for which every minimum fits an equal share, rounded down, of
 * what the reserve has left after the charges. The rest is refused before it spends anything, for its own minimum or
 * for one before it in the batch.
 */
export const carveAll = (
  books: Books,
  parentId: string,
  batch: ReadonlyArray<EvenCarving>,
  reserve: Reserve = "explore",
): ReadonlyArray<Result.Result<Account, Refusal>> => {
  // What was answered before is answered again, and has no part in what is left.
  const isNew = ({ id }: EvenCarving) => !books.has(id) && !books.hasAnswered("carve", parentId, id)
  const decisions = evenly(books.account(parentId), reserve, batch.filter(isNew))
  let place = 0
  return batch.map(isNew).map((fresh, index) => {
    const one = batch[index]!
    const content = { evenly: one, reserve }
    const decided = fresh ? decisions[place++]! : Result.succeed(asAsked(one, reserve))
    if (Result.isSuccess(decided)) return carve(books, parentId, decided.success, content)
    return books.unlessRefused({ operation: "carve", account: parentId, id: one.id, content }, () => {
      const reason = cannotCarve(books, books.account(parentId), { id: one.id, reserve }) ?? decided.failure
      return books.refused("carve", parentId, one.id, reason)
    })
  })
}

const asAsked = (one: EvenCarving, reserve: Reserve): Carving => ({
  ...one,
  reserve,
  ask: { _tag: "AtMost", grant: one.floor, floor: one.floor },
})

/**
 * Ends an account and gives what it did not use back to the reserve that funded it. Closing a closed account again
 * answers the same and changes nothing.
 *
 * **Fails with** `NotQuiescent` while a hold is pending or a child open.
 */
export const close = (books: Books, id: string): Result.Result<Account, Refusal> => {
  const self = books.account(id)
  if (self.state === "Closed") return ok(self)
  if (self.pendingHolds > 0 || self.openChildren > 0) {
    const { pendingHolds, openChildren } = self
    return books.refused("close", id, id, { _tag: "NotQuiescent", pendingHolds, openChildren })
  }
  leave(books, id, notOpen({ ...self, state: "Closed" }))
  const closed: Account = { ...books.account(id), state: "Closed" }
  const [granted, used] = [Accounts.granted(self), Accounts.used(self)]
  books.bury(closed)
  if (self.parent !== undefined) {
    const parent = books.account(self.parent.id)
    books.put(Accounts.takeFromChild(parent, self, self.parent.reserve))
    if (books.debtors.delete(id)) books.debtors.add(parent.id)
  }
  books.record({
    _tag: "Closed",
    account: id,
    granted: nonZero(granted),
    own: nonZero(subtract(used, self.childrenUsed)),
    children: nonZero(self.childrenUsed),
    returned: nonZero(onlyCapped(subtract(granted, used), self.caps)),
    debt: nonZero(self.debt),
  })
  payDebts(books)
  if (self.parent !== undefined) serveAround(books, self.parent.id)
  return ok(closed)
}

/**
 * Gives an open child more of what the reserve that funds it has left in its parent; it goes into the child's explore.
 *
 * **Fails with** `Insufficient`, `NotOpen`, `InvalidAmount` (also for a root, which is amended instead).
 */
export const topUp = (books: Books, childId: string, wanted: Grant, id?: string): Result.Result<Account, Refusal> =>
  transfer(books, { operation: "topUp", childId, id }, wanted, (parent, child, reserve, vector) => {
    const shortages = Accounts.shortagesToSpend(parent, reserve, vector).map((one): Shortage => ({
      ...one,
      whose: "parent",
    }))
    if (shortages.length > 0) return { _tag: "Insufficient", shortages }
    const fund = parent.funds[reserve]
    const past = dimensions.find((d) => fund.carved[d] + vector[d] > maximum)
    if (past !== undefined) {
      const remedy = `keep the sum of all open children within ${maximum}`
      return invalidAmount(`topUp.${past}`, vector[past], remedy)
    }
    books.put(Accounts.withFund(parent, reserve, { ...fund, carved: addChecked(fund.carved, vector) }))
    books.put(Accounts.raise(child, "explore", vector))
    return undefined
  })

/**
 * Takes back part of what is free in a child's explore.
 *
 * **Fails with** `Insufficient`, `NotOpen`, `InvalidAmount` (also for a root).
 */
export const reclaim = (books: Books, childId: string, wanted: Grant, id?: string): Result.Result<Account, Refusal> =>
  transfer(books, { operation: "reclaim", childId, id }, wanted, (parent, child, reserve, vector) => {
    const shortages = Accounts.shortagesWithin(child, "explore", vector)
    if (shortages.length > 0) return { _tag: "Insufficient", shortages }
    const [from, to] = [child.funds.explore, parent.funds[reserve]]
    books.put(Accounts.withFund(child, "explore", { ...from, allocated: subtract(from.allocated, vector) }))
    books.put(Accounts.withFund(parent, reserve, { ...to, carved: subtract(to.carved, vector) }))
    return undefined
  })

/** Moves part of a grant over the link between a child and its parent; both must be open. */
const transfer = (
  books: Books,
  of: { readonly operation: "topUp" | "reclaim"; readonly childId: string; readonly id: string | undefined },
  wanted: Grant,
  apply: (parent: Account, child: Account, reserve: Reserve, vector: Amounts) => Refusal | undefined,
): Result.Result<Account, Refusal> =>
  books.once({ operation: of.operation, account: of.childId, id: of.id, content: wanted }, () => {
    const refused = (reason: Refusal) => books.refused(of.operation, of.childId, of.id ?? of.childId, reason)
    const valid = validate(wanted, of.operation)
    if (Result.isFailure(valid)) return refused(valid.failure)
    const child = books.account(of.childId)
    if (child.parent === undefined) return refused(invalidAmount(of.operation, child.path, "amend the root instead"))
    const parent = books.account(child.parent.id)
    for (const account of [child, parent]) if (account.state !== "Open") return refused(notOpen(account))
    const vector = onlyCapped(amounts(valid.success), child.caps)
    const reason = apply(parent, child, child.parent.reserve, vector)
    if (reason !== undefined) return refused(reason)
    const tag = of.operation === "topUp" ? "ToppedUp" : "Reclaimed"
    books.record({ _tag: tag, account: of.childId, parent: parent.id, amounts: nonZero(vector) })
    payDebts(books)
    serveAround(books, of.childId)
    return ok(books.account(of.childId))
  })

// --- inside

const make = (
  books: Books,
  options: Opening & {
    readonly path: string
    readonly depth: number
    readonly parent: Account["parent"]
    readonly grant: Grant
  },
): Result.Result<Account, Refusal> => {
  if (books.has(options.id)) return refuse({ _tag: "IdConflict", id: options.id })
  const openedAtMillis = books.nowMillis()
  const wrongTime = invalidTime(options, openedAtMillis)
  if (wrongTime !== undefined) return refuse(wrongTime)
  const deadline = childDeadline({
    parent: options.parent === undefined ? undefined : books.account(options.parent.id).window,
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
  const { exploreAtMost } = options.reserves ?? undivided
  return ok(Accounts.make({ ...options, allocated: allocated.success, exploreAtMost, window }))
}

const cannotCarve = (
  books: Books,
  parent: Account,
  of: { readonly id: string; readonly reserve: Reserve },
): Refusal | undefined => {
  if (parent.state !== "Open") return notOpen(parent)
  if (of.reserve === "output") return invalidAmount("reserve", of.reserve, "fund a child from explore, retry or verify")
  if (books.has(of.id)) return { _tag: "IdConflict", id: of.id }
  const { maxDepth, maxOpenChildren } = books.limits
  if (parent.depth + 1 > maxDepth) return { _tag: "TooDeep", limit: maxDepth }
  return parent.openChildren >= maxOpenChildren ? { _tag: "TooManyChildren", limit: maxOpenChildren } : undefined
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
  const grant: { [D in Dimension]?: number } = {}
  for (const d of dimensions) if (self.caps[d]) grant[d] = total[d]
  return grant
}
