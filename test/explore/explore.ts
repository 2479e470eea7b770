/**
 * Explores every interleaving of the shipped operations on small trees: `npm run explore`, with `-- --deep` on larger
 * ones. A line for each configuration, a closing count, exit 1 when a law broke.
 */
import { once } from "node:events"
import { parseArgs } from "node:util"
import { Worker } from "node:worker_threads"
import { deep, everyPush } from "./configurations.ts"
import type { Configuration } from "./Model.ts"
import type { Explored } from "./Search.ts"

const threads = 2

/** What the largest need: the states at the edge keep their books. */
const resourceLimits = { maxOldGenerationSizeMb: 12_288 }

const apart = async (workerData: Configuration): Promise<Explored> => {
  const worker = new Worker(new URL("worker.ts", import.meta.url), { workerData, resourceLimits })
  const [explored] = await once(worker, "message")
  return explored as Explored
}

const report = ({ name }: Configuration, explored: Explored): void => {
  const { states, transitions, refused, repeated, seconds, found } = explored
  const figures = `${states} states  ${transitions} transitions  ${refused} refused  ${repeated} repeated`
  console.log(`${name.padEnd(42)}  ${figures}  ${seconds.toFixed(1)} s  ${found === undefined ? 0 : 1} violations`)
  if (found === undefined) return
  console.log(`  ${found.law}: ${found.detail}`)
  for (const [index, move] of found.moves.entries()) console.log(`  ${index + 1}. ${move}`)
}

const main = async (): Promise<number> => {
  const { values } = parseArgs({ options: { deep: { type: "boolean", default: false } } })
  const configurations = values.deep ? deep : everyPush
  const rest = [...configurations]
  let failed = 0
  const take = async (): Promise<void> => {
    for (let next = rest.shift(); next !== undefined; next = rest.shift()) {
      const explored = await apart(next)
      if (explored.found !== undefined) failed++
      report(next, explored)
    }
  }
  await Promise.all(Array.from({ length: threads }, take))
  console.log(`${configurations.length - failed} passed, ${failed} failed`)
  return failed > 0 ? 1 : 0
}

process.exitCode = await main()
