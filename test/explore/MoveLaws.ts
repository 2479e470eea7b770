/**
 * What must hold of every move, whatever state it leads to: what may rise and fall (I9), what may start under whom
 * (I12), what a close gives back (I8), and that a refusal and a repeated delivery change nothing.
 */
import type { Account, Fund } from "../../src/budget/Account.ts"
import type { Books } from "../../src/budget/Books.ts"
import type { Dimension } from "../../src/budget/Dimension.ts"
import { type Configuration, type Ghost, nodeOf, type State, type Violation } from "./Model.ts"
import { free, type Move } from "./Moves.ts"
import type { Outcome } from "./Step.ts"

export interface Transition {
  readonly self: Configuration
  readonly before: State
  readonly after: State
  readonly move: Move
  readonly outcome: Outcome
}

const over = ({ funds }: Account, part: keyof Fund, d: Dimension): number =>
  funds.explore[part][d] + funds.retry[part][d] + funds.verify[part][d] + funds.output[part][d]

/** Grants rise by these (and by a cover), and fall by those. */
const raising: ReadonlySet<Move["name"]> = new Set(["topUp"])

const lowering: ReadonlySet<Move["name"]> = new Set(["reclaim", "wait"])

/** A bill above its hold now, or one before that is still owed: cover takes from where it finds something. */
const mayCover = ({ before, move, self }: Transition, index: number): boolean => {
  if (move.name === "settle" || move.name === "adjust") {
    if (move.amounts[index]! > before.ghost.calls[move.call]!.held[index]!) return true
  }
  const d = self.dimensions[index]!
  return before.ghost.nodes.some((node) => before.books.account(node.id).debt[d] > 0)
}

/** I9: use never falls but by an adjustment; grants change only by what is meant to change them. */
const monotone = (of: Transition): string | undefined => {
  const { self, before, after, move, outcome } = of
  for (const { id, state } of before.ghost.nodes) {
    const [then, now] = [before.books.account(id), after.books.account(id)]
    if (then === now) continue
    for (const [index, d] of self.dimensions.entries()) {
      const used = over(now, "used", d) - over(then, "used", d)
      if (used < 0 && move.name !== "adjust") return `use of ${id} fell by ${-used} ${d}`
      if (state === "Closed") continue
      const granted = over(now, "allocated", d) - over(then, "allocated", d)
      const served = outcome.ended.some((end) => end.child === id && end.given !== undefined)
      if (granted > 0 && !raising.has(move.name) && !served && !mayCover(of, index))
        return `grant of ${id} rose by ${granted} ${d}`
      if (granted < 0 && !(lowering.has(move.name) && "node" in move && move.node === id))
        return `grant of ${id} fell by ${-granted} ${d}`
    }
  }
  return undefined
}

/** I10 of moves: a senior reserve never shrinks but to cover. */
const senior = (of: Transition): string | undefined => {
  const { self, before, after } = of
  for (const { id, state } of before.ghost.nodes) {
    if (state === "Closed") continue
    const [then, now] = [before.books.account(id).funds.output, after.books.account(id).funds.output]
    for (const [index, d] of self.dimensions.entries())
      if (now.allocated[d] < then.allocated[d] && !mayCover(of, index))
        return `output of ${id} shrank from ${then.allocated[d]} to ${now.allocated[d]} ${d}`
  }
  return undefined
}

/** Where the owner of an account stopped it, or of one above it. */
const stopOf = (ghost: Ghost, id: string): string | undefined => {
  for (let at: string | undefined = id; at !== undefined; at = nodeOf(ghost, at).parent) {
    const { state } = nodeOf(ghost, at)
    if (state !== "Open") return state
  }
  return undefined
}

/** I12: nothing new under a frozen, paused or closed account; closing work only where its owner allows it. */
const frozen = ({ before, move, outcome }: Transition): string | undefined => {
  const { ghost } = before
  if ("call" in move) {
    if (move.name !== "extend") return undefined
    const { ref, reserve } = ghost.calls[move.call]!
    return lawfulWork(ghost, ref.account, reserve) ? undefined : `${ref.id} grew under a stop`
  }
  if (move.name === "hold")
    return lawfulWork(ghost, move.node, move.reserve) ? undefined : `a hold under ${stopOf(ghost, move.node)}`
  if (["carve", "move", "topUp", "reclaim", "wait"].includes(move.name)) {
    const stop = stopOf(ghost, move.node)
    if (stop !== undefined) return `${move.name} under ${stop}`
  }
  for (const end of outcome.ended) {
    if (end.given === undefined) continue
    const { parent, state } = nodeOf(outcome.ghost, end.child)
    const stop = state === "Open" || state === "Paused" ? stopOf(outcome.ghost, parent!) : state
    if (stop !== undefined) return `${end.child} was served under ${stop}`
  }
  return undefined
}

const lawfulWork = (ghost: Ghost, id: string, reserve: string): boolean => {
  const stop = stopOf(ghost, id)
  return stop === undefined || (stop === "Frozen" && reserve === "output")
}

/** I11 of moves: a child's grant was there to give. */
const within = ({ self, before, after, move }: Transition): string | undefined => {
  if (move.name !== "carve") return undefined
  const parent = before.books.account(move.node)
  const child = after.books.account(after.ghost.nodes.at(-1)!.id)
  for (const d of self.dimensions) {
    const [grant, most] = [over(child, "allocated", d), free(parent, "explore", d)]
    if (grant > most) return `${child.id} got ${grant} of ${most} ${d}`
  }
  return undefined
}

/** I8 of moves: a close gives back the grant without the use, where no debt and nobody in line takes it at once. */
const refund = ({ self, before, after, move }: Transition): string | undefined => {
  if (move.name !== "close") return undefined
  const { parent } = nodeOf(before.ghost, move.node)
  if (parent === undefined || before.ghost.line.length > 0) return undefined
  const child = before.books.account(move.node)
  for (const d of self.dimensions) {
    if (before.ghost.nodes.some((node) => before.books.account(node.id).debt[d] > 0)) continue
    const back = over(child, "allocated", d) - over(child, "used", d)
    const got = free(after.books.account(parent), "explore", d) - free(before.books.account(parent), "explore", d)
    if (got !== back) return `${parent} got ${got} ${d} back from ${move.node}, not ${back}`
  }
  return undefined
}

/** The line is served in its order, and each with what it asked for. */
const fair = ({ before, move, outcome }: Transition): string | undefined => {
  if (outcome.ended.length === 0) return undefined
  const joined =
    move.name === "wait"
      ? [{ child: move.node, parent: nodeOf(before.ghost, move.node).parent!, need: move.need, least: move.least }]
      : []
  let line = [...before.ghost.line, ...joined]
  for (const { child, given } of outcome.ended) {
    const waiter = line.find((one) => one.child === child)
    if (waiter === undefined) return `${child} was answered and did not wait`
    const head = line.find((one) => one.parent === waiter.parent)
    if (given !== undefined && head !== waiter) return `${child} was served before ${head!.child}`
    if (given?.some((n, d) => n < waiter.least[d]! || n > waiter.need[d]!) === true)
      return `${child} got ${given.join()}`
    line = line.filter((one) => one !== waiter)
  }
  return undefined
}

/** Moves after which the line of an account, and that of its parent, are looked at again. */
const returning: ReadonlySet<Move["name"]> = new Set<Move["name"]>([
  "settle",
  "void",
  "assume",
  "adjust",
  "topUp",
  "reclaim",
  "wait",
  "leave",
  "close",
  "resume",
])

/** The head of a line is refused as soon as all that the others could still return would not cover it. */
const hopeless = ({ self, after, move }: Transition): string | undefined => {
  const { books, ghost } = after
  if (ghost.line.length === 0 || !returning.has(move.name)) return undefined
  const touched = "call" in move ? ghost.calls[move.call]!.ref.account : move.node
  for (const parent of [touched, nodeOf(ghost, touched).parent]) {
    const head = ghost.line.find((waiter) => waiter.parent === parent)
    if (head === undefined || parent === undefined) continue
    // One that waits itself may be given more, and with it those who wait for it; one that stands still serves nobody.
    if (nodeOf(ghost, parent).state !== "Open") continue
    if (ghost.line.some((waiter) => waiter.child === parent)) continue
    for (const [index, d] of self.dimensions.entries()) {
      let possible = free(books.account(parent), "explore", d)
      for (const { id, state } of ghost.nodes) {
        const account = books.account(id)
        if (account.parent?.id !== parent || state === "Closed" || ghost.line.some(({ child }) => child === id))
          continue
        possible += over(account, "allocated", d) - over(account, "used", d)
      }
      if (head.least[index]! > possible) return `${head.child} waits for ${head.least[index]} of ${possible} ${d}`
    }
  }
  return undefined
}

const laws: Readonly<Record<string, (of: Transition) => string | undefined>> = {
  "I12 freeze": frozen,
  "I9 monotone": monotone,
  "I10 senior reserve": senior,
  "I11 structure": within,
  "I8 refund": refund,
  Line: fair,
  "Line, hopeless": hopeless,
}

/** The first law that an accepted move breaks. */
export const brokenMove = (of: Transition): Violation | undefined => {
  for (const law in laws) {
    const detail = laws[law]!(of)
    if (detail !== undefined) return { law, detail }
  }
  return undefined
}

/** The records that stand for a state: equal ones are the same objects. */
export const recordsOf = (ghost: Ghost, books: Books): ReadonlyArray<unknown> => {
  const records: Array<unknown> = []
  for (const { id } of ghost.nodes) records.push(books.account(id))
  for (const { ref } of ghost.calls) records.push(books.hold(ref))
  for (const { child } of ghost.line) records.push(books.isWaiting(child))
  return records
}

/** Which account or hold differs from what it was, if one does. */
export const changed = (ghost: Ghost, before: ReadonlyArray<unknown>, books: Books): string | undefined => {
  let at = 0
  for (const { id } of ghost.nodes) if (books.account(id) !== before[at++]) return id
  for (const { ref } of ghost.calls) if (books.hold(ref) !== before[at++]) return ref.id
  for (const { child } of ghost.line) if (books.isWaiting(child) !== before[at++]) return child
  return undefined
}
