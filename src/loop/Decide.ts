/**
 * Coming to one decision: hold, ask, settle, and again from the retry reserve where that is worth it.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Budget from "../budget/Budget.ts"
import type { Purpose } from "../event/Event.ts"
import { firstShort, type StopReason } from "../event/StopReason.ts"
import type { Decision, DecisionFailure, Terms } from "../policy/Policy.ts"
import { recordable } from "../policy/Proposal.ts"
import * as Elastic from "./Elastic.ts"
import type { Machine } from "./Machine.ts"

/** Why the loop has to stop. `short` lists every short dimension of a stop for budget. */
export interface Stop {
  readonly _tag: "Stop"
  readonly reason: StopReason
  readonly short: ReadonlyArray<string>
  readonly detail: string
}

export const stop = (reason: StopReason, detail = "", short: ReadonlyArray<string> = []): Stop => ({
  _tag: "Stop",
  reason,
  short,
  detail,
})

/** A decision, paid for. `uncovered` are the dimensions in which its bill was above the hold and paid from elsewhere. */
export interface Decided {
  readonly _tag: "Decided"
  readonly decision: Decision
  readonly attempt: number
  readonly uncovered: ReadonlyArray<Budget.Dimension>
}

/** Decides for `purpose`, trying again after failures that may pass. */
export const decide = <A, R>(machine: Machine<A, R>, purpose: Purpose): Effect.Effect<Decided | Stop, never, R> =>
  Effect.gen(function* () {
    for (let attempt = 1; ; attempt++) {
      const reserve: Budget.Reserve = purpose === "wrap_up" ? "output" : attempt === 1 ? "explore" : "retry"
      const made = yield* tryOnce(machine, purpose, { reserve, attempt })
      if (made._tag !== "Failed") return made
      const { failure } = made
      machine.record({
        _tag: "DecisionFailed",
        agent: machine.agent,
        step: machine.step,
        attempt,
        purpose,
        code: failure.code,
        message: failure.message,
        retryable: failure.retryable,
      })
      if (isPast(machine, reserve)) return stop("deadline", failure.message)
      if (purpose === "wrap_up" || !failure.retryable || attempt > machine.settings.modelRetries) {
        return stop("model_error", failure.message)
      }
      const waited = yield* backOff(machine, attempt, failure)
      if (waited !== undefined) return waited
    }
  })

interface Failed {
  readonly _tag: "Failed"
  readonly failure: DecisionFailure
}

const tryOnce = <A, R>(
  machine: Machine<A, R>,
  purpose: Purpose,
  terms: Omit<Terms, "moneyIsCapped"> & { readonly reserve: Budget.Reserve },
): Effect.Effect<Decided | Stop | Failed, never, R> =>
  Effect.gen(function* () {
    const { purse, policy } = machine
    const view = machine.view(purpose)
    const moneyIsCapped = purse.ledger.account(purse.account).caps.money
    const attempt = yield* asked(() => policy.attempt(view, { ...terms, moneyIsCapped }))
    yield* asked(() => Effect.sync(() => attempt.hold(purse.ledger.reachable(purse.account, terms.reserve))))
    if (purpose === "explore") {
      const needs = yield* asked(() => policy.wrapUpNeeds(view))
      const cannotAnswer = keepAnswerable(machine, terms.reserve, { attempt, needs })
      if (cannotAnswer !== undefined) return cannotAnswer
    }
    yield* machine.flush
    const id = `step-${machine.step}/${purpose}/attempt-${terms.attempt}`
    const spent = yield* asked(() =>
      Elastic.spend(machine, { id, reserve: terms.reserve }, limited(machine, terms.reserve, attempt)),
    )
    return yield* asked(() => Effect.succeed(outcomeOf(spent, terms.attempt)))
  }).pipe(
    Effect.catchTags({
      Unpriced: (error) => Effect.succeed(stop("unpriced", error.message)),
      PolicyBroken: () => Effect.succeed<Failed>({ _tag: "Failed", failure: broken }),
      BudgetError: (error) => Effect.succeed(stopOf(error)),
    }),
  )

/** A policy, or the model behind it, that breaks down; what it held is booked. */
class PolicyBroken extends Schema.TaggedError<PolicyBroken>()("PolicyBroken", {}) {}

const broken: DecisionFailure = { code: "EFAILED", message: "the decision broke down", retryable: false }

/** A policy that breaks down makes no decision; it does not tear the loop. */
const asked = <B, E, R>(ask: () => Effect.Effect<B, E, R>): Effect.Effect<B, E | PolicyBroken, R> =>
  Effect.suspend(ask).pipe(Effect.catchDefect(() => Effect.fail(new PolicyBroken())))

/** Cuts an attempt off where its reserve ends; what it cost is then unknown and booked by the attempt itself. */
const limited = <A, R, B, R2>(
  machine: Machine<A, R>,
  reserve: Budget.Reserve,
  attempt: Budget.Attempt<B, DecisionFailure, R2>,
): Budget.Attempt<B, DecisionFailure, R2> => ({
  ...attempt,
  use: (hold) => {
    const duration = machine.purse.ledger.leftMillis(machine.purse.account, reserve)
    const late: DecisionFailure = { code: "ETIMEDOUT", message: "no decision before the deadline", retryable: false }
    return duration === undefined
      ? attempt.use(hold)
      : attempt.use(hold).pipe(Effect.timeoutOrElse({ duration, orElse: () => Effect.fail(late) }))
  },
})

const outcomeOf = (spent: Budget.Spent<Decision, DecisionFailure>, attempt: number): Decided | Failed => {
  const { exit, settlement } = spent
  if (Exit.isSuccess(exit)) {
    const decision = { ...exit.value, proposal: recordable(exit.value.proposal) }
    return { _tag: "Decided", decision, attempt, uncovered: settlement?.short ?? [] }
  }
  const failed = exit.cause.reasons.find(Cause.isFailReason)
  return { _tag: "Failed", failure: failed?.error ?? broken }
}

/** The reason for a hold that was refused. */
export const stopOf = (error: Budget.BudgetError): Stop => {
  const { reason } = error
  switch (reason._tag) {
    case "Insufficient": {
      const short = reason.shortages.map((shortage) => shortage.dimension)
      return stop(firstShort(short), error.message, short)
    }
    case "DeadlinePassed":
      return stop("deadline", error.message)
    case "NotOpen":
      return stop(reason.cause === "deadline" ? "deadline" : "cancelled", error.message)
    case "InvalidAmount":
      return stop("model_error", error.message)
    default:
      throw error
  }
}

export const isPast = <A, R>(machine: Machine<A, R>, reserve: Budget.Reserve): boolean =>
  machine.purse.ledger.leftMillis(machine.purse.account, reserve) === 0

/**
 * Keeps the wrap-up payable: before exploring further the output reserve must still cover it, with the context as it is
 * now. What it lacks moves from explore; where explore cannot give it *and* pay the coming decision, exploring stops.
 */
const keepAnswerable = <A, R>(
  machine: Machine<A, R>,
  reserve: Budget.Reserve,
  coming: { readonly attempt: Budget.Attempt<Decision, DecisionFailure, R>; readonly needs: Budget.Grant },
): Stop | undefined => {
  if (!machine.settings.wrapUp) return undefined
  const { ledger, account } = machine.purse
  const self = ledger.account(account)
  const lacking: { [D in Budget.Dimension]?: number } = {}
  for (const d of Budget.dimensions) {
    const free = Budget.available(self, "output", d)
    const missing = free === undefined ? 0 : (coming.needs[d] ?? 0) - free
    if (missing > 0) lacking[d] = missing
  }
  if (Object.keys(lacking).length === 0) return undefined
  const hold = coming.attempt.hold(less(ledger.reachable(account, reserve), lacking))
  const short = Budget.dimensions.filter((d) => {
    const explore = Budget.available(self, "explore", d)
    const own = reserve === "explore" ? 0 : (Budget.available(self, reserve, d) ?? 0)
    return lacking[d] !== undefined && explore !== undefined && lacking[d] + Math.max(0, (hold[d] ?? 0) - own) > explore
  })
  if (short.length > 0) return stop(firstShort(short), "what is left is needed for the answer", short)
  const moved = ledger.move(account, "explore", "output", lacking)
  return Result.isFailure(moved) ? stopOf(Budget.errorOf(machine.purse, "move", moved.failure)) : undefined
}

/** What can be reached once `taken` has moved away; nothing where that is more than there is. */
const less = (reachable: Budget.Grant, taken: Budget.Grant): Budget.Grant =>
  Object.fromEntries(
    Budget.dimensions.flatMap((d) =>
      reachable[d] === undefined ? [] : [[d, Math.max(0, reachable[d] - (taken[d] ?? 0))]],
    ),
  )

/** Waits before the next attempt; the wait is a tick. Answers with a stop where it cannot be afforded. */
const backOff = <A, R>(
  machine: Machine<A, R>,
  attempt: number,
  failure: DecisionFailure,
): Effect.Effect<Stop | undefined> =>
  Effect.gen(function* () {
    const jitter = yield* Random.next
    const own = machine.settings.backoffMillis * 2 ** (attempt - 1) * (0.5 + jitter / 2)
    const wait = Math.ceil(Math.max(failure.retryAfterMillis ?? 0, own))
    if (wait === 0) return undefined
    const left = machine.purse.ledger.leftMillis(machine.purse.account, "retry") ?? Infinity
    if (wait >= left) return stop("deadline", `the model asks to wait ${wait} ms, ${left} ms are left`)
    const id = `step-${machine.step}/wait-${attempt}`
    const spent = yield* Budget.spend(
      machine.purse,
      { id, reserve: "retry" },
      {
        hold: () => ({ ticks: 1 }),
        use: () => Effect.sleep(wait),
        book: () => ({ _tag: "Settle", actual: { ticks: 1 } }),
      },
    ).pipe(Effect.result)
    return Result.isFailure(spent) ? stopOf(spent.failure) : undefined
  })
