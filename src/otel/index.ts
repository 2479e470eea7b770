/**
 * The door `bursar/otel`: spans, metrics and logs into OpenTelemetry.
 */
export * as Metrics from "./Metrics.ts"
export * as Otel from "./Otel.ts"
export * as Tracer from "./Tracer.ts"
