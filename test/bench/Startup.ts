/**
 * The start of a whole process that runs one trivial agent, against one that only imports what it takes to ask a model
 * through `effect/ai`. Measured is what users run: built JavaScript.
 */
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { interleave, type Rounds, type Sample } from "./Measure.ts"

const root = path.resolve(import.meta.dirname, "../..")

/** The programs, each in the words of its whole file. */
const programs = {
  node: "",
  effectAi: `
import * as Effect from "effect/Effect"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
const loaded = [LanguageModel, Prompt, Tool, Toolkit].every((one) => Object.keys(one).length > 0)
if (!(await Effect.runPromise(Effect.succeed(loaded)))) process.exit(1)
`,
  bursar: `
import { Agent, Policy, Proposal } from "./dist/index.js"
import * as Effect from "effect/Effect"
const echo = Agent.make("echo", { policy: Policy.make((view) => Proposal.finish(view.task)) })
const outcome = await Effect.runPromise(Agent.run(echo, "hello", { budget: { steps: 3, wallClock: "1 minute" } }))
if (outcome.answer !== "hello") process.exit(1)
`,
}

/** **Units**: milliseconds of whole processes. */
export type Startup = { readonly [Program in keyof typeof programs]: number }

/** Builds into `folder` and starts every program in turn; a sentence where that cannot be done. */
export const startup = async (folder: string, rounds: Rounds): Promise<Startup | string> => {
  const out = path.join(folder, "dist")
  const built = spawnSync(process.execPath, ["test/house/build.ts", "--out", out], { cwd: root, encoding: "utf8" })
  if (!fs.existsSync(path.join(out, "index.js"))) return `src was not built: ${built.stdout}${built.stderr}`
  fs.writeFileSync(path.join(folder, "package.json"), JSON.stringify({ type: "module" }))
  fs.symlinkSync(path.join(root, "node_modules"), path.join(folder, "node_modules"))
  const names = Object.keys(programs) as ReadonlyArray<keyof typeof programs>
  for (const name of names) fs.writeFileSync(path.join(folder, `${name}.mjs`), programs[name])
  try {
    const samples = names.map((name): Sample => () => [start(folder, `${name}.mjs`)])
    const medians = await interleave(samples, rounds)
    return Object.fromEntries(names.map((name, index) => [name, medians[index]![0]!])) as Startup
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

const start = (folder: string, file: string): number => {
  const from = performance.now()
  const { status, stderr } = spawnSync(process.execPath, [file], { cwd: folder, encoding: "utf8" })
  if (status !== 0) throw new Error(`${file} ended with ${status}: ${stderr}`)
  return performance.now() - from
}
