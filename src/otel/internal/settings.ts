/** What the environment and the options together ask for; nothing of the SDK is loaded to find out. */
import * as Config from "effect/Config"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"

/**
 * A variable or an option that telemetry cannot be set up with.
 *
 * @category errors
 * @since 0.1.0
 */
export class OtelConfigError extends Schema.TaggedError<OtelConfigError>()("OtelConfigError", {
  /** The variable of the environment, even when an option stood in for it. */
  variable: Schema.String,
  /** Absent where it could hold a password. */
  value: Schema.optional(Schema.String),
  expected: Schema.String,
}) {
  override get message(): string {
    return `${this.variable}${this.value === undefined ? "" : `=${this.value}`}: expected ${this.expected}`
  }
}

/**
 * How telemetry is written for the way; both go over HTTP.
 *
 * @category options
 * @since 0.1.0
 */
export type Protocol = "http/protobuf" | "http/json"

/** What is exported. */
export type Signal = "traces" | "metrics" | "logs"

export const signals: ReadonlyArray<Signal> = ["traces", "metrics", "logs"]

export interface Defaults {
  readonly endpoint?: string | undefined
  readonly protocol?: Protocol | undefined
  readonly serviceName?: string | undefined
  readonly shutdownTimeout?: Duration.Input | undefined
}

/** Where one signal goes. */
export interface Target {
  readonly url: string
  readonly protocol: Protocol
  /** For one export, with its retries. A longer one would keep the process up after the end of the program. */
  readonly exportMillis: number
}

export interface Settings {
  /** A signal without a target is not exported. */
  readonly targets: { readonly [S in Signal]?: Target }
  /** Absent when `OTEL_RESOURCE_ATTRIBUTES` names the service. */
  readonly serviceName: string | undefined
  readonly maxQueueSize: number
  readonly maxExportBatchSize: number
  readonly metricsMillis: number
  readonly shutdownMillis: number
  readonly sampler: string | undefined
}

// As the specification has it, an empty variable is one that is not set.
const variable = (name: string): Config.Config<string | undefined> =>
  Config.map(Config.option(Config.String(name)), (value) => {
    const text = Option.getOrUndefined(value)?.trim()
    return text === "" ? undefined : text
  })

const ofSignal = (signal: Signal) => {
  const own = `OTEL_EXPORTER_OTLP_${signal.toUpperCase()}`
  return Config.all({
    exporter: variable(`OTEL_${signal.toUpperCase()}_EXPORTER`),
    endpoint: variable(`${own}_ENDPOINT`),
    protocol: variable(`${own}_PROTOCOL`),
    timeout: variable(`${own}_TIMEOUT`),
  })
}

const variables = Config.all({
  disabled: variable("OTEL_SDK_DISABLED"),
  endpoint: variable("OTEL_EXPORTER_OTLP_ENDPOINT"),
  protocol: variable("OTEL_EXPORTER_OTLP_PROTOCOL"),
  timeout: variable("OTEL_EXPORTER_OTLP_TIMEOUT"),
  traces: ofSignal("traces"),
  metrics: ofSignal("metrics"),
  logs: ofSignal("logs"),
  maxQueueSize: variable("OTEL_BSP_MAX_QUEUE_SIZE"),
  maxExportBatchSize: variable("OTEL_BSP_MAX_EXPORT_BATCH_SIZE"),
  metricsInterval: variable("OTEL_METRIC_EXPORT_INTERVAL"),
  serviceName: variable("OTEL_SERVICE_NAME"),
  resource: variable("OTEL_RESOURCE_ATTRIBUTES"),
  sampler: variable("OTEL_TRACES_SAMPLER"),
})

type Variables = Config.Success<typeof variables>

/** `None` when there is nowhere to export to, or the environment says not to. */
export const read = (options: Defaults): Effect.Effect<Option.Option<Settings>, OtelConfigError | Config.ConfigError> =>
  Effect.gen(function* () {
    const found = yield* variables
    if (found.disabled?.toLowerCase() === "true") return Option.none()
    const shutdownMillis = Duration.toMillis(Duration.fromInputUnsafe(options.shutdownTimeout ?? "3 seconds"))
    const targets: { [S in Signal]?: Target } = {}
    for (const signal of signals) {
      const target = yield* targetOf(signal, found, { ...options, shutdownMillis })
      if (target !== undefined) targets[signal] = target
    }
    if (Object.keys(targets).length === 0) return Option.none()
    const maxQueueSize = countOf(found.maxQueueSize) ?? 65_536
    return Option.some({
      targets,
      serviceName: serviceNameOf(found, options),
      maxQueueSize,
      maxExportBatchSize: Math.min(countOf(found.maxExportBatchSize) ?? 2048, maxQueueSize),
      metricsMillis: countOf(found.metricsInterval) ?? 60_000,
      shutdownMillis,
      sampler: found.sampler,
    })
  })

/**
 * Whether content is to be written. The variable wins over the option, so that who runs a program decides.
 */
export const readContent = (option: boolean | undefined): Effect.Effect<boolean> =>
  variable("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT").pipe(
    Effect.map((value) => (value === undefined ? option === true : value.toLowerCase() === "true")),
    // A configuration that cannot be read asks for nothing.
    Effect.catch(() => Effect.succeed(false)),
  )

const targetOf = (
  signal: Signal,
  found: Variables,
  options: Defaults & { readonly shutdownMillis: number },
): Effect.Effect<Target | undefined, OtelConfigError> =>
  Effect.gen(function* () {
    const own = found[signal]
    if (own.exporter?.split(",").some((name) => name.trim() === "none") === true) return undefined
    const base = found.endpoint ?? options.endpoint
    const text = own.endpoint ?? (base === undefined ? undefined : `${base.replace(/\/$/, "")}/v1/${signal}`)
    if (text === undefined) return undefined
    return {
      url: yield* urlOf(text, own.endpoint === undefined ? "OTLP" : `OTLP_${signal.toUpperCase()}`),
      protocol: yield* protocolOf(
        own.protocol ?? found.protocol ?? options.protocol ?? "http/protobuf",
        own.protocol === undefined ? "OTLP" : `OTLP_${signal.toUpperCase()}`,
      ),
      exportMillis: countOf(own.timeout) ?? countOf(found.timeout) ?? options.shutdownMillis,
    }
  })

const urlOf = (text: string, which: string): Effect.Effect<string, OtelConfigError> => {
  const url = URL.parse(text)
  return url !== null && /^https?:$/.test(url.protocol)
    ? Effect.succeed(url.href)
    : Effect.fail(
        new OtelConfigError({ variable: `OTEL_EXPORTER_${which}_ENDPOINT`, expected: "an http or https address" }),
      )
}

const protocolOf = (value: string, which: string): Effect.Effect<Protocol, OtelConfigError> => {
  if (value === "http/protobuf" || value === "http/json") return Effect.succeed(value)
  const variable = `OTEL_EXPORTER_${which}_PROTOCOL`
  const why = value === "grpc" ? "; gRPC is not built in, and collectors take HTTP on port 4318" : ""
  return Effect.fail(new OtelConfigError({ variable, value, expected: `http/protobuf or http/json${why}` }))
}

const serviceNameOf = ({ resource, serviceName }: Variables, options: Defaults): string | undefined => {
  if (serviceName !== undefined) return serviceName
  const isNamed = resource?.split(",").some((pair) => /^\s*service\.name\s*=/.test(pair)) ?? false
  return isNamed ? undefined : (options.serviceName ?? "bursar")
}

// The specification wants an unreadable number treated as one that is not set.
const countOf = (text: string | undefined): number | undefined => {
  const count = Number(text)
  return Number.isInteger(count) && count > 0 ? count : undefined
}
