/**
 * Writing on a span: attributes, so many events and no more, a failure with a fixed sentence, links, and content where it
 * is asked for.
 */
import type * as Clock from "effect/Clock"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as Tracer from "effect/Tracer"
import * as Capture from "./Capture.ts"
import * as Names from "./Names.ts"

/** Which span of which trace: what a journal keeps of a span, and what a link needs. */
export interface Address {
  readonly traceId: string
  readonly spanId: string
}

/** Why a span is linked to one of another trace. */
export type LinkKind = "resumes" | "continues" | "replays"

/**
 * A span to write to; one that ignores everything when tracing is off.
 *
 * @category spans
 * @since 0.1.0
 */
export interface TraceSpan {
  /** False where nothing that is written here is kept. */
  readonly isOn: boolean
  readonly attributes: (attributes: Readonly<Record<string, unknown>>) => void
  /** `matters` keeps it a place among many; see {@link mostEvents}. */
  readonly event: (name: string, attributes?: Readonly<Record<string, unknown>>, matters?: boolean) => void
  /** Marks the span as failed although the Effect inside it succeeds. */
  readonly fail: (errorType: string, sentence: string) => void
  /** Writes what a person, a model or a tool wrote, if traces are to hold that at all; `undefined` is nothing. */
  readonly content: (key: string, value: () => unknown) => void
  /** Links to a span of another trace. Within one trace it does nothing: a viewer would take it for the parent. */
  readonly link: (to: Address, kind: LinkKind) => void
  /** W3C context of this span, for a request made inside it. */
  readonly headers: Readonly<Record<string, string>>
  /** Absent when tracing is off. */
  readonly address: Address | undefined
}

/** What a span that stands for a failed run or call ends with. */
export class SpanFailure extends Schema.TaggedError<SpanFailure>()("SpanFailure", { sentence: Schema.String }) {
  override get message(): string {
    return this.sentence
  }
}

export const off: TraceSpan = {
  isOn: false,
  attributes: () => {},
  event: () => {},
  fail: () => {},
  content: () => {},
  link: () => {},
  headers: {},
  address: undefined,
}

/** A span of a trace that is not looked at: nothing is made or kept, and a request made inside it says so. */
export const leftOut = (parent: Tracer.AnySpan): TraceSpan => ({
  ...off,
  get headers() {
    return headersOf(parent)
  },
})

/** W3C alone: it is what providers and gateways read. */
export const headersOf = ({ sampled, spanId, traceId }: Tracer.AnySpan) => ({
  traceparent: `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`,
})

/** SDKs keep 128 of a span. What comes after these is counted in an attribute, `bursar.events.dropped`. */
export const mostEvents = 100

/** So many places are kept for what matters: a refusal, the end of new work, a bill above its hold. */
const kept = 20

/** A span that is written to. */
export class Writer implements TraceSpan {
  readonly isOn: boolean
  readonly made: Tracer.Span
  /** What stands on every span of the agent it belongs to. */
  readonly facts: Readonly<Record<string, unknown>>
  failure: Exit.Exit<never, SpanFailure> | undefined
  readonly #clock: Clock.Clock
  readonly #content: Capture.Options | undefined
  #events = 0
  #dropped = 0

  constructor(
    made: Tracer.Span,
    of: {
      readonly clock: Clock.Clock
      readonly facts: Readonly<Record<string, unknown>>
      readonly content: Capture.Options | undefined
    },
  ) {
    this.made = made
    this.isOn = made.sampled
    this.facts = of.facts
    this.#clock = of.clock
    this.#content = of.content
  }

  get headers(): Readonly<Record<string, string>> {
    return headersOf(this.made)
  }

  get address(): Address {
    return { traceId: this.made.traceId, spanId: this.made.spanId }
  }

  attributes(attributes: Readonly<Record<string, unknown>>): void {
    for (const key in attributes) if (attributes[key] !== undefined) this.made.attribute(key, attributes[key])
  }

  event(name: string, attributes: Readonly<Record<string, unknown>> = {}, matters = false): void {
    if (this.#events >= (matters ? mostEvents : mostEvents - kept)) {
      this.made.attribute(Names.eventsDropped, ++this.#dropped)
      return
    }
    this.#events++
    this.made.event(name, this.#clock.currentTimeNanosUnsafe(), attributes)
  }

  fail(errorType: string, sentence: string): void {
    this.made.attribute(Names.errorType, errorType)
    this.failure = Exit.fail(new SpanFailure({ sentence }))
  }

  content(key: string, value: () => unknown): void {
    if (this.#content === undefined || !this.isOn) return
    const given = value()
    if (given === undefined) return
    const agent = this.facts[Names.agentName]
    const text = Capture.write(this.#content, { key, agent: typeof agent === "string" ? agent : undefined }, given)
    if (text !== undefined) this.made.attribute(key, text)
  }

  link(to: Address, kind: LinkKind): void {
    if (to.traceId === this.made.traceId) return
    this.made.addLinks([{ span: Tracer.externalSpan(to), attributes: { [Names.link]: kind } }])
  }
}

/** Values and failures may hold what a user or a provider wrote: the span gets the tag of a failure and no more. */
export const exitOf = <A, E>(exit: Exit.Exit<A, E>, writer: Writer): Exit.Exit<unknown, unknown> => {
  if (writer.failure !== undefined) return writer.failure
  if (Exit.isSuccess(exit)) return Exit.void
  const failed = exit.cause.reasons.find((reason) => reason._tag !== "Interrupt")
  if (failed === undefined) return exit
  const error: unknown = failed._tag === "Fail" ? failed.error : failed.defect
  writer.made.attribute(Names.errorType, tagOf(error))
  return Exit.fail(new SpanFailure({ sentence: `Ended by ${tagOf(error)}.` }))
}

const tagOf = (error: unknown): string => {
  if (typeof error !== "object" || error === null) return typeof error
  if ("_tag" in error && typeof error._tag === "string") return error._tag
  return error instanceof Error ? error.name : "an unknown failure"
}
