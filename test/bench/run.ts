/**
 * Benchmarks, as ratios within one run: `npm run bench -- budget`, `npm run bench -- loop`.
 */
import { budget } from "./budget.ts"
import { loop } from "./loop.ts"

const benches: Readonly<Record<string, () => Promise<void>>> = { budget, loop }

const name = process.argv[2] ?? ""
const bench = benches[name]
if (bench === undefined) {
  console.error(`usage: npm run bench -- NAME, with NAME one of: ${Object.keys(benches).join(", ")}`)
  process.exitCode = 2
} else {
  await bench()
}
