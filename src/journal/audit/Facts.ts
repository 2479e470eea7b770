/**
 * What audits look things up in: the events of a run by agent, by call and by account, each with its place in the log.
 * It judges nothing and takes whatever it is given, complete or not.
 */
import type { Event, EventOf, Recorded } from "../../event/Event.ts"

/**
 * Something that is wrong with a run: where it shows, whom it concerns, and what it is, in a sentence.
 *
 * @category audits
 * @since 0.1.0
 */
export interface Defect {
  /** The number of the event at which it shows. */
  readonly seq: number
  readonly agent?: string
  readonly call?: string
  readonly what: string
}

/** How far a run has come: over, waiting for people, or neither. */
export type RunState = "ended" | "suspended" | "open"

/** An event with its number and its place in the log, counted from 0; the number may be wrong, the place is not. */
export interface Seen<Tag extends Event["_tag"]> {
  readonly at: number
  readonly seq: number
  readonly event: EventOf<Tag>
}

/** Everything that happened to one call. */
export interface CallFacts {
  readonly agent: string
  readonly call: string
  readonly decided: Array<Seen<"Decided"> & { readonly tool: string }>
  readonly started: Array<Seen<"CallStarted">>
  readonly failed: Array<Seen<"CallFailed">>
  readonly ended: Array<Seen<"CallEnded">>
  readonly asked: Array<Seen<"ApprovalRequested">>
  readonly answered: Array<Seen<"ApprovalDecided">>
}

/** Everything that one agent did. */
export interface AgentFacts {
  readonly agent: string
  readonly calls: Array<CallFacts>
  readonly started: Array<Seen<"AgentStarted">>
  readonly decided: Array<Seen<"Decided">>
  readonly failed: Array<Seen<"DecisionFailed">>
  readonly verified: Array<Seen<"Verified">>
  readonly stopping: Array<Seen<"Stopping">>
  readonly ended: Array<Seen<"AgentEnded">>
}

/** The events of a run, by what they are about. */
export class Facts {
  readonly events: ReadonlyArray<Recorded>
  readonly agents = new Map<string, AgentFacts>()
  readonly calls = new Map<string, CallFacts>()
  readonly runStarted: Array<Seen<"RunStarted">> = []
  readonly runSuspended: Array<Seen<"RunSuspended">> = []
  readonly runResumed: Array<Seen<"RunResumed">> = []
  readonly runEnded: Array<Seen<"RunEnded">> = []
  /** The account above each account; `undefined` for the root. */
  readonly #above = new Map<string, string | undefined>()
  readonly #closed = new Set<string>()

  constructor(events: ReadonlyArray<Recorded>) {
    this.events = events
    for (const [at, { event, seq }] of events.entries()) this.#take(event, { at, seq })
  }

  /** False for a budget around a plain Effect, which has accounts and no run of an agent around them. */
  get hasFrame(): boolean {
    return this.runStarted.length > 0 || this.runEnded.length > 0
  }

  /** How far the run has come. A budget around a plain Effect is over once its root is closed. */
  get state(): RunState {
    if (this.runEnded.length > 0) return "ended"
    if (!this.hasFrame && this.#rootIsClosed) return "ended"
    const [suspended, resumed] = [this.runSuspended.at(-1)?.at ?? -1, this.runResumed.at(-1)?.at ?? -1]
    return suspended > resumed ? "suspended" : "open"
  }

  get #rootIsClosed(): boolean {
    return [...this.#above].some(([account, above]) => above === undefined && this.#closed.has(account))
  }

  /** Whether an account is the first of the tree. */
  isRoot(account: string): boolean {
    return this.#above.has(account) && this.#above.get(account) === undefined
  }

  /** The nearest agent above one; where its account is not on record, its id tells. */
  parentOf(agent: string): string | undefined {
    const seen = new Set<string>()
    for (let above = this.#aboveOf(agent); above !== undefined && !seen.has(above); above = this.#aboveOf(above)) {
      if ((this.agents.get(above)?.started.length ?? 0) > 0) return above
      seen.add(above)
    }
    return undefined
  }

  #aboveOf(account: string): string | undefined {
    if (this.#above.has(account)) return this.#above.get(account)
    const slash = account.lastIndexOf("/")
    return slash < 0 ? undefined : account.slice(0, slash)
  }

  /** Whether somebody took the run up between two places. */
  resumedBetween(from: number, to: number): boolean {
    return this.runResumed.some(({ at }) => at > from && at < to)
  }

  #agent(agent: string): AgentFacts {
    const known = this.agents.get(agent)
    if (known !== undefined) return known
    const made = { agent, calls: [], started: [], decided: [], failed: [], verified: [], stopping: [], ended: [] }
    this.agents.set(agent, made)
    return made
  }

  #call({ agent, call }: { readonly agent: string; readonly call: string }): CallFacts {
    const id = callId(agent, call)
    const known = this.calls.get(id)
    if (known !== undefined) return known
    const made = { agent, call, decided: [], started: [], failed: [], ended: [], asked: [], answered: [] }
    this.calls.set(id, made)
    this.#agent(agent).calls.push(made)
    return made
  }

  #take(event: Event, place: { readonly at: number; readonly seq: number }): void {
    switch (event._tag) {
      case "RunStarted":
        return void this.runStarted.push({ ...place, event })
      case "RunSuspended":
        return void this.runSuspended.push({ ...place, event })
      case "RunResumed":
        return void this.runResumed.push({ ...place, event })
      case "RunEnded":
        return void this.runEnded.push({ ...place, event })
      case "Opened":
        return void this.#above.set(event.account, undefined)
      case "Carved":
        return void this.#above.set(event.account, event.parent)
      case "Closed":
        return void this.#closed.add(event.account)
      default:
        return this.#takeOfAgent(event, place)
    }
  }

  #takeOfAgent(event: Event, place: { readonly at: number; readonly seq: number }): void {
    switch (event._tag) {
      case "AgentStarted":
        return void this.#agent(event.agent).started.push({ ...place, event })
      case "Decided":
        this.#agent(event.agent).decided.push({ ...place, event })
        for (const { call, tool } of event.calls ?? []) {
          this.#call({ agent: event.agent, call }).decided.push({ ...place, event, tool })
        }
        return
      case "DecisionFailed":
        return void this.#agent(event.agent).failed.push({ ...place, event })
      case "CallStarted":
        return void this.#call(event).started.push({ ...place, event })
      case "CallFailed":
        return void this.#call(event).failed.push({ ...place, event })
      case "CallEnded":
        return void this.#call(event).ended.push({ ...place, event })
      case "ApprovalRequested":
        return void this.#call(event).asked.push({ ...place, event })
      case "ApprovalDecided":
        return void this.#call(event).answered.push({ ...place, event })
      case "Verified":
        return void this.#agent(event.agent).verified.push({ ...place, event })
      case "Stopping":
        return void this.#agent(event.agent).stopping.push({ ...place, event })
      case "AgentEnded":
        return void this.#agent(event.agent).ended.push({ ...place, event })
      default:
        return
    }
  }
}

/** Names a call in the whole run: ids of calls are unique within their agent. */
export const callId = (agent: string, call: string): string => `${agent} ${call}`

/** Everything after the first: what should have happened once. */
export const repeats = <A>(all: ReadonlyArray<A>): ReadonlyArray<A> => all.slice(1)
