/**
 * Many conversations in figures.
 */
import * as Effect from "effect/Effect"
import { converse, type Ended } from "./Conversation.ts"
import { judge, type Verdict } from "./Judge.ts"

/** A conversation that broke a law. */
export interface Failed {
  readonly seed: number
  readonly complaints: ReadonlyArray<string>
}

/** How often each thing was seen. */
export type Counts = { readonly [name: string]: number }

export interface Tally {
  readonly counts: Counts
  readonly stops: Counts
  readonly outcomes: Counts
  readonly failed: ReadonlyArray<Failed>
}

export const nothing: Tally = { counts: {}, stops: {}, outcomes: {}, failed: [] }

const both = (a: Counts, b: Counts): Counts => {
  const sum: { [name: string]: number } = { ...a }
  for (const [name, count] of Object.entries(b)) sum[name] = (sum[name] ?? 0) + count
  return sum
}

/** Two tallies as one. */
export const add = (a: Tally, b: Tally): Tally => ({
  counts: both(a.counts, b.counts),
  stops: both(a.stops, b.stops),
  outcomes: both(a.outcomes, b.outcomes),
  failed: [...a.failed, ...b.failed],
})

const of = (names: ReadonlyArray<string>): Counts => names.reduce((sum, name) => both(sum, { [name]: 1 }), {} as Counts)

const tallyOf = (seed: number, ended: Ended, verdict: Verdict): Tally => ({
  counts: {
    conversations: 1,
    requests: ended.entries.length,
    exact: verdict.exact,
    assumed: verdict.assumed,
    "over-runs": verdict.overruns,
    "below a bill nobody could know": verdict.unknowable,
    cancelled: ended.closedAfterMillis === undefined ? 0 : 1,
    "holds left": verdict.holdsLeft,
    "requests left open": ended.leftOpen,
  },
  stops: of([ended.outcome._tag === "Stopped" ? ended.outcome.reason : ended.outcome._tag.toLowerCase()]),
  outcomes: of(ended.entries.map(({ outcome }) => outcome)),
  failed: verdict.complaints.length === 0 ? [] : [{ seed, complaints: verdict.complaints }],
})

/** How many conversations are held at once in one thread: most of their time is spent waiting. */
const atOnce = 8

/** Holds the conversations of a range of seeds, or of each `step`-th of it. */
export const run = (seeds: { readonly first: number; readonly end: number; readonly step: number }): Promise<Tally> => {
  const all: Array<number> = []
  for (let seed = seeds.first; seed < seeds.end; seed += seeds.step) all.push(seed)
  let tally = nothing
  return Effect.runPromise(
    Effect.forEach(
      all,
      (seed) =>
        converse(seed).pipe(
          Effect.map((ended) => tallyOf(seed, ended, judge(ended))),
          Effect.catchCause((cause) =>
            Effect.succeed<Tally>({ ...nothing, failed: [{ seed, complaints: [`it broke down: ${String(cause)}`] }] }),
          ),
          Effect.map((one) => void (tally = add(tally, one))),
        ),
      { concurrency: atOnce, discard: true },
    ).pipe(Effect.map(() => tally)),
  )
}
