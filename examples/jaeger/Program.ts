/**
 * A program that runs until it is told to stop: started, waited for until it is healthy, and stopped with its scope.
 *
 * It has a process group of its own, so that a Ctrl-C reaches whoever started it and not the program: they decide in
 * which order things end. However this process ends, even by a kill, the program ends with it.
 */
import { type ChildProcess, spawn } from "node:child_process"
import * as net from "node:net"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"

/** A program ended that should run, or did not come up in time; with what it printed last. */
export class ProgramFailed extends Schema.TaggedError<ProgramFailed>()("ProgramFailed", {
  program: Schema.String,
  what: Schema.String,
  output: Schema.String,
}) {
  override get message(): string {
    return `${this.program} ${this.what}${this.output === "" ? "" : `:\n${this.output}`}`
  }
}

/** How to start one. */
export interface Options {
  readonly name: string
  readonly file: string
  readonly args: ReadonlyArray<string>
  readonly env?: Readonly<Record<string, string>> | undefined
  /** Answers 200 when the program is up. */
  readonly health: string
}

/** One that is up. */
export interface Running {
  readonly pid: number
  /** Fails when the program ends by itself. */
  readonly ended: Effect.Effect<never, ProgramFailed>
  /** What it printed last, both streams. */
  readonly output: () => string
}

const patience = { start: "30 seconds", stop: "10 seconds" } as const

/** As much as is kept of what a program prints, in characters. */
const kept = 20_000

/** Starts a program and comes back when it is healthy. With the scope it is asked to stop, and made to if need be. */
export const start = (options: Options): Effect.Effect<Running, ProgramFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const { name, health } = options
    const { child, exited, output } = yield* Effect.acquireRelease(spawned(options), stop)
    const failed = (what: string) => new ProgramFailed({ program: name, what, output: output().trim() })
    const ended = Effect.flatMap(Deferred.await(exited), (how) => Effect.fail(failed(how)))
    yield* healthy(health).pipe(
      Effect.timeoutOrElse({
        duration: patience.start,
        orElse: () => Effect.fail(failed(`was not up at ${health} in ${patience.start}`)),
      }),
      Effect.raceFirst(ended),
    )
    return { pid: child.pid!, ended, output }
  })

interface Spawned {
  readonly child: ChildProcess
  readonly exited: Deferred.Deferred<string>
  readonly output: () => string
}

const spawned = ({ args, env, file }: Options): Effect.Effect<Spawned> =>
  Effect.sync(() => {
    const exited = Deferred.makeUnsafe<string>()
    const child = spawn(file, args, {
      env: { ...process.env, ...env },
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    })
    let output = ""
    const keep = (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-kept)
    }
    child.stdout.on("data", keep)
    child.stderr.on("data", keep)
    const atOurEnd = () => void child.kill("SIGKILL")
    process.on("exit", atOurEnd)
    const dismiss = watched(child.pid)
    const leave = (how: string) => {
      process.off("exit", atOurEnd)
      dismiss()
      Deferred.doneUnsafe(exited, Effect.succeed(how))
    }
    child.on("error", (error) => leave(`could not be started (${error.message})`))
    child.on("close", (code, signal) => leave(`ended (${signal ?? `exit code ${code}`})`))
    return { child, exited, output: () => output }
  })

/**
 * Sets a shell to wait for the end of this process, however it comes, and to end the program then: its input ends with
 * us. Answers with how to dismiss it. There is none where there is no shell of that kind, and none for no program.
 */
const watched = (pid: number | undefined): (() => void) => {
  if (pid === undefined || process.platform === "win32") return () => {}
  const isThere = 'kill -0 "$0" || exit'
  const script = `read -r _; kill "$0"; for _ in 1 2 3 4 5 6 7 8 9 10; do ${isThere}; sleep 1; done; ${isThere}; kill -9 "$0"`
  const shell = spawn("sh", ["-c", script, String(pid)], { detached: true, stdio: ["pipe", "ignore", "ignore"] })
  shell.unref()
  return () => void shell.kill("SIGKILL")
}

const stop = ({ child, exited }: Spawned): Effect.Effect<void> =>
  Effect.suspend(() => {
    child.kill("SIGTERM")
    const killed = Effect.andThen(
      Effect.sync(() => child.kill("SIGKILL")),
      Deferred.await(exited),
    )
    return Effect.asVoid(
      Effect.timeoutOrElse(Deferred.await(exited), { duration: patience.stop, orElse: () => killed }),
    )
  })

const healthy = (url: string): Effect.Effect<void> =>
  Effect.promise((signal) =>
    fetch(url, { signal }).then(
      ({ ok }) => ok,
      () => false,
    ),
  ).pipe(Effect.repeat({ schedule: Schedule.spaced("50 millis"), until: (isUp) => isUp }), Effect.asVoid)

/** A port of 127.0.0.1 that is taken. */
export class PortTaken extends Schema.TaggedError<PortTaken>()("PortTaken", {
  name: Schema.String,
  port: Schema.Number,
}) {
  override get message(): string {
    return (
      `port ${this.port} (${this.name}) is taken: stop what listens there, or choose another with ` +
      `--port ${this.name}=NUMBER, or all of them with --free-ports`
    )
  }
}

/**
 * Answers with a free port for each name: the one asked for, or any where 0 is. They are tried all at once, so that no
 * two names get the same.
 */
export const freePorts = <Name extends string>(
  wanted: Readonly<Record<Name, number>>,
): Effect.Effect<Readonly<Record<Name, number>>, PortTaken> =>
  Effect.scoped(
    Effect.map(
      Effect.forEach(Object.entries<number>(wanted), ([name, port]) =>
        Effect.map(listening(name, port), (server) => [name, (server.address() as net.AddressInfo).port] as const),
      ),
      (ports) => Object.fromEntries(ports) as Record<Name, number>,
    ),
  )

const listening = (name: string, port: number): Effect.Effect<net.Server, PortTaken, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<net.Server, PortTaken>((resume) => {
      const server = net.createServer()
      server.once("error", () => resume(Effect.fail(new PortTaken({ name, port }))))
      server.listen(port, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.callback<void>((resume) => void server.close(() => resume(Effect.void))),
  )
