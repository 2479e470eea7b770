/**
 * Covering a bill that is above its hold. The bill is a fact and is booked in full; the only question is from what.
 *
 * In this order: the hold's own reserve; the account's other reserves, junior first; the explore of each ancestor from
 * the nearest up; only then their senior reserves from the nearest up. What comes from above travels down each link as
 * a forced top-up, so that the books of every level stay whole. What nothing can cover is debt of the account.
 *
 * The cap wins over the wrap-up: money kept for an answer may be gone afterwards.
 */
import * as Accounts from "./Account.ts"
import type { Account } from "./Account.ts"
import { add, type Amounts, type Dimension, dimensions, zero } from "./Dimension.ts"
import { type Reserve, reserves } from "./Reserve.ts"

/**
 * Where a part of an over-run was taken from.
 *
 * @category over-runs
 * @since 0.1.0
 */
export interface Source {
  readonly account: string
  readonly reserve: Reserve
  readonly dimension: Dimension
  readonly amount: number
}

/** The accounts after covering, in the order given, what was taken from where, and what remains uncovered. */
export interface Covered {
  readonly path: ReadonlyArray<Account>
  readonly sources: ReadonlyArray<Source>
  readonly uncovered: Amounts
}

/** Books `excess` as use of `path[0]` in `reserve`; `path` leads from the account up to the root. */
export const cover = (path: ReadonlyArray<Account>, reserve: Reserve, excess: Amounts): Covered => {
  let accounts = path
  let uncovered = zero
  const sources: Array<Source> = []
  for (const dimension of dimensions) {
    let need = excess[dimension]
    for (const [level, source] of order(path.length, reserve)) {
      if (need === 0) break
      const from = accounts[level]!
      const amount = from.caps[dimension] ? Math.min(need, Accounts.free(from.funds[source], dimension)) : need
      if (amount <= 0) continue
      accounts = take(accounts, { level, source, reserve, one: unit(dimension, amount) })
      sources.push({ account: from.path, reserve: source, dimension, amount })
      need -= amount
    }
    uncovered = add(uncovered, unit(dimension, need))
  }
  return { path: accounts, sources, uncovered }
}

const unit = (dimension: Dimension, amount: number): Amounts => ({ ...zero, [dimension]: amount })

/** The levels and reserves in the order in which they are asked. */
const order = (levels: number, reserve: Reserve): ReadonlyArray<readonly [level: number, source: Reserve]> => {
  const own = [reserve, ...reserves.filter((other) => other !== reserve)].map((source) => [0, source] as const)
  const above = Array.from({ length: levels - 1 }, (_, index) => index + 1)
  const exploring = above.map((level) => [level, "explore"] as const)
  const senior = above.flatMap((level) =>
    reserves.filter((source) => source !== "explore").map((source) => [level, source] as const),
  )
  return [...own, ...exploring, ...senior]
}

/** Takes an amount at one level and hands it down link by link until it is used at the bottom. */
const take = (
  path: ReadonlyArray<Account>,
  from: { readonly level: number; readonly source: Reserve; readonly reserve: Reserve; readonly one: Amounts },
): ReadonlyArray<Account> => {
  const accounts = [...path]
  let source = from.source
  for (let level = from.level; level > 0; level--) {
    const link = accounts[level - 1]!.parent!.reserve
    const self = shiftFund(accounts[level]!, source, link, from.one)
    const fund = self.funds[link]
    accounts[level] = Accounts.withFund(self, link, { ...fund, carved: add(fund.carved, from.one) })
    source = level === 1 ? from.reserve : accounts[level - 2]!.parent!.reserve
    accounts[level - 1] = Accounts.raise(accounts[level - 1]!, source, from.one)
  }
  const self = shiftFund(accounts[0]!, source, from.reserve, from.one)
  const fund = self.funds[from.reserve]
  accounts[0] = Accounts.withFund(self, from.reserve, { ...fund, used: add(fund.used, from.one) })
  return accounts
}

/** Moves the allocation between two reserves of an account where the dimension is capped. */
const shiftFund = (self: Account, from: Reserve, to: Reserve, one: Amounts): Account =>
  dimensions.some((d) => one[d] > 0 && self.caps[d]) ? Accounts.move(self, from, to, one) : self

/** Lowers the debt of an account by what could be covered after all. */
export const payDebt = (path: ReadonlyArray<Account>): Covered => {
  const [debtor, ...above] = path
  const covered = cover([{ ...debtor!, debt: zero }, ...above], "explore", debtor!.debt)
  const [paid, ...rest] = covered.path
  return { ...covered, path: [{ ...paid!, debt: covered.uncovered }, ...rest] }
}
