/**
 * What a step of an agent costs, how that grows with the history, and how long a process takes to start. Ratios are to a
 * loop over `effect/ai` that was written by hand and runs its tool calls itself, within this run.
 */
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import {
  interleave,
  measure,
  median,
  nanosOf,
  type Sample,
  table,
  type Target,
  type Timed,
  verdicts,
} from "./Measure.ts"
import { startup, type Startup } from "./Startup.ts"
import { effectAi, floor, foreign, memory, onDisk, type Workload } from "./Workloads.ts"

// --- W1: steps

const steps = 200

const perStep = (workloads: ReadonlyArray<Workload>): Promise<ReadonlyArray<Timed>> =>
  measure(
    workloads.map(({ name, run }) => ({
      name,
      prepare: () => async () => {
        await run(steps, () => {})
        return steps
      },
    })),
    { warmUp: 20, counted: 25 },
  )

const stepRows = (timed: ReadonlyArray<Timed>): ReadonlyArray<ReadonlyArray<string>> => [
  [`W1: ${steps} steps`, "µs a step", "to effect/ai", "to the floor"],
  ...[...timed, leastForeign(timed)].map(({ name, nanos }) => [
    name,
    micros(nanos),
    ratio(nanos / nanosOf(timed, effectAi.name)),
    ratio(nanos / nanosOf(timed, floor.name)),
  ]),
]

/** A step over a foreign model holds a whole step of effect/ai, and one of ours. */
const leastForeign = (timed: ReadonlyArray<Timed>): Timed => ({
  name: "(a foreign one at the least: ours + effect/ai's)",
  nanos: nanosOf(timed, memory.name) + nanosOf(timed, effectAi.name),
})

// --- W5: history

const lengths = [50, 200, 800, 3_200] as const

/** How many steps at the end of a run tell what a step costs by then. */
const last = 50

/** Nanoseconds per step: over the whole run, and of the median one among its last. */
const grown =
  ({ run }: Workload, length: number): Sample =>
  async () => {
    const asked: Array<number> = []
    const start = performance.now()
    await run(length, () => void asked.push(performance.now()))
    const whole = performance.now() - start
    const late = asked.slice(-last - 1).map((at, index, from) => at - (from[index - 1] ?? Number.NaN))
    return [(whole / length) * 1e6, median(late.slice(1)) * 1e6]
  }

interface Grown {
  readonly whole: number
  readonly late: number
}

/** By name of the workload and length. */
const growth = async (workloads: ReadonlyArray<Workload>): Promise<ReadonlyMap<string, ReadonlyArray<Grown>>> => {
  const samples = workloads.flatMap((workload) => lengths.map((length) => grown(workload, length)))
  const medians = await interleave(samples, { warmUp: 1, counted: 5 })
  const all = medians.map(([whole, late]): Grown => ({ whole: whole!, late: late! }))
  return new Map(
    workloads.map(({ name }, index) => [name, all.slice(index * lengths.length, (index + 1) * lengths.length)]),
  )
}

const growthRows = (grown: ReadonlyMap<string, ReadonlyArray<Grown>>): ReadonlyArray<ReadonlyArray<string>> => [
  ["W5: µs a step at a length of", ...lengths.map(String), "last to first"],
  ...[...grown].flatMap(([name, at]) => [
    [`${name}, the last ${last} steps`, ...at.map(({ late }) => micros(late)), ratio(growthOf(at))],
    [`${name}, the whole run`, ...at.map(({ whole }) => micros(whole)), ratio(at.at(-1)!.whole / at[0]!.whole)],
  ]),
]

const growthOf = (at: ReadonlyArray<Grown>): number => at.at(-1)!.late / at[0]!.late

// --- W6: start

const startRows = ({ bursar, effectAi, node }: Startup): ReadonlyArray<ReadonlyArray<string>> => [
  ["W6: a whole process", "ms", "to effect/ai"],
  ...Object.entries({
    "node alone": node,
    "effect/ai, imported": effectAi,
    "Bursar, one trivial agent": bursar,
  }).map(([name, millis]) => [name, millis.toFixed(0), ratio(millis / effectAi)]),
]

// --- all

const micros = (nanos: number): string => (nanos / 1000).toFixed(1)
const ratio = (value: number): string => `${value.toFixed(2)}x`

const targets = (
  timed: ReadonlyArray<Timed>,
  grown: ReadonlyMap<string, ReadonlyArray<Grown>>,
  started: Startup | string,
): ReadonlyArray<Target> => {
  const toEffectAi = ({ name }: Workload) => nanosOf(timed, name) / nanosOf(timed, effectAi.name)
  const begun = typeof started === "string" ? Number.NaN : started.bursar / started.effectAi
  return [
    { name: "W1: own or scripted model, to effect/ai", measured: toEffectAi(memory), most: 1, unit: "x" },
    { name: "W1: foreign LanguageModel, to effect/ai", measured: toEffectAi(foreign), most: 1.5, unit: "x" },
    { name: "W5: a step at 3,200 to one at 50", measured: growthOf(grown.get(memory.name)!), most: 2, unit: "x" },
    { name: "W6: a whole process, to effect/ai", measured: begun, most: 1.2, unit: "x" },
  ]
}

export const loop = async (): Promise<void> => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "bursar-bench-"))
  try {
    const timed = await perStep([memory, onDisk(path.join(folder, "runs")), foreign, effectAi, floor])
    console.log(`${table(stepRows(timed))}\n`)
    const grown = await growth([memory, effectAi])
    console.log(`${table(growthRows(grown))}\n`)
    const started = await startup(folder, { warmUp: 1, counted: 9 })
    console.log(`${typeof started === "string" ? started : table(startRows(started))}\n`)
    console.log(verdicts(targets(timed, grown, started)))
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
}
