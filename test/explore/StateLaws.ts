/**
 * What must hold in every state: the invariants of the specification by their names, written from it and not from the
 * ledger's own sums. Each looks at one dimension and answers with the numbers of what is broken, or nothing.
 */
import type { Account, Fund } from "../../src/budget/Account.ts"
import type { Dimension } from "../../src/budget/Dimension.ts"
import { type Reserve, reserves } from "../../src/budget/Reserve.ts"
import { excessOf } from "./Key.ts"
import type { Call, Configuration, Node, State, Violation } from "./Model.ts"
import { free } from "./Moves.ts"

/** A state as the laws look at it. */
interface View {
  readonly self: Configuration
  readonly state: State
  readonly accounts: ReadonlyArray<Account>
}

type Law = (view: View, dimension: Dimension, index: number) => string | undefined

const left = (fund: Fund, d: Dimension): number => fund.allocated[d] - fund.held[d] - fund.carved[d] - fund.used[d]

const over = (account: Account, part: keyof Fund, d: Dimension): number => {
  const { explore, retry, verify, output } = account.funds
  return explore[part][d] + retry[part][d] + verify[part][d] + output[part][d]
}

const spare = (account: Account, d: Dimension): number =>
  over(account, "allocated", d) - over(account, "held", d) - over(account, "carved", d) - over(account, "used", d)

/** Runs over the accounts of the ghost that are not closed. */
const open = function* ({ state, accounts }: View): Generator<readonly [Node, Account]> {
  for (const [index, node] of state.ghost.nodes.entries()) if (node.state !== "Closed") yield [node, accounts[index]!]
}

const sumOf = (view: View, value: (account: Account) => number): number => {
  let sum = 0
  for (const [, account] of open(view)) sum += value(account)
  return sum
}

/** I1: no term below 0, in any reserve. */
const local: Law = (view, d) => {
  for (const [node, account] of open(view)) {
    for (const reserve of reserves) {
      const fund = account.funds[reserve]
      if (left(fund, d) < 0) return `${node.id} ${reserve}: available is ${left(fund, d)}`
      if (fund.allocated[d] < 0 || fund.held[d] < 0 || fund.carved[d] < 0 || fund.used[d] < 0)
        return `${node.id} ${reserve}: a term below 0`
    }
  }
  return undefined
}

/** I2: what is carved is what open children have, what is held is what pending calls hold. */
const links: Law = (view, d, index) => {
  const { ghost } = view.state
  for (const [node, account] of open(view)) {
    let carved = 0
    for (const [child, record] of open(view)) if (child.parent === node.id) carved += over(record, "allocated", d)
    const found = account.funds.explore.carved[d]
    if (found !== carved) return `${node.id}: carved ${found}, children have ${carved}`
    const held: Record<Reserve, number> = { explore: 0, retry: 0, verify: 0, output: 0 }
    for (const call of ghost.calls)
      if (call.phase === "Pending" && call.ref.account === node.id) held[call.reserve] += call.held[index]!
    for (const reserve of reserves) {
      const { held: booked, carved: other } = account.funds[reserve]
      if (booked[d] !== held[reserve]) return `${node.id} ${reserve}: held ${booked[d]}, calls hold ${held[reserve]}`
      if (reserve !== "explore" && other[d] !== 0) return `${node.id} ${reserve}: carved ${other[d]} for nobody`
    }
  }
  return undefined
}

/** I3: everything granted is free, held or used somewhere. */
const global: Law = (view, d) => {
  if (view.state.ghost.nodes[0]!.state === "Closed") return undefined
  const sum = sumOf(view, (account) => spare(account, d) + over(account, "held", d) + over(account, "used", d))
  return sum === view.self.limit ? undefined : `granted ${view.self.limit}, found ${sum}`
}

const ofCalls = (calls: ReadonlyArray<Call>, value: (call: Call) => number): number => {
  let sum = 0
  for (const call of calls) sum += value(call)
  return sum
}

/** What the books should know of a call. */
const booked = (call: Call, index: number): number => {
  if (call.phase === "Assumed") return call.held[index]!
  return call.phase === "Settled" || call.phase === "Adjusted" ? call.bill[index]! : 0
}

const inBooks = (view: View, d: Dimension): number => {
  const [root, ...rest] = view.accounts
  // A closed root keeps its last record; a closed child is part of its parent.
  const own = over(root!, "used", d) + root!.debt[d]
  return rest.reduce((sum, account, at) => {
    if (view.state.ghost.nodes[at + 1]!.state === "Closed") return sum
    return sum + over(account, "used", d) + account.debt[d]
  }, own)
}

/** I4: the ledger covers the bill, but for what an assumed call cost above its hold. */
const bill: Law = (view, d, index) => {
  const { calls } = view.state.ghost
  const known = (call: Call) =>
    call.phase === "Assumed" ? Math.min(call.bill[index]!, call.held[index]!) : booked(call, index)
  const [due, found] = [ofCalls(calls, known), inBooks(view, d)]
  return found >= due ? undefined : `used and owed ${found}, billed ${due}`
}

/** And it books no more than that: each bill once, each assumption whole. */
const exactBill: Law = (view, d, index) => {
  const due = ofCalls(view.state.ghost.calls, (call) => booked(call, index))
  const found = inBooks(view, d)
  return found === due ? undefined : `used and owed ${found}, settled, assumed and adjusted ${due}`
}

/** I5: what was really spent, and what may still be within its holds, is at most the grant and the over-runs. */
const overspend: Law = (view, _d, index) => {
  const { calls } = view.state.ghost
  const spent = ofCalls(calls, (call) => {
    if (call.phase === "Pending") return call.held[index]!
    return call.phase === "Voided" ? 0 : call.bill[index]!
  })
  const most = view.self.limit + excessOf(calls, index)
  return spent <= most ? undefined : `spent or held ${spent}, granted with over-runs ${most}`
}

/** I6: debt only where nothing is left, there and all the way up. */
const debt: Law = (view, d) => {
  for (const [node, account] of open(view)) {
    if (account.debt[d] < 0) return `${node.id} owes ${account.debt[d]}`
    if (account.debt[d] === 0) continue
    for (let at: Account | undefined = account; at !== undefined;) {
      for (const reserve of reserves)
        if (left(at.funds[reserve], d) > 0) return `${node.id} owes ${account.debt[d]}, ${at.id} has some ${reserve}`
      at = at.parent === undefined ? undefined : view.state.books.account(at.parent.id)
    }
  }
  return undefined
}

/** I8: each close handed the use of the child up exactly once, and what it returned lies between 0 and its grant. */
const refund: Law = (view, d) => {
  const { ghost } = view.state
  for (const [index, node] of ghost.nodes.entries()) {
    const account = view.accounts[index]!
    let children = 0
    for (const [at, child] of ghost.nodes.entries())
      if (child.parent === node.id && child.state === "Closed") children += over(view.accounts[at]!, "used", d)
    if (account.childrenUsed[d] !== children)
      return `${node.id}: children used ${account.childrenUsed[d]}, closed ones say ${children}`
    const [grant, used] = [over(account, "allocated", d), over(account, "used", d)]
    if (node.state === "Closed" && (used < 0 || used > grant)) return `${node.id}: returned ${grant - used} of ${grant}`
  }
  return undefined
}

/** I10: a senior reserve keeps what it was opened with, unless an over-run was covered from it. */
const senior: Law = (view, d, index) => {
  if (excessOf(view.state.ghost.calls, index) > 0) return undefined
  for (const [node, account] of open(view))
    for (const reserve of reserves) {
      const [now, then] = [account.funds[reserve].allocated[d], account.opening[reserve][d]]
      if (reserve !== "explore" && now < then) return `${node.id} ${reserve}: ${now} of ${then}`
    }
  return undefined
}

/** Quiescence: with nothing open below the root and no call pending the root alone accounts for the grant. */
const quiescence: Law = (view, d) => {
  const { ghost } = view.state
  const root = view.accounts[0]!
  if (ghost.calls.some((call) => call.phase === "Pending")) return undefined
  if (ghost.nodes.some((node) => node.parent !== undefined && node.state !== "Closed")) return undefined
  const [held, carved] = [over(root, "held", d), over(root, "carved", d)]
  if (held !== 0 || carved !== 0) return `held ${held}, carved ${carved}`
  const sum = spare(root, d) + over(root, "used", d)
  return sum === view.self.limit ? undefined : `available and used ${sum} of ${view.self.limit}`
}

/** The line: its head is served as soon as it fits, but not by one that stands still. */
const line: Law = ({ self, state }) => {
  const { line, nodes } = state.ghost
  if (line.length === 0) return undefined
  for (const { id, state: stopped } of nodes) {
    const head = stopped === "Open" ? line.find((waiter) => waiter.parent === id) : undefined
    if (head === undefined) continue
    const parent = state.books.account(id)
    if (self.dimensions.every((d, index) => head.least[index]! <= free(parent, "explore", d)))
      return `${head.child} fits and is not served`
  }
  return undefined
}

const laws: Readonly<Record<string, Law>> = {
  "I1 local conservation": local,
  "I2 links": links,
  "I3 global conservation": global,
  "I4 ledger covers bill": bill,
  "I4 each bill once": exactBill,
  "I5 no overspend": overspend,
  "I6 debt": debt,
  "I8 refund": refund,
  "I10 senior reserve": senior,
  Quiescence: quiescence,
  Line: line,
}

/** I7: holds and accounts are where their single resolution left them. */
const once = ({ state, accounts }: View): string | undefined => {
  const { books, ghost } = state
  for (const [index, node] of ghost.nodes.entries()) {
    const found = accounts[index]!.state
    if ((found === "Closed") !== (node.state === "Closed")) return `${node.id} is ${found}, not ${node.state}`
  }
  for (const call of ghost.calls) {
    const found = books.hold(call.ref)?.state
    const over = call.phase === "Settled" || call.phase === "Voided"
    if (found !== call.phase && !(found === undefined && over)) return `${call.ref.id} is ${found}, not ${call.phase}`
  }
  return undefined
}

/** I11: nothing open under what is closed, and no child ends after its parent must go on. */
const structure = (view: View): string | undefined => {
  const { books, ghost } = view.state
  for (const [node, account] of open(view)) {
    const calls = ghost.calls.filter((call) => call.phase === "Pending" && call.ref.account === node.id)
    if (account.pendingHolds !== calls.length)
      return `${node.id} counts ${account.pendingHolds} of ${calls.length} calls`
    if (node.parent === undefined) continue
    const parent = books.account(node.parent)
    if (parent.state === "Closed") return `${node.id} is open under ${parent.id}, which is closed`
    const [own, limit] = [account.window?.deadlineMillis, parent.window?.exploreEndMillis]
    if (limit !== undefined && (own ?? Infinity) > limit) return `${node.id} ends at ${own}, after ${limit}`
  }
  for (const call of ghost.calls)
    if (call.phase === "Pending" && books.account(call.ref.account).state === "Closed")
      return `${call.ref.id} is pending on ${call.ref.account}, which is closed`
  for (const waiter of ghost.line)
    if (!books.isWaiting(waiter.child)) return `${waiter.child} waits, and stands in no line`
  return undefined
}

/** The first law that a state breaks. */
export const brokenState = (self: Configuration, state: State): Violation | undefined => {
  const accounts = state.ghost.nodes.map((node) => state.books.account(node.id))
  const view: View = { self, state, accounts }
  const [built, moved] = [structure(view), once(view)]
  if (built !== undefined) return { law: "I11 structure", detail: built }
  if (moved !== undefined) return { law: "I7 resolve once", detail: moved }
  for (const [index, d] of self.dimensions.entries())
    for (const law in laws) {
      const detail = laws[law]!(view, d, index)
      if (detail !== undefined) return { law, detail: `${d}: ${detail}` }
    }
  return undefined
}
