/** The packages of OpenTelemetry, loaded when they are needed and not before. */
import { OtelConfigError, type Protocol, type Settings } from "./settings.ts"

export { OtelConfigError }

/** Loads what the settings need. Rejects with `OtelConfigError` for a package that is not installed. */
export const load = async ({ targets }: Settings) => {
  const [node, trace, traces, metrics, logs] = await Promise.all([
    needed("@opentelemetry/sdk-node", import("@opentelemetry/sdk-node")),
    needed("@opentelemetry/sdk-trace-base", import("@opentelemetry/sdk-trace-base")),
    targets.traces === undefined ? undefined : tracesFor(targets.traces.protocol),
    targets.metrics === undefined ? undefined : metricsFor(targets.metrics.protocol),
    targets.logs === undefined ? undefined : logsFor(targets.logs.protocol),
  ])
  return { node, trace, traces, metrics, logs }
}

export type Modules = Awaited<ReturnType<typeof load>>

const tracesFor = (protocol: Protocol) =>
  protocol === "http/json"
    ? needed("@opentelemetry/exporter-trace-otlp-http", import("@opentelemetry/exporter-trace-otlp-http"))
    : needed("@opentelemetry/exporter-trace-otlp-proto", import("@opentelemetry/exporter-trace-otlp-proto"))

const metricsFor = (protocol: Protocol) =>
  protocol === "http/json"
    ? needed("@opentelemetry/exporter-metrics-otlp-http", import("@opentelemetry/exporter-metrics-otlp-http"))
    : needed("@opentelemetry/exporter-metrics-otlp-proto", import("@opentelemetry/exporter-metrics-otlp-proto"))

const logsFor = async (protocol: Protocol) => {
  const api = await needed("@opentelemetry/api-logs", import("@opentelemetry/api-logs"))
  const exporter =
    protocol === "http/json"
      ? await needed("@opentelemetry/exporter-logs-otlp-http", import("@opentelemetry/exporter-logs-otlp-http"))
      : await needed("@opentelemetry/exporter-logs-otlp-proto", import("@opentelemetry/exporter-logs-otlp-proto"))
  return { api, exporter }
}

const needed = async <Module>(name: string, loading: Promise<Module>): Promise<Module> => {
  try {
    return await loading
  } catch (error) {
    if (!(error instanceof Error) || !error.message.includes(name)) throw error
    const expected = `the package ${name} beside it; install it`
    throw new OtelConfigError({ variable: "OTEL_EXPORTER_OTLP_ENDPOINT", expected })
  }
}
