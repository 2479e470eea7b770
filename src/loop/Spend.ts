/**
 * Spending for a decision or a check: never while the account stands still, and, for an elastic agent that lacks
 * something, after waiting for more.
 */
import * as Effect from "effect/Effect"
import * as Budget from "../budget/Budget.ts"
import { inEpoch } from "../tool/Epoch.ts"
import { isDone } from "../tool/Immediate.ts"
import type { Machine } from "./Machine.ts"

interface Place {
  readonly id: string
  readonly reserve: Budget.Reserve
}

/** Holds, runs, settles; an elastic child that is short waits in line first, as long as it may explore. */
export const spend = <A, R, B, E, R2>(
  machine: Machine<A, R>,
  place: Place,
  attempt: Budget.Attempt<B, E, R2>,
): Effect.Effect<Budget.Spent<B, E>, Budget.BudgetError, R2> => {
  const at = { ...place, id: inEpoch(place.id, machine.epoch) }
  const spent = whileOpen(machine, at, attempt)
  if (!machine.settings.elastic) return spent
  const again = { ...at, id: `${at.id}/after-waiting` }
  return spent.pipe(
    Effect.catch((error) =>
      mayWait(machine, place, error)
        ? Effect.andThen(waitForMore(machine, attempt), whileOpen(machine, again, attempt))
        : Effect.fail(error),
    ),
  )
}

/** A pause that comes in between is waited for, however often; then the hold is placed under another id. */
export const whileOpen = <A, R, B, E, R2>(
  machine: Machine<A, R>,
  place: Place,
  attempt: Budget.Attempt<B, E, R2>,
  pauses = 0,
): Effect.Effect<Budget.Spent<B, E>, Budget.BudgetError, R2> => {
  const at = pauses === 0 ? place : { ...place, id: `${place.id}/after-pause-${pauses}` }
  const spent = onRecord(machine, at, attempt).pipe(
    Effect.catch((error) => (isPaused(error) ? whileOpen(machine, place, attempt, pauses + 1) : Effect.fail(error))),
  )
  return machine.isPaused ? Effect.andThen(machine.whenOpen, spent) : spent
}

/** What is held is on record before it is spent: a process that dies in between leaves the hold to be booked. */
const onRecord = <A, R, B, E, R2>(
  { flush, purse }: Machine<A, R>,
  place: Place,
  attempt: Budget.Attempt<B, E, R2>,
): Effect.Effect<Budget.Spent<B, E>, Budget.BudgetError, R2> => {
  // A journal in memory has nothing to wait for.
  if (isDone(flush)) return Budget.spend(purse, place, attempt)
  let unwritten: Unwritten | undefined
  const written = Effect.catchDefect(flush, (reason) => {
    unwritten = new Unwritten(reason)
    return Effect.die(unwritten)
  })
  const use = (hold: Budget.Hold) => Effect.andThen(written, attempt.use(hold))
  return Effect.flatMap(Budget.spend(purse, place, { ...attempt, use }), (spent) =>
    unwritten === undefined ? Effect.succeed(spent) : Effect.die(unwritten),
  )
}

/** The journal cannot be written any more. Nothing was asked or run, and nothing may be: it is no failure of a policy. */
export class Unwritten extends Error {
  readonly reason: unknown

  constructor(reason: unknown) {
    super("the journal cannot be written")
    this.reason = reason
  }
}

const isPaused = ({ reason }: Budget.BudgetError): boolean => reason._tag === "NotOpen" && reason.state === "paused"

const mayWait = <A, R>(machine: Machine<A, R>, place: Place, error: Budget.BudgetError): boolean =>
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
