/**
 * How a run ended, as a value: with an accepted answer; stopped for a reason, with everything that was learned; or
 * standing still, with what it waits for.
 */
import * as Schema from "effect/Schema"
import type { Row } from "../budget/Budget.ts"
import type { Evidence, Rule, WaitKind } from "../event/Event.ts"
import { type ResultKind, StopReason } from "../event/StopReason.ts"

/**
 * How one agent of the tree ended.
 *
 * @category outcomes
 * @since 0.1.0
 */
export interface AgentEnd {
  readonly agent: string
  readonly name: string
  readonly reason: StopReason
  readonly result: ResultKind
  readonly steps: number
  readonly detail: string
}

/**
 * What is known of a run besides its answer: the books of the tree, how each agent ended, and where the journal lies.
 *
 * @category outcomes
 * @since 0.1.0
 */
export interface Report {
  readonly run: string
  /** Accounts, parents before their children; see `Budget.imbalances` for the law they keep. */
  readonly accounts: ReadonlyArray<Row>
  readonly ends: ReadonlyArray<AgentEnd>
  /** True when some bill was above its hold. */
  readonly overran: boolean
  /** How many calls have no known price: what was spent is at least the money in `accounts`, and nobody knows how much. */
  readonly unpricedCalls: number
  readonly journal: string | undefined
}

/**
 * The answer was accepted. `rules` are those it passed, and `evidence` is what they were decided from; both empty without
 * a verifier.
 *
 * @category outcomes
 * @since 0.1.0
 */
export interface Completed<out A> {
  readonly _tag: "Completed"
  readonly answer: A
  readonly rules: ReadonlyArray<Rule>
  readonly evidence: ReadonlyArray<Evidence>
  readonly report: Report
}

/**
 * The run stopped. `partial` is an answer that was not accepted, `text` what was said instead of one; `short` lists every
 * dimension that was short.
 *
 * @category outcomes
 * @since 0.1.0
 */
export interface Stopped<out A> {
  readonly _tag: "Stopped"
  readonly reason: Exclude<StopReason, "completed">
  readonly detail: string
  readonly short: ReadonlyArray<string>
  readonly result: Exclude<ResultKind, "full">
  readonly partial: A | undefined
  readonly text: string | undefined
  readonly report: Report
}

/**
 * A question to a person: to agree to a call, or to say what became of one. An answer to it repeats its `digest`.
 *
 * @category outcomes
 * @since 0.1.0
 */
export interface Question {
  readonly approval: string
  readonly kind: WaitKind
  readonly digest: string
  readonly agent: string
  readonly tool: string
  readonly params: unknown
  readonly reason: string
}

/**
 * The run stands still: its account is paused, nothing is held, and its time does not pass. `Agent.resume` goes on with
 * it, in this process or another.
 *
 * @category outcomes
 * @since 0.1.0
 */
export interface Suspended {
  readonly _tag: "Suspended"
  readonly waitsFor: ReadonlyArray<Question>
  readonly report: Report
}

/**
 * How a run ended.
 *
 * @category outcomes
 * @since 0.1.0
 */
export type Outcome<A> = Completed<A> | Stopped<A> | Suspended

/**
 * The run brought no accepted answer; see `Agent.answer`.
 *
 * @category errors
 * @since 0.1.0
 */
export class NoAnswer extends Schema.TaggedError<NoAnswer>()("NoAnswer", {
  run: Schema.String,
  reason: Schema.Union([StopReason, Schema.Literal("suspended")]),
  detail: Schema.String,
}) {
  override get message(): string {
    return `the run ${this.run} brought no answer: ${this.reason}${this.detail === "" ? "" : ` (${this.detail})`}`
  }
}
