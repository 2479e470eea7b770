/** The `NodeSDK` itself: loaded when it is first asked for; its globals are taken back when the last user is gone. */
import * as Otel from "@opentelemetry/api"
import type { SpanExporter } from "@opentelemetry/sdk-trace-base"
import * as Result from "effect/Result"
import { OtelConfigError, type Protocol, type Settings } from "./settings.ts"

export interface Running {
  readonly provider: Otel.TracerProvider
  /** Exports what is left, within the limit; never rejects. Call it once. */
  readonly stop: () => Promise<void>
}

// What the API hands out until somebody registers a provider, and passes calls on to it after that.
interface Proxy extends Otel.TracerProvider {
  readonly getDelegateTracer?: (name: string) => Otel.Tracer | undefined
}

const registered = (): Otel.TracerProvider | undefined => {
  const provider: Proxy = Otel.trace.getTracerProvider()
  const isEmpty = provider.getDelegateTracer !== undefined && provider.getDelegateTracer("bursar") === undefined
  return isEmpty ? undefined : provider
}

// As the globals of OpenTelemetry are those of the process, so is our SDK: whoever else asks for it joins in.
let current: Sdk | undefined

interface Sdk {
  users: number
  readonly provider: Otel.TracerProvider
  readonly flush: () => Promise<void>
  readonly shutdown: () => Promise<void>
}

/** Fails when a package is missing; rejects for nothing that could be foreseen. */
export const start = (settings: Settings): Promise<Result.Result<Running, OtelConfigError>> =>
  open(settings).then(Result.succeed, (error: unknown) => {
    if (error instanceof OtelConfigError) return Result.fail(error)
    throw error
  })

const open = async (settings: Settings): Promise<Running> => {
  const foreign = current === undefined ? registered() : undefined
  if (foreign !== undefined) return { provider: foreign, stop: () => Promise.resolve() }
  const modules = await load(settings)
  current ??= run(modules, settings)
  const sdk = current
  sdk.users += 1
  const stop = (): Promise<void> => {
    sdk.users -= 1
    if (sdk.users > 0) return within(settings.shutdownMillis, sdk.flush())
    current = undefined
    return within(settings.shutdownMillis, sdk.shutdown())
  }
  return { provider: sdk.provider, stop }
}

const load = async (settings: Settings) => {
  const [node, trace, exporter] = await Promise.all([
    needed("@opentelemetry/sdk-node", import("@opentelemetry/sdk-node")),
    needed("@opentelemetry/sdk-trace-base", import("@opentelemetry/sdk-trace-base")),
    exporterOf(settings),
  ])
  return { node, trace, exporter }
}

const run = ({ exporter, node, trace }: Awaited<ReturnType<typeof load>>, settings: Settings): Sdk => {
  const { maxExportBatchSize, maxQueueSize, serviceName } = settings
  // What stands already stays, and is not ours to take away.
  const ownsContext = !hasContextManager()
  const ownsPropagation = Otel.propagation.fields().length === 0
  const processor = new trace.BatchSpanProcessor(exporter, { maxExportBatchSize, maxQueueSize })
  const sdk = withoutLogs(() => {
    const sdk = new node.NodeSDK({
      spanProcessors: [processor],
      metricReaders: [],
      ...(serviceName === undefined ? {} : { serviceName }),
      // The command line and the user's name, which the SDK would add, may hold secrets.
      ...(process.env["OTEL_NODE_RESOURCE_DETECTORS"] ? {} : { resourceDetectors: [node.resources.envDetector] }),
    })
    sdk.start()
    return sdk
  })
  return {
    users: 0,
    provider: Otel.trace.getTracerProvider(),
    flush: () => processor.forceFlush(),
    // The globals first: who starts while the last spans are on their way gets an SDK of its own.
    shutdown: () => {
      Otel.trace.disable()
      if (ownsContext) Otel.context.disable()
      if (ownsPropagation) Otel.propagation.disable()
      return sdk.shutdown()
    },
  }
}

const exporterOf = async (settings: Settings): Promise<SpanExporter> => {
  const { exportMillis, maxExportBatchSize, maxQueueSize, protocol, url } = settings
  const { OTLPTraceExporter } = await exporterModule(protocol)
  return new OTLPTraceExporter({
    url,
    // At the end the whole queue is sent at once; what exceeds the limit, 30 unless set, is thrown away.
    concurrencyLimit: Math.ceil(maxQueueSize / maxExportBatchSize) + 1,
    timeoutMillis: exportMillis,
  })
}

const exporterModule = (protocol: Protocol) =>
  protocol === "http/json"
    ? needed("@opentelemetry/exporter-trace-otlp-http", import("@opentelemetry/exporter-trace-otlp-http"))
    : needed("@opentelemetry/exporter-trace-otlp-proto", import("@opentelemetry/exporter-trace-otlp-proto"))

const needed = async <Module>(name: string, loading: Promise<Module>): Promise<Module> => {
  try {
    return await loading
  } catch (error) {
    if (!(error instanceof Error) || !error.message.includes(name)) throw error
    const expected = `the package ${name} beside it; install it`
    throw new OtelConfigError({ variable: "OTEL_EXPORTER_OTLP_ENDPOINT", expected })
  }
}

// The SDK has no other way to be told that there is no exporter for logs, short of a provider that drops them and
// stands in the way of the application's own.
const withoutLogs = <A>(run: () => A): A => {
  const before = process.env["OTEL_LOGS_EXPORTER"]
  process.env["OTEL_LOGS_EXPORTER"] = "none"
  try {
    return run()
  } finally {
    if (before === undefined) delete process.env["OTEL_LOGS_EXPORTER"]
    else process.env["OTEL_LOGS_EXPORTER"] = before
  }
}

const probe = Otel.createContextKey("bursar/otel/probe")

const hasContextManager = (): boolean =>
  Otel.context.with(Otel.ROOT_CONTEXT.setValue(probe, true), () => Otel.context.active().getValue(probe) === true)

// Real time: the exporter's own timers know no other, and a test clock must not hold up the end of a program.
const within = async (millis: number, work: Promise<void>): Promise<void> => {
  const limit = Promise.withResolvers<void>()
  const timer = setTimeout(limit.resolve, millis)
  await Promise.race([limit.promise, work]).catch(() => {})
  clearTimeout(timer)
}
