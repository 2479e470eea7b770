/**
 * How a run ended, as a value: with an accepted answer, or stopped for a reason, with everything that was learned.
 */
import type { Row } from "../budget/Budget.ts"
import type { ResultKind, StopReason } from "../event/StopReason.ts"
import type { Rule } from "../event/Event.ts"

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
  readonly journal: string | undefined
}

/**
 * The answer was accepted. `rules` are those it passed; empty without a verifier.
 *
 * @category outcomes
 * @since 0.1.0
 */
export interface Completed<out A> {
  readonly _tag: "Completed"
  readonly answer: A
  readonly rules: ReadonlyArray<Rule>
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
 * How a run ended.
 *
 * @category outcomes
 * @since 0.1.0
 */
export type Outcome<A> = Completed<A> | Stopped<A>
