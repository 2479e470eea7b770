/**
 * An agent that checks the answers of another. Its budget is carved from the verify reserve of the one it judges.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Budget from "../budget/Budget.ts"
import * as Verifier from "../verify/Verifier.ts"
import { CurrentRun } from "./CurrentRun.ts"
import type { Agent } from "./Definition.ts"
import { drive } from "./Drive.ts"
import { needsPerson, type Run } from "./Run.ts"
import type { Restore } from "../tool/Setting.ts"

/**
 * What a judge answers.
 *
 * @category judging
 * @since 0.1.0
 */
export const Judgement = Schema.Struct({ accepted: Schema.Boolean, reason: Schema.String })

/** @since 0.1.0 */
export type Judgement = (typeof Judgement)["Type"]

/**
 * A verifier that asks an agent. The judge gets all that the verify reserve has left, and the rule bears its name. A judge
 * that comes to no judgement has accepted nothing.
 *
 * `needs` is what one judgement takes at least (two steps, unless given); it is kept for it in the verify reserve. `ask`
 * makes the judge's task of the candidate; by default the task and the answer.
 *
 * **Example** (A judge that is a function)
 *
 * ```ts
 * import { Agent, Policy, Proposal } from "bursar"
 * import * as Effect from "effect/Effect"
 *
 * const critic = Agent.make("critic", {
 *   answer: Agent.Judgement,
 *   policy: Policy.make((view) => Proposal.finish({ accepted: view.task.includes("42"), reason: "not the number" })),
 * })
 * const thinker = Agent.make("thinker", {
 *   policy: Policy.make((view) => Proposal.finish(view.turns.length === 0 ? "41" : "42")),
 *   verify: Agent.judge(critic),
 * })
 * const outcome = await Effect.runPromise(Agent.run(thinker, "the answer", { budget: { steps: 30 } }))
 * outcome._tag === "Completed" && outcome.answer // => "42"
 * ```
 *
 * @category judging
 * @since 0.1.0
 */
export const judge = <A, R>(
  critic: Agent<Judgement, R>,
  options: {
    readonly needs?: Budget.Grant
    readonly ask?: (candidate: Verifier.Candidate<A>) => string
  } = {},
): Verifier.Verifier<A, R> =>
  Verifier.make<A, never, R>(critic.name, (candidate) => judgement(critic, (options.ask ?? question)(candidate)), {
    needs: options.needs ?? { steps: 2 },
  })

const question = ({ task, answer }: Verifier.Candidate<unknown>): string =>
  `Task:\n${task}\n\nAnswer:\n${typeof answer === "string" ? answer : JSON.stringify(answer)}`

const judgement = <R>(
  critic: Agent<Judgement, R>,
  task: string,
): Effect.Effect<Verifier.Found, Budget.BudgetError, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const at = yield* CurrentRun
      if (at === undefined) return yield* Effect.die(new Error("a judge works inside the run of an agent"))
      const { run, account: parent } = at
      const [account, carved] = yield* carveWhenOpen(critic, { run, parent, restore })
      if (Result.isFailure(carved)) {
        return yield* Budget.errorOf({ ledger: run.ledger, account: parent }, "carve", carved.failure)
      }
      const ending = yield* drive(critic, task, { run, account, restore })
      if (ending._tag === "Suspended") run.endSuspended(account, needsPerson)
      const verdict = ending._tag === "Ended" && ending.reason === "completed" ? ending.answer : undefined
      const why = ending._tag === "Ended" ? ending.reason : "it waits for a person"
      const detail = verdict === undefined ? `no judgement: ${why}` : verdict.reason
      return {
        rules: [{ name: critic.name, passed: verdict?.accepted === true, detail }],
        evidence: [{ judge: critic.name, account }],
      }
    }),
  )

/** Nothing is carved while the account stands still: that is waited for. */
const carveWhenOpen = <R>(
  critic: Agent<Judgement, R>,
  at: { readonly run: Run; readonly parent: string; readonly restore: Restore },
): Effect.Effect<readonly [string, Result.Result<Budget.Account, Budget.Refusal>]> =>
  Effect.suspend(() => {
    const { run, parent, restore } = at
    const { ledger } = run
    if (ledger.account(parent).state === "Paused") {
      return Effect.andThen(restore(run.whenOpen(parent)), carveWhenOpen(critic, at))
    }
    const account = ledger.freshId(parent, critic.name)
    const carved = ledger.carve(parent, {
      id: account,
      name: critic.name,
      reserve: "verify",
      reserves: critic.reserves,
      window: critic.window,
      ask: { _tag: "AtMost", grant: ledger.reachable(parent, "verify"), floor: {} },
    })
    return Effect.succeed([account, carved] as const)
  })
