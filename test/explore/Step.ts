/**
 * Carrying a move out: one call of one operation of the record on the books, and what its answer means to the witness.
 */
import * as Result from "effect/Result"
import type { Books } from "../../src/budget/Books.ts"
import type { Operations } from "../../src/budget/Operations.ts"
import type { Refusal } from "../../src/budget/Refusal.ts"
import {
  type Call,
  type Configuration,
  type Ended,
  type Ghost,
  grantOf,
  isUnder,
  type Node,
  nodeOf,
  rootMillis,
  type Vector,
} from "./Model.ts"
import type { Move } from "./Moves.ts"

export interface Outcome {
  /** Whether the operation was applied: it may have changed something. */
  readonly accepted: boolean
  readonly ghost: Ghost
  readonly ended: ReadonlyArray<Ended>
}

/** Waits that ended during the operation that runs now: their waiters live in many copies of the books. */
let ended: Array<Ended> = []

const names = ["a", "b", "c", "d", "e", "f"]

/** Carries a move out on `books`, which belong to the ghost. */
export const step = (
  self: Configuration,
  operations: Operations,
  at: { readonly books: Books; readonly ghost: Ghost },
  move: Move,
): Outcome => {
  ended = []
  const { ghost } = at
  if ("call" in move) return resolve(self, operations, at, move)
  switch (move.name) {
    case "carve": {
      const id = names[ghost.nodes.length - 1]!
      if (!carves(self, operations, at, { ...move, id })) return refused(ghost)
      const depth = nodeOf(ghost, move.node).depth + 1
      const child: Node = { id, parent: move.node, depth, state: "Open", pausedBy: undefined }
      return done(ghost, { nodes: [...ghost.nodes, child] })
    }
    case "hold": {
      const ref = { account: move.node, id: `h${ghost.calls.length + 1}` }
      if (Result.isFailure(operations.hold(at.books, ref, move.reserve, grantOf(self, move.amounts))))
        return refused(ghost)
      const bill = move.amounts.map(() => 0)
      const phase = "Pending" as const
      const call: Call = { ref, reserve: move.reserve, held: move.amounts, sent: !self.kinds.has("send"), phase, bill }
      return done(ghost, { calls: [...ghost.calls, call] })
    }
    case "move": {
      const wanted = grantOf(self, move.amounts)
      return plain(ghost, operations.move(at.books, move.node, { from: move.from, to: move.to, wanted }))
    }
    case "topUp":
    case "reclaim":
      return plain(ghost, operations[move.name](at.books, move.node, grantOf(self, move.amounts)))
    case "wait":
      return wait(self, operations, at, move)
    default:
      return live(operations, at, move)
  }
}

const refused = (ghost: Ghost): Outcome => ({ accepted: false, ghost, ended: [] })

const done = (ghost: Ghost, change: Partial<Ghost>): Outcome => {
  const next = { ...ghost, ...change }
  if (ended.length === 0) return { accepted: true, ghost: next, ended }
  const line = next.line.filter((waiter) => !ended.some((end) => end.child === waiter.child))
  return { accepted: true, ghost: { ...next, line }, ended }
}

const plain = (ghost: Ghost, result: Result.Result<unknown, Refusal>): Outcome =>
  Result.isFailure(result) ? refused(ghost) : done(ghost, {})

const carves = (
  self: Configuration,
  operations: Operations,
  { books }: { readonly books: Books },
  move: { readonly node: string; readonly amounts: Vector; readonly output: 0 | 1; readonly atMost: boolean } & {
    readonly id: string
  },
): boolean => {
  const grant = grantOf(self, move.amounts)
  const ones = grantOf(
    self,
    move.amounts.map(() => 1),
  )
  const carved = operations.carve(books, move.node, {
    id: move.id,
    name: move.id,
    ask: move.atMost ? { _tag: "AtMost", grant, floor: ones } : { _tag: "Exactly", grant },
    ...(move.output === 1 ? { reserves: { _tag: "Explicit", output: ones } } : {}),
    wallClockMillis: rootMillis * 2,
  })
  return Result.isSuccess(carved)
}

type Resolving = Extract<Move, { readonly call: number }>

const resolve = (
  self: Configuration,
  operations: Operations,
  { books, ghost }: { readonly books: Books; readonly ghost: Ghost },
  move: Resolving,
): Outcome => {
  const call = ghost.calls[move.call]!
  const become = (result: Result.Result<unknown, Refusal> | undefined, change: Partial<Call>): Outcome =>
    result !== undefined && Result.isFailure(result)
      ? refused(ghost)
      : done(ghost, { calls: ghost.calls.map((one) => (one === call ? { ...call, ...change } : one)) })
  switch (move.name) {
    case "send":
      return become(undefined, { sent: true })
    case "void":
      return become(operations.release(books, call.ref, "Voided"), { phase: "Voided" })
    case "assume":
      return become(operations.release(books, call.ref, "Assumed"), {
        phase: "Assumed",
        sent: true,
        bill: move.amounts,
      })
    case "settle":
      return become(operations.settle(books, call.ref, grantOf(self, move.amounts)), {
        phase: "Settled",
        sent: true,
        bill: move.amounts,
      })
    case "adjust":
      return become(operations.adjust(books, call.ref, grantOf(self, move.amounts)), { phase: "Adjusted" })
    case "extend":
      return become(operations.extendHold(books, call.ref, grantOf(self, move.amounts)), {
        held: call.held.map((n, d) => n + move.amounts[d]!),
      })
  }
}

const wait = (
  self: Configuration,
  operations: Operations,
  { books, ghost }: { readonly books: Books; readonly ghost: Ghost },
  { node, need, least }: Extract<Move, { readonly name: "wait" }>,
): Outcome => {
  operations.wait(books, node, { need: grantOf(self, need), least: grantOf(self, least) }, (end) => {
    ended.push(
      Result.isSuccess(end)
        ? { child: node, given: self.dimensions.map((d) => end.success[d]), reason: "" }
        : { child: node, given: undefined, reason: end.failure._tag },
    )
  })
  const own = ended.find((end) => end.child === node)
  // Refused for want of funds it has given back what it had; refused for anything else it has done nothing.
  if (own !== undefined && own.given === undefined && own.reason !== "Insufficient") return refused(ghost)
  return done(ghost, { line: [...ghost.line, { child: node, parent: nodeOf(ghost, node).parent!, need, least }] })
}

const live = (
  operations: Operations,
  { books, ghost }: { readonly books: Books; readonly ghost: Ghost },
  { name, node }: { readonly name: "freeze" | "drain" | "pause" | "resume" | "leave" | "close"; readonly node: string },
): Outcome => {
  const became = (change: (one: Node) => Node): Outcome =>
    done(ghost, { nodes: ghost.nodes.map((one) => (isUnder(ghost, one.id, node) ? change(one) : one)) })
  switch (name) {
    case "freeze":
    case "drain":
      operations.freeze(books, node, name, { closingWork: name === "freeze" })
      return became((one) => stopped(one, name))
    case "pause":
      if (Result.isFailure(operations.pause(books, node, name))) return refused(ghost)
      return became((one) => (one.state === "Open" ? { ...one, state: "Paused", pausedBy: node } : one))
    case "resume":
      if (Result.isFailure(operations.resume(books, node))) return refused(ghost)
      return became((one) => (one.pausedBy === node ? { ...one, state: "Open", pausedBy: undefined } : one))
    case "leave":
      operations.leave(books, node, { _tag: "DeadlinePassed", reserve: "explore", leftMillis: 0, neededMillis: 1 })
      return done(ghost, {})
    case "close":
      if (Result.isFailure(operations.close(books, node))) return refused(ghost)
      return done(ghost, {
        nodes: ghost.nodes.map((one) => (one.id === node ? { ...one, state: "Closed", pausedBy: undefined } : one)),
      })
  }
}

const stopped = (one: Node, name: "freeze" | "drain"): Node => {
  if (one.state === "Closed" || one.state === "Draining" || (one.state === "Frozen" && name === "freeze")) return one
  return { ...one, state: name === "freeze" ? "Frozen" : "Draining", pausedBy: undefined }
}
