/**
 * Opening, feeding and closing accounts: what passes between a parent and its children.
 */
import * as Result from "effect/Result"
import * as Accounts from "./Account.ts"
import type { Account } from "./Account.ts"
import { type Books, defaultLimits, notOpen, refuse, type Request, underOf } from "./Books.ts"
import { type Carving, decideGrant, type EvenCarving, evenly, type Opening } from "./Carve.ts"
import { payDebts } from "./Debt.ts"
import {
  addChecked,
  type Amounts,
  amounts,
  copied,
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
import { childDeadline, clamp, divide, endOf, invalidTime, type Window } from "./Window.ts"

const ok = Result.succeed

/** The times of an account as its entry shows them, in place of those that follow from what was asked and when. */
export interface Recorded {
  readonly window: Window | undefined
}

/** Opens the first account of a tree. */
export const openRoot = (
  books: Books,
  opening: Opening & { readonly grant: Grant },
  recorded?: Recorded,
): Result.Result<Account, Refusal> => {
  const valid = validate(opening.grant, "grant")
  if (Result.isFailure(valid)) return refuse(valid.failure)
  const place = { path: opening.name, depth: 0, parent: undefined }
  const made = make(books, { ...opening, ...place, grant: valid.success }, recorded)
  if (Result.isFailure(made)) return made
  books.adopt(made.success)
  const { maxDepth, maxOpenChildren } = books.limits
  const usual = maxDepth === defaultLimits.maxDepth && maxOpenChildren === defaultLimits.maxOpenChildren
  const limits = usual ? {} : { limits: { maxDepth, maxOpenChildren } }
  books.record({ _tag: "Opened", ...openingOf(made.success), ...limits })
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
  recorded?: Recorded,
): Result.Result<Account, Refusal> => {
  const request = books.request("carve", parentId, carving.id, content)
  return unlessRefused(books, request, () => {
    if (books.wasCarvedBy(request)) return ok(books.account(carving.id))
    const refused = (reason: Refusal) => books.refused("carve", parentId, carving.id, reason, request)
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
    const place = {
      path: `${parent.path}/${carving.name}`,
      depth: parent.depth + 1,
      parent: { id: parentId, reserve },
    }
    const made = make(books, { ...carving, ...place, grant: given.success }, recorded)
    if (Result.isFailure(made)) return refused(made.failure)
    const child = made.success
    books.put(Accounts.giveToChild(parent, reserve, amounts(given.success), charge))
    books.adopt(child, request.content)
    books.count(charge)
    const asked = nonZero(amounts(carving.ask.grant))
    const from = { parent: parentId, reserve, asked, charge: nonZero(charge), content: request.content }
    books.record({ _tag: "Carved", ...openingOf(child), ...from })
    return ok(child)
  })
}

/** An account is remembered by itself; only under the id of a refused one there is an answer to give again. */
const unlessRefused = <A>(
  books: Books,
  request: Request,
  apply: () => Result.Result<A, Refusal>,
): Result.Result<A, Refusal> =>
  books.hasAnswered("carve", request.account, request.id ?? "") ? books.once(request, apply) : apply()

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
    const request = books.request("carve", parentId, one.id, content)
    return unlessRefused(books, request, () => {
      const reason = cannotCarve(books, books.account(parentId), { id: one.id, reserve }) ?? decided.failure
      return books.refused("carve", parentId, one.id, reason, request)
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
): Result.Result<Account, Refusal> => {
  const request = books.request(of.operation, of.childId, of.id, wanted)
  return books.once(request, () => {
    const refused = (reason: Refusal) => books.refused(of.operation, of.childId, of.id ?? of.childId, reason, request)
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
    const given = { parent: parent.id, amounts: nonZero(vector) }
    books.record({ _tag: tag, account: of.childId, ...given, ...underOf(request) })
    payDebts(books)
    serveAround(books, of.childId)
    return ok(books.account(of.childId))
  })
}

// --- inside

const make = (
  books: Books,
  options: Opening & {
    readonly path: string
    readonly depth: number
    readonly parent: Account["parent"]
    readonly grant: Grant
  },
  recorded: Recorded | undefined,
): Result.Result<Account, Refusal> => {
  if (books.has(options.id)) return refuse({ _tag: "IdConflict", id: options.id })
  const window = recorded === undefined ? windowOf(books, options) : ok(withinParent(books, options, recorded.window))
  if (Result.isFailure(window)) return refuse(window.failure)
  const plan = options.reserves ?? undivided
  const allocated = split(options.grant, plan, options.path)
  if (Result.isFailure(allocated)) return refuse(allocated.failure)
  const exploreAtMost = plan.exploreAtMost === undefined ? undefined : copied(plan.exploreAtMost)
  return ok(Accounts.make({ ...options, allocated: allocated.success, exploreAtMost, window: window.success }))
}

type Placed = Opening & { readonly parent: Account["parent"] }

/** The times of a new account: its deadline, and how the time until then is divided. */
const windowOf = (books: Books, options: Placed): Result.Result<Window | undefined, Refusal> => {
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
  return Result.map(deadline, (deadlineMillis) =>
    deadlineMillis === undefined
      ? undefined
      : divide({ openedAtMillis, deadlineMillis }, options.window ?? { _tag: "Scope" }),
  )
}

/** A recorded window, cut off where the parent must go on: no child outlives that. */
const withinParent = (books: Books, { parent }: Placed, window: Window | undefined): Window | undefined => {
  const limit = parent === undefined ? undefined : endOf(books.account(parent.id).window, parent.reserve)
  if (limit === undefined) return window
  return clamp(window ?? { exploreEndMillis: limit, verifyEndMillis: limit, deadlineMillis: limit }, limit)
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
  ...(self.exploreAtMost === undefined ? {} : { exploreAtMost: self.exploreAtMost }),
})

/** The caps of an account, as a grant: a cap of zero is shown, an uncapped dimension left out. */
const grantOf = (self: Account): Grant => {
  const total = Accounts.granted(self)
  const grant: { [D in Dimension]?: number } = {}
  for (const d of dimensions) if (self.caps[d]) grant[d] = total[d]
  return grant
}
