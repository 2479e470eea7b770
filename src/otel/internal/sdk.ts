/** The `NodeSDK` itself: loaded when it is first asked for; its globals are taken back when the last user is gone. */
import * as Otel from "@opentelemetry/api"
import * as Result from "effect/Result"
import type { Room } from "../../telemetry/Room.ts"
import type { Logs } from "./logs.ts"
import { load, type Modules, type OtelConfigError } from "./packages.ts"
import { Queue } from "./queue.ts"
import type { Settings } from "./settings.ts"
import { beforeEnd } from "./signals.ts"

/** What is exported to, each where it is asked for. */
export interface Providers {
  readonly traces: Otel.TracerProvider | undefined
  readonly metrics: Otel.MeterProvider | undefined
  readonly logs: Logs | undefined
  /** Of the queue of spans. */
  readonly room: Room | undefined
}

export interface Running extends Providers {
  /** Exports what is left, within the limit; never rejects. Call it once. */
  readonly stop: () => Promise<void>
}

// What the API hands out until somebody registers a provider, and passes calls on to it after that.
interface Proxy extends Otel.TracerProvider {
  readonly getDelegateTracer?: (name: string) => Otel.Tracer | undefined
}

const registered = (): Providers | undefined => {
  const traces: Proxy = Otel.trace.getTracerProvider()
  const isEmpty = traces.getDelegateTracer !== undefined && traces.getDelegateTracer("bursar") === undefined
  if (isEmpty) return undefined
  const metrics = Otel.metrics.getMeterProvider()
  // What the API hands out where there is none has no name of its own to be told by but that of its class.
  const isNoMeter = metrics.constructor.name === "NoopMeterProvider"
  return { traces, metrics: isNoMeter ? undefined : metrics, logs: undefined, room: undefined }
}

// As the globals of OpenTelemetry are those of the process, so is our SDK: whoever else asks for it joins in.
let current: Sdk | undefined

interface Sdk {
  users: number
  readonly providers: Providers
  readonly flush: () => Promise<unknown>
  readonly shutdown: () => Promise<unknown>
}

/** Fails when a package is missing; rejects for nothing that could be foreseen. */
export const start = (settings: Settings): Promise<Result.Result<Running, OtelConfigError>> =>
  load(settings).then(
    (modules) => Result.succeed(open(modules, settings)),
    (error: unknown) => {
      if (typeof error === "object" && error !== null && "_tag" in error) return Result.fail(error as OtelConfigError)
      throw error
    },
  )

const open = (modules: Modules, settings: Settings): Running => {
  const foreign = current === undefined ? registered() : undefined
  if (foreign !== undefined) return { ...foreign, stop: () => Promise.resolve() }
  current ??= run(modules, settings)
  const sdk = current
  sdk.users += 1
  const stop = (): Promise<void> => {
    sdk.users -= 1
    if (sdk.users > 0) return within(settings.shutdownMillis, sdk.flush())
    current = undefined
    return within(settings.shutdownMillis, sdk.shutdown())
  }
  return { ...sdk.providers, stop }
}

const run = (modules: Modules, settings: Settings): Sdk => {
  const { serviceName, shutdownMillis, targets } = settings
  const { node } = modules
  // What stands already stays, and is not ours to take away.
  const ownsContext = !hasContextManager()
  const ownsPropagation = Otel.propagation.fields().length === 0
  const traces = tracesOf(modules, settings)
  const metrics = metricsOf(modules, settings)
  const logs = logsOf(modules, settings)
  const sdk = withoutLogs(logs.length === 0, () => {
    const sdk = new node.NodeSDK({
      spanProcessors: traces.processors,
      metricReaders: metrics,
      ...(logs.length === 0 ? {} : { logRecordProcessors: logs }),
      ...(serviceName === undefined ? {} : { serviceName }),
      // The command line and the user's name, which the SDK would add, may hold secrets.
      ...(process.env["OTEL_NODE_RESOURCE_DETECTORS"] ? {} : { resourceDetectors: [node.resources.envDetector] }),
    })
    sdk.start()
    return sdk
  })
  const flush = () => Promise.all([...traces.processors, ...metrics, ...logs].map((one) => one.forceFlush()))
  const stopWaiting = beforeEnd(() => within(shutdownMillis, flush()))
  return {
    users: 0,
    providers: {
      traces: targets.traces === undefined ? undefined : Otel.trace.getTracerProvider(),
      metrics: targets.metrics === undefined ? undefined : Otel.metrics.getMeterProvider(),
      logs: modules.logs && { api: modules.logs.api, provider: modules.logs.api.logs.getLoggerProvider() },
      room: traces.room,
    },
    flush,
    // The globals first: who starts while the last spans are on their way gets an SDK of its own.
    shutdown: () => {
      stopWaiting()
      Otel.trace.disable()
      if (metrics.length > 0) Otel.metrics.disable()
      if (logs.length > 0) modules.logs?.api.logs.disable()
      if (ownsContext) Otel.context.disable()
      if (ownsPropagation) Otel.propagation.disable()
      return sdk.shutdown()
    },
  }
}

const tracesOf = ({ trace, traces }: Modules, { maxExportBatchSize, maxQueueSize, targets }: Settings) => {
  if (targets.traces === undefined || traces === undefined) return { processors: [], room: undefined }
  const queue = new Queue(maxQueueSize)
  const exporter = new traces.OTLPTraceExporter({
    url: targets.traces.url,
    // At the end the whole queue is sent at once; what exceeds the limit, 30 unless set, is thrown away.
    concurrencyLimit: Math.ceil(maxQueueSize / maxExportBatchSize) + 1,
    timeoutMillis: targets.traces.exportMillis,
  })
  const processor = new trace.BatchSpanProcessor(queue.emptying(exporter), { maxExportBatchSize, maxQueueSize })
  return { processors: [queue.counting(processor)], room: queue.room }
}

const metricsOf = ({ metrics, node }: Modules, { metricsMillis, targets }: Settings) => {
  if (targets.metrics === undefined || metrics === undefined) return []
  const { exportMillis, url } = targets.metrics
  const exporter = new metrics.OTLPMetricExporter({ url, timeoutMillis: exportMillis })
  return [
    new node.metrics.PeriodicExportingMetricReader({
      exporter,
      exportIntervalMillis: metricsMillis,
      exportTimeoutMillis: Math.min(exportMillis, metricsMillis),
    }),
  ]
}

const logsOf = ({ logs, node }: Modules, { maxExportBatchSize, maxQueueSize, targets }: Settings) => {
  if (targets.logs === undefined || logs === undefined) return []
  const { exportMillis, url } = targets.logs
  const exporter = new logs.exporter.OTLPLogExporter({
    url,
    concurrencyLimit: Math.ceil(maxQueueSize / maxExportBatchSize) + 1,
    timeoutMillis: exportMillis,
  })
  return [new node.logs.BatchLogRecordProcessor({ exporter, maxExportBatchSize, maxQueueSize })]
}

// The SDK has no other way to be told that there is no exporter for logs, short of a provider that drops them and
// stands in the way of the application's own.
const withoutLogs = <A>(without: boolean, run: () => A): A => {
  if (!without) return run()
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
const within = async (millis: number, work: Promise<unknown>): Promise<void> => {
  const limit = Promise.withResolvers<void>()
  const timer = setTimeout(limit.resolve, millis)
  await Promise.race([limit.promise, work]).catch(() => {})
  clearTimeout(timer)
}
