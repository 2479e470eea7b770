/**
 * Breadth first over every interleaving of moves, so that the first broken law comes with a shortest way to it. Each move
 * is carried out by the operations given, on a copy of the books.
 */
import type { Books } from "../../src/budget/Books.ts"
import type { Operations } from "../../src/budget/Operations.ts"
import { keyOf } from "./Key.ts"
import { type Configuration, ignore, start, type State, type Violation } from "./Model.ts"
import { brokenMove, changed, recordsOf } from "./MoveLaws.ts"
import { describe, type Move, movesOf, repeatsOf } from "./Moves.ts"
import { brokenState } from "./StateLaws.ts"
import { step } from "./Step.ts"

/** A broken law and the shortest way there, in words. */
export interface Found extends Violation {
  readonly moves: ReadonlyArray<string>
}

export interface Explored {
  readonly states: number
  /** Moves that were accepted; `refused` counts the others, `repeated` the deliveries that came again. */
  readonly transitions: number
  readonly refused: number
  readonly repeated: number
  readonly seconds: number
  readonly found: Found | undefined
}

/** How a state was first reached. */
interface Trail {
  readonly from: Trail | undefined
  readonly move: Move | undefined
}

interface Reached {
  readonly state: State
  readonly trail: Trail
}

/** A law that broke, and the move at which it did. */
interface Broken {
  readonly violation: Violation
  readonly trail: Trail
}

/** Explores every state of a configuration, or until a law breaks. */
export const explore = (self: Configuration, operations: Operations): Explored => {
  const started = performance.now()
  const search = new Search(self, operations)
  const broken = search.run()
  const { transitions, refused, repeated } = search
  return {
    states: search.seen.size,
    transitions,
    refused,
    repeated,
    seconds: (performance.now() - started) / 1000,
    found: broken === undefined ? undefined : { ...broken.violation, moves: told(self, operations, broken.trail) },
  }
}

class Search {
  readonly seen = new Set<string>()
  transitions = 0
  refused = 0
  repeated = 0
  readonly #self: Configuration
  readonly #operations: Operations
  /** Whether the state arrived at last was known before. */
  #isKnown = false

  constructor(self: Configuration, operations: Operations) {
    this.#self = self
    this.#operations = operations
  }

  run(): Broken | undefined {
    const first: Reached = { state: start(this.#self, this.#operations), trail: { from: undefined, move: undefined } }
    this.seen.add(keyOf(this.#self, first.state))
    const wrong = brokenState(this.#self, first.state)
    if (wrong !== undefined) return { violation: wrong, trail: first.trail }
    for (let level: Array<Reached> = [first]; level.length > 0;) {
      const next: Array<Reached> = []
      // Taken off one by one: what has been explored is free to go.
      level.reverse()
      for (let reached = level.pop(); reached !== undefined; reached = level.pop()) {
        const broken = this.#expand(reached, next)
        if (broken !== undefined) return broken
      }
      level = next
    }
    return undefined
  }

  #expand(at: Reached, next: Array<Reached>): Broken | undefined {
    const { state, trail } = at
    let scratch: Books | undefined
    const records = recordsOf(state.ghost, state.books)
    let resolves = 0
    for (const move of movesOf(this.#self, state)) {
      const books: Books = scratch ?? state.books.fork(ignore)
      const outcome = step(this.#self, this.#operations, { books, ghost: state.ghost }, move)
      const here = (violation: Violation): Broken => ({ violation, trail: { from: trail, move } })
      if (!outcome.accepted) {
        this.refused++
        const touched = changed(state.ghost, records, books)
        if (touched !== undefined) return here({ law: "Refusal", detail: `${touched} changed though refused` })
        // Refused ids stay refused, so those copies are spent.
        scratch = move.name === "hold" || move.name === "carve" ? undefined : books
        continue
      }
      scratch = undefined
      this.transitions++
      if (resolving.has(move.name) && move.name !== "adjust") resolves++
      const after: Reached = { state: { books, ghost: outcome.ghost }, trail: { from: trail, move } }
      const wrong =
        brokenMove({ self: this.#self, before: state, after: after.state, move, outcome }) ?? this.#arrive(after, next)
      if (wrong !== undefined) return here(wrong)
      if (this.#isKnown && resolving.has(move.name)) {
        const again = this.#repeat(after, [move])
        if (again !== undefined) return again
      }
    }
    if (resolves === 0 && !isOver(state))
      return { violation: { law: "Progress", detail: "nothing can be resolved or closed" }, trail }
    return this.#repeat(at, repeatsOf(state))
  }

  /**
   * Takes a state in, unless it is known. Rows of closed accounts are no part of what makes a state known, so the moves
   * that change them are looked at each time.
   */
  #arrive(reached: Reached, next: Array<Reached>): Violation | undefined {
    const known = this.seen.size
    this.seen.add(keyOf(this.#self, reached.state))
    this.#isKnown = this.seen.size === known
    if (!this.#isKnown) next.push(reached)
    const { name } = reached.trail.move!
    return this.#isKnown && name !== "close" && name !== "adjust" ? undefined : brokenState(this.#self, reached.state)
  }

  /** Deliveries that come again leave everything as it is. They come last: these books are not needed any more. */
  #repeat({ state, trail }: Reached, moves: ReadonlyArray<Move>): Broken | undefined {
    if (!this.#self.kinds.has("repeat")) return undefined
    const { books, ghost } = state
    const records = recordsOf(ghost, books)
    for (const move of moves) {
      this.repeated++
      step(this.#self, this.#operations, { books, ghost }, move)
      const touched = changed(ghost, records, books)
      if (touched === undefined) continue
      const violation = { law: "I7 resolve once", detail: `${touched} changed by a second delivery` }
      return { violation, trail: { from: trail, move } }
    }
    return undefined
  }
}

const resolving: ReadonlySet<Move["name"]> = new Set(["settle", "void", "assume", "adjust", "close"])

/** Nothing open below the root, nothing pending, and the root itself may stay open. */
const isOver = ({ ghost }: State): boolean =>
  ghost.calls.every((call) => call.phase !== "Pending") &&
  ghost.nodes.every((node) => node.parent === undefined || node.state === "Closed")

/** The way to a state in words. */
const told = (self: Configuration, operations: Operations, trail: Trail): ReadonlyArray<string> => {
  const moves: Array<Move> = []
  for (let at: Trail | undefined = trail; at !== undefined; at = at.from)
    if (at.move !== undefined) moves.unshift(at.move)
  const { books, ghost: first } = start(self, operations)
  let ghost = first
  return moves.map((move) => {
    const words = describe(move, ghost)
    ;({ ghost } = step(self, operations, { books, ghost }, move))
    return words
  })
}
