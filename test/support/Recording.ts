/**
 * A tracer that keeps every span, for looking at a trace after the run.
 */
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"
import type * as Cause from "effect/Cause"

/** A span as it was left. */
export interface Recorded {
  readonly name: string
  readonly spanId: string
  readonly traceId: string
  readonly parent: string | undefined
  readonly kind: Tracer.SpanKind
  readonly attributes: Map<string, unknown>
  readonly events: Array<{ readonly name: string; readonly attributes: Readonly<Record<string, unknown>> }>
  exit: Exit.Exit<unknown, unknown> | undefined
}

/** A tracer and what it has recorded, in the order in which spans started. */
export const make = (): { readonly tracer: Tracer.Tracer; readonly spans: ReadonlyArray<Recorded> } => {
  const spans: Array<Recorded> = []
  const tracer = Tracer.make({
    span: (options) => {
      const native = new Tracer.NativeSpan(options)
      const span: Recorded = {
        name: options.name,
        spanId: native.spanId,
        traceId: native.traceId,
        parent: Option.getOrUndefined(Option.map(options.parent, (parent) => parent.spanId)),
        kind: options.kind,
        attributes: new Map(),
        events: [],
        exit: undefined,
      }
      spans.push(span)
      const [attribute, event, end] = [
        native.attribute.bind(native),
        native.event.bind(native),
        native.end.bind(native),
      ]
      native.attribute = (key, value) => {
        span.attributes.set(key, value)
        attribute(key, value)
      }
      native.event = (name, at, attributes = {}) => {
        span.events.push({ name, attributes })
        event(name, at, attributes)
      }
      native.end = (at, exit) => {
        span.exit = exit
        end(at, exit)
      }
      return native
    },
  })
  return { tracer, spans }
}

/** The status as a backend shows it: an interruption is no error. */
export const statusOf = ({ exit }: Recorded): string => {
  if (exit === undefined) return "open"
  if (Exit.isSuccess(exit)) return "ok"
  const reason = exit.cause.reasons.find((one) => one._tag !== "Interrupt")
  return reason === undefined ? "unset" : messageOf(reason)
}

const messageOf = (reason: Cause.Reason<unknown>): string => {
  const error: unknown = reason._tag === "Fail" ? reason.error : reason._tag === "Die" ? reason.defect : undefined
  return `error: ${error instanceof Error ? error.message : String(error)}`
}
