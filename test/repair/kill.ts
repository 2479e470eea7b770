/**
 * Kills the repair job at twenty points of its run, some of them twice, goes on with it in a new process each time, and
 * checks that it comes to its answer, that no effect happens twice and that the books are right: `npm run kill`.
 *
 * It prints a line for each point and closes with `N passed, N failed`; exit code 1 when any failed.
 */
import { mkdtempSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import type { Budget } from "../../src/index.ts"
import { type Found, kill, type Point, type Setting, undisturbed } from "./Killing.ts"
import { spread, timed } from "./Points.ts"

const columns = ["point", "last event", "resumed steps", "spent before", "spent after", "outcome", "patches"]
const widths = [55, 23, 13, 12, 11, 9, 7]

const row = (cells: ReadonlyArray<string>): string =>
  cells.map((cell, index) => (index < 2 ? cell.padEnd(widths[index]!) : cell.padStart(widths[index]!))).join("  ")

/** Steps and tool calls; the rest is nothing where no model is asked. */
const amounts = (spent: Budget.Amounts): string => `${spent.steps} + ${spent.toolCalls}`

const lineOf = ({ point, ...found }: Found): string =>
  [
    row([
      point.name,
      found.lastEvent,
      String(found.resumedSteps),
      amounts(found.before),
      amounts(found.after),
      found.outcome,
      found.patches.join(" → "),
    ]),
    ...found.defects.map((defect) => `  ${defect}`),
  ].join("\n")

/** Two at a time: a point is two processes, one after the other. */
const all = (setting: Setting, points: ReadonlyArray<Point>) =>
  Effect.forEach(points, (point) => Effect.tap(kill(setting, point), (found) => Effect.sync(() => print(found))), {
    concurrency: 2,
  })

const print = (found: Found): void => console.log(lineOf(found))

const folder = realpathSync(mkdtempSync(join(tmpdir(), "bursar-kill-")))
process.on("exit", () => rmSync(folder, { recursive: true, force: true }))
process.on("SIGINT", () => process.exit(130))

const startMillis = Date.now()
const setting: Setting = { folder, cache: join(folder, "cache") }
const found = await Effect.runPromise(
  Effect.gen(function* () {
    const events = yield* undisturbed(setting)
    console.log(`A run has ${events} events; spent are steps + tool calls.\n\n${row(columns)}`)
    return yield* all(setting, [...spread(events), ...timed])
  }),
)
const failed = found.filter(({ defects }) => defects.length > 0).length
console.log(`\n${((Date.now() - startMillis) / 1000).toFixed(0)} s`)
console.log(`${found.length - failed} passed, ${failed} failed`)
process.exitCode = failed > 0 ? 1 : 0
