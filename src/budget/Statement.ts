/**
 * The books of a tree as rows: what each account was granted, used itself, used through children, and returned.
 *
 * The law of the table, in each dimension: for every closed child granted = own + children + returned, and the own use
 * of all accounts plus what the root has left is the root's grant.
 */
import * as Accounts from "./Account.ts"
import type { Account, State } from "./Account.ts"
import { add, type Amounts, type Capped, dimensions, type Dimension, onlyCapped, zero } from "./Dimension.ts"
import type { Ledger } from "./Ledger.ts"
import { type PerReserve, type Reserve, reserves } from "./Reserve.ts"

/**
 * One account in a statement. Amounts in uncapped dimensions are counted too; `granted` and `left` are 0 there.
 *
 * @category statements
 * @since 0.1.0
 */
export interface Row {
  readonly account: string
  readonly path: string
  readonly name: string
  readonly depth: number
  readonly parent: string | undefined
  readonly state: State
  readonly capped: Capped
  readonly granted: Amounts
  readonly own: Amounts
  readonly children: Amounts
  /** What went back to the parent at the close; what is left now for the root or an open account. */
  readonly left: Amounts
  readonly debt: Amounts
  readonly overran: boolean
  /** How many calls of its own have no known price; their money is missing in `own`, which is at least what was spent. */
  readonly unpricedCalls: number
  readonly reserves: PerReserve<{ readonly opening: Amounts; readonly allocated: Amounts; readonly used: Amounts }>
}

/**
 * The rows of every account of a tree, parents before their children.
 *
 * @category statements
 * @since 0.1.0
 */
export const statement = (ledger: Ledger): ReadonlyArray<Row> => {
  const accounts = ledger.accounts
  const below = Map.groupBy(accounts, (account) => account.parent?.id)
  const inOrder = (parent: string | undefined): ReadonlyArray<Account> =>
    (below.get(parent) ?? []).flatMap((account) => [account, ...inOrder(account.id)])
  return inOrder(undefined).map(rowOf)
}

const rowOf = (self: Account): Row => ({
  account: self.id,
  path: self.path,
  name: self.name,
  depth: self.depth,
  parent: self.parent?.id,
  state: self.state,
  capped: self.caps,
  granted: onlyCapped(Accounts.granted(self), self.caps),
  own: Accounts.ownUsed(self),
  children: self.childrenUsed,
  left: Accounts.unused(self),
  debt: self.debt,
  overran: self.overran,
  unpricedCalls: self.unpricedCalls,
  reserves: {
    explore: reserveOf(self, "explore"),
    retry: reserveOf(self, "retry"),
    verify: reserveOf(self, "verify"),
    output: reserveOf(self, "output"),
  },
})

const reserveOf = (self: Account, reserve: Reserve) => ({
  opening: self.opening[reserve],
  allocated: self.funds[reserve].allocated,
  used: self.funds[reserve].used,
})

/**
 * Checks the law of the table and names every row and dimension that breaks it; empty when the books balance.
 *
 * @category statements
 * @since 0.1.0
 */
export const imbalances = (rows: ReadonlyArray<Row>): ReadonlyArray<string> => {
  const root = rows.find((row) => row.parent === undefined)
  if (root === undefined) return []
  const allOwn = rows.reduce((sum, row) => add(sum, row.own), zero)
  const broken = (row: Row, expected: Amounts, law: string): ReadonlyArray<string> =>
    dimensions
      .filter((d) => row.capped[d] && row.granted[d] !== expected[d])
      .map((d) => `${row.path}: ${d}: granted ${row.granted[d]} is not ${law} = ${expected[d]}`)
  return [
    ...broken(root, add(allOwn, root.left), "own use of all + left"),
    ...rows
      .filter((row) => row.state === "Closed")
      .flatMap((row) => broken(row, add(add(row.own, row.children), row.left), "own + children + returned")),
  ]
}

/**
 * Recomputes what the incremental books should say and names every difference: conservation in each reserve (I1), links
 * to open children and pending holds (I2), debt only where nothing is left (I6). For tests; it walks the whole tree.
 *
 * @category statements
 * @since 0.1.0
 */
export const violations = (ledger: Ledger): ReadonlyArray<string> =>
  ledger.accounts
    .filter((account) => account.state !== "Closed")
    .flatMap((account) => reserves.flatMap((reserve) => fundViolations(ledger, account, reserve)))
    .concat(ledger.accounts.flatMap((account) => debtViolations(ledger, account)))

const fundViolations = (ledger: Ledger, self: Account, reserve: Reserve): ReadonlyArray<string> => {
  const fund = self.funds[reserve]
  const pending = ledger.pendingHolds(self.id).filter((hold) => hold.reserve === reserve)
  const heldSum = pending.reduce((sum, hold) => add(sum, hold.amounts), zero)
  const funded = ledger.childrenOf(self.id).filter((child) => child.parent!.reserve === reserve)
  const carvedSum = funded.reduce((sum, child) => add(sum, Accounts.granted(child)), zero)
  const where = `${self.path} ${reserve}`
  return dimensions.flatMap((d) => [
    ...(self.caps[d] && Accounts.free(fund, d) < 0 ? [`I1 ${where} ${d}: available is ${Accounts.free(fund, d)}`] : []),
    ...([fund.allocated, fund.held, fund.carved, fund.used].some((part) => part[d] < 0)
      ? [`I1 ${where} ${d}: negative`]
      : []),
    ...(fund.held[d] === heldSum[d] ? [] : [`I2 ${where} ${d}: held ${fund.held[d]}, pending holds ${heldSum[d]}`]),
    ...(fund.carved[d] === carvedSum[d]
      ? []
      : [`I2 ${where} ${d}: carved ${fund.carved[d]}, children ${carvedSum[d]}`]),
  ])
}

const debtViolations = (ledger: Ledger, self: Account): ReadonlyArray<string> => {
  if (self.state === "Closed") return []
  const owed = (d: Dimension): boolean => self.debt[d] > 0
  const path = pathOf(ledger, self)
  return dimensions
    .filter(owed)
    .flatMap((d) =>
      path
        .filter((account) => reserves.some((reserve) => (Accounts.available(account, reserve, d) ?? 1) > 0))
        .map((account) => `I6 ${self.path} owes ${self.debt[d]} ${d} while ${account.path} has some left`),
    )
}

const pathOf = (ledger: Ledger, self: Account): ReadonlyArray<Account> =>
  self.parent === undefined ? [self] : [self, ...pathOf(ledger, ledger.account(self.parent.id))]
