/**
 * One agent run as the loop sees it: what it may spend, whom it asks, what it may call, and what has happened so far.
 */
import type * as Effect from "effect/Effect"
import type * as Tool from "effect/ai/Tool"
import type { Account, Grant, PerReserve, Purse } from "../budget/Budget.ts"
import { availableIn } from "../budget/Account.ts"
import * as Content from "../event/Content.ts"
import type { Call, Event, EventOf, Purpose, Recorded } from "../event/Event.ts"
import type { AnswerFormat } from "../policy/Answer.ts"
import type { Freeze, Policy, Stored, View } from "../policy/Policy.ts"
import { type AgentState, Fold } from "../state/State.ts"
import { requestFor } from "../policy/Conversation.ts"
import type { EffectLedger } from "../tool/EffectLedger.ts"
import type { Permissions } from "../tool/Permission.ts"
import type { Concurrency, Delegate, Setting } from "../tool/Setting.ts"
import type { ToolSet } from "../tool/ToolSet.ts"
import type { Verifier } from "../verify/Verifier.ts"
import { defaultNoProgress, Guards, type NoProgress } from "./Guard.ts"

/**
 * How the loop behaves.
 *
 * **Units**: `modelRetries` attempts after the first (2); `backoffMillis` before the first retry, doubling (500);
 * `invalidDecisions` in a row that end a run (5).
 *
 * @category settings
 * @since 0.1.0
 */
export interface Settings {
  readonly invalidDecisions: number
  readonly noProgress: NoProgress | undefined
  /** The same proposal against unchanged state is refused, and ends the run, at this time; off unless given. */
  readonly repeatedAction: number | undefined
  readonly modelRetries: number
  readonly backoffMillis: number
  /**
   * Whether a child that lacks something for its next decision gives back what it has free and waits for more, instead of
   * stopping; off unless asked for.
   */
  readonly elastic: boolean
  /** Whether something was kept for a last answer. */
  readonly wrapUp: boolean
  readonly concurrency: Concurrency
}

export const defaultSettings: Omit<Settings, "wrapUp"> = {
  invalidDecisions: 5,
  noProgress: defaultNoProgress,
  repeatedAction: undefined,
  modelRetries: 2,
  backoffMillis: 500,
  elastic: false,
  concurrency: { calls: 16, effects: "ordered" },
}

/** What a run of the loop is started with. */
export interface Options<A, R> {
  readonly run: string
  /** How often the run was resumed. */
  readonly epoch: number
  readonly agent: string
  readonly name: string
  readonly instructions: string
  readonly task: string
  readonly purse: Purse
  readonly policy: Policy<R>
  readonly answer: AnswerFormat<A>
  readonly verifier: Verifier<A, R> | undefined
  readonly tools: ToolSet
  /** What the policy is shown: the tools, and the children as tools. */
  readonly offered: ReadonlyArray<Tool.Any>
  readonly delegate: Delegate
  readonly settings: Settings
  readonly effects: EffectLedger
  readonly permissions: Permissions
  readonly record: (event: Event) => number
  /** The price of a model in this run. */
  readonly freeze: Freeze
  readonly flush: Effect.Effect<void>
  /** Returns once the account is not paused. */
  readonly whenOpen: Effect.Effect<void>
}

/** What each reserve has left at one moment, for whoever asks. */
class Left implements PerReserve<Grant> {
  readonly #account: Account

  constructor(account: Account) {
    this.#account = account
  }

  get explore(): Grant {
    return availableIn(this.#account, "explore")
  }

  get retry(): Grant {
    return availableIn(this.#account, "retry")
  }

  get verify(): Grant {
    return availableIn(this.#account, "verify")
  }

  get output(): Grant {
    return availableIn(this.#account, "output")
  }
}

/** What is left of a run that did not complete. */
export interface Remains<A> {
  readonly answer: A | undefined
  readonly text: string | undefined
}

/** A run in progress. Every event goes to the journal and into the state, in one step. */
export class Machine<A, R> {
  readonly options: Options<A, R>
  readonly agent: string
  readonly name: string
  readonly task: string
  readonly purse: Purse
  readonly policy: Policy<R>
  readonly answer: AnswerFormat<A>
  readonly verifier: Verifier<A, R> | undefined
  readonly settings: Settings
  readonly epoch: number
  readonly flush: Effect.Effect<void>
  readonly whenOpen: Effect.Effect<void>
  readonly guards: Guards
  /** The number of the current step, from 1. */
  step = 0
  /** How many models of the policy have failed for good. */
  failedModels = 0
  /** Calls that were booked at their hold, and whose provider keeps the response. */
  readonly stored: Array<Stored & { readonly hold: string }> = []
  /** The best answer so far that was not accepted: kept whatever happens next. */
  remains: Remains<A> = { answer: undefined, text: undefined }
  readonly #fold: Fold

  constructor(options: Options<A, R>) {
    this.options = options
    this.agent = options.agent
    this.name = options.name
    this.task = options.task
    this.purse = options.purse
    this.policy = options.policy
    this.answer = options.answer
    this.verifier = options.verifier
    this.settings = options.settings
    this.epoch = options.epoch
    this.flush = options.flush
    this.whenOpen = options.whenOpen
    const { noProgress, repeatedAction } = options.settings
    this.guards = new Guards({ tools: options.tools, noProgress, repeatedAction })
    this.#fold = new Fold(options.agent)
  }

  readonly record = (event: Event): void => {
    this.#fold.apply(event, this.options.record(event))
  }

  /** Takes up what an earlier process recorded of this agent. */
  resume(events: ReadonlyArray<Recorded>): void {
    for (const { event, atMillis } of events) this.#fold.apply(event, atMillis)
    this.step = events.reduce((most, { event }) => Math.max(most, stepOf(event, this.agent)), 0)
    for (const { event } of events) {
      if (event._tag === "Reported") this.noteReport(event)
      if (event._tag === "FellBack") this.noteFallback(event)
    }
    this.guards.resume(this.state.session.turns)
  }

  noteReport({ bookedAt: hold, model, response }: EventOf<"Reported">): void {
    if (response !== undefined) this.stored.push({ hold, model, response })
  }

  noteFallback({ at }: EventOf<"FellBack">): void {
    this.failedModels = at ?? this.failedModels
  }

  get state(): AgentState {
    return this.#fold.state
  }

  /** Calls of the last decision that have no result yet. */
  get openCalls(): ReadonlyArray<Call> {
    const open = this.state.session.turns.at(-1)?.observations.filter((one) => one.outcome === "pending") ?? []
    return open.map(({ call, providerId, tool, params }) => ({
      call,
      providerId,
      tool,
      params: Content.fromJson(params ?? null),
    }))
  }

  get isPaused(): boolean {
    return this.purse.ledger.account(this.purse.account).state === "Paused"
  }

  /** Stands for the state as it is now. */
  get digest(): string {
    return this.#fold.digest
  }

  /** What the policy sees now. */
  view(purpose: Purpose): View {
    const account = this.purse.ledger.account(this.purse.account)
    return {
      agent: this.name,
      instructions: this.options.instructions,
      task: this.task,
      state: this.state,
      turns: this.state.session.turns,
      step: this.step,
      purpose,
      tools: purpose === "wrap_up" ? [] : this.options.offered,
      answer: this.answer as AnswerFormat<unknown>,
      left: new Left(account),
      leftMillis: this.purse.ledger.leftMillis(this.purse.account, purpose === "wrap_up" ? "output" : "explore"),
      failedModels: this.failedModels,
    }
  }

  /** What the executor needs for the calls of this step. */
  get setting(): Setting {
    const { run, epoch, tools, delegate, effects, permissions } = this.options
    return {
      run,
      epoch,
      agent: this.agent,
      step: this.step,
      purse: this.purse,
      tools,
      delegate,
      effects,
      permissions,
      record: this.record,
      flush: this.flush,
      concurrency: this.settings.concurrency,
      state: this.state,
      whenOpen: this.whenOpen,
      messages: () => requestFor(this.view("explore")).messages,
    }
  }
}

/** The step an event belongs to; a decision that was under way when a process ended left only its hold. */
const stepOf = (event: Event, agent: string): number => {
  if ("step" in event) return event.agent === agent ? event.step : 0
  if (event._tag !== "Held" || event.account !== agent) return 0
  return Number(/^step-(\d+)\//.exec(event.hold)?.[1] ?? 0)
}
