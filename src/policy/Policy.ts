/**
 * A policy looks at the state of its agent and proposes what to do next. It never acts.
 *
 * {@link make} makes one of an ordinary function, {@link model} of a language model; changing one for the other changes
 * nothing else.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Tool from "effect/ai/Tool"
import type { Attempt, Grant, PerReserve } from "../budget/Budget.ts"
import type { Purpose } from "../event/Event.ts"
import * as Meter from "../model/Meter.ts"
import { CurrentModel, type Model } from "../model/Model.ts"
import type { AgentState, Turn } from "../state/State.ts"
import { messageOfCause } from "../tool/ToolSet.ts"
import type { AnswerFormat } from "./Answer.ts"
import { propose, requestFor } from "./Conversation.ts"
import type { Proposal } from "./Proposal.ts"

/**
 * What a policy sees: the task, everything decided and observed so far, and what is left to spend.
 *
 * **Units**: `left` in those of the budget's dimensions (an absent one is uncapped), `leftMillis` until exploring ends.
 *
 * @category policies
 * @since 0.1.0
 */
export interface View {
  readonly agent: string
  readonly instructions: string
  readonly task: string
  /** Everything that has happened to the agent; `turns` are those of its session. */
  readonly state: AgentState
  readonly turns: ReadonlyArray<Turn>
  readonly step: number
  /** `wrap_up` asks for the last answer, with what is known; tools are withdrawn. */
  readonly purpose: Purpose
  readonly tools: ReadonlyArray<Tool.Any>
  readonly answer: AnswerFormat<unknown>
  readonly left: PerReserve<Grant>
  readonly leftMillis: number | undefined
}

/** A proposal, and what it cost to come by. */
export interface Decision {
  readonly proposal: Proposal
  readonly used: Grant
  readonly certainty: "exact" | "assumed"
  readonly model?: string | undefined
  /** Stands for everything that was shown to the model. */
  readonly promptHash?: string | undefined
}

/** Nobody knows the price of the model, and money is capped: it cannot be asked. */
export class Unpriced extends Schema.TaggedError<Unpriced>()("Unpriced", { model: Schema.String }) {
  override get message(): string {
    return `no price is known for the model ${this.model}: give one, or leave money uncapped`
  }
}

/** A decision that did not come about. `message` holds no text of a provider. */
export interface DecisionFailure {
  readonly code: string
  readonly message: string
  readonly retryable: boolean
  readonly retryAfterMillis?: number | undefined
}

/** How an attempt to decide is paid. */
export interface Terms {
  readonly reserve: string
  readonly attempt: number
  readonly moneyIsCapped: boolean
}

/**
 * A policy of services `R`.
 *
 * @category policies
 * @since 0.1.0
 */
export interface Policy<out R = never> {
  readonly name: string
  /** One attempt to decide, bounded beforehand. */
  readonly attempt: (view: View, terms: Terms) => Effect.Effect<Attempt<Decision, DecisionFailure, R>, Unpriced, R>
  /** What the wrap-up would need if it were made after this view, so that exploring can stop in time. */
  readonly wrapUpNeeds: (view: View) => Effect.Effect<Grant, never, R>
}

const oneStep: Grant = { steps: 1, ticks: 1 }

/**
 * A policy that is an ordinary function. It costs one step, and nothing else.
 *
 * A function that fails or dies makes an invalid decision: the run goes on and tells it so in the next view.
 *
 * **Example** (Finishing at once)
 *
 * ```ts
 * import { Policy, Proposal } from "bursar"
 *
 * const echo = Policy.make((view) => Proposal.finish(view.task))
 * echo.name // => "function"
 * ```
 *
 * @category policies
 * @since 0.1.0
 */
export const make = <E = never, R = never>(
  decide: (view: View) => Proposal | Effect.Effect<Proposal, E, R>,
): Policy<R> => ({
  name: "function",
  attempt: (view) =>
    Effect.succeed<Attempt<Decision, DecisionFailure, R>>({
      hold: () => oneStep,
      use: () =>
        guarded(decide, view).pipe(
          Effect.map((proposal): Decision => ({ proposal, used: oneStep, certainty: "exact" })),
        ),
      book: () => ({ _tag: "Settle", actual: oneStep }),
    }),
  wrapUpNeeds: () => Effect.succeed(oneStep),
})

/** A policy of the user's may fail or die: that is a decision the host cannot use, never the end of the loop. */
const guarded = <E, R>(
  decide: (view: View) => Proposal | Effect.Effect<Proposal, E, R>,
  view: View,
): Effect.Effect<Proposal, never, R> =>
  Effect.suspend((): Effect.Effect<Proposal, E, R> => {
    const decided = decide(view)
    return Effect.isEffect(decided) ? decided : Effect.succeed(decided)
  }).pipe(
    Effect.catchCause((cause) =>
      Cause.hasInterrupts(cause)
        ? Effect.failCause(cause as Cause.Cause<never>)
        : Effect.succeed<Proposal>({ _tag: "Invalid", why: `the policy failed: ${messageOfCause(cause)}` }),
    ),
  )

/**
 * How a model is asked.
 *
 * **Units**: tokens of output. `maxOutputTokens` (4,096) is asked of each call and shrunk to what is left, but not below
 * `minOutputTokens` (256, or `maxOutputTokens` if that is less).
 *
 * @category policies
 * @since 0.1.0
 */
export interface ModelOptions {
  readonly maxOutputTokens?: number
  readonly minOutputTokens?: number
}

/**
 * A policy that asks the current language model.
 *
 * @category policies
 * @since 0.1.0
 */
export const model = (options: ModelOptions = {}): Policy<CurrentModel> => ({
  name: "model",
  attempt: (view, terms) => Effect.flatMap(CurrentModel, (current) => fromModel(current, options).attempt(view, terms)),
  wrapUpNeeds: (view) => Effect.flatMap(CurrentModel, (current) => fromModel(current, options).wrapUpNeeds(view)),
})

/**
 * A policy that asks one particular model, whichever is current: a large one for the lead, a small one for the rest.
 *
 * @category policies
 * @since 0.1.0
 */
export const fromModel = (current: Model, options: ModelOptions = {}): Policy => {
  const max = options.maxOutputTokens ?? 4096
  const output = { max, min: options.minOutputTokens ?? Math.min(256, max) }
  return {
    name: "model",
    attempt: (view, terms) =>
      Meter.isPriced(current, terms.moneyIsCapped)
        ? Effect.succeed(ask(current, view, { ...terms, output }))
        : Effect.fail(new Unpriced({ model: current.name })),
    wrapUpNeeds: (view) => Effect.succeed(Meter.leastFor(current, requestFor({ ...view, purpose: "wrap_up" }), output)),
  }
}

const ask = (
  current: Model,
  view: View,
  options: Terms & { readonly output: Meter.OutputLimits },
): Attempt<Decision, DecisionFailure> => {
  const request = requestFor(view)
  return Meter.attempt(current, request, {
    ...options,
    as: ({ reply, used, certainty, model }): Decision => ({
      proposal: propose(reply, view),
      used,
      certainty,
      model,
      promptHash: request.hash,
    }),
  })
}
