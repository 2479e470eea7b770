/**
 * Export of spans over OTLP with the official `NodeSDK`, switched on by the environment.
 *
 * It leaves what a span says to `telemetry` and what is kept to a collector. Its laws: without an endpoint nothing is
 * provided and the SDK is not even loaded; a failing export neither fails nor slows a run; closing the layer sends what
 * is left, in 3 seconds at most. Only traces for now: no metrics, no logs.
 */
import type * as Otel from "@opentelemetry/api"
import * as Config from "effect/Config"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as EffectTracer from "effect/Tracer"
import { type Running, start } from "./internal/sdk.ts"
import { OtelConfigError, type Protocol, read, type Settings } from "./internal/settings.ts"
import * as Tracer from "./Tracer.ts"

export { OtelConfigError, type Protocol }

/**
 * What stands in for variables that are not set. The environment wins, so that who runs a program decides.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options extends Tracer.Options {
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
 * Provides a tracer that exports over OTLP, if the environment says where to; otherwise provides nothing.
 *
 * **Switched on** by `OTEL_EXPORTER_OTLP_ENDPOINT` or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`; `OTEL_SDK_DISABLED=true` and
 * `OTEL_TRACES_EXPORTER=none` win over both. Where a tracer provider is registered in the process already, its owner
 * exports: spans go there, and no second SDK is started. Layers that are open at the same time share the SDK of the
 * first, and with it where that one exports to.
 *
 * **Variables** are those of OpenTelemetry, for traces: protocol (not `grpc`), headers, timeout, compression,
 * certificates, `OTEL_BSP_*`, sampler, limits, propagators, resource attributes and detectors. Endpoint, protocol,
 * timeout, service name and queue are read through `Config`; the rest the SDK reads from the process.
 *
 * **Other than the SDK's own**: the queue holds 65,536 spans and sends 2,048 at a time, so that a large fan-out loses
 * none; one export may take as long as the end of the program (3 seconds); the resource is that of the environment
 * alone, without the command line.
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
export const layerTracerProvider = (provider: Otel.TracerProvider, options: Tracer.Options = {}): Layer.Layer<never> =>
  Layer.sync(EffectTracer.Tracer, () => Tracer.make(provider.getTracer("bursar"), options))

const exporting = (settings: Settings, options: Options): Layer.Layer<never, OtelConfigError> =>
  Layer.unwrap(
    Effect.gen(function* () {
      yield* warnOfSampler(settings.sampler)
      const { provider } = yield* Effect.acquireRelease(starting(settings), (running) => Effect.promise(running.stop))
      return layerTracerProvider(provider, options)
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
