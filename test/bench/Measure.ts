/**
 * Timing of small functions: several rounds of each, taken in turn so that a slow moment hits all alike; the median counts.
 */

/** Nanoseconds per call, for a function that does `count` calls. */
export interface Timed {
  readonly name: string
  readonly nanos: number
}

export interface Candidate {
  readonly name: string
  /** Prepares a round and answers with what is to be timed; it returns how many calls it made. */
  readonly prepare: () => () => number
}

const rounds = 9

export const measure = (candidates: ReadonlyArray<Candidate>): ReadonlyArray<Timed> => {
  const taken = candidates.map((): Array<number> => [])
  for (let round = -2; round < rounds; round++) {
    candidates.forEach((candidate, index) => {
      const body = candidate.prepare()
      const start = process.hrtime.bigint()
      const calls = body()
      const nanos = Number(process.hrtime.bigint() - start) / calls
      if (round >= 0) taken[index]!.push(nanos)
    })
  }
  return candidates.map((candidate, index) => ({ name: candidate.name, nanos: median(taken[index]!) }))
}

const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!

/** Rows as aligned text. */
export const table = (rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows
    .map((row) =>
      row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!))).join("  "),
    )
    .join("\n")
}
