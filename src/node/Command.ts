/**
 * Running commands: {@link run} for programs, and the tool `run_command` for models. A command is a list of words, never
 * a line for a shell. It gets a process group of its own, and when it is over, for whatever reason, so is the whole
 * group.
 *
 * It needs process groups, which Windows does not have. A process that leaves its group on purpose (`setsid`) is not
 * ended, nor is anything when this process is killed by `SIGKILL`; when it exits in any other way its groups go with it. A
 * command is no sandbox: it can do to the machine what this process can.
 */
import { spawn } from "node:child_process"
import type { ChildProcess } from "node:child_process"
import * as fs from "node:fs/promises"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Contract from "../tool/Contract.ts"
import * as ToolError from "../tool/ToolError.ts"
import * as Propagation from "../telemetry/Propagation.ts"
import { type Capture, capture } from "./internal/capture.ts"
import { environment } from "./internal/environment.ts"
import { codeOf, failureAt } from "./internal/errno.ts"
import * as Group from "./internal/group.ts"
import { openRoot } from "./internal/place.ts"

/**
 * A command and how it is run.
 *
 * **Units**: `timeout` is a duration, without end unless given; `grace` is how long a group that was asked to end may
 * take before it is ended (2 seconds); `maxOutputBytes` is how much of each output is kept, half of it from the beginning
 * and half from the end (64 KiB).
 *
 * @category commands
 * @since 0.1.0
 */
export interface Command {
  readonly command: string
  readonly args?: ReadonlyArray<string>
  readonly cwd: string
  /**
   * On top of `PATH`, `HOME`, `USER`, `LOGNAME`, `LANG`, `LC_ALL`, `LC_CTYPE`, `TZ` and `TMPDIR`; nothing else is passed on,
   * but for `TRACEPARENT` where the call is traced.
   */
  readonly env?: Readonly<Record<string, string>>
  /** What it reads; nothing unless given. */
  readonly stdin?: string
  readonly timeout?: Duration.Input
  readonly grace?: Duration.Input
  readonly maxOutputBytes?: number
}

/**
 * What became of a command. Without an exit code it was ended by a signal; `timedOut` says that its time was over.
 *
 * **Units**: `stdoutBytes` and `stderrBytes` are all that it wrote, also where not all was kept.
 *
 * @category commands
 * @since 0.1.0
 */
export interface Ended {
  readonly exitCode: number | null
  readonly signal: string | null
  readonly timedOut: boolean
  readonly stdout: string
  readonly stderr: string
  readonly stdoutBytes: number
  readonly stderrBytes: number
  /** True where a part of an output was left out. */
  readonly truncated: boolean
  readonly durationMillis: number
}

/**
 * Runs a command to its end. It comes back, or ends being interrupted, only when no process of its group is left: when
 * its time is over or the caller is interrupted, the whole group gets `SIGTERM` and after `grace` `SIGKILL`; what a
 * command leaves behind in its group when it ends by itself is ended the same way.
 *
 * A command that fails is a result like any other. **Fails with** `ENOENT` when there is no such command, `ENOTDIR` when
 * there is no such folder, `EPERM` when it may not be run, `EINVAL` when it cannot be, and a fatal `EUNENDED` when
 * processes of another user are left that may not be ended.
 *
 * **Example** (The version of Node)
 *
 * ```ts
 * import { Command } from "bursar/node"
 * import * as Effect from "effect/Effect"
 *
 * const ended = await Effect.runPromise(
 *   Command.run({ command: process.execPath, args: ["-p", "6 * 7"], cwd: ".", timeout: "30 seconds" }),
 * )
 * ended.exitCode // => 0
 * ended.stdout // => "42\n"
 * ```
 *
 * @category commands
 * @since 0.1.0
 */
export const run = (command: Command): Effect.Effect<Ended, ToolError.ToolError> => {
  const graceMillis = millis(command.grace ?? "2 seconds")
  const { maxOutputBytes = 64 * 1024 } = command
  return Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      yield* restore(isFolder(command.cwd))
      const started = yield* start({ ...command, env: { ...(yield* ofTrace), ...command.env } }, maxOutputBytes)
      const { exit, group, outputs } = started
      const waiting = restore(within(exit, command.timeout ?? Infinity))
      const ending = Effect.andThen(Group.end(group, graceMillis), outputs)
      const inTime = yield* Effect.onExit(waiting, () => ending)
      const [exitCode, signal] = yield* Effect.promise(() => exit)
      const stdout = started.stdout.done()
      const stderr = started.stderr.done()
      return {
        exitCode,
        signal,
        timedOut: !inTime,
        stdout: stdout.text,
        stderr: stderr.text,
        stdoutBytes: stdout.bytes,
        stderrBytes: stderr.bytes,
        truncated: stdout.truncated || stderr.truncated,
        durationMillis: Math.round(performance.now() - started.startMillis),
      }
    }),
  )
}

/** Lets a command that writes traces itself go on with ours. */
const ofTrace: Effect.Effect<Readonly<Record<string, string>>> = Effect.map(
  Propagation.outgoing,
  ({ traceparent }): Readonly<Record<string, string>> =>
    traceparent === undefined ? {} : { TRACEPARENT: traceparent },
)

const millis = (input: Duration.Input): number => Duration.toMillis(Duration.fromInputUnsafe(input))

/** Whether something came within a time. The time is that of the machine, as processes have no other. */
const within = (promise: Promise<unknown>, timeout: Duration.Input): Effect.Effect<boolean> =>
  Effect.callback((resume) => {
    const timer = setTimeout(() => resume(Effect.succeed(false)), Math.min(millis(timeout), longestTimer))
    void promise.then(() => {
      clearTimeout(timer)
      return resume(Effect.succeed(true))
    })
    return Effect.sync(() => clearTimeout(timer))
  })

/** 24 days; a longer timer would fire at once. */
const longestTimer = 2 ** 31 - 1

/** Looked at first: a missing folder and a missing command give the same error. */
const isFolder = (cwd: string): Effect.Effect<void, ToolError.ToolError> =>
  Effect.flatMap(
    Effect.promise(() => fs.stat(cwd).catch(() => undefined)),
    (stat) => (stat?.isDirectory() === true ? Effect.void : Effect.fail(failureAt(cwd, "ENOTDIR"))),
  )

interface Started {
  readonly group: number
  readonly startMillis: number
  readonly stdout: Capture
  readonly stderr: Capture
  readonly exit: Promise<Exit>
  /** Waits for what is still to be read. */
  readonly outputs: Effect.Effect<void>
}

const start = (command: Command, maxOutputBytes: number): Effect.Effect<Started, ToolError.ToolError> =>
  Effect.callback((resume) => {
    if (process.platform === "win32") {
      resume(Effect.fail(ToolError.fatal("ENOSYS", "commands need process groups, which Windows does not have")))
      return
    }
    const startMillis = performance.now()
    let child: ChildProcess
    try {
      child = spawn(command.command, command.args ?? [], {
        cwd: command.cwd,
        env: environment(command.env ?? {}),
        detached: true,
        shell: false,
        stdio: [command.stdin === undefined ? "ignore" : "pipe", "pipe", "pipe"],
      })
    } catch (error) {
      resume(failed(command.command, error))
      return
    }
    const stdout = capture(maxOutputBytes)
    const stderr = capture(maxOutputBytes)
    child.stdout?.on("data", stdout.add)
    child.stderr?.on("data", stderr.add)
    // A command need not read what it is given.
    child.stdin?.on("error", () => undefined).end(command.stdin)
    const exit = exitOf(child)
    const outputs = outputsOf(child)
    child.once("error", (error) => resume(failed(command.command, error)))
    child.once("spawn", () => {
      const group = child.pid!
      Group.remember(group)
      resume(Effect.succeed({ group, startMillis, stdout, stderr, exit, outputs }))
    })
  })

const failed = (command: string, error: unknown): Effect.Effect<never, ToolError.ToolError> => {
  const code = codeOf(error)
  if (code === undefined) return Effect.die(error)
  if (code === "ENOENT") return Effect.fail(ToolError.mistake("ENOENT", `there is no command ${command}`))
  if (code === "E2BIG") return Effect.fail(ToolError.mistake("EINVAL", `the arguments of ${command} are too long`))
  return Effect.fail(failureAt(command, code))
}

type Exit = readonly [exitCode: number | null, signal: NodeJS.Signals | null]

const exitOf = (child: ChildProcess): Promise<Exit> =>
  new Promise((resolve) => {
    child.once("exit", (exitCode, signal) => resolve([exitCode, signal]))
  })

/** Outputs close with the last process that has them. One that left the group may keep them: it is not waited for. */
const outputsOf = (child: ChildProcess): Effect.Effect<void> => {
  const closed = new Promise<void>((resolve) => {
    child.once("close", () => resolve())
  })
  return Effect.map(within(closed, "1 second"), (isClosed) => {
    if (isClosed) return
    child.stdout?.destroy()
    child.stderr?.destroy()
  })
}

// --- the tool

const Parameters = Schema.Struct({
  command: Schema.String.annotate({ description: "The name of the program" }),
  args: Schema.Array(Schema.String).annotate({ description: "Its arguments, one word each; there is no shell" }),
})

const Result = Schema.Struct({
  exitCode: Schema.NullOr(Schema.Int),
  signal: Schema.NullOr(Schema.String),
  timedOut: Schema.Boolean,
  stdout: Schema.String,
  stderr: Schema.String,
  truncated: Schema.Boolean,
})

/**
 * What `run_command` is asked to do.
 *
 * @category tools
 * @since 0.1.0
 */
export type Vector = typeof Parameters.Type

const RunCommand = Tool.make("run_command", {
  description:
    "Runs a program in the root folder and waits for it to end. There is no shell: no pipes, no redirection, no " +
    "variables. What it leaves running in the background is ended.",
  parameters: Parameters,
  success: Result,
  failure: ToolError.ToolError,
})

/**
 * The tool `run_command` with a contract of your own: whatever is given here stands in place of what {@link toolkit} says.
 *
 * **Example** (Commands that only look)
 *
 * ```ts
 * import { Contract } from "bursar"
 * import { Command } from "bursar/node"
 *
 * const looking = Command.toolkitWith({ effect: "read", timeout: "20 seconds" })
 * Contract.of(looking.tools.run_command).effect // => "read"
 * ```
 *
 * @category tools
 * @since 0.1.0
 */
export const toolkitWith = (contract: Contract.Options<Vector, typeof Result.Type>) =>
  Toolkit.make(
    Contract.annotate(RunCommand, {
      effect: "write",
      scope: ({ command }) => [`command:${command}`],
      timeout: "10 minutes",
      trust: "untrusted",
      ...contract,
    }),
  )

/**
 * The tool `run_command`: it may change something (`write`), may not simply be run again (`none`), needs the permission
 * `command:` with the name of the program, and what it prints is not to be trusted.
 *
 * **Fails with** `EPERM` for what is not allowed; otherwise as {@link run} does. A command that ends with another exit code
 * than 0, or whose time is over, is a result. How long it took is not part of it: the same command with the same output has
 * the same result.
 *
 * @category tools
 * @since 0.1.0
 */
export const toolkit = toolkitWith({})

/**
 * What may be run, where and how.
 *
 * **Units**: as in {@link Command}; `timeout` is 2 minutes unless given. Keep it and `grace` below the timeout of the
 * contract, or the call ends without a result.
 *
 * @category tools
 * @since 0.1.0
 */
export interface Options extends Pick<Command, "env" | "timeout" | "grace" | "maxOutputBytes"> {
  /** The folder in which commands are run. */
  readonly root: string
  /** The names of the programs that may be run, as they are given; or what decides. */
  readonly allow: ReadonlyArray<string> | ((vector: Vector) => boolean)
}

/**
 * What {@link toolkit} does. Provide it to the run of the agent.
 *
 * **Fails with** a fatal `ENOROOT` when there is no such folder.
 *
 * **Example** (An agent that may run Node and nothing else)
 *
 * ```ts
 * import { Agent, Policy, Proposal } from "bursar"
 * import { Command } from "bursar/node"
 * import * as Effect from "effect/Effect"
 *
 * const tester = Agent.make("tester", {
 *   toolkit: Command.toolkit,
 *   policy: Policy.make(({ turns }) =>
 *     turns.length === 0
 *       ? Proposal.call("run_command", { command: "rm", args: ["-r", "."] })
 *       : Proposal.finish(turns[0]!.observations[0]!.error!.code),
 *   ),
 * })
 * const outcome = await Effect.runPromise(
 *   Agent.run(tester, "Clean up", { budget: { steps: 3 } }).pipe(
 *     Effect.provide(Command.layer({ root: ".", allow: ["node"] })),
 *   ),
 * )
 * outcome._tag === "Completed" && outcome.answer // => "EPERM"
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  options: Options,
): Layer.Layer<Tool.HandlersFor<(typeof toolkit)["tools"]>, ToolError.ToolError> => {
  const { allow, root, timeout = "2 minutes", ...how } = options
  const isAllowed = typeof allow === "function" ? allow : ({ command }: Vector) => allow.includes(command)
  const allowed = typeof allow === "function" ? "" : `; allowed are ${allow.join(", ")}`
  return Layer.unwrap(
    Effect.map(openRoot(root), ({ path }) =>
      toolkit.toLayer({
        run_command: (vector) =>
          isAllowed(vector)
            ? run({ ...how, ...vector, cwd: path, timeout })
            : Effect.fail(ToolError.permission("EPERM", `${vector.command} may not be run${allowed}`)),
      }),
    ),
  )
}
