/** `npm run jaeger` as a process, in a folder of its own. */
import { type ChildProcess, spawn } from "node:child_process"
import * as path from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface Started {
  readonly process: ChildProcess
  /** Everything on its output once it holds `text`; rejects when it ends without. */
  readonly printed: (text: string) => Promise<string>
  readonly ended: Promise<Ended>
}

export interface Options {
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
  /** Through npm, as a user does. */
  readonly byNpm?: boolean
}

const script = path.resolve("examples/jaeger/run.ts")

const commandOf = (args: ReadonlyArray<string>, byNpm: boolean): readonly [string, ReadonlyArray<string>] =>
  byNpm
    ? ["npm", ["--prefix", path.resolve("."), "run", "jaeger", "--", ...args]]
    : [process.execPath, [script, ...args]]

export const start = (args: ReadonlyArray<string>, options: Options): Effect.Effect<Started, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const { byNpm = false, cwd, env } = options
      const [command, rest] = commandOf(args, byNpm)
      const child = spawn(command, rest, { cwd, env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] })
      let [stdout, stderr] = ["", ""]
      child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()))
      child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()))
      const ended = new Promise<Ended>((done) => child.on("close", (code) => done({ code, stdout, stderr })))
      const printed = (text: string) =>
        new Promise<string>((done, failed) => {
          const look = () => (stdout.includes(text) ? done(stdout) : undefined)
          child.stdout.on("data", look)
          child.on("close", () => failed(new Error(`ended without ${text}: ${stdout}${stderr}`)))
          look()
        })
      return { process: child, printed, ended }
    }),
    // Asked, so that it can end what it has started.
    ({ ended, process }) =>
      Effect.promise(() => {
        process.kill("SIGTERM")
        return ended
      }),
  )

export const run = (args: ReadonlyArray<string>, options: Options): Effect.Effect<Ended> =>
  Effect.scoped(Effect.flatMap(start(args, options), ({ ended }) => Effect.promise(() => ended)))
