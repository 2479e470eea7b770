/**
 * Timing: several rounds of everything, taken in turn so that a slow moment hits all alike; the median counts. And the
 * tables in which it is shown.
 */

/** Nanoseconds per call, for a function that does `count` calls. */
export interface Timed {
  readonly name: string
  readonly nanos: number
}

export interface Candidate {
  readonly name: string
  /** Prepares a round and answers with what is to be timed; it returns how many calls it made. */
  readonly prepare: () => () => number | Promise<number>
}

/** How often everything is taken: first to warm up, then to count. */
export interface Rounds {
  readonly warmUp: number
  readonly counted: number
}

/** One sample: some numbers, each of a kind of its own. */
export type Sample = () => ReadonlyArray<number> | Promise<ReadonlyArray<number>>

/** Takes every sample once in each round, and answers with the medians of the numbers of each. */
export const interleave = async (
  samples: ReadonlyArray<Sample>,
  rounds: Rounds,
): Promise<ReadonlyArray<ReadonlyArray<number>>> => {
  const taken = samples.map((): Array<ReadonlyArray<number>> => [])
  for (let round = -rounds.warmUp; round < rounds.counted; round++) {
    for (const [index, sample] of samples.entries()) {
      const numbers = await sample()
      if (round >= 0) taken[index]!.push(numbers)
    }
  }
  return taken.map((all) => all[0]!.map((_, kind) => median(all.map((numbers) => numbers[kind]!))))
}

/** Times candidates, in the order in which they are given. */
export const measure = async (
  candidates: ReadonlyArray<Candidate>,
  rounds: Rounds = { warmUp: 2, counted: 9 },
): Promise<ReadonlyArray<Timed>> => {
  const samples = candidates.map((candidate): Sample => async () => {
    const body = candidate.prepare()
    const start = process.hrtime.bigint()
    const calls = await body()
    return [Number(process.hrtime.bigint() - start) / calls]
  })
  const medians = await interleave(samples, rounds)
  return candidates.map(({ name }, index) => ({ name, nanos: medians[index]![0]! }))
}

export const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!

/** The measured time of that name. */
export const nanosOf = (timed: ReadonlyArray<Timed>, name: string): number =>
  timed.find((one) => one.name === name)!.nanos

/** Collects garbage; false where node was started without `--expose-gc`. */
export const collect = (): boolean => {
  const { gc } = globalThis as { gc?: () => void }
  gc?.()
  return gc !== undefined
}

/** Rows as aligned text. */
export const table = (rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows
    .map((row) =>
      row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!))).join("  "),
    )
    .join("\n")
}

/** What was measured, `NaN` if it could not be, and what it may be; `unit` stands behind both. */
export interface Target {
  readonly name: string
  readonly measured: number
  readonly most: number
  readonly unit: string
}

/** Each target with its verdict. */
export const verdicts = (targets: ReadonlyArray<Target>): string =>
  table([
    ["target", "measured", "at most", "verdict"],
    ...targets.map(({ name, measured, most, unit }) => [
      name,
      Number.isNaN(measured) ? "-" : `${measured.toFixed(2)}${unit}`,
      `${most}${unit}`,
      Number.isNaN(measured) ? "not measured" : measured <= most ? "met" : "MISSED",
    ]),
  ])
