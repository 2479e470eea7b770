/**
 * States as short strings, equal for states that cannot be told apart by what may happen next: without ids, siblings and
 * holds in an order of their own, and without what is over for good. Everything the ledger goes by is in it, also what
 * should follow from the rest, so that books that do not add up are never taken for books that do.
 */
import type { Account, Fund } from "../../src/budget/Account.ts"
import type { Call, Configuration, Node, State } from "./Model.ts"

const phases = { Pending: 1, Assumed: 2, Settled: 3, Voided: 4, Adjusted: 5 }
const states = { Open: 1, Paused: 2, Frozen: 3, Draining: 4, Closed: 5 }

const buffer = Buffer.alloc(1024)
let at = 0

/** Small numbers, some of them below 0 in broken books. */
const put = (value: number): void => {
  buffer[at++] = value + 32
}

export const keyOf = (self: Configuration, state: State): string => {
  at = 0
  const { calls, nodes } = state.ghost
  put(calls.length)
  put(nodes.length)
  const order = state.books.debtors.size > 1 ? [...state.books.debtors] : undefined
  for (const d of self.dimensions.keys()) put(excessOf(calls, d))
  const writer = { self, state, order }
  writeNode(writer, nodes[0]!)
  return buffer.toString("latin1", 0, at)
}

interface Writer {
  readonly self: Configuration
  readonly state: State
  /** Who pays its debt first, where it matters. */
  readonly order: ReadonlyArray<string> | undefined
}

/** By how much the bills known or hidden are above their holds. */
export const excessOf = (calls: ReadonlyArray<Call>, d: number): number => {
  let sum = 0
  for (const call of calls)
    if (call.phase !== "Pending" && call.bill[d]! > call.held[d]!) sum += call.bill[d]! - call.held[d]!
  return sum
}

/** Whether anything of an account can still change. */
const isAlive = (state: State, node: Node): boolean =>
  node.state !== "Closed" ||
  state.ghost.calls.some((call) => call.ref.account === node.id && call.phase === "Assumed") ||
  state.ghost.nodes.some((child) => child.parent === node.id && isAlive(state, child))

const writeNode = (writer: Writer, node: Node): void => {
  const { self, state, order } = writer
  const account = state.books.account(node.id)
  put(states[account.state])
  writeAccount(self, account)
  if (account.state !== "Closed") {
    put(account.pendingHolds)
    put(account.openChildren)
    put(order === undefined ? Number(state.books.debtors.has(node.id)) : order.indexOf(node.id) + 1)
    writePlaces(writer, node, account)
  }
  const holds: Array<number> = []
  for (const call of state.ghost.calls) {
    if (call.ref.account !== node.id) continue
    const hold = packed(self, state, call)
    if (hold > 0) holds.push(hold)
  }
  if (holds.length > 1) holds.sort((a, b) => a - b)
  put(holds.length)
  for (const hold of holds) for (let rest = hold; rest > 0; rest = Math.floor(rest / 64)) put(rest % 64)
  writeChildren(writer, node)
}

/** Who stopped it, and its place and wish in the line. */
const writePlaces = ({ self, state }: Writer, node: Node, account: Account): void => {
  put(account.pausedBy === undefined ? 0 : state.books.account(account.pausedBy).depth + 1)
  const place = state.ghost.line.findIndex((waiter) => waiter.child === node.id)
  put(place + 1)
  if (place < 0) return
  const { need, least } = state.ghost.line[place]!
  for (const d of self.dimensions.keys()) {
    put(need[d]!)
    put(least[d]!)
  }
}

const writeAccount = (self: Configuration, account: Account): void => {
  const { explore, output } = account.funds
  for (const d of self.dimensions) {
    if (account.state === "Closed") {
      put(explore.used[d])
      put(output.used[d])
      continue
    }
    writeFund(explore, d)
    writeFund(output, d)
    put(account.opening.output[d])
    put(account.debt[d])
  }
}

const writeFund = (fund: Fund, d: Configuration["dimensions"][number]): void => {
  put(fund.allocated[d])
  put(fund.held[d])
  put(fund.carved[d])
  put(fund.used[d])
}

/** One number; 0 for a call that is over, as far as the witness and the books agree on it. */
const packed = (self: Configuration, state: State, call: Call): number => {
  const hold = state.books.hold(call.ref)
  const phase = hold === undefined ? 0 : phases[hold.state]
  if (call.phase !== "Pending" && call.phase !== "Assumed")
    return phase === phases[call.phase] || phase === 0 ? 0 : phase
  let sum = (phase * 8 + phases[call.phase]) * 4 + (call.reserve === "output" ? 1 : 0) + (call.sent ? 2 : 0)
  for (const d of self.dimensions.keys()) {
    const held = hold?.amounts[self.dimensions[d]!] ?? 0
    sum = (sum * 16 + held) * 16 + call.bill[d]!
  }
  return sum
}

/** The children in the order of what they look like. */
const writeChildren = (writer: Writer, node: Node): void => {
  const children = writer.state.ghost.nodes.filter((one) => one.parent === node.id && isAlive(writer.state, one))
  put(children.length)
  if (children.length === 0) return
  if (children.length === 1) return writeNode(writer, children[0]!)
  const from = at
  const parts = children.map((child) => {
    at = from
    writeNode(writer, child)
    return buffer.toString("latin1", from, at)
  })
  parts.sort()
  at = from
  for (const part of parts) at += buffer.write(part, at, "latin1")
}
