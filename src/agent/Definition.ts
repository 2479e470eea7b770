/**
 * What an agent is: a name, instructions, a policy, tools, children, the form of its answer and who checks it. A
 * definition is made once and run many times.
 */
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import type * as Toolkit from "effect/ai/Toolkit"
import { forAgent, type Grant, type Plan, type Shares, type WindowPlan } from "../budget/Budget.ts"
import { defaultSettings, type Settings } from "../loop/Machine.ts"
import type { CurrentModel } from "../model/Model.ts"
import * as Answer from "../policy/Answer.ts"
import * as Policy from "../policy/Policy.ts"
import type { Verifier } from "../verify/Verifier.ts"

/**
 * How the budget of an agent is split: by shares, minimum first, or into amounts.
 *
 * **Units**: shares in whole percent; amounts in those of the dimensions; times in milliseconds at the end of its time.
 *
 * @category agents
 * @since 0.1.0
 */
export type Reserves =
  | {
      readonly shares: Shares
      /** The most that exploring may use of explore, in whole percent for each dimension. */
      readonly exploreAtMost?: Grant
    }
  | {
      readonly output?: Grant
      readonly verify?: Grant
      readonly retry?: Grant
      readonly outputMillis?: number
      readonly verifyMillis?: number
    }

/**
 * An agent whose answer is an `A`, needing services `R`.
 *
 * @category agents
 * @since 0.1.0
 */
export interface Agent<in out A, out R = never> {
  readonly name: string
  readonly instructions: string
  /** What has to hold whatever the task is; they stand before it. */
  readonly constraints: ReadonlyArray<string>
  readonly policy: Policy.Policy<R>
  readonly tools: ReadonlyArray<Tool.Any>
  readonly children: ReadonlyArray<Child<R>>
  /** What the policy is shown: the tools, and the children as tools. */
  readonly offered: ReadonlyArray<Tool.Any>
  readonly answer: Answer.AnswerFormat<A>
  readonly verifier: Verifier<A, R> | undefined
  readonly reserves: Plan
  readonly window: WindowPlan
  readonly settings: Settings
}

/**
 * An agent as a tool of another: what it is called with, and what part of the parent's explore it gets.
 *
 * @category children
 * @since 0.1.0
 */
export interface Child<out R = never> {
  readonly tool: Tool.Any
  // Nothing outside looks into the answer of a child: it travels encoded.
  readonly agent: Agent<never, R>
  /** Millionths of the parent's explore, as it stands when the batch of spawns is admitted; an equal part without it. */
  readonly shareMillionths: number | undefined
  readonly ask: Grant | undefined
  readonly atLeast: Grant
  readonly wallClockMillis: number | undefined
}

// An index signature instead of the empty type would make every handler a requirement.
// oxlint-disable-next-line typescript/no-generated-empty-object-type
type NoTools = Record<never, never>

/** Options of {@link make}. */
export interface Options<A, RP, RV, RC, Tools extends Record<string, Tool.Any>> {
  readonly instructions?: string
  readonly constraints?: ReadonlyArray<string>
  readonly policy?: Policy.Policy<RP>
  readonly toolkit?: Toolkit.Toolkit<Tools>
  readonly children?: ReadonlyArray<Child<RC>>
  readonly answer?: Schema.Codec<A, unknown>
  readonly verify?: Verifier<A, RV>
  readonly reserves?: Reserves
  readonly settings?: Partial<Omit<Settings, "wrapUp">>
}

/**
 * Defines an agent. Without a policy it asks the current model; without a schema its answer is text.
 *
 * **Example** (An agent without a model)
 *
 * ```ts
 * import { Agent, Policy, Proposal } from "bursar"
 * import * as Effect from "effect/Effect"
 *
 * const shout = Agent.make("shout", { policy: Policy.make((view) => Proposal.finish(view.task.toUpperCase())) })
 * const outcome = await Effect.runPromise(Agent.run(shout, "hello", { budget: { steps: 3 } }))
 * outcome._tag // => "Completed"
 * ```
 *
 * @category agents
 * @since 0.1.0
 */
export const make = <
  A = string,
  RP = CurrentModel,
  RV = never,
  RC = never,
  // oxlint-disable-next-line typescript/no-generated-empty-object-type -- no tools, so no handlers are needed
  Tools extends Record<string, Tool.Any> = NoTools,
>(
  name: string,
  options: Options<A, RP, RV, RC, Tools> = {},
): Agent<A, RP | RV | RC | Tool.HandlersFor<Tools>> => {
  type R = RP | RV | RC | Tool.HandlersFor<Tools>
  const { verify, reserves } = options
  const [tools, children] = [Object.values(options.toolkit?.tools ?? {}), options.children ?? []]
  const offered = [...tools, ...children.map((child) => child.tool)]
  checkTools(name, offered)
  const check = verify?.needs
  return {
    name: checkedName(name),
    instructions: options.instructions ?? "",
    constraints: options.constraints ?? [],
    policy: (options.policy ?? Policy.model()) as Policy.Policy<R>,
    tools,
    children,
    offered,
    answer: Answer.make((options.answer ?? Schema.String) as Schema.Codec<A, unknown>),
    verifier: verify,
    reserves: planOf(reserves, check),
    window: windowOf(reserves, verify !== undefined),
    settings: { ...defaultSettings, ...options.settings, wrapUp: keepsOutput(reserves) },
  }
}

const checkedName = (name: string): string => {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) {
    throw new Error(`the agent name ${JSON.stringify(name)} must be 1 to 64 letters, digits, "_" or "-"`)
  }
  return name
}

/** A call names its tool, so a name stands for one tool, child or the end of the run, and no more. */
const checkTools = (agent: string, tools: ReadonlyArray<Tool.Any>): void => {
  const known = new Set([Answer.finishTool])
  for (const { name } of tools) {
    if (known.has(name)) throw new Error(`the agent ${agent} has two tools of the name ${name}: rename one`)
    known.add(name)
  }
}

/** A check that costs nothing needs nothing kept for it: its share joins explore. */
const planOf = (reserves: Reserves | undefined, check: Grant | undefined): Plan => {
  if (reserves === undefined) return forAgent({ check })
  if ("shares" in reserves) {
    const { shares, exploreAtMost } = reserves
    return forAgent({ check, shares, ...(exploreAtMost === undefined ? {} : { exploreAtMost }) })
  }
  const { output, verify, retry } = reserves
  return { _tag: "Explicit", output, verify, retry }
}

const windowOf = (reserves: Reserves | undefined, verifier: boolean): WindowPlan =>
  reserves === undefined || "shares" in reserves
    ? { _tag: "Agent", verifier }
    : {
        _tag: "Agent",
        verifier: false,
        outputMillis: reserves.outputMillis ?? 0,
        verifyMillis: reserves.verifyMillis ?? 0,
      }

/** A wrap-up is made where something was kept for it: always with shares, by the amounts where they are explicit. */
const keepsOutput = (reserves: Reserves | undefined): boolean =>
  reserves === undefined ||
  "shares" in reserves ||
  (reserves.outputMillis ?? 0) > 0 ||
  Object.values(reserves.output ?? {}).some((amount) => amount > 0)

/**
 * How a child is called and what it gets.
 *
 * - `share`: the part of the parent's explore, above 0 and up to 1, as it stands when the batch of spawns is admitted.
 * - `ask`: fixed amounts; a dimension left out gets an equal part.
 * - neither: equal parts for the longest prefix of the batch whose minima fit.
 * - `atLeast`: what it cannot work without; with less it is refused.
 *
 * @category children
 * @since 0.1.0
 */
export interface ChildOptions {
  readonly description?: string
  readonly share?: number
  readonly ask?: Grant
  readonly atLeast?: Grant
  readonly wallClockMillis?: number
}

/** How a parent calls a child: with a task in words. */
const TaskParameters = Schema.Struct({ task: Schema.String })

/**
 * Makes an agent a tool of another. The parent calls it with `{ task }` and gets
 * `{ status, answer?, text?, reason? }` back: a child that hit a limit is a result, not a failure of the parent.
 *
 * @category children
 * @since 0.1.0
 */
export const asTool = <A, R>(agent: Agent<A, R>, options: ChildOptions = {}): Child<R> => {
  const { share } = options
  const shareMillionths = share === undefined ? undefined : Math.round(share * 1_000_000)
  if (shareMillionths !== undefined && !(shareMillionths > 0 && shareMillionths <= 1_000_000)) {
    throw new Error(`the share of ${agent.name} is ${share}: give a number above 0 and up to 1`)
  }
  return {
    tool: Tool.make(agent.name, {
      description: options.description ?? agent.instructions,
      parameters: TaskParameters,
      success: Schema.Unknown,
    }),
    agent: agent as unknown as Agent<never, R>,
    shareMillionths,
    ask: options.ask,
    atLeast: options.atLeast ?? {},
    wallClockMillis: options.wallClockMillis,
  }
}

/** Reads the task out of a call. */
export const decodeTask = Schema.decodeUnknownEffect(TaskParameters, { onExcessProperty: "error", errors: "all" })
