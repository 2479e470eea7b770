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
import { type Count, CurrentModel, inChain, type Model, type Request } from "../model/Model.ts"
import type { Price } from "../model/Price.ts"
import type { AgentState, Turn } from "../state/State.ts"
import { messageOfCause } from "../tool/ToolSet.ts"
import type { AnswerFormat } from "./Answer.ts"
import { chained, frozen, laterBill } from "./Chain.ts"
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
  /** How many models of the policy have failed for good in this run: the place, from 0, of the one to ask. */
  readonly failedModels?: number | undefined
}

/** A proposal, and what it cost to come by. */
export interface Decision {
  readonly proposal: Proposal
  readonly used: Grant
  readonly certainty: "exact" | "assumed"
  readonly model?: string | undefined
  /** The service tier that served it. */
  readonly tier?: string | undefined
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
  /** The model that failed. */
  readonly model?: string | undefined
  /** Whom to ask once it has failed for good. */
  readonly fallback?: Fallback | undefined
  /** True where there was not enough time left to ask at all. */
  readonly late?: boolean | undefined
}

/**
 * The next model of a chain: its name and its place, from 0; absent where none is left. `unpriced` are those passed over,
 * since nobody knows their price and money is capped.
 */
export interface Fallback {
  readonly to: { readonly model: string; readonly at: number } | undefined
  readonly unpriced: ReadonlyArray<string>
}

/**
 * An attempt to decide.
 *
 * `turn` is asked before it is held, with what it will hold and the time that is left: 0 when it may be made now, else the
 * milliseconds to wait before asking again; it fails where that is more than there is. `told` says what else is to be
 * recorded of a call that is booked at its hold.
 *
 * @category policies
 * @since 0.1.0
 */
export interface Asking<out R = never> extends Attempt<Decision, DecisionFailure, R> {
  readonly turn?: ((planned: Grant, withinMillis: number) => Effect.Effect<number, DecisionFailure>) | undefined
  readonly told?: (() => Meter.Told | undefined) | undefined
}

/** A response that a provider keeps. */
export interface Stored {
  readonly model: string
  readonly response: string
}

/** How an attempt to decide is paid. */
export interface Terms {
  readonly reserve: string
  readonly attempt: number
  readonly moneyIsCapped: boolean
  readonly freeze?: Freeze | undefined
}

/**
 * The price of a model in this run, given its name and what it costs now; without it that. `of` is the model that is
 * asked: another one may bear the same name and cost something else.
 */
export type Freeze = (name: string, price: Price, of: object) => Price

/**
 * A policy of services `R`.
 *
 * @category policies
 * @since 0.1.0
 */
export interface Policy<out R = never> {
  readonly name: string
  /** One attempt to decide, bounded beforehand. */
  readonly attempt: (view: View, terms: Terms) => Effect.Effect<Asking<R>, Unpriced, R>
  /** What the wrap-up would need if it were made after this view, so that exploring can stop in time. */
  readonly wrapUpNeeds: (view: View) => Effect.Effect<Grant, never, R>
  /** What a call came to that was booked at its hold, where its provider can tell by now. */
  readonly laterBill?: ((stored: Stored, freeze?: Freeze) => Effect.Effect<Grant | undefined, never, R>) | undefined
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
  /**
   * Is told the text of a reply as it comes, from models that stream. What it hears is no answer yet: that is judged when
   * it is whole. A listener that throws is not told any more of that reply.
   */
  readonly onText?: ((delta: string, at: { readonly agent: string; readonly step: number }) => void) | undefined
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
  laterBill: (stored, freeze) => Effect.flatMap(CurrentModel, (current) => laterBill(current, stored, freeze)),
})

/**
 * A policy that asks one particular model, whichever is current: a large one for the lead, a small one for the rest.
 *
 * @category policies
 * @since 0.1.0
 */
export const fromModel = (first: Model, options: ModelOptions = {}): Policy => {
  const max = options.maxOutputTokens ?? 4096
  const output = { max, min: options.minOutputTokens ?? Math.min(256, max) }
  return {
    name: "model",
    attempt: (view, terms) => {
      const current = frozen(inChain(first, view.failedModels ?? 0), terms.freeze)
      asking.set(view, current)
      if (!Meter.isPriced(current, terms.moneyIsCapped)) return Effect.fail(new Unpriced({ model: current.name }))
      const asked = { ...terms, output, request: requestFor(view), onText: listenerFor(view, options.onText) }
      return current.count === undefined ? Effect.succeed(ask(current, view, asked)) : askCounted(current, view, asked)
    },
    wrapUpNeeds: (view) => {
      const current = asking.get(view) ?? inChain(first, view.failedModels ?? 0)
      const request = requestFor({ ...view, purpose: "wrap_up" })
      return Effect.succeed(Meter.leastFor(current, request, output, boundAfter(current, view, request)))
    },
    laterBill: (stored, freeze) => laterBill(first, stored, freeze),
  }
}

/** The model that a view is shown to, at the price that it has in the run. */
const asking = new WeakMap<View, Model>()

/** A listener to the reply to one view; what it throws is its own. */
const listenerFor = (view: View, onText: ModelOptions["onText"]): Asked["onText"] => {
  if (onText === undefined) return undefined
  let listens = true
  return (delta) => {
    if (!listens) return
    try {
      onText(delta, { agent: view.agent, step: view.step })
    } catch {
      listens = false
    }
  }
}

interface Asked extends Terms {
  readonly output: Meter.OutputLimits
  readonly onText: ((delta: string) => void) | undefined
  readonly request: Request
  readonly count?: Count
}

const ask = (current: Model, view: View, of: Asked): Asking => {
  const { request } = of
  const asking = Meter.attempt(current, request, {
    ...of,
    as: ({ reply, used, certainty, model, tier }): Decision => ({
      proposal: propose(reply, view),
      used,
      certainty,
      model,
      tier,
      promptHash: request.hash,
    }),
  })
  if (current.fallback === undefined && current.rate === undefined) return asking
  return chained(current, asking, { at: view.failedModels ?? 0, moneyIsCapped: of.moneyIsCapped })
}

/** The exact count takes a request of its own: it is made before the hold, in the time that there is, and costs nothing. */
const askCounted = (current: Model, view: View, of: Asked): Effect.Effect<Asking> =>
  Effect.map(Meter.count(current, of.request, view.leftMillis), (count) => {
    counts.set(view, count.tokens)
    return ask(current, view, { ...of, count })
  })

/** What the coming decision of a view was counted at. */
const counts = new WeakMap<View, number>()

/**
 * What a wrap-up after a view comes to, where the decision of that view was counted: as much, and what it says last. It
 * needs no count of its own, and none where the estimate is lower.
 */
const boundAfter = (current: Model, view: View, request: Request): number | undefined => {
  const counted = counts.get(view)
  if (counted === undefined || request.parts === undefined) return undefined
  const added = current.countInput({ messages: [request.parts.last], tools: [], answer: request.answer }).tokens
  return Math.min(counted + added, current.countInput(request).tokens)
}
