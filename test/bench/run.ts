/**
 * Benchmarks, as ratios within one run: `npm run bench -- budget`, `npm run bench -- loop`, `npm run bench -- telemetry`.
 */
import { budget } from "./budget.ts"
import { loop } from "./loop.ts"
import { telemetry } from "./telemetry.ts"

const benches: Readonly<Record<string, () => Promise<void>>> = { budget, loop, telemetry }

const name = process.argv[2] ?? ""
const bench = benches[name]
if (bench === undefined) {
  console.error(`usage: npm run bench -- NAME, with NAME one of: ${Object.keys(benches).join(", ")}`)
  process.exitCode = 2
} else {
  await bench()
}
