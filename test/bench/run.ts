/**
 * Benchmarks, as ratios within one run: `npm run bench -- budget`.
 */
import { budget } from "./budget.ts"

const benches: Readonly<Record<string, () => Promise<void>>> = { budget }

const name = process.argv[2] ?? ""
const bench = benches[name]
if (bench === undefined) {
  console.error(`usage: npm run bench -- NAME, with NAME one of: ${Object.keys(benches).join(", ")}`)
  process.exitCode = 2
} else {
  await bench()
}
