/**
 * Many runs in figures.
 */
import { larger, none, type Overshoot } from "./Provider.ts"
import { type Ended, race } from "./Race.ts"

export interface Counts {
  readonly runs: number
  readonly overspends: number
  readonly holdsLeft: number
  readonly most: Overshoot
}

/** A run that went wrong, and how. */
export interface Failed {
  readonly seed: number
  readonly complaints: ReadonlyArray<string>
}

export interface Tally {
  readonly tree: Counts
  readonly counter: Counts
  readonly interrupted: number
  readonly entries: number
  readonly failed: ReadonlyArray<Failed>
}

const noCounts: Counts = { runs: 0, overspends: 0, holdsLeft: 0, most: none }

export const nothing: Tally = { tree: noCounts, counter: noCounts, interrupted: 0, entries: 0, failed: [] }

const both = (a: Counts, b: Counts): Counts => ({
  runs: a.runs + b.runs,
  overspends: a.overspends + b.overspends,
  holdsLeft: a.holdsLeft + b.holdsLeft,
  most: larger(a.most, b.most),
})

/** Two tallies as one. */
export const add = (a: Tally, b: Tally): Tally => ({
  tree: both(a.tree, b.tree),
  counter: both(a.counter, b.counter),
  interrupted: a.interrupted + b.interrupted,
  entries: a.entries + b.entries,
  failed: [...a.failed, ...b.failed],
})

const countsOf = ({ most, holdsLeft }: Ended): Counts => ({
  runs: 1,
  overspends: most.amount > 0 ? 1 : 0,
  holdsLeft,
  most,
})

const tallyOf = async (seed: number): Promise<Tally> => {
  const { tree, counter, interrupted } = await race(seed)
  return {
    tree: countsOf(tree),
    counter: countsOf(counter),
    interrupted: interrupted ? 1 : 0,
    entries: tree.entries,
    failed: tree.complaints.length === 0 ? [] : [{ seed, complaints: tree.complaints }],
  }
}

/** Runs a range of seeds, or each `step`-th of it. */
export const run = async (seeds: {
  readonly first: number
  readonly end: number
  readonly step: number
}): Promise<Tally> => {
  let tally = nothing
  for (let seed = seeds.first; seed < seeds.end; seed += seeds.step) tally = add(tally, await tallyOf(seed))
  return tally
}
