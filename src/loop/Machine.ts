/**
 * One agent run as the loop sees it: what it may spend, whom it asks, what it may call, and what has happened so far.
 */
import type * as Effect from "effect/Effect"
import { type Grant, type PerReserve, type Purse, type Reserve } from "../budget/Budget.ts"
import { availableIn } from "../budget/Account.ts"
import type { Event, Purpose } from "../event/Event.ts"
import type { AnswerFormat } from "../policy/Answer.ts"
import type { Policy, View } from "../policy/Policy.ts"
import { type AgentState, Fold } from "../state/State.ts"
import type { Concurrency, Delegate, Setting } from "../tool/Executor.ts"
import type { ToolSet } from "../tool/ToolSet.ts"
import type { Verifier } from "../verify/Verifier.ts"
import { defaultNoProgress, type NoProgress } from "./Guard.ts"
import type * as Tool from "effect/ai/Tool"

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
  modelRetries: 2,
  backoffMillis: 500,
  elastic: false,
  concurrency: { calls: 16, effects: "ordered" },
}

/** What a run of the loop is started with. */
export interface Options<A, R> {
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
  readonly record: (event: Event) => void
  readonly flush: Effect.Effect<void>
}

const reservesOf = (f: (reserve: Reserve) => Grant): PerReserve<Grant> => ({
  explore: f("explore"),
  retry: f("retry"),
  verify: f("verify"),
  output: f("output"),
})

/** What is left of a run that did not complete. */
export interface Remains<A> {
  readonly answer: A | undefined
  readonly text: string | undefined
}

/** A run in progress. Every event goes to the journal and into the state, in one step. */
export class Machine<A, R> implements Options<A, R> {
  readonly agent: string
  readonly name: string
  readonly instructions: string
  readonly task: string
  readonly purse: Purse
  readonly policy: Policy<R>
  readonly answer: AnswerFormat<A>
  readonly verifier: Verifier<A, R> | undefined
  readonly tools: ToolSet
  readonly offered: ReadonlyArray<Tool.Any>
  readonly delegate: Delegate
  readonly settings: Settings
  readonly flush: Effect.Effect<void>
  /** The number of the current step, from 1. */
  step = 0
  /** The best answer so far that was not accepted: kept whatever happens next. */
  remains: Remains<A> = { answer: undefined, text: undefined }
  readonly #record: (event: Event) => void
  readonly #fold: Fold

  constructor(options: Options<A, R>) {
    this.agent = options.agent
    this.name = options.name
    this.instructions = options.instructions
    this.task = options.task
    this.purse = options.purse
    this.policy = options.policy
    this.answer = options.answer
    this.verifier = options.verifier
    this.tools = options.tools
    this.offered = options.offered
    this.delegate = options.delegate
    this.settings = options.settings
    this.flush = options.flush
    this.#record = options.record
    this.#fold = new Fold(options.agent)
  }

  readonly record = (event: Event): void => {
    this.#record(event)
    this.#fold.apply(event)
  }

  get state(): AgentState {
    return this.#fold.state
  }

  /** What the policy sees now. */
  view(purpose: Purpose): View {
    const account = this.purse.ledger.account(this.purse.account)
    return {
      agent: this.name,
      instructions: this.instructions,
      task: this.task,
      turns: this.state.session.turns,
      step: this.step,
      purpose,
      tools: purpose === "wrap_up" ? [] : this.offered,
      answer: this.answer as AnswerFormat<unknown>,
      left: reservesOf((reserve) => availableIn(account, reserve)),
      leftMillis: this.purse.ledger.leftMillis(this.purse.account, purpose === "wrap_up" ? "output" : "explore"),
    }
  }

  /** What the executor needs for the calls of this step. */
  get setting(): Setting {
    const { agent, step, purse, tools, delegate, record, flush } = this
    return { agent, step, purse, tools, delegate, record, flush, concurrency: this.settings.concurrency }
  }
}
