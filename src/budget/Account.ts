/**
 * One node of the budget tree as an immutable record, and the arithmetic that decides over it.
 *
 * For each reserve `r` and dimension `d` a {@link Fund} holds `allocated` (A), `held` (H), `carved` (C, out to open
 * children) and `used` (U, own and closed children's), and **available = A - H - C - U**. In an uncapped dimension A
 * stays 0 and the rest is counted without being limited.
 *
 * Functions in here are pure: they return a new record or a refusal. The tree that holds the records is
 * {@link Ledger}; covering an over-run along the path to the root is in `Cover.ts`.
 */
import * as Result from "effect/Result"
import {
  add,
  addChecked,
  type Amounts,
  type Capped,
  capped,
  dimensions,
  type Dimension,
  fits,
  type Grant,
  isZero,
  map,
  maximum,
  min,
  onlyCapped,
  subtract,
  zero,
} from "./Dimension.ts"
import type { Refusal, Shortage } from "./Refusal.ts"
import { floorShare, type PerReserve, type Reserve, reserves } from "./Reserve.ts"
import type { Window } from "./Window.ts"

/**
 * What one reserve of an account was given and what became of it.
 *
 * @category accounts
 * @since 0.1.0
 */
export interface Fund {
  readonly allocated: Amounts
  readonly held: Amounts
  readonly carved: Amounts
  readonly used: Amounts
}

/**
 * `Open <-> Paused`, `Open -> Frozen -> Draining -> Closed`. Frozen: no new work and no children, but the closing
 * work (verification, wrap-up) may still be paid. Draining: only pending holds may be resolved and accounts closed.
 *
 * @category accounts
 * @since 0.1.0
 */
export type State = "Open" | "Paused" | "Frozen" | "Draining" | "Closed"

/**
 * A node of the budget tree.
 *
 * @category accounts
 * @since 0.1.0
 */
export interface Account {
  readonly id: string
  /** Names from the root down, joined with `/`. */
  readonly path: string
  readonly name: string
  readonly depth: number
  /** The parent and the reserve of the parent that funds this account; absent at the root. */
  readonly parent: { readonly id: string; readonly reserve: Reserve } | undefined
  readonly state: State
  /** Why it is paused, frozen or draining; the first cause stays. */
  readonly cause: string
  readonly pausedAtMillis: number | undefined
  /** The account whose pause stopped this one: itself or one above it. */
  readonly pausedBy: string | undefined
  readonly caps: Capped
  readonly funds: PerReserve<Fund>
  /** What each reserve got at the opening; senior reserves only shrink by their own use or a cover. */
  readonly opening: PerReserve<Amounts>
  /** The most of explore that exploring itself may use, in percent; without it all. */
  readonly exploreAtMost: Grant | undefined
  /** The part of `used` that closed children used. */
  readonly childrenUsed: Amounts
  /** Bills that nothing on the path could cover. */
  readonly debt: Amounts
  /** True once a bill exceeded its hold. */
  readonly overran: boolean
  /** Calls of its own whose money nobody knows; in `used` they stand without any. */
  readonly unpricedCalls: number
  readonly openChildren: number
  readonly pendingHolds: number
  readonly window: Window | undefined
}

/** A fresh, open account. */
export const make = (options: {
  readonly id: string
  readonly name: string
  readonly path: string
  readonly depth: number
  readonly parent: Account["parent"]
  readonly grant: Grant
  readonly allocated: PerReserve<Amounts>
  readonly exploreAtMost?: Grant | undefined
  readonly window: Window | undefined
}): Account => ({
  id: options.id,
  path: options.path,
  name: options.name,
  depth: options.depth,
  parent: options.parent,
  state: "Open",
  cause: "",
  pausedAtMillis: undefined,
  pausedBy: undefined,
  caps: capped(options.grant),
  funds: {
    explore: fund(options.allocated.explore),
    retry: fund(options.allocated.retry),
    verify: fund(options.allocated.verify),
    output: fund(options.allocated.output),
  },
  opening: options.allocated,
  exploreAtMost: options.exploreAtMost,
  childrenUsed: zero,
  debt: zero,
  overran: false,
  unpricedCalls: 0,
  openChildren: 0,
  pendingHolds: 0,
  window: options.window,
})

const fund = (allocated: Amounts): Fund => ({ allocated, held: zero, carved: zero, used: zero })

/**
 * What may still be held from one reserve; `undefined` where the dimension is uncapped.
 *
 * **Units**: those of the dimension.
 *
 * @category queries
 * @since 0.1.0
 */
export const available = (self: Account, reserve: Reserve, dimension: Dimension): number | undefined =>
  self.caps[dimension] ? free(self.funds[reserve], dimension) : undefined

/** A - H - C - U of one fund, whether or not the dimension is capped. */
export const free = (self: Fund, d: Dimension): number =>
  self.allocated[d] - self.held[d] - self.carved[d] - self.used[d]

/** What work of that reserve may still take from it alone: what is free, for exploring less what it may not use. */
export const spendable = (self: Account, reserve: Reserve, d: Dimension): number => {
  const fund = self.funds[reserve]
  const left = free(fund, d)
  const percent = reserve === "explore" ? self.exploreAtMost?.[d] : undefined
  if (percent === undefined) return left
  return Math.max(0, Math.min(left, floorShare(fund.allocated[d], percent) - (fund.allocated[d] - left)))
}

/** What work of a reserve may take from it, in the capped dimensions. */
export const availableIn = (self: Account, reserve: Reserve): Grant => {
  const left: { [D in Dimension]?: number } = {}
  for (const d of dimensions) if (self.caps[d]) left[d] = spendable(self, reserve, d)
  return left
}

/** What a hold in `reserve` could take at most: its own reserve and, for senior ones, explore. */
export const reachable = (self: Account, reserve: Reserve, dimension: Dimension): number | undefined => {
  if (!self.caps[dimension]) return undefined
  const own = spendable(self, reserve, dimension)
  return reserve === "explore" ? own : own + free(self.funds.explore, dimension)
}

/** Sum over the reserves. */
const total = (self: Account, f: (fund: Fund) => Amounts): Amounts => {
  const { explore, retry, verify, output } = self.funds
  return add(add(f(explore), f(retry)), add(f(verify), f(output)))
}

/** The whole grant: what was given at the opening, plus what was topped up, amended or used to cover since. */
export const granted = (self: Account): Amounts => total(self, (fund) => fund.allocated)

/** Whether every sum of an account is still exact; only a bill of absurd size can bring one past 2^53 - 1. */
export const isExact = (self: Account): boolean =>
  reserves.every((reserve) =>
    dimensions.every((d) => {
      const { allocated, carved, used } = self.funds[reserve]
      return Math.max(allocated[d], carved[d], used[d]) <= maximum
    }),
  )

/** Own use and that of closed children. */
export const used = (self: Account): Amounts => total(self, (fund) => fund.used)

/** Own use alone. */
export const ownUsed = (self: Account): Amounts => subtract(used(self), self.childrenUsed)

/** What is set aside for calls in flight. */
export const held = (self: Account): Amounts => total(self, (fund) => fund.held)

/** What open children have. */
export const carved = (self: Account): Amounts => total(self, (fund) => fund.carved)

/** What would go back to the parent now, in the capped dimensions. */
export const unused = (self: Account): Amounts =>
  onlyCapped(subtract(granted(self), add(used(self), add(held(self), carved(self)))), self.caps)

/** Replaces one fund. */
export const withFund = (self: Account, reserve: Reserve, fund: Fund): Account => ({
  ...self,
  funds: replaced(self.funds, reserve, fund),
})

const replaced = (funds: PerReserve<Fund>, reserve: Reserve, fund: Fund): PerReserve<Fund> => ({
  explore: reserve === "explore" ? fund : funds.explore,
  retry: reserve === "retry" ? fund : funds.retry,
  verify: reserve === "verify" ? fund : funds.verify,
  output: reserve === "output" ? fund : funds.output,
})

/**
 * Sets `amounts` aside in a reserve. What is missing there is moved from explore (never from a senior reserve), and
 * stays in the reserve.
 *
 * **Fails with** `Insufficient`, listing every short dimension.
 *
 * @category operations
 * @since 0.1.0
 */
export const hold = (
  self: Account,
  reserve: Reserve,
  amounts: Amounts,
): Result.Result<{ readonly account: Account; readonly moved: Amounts }, Refusal> => {
  if (!fitsIn(self, reserve, amounts)) {
    return Result.fail({ _tag: "Insufficient", shortages: shortagesOf(self, reserve, amounts) })
  }
  const moved = missingIn(self, reserve, amounts)
  const lent = move(self, "explore", reserve, moved)
  const { allocated, held, carved, used } = lent.funds[reserve]
  const funds = replaced(lent.funds, reserve, { allocated, held: addChecked(held, amounts), carved, used })
  return Result.succeed({ account: { ...lent, funds, pendingHolds: lent.pendingHolds + 1 }, moved })
}

/** Whether `amounts` fits a reserve and what it may borrow. */
export const fitsIn = (self: Account, reserve: Reserve, amounts: Amounts): boolean => {
  const { caps, funds } = self
  for (const d of dimensions) {
    if (amounts[d] === 0 || !caps[d]) continue
    const own = spendable(self, reserve, d)
    if (amounts[d] > (reserve === "explore" ? own : own + free(funds.explore, d))) return false
  }
  return true
}

/** What a reserve lacks for `amounts`, in the capped dimensions. */
export const missingIn = (self: Account, reserve: Reserve, amounts: Amounts): Amounts =>
  reserve === "explore" ? zero : map((d) => (self.caps[d] ? Math.max(0, amounts[d] - free(self.funds[reserve], d)) : 0))

/** Every dimension in which `amounts` does not fit a reserve and what it may borrow. */
export const shortagesOf = (self: Account, reserve: Reserve, amounts: Amounts): ReadonlyArray<Shortage> =>
  shortages(self, { reserve, amounts, most: (dimension) => reachable(self, reserve, dimension) })

/** Every dimension in which `amounts` does not fit a reserve alone. */
export const shortagesWithin = (self: Account, reserve: Reserve, amounts: Amounts): ReadonlyArray<Shortage> =>
  shortages(self, { reserve, amounts, most: (dimension) => available(self, reserve, dimension) })

/** Every dimension in which `amounts` does not fit what work of a reserve may take from it alone. */
export const shortagesToSpend = (self: Account, reserve: Reserve, amounts: Amounts): ReadonlyArray<Shortage> =>
  shortages(self, { reserve, amounts, most: (d) => (self.caps[d] ? spendable(self, reserve, d) : undefined) })

const shortages = (
  self: Account,
  asked: {
    readonly reserve: Reserve
    readonly amounts: Amounts
    readonly most: (dimension: Dimension) => number | undefined
  },
): ReadonlyArray<Shortage> => {
  const { reserve, amounts } = asked
  const short: Array<Shortage> = []
  for (const dimension of dimensions) {
    const most = asked.most(dimension)
    if (most !== undefined && amounts[dimension] > most) {
      short.push({ dimension, reserve, asked: amounts[dimension], available: most, account: self.path, whose: "own" })
    }
  }
  return short
}

/** Moves part of the allocation of one reserve to another; the caller has checked that it is free. */
export const move = (self: Account, from: Reserve, to: Reserve, amounts: Amounts): Account => {
  if (from === to || isZero(amounts)) return self
  const [source, target] = [self.funds[from], self.funds[to]]
  return {
    ...self,
    funds: {
      ...self.funds,
      [from]: { ...source, allocated: subtract(source.allocated, amounts) },
      [to]: { ...target, allocated: add(target.allocated, amounts) },
    },
  }
}

/**
 * Resolves a hold: it leaves `held`, and `booked` of it, at most what was held, becomes used.
 *
 * What the bill exceeds the hold by comes back as `excess`, to be covered along the path.
 *
 * @category operations
 * @since 0.1.0
 */
export const resolve = (
  self: Account,
  hold: { readonly reserve: Reserve; readonly amounts: Amounts },
  bill: Amounts,
): { readonly account: Account; readonly excess: Amounts } => {
  const { allocated, held, carved, used } = self.funds[hold.reserve]
  const within = fits(bill, hold.amounts)
  const booked = within ? bill : min(bill, hold.amounts)
  const fund = { allocated, held: subtract(held, hold.amounts), carved, used: addChecked(used, booked) }
  const funds = replaced(self.funds, hold.reserve, fund)
  return {
    account: { ...self, funds, pendingHolds: self.pendingHolds - 1 },
    excess: within ? zero : subtract(bill, booked),
  }
}

/** Takes `grant` out of a reserve for a child and books the charge of starting it. */
export const giveToChild = (self: Account, reserve: Reserve, grant: Amounts, charge: Amounts): Account => {
  const { allocated, held, carved, used } = self.funds[reserve]
  const fund = { allocated, held, carved: addChecked(carved, grant), used: addChecked(used, charge) }
  return { ...self, funds: replaced(self.funds, reserve, fund), openChildren: self.openChildren + 1 }
}

/** Takes back what a child left: its grant leaves `carved`, its use becomes use of this account. */
export const takeFromChild = (self: Account, child: Account, reserve: Reserve): Account => {
  const { allocated, held, carved, used: spentBefore } = self.funds[reserve]
  const spent = used(child)
  const back = subtract(carved, granted(child))
  const fund = { allocated, held, carved: back, used: addChecked(spentBefore, spent) }
  return {
    ...self,
    funds: replaced(self.funds, reserve, fund),
    openChildren: self.openChildren - 1,
    childrenUsed: add(self.childrenUsed, spent),
    debt: add(self.debt, child.debt),
    overran: self.overran || child.overran,
  }
}

/** Raises the allocation of a reserve; uncapped dimensions have none to raise. The caller checks {@link isExact}. */
export const raise = (self: Account, reserve: Reserve, amounts: Amounts): Account => {
  const target = self.funds[reserve]
  return withFund(self, reserve, { ...target, allocated: add(target.allocated, onlyCapped(amounts, self.caps)) })
}
