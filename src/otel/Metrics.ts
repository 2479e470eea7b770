/**
 * Metrics of runs, by listening to their journals: each number is counted once, when it is booked, by the process that
 * books it. What a resumed run did before is not counted again.
 *
 * Its law: what metrics are told apart by has few values (names of agents, tools, models and reasons), and never comes from
 * a text that a user, a model or a tool wrote.
 */
import type * as Otel from "@opentelemetry/api"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type Dimension, dimensions } from "../budget/Dimension.ts"
import { type Reserve, reserves } from "../budget/Reserve.ts"
import type { Event, EventOf } from "../event/Event.ts"
import { dimensionOf, isError } from "../event/StopReason.ts"
import { type Listener, Listeners } from "../telemetry/Listener.ts"
import * as Names from "../telemetry/Names.ts"
import { wordIn } from "../telemetry/SpanEvents.ts"
import { type Instruments, instrumentsOf } from "./internal/instruments.ts"

type Labels = Readonly<Record<string, string>>
type Amounts = { readonly [D in Dimension]?: number | undefined }

interface Pending {
  readonly amounts: { [D in Dimension]?: number }
  readonly reserve: Reserve
  /** Of a request to a model. */
  asked: { readonly labels: Labels; readonly atMillis: number } | undefined
}

interface Node {
  readonly level: "root" | "child"
  frozen: { readonly cause: string; readonly atMillis: number } | undefined
}

interface Running {
  readonly name: string
  readonly startMillis: number
  inferences: number
  toolCalls: number
  /** A request that is booked, until it is known what came of it. */
  booked: Booked | undefined
}

interface Booked {
  readonly labels: Labels
  readonly seconds: number
}

const keyOf = (owner: string, id: string): string => `${owner} ${id}`
const seconds = (millis: number): number => millis / 1000

/** Listens to one run and counts. */
class Counting implements Listener {
  readonly #to: Instruments
  readonly #nodes = new Map<string, Node>()
  readonly #holds = new Map<string, Pending>()
  readonly #agents = new Map<string, Running>()
  readonly #calls = new Map<string, { readonly tool: string; readonly startMillis: number }>()
  #now = 0

  constructor(to: Instruments) {
    this.#to = to
  }

  readonly asked = (
    { account, id }: { readonly account: string; readonly id: string },
    attributes: Readonly<Record<string, unknown>>,
  ): void => {
    const pending = this.#holds.get(keyOf(account, id))
    const agent = this.#agents.get(account)
    if (agent !== undefined) agent.inferences++
    if (pending === undefined) return
    const labels: Record<string, string> = {}
    for (const key of [Names.operation, Names.providerName, Names.requestModel]) {
      if (typeof attributes[key] === "string") labels[key] = attributes[key]
    }
    pending.asked = { labels, atMillis: this.#now }
  }

  readonly heard = (event: Event, _seq: number, atMillis: number): void => {
    this.#now = atMillis
    switch (event._tag) {
      case "Opened":
      case "Carved":
        return this.#opened(event)
      case "Amended":
        return this.#amended(event)
      case "Held":
        return this.#held(event)
      case "Extended":
        return this.#extended(event)
      case "Settled":
      case "Voided":
      case "Assumed":
        return this.#resolved(event)
      case "Overran":
        return this.#each(event.excess, (amount, d) => this.#to.overrun.add(amount, of(d, event.reserve)))
      case "Refused":
        return this.#refused(event)
      case "Frozen":
        return this.#frozen(event)
      case "Closed":
        return this.#closed(event)
      case "AgentStarted":
      case "AgentEnded":
      case "Decided":
      case "DecisionFailed":
        return this.#agent(event)
      case "CallStarted":
        return this.#callStarted(event)
      case "CallEnded":
        return this.#callEnded(event)
      case "RunEnded":
        return this.#runEnded(event)
      default:
    }
  }

  #each(amounts: Amounts, use: (amount: number, dimension: Dimension) => void): void {
    for (const d of dimensions) if ((amounts[d] ?? 0) > 0) use(amounts[d] ?? 0, d)
  }

  // --- accounts

  #opened(event: EventOf<"Opened"> | EventOf<"Carved">): void {
    const level = event._tag === "Opened" ? "root" : "child"
    this.#nodes.set(event.account, { level, frozen: undefined })
    this.#to.nodeOpen.add(1)
    // What a child is given its run was granted before.
    if (level === "child") return
    for (const reserve of reserves) {
      this.#each(event.reserves[reserve], (amount, d) => this.#to.granted.add(amount, of(d, reserve)))
    }
  }

  #amended({ from, to }: EventOf<"Amended">): void {
    for (const d of dimensions) {
      const more = (to[d] ?? 0) - (from[d] ?? 0)
      if (more > 0) this.#to.granted.add(more, of(d, "explore"))
    }
  }

  #frozen({ account, cause, closingWork }: EventOf<"Frozen">): void {
    const node = this.#nodes.get(account)
    if (node !== undefined && !closingWork) node.frozen ??= { cause, atMillis: this.#now }
  }

  #closed(event: EventOf<"Closed">): void {
    const node = this.#nodes.get(event.account)
    // One that an earlier process opened is not among those that are open here.
    if (node === undefined) return
    this.#nodes.delete(event.account)
    this.#to.nodeOpen.add(-1)
    const { children, debt, granted, own, returned } = event
    this.#each(granted, (grant, d) => {
      const used = (own[d] ?? 0) + (children[d] ?? 0)
      this.#to.utilization.record(used / grant, { ...of(d), [Names.label.level]: node.level })
      if (used + (returned[d] ?? 0) - (debt[d] ?? 0) !== grant) {
        this.#to.violation.add(1, { [Names.label.invariant]: "conservation" })
      }
    })
    if (node.level === "root") this.#each(returned, (amount, d) => this.#to.refunded.add(amount, of(d)))
    if (node.frozen === undefined) return
    const labels = { [Names.label.cause]: node.frozen.cause }
    this.#to.cancelLatency.record(seconds(this.#now - node.frozen.atMillis), labels)
  }

  #refused({ reason }: EventOf<"Refused">): void {
    const refusal = { [Names.label.refusal]: reason._tag }
    if (reason._tag !== "Insufficient") return this.#to.refused.add(1, refusal)
    for (const { dimension, reserve, whose } of reason.shortages) {
      const where = { ...of(dimension as Dimension, reserve as Reserve), [Names.label.whose]: whose }
      this.#to.refused.add(1, { ...refusal, ...where })
    }
  }

  // --- holds

  #held({ account, amounts, hold, reserve }: EventOf<"Held">): void {
    this.#holds.set(keyOf(account, hold), { amounts: { ...amounts }, reserve, asked: undefined })
    this.#to.holdPending.add(1)
    this.#each(amounts, (amount, d) => this.#to.held.add(amount, of(d)))
  }

  #extended({ account, amounts, hold }: EventOf<"Extended">): void {
    const pending = this.#holds.get(keyOf(account, hold))
    if (pending === undefined) return
    this.#each(amounts, (amount, d) => {
      pending.amounts[d] = (pending.amounts[d] ?? 0) + amount
      this.#to.held.add(amount, of(d))
    })
  }

  #resolved(event: EventOf<"Settled"> | EventOf<"Voided"> | EventOf<"Assumed">): void {
    const key = keyOf(event.account, event.hold)
    const pending = this.#holds.get(key)
    this.#holds.delete(key)
    if (pending !== undefined) {
      this.#to.holdPending.add(-1)
      this.#each(pending.amounts, (amount, d) => this.#to.held.add(-amount, of(d)))
    }
    if (event._tag === "Voided") return
    const booked = event._tag === "Settled" ? event.actual : event.held
    this.#each(booked, (amount, d) => {
      this.#to.used.add(amount, of(d, event.reserve))
      if (event._tag === "Assumed") this.#to.assumed.add(amount, of(d, event.reserve))
    })
    if (pending?.asked !== undefined) this.#booked(event, pending.asked, booked)
  }

  /** A request to a model. What nobody told is no usage. */
  #booked(
    event: EventOf<"Settled"> | EventOf<"Assumed">,
    { atMillis, labels }: NonNullable<Pending["asked"]>,
    booked: Amounts,
  ): void {
    const certainty = event._tag === "Settled" ? "exact" : "assumed"
    if ((booked.money ?? 0) > 0) this.#to.cost.add(booked.money ?? 0, { ...labels, [Names.certainty]: certainty })
    if (event._tag === "Settled") {
      for (const [d, type] of [
        ["inputTokens", "input"],
        ["outputTokens", "output"],
      ] as const) {
        const [held, used] = [event.held[d] ?? 0, booked[d] ?? 0]
        if (used === 0) continue
        this.#to.tokenUsage.record(used, { ...labels, [Names.label.tokenType]: type })
        const model = labels[Names.requestModel]
        this.#to.holdRatio.record(held / used, {
          ...of(d),
          ...(model === undefined ? {} : { [Names.requestModel]: model }),
        })
      }
    }
    const agent = this.#agents.get(event.account)
    const done = { labels, seconds: seconds(this.#now - atMillis) }
    this.#measure(agent)
    if (agent === undefined) this.#to.operationDuration.record(done.seconds, labels)
    else agent.booked = done
  }

  /** A request that nothing more is heard of, or what came of it. */
  #measure(agent: Running | undefined, more: Labels = {}): void {
    if (agent?.booked === undefined) return
    this.#to.operationDuration.record(agent.booked.seconds, { ...agent.booked.labels, ...more })
    agent.booked = undefined
  }

  // --- agents

  #agent(
    event: EventOf<"AgentStarted"> | EventOf<"AgentEnded"> | EventOf<"Decided"> | EventOf<"DecisionFailed">,
  ): void {
    const agent = this.#agents.get(event.agent)
    switch (event._tag) {
      case "AgentStarted": {
        const { name } = event
        const nothing = { inferences: 0, toolCalls: 0, booked: undefined }
        this.#agents.set(event.agent, { name, startMillis: this.#now, ...nothing })
        return
      }
      case "Decided":
        return this.#measure(agent, event.model === undefined ? {} : { [Names.responseModel]: event.model })
      case "DecisionFailed":
        return this.#measure(agent, { [Names.errorType]: event.code })
      case "AgentEnded": {
        this.#agents.delete(event.agent)
        if (agent === undefined) return
        this.#measure(agent, { [Names.errorType]: "cancelled" })
        const name = { [Names.agentName]: agent.name }
        const failed = isError(event.reason, event.result) ? { [Names.errorType]: `bursar.${event.reason}` } : {}
        this.#to.agentDuration.record(seconds(this.#now - agent.startMillis), { ...name, ...failed })
        this.#to.agentInferences.record(agent.inferences, name)
        this.#to.agentToolCalls.record(agent.toolCalls, name)
      }
    }
  }

  #callStarted({ agent, attempt, call, tool }: EventOf<"CallStarted">): void {
    const running = this.#agents.get(agent)
    if (running !== undefined) running.toolCalls++
    if (attempt === 1) this.#calls.set(keyOf(agent, call), { tool, startMillis: this.#now })
  }

  #callEnded({ agent, call, code, outcome }: EventOf<"CallEnded">): void {
    const key = keyOf(agent, call)
    const started = this.#calls.get(key)
    if (started === undefined) return
    this.#calls.delete(key)
    const labels: Labels = {
      [Names.toolName]: started.tool,
      ...(outcome === "ok" ? {} : { [Names.errorType]: wordIn(code ?? "") }),
    }
    this.#to.toolDuration.record(seconds(this.#now - started.startMillis), labels)
  }

  #runEnded({ reason, result }: EventOf<"RunEnded">): void {
    const dimension = dimensionOf(reason)
    this.#to.runCompleted.add(1, {
      [Names.stopReason]: reason,
      [Names.result]: result,
      ...(dimension === undefined ? {} : { [Names.stopDimension]: Names.dimension(dimension) }),
    })
  }
}

const of = (dimension: Dimension, reserve?: Reserve): Labels => ({
  [Names.label.dimension]: Names.dimension(dimension),
  ...(reserve === undefined ? {} : { [Names.reserve]: reserve }),
})

/** Makes what counts a run, for every run of a process. */
export const make = (provider: Otel.MeterProvider): (() => Listener) => {
  const instruments = instrumentsOf(provider.getMeter("bursar"))
  return () => new Counting(instruments)
}

/**
 * Counts every run under it with a meter provider that the application has set up.
 *
 * Durations of agents and tools are told of those that began and ended in this process. What a correction takes back later
 * was counted when it was assumed, and stays counted.
 *
 * **Example** (The provider that is registered in the process)
 *
 * ```ts no-run
 * import { metrics } from "@opentelemetry/api"
 * import { Metrics } from "bursar/otel"
 *
 * const Counted = Metrics.layer(metrics.getMeterProvider())
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (provider: Otel.MeterProvider): Layer.Layer<never> =>
  Layer.effect(Listeners)(Effect.map(Effect.service(Listeners), (before) => [...before, make(provider)]))
