/**
 * Random concurrent runs with interruptions: `npm run races -- --seed 1 --runs 100000`. Each run has a seed of its own,
 * counted up from the first, so a failing one is run again alone with `--seed ITS --runs 1`.
 */
import { once } from "node:events"
import { parseArgs } from "node:util"
import { Worker } from "node:worker_threads"
import { add, type Counts, nothing, type Tally } from "./Tally.ts"

const threads = 2

/** More failing seeds than these say nothing new. */
const shown = 20

const lineOf = (name: string, { runs, overspends, holdsLeft, most }: Counts): string => {
  const overshoot = most.amount === 0 ? "none" : `${most.amount} above ${Math.round(most.amount / most.part)}`
  return [
    name.padEnd(30),
    `${runs} runs`,
    `${overspends} overspends`,
    `${holdsLeft} holds left`,
    `largest overshoot ${overshoot}`,
  ].join("  ")
}

const runAll = async (first: number, runs: number): Promise<Tally> => {
  const parts = Array.from({ length: Math.min(threads, runs) }, async (_, index) => {
    const workerData = { first: first + index, end: first + runs, step: threads, quick: runs > threads }
    const [tally] = await once(new Worker(new URL("worker.ts", import.meta.url), { workerData }), "message")
    return tally as Tally
  })
  return (await Promise.all(parts)).reduce(add, nothing)
}

const natural = (text: string): number | undefined =>
  /^\d+$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined

const main = async (): Promise<number> => {
  const { values } = parseArgs({
    options: { seed: { type: "string", default: "1" }, runs: { type: "string", default: "100000" } },
  })
  const [first, runs] = [natural(values.seed), natural(values.runs)]
  if (first === undefined || runs === undefined || runs === 0) {
    console.error("usage: npm run races -- [--seed N] [--runs N], with whole numbers")
    return 2
  }
  const started = performance.now()
  const { tree, counter, interrupted, entries, failed } = await runAll(first, runs)
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  for (const { seed, complaints } of failed.toSorted((a, b) => a.seed - b.seed).slice(0, shown)) {
    console.log(`failed: npm run races -- --seed ${seed} --runs 1`)
    for (const complaint of complaints.slice(0, 5)) console.log(`  ${complaint}`)
  }
  console.log(lineOf("Bursar", tree))
  console.log(lineOf("a counter: check, call, add", counter))
  console.log(
    `seeds ${first} to ${first + runs - 1}: ${interrupted} with interruptions, ${entries} entries, ${seconds} s`,
  )
  const laws = [failed.length === 0, counter.overspends * 2 > counter.runs]
  const kept = laws.filter((law) => law).length
  if (laws[1] === false)
    console.log("the counter did not overshoot in most runs: the workload is too tame to prove anything")
  console.log(`${kept} passed, ${laws.length - kept} failed`)
  return kept < laws.length ? 1 : 0
}

process.exitCode = await main()
