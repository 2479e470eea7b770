/**
 * Starting an example as a user does: as a process of its own, in a folder of its own. It is the research job unless
 * another is named.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface Started {
  readonly process: ChildProcess
  /** Resolves with everything printed so far, once it holds `text`. */
  readonly printed: (text: string) => Promise<void>
  readonly ended: Promise<Ended>
}

/** A folder to run in; gone afterwards. */
export const folder: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "bursar-example-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true })),
)

const clean = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !/^(OPENAI|OTEL)_/.test(name)))

export const start = (
  cwd: string,
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>> = {},
  example = "research",
): Effect.Effect<Started, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const entry = resolve(`examples/${example}.ts`)
      const child = spawn(process.execPath, [entry, ...args], { cwd, env: { ...clean(process.env), ...env } })
      let [stdout, stderr] = ["", ""]
      const waiting: Array<() => void> = []
      const wake = () => waiting.forEach((check) => check())
      child.stdout.on("data", (chunk: Buffer) => {
        stdout += chunk.toString()
        wake()
      })
      child.stderr.on("data", (chunk: Buffer) => {
        stderr += chunk.toString()
        wake()
      })
      const printed = (text: string) =>
        new Promise<void>((done) => {
          const check = () => ((stdout + stderr).includes(text) ? done() : undefined)
          waiting.push(check)
          check()
        })
      const ended = new Promise<Ended>((done) => child.on("close", (code) => done({ code, stdout, stderr })))
      return { process: child, printed, ended }
    }),
    ({ process }) => Effect.sync(() => process.kill("SIGKILL")),
  )

/** Runs it to its end. */
export const run = (
  cwd: string,
  args: ReadonlyArray<string>,
  env?: Readonly<Record<string, string>>,
  example?: string,
): Effect.Effect<Ended, never, Scope.Scope> =>
  Effect.flatMap(start(cwd, args, env, example), ({ ended }) => Effect.promise(() => ended))

/** The events of the only run in that folder. */
export const journalIn = (cwd: string): ReadonlyArray<Readonly<Record<string, unknown>>> => {
  const runs = join(cwd, ".bursar/runs")
  const log = readdirSync(runs).find((name) => name.endsWith(".jsonl") && !name.includes(".content."))
  const lines = readFileSync(join(runs, log!), "utf8").trimEnd().split("\n")
  return lines.map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)
}
