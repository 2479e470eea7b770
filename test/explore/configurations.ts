/**
 * The worlds that are explored: those of every push, and the larger ones of `--deep`. A name gives units, accounts open
 * and holds pending at the same time; each account closed and hold resolved makes room for another, up to `...Ever`.
 */
import { type Configuration, type Kind, kinds } from "./Model.ts"

const without = (...left: ReadonlyArray<Kind>): ReadonlySet<Kind> =>
  new Set(kinds.filter((kind) => !left.includes(kind)))

const all = without()

const only = (...kinds: ReadonlyArray<Kind>): ReadonlySet<Kind> => new Set(kinds)

/** Units, accounts, holds, and how many of both ever. */
const sized = (limit: number, nodes: number, holds: number, nodesEver = nodes, holdsEver = holds) => ({
  name: `${limit} units, ${nodes} nodes, ${holds} ${holds === 1 ? "hold" : "holds"}`,
  limit,
  nodes,
  holds,
  nodesEver,
  holdsEver,
  dimensions: ["steps"] as Configuration["dimensions"],
})

const vectors = (...size: Parameters<typeof sized>) => ({
  ...sized(...size),
  name: `two dimensions, ${sized(...size).name}`,
  dimensions: ["steps", "money"] as Configuration["dimensions"],
})

/** Lines long enough to have an order, and those who wait while others wait for them. */
export const lines: Configuration = {
  ...sized(5, 5, 0),
  name: "5 units, 5 nodes, lines",
  kinds: only("wait", "leave", "freeze"),
  depth: 2,
}

/** Lines where bills become known far below them. */
export const linesBelow: Configuration = {
  ...sized(4, 4, 1, 5),
  name: "4 units, 4 nodes, 1 hold, lines",
  kinds: only("wait", "leave", "adjust"),
  depth: 2,
}

/** Together under a minute and a half on two processors; the first three reach 100,000 states each. */
export const everyPush: ReadonlyArray<Configuration> = [
  { ...sized(2, 3, 2, 3, 4), kinds: all },
  { ...vectors(2, 2, 2), kinds: without("pause") },
  { ...sized(3, 2, 2, 3, 3), kinds: without("pause") },
  lines,
]

/** The larger sizes of the specification's table, and vectors over three accounts: for a night. */
export const deep: ReadonlyArray<Configuration> = [
  { ...sized(3, 3, 2), kinds: all },
  { ...sized(4, 2, 2, 3, 3), kinds: all },
  { ...sized(4, 3, 1), kinds: all },
  { ...vectors(2, 3, 1), kinds: all },
  linesBelow,
]

/** Small ones: for a look at every run of the tests, and for defects, which show early. */
export const tiny: Configuration = { ...sized(2, 2, 1), kinds: all }

export const small: Configuration = { ...sized(3, 2, 2), kinds: all }

export const threeNodes: Configuration = { ...sized(3, 3, 1), kinds: all }

export const twoDimensions: Configuration = { ...vectors(2, 2, 1), kinds: without("pause") }
