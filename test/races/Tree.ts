/**
 * The subject: a tree of accounts, spent from as anyone would with `Budget.spend` and `Budget.waitFor`.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import { Budget } from "../../src/index.ts"
import type { Call, Delegation, Plan } from "./Plan.ts"
import type { Till } from "./Play.ts"
import { type Answer, Planned, type Provider } from "./Provider.ts"
import type { Watch } from "./Watch.ts"

export interface Tree {
  readonly till: Till<Budget.Purse, Budget.BudgetError>
  readonly ledger: Budget.Ledger
}

const divided: Budget.Plan = { _tag: "Shares", shares: Budget.defaultShares, verifier: true, answer: {}, check: {} }

const reservesOf = (isDivided: boolean) => (isDivided ? { reserves: divided } : {})

export const tree = (plan: Plan, provider: Provider, watch: Watch): Tree => {
  const opened = Budget.Ledger.openRoot({
    id: "root",
    name: "root",
    grant: plan.cap,
    ...reservesOf(plan.divided),
    record: watch.record,
    nowMillis: () => 0,
  })
  const ledger = Result.getOrThrowWith(opened, (refusal) => new Error(Budget.describe(refusal)))
  watch.ledger = ledger
  const till: Tree["till"] = {
    root: { ledger, account: "root" },
    spend: (purse, id, call) => {
      const answer: Answer = { billed: false }
      return Budget.spend(
        purse,
        { id, reserve: call.reserve },
        {
          hold: () => call.worst,
          use: () => provider.answer(call, answer),
          book: (exit) => book(call, answer, Exit.isSuccess(exit)),
        },
      )
    },
    within: (purse, as, body) =>
      Effect.acquireUseRelease(carve(purse, as), body, ({ account }) =>
        Effect.sync(() =>
          Result.getOrThrowWith(ledger.close(account), (refusal) => new Error(Budget.describe(refusal))),
        ),
      ),
    wait: (purse, { need, least }) => (purse.account === "root" ? Effect.void : Budget.waitFor(purse, { need, least })),
    close: ({ account }) => Effect.sync(() => ledger.close(account)),
    freeze: Effect.sync(() => ledger.freeze("root", "cancelled")),
  }
  return { till, ledger }
}

/** A call that was never billed is given back or, when nobody can tell, assumed like one whose bill is lost. */
const book = (call: Call, answer: Answer, succeeded: boolean): Budget.Booking => {
  if (call.report === "throws") throw new Planned("a booking throws")
  if (call.report === "nonsense") return { _tag: "Settle", actual: { money: Number.NaN } }
  if (call.report === "none") return { _tag: "Assume" }
  if (answer.billed) return { _tag: "Settle", actual: call.bill }
  return succeeded ? { _tag: "Assume" } : { _tag: "Void" }
}

const carve = (
  purse: Budget.Purse,
  { id, delegation }: { readonly id: string; readonly delegation: Delegation },
): Effect.Effect<Budget.Purse, Budget.BudgetError> =>
  Effect.suspend(() => {
    const { ask: grant, floor, reserve, charge, divided: isDivided } = delegation
    const ask: Budget.Ask = floor === undefined ? { _tag: "Exactly", grant } : { _tag: "AtMost", grant, floor }
    const carved = purse.ledger.carve(purse.account, { id, name: id, ask, reserve, charge, ...reservesOf(isDivided) })
    return Result.isSuccess(carved)
      ? Effect.succeed({ ledger: purse.ledger, account: id })
      : Effect.fail(Budget.errorOf(purse, "carve", carved.failure))
  })
