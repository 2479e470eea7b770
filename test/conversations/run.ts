/**
 * Random conversations with a provider over real HTTP, with random tempers and faults:
 * `npm run conversations -- --seed 1 --count 10000`. Each has a seed of its own, counted up from the first, so a failing
 * one is held again alone with `--seed ITS --count 1`.
 */
import { once } from "node:events"
import { parseArgs } from "node:util"
import { Worker } from "node:worker_threads"
import { add, type Counts, nothing, type Tally } from "./Tally.ts"

const threads = 2

/** More failing seeds than these say nothing new. */
const shown = 20

const holdAll = async (first: number, count: number): Promise<Tally> => {
  const parts = Array.from({ length: Math.min(threads, count) }, async (_, index) => {
    const workerData = { first: first + index, end: first + count, step: threads }
    const [tally] = await once(new Worker(new URL("worker.ts", import.meta.url), { workerData }), "message")
    return tally as Tally
  })
  return (await Promise.all(parts)).reduce(add, nothing)
}

const natural = (text: string): number | undefined =>
  /^\d+$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined

const lineOf = (name: string, counts: Counts): string =>
  `${name}: ${Object.entries(counts)
    .toSorted(([, a], [, b]) => b - a)
    .map(([what, count]) => `${count} ${what}`)
    .join(", ")}`

const main = async (): Promise<number> => {
  const { values } = parseArgs({
    options: { seed: { type: "string", default: "1" }, count: { type: "string", default: "10000" } },
  })
  const [first, count] = [natural(values.seed), natural(values.count)]
  if (first === undefined || count === undefined || count === 0) {
    console.error("usage: npm run conversations -- [--seed N] [--count N], with whole numbers")
    return 2
  }
  const started = performance.now()
  const { counts, failed, outcomes, stops } = await holdAll(first, count)
  for (const { seed, complaints } of failed.toSorted((a, b) => a.seed - b.seed).slice(0, shown)) {
    console.log(`failed: npm run conversations -- --seed ${seed} --count 1`)
    for (const complaint of complaints.slice(0, 5)) console.log(`  ${complaint}`)
  }
  console.log(lineOf("seen", counts))
  console.log(lineOf("ended", stops))
  console.log(lineOf("at the provider", outcomes))
  console.log(`seeds ${first} to ${first + count - 1}, ${((performance.now() - started) / 1000).toFixed(1)} s`)
  const open = (counts["sockets and timers left"] ?? 0) + (counts["warnings of listeners"] ?? 0)
  if (open > 0) console.log(`${open} sockets, timers or listeners were left`)
  console.log(`${count - failed.length} passed, ${failed.length + (open > 0 ? 1 : 0)} failed`)
  return failed.length === 0 && open === 0 ? 0 : 1
}

process.exitCode = await main()
