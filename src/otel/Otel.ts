/**
 * Export of spans, metrics and logs over OTLP with the official `NodeSDK`, switched on by the environment.
 *
 * It leaves what a span says to `telemetry` and what is kept to a collector. Its laws: without an endpoint nothing is
 * provided and the SDK is not even loaded; a failing export neither fails nor slows a run; closing the layer, and ending
 * the process, sends what is left, in 3 seconds at most.
 */
import type * as Otel from "@opentelemetry/api"
import * as Config from "effect/Config"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as EffectTracer from "effect/Tracer"
import * as Capture from "../telemetry/Capture.ts"
import { Entering } from "../telemetry/Propagation.ts"
import { CurrentRoom } from "../telemetry/Room.ts"
import { logger } from "./internal/logs.ts"
import { type Running, start } from "./internal/sdk.ts"
import { OtelConfigError, type Protocol, read, readContent, type Settings } from "./internal/settings.ts"
import * as Metrics from "./Metrics.ts"
import * as Tracer from "./Tracer.ts"

export { OtelConfigError, type Protocol }

/**
 * What stands in for variables that are not set. The environment wins, so that who runs a program decides.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options extends Tracer.Options, ContentOptions {
  /** In place of `OTEL_EXPORTER_OTLP_ENDPOINT`: up to and without `/v1/traces`. */
  readonly endpoint?: string | undefined
  /** In place of `OTEL_EXPORTER_OTLP_PROTOCOL`; `"http/protobuf"` when absent. */
  readonly protocol?: Protocol | undefined
  /** In place of `OTEL_SERVICE_NAME`; `"bursar"` when absent. */
  readonly serviceName?: string | undefined
  /** How long the end of a program waits for the last spans, in real time; 3 seconds when absent. */
  readonly shutdownTimeout?: Duration.Input | undefined
}

/**
 * Whether spans tell what people, models and tools wrote.
 *
 * **Units**: `mostBytes` of UTF-8 for one attribute; 4 KiB unless given.
 *
 * @category options
 * @since 0.1.0
 */
export interface ContentOptions extends Capture.Options {
  /** In place of `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`; false when absent. */
  readonly content?: boolean | undefined
}

/**
 * Provides what exports over OTLP, if the environment says where to; otherwise provides nothing.
 *
 * **Switched on** by `OTEL_EXPORTER_OTLP_ENDPOINT` for spans, metrics and logs, by `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`
 * (`METRICS`, `LOGS`) for one of them; `OTEL_SDK_DISABLED=true` wins over all, `OTEL_TRACES_EXPORTER=none` (`METRICS`,
 * `LOGS`) over those of one. Where a tracer provider is registered in the process already, its owner exports: spans and
 * metrics go there, and no second SDK is started. Layers that are open at the same time share the SDK of the first, and
 * with it where that one exports to.
 *
 * **Variables** are those of OpenTelemetry: protocol (not `grpc`), headers, timeout, compression, certificates,
 * `OTEL_BSP_*`, sampler, limits, propagators, `OTEL_METRIC_EXPORT_INTERVAL`, resource attributes and detectors. Endpoint,
 * protocol, timeout, service name, queue and interval are read through `Config`; the rest the SDK reads from the process.
 * `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true` writes content on spans, through `redact` where it is given.
 *
 * **Other than the SDK's own**: the queue holds 65,536 spans and sends 2,048 at a time, and a run that fills half of it
 * waits, while exports arrive, before it starts another agent, step or call: so that a large fan-out loses none. One
 * export may take as long as the end of the program (3 seconds); the resource is that of the environment alone, without
 * the command line. A process that ends without closing the layer, by `SIGTERM`, `SIGINT` or because nothing is left to
 * do, sends what is left first.
 *
 * **Fails with** `OtelConfigError` for another protocol, an address that is none, or a package that is not installed.
 *
 * **Example** (Without an endpoint nothing is provided)
 *
 * ```ts
 * import { Otel } from "bursar/otel"
 * import * as ConfigProvider from "effect/ConfigProvider"
 * import * as Effect from "effect/Effect"
 * import * as Layer from "effect/Layer"
 * import * as Tracer from "effect/Tracer"
 *
 * const nowhere = ConfigProvider.layer(ConfigProvider.fromUnknown({}))
 * const isTraced = Effect.map(Effect.context<never>(), (context) => context.mapUnsafe.has(Tracer.TracerKey))
 * const program = isTraced.pipe(Effect.provide(Otel.layer().pipe(Layer.provide(nowhere))))
 * await Effect.runPromise(program) // => false
 * ```
 *
 * @see {@link layerTracerProvider} for an application that sets up OpenTelemetry itself
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options = {}): Layer.Layer<never, OtelConfigError | Config.ConfigError> =>
  Layer.unwrap(
    Effect.map(read(options), (settings) =>
      Option.isNone(settings) ? Layer.empty : exporting(settings.value, options),
    ),
  )

/**
 * The same as {@link layer}, with its options out of the application's own configuration.
 *
 * **Example** (A service named by the application's configuration)
 *
 * ```ts no-run
 * import { Otel } from "bursar/otel"
 * import * as Config from "effect/Config"
 *
 * const Tracing = Otel.layerConfig({ serviceName: Config.String("APP_NAME") })
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (options: Config.Wrap<Options>): Layer.Layer<never, OtelConfigError | Config.ConfigError> =>
  Layer.unwrap(Effect.map(Config.unwrap(options), layer))

/**
 * Provides a tracer over a provider that the application has set up: `sdk-node`, Langfuse, Logfire and the like.
 *
 * Starting, flushing and stopping it stay with its owner.
 *
 * **Example** (The provider that is registered in the process)
 *
 * ```ts no-run
 * import { trace } from "@opentelemetry/api"
 * import { Otel } from "bursar/otel"
 *
 * const Tracing = Otel.layerTracerProvider(trace.getTracerProvider())
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerTracerProvider = (
  provider: Otel.TracerProvider,
  options: Tracer.Options & ContentOptions = {},
): Layer.Layer<never> =>
  Layer.mergeAll(
    Layer.sync(EffectTracer.Tracer, () => Tracer.make(provider.getTracer("bursar"), options)),
    Layer.succeed(Entering)(Tracer.entering),
    Layer.effect(Capture.Content)(
      Effect.map(readContent(options.content), (isOn) => (isOn ? contentOf(options) : undefined)),
    ),
  )

const contentOf = ({ mostBytes, redact }: ContentOptions): Capture.Options => ({ mostBytes, redact })

const exporting = (settings: Settings, options: Options): Layer.Layer<never, OtelConfigError> =>
  Layer.unwrap(
    Effect.gen(function* () {
      yield* warnOfSampler(settings.sampler)
      const { logs, metrics, room, traces } = yield* Effect.acquireRelease(starting(settings), (running) =>
        Effect.promise(running.stop),
      )
      return Layer.mergeAll(
        traces === undefined ? Layer.empty : layerTracerProvider(traces, options),
        metrics === undefined ? Layer.empty : Metrics.layer(metrics),
        logs === undefined
          ? Layer.empty
          : Logger.layer([logger(logs, options.exceptions === true)], { mergeWithExisting: true }),
        Layer.succeed(CurrentRoom)(room),
      )
    }),
  )

const starting = (settings: Settings): Effect.Effect<Running, OtelConfigError> =>
  Effect.flatMap(
    Effect.promise(() => start(settings)),
    Effect.fromResult,
  )

const warnOfSampler = (sampler: string | undefined): Effect.Effect<void> =>
  sampler === undefined || sampler.endsWith("always_on")
    ? Effect.void
    : Effect.logWarning(`OTEL_TRACES_SAMPLER=${sampler} also drops runs that fail; a collector can keep those.`)
