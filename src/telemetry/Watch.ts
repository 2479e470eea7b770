/**
 * The journal of a run on its spans. It knows which span stands for which account, call and request, hears every event
 * that is recorded, and writes on the span what the books say: the code that does it says nothing a second time.
 *
 * Its laws: each refusal, end of new work and over-run of the journal stands in the trace, with its number in the
 * journal; and what has to be seen although the process was killed stands in spans that end at once (`Mark`).
 */
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type * as Tracer from "effect/Tracer"
import { dimensions } from "../budget/Dimension.ts"
import type { HoldRef } from "../budget/Books.ts"
import type { Event, EventOf, Recorded } from "../event/Event.ts"
import { type Listener, Listeners } from "./Listener.ts"
import * as Mark from "./Mark.ts"
import * as Names from "./Names.ts"
import { outcomeOf, type SpanEvent, spanEvent, wordIn } from "./SpanEvents.ts"
import { parentOf, type Source, sourceOf } from "./Start.ts"
import type { Address, Writer } from "./Writer.ts"

/** What of a run a span stands for: an account, a step of its agent, a request under a hold, or a call. */
export type Subject =
  | { readonly _tag: "Account"; readonly account: string }
  | { readonly _tag: "Step"; readonly account: string }
  | { readonly _tag: "Hold"; readonly hold: HoldRef }
  | { readonly _tag: "Call"; readonly agent: string; readonly call: string }

interface Node {
  readonly path: string
  readonly parent: string | undefined
  readonly carved: EventOf<"Carved"> | undefined
  span: Writer | undefined
  step: Writer | undefined
  /** True once its span says which model it asks. */
  knowsModel: boolean
  /** By the hold that pays for them. */
  readonly holds: Map<string, Pending>
  readonly calls: Map<string, Writer>
  /** Requests whose usage nobody knows. */
  assumed: number
}

/** A hold that is not resolved. */
interface Pending {
  readonly held: EventOf<"Held">
  readonly seq: number
  /** Of the request that it pays for. */
  span: Writer | undefined
  /** Ends the span of a request that is over and not booked yet. */
  end: (() => void) | undefined
}

type Late = (span: Writer) => void

/** So much is kept of what happens before the first span of a run. */
const mostEarly = 100

/** Listens to one run; see {@link make}. */
export class Watch {
  readonly #run: string
  readonly #source: Source | undefined
  readonly #parent: Tracer.AnySpan | undefined
  readonly #listeners: ReadonlyArray<Listener>
  readonly #nodes = new Map<string, Node>()
  /** Where effects happened that count once, for calls that are answered by them later. */
  readonly #effects = new Map<string, Address>()
  /** The agent of a run; a scope has none. */
  #agent: string | undefined
  #root: string | undefined
  /** True where the trace of the run is not looked at: then nothing is written. */
  #isLeftOut: boolean
  /** What happened before the first span; `undefined` once that is there. */
  #early: Array<Late> | undefined = []
  #trace: Address | undefined
  /** The last span that an earlier process is known to have made. */
  #before: Address | undefined

  constructor(options: {
    readonly run: string
    readonly source: Source | undefined
    readonly parent: Tracer.AnySpan | undefined
    readonly listeners: ReadonlyArray<Listener>
  }) {
    this.#run = options.run
    this.#source = options.source
    this.#parent = options.parent
    this.#isLeftOut = options.parent?.sampled === false
    this.#listeners = options.listeners
  }

  /** What it takes to start a span here, as it was when the run began; `undefined` where another tracer is provided. */
  sourceFor({ cache }: Fiber.Fiber<unknown, unknown>): Source | undefined {
    return this.#source?.tracer === cache.tracer ? this.#source : undefined
  }

  /** Takes in what an earlier process recorded; nothing of it is written or counted again. */
  takeUp(events: ReadonlyArray<Recorded>): void {
    for (const { event } of events) {
      this.#enroll(event)
      if ("trace" in event && event.trace !== undefined) this.#before = event.trace
      if (event._tag === "Closed") this.#nodes.delete(event.account)
    }
  }

  // --- spans

  opened(of: Subject, span: Writer): void {
    switch (of._tag) {
      case "Account":
        return this.#openedAccount(of.account, span)
      case "Step": {
        const node = this.#nodes.get(of.account)
        if (node !== undefined) node.step = span
        return
      }
      case "Hold":
        return this.#openedRequest(of.hold, span)
      case "Call":
        this.#nodes.get(of.agent)?.calls.set(of.call, span)
    }
  }

  #openedAccount(account: string, span: Writer): void {
    const node = this.#nodes.get(account)
    if (node === undefined) return
    node.span = span
    if (node.carved !== undefined) span.attributes(clamped(node.carved))
    this.#flushEarly(span)
    if (account !== this.#root) return
    this.#isLeftOut = !span.isOn
    if (this.#before !== undefined) span.link(this.#before, "resumes")
    this.#trace = span.isOn ? span.address : undefined
  }

  /** Where the run is traced, once it has its span. */
  get trace(): Address | undefined {
    return this.#trace
  }

  #flushEarly(span: Writer): void {
    for (const write of this.#early ?? []) write(span)
    this.#early = undefined
  }

  #openedRequest({ account, id }: HoldRef, span: Writer): void {
    const node = this.#nodes.get(account)
    const pending = node?.holds.get(id)
    if (node === undefined || pending === undefined) return
    pending.span = span
    const said = spanEvent(pending.held, this.#pathOf)
    if (said !== undefined) write(span, said, pending.seq)
    if (node.knowsModel) return
    node.knowsModel = true
    for (const name of [Names.providerName, Names.requestModel]) {
      node.span?.attributes({ [name]: span.made.attributes.get(name) })
    }
  }

  /** Ends a span; that of a request once it is booked, so that what it came to stands on it. */
  ended(of: Subject, span: Writer, end: () => void): void {
    const pending = of._tag === "Hold" ? this.#nodes.get(of.hold.account)?.holds.get(of.hold.id) : undefined
    if (pending?.span === span) {
      pending.end = end
      return
    }
    end()
    if (of._tag === "Call") this.#nodes.get(of.agent)?.calls.delete(of.call)
    const node = of._tag === "Account" || of._tag === "Step" ? this.#nodes.get(of.account) : undefined
    if (node === undefined) return
    if (of._tag === "Step") node.step = undefined
    else node.span = undefined
  }

  /** A request goes to a model. */
  asked(hold: HoldRef, attributes: (() => Readonly<Record<string, unknown>>) | undefined): void {
    if (this.#listeners.length === 0) return
    const told = attributes?.() ?? {}
    for (const listener of this.#listeners) listener.asked?.(hold, told)
  }

  // --- events

  readonly heard = (event: Event, seq: number, atMillis: number): void => {
    for (const listener of this.#listeners) listener.heard(event, seq, atMillis)
    if (this.#source === undefined || this.#isLeftOut) return
    this.#enroll(event)
    if (event._tag === "Held") return this.#held(event, seq)
    const isResolved = event._tag === "Settled" || event._tag === "Voided" || event._tag === "Assumed"
    if (isResolved) return this.#resolved(event, seq)
    const said = spanEvent(event, this.#pathOf)
    if (said !== undefined) this.#say(said, seq)
    this.#follow(event, seq, this.#source)
  }

  #enroll(event: Event): void {
    if (event._tag === "RunStarted") this.#agent = event.agent
    if (event._tag !== "Opened" && event._tag !== "Carved") return
    const carved = event._tag === "Carved" ? event : undefined
    if (carved === undefined) this.#root = event.account
    const { account, path } = event
    this.#nodes.set(account, {
      path,
      parent: carved?.parent,
      carved,
      span: undefined,
      step: undefined,
      knowsModel: false,
      holds: new Map(),
      calls: new Map(),
      assumed: 0,
    })
  }

  #held(held: EventOf<"Held">, seq: number): void {
    const node = this.#nodes.get(held.account)
    node?.holds.set(held.hold, { held, seq, span: undefined, end: undefined })
    const { inputTokens } = held.amounts
    if (inputTokens !== undefined) node?.step?.attributes({ [Names.contextEstimate]: inputTokens })
  }

  /** What else an event comes to. */
  #follow(event: Event, seq: number, source: Source): void {
    switch (event._tag) {
      case "AgentStarted":
      case "Stopping":
      case "Frozen":
      case "Overran":
        return this.#mark(event, seq, source)
      case "AgentEnded": {
        const node = this.#nodes.get(event.agent)
        return node?.span?.attributes({ [Names.assumedCalls]: node.assumed })
      }
      case "CallStarted":
        return this.#callStarted(event)
      case "CallEnded":
        return this.#callEnded(event)
      case "Refused":
        if (this.#root === undefined && this.#agent === undefined) this.#neverBegan(event.account, undefined, source)
        return
      case "RunEnded":
        if (this.#early !== undefined) this.#neverBegan(event.agent, event, source)
        return
      case "Closed":
        if (event.account !== this.#root) this.#nodes.delete(event.account)
        return
      default:
    }
  }

  #resolved(event: EventOf<"Settled"> | EventOf<"Voided"> | EventOf<"Assumed">, seq: number): void {
    const node = this.#nodes.get(event.account)
    if (node === undefined) return
    const pending = node.holds.get(event.hold)
    node.holds.delete(event.hold)
    if (event._tag === "Assumed" && event.held.steps !== undefined) node.assumed++
    if (pending?.span === undefined) return
    const said = spanEvent(event, this.#pathOf)
    if (said !== undefined) write(pending.span, said, seq)
    const above = event._tag === "Settled" ? (event.actual.money ?? 0) - (event.held.money ?? 0) : 0
    if (above > 0) pending.span.attributes({ [Names.overrunMoney]: above })
    pending.end?.()
  }

  #callStarted({ agent, call, key }: EventOf<"CallStarted">): void {
    if (key === undefined) return
    const span = this.#nodes.get(agent)?.calls.get(call)
    if (span !== undefined) this.#effects.set(`${agent} ${call}`, span.address)
  }

  #callEnded(event: EventOf<"CallEnded">): void {
    const span = this.#nodes.get(event.agent)?.calls.get(event.call)
    if (span === undefined) return
    span.attributes({
      [Names.toolOutcome]: outcomeOf(event),
      [Names.toolCode]: event.code === undefined ? undefined : wordIn(event.code),
      [Names.toolResultBytes]: event.result?.bytes,
    })
    span.content(Names.content.toolResult, () => event.result?.text)
    if (event.replayed === undefined) return
    const first = this.#effects.get(event.replayed) ?? this.#before
    if (first !== undefined) span.link(first, "replays")
  }

  // --- saying

  readonly #pathOf = (account: string): string => this.#nodes.get(account)?.path ?? account

  #say(said: SpanEvent, seq: number): void {
    switch (said.on._tag) {
      case "Hold": {
        const span = this.#nodes.get(said.on.account)?.holds.get(said.on.hold)?.span
        return span === undefined ? undefined : write(span, said, seq)
      }
      case "Call": {
        const { agent, call } = said.on
        const span = this.#nodes.get(agent)?.calls.get(call) ?? this.#nearest(agent)
        return span === undefined ? undefined : write(span, said, seq)
      }
      case "Above": {
        const { account } = said.on
        return this.#sayAt(this.#nodes.get(account)?.parent ?? account, said, seq)
      }
      case "Account":
        return this.#sayAt(said.on.account, said, seq)
    }
  }

  #sayAt(account: string, said: SpanEvent, seq: number): void {
    const span = this.#nearest(account)
    if (span !== undefined) write(span, said, seq)
    else if (this.#early !== undefined && this.#early.length < mostEarly) {
      this.#early.push((first) => write(first, said, seq))
    }
  }

  /** The span of an account, or of the nearest one above it that has one. */
  #nearest(account: string): Writer | undefined {
    for (let id: string | undefined = account; id !== undefined;) {
      const node: Node | undefined = this.#nodes.get(id)
      if (node?.span !== undefined) return node.span
      id = node?.parent
    }
    return undefined
  }

  #mark(event: Mark.Marked, seq: number, source: Source): void {
    const account = event._tag === "Frozen" || event._tag === "Overran" ? event.account : event.agent
    const span = this.#nearest(account)
    if (span !== undefined) Mark.write(source, { span, event, seq, account, path: this.#pathOf(account) })
  }

  /** A run or a scope that came to no span of its own, because it could not be opened or nobody went on with it. */
  #neverBegan(account: string, end: EventOf<"RunEnded"> | undefined, source: Source): void {
    const of = { run: this.#run, account, path: this.#pathOf(account), end }
    Mark.neverBegan(source, {
      ...of,
      parent: this.#parent,
      before: this.#before,
      write: (span) => this.#flushEarly(span),
    })
  }
}

const write = (span: Writer, { attributes, matters, name }: SpanEvent, seq: number): void => {
  if (span.isOn) span.event(name, { [Names.seq]: seq, ...attributes }, matters)
}

/** What was asked for where less was given. */
const clamped = ({ asked, grant }: EventOf<"Carved">): Readonly<Record<string, unknown>> => {
  const attributes: Record<string, unknown> = {}
  for (const d of dimensions) {
    if (asked[d] !== undefined && asked[d] !== (grant[d] ?? 0)) attributes[Names.budget(d, "asked")] = asked[d]
  }
  return attributes
}

/** A run as it is listened to. */
export interface Heard {
  readonly run: string
  readonly listen: (listener: (event: Event, seq: number, atMillis: number) => void) => unknown
}

/**
 * Listens to a run from now on, for the tracer and the listeners of the current fiber; `undefined` where there are none,
 * and nothing is listened to.
 */
export const make = (log: Heard, earlier: ReadonlyArray<Recorded> = []): Effect.Effect<Watch | undefined> =>
  Effect.withFiber((fiber) => {
    const source = sourceOf(fiber)
    const makers = fiber.getRef(Listeners)
    if (source === undefined && makers.length === 0) return Effect.succeed(undefined)
    const listeners = makers.map((maker) => maker())
    const watch = new Watch({ run: log.run, source, parent: parentOf(fiber), listeners })
    watch.takeUp(earlier)
    log.listen(watch.heard)
    return Effect.succeed(watch)
  })
