/**
 * What all agents of one run share: the ledger, the log, the effects it has had, and who is running.
 */
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Fiber from "effect/Fiber"
import type { Ledger } from "../budget/Budget.ts"
import * as Budget from "../budget/Budget.ts"
import * as Content from "../event/Content.ts"
import type { Event, EventOf, Recorded } from "../event/Event.ts"
import type { StopReason } from "../event/StopReason.ts"
import type { Price } from "../model/Price.ts"
import type { Ending } from "../loop/Loop.ts"
import type { Observed } from "../journal/Observed.ts"
import type { Watch } from "../telemetry/Watch.ts"
import { EffectLedger } from "../tool/EffectLedger.ts"
import type { AgentEnd, Question, Report } from "./Outcome.ts"

/** What an earlier process left of a run. */
export interface Earlier {
  readonly epoch: number
  readonly events: ReadonlyArray<Recorded>
}

/** Why an agent that stands still is ended. */
interface Cause {
  readonly reason: StopReason
  readonly detail: string
}

const cancelled: Cause = { reason: "cancelled", detail: "interrupted" }

/** Nobody can go on with an agent that is part of something else that goes on: it ends where it would wait. */
export const needsPerson: Cause = {
  reason: "blocked",
  detail: "a person is needed, and nobody could go on with this agent afterwards",
}

/** The effects of a ledger: agents that share one share them, whoever ran them. */
const effectsOf = (ledger: Ledger, events: ReadonlyArray<Recorded>): EffectLedger => {
  const known = effects.get(ledger) ?? EffectLedger.of(events)
  effects.set(ledger, known)
  return known
}

const effects = new WeakMap<Ledger, EffectLedger>()

/** A run in progress. */
export class Run {
  readonly log: Observed
  readonly ledger: Ledger
  readonly effects: EffectLedger
  /** Writes what is recorded on spans; absent where nobody wants to know. */
  readonly watch: Watch | undefined
  /** How often the run was resumed. */
  readonly epoch: number
  readonly #fibers = new Map<string, Fiber.Fiber<unknown>>()
  readonly #ends = new Map<string, AgentEnd>()
  readonly #earlier = new Map<string, Array<Recorded>>()
  readonly #suspended = new Map<string, (cause: Cause) => Ending<unknown>>()
  readonly #questions = new Map<string, EventOf<"ApprovalRequested">>()
  readonly #untrusted = new Set<string>()
  /** What is on record of prices, by the name of the model. */
  readonly #prices = new Map<string, Array<unknown>>()
  readonly #earlierPrices = new Map<string, Price>()
  readonly #frozen = new WeakMap<object, Map<string, Price>>()
  #waiting: Array<() => void> = []

  constructor(options: {
    readonly log: Observed
    readonly ledger: Ledger
    readonly watch: Watch | undefined
    readonly earlier?: Earlier
  }) {
    this.log = options.log
    this.ledger = options.ledger
    this.watch = options.watch
    this.epoch = options.earlier?.epoch ?? 0
    const events = options.earlier?.events ?? []
    this.effects = effectsOf(options.ledger, events)
    for (const recorded of events) this.takeUp(recorded)
    this.log.listen((event) => this.#note(event))
  }

  get id(): string {
    return this.log.run
  }

  /**
   * What a model costs in this run: what it cost when it was first asked, whatever its table says by now. It is on record
   * before anything is held at it. Two models that bear one name each have the price that they came with.
   */
  freeze(
    agent: string,
    { name, of, price }: { readonly name: string; readonly price: Price; readonly of: object },
  ): Price {
    const known = this.#frozen.get(of) ?? new Map<string, Price>()
    this.#frozen.set(of, known)
    const kept = known.get(name) ?? this.#priceOf(agent, name, price)
    known.set(name, kept)
    return kept
  }

  /** The price on record that is the same, or that an earlier process began with; else it is put there. */
  #priceOf(agent: string, model: string, price: Price): Price {
    const written = JSON.parse(JSON.stringify(price)) as Record<string, unknown>
    const recorded = this.#prices.get(model) ?? []
    const same = recorded.some((one) => Equal.equals(one, written))
    if (same) return price
    const earlier = this.#earlierPrices.get(model)
    if (earlier !== undefined) return earlier
    this.log.record({ _tag: "Priced", agent, model, price: written })
    return price
  }

  /** Takes in what stands in the journal of an earlier process, or was decided before this one goes on. */
  takeUp(recorded: Recorded): void {
    const { event } = recorded
    this.#note(event)
    if (event._tag === "Priced" && !this.#earlierPrices.has(event.model)) {
      this.#earlierPrices.set(event.model, event.price as unknown as Price)
    }
    if ((event._tag === "AgentStarted" || event._tag === "CallEnded") && event.untrusted === true) {
      this.#untrusted.add(event.agent)
    }
    if (event._tag === "AgentEnded") {
      const { agent, reason, result, steps } = event
      this.#ends.set(agent, { agent, name: this.ledger.account(agent).name, reason, result, steps, detail: "" })
    }
    const agent = "agent" in event ? event.agent : event._tag === "Held" ? event.account : undefined
    if (agent === undefined) return
    const known = this.#earlier.get(agent)
    if (known === undefined) this.#earlier.set(agent, [recorded])
    else known.push(recorded)
  }

  #note(event: Event): void {
    if (event._tag === "Priced") this.#prices.set(event.model, [...(this.#prices.get(event.model) ?? []), event.price])
    if (event._tag === "ApprovalDecided") {
      this.#questions.delete(event.approval)
      this.effects.answered(event)
    }
    // A call that has ended asks nothing any more.
    if (event._tag === "CallEnded") {
      this.effects.ended(event)
      for (const one of this.#questions.values()) {
        if (one.agent === event.agent && one.call === event.call) this.#questions.delete(one.approval)
      }
    }
    if (event._tag === "ApprovalRequested") this.#questions.set(event.approval, event)
  }

  /** Questions that nobody has answered yet: those of the given ids, or all. */
  questions(ids?: ReadonlyArray<string>): ReadonlyArray<Question> {
    return [...this.#questions.values()]
      .filter(({ approval }) => ids === undefined || ids.includes(approval))
      .map(({ approval, kind, digest, agent, tool, params, reason }) => {
        return { approval, kind, digest, agent, tool, params: Content.toJson(params), reason }
      })
  }

  /** The question as it was asked; `undefined` for one that was never asked, or needs no answer any more. */
  question(approval: string): EventOf<"ApprovalRequested"> | undefined {
    return this.#questions.get(approval)
  }

  /** What an earlier process recorded of an agent. */
  earlierOf(account: string): ReadonlyArray<Recorded> {
    return this.#earlier.get(account) ?? []
  }

  started(account: string, fiber: Fiber.Fiber<unknown>): void {
    this.#fibers.set(account, fiber)
  }

  ended(account: string, end: AgentEnd, untrusted: boolean): void {
    if (untrusted) this.#untrusted.add(account)
    this.#fibers.delete(account)
    this.#suspended.delete(account)
    this.#ends.set(account, end)
  }

  /** An agent stands still; `end` ends it where its parent ends for another reason. */
  suspended(account: string, end: (cause: Cause) => Ending<unknown>): void {
    this.#fibers.delete(account)
    this.#suspended.set(account, end)
  }

  isSuspended(account: string): boolean {
    return this.#suspended.has(account)
  }

  /** Ends an agent that stands still. */
  endSuspended(account: string, cause: Cause = cancelled): Ending<unknown> | undefined {
    return this.#suspended.get(account)?.(cause)
  }

  /** Ends the agents below an account that stand still. */
  endSuspendedBelow(account: string): void {
    for (const child of this.ledger.childrenOf(account)) this.endSuspended(child.id)
  }

  /** Whether an agent that has ended saw something from outside. */
  isUntrusted(account: string): boolean {
    return this.#untrusted.has(account)
  }

  /** How an agent ended; `undefined` for one that never came to start. */
  endOf(account: string): Pick<AgentEnd, "reason" | "result"> | undefined {
    const end = this.#ends.get(account)
    return end === undefined ? undefined : { reason: end.reason, result: end.result }
  }

  /** Ends new work in an account and below, then interrupts what runs there. Freeze first: no retry may slip between. */
  cancel(account: string): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.ledger.freeze(account, "cancelled")
      const fiber = this.#fibers.get(account)
      if (fiber !== undefined) return Fiber.interrupt(fiber)
      // The root is ended by whoever holds its handle, who has to say how.
      if (account !== this.ledger.root.id) this.endSuspended(account)
      return Effect.void
    })
  }

  /** Returns once an account is not paused. */
  whenOpen(account: string): Effect.Effect<void> {
    return Effect.suspend(() =>
      this.ledger.account(account).state === "Paused"
        ? Effect.andThen(
            Effect.callback<void>((resume) => {
              this.#waiting.push(() => resume(Effect.void))
            }),
            this.whenOpen(account),
          )
        : Effect.void,
    )
  }

  /** Lets agents that wait for people stand still by themselves, once what is above them goes on. */
  standStill(): void {
    for (const account of this.#suspended.keys()) this.ledger.pause(account, "waits for a person")
  }

  /** Lets those look again who wait for a paused account. */
  wake(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const resume of waiting) resume()
  }

  get report(): Report {
    const accounts = Budget.statement(this.ledger)
    const ends = accounts.flatMap((row) => this.#ends.get(row.account) ?? [])
    const overran = accounts.some((row) => row.overran)
    const unpricedCalls = accounts.reduce((sum, row) => sum + row.unpricedCalls, 0)
    return { run: this.id, accounts, ends, overran, unpricedCalls, journal: this.log.location }
  }
}
