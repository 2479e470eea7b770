/**
 * Spending for a decision, and waiting for more where an elastic agent lacks it.
 */
import * as Effect from "effect/Effect"
import * as Budget from "../budget/Budget.ts"
import type { Machine } from "./Machine.ts"

interface Place {
  readonly id: string
  readonly reserve: Budget.Reserve
}

/** Holds, decides, settles; an elastic child that is short waits in line first, as long as it may explore. */
export const spend = <A, R, B, E, R2>(
  machine: Machine<A, R>,
  place: Place,
  attempt: Budget.Attempt<B, E, R2>,
): Effect.Effect<Budget.Spent<B, E>, Budget.BudgetError, R2> =>
  Budget.spend(machine.purse, place, attempt).pipe(
    Effect.catch((error) =>
      mayWait(machine, place, error)
        ? Effect.andThen(
            waitForMore(machine, attempt),
            Budget.spend(machine.purse, { ...place, id: `${place.id}/after-waiting` }, attempt),
          )
        : Effect.fail(error),
    ),
  )

const mayWait = <A, R>(machine: Machine<A, R>, place: Place, error: Budget.BudgetError): boolean =>
  machine.settings.elastic &&
  place.reserve === "explore" &&
  error.reason._tag === "Insufficient" &&
  machine.purse.ledger.account(machine.purse.account).parent !== undefined

const nothing: Budget.Grant = Object.fromEntries(Budget.dimensions.map((d) => [d, 0]))

/** As much as the decision asks for, at least what it can be shrunk to. */
const waitForMore = <A, R, B, E, R2>(
  machine: Machine<A, R>,
  attempt: Budget.Attempt<B, E, R2>,
): Effect.Effect<unknown, Budget.BudgetError> => {
  const { purse } = machine
  const wait = Budget.waitFor(purse, { need: attempt.hold({}), least: attempt.hold(nothing) })
  const duration = purse.ledger.leftMillis(purse.account, "explore")
  const late: Budget.Refusal = { _tag: "DeadlinePassed", reserve: "explore", leftMillis: 0, neededMillis: 1 }
  return duration === undefined
    ? wait
    : Effect.timeoutOrElse(wait, { duration, orElse: () => Effect.fail(Budget.errorOf(purse, "wait", late)) })
}
