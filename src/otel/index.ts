/**
 * The door `bursar/otel`: spans into OpenTelemetry.
 */
export * as Otel from "./Otel.ts"
export * as Tracer from "./Tracer.ts"
