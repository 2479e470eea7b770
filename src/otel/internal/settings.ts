/** What the environment and the options together ask for; nothing of the SDK is loaded to find out. */
import * as Config from "effect/Config"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"

/**
 * A variable or an option that tracing cannot be set up with.
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
 * How spans are written for the way; both go over HTTP.
 *
 * @category options
 * @since 0.1.0
 */
export type Protocol = "http/protobuf" | "http/json"

export interface Defaults {
  readonly endpoint?: string | undefined
  readonly protocol?: Protocol | undefined
  readonly serviceName?: string | undefined
  readonly shutdownTimeout?: Duration.Input | undefined
}

export interface Settings {
  readonly url: string
  readonly protocol: Protocol
  /** Absent when `OTEL_RESOURCE_ATTRIBUTES` names the service. */
  readonly serviceName: string | undefined
  readonly maxQueueSize: number
  readonly maxExportBatchSize: number
  /** For one export, with its retries. A longer one would keep the process up after the end of the program. */
  readonly exportMillis: number
  readonly shutdownMillis: number
  readonly sampler: string | undefined
}

// As the specification has it, an empty variable is one that is not set.
const variable = (name: string): Config.Config<string | undefined> =>
  Config.map(Config.option(Config.String(name)), (value) => {
    const text = Option.getOrUndefined(value)?.trim()
    return text === "" ? undefined : text
  })

const variables = Config.all({
  disabled: variable("OTEL_SDK_DISABLED"),
  exporter: variable("OTEL_TRACES_EXPORTER"),
  endpoint: variable("OTEL_EXPORTER_OTLP_ENDPOINT"),
  tracesEndpoint: variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
  protocol: variable("OTEL_EXPORTER_OTLP_PROTOCOL"),
  tracesProtocol: variable("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"),
  timeout: variable("OTEL_EXPORTER_OTLP_TIMEOUT"),
  tracesTimeout: variable("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT"),
  maxQueueSize: variable("OTEL_BSP_MAX_QUEUE_SIZE"),
  maxExportBatchSize: variable("OTEL_BSP_MAX_EXPORT_BATCH_SIZE"),
  serviceName: variable("OTEL_SERVICE_NAME"),
  resource: variable("OTEL_RESOURCE_ATTRIBUTES"),
  sampler: variable("OTEL_TRACES_SAMPLER"),
})

type Variables = Config.Success<typeof variables>

/** `None` when there is nowhere to export to, or the environment says not to. */
export const read = (options: Defaults): Effect.Effect<Option.Option<Settings>, OtelConfigError | Config.ConfigError> =>
  Effect.gen(function* () {
    const found = yield* variables
    if (isOff(found)) return Option.none()
    const url = yield* urlOf(found, options)
    if (Option.isNone(url)) return Option.none()
    const shutdownMillis = Duration.toMillis(Duration.fromInputUnsafe(options.shutdownTimeout ?? "3 seconds"))
    const maxQueueSize = countOf(found.maxQueueSize) ?? 65_536
    return Option.some({
      url: url.value,
      protocol: yield* protocolOf(found, options),
      serviceName: serviceNameOf(found, options),
      maxQueueSize,
      maxExportBatchSize: Math.min(countOf(found.maxExportBatchSize) ?? 2048, maxQueueSize),
      exportMillis: countOf(found.tracesTimeout) ?? countOf(found.timeout) ?? shutdownMillis,
      shutdownMillis,
      sampler: found.sampler,
    })
  })

const isOff = ({ disabled, exporter }: Variables): boolean =>
  disabled?.toLowerCase() === "true" || (exporter?.split(",").some((name) => name.trim() === "none") ?? false)

const urlOf = (
  { endpoint, tracesEndpoint }: Variables,
  options: Defaults,
): Effect.Effect<Option.Option<string>, OtelConfigError> => {
  const base = endpoint ?? options.endpoint
  const text = tracesEndpoint ?? (base === undefined ? undefined : `${base.replace(/\/$/, "")}/v1/traces`)
  if (text === undefined) return Effect.succeedNone
  const url = URL.parse(text)
  if (url !== null && /^https?:$/.test(url.protocol)) return Effect.succeedSome(url.href)
  const name = tracesEndpoint === undefined ? "OTEL_EXPORTER_OTLP_ENDPOINT" : "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
  return Effect.fail(new OtelConfigError({ variable: name, expected: "an http or https address" }))
}

const protocolOf = (
  { protocol, tracesProtocol }: Variables,
  options: Defaults,
): Effect.Effect<Protocol, OtelConfigError> => {
  const value: string = tracesProtocol ?? protocol ?? options.protocol ?? "http/protobuf"
  if (value === "http/protobuf" || value === "http/json") return Effect.succeed(value)
  const variable = tracesProtocol === undefined ? "OTEL_EXPORTER_OTLP_PROTOCOL" : "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
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
