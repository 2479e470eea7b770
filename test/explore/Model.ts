/**
 * The small world that is explored: how large it is, and a state of it. A state is the books of the ledger and what an
 * outside witness knows besides (the *ghost*): which calls were sent and what they really cost, which accounts were
 * frozen or closed on whose word, who stands in line. The ghost never reads the books.
 */
import { Books, type Hold, type HoldRef } from "../../src/budget/Books.ts"
import * as Result from "effect/Result"
import type { Dimension, Grant } from "../../src/budget/Dimension.ts"
import type { Operations } from "../../src/budget/Operations.ts"

/** One number for each dimension of the configuration. */
export type Vector = ReadonlyArray<number>

/** The reserves that are in play; the others stay empty, which is checked too. */
export type InPlay = "explore" | "output"

export const inPlay: ReadonlyArray<InPlay> = ["explore", "output"]

/** Kinds of moves that a configuration can leave out. */
export const kinds = [
  ...(["send", "overrun", "extend", "adjust", "move", "topUp", "reclaim"] as const),
  ...(["freeze", "drain", "pause", "wait", "leave", "atMost", "childOutput", "repeat", "closeRoot"] as const),
]

export type Kind = (typeof kinds)[number]

export interface Configuration {
  readonly name: string
  /** Units of the root, in each dimension. */
  readonly limit: number
  /** Accounts open and holds pending at the same time. */
  readonly nodes: number
  readonly holds: number
  /** Accounts and holds ever made: one that is closed or resolved makes room for another. */
  readonly nodesEver: number
  readonly holdsEver: number
  readonly dimensions: ReadonlyArray<Dimension>
  readonly kinds: ReadonlySet<Kind>
  /** Deeper trees than this are not built: 1 is children of the root only. */
  readonly depth?: number
}

/** A call as a witness outside the ledger sees it. */
export interface Call {
  readonly ref: HoldRef
  readonly reserve: InPlay
  readonly held: Vector
  readonly sent: boolean
  readonly phase: Hold["state"]
  /** What it really cost; hidden from the ledger while the call is only assumed. */
  readonly bill: Vector
}

/** An account as its owner commanded it to be. */
export interface Node {
  readonly id: string
  readonly parent: string | undefined
  readonly depth: number
  readonly state: "Open" | "Paused" | "Frozen" | "Draining" | "Closed"
  readonly pausedBy: string | undefined
}

/** Who stands in line, first come first. */
export interface Waiter {
  readonly child: string
  readonly parent: string
  readonly need: Vector
  readonly least: Vector
}

export interface Ghost {
  readonly calls: ReadonlyArray<Call>
  readonly nodes: ReadonlyArray<Node>
  readonly line: ReadonlyArray<Waiter>
}

export interface State {
  readonly books: Books
  readonly ghost: Ghost
}

/** How a wait ended, as its waiter was told. */
export interface Ended {
  readonly child: string
  readonly given: Vector | undefined
  /** The reason, when it was refused. */
  readonly reason: string
}

/** A broken law: its name in the specification, and the numbers. */
export interface Violation {
  readonly law: string
  readonly detail: string
}

export const ignore = (): void => {}

/** The deadline of the root; children ask for more and must not get it. */
export const rootMillis = 1000

/** One grant object for each vector: they are asked for millions of times. */
const grants = new WeakMap<Configuration, Map<number, Grant>>()

export const grantOf = (self: Configuration, vector: Vector): Grant => {
  let known = grants.get(self)
  if (known === undefined) grants.set(self, (known = new Map()))
  let key = 0
  for (const n of vector) key = key * 1024 + n
  let grant = known.get(key)
  if (grant === undefined) {
    grant = Object.fromEntries(self.dimensions.map((d, index) => [d, vector[index]!]))
    known.set(key, grant)
  }
  return grant
}

/** The first state: a root with one unit of each dimension kept for its answer. */
export const start = (self: Configuration, operations: Operations): State => {
  const books = new Books({ record: ignore, nowMillis: () => 0, limits: { maxDepth: 8, maxOpenChildren: 8 } })
  const opened = operations.openRoot(books, {
    id: "root",
    name: "root",
    grant: grantOf(
      self,
      self.dimensions.map(() => self.limit),
    ),
    reserves: {
      _tag: "Explicit",
      output: grantOf(
        self,
        self.dimensions.map(() => 1),
      ),
    },
    wallClockMillis: rootMillis,
  })
  if (Result.isFailure(opened)) throw new Error(`the root was refused: ${opened.failure._tag}`)
  const root: Node = { id: "root", parent: undefined, depth: 0, state: "Open", pausedBy: undefined }
  return { books, ghost: { calls: [], nodes: [root], line: [] } }
}

export const nodeOf = (ghost: Ghost, id: string): Node => {
  for (const node of ghost.nodes) if (node.id === id) return node
  throw new Error(`no node ${id}`)
}

/** Whether `id` is `above` or stands under it. */
export const isUnder = (ghost: Ghost, id: string, above: string): boolean => {
  for (let at: string | undefined = id; at !== undefined; at = nodeOf(ghost, at).parent) if (at === above) return true
  return false
}
