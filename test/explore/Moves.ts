/**
 * Every move that is possible in a state, and what it does to the ghost. A move is only a request: what comes of it is
 * decided by the operation under exploration. Amounts go from 1 to one more than there is, so that both sides of each
 * limit are tried.
 */
import type { Account } from "../../src/budget/Account.ts"
import {
  type Call,
  type Configuration,
  type Ghost,
  type InPlay,
  type Kind,
  type Node,
  nodeOf,
  type State,
  type Vector,
} from "./Model.ts"

export type Move =
  | {
      readonly name: "carve"
      readonly node: string
      readonly amounts: Vector
      readonly output: 0 | 1
      readonly atMost: boolean
    }
  | { readonly name: "hold"; readonly node: string; readonly reserve: InPlay; readonly amounts: Vector }
  | { readonly name: "send" | "void"; readonly call: number }
  | { readonly name: "extend" | "settle" | "assume" | "adjust"; readonly call: number; readonly amounts: Vector }
  | {
      readonly name: "move"
      readonly node: string
      readonly from: InPlay
      readonly to: InPlay
      readonly amounts: Vector
    }
  | { readonly name: "topUp" | "reclaim"; readonly node: string; readonly amounts: Vector }
  | { readonly name: "wait"; readonly node: string; readonly need: Vector; readonly least: Vector }
  | { readonly name: "freeze" | "drain" | "pause" | "resume" | "leave" | "close"; readonly node: string }

/** Vectors that were made once, for each kind and each limit: they are asked for millions of times. */
const remembering = (make: (most: Vector) => ReadonlyArray<Vector>): ((most: Vector) => ReadonlyArray<Vector>) => {
  const known = new Map<number, ReadonlyArray<Vector>>()
  return (most) => {
    const key = most.reduce((sum, n) => sum * 64 + n + 16, most.length)
    let found = known.get(key)
    if (found === undefined) known.set(key, (found = make(most)))
    return found
  }
}

/** All vectors from 0 to `most`, but that of zeros. */
const upTo = remembering((most) => {
  let found: ReadonlyArray<ReadonlyArray<number>> = [[]]
  for (const limit of most)
    found = found.flatMap((before) => Array.from({ length: Math.max(0, limit) + 1 }, (_, n) => [...before, n]))
  return found.filter((vector) => vector.some((n) => n > 0))
})

/** For each dimension the vector that is one too many in it and fits in the others. */
const beyond = remembering((most) => most.map((_, d) => most.map((n, index) => Math.max(0, n) + (index === d ? 1 : 0))))

/** What fits, and what is just too much. */
const around = remembering((most) => [...upTo(most), ...beyond(most)])

/** One unit of one dimension each. */
const units = ({ dimensions }: Configuration): ReadonlyArray<Vector> => beyond(dimensions.map(() => 0))

const withinHold = remembering((held) => [held.map(() => 0), ...upTo(held)])

const aboveToo = remembering((held) => [...withinHold(held), ...beyond(held)])

/** What a call that holds `held` can cost. */
const bills = (self: Configuration, held: Vector): ReadonlyArray<Vector> =>
  self.kinds.has("overrun") ? aboveToo(held) : withinHold(held)

/** What is free in a reserve, added up here and not by the ledger. */
export const free = (account: Account, reserve: InPlay, d: Configuration["dimensions"][number]): number => {
  const fund = account.funds[reserve]
  return fund.allocated[d] - fund.held[d] - fund.carved[d] - fund.used[d]
}

const freeIn = (self: Configuration, account: Account, reserve: InPlay): Vector =>
  self.dimensions.map((d) => free(account, reserve, d))

/** The moves that are tried in a state. */
export const movesOf = (self: Configuration, { books, ghost }: State): ReadonlyArray<Move> => {
  const moves: Array<Move> = []
  for (const node of ghost.nodes) {
    if (node.state === "Closed") continue
    const account = books.account(node.id)
    works(moves, self, { ghost, node, account })
    if (node.parent !== undefined) links(moves, self, { ghost, node, account, parent: books.account(node.parent) })
    lives(moves, self.kinds, node)
  }
  for (const [index, call] of ghost.calls.entries()) resolves(moves, self, { index, call })
  return moves
}

interface At {
  readonly ghost: Ghost
  readonly node: Node
  readonly account: Account
}

/** Carving, holding and moving in an account. Where it is stopped one unit will do to see that nothing is given. */
const works = (moves: Array<Move>, self: Configuration, { ghost, node, account }: At): void => {
  const explore = freeIn(self, account, "explore")
  const [stopped, one] = [node.state !== "Open", units(self)]
  if (mayCarve(self, ghost, node)) {
    const all = self.dimensions.map(() => self.limit)
    for (const amounts of stopped ? one : around(explore))
      moves.push({ name: "carve", node: node.id, amounts, output: 0, atMost: false })
    if (self.kinds.has("childOutput") && !stopped)
      for (const amounts of upTo(explore))
        if (amounts.every((n) => n > 0)) moves.push({ name: "carve", node: node.id, amounts, output: 1, atMost: false })
    if (self.kinds.has("atMost") && !stopped)
      moves.push({ name: "carve", node: node.id, amounts: all, output: 0, atMost: true })
  }
  if (mayHold(self, ghost)) {
    const output = freeIn(self, account, "output").map((n, d) => n + explore[d]!)
    for (const amounts of stopped ? one : around(explore))
      moves.push({ name: "hold", node: node.id, reserve: "explore", amounts })
    for (const amounts of stopped && node.state !== "Frozen" ? one : around(output))
      moves.push({ name: "hold", node: node.id, reserve: "output", amounts })
  }
  if (!self.kinds.has("move")) return
  for (const amounts of one) {
    moves.push({ name: "move", node: node.id, from: "explore", to: "output", amounts })
    if (!stopped) moves.push({ name: "move", node: node.id, from: "output", to: "explore", amounts })
  }
}

const mayCarve = (self: Configuration, { nodes }: Ghost, { depth }: Node): boolean =>
  nodes.length < self.nodesEver &&
  depth < (self.depth ?? self.nodes) &&
  nodes.filter((node) => node.state !== "Closed").length < self.nodes

const mayHold = (self: Configuration, { calls }: Ghost): boolean =>
  calls.length < self.holdsEver && calls.filter((call) => call.phase === "Pending").length < self.holds

/** What goes over the link between a child and its parent. */
const links = (
  moves: Array<Move>,
  self: Configuration,
  { ghost, node, account, parent }: At & { readonly parent: Account },
): void => {
  const stopped = node.state !== "Open" || nodeOf(ghost, node.parent!).state !== "Open"
  const amountsFor = (giver: Account): ReadonlyArray<Vector> => {
    const most = freeIn(self, giver, "explore")
    return stopped || most.every((n) => n <= 0) ? units(self) : [...units(self), ...beyond(most)]
  }
  if (self.kinds.has("topUp"))
    for (const amounts of amountsFor(parent)) moves.push({ name: "topUp", node: node.id, amounts })
  if (self.kinds.has("reclaim"))
    for (const amounts of amountsFor(account)) moves.push({ name: "reclaim", node: node.id, amounts })
  if (!self.kinds.has("wait")) return
  if (ghost.line.some((waiter) => waiter.child === node.id)) {
    if (self.kinds.has("leave")) moves.push({ name: "leave", node: node.id })
    return
  }
  const all = self.dimensions.map(() => self.limit)
  for (const need of stopped ? [all] : upTo(all)) moves.push({ name: "wait", node: node.id, need, least: need })
  if (self.limit > 1 && !stopped)
    for (const least of units(self)) moves.push({ name: "wait", node: node.id, need: all, least })
}

const lives = (moves: Array<Move>, kinds: ReadonlySet<Kind>, { id, state, parent }: Node): void => {
  if (state !== "Frozen" && kinds.has("freeze")) moves.push({ name: "freeze", node: id })
  if (state !== "Draining" && kinds.has("drain")) moves.push({ name: "drain", node: id })
  if (kinds.has("pause")) moves.push({ name: state === "Paused" ? "resume" : "pause", node: id })
  if (parent !== undefined || kinds.has("closeRoot")) moves.push({ name: "close", node: id })
}

/** What may still happen to a call; deliveries that come again are tried apart. */
const resolves = (
  moves: Array<Move>,
  self: Configuration,
  { index, call }: { readonly index: number; readonly call: Call },
): void => {
  if (call.phase === "Assumed" && self.kinds.has("adjust"))
    moves.push({ name: "adjust", call: index, amounts: call.bill })
  if (call.phase !== "Pending") return
  const explicit = self.kinds.has("send")
  if (!call.sent) moves.push({ name: "void", call: index })
  if (self.kinds.has("extend")) for (const amounts of units(self)) moves.push({ name: "extend", call: index, amounts })
  if (!call.sent && explicit) return void moves.push({ name: "send", call: index })
  for (const amounts of bills(self, call.held)) {
    moves.push({ name: "settle", call: index, amounts })
    moves.push({ name: "assume", call: index, amounts })
  }
}

/** Deliveries that come once more, with the same content and with other content: none of them may change anything. */
export const repeatsOf = ({ ghost }: State): ReadonlyArray<Move> => {
  const moves: Array<Move> = []
  for (const node of ghost.nodes) if (node.state === "Closed") moves.push({ name: "close", node: node.id })
  for (const [call, { phase, bill }] of ghost.calls.entries()) {
    if (phase === "Pending") continue
    const other = bill.map((n) => n + 1)
    const assumed = phase === "Assumed"
    moves.push({ name: "settle", call, amounts: bill })
    moves.push(assumed ? { name: "assume", call, amounts: bill } : { name: "adjust", call, amounts: bill })
    if (phase === "Settled") moves.push({ name: "settle", call, amounts: other })
    if (phase === "Adjusted") moves.push({ name: "adjust", call, amounts: other })
    moves.push({ name: "void", call })
  }
  return moves
}

const list = (vector: Vector): string => vector.join("+")

/** A move in words. */
export const describe = (move: Move, ghost: Ghost): string => {
  if ("call" in move) {
    const { id, account } = ghost.calls[move.call]!.ref
    const hidden = move.name === "assume" ? "assume (bill " : `${move.name} (`
    return `${hidden}${"amounts" in move ? list(move.amounts) : ""}) ${id} on ${account}`.replace(" ()", "")
  }
  switch (move.name) {
    case "carve": {
      const { amounts, output, atMost } = move
      return `carve ${atMost ? "at most " : ""}${list(amounts)} from ${move.node}${output === 0 ? "" : ", 1 for output"}`
    }
    case "hold":
      return `hold ${list(move.amounts)} in ${move.reserve} of ${move.node}`
    case "move":
      return `move ${list(move.amounts)} from ${move.from} to ${move.to} in ${move.node}`
    case "topUp":
    case "reclaim":
      return `${move.name} ${list(move.amounts)} ${move.name === "topUp" ? "to" : "from"} ${move.node}`
    case "wait":
      return `${move.node} waits for ${list(move.need)}, at least ${list(move.least)}`
    default:
      return `${move.name} ${move.node}`
  }
}
