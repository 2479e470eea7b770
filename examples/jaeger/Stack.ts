/**
 * A Jaeger and a collector in front of it, on loopback, as long as a scope.
 *
 * The collector is stopped first, so that what waits in it still reaches Jaeger.
 */
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as Build from "./Build.ts"
import * as Config from "./Config.ts"
import { freePorts, type PortTaken, type ProgramFailed, type Running, start as startProgram } from "./Program.ts"

/** What to start them with. */
export interface Options {
  readonly programs: Build.Programs
  /** A folder for what Jaeger keeps. */
  readonly storage: string
  /** Ports other than those of the files; 0 is any that is free. */
  readonly ports?: Partial<Config.Ports> | undefined
  /** A last change to the configurations. */
  readonly change?: ((config: Config.Config) => Config.Config) | undefined
  /** Variables for the collector. */
  readonly env?: Readonly<Record<string, string>> | undefined
}

/** Both, up and healthy. */
export interface Stack {
  readonly config: Config.Config
  /** For `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  readonly otlp: string
  /** Jaeger's pages and its JSON API below `/api`. */
  readonly query: string
  /** What the collector says of itself, for Prometheus. */
  readonly telemetry: string
  /** What it says of the runs, for Prometheus. */
  readonly metrics: string
  readonly collector: Running
  readonly jaeger: Running
}

/** Starts both. Nothing is started unless every port is free. */
export const start = (options: Options): Effect.Effect<Stack, PortTaken | ProgramFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const { change, env, programs, storage } = options
    const files = Config.read(path.resolve(storage))
    const ports = yield* freePorts({ ...Config.portsOf(files), ...options.ports })
    const moved = Config.withPorts(files, ports)
    const config = change === undefined ? moved : change(moved)
    const folder = yield* temporary
    const at = (name: Config.PortName, rest = "") => `http://127.0.0.1:${ports[name]}${rest}`
    const jaeger = yield* startProgram({
      name: "jaeger",
      file: programs.jaeger,
      args: ["--config", written(folder, "jaeger.json", config.jaeger)],
      health: at("jaeger-health", "/status"),
    })
    const collector = yield* startProgram({
      name: "collector",
      file: programs.collector,
      args: ["--config", written(folder, "collector.json", config.collector)],
      env,
      health: at("collector-health"),
    })
    return {
      config,
      otlp: at("otlp-http"),
      query: at("query"),
      telemetry: at("collector-telemetry", "/metrics"),
      metrics: at("prometheus", "/metrics"),
      collector,
      jaeger,
    }
  })

/** A folder that is gone with the scope. */
export const temporary: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "bursar-jaeger-"))),
  (folder) => Effect.sync(() => fs.rmSync(folder, { recursive: true, force: true })),
)

// JSON is YAML.
const written = (folder: string, name: string, tree: Config.Tree): string => {
  const file = path.join(folder, name)
  fs.writeFileSync(file, JSON.stringify(tree, null, 2))
  return file
}
