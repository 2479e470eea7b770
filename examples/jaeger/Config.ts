/**
 * What Jaeger and the collector are started with: `jaeger.yaml` and `otel-collector.yaml` as they stand, but for ports,
 * storage and what else a caller changes. There is no second copy of either: every number here is read from the files.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { parse } from "yaml"

/** A configuration as parsed. */
export type Tree = { readonly [key: string]: unknown }

/** The configurations of both. */
export interface Config {
  readonly collector: Tree
  readonly jaeger: Tree
}

type Key = string | number

interface Place {
  readonly program: keyof Config
  /** The way to an `endpoint`, or to the number of a port. */
  readonly at: ReadonlyArray<Key>
}

const otlp = (program: keyof Config, protocol: string): Place => ({
  program,
  at: ["receivers", "otlp", "protocols", protocol, "endpoint"],
})

/** Every port, by the name that a user gives it, and where it stands; the first place is that of its owner. */
const places = {
  "otlp-http": [otlp("collector", "http")],
  "otlp-grpc": [otlp("collector", "grpc")],
  "collector-health": [{ program: "collector", at: ["extensions", "health_check", "endpoint"] }],
  "collector-telemetry": [
    {
      program: "collector",
      at: ["service", "telemetry", "metrics", "readers", 0, "pull", "exporter", "prometheus", "port"],
    },
  ],
  prometheus: [{ program: "collector", at: ["exporters", "prometheus", "endpoint"] }],
  query: [{ program: "jaeger", at: ["extensions", "jaeger_query", "http", "endpoint"] }],
  "query-grpc": [{ program: "jaeger", at: ["extensions", "jaeger_query", "grpc", "endpoint"] }],
  "jaeger-health": [{ program: "jaeger", at: ["extensions", "healthcheckv2", "http", "endpoint"] }],
  "jaeger-otlp-grpc": [
    otlp("jaeger", "grpc"),
    { program: "collector", at: ["exporters", "otlp_grpc/jaeger", "endpoint"] },
  ],
  "jaeger-otlp-http": [otlp("jaeger", "http")],
} as const satisfies Readonly<Record<string, ReadonlyArray<Place>>>

/** The name of a port. */
export type PortName = keyof typeof places

export const portNames = Object.keys(places) as ReadonlyArray<PortName>

/** The port of each name. */
export type Ports = Readonly<Record<PortName, number>>

const root = fileURLToPath(new URL("../..", import.meta.url))

/** `otel-collector.yaml` of the project. */
export const collectorFile: string = path.join(root, "otel-collector.yaml")

/** `jaeger.yaml` beside this module. */
export const jaegerFile: string = fileURLToPath(new URL("jaeger.yaml", import.meta.url))

/** Both files as they stand, with the paths of Jaeger's made absolute: what runs is left to be stored in `storage`. */
export const read = (storage: string): Config => {
  const jaeger = parse(fs.readFileSync(jaegerFile, "utf8")) as Tree
  const ui = ["extensions", "jaeger_query", "ui", "config_file"]
  const directories = ["extensions", "jaeger_storage", "backends", "runs", "badger", "directories"]
  const folders = { keys: path.join(storage, "keys"), values: path.join(storage, "values") }
  return {
    collector: parse(fs.readFileSync(collectorFile, "utf8")) as Tree,
    jaeger: set(set(jaeger, ui, path.resolve(root, String(get(jaeger, ui)))), directories, folders),
  }
}

/** The value at a path; undefined where there is none. */
export const get = (tree: unknown, at: ReadonlyArray<Key>): unknown =>
  at.reduce((value, key) => (typeof value === "object" && value !== null ? (value as Tree)[key] : undefined), tree)

/** A copy with `value` at that path, which has to be there up to its last key. */
export const set = <A>(tree: A, [key, ...rest]: ReadonlyArray<Key>, value: unknown): A => {
  if (key === undefined) return value as A
  if (typeof tree !== "object" || tree === null) throw new Error(`there is nothing that holds ${key}`)
  const changed = set((tree as Tree)[key], rest, value)
  const copy = Array.isArray(tree)
    ? tree.map((item: unknown, index) => (index === key ? changed : item))
    : { ...tree, [key]: changed }
  return copy as A
}

const numberIn = (value: unknown): number => Number(String(value).split(":").at(-1))

/** The port of each name as a configuration has it. */
export const portsOf = (config: Config): Ports => {
  const portOf = (name: PortName) => numberIn(get(config[places[name][0].program], places[name][0].at))
  return Object.fromEntries(portNames.map((name) => [name, portOf(name)])) as Ports
}

/** The same configuration on other ports; who is not named stays where it is. */
export const withPorts = (config: Config, ports: Partial<Ports>): Config =>
  Object.entries(ports).reduce(
    (config, [name, port]) =>
      places[name as PortName].reduce((config: Config, { program, at }: Place) => {
        const value = get(config[program], at)
        return set(config, [program, ...at], typeof value === "number" ? port : `127.0.0.1:${port}`)
      }, config),
    config,
  )

const kept = ["collector", "service", "pipelines", "traces/keep", "processors"]

/** Without the sampler: every span is passed on as it comes. */
export const keepAll = (config: Config): Config =>
  set(
    config,
    kept,
    (get(config, kept) as ReadonlyArray<string>).filter((name) => name !== "tail_sampling"),
  )
