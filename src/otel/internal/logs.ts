/** What Effect logs, as records of OpenTelemetry with the span they were written in. */
import * as Otel from "@opentelemetry/api"
import type * as LogsApi from "@opentelemetry/api-logs"
import * as Inspectable from "effect/Inspectable"
import * as Logger from "effect/Logger"
import type * as LogLevel from "effect/LogLevel"
import * as References from "effect/References"
import { messageOf, toAttributes } from "./attributes.ts"

/** Where lines go; the package is loaded by whoever needs it. */
export interface Logs {
  readonly api: typeof LogsApi
  readonly provider: LogsApi.LoggerProvider
}

const severitiesOf = ({
  SeverityNumber,
}: typeof LogsApi): Readonly<Record<LogLevel.LogLevel, LogsApi.SeverityNumber>> => ({
  All: SeverityNumber.TRACE,
  Trace: SeverityNumber.TRACE,
  Debug: SeverityNumber.DEBUG,
  Info: SeverityNumber.INFO,
  Warn: SeverityNumber.WARN,
  Error: SeverityNumber.ERROR,
  Fatal: SeverityNumber.FATAL,
  None: SeverityNumber.UNSPECIFIED,
})

/** A logger that passes everything on. A failure is told by its type; `exceptions` adds what it says. */
export const logger = ({ api, provider }: Logs, exceptions: boolean): Logger.Logger<unknown, void> => {
  const to = provider.getLogger("bursar")
  const severities = severitiesOf(api)
  return Logger.make(({ cause, date, fiber, logLevel, message }) => {
    const span = fiber.cache.span
    const context =
      span === undefined
        ? Otel.ROOT_CONTEXT
        : Otel.trace.setSpanContext(Otel.ROOT_CONTEXT, {
            traceId: span.traceId,
            spanId: span.spanId,
            traceFlags: span.sampled ? Otel.TraceFlags.SAMPLED : Otel.TraceFlags.NONE,
          })
    const failed = cause.reasons.find((reason) => reason._tag !== "Interrupt")
    const error: unknown = failed?._tag === "Fail" ? failed.error : failed?._tag === "Die" ? failed.defect : undefined
    to.emit({
      timestamp: date,
      severityNumber: severities[logLevel],
      severityText: logLevel.toUpperCase(),
      body: textOf(message),
      attributes: {
        ...toAttributes(fiber.getRef(References.CurrentLogAnnotations)),
        ...(failed === undefined ? {} : { "exception.type": typeOf(error) }),
        ...(failed === undefined || !exceptions ? {} : { "exception.message": messageOf(error) }),
      },
      context,
    })
  })
}

const textOf = (message: unknown): string =>
  (Array.isArray(message) ? message : [message])
    .map((part) => (typeof part === "string" ? part : Inspectable.toStringUnknown(part, 0)))
    .join(" ")

const typeOf = (error: unknown): string => {
  if (typeof error !== "object" || error === null) return typeof error
  if ("_tag" in error && typeof error._tag === "string") return error._tag
  return error instanceof Error ? error.name : "object"
}
