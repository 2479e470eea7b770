/**
 * Coming to one decision: hold, ask, settle, and again from the retry reserve where that is worth it.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Budget from "../budget/Budget.ts"
import type { Purpose } from "../event/Event.ts"
import { firstShort, type StopReason } from "../event/StopReason.ts"
import type { Asking, Decision, DecisionFailure, Terms, Unpriced } from "../policy/Policy.ts"
import { recordable } from "../policy/Proposal.ts"
import type { Verification } from "../verify/Verifier.ts"
import { within } from "../tool/Bounded.ts"
import { andThen, isDone } from "../tool/Immediate.ts"
import type { Machine } from "./Machine.ts"
import * as Record from "./Record.ts"
import { spend, Unwritten } from "./Spend.ts"
import * as Wait from "./Wait.ts"

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

/** The answer was accepted. */
export interface Finished<A> {
  readonly _tag: "Finished"
  readonly answer: A
  readonly verification: Verification | undefined
}

/** The loop goes on. */
export const next = { _tag: "Next" } as const

/** A decision, paid for. `uncovered` are the dimensions in which its bill was above the hold and paid from elsewhere. */
export interface Decided {
  readonly _tag: "Decided"
  readonly decision: Decision
  readonly attempt: number
  readonly uncovered: ReadonlyArray<Budget.Dimension>
}

/** Decides for `purpose`, trying again after failures that may pass, and then with the next model, if there is one. */
export const decide = <A, R>(
  machine: Machine<A, R>,
  purpose: Purpose,
  { attempt, tries }: Count = first,
): Effect.Effect<Decided | Stop, never, R> => {
  const reserve: Budget.Reserve = purpose === "wrap_up" ? "output" : attempt === 1 ? "explore" : "retry"
  return Effect.flatMap(tryOnce(machine, purpose, { reserve, attempt }), (made) =>
    made._tag === "Failed" ? again(machine, { purpose, attempt, tries, reserve }, made.failure) : Effect.succeed(made),
  )
}

/** Attempts at a decision, from 1; `tries` are those at the model that is asked now. */
interface Count {
  readonly attempt: number
  readonly tries: number
}

const first: Count = { attempt: 1, tries: 1 }

interface At extends Count {
  readonly purpose: Purpose
  readonly reserve: Budget.Reserve
}

/** After an attempt that failed: another one, where that is worth it and can be afforded. */
const again = <A, R>(
  machine: Machine<A, R>,
  at: At,
  failure: DecisionFailure,
): Effect.Effect<Decided | Stop, never, R> =>
  Effect.gen(function* () {
    const { purpose, attempt, tries, reserve } = at
    machine.record({
      _tag: "DecisionFailed",
      agent: machine.agent,
      step: machine.step,
      attempt,
      purpose,
      code: failure.code,
      message: failure.message,
      retryable: failure.retryable,
      ...(failure.model === undefined ? {} : { model: failure.model }),
    })
    if (isPast(machine, reserve)) return stop("deadline", failure.message)
    if (purpose === "wrap_up" || !failure.retryable || tries > machine.settings.modelRetries) {
      return yield* fallBack(machine, at, failure)
    }
    const wait = yield* Wait.afterFailure(machine, tries, failure)
    const left = machine.purse.ledger.leftMillis(machine.purse.account, "retry")
    if (wait >= (left ?? Wait.longestAskedMillis)) {
      const limit = left === undefined ? `more than ${Wait.longestAskedMillis} ms` : `${left} ms are left`
      const message = `the model asks to wait ${wait} ms, ${limit}`
      return yield* fallBack(machine, at, { ...failure, message, late: left !== undefined })
    }
    const id = `step-${machine.step}/wait-${attempt}`
    const passed = wait === 0 ? undefined : yield* Effect.result(Wait.pass(machine, { id, reserve: "retry" }, wait))
    if (passed !== undefined && Result.isFailure(passed)) return stopOf(passed.failure)
    return yield* decide(machine, purpose, { attempt: attempt + 1, tries: tries + 1 })
  })

/** A model has failed for good: the next one of its chain is asked from here on, or the run stops. */
const fallBack = <A, R>(
  machine: Machine<A, R>,
  { purpose, attempt }: At,
  failure: DecisionFailure,
): Effect.Effect<Decided | Stop, never, R> => {
  const { fallback, model = "", message } = failure
  if (fallback !== undefined) Record.fellBack(machine, { purpose, from: model, fallback })
  if (fallback?.to !== undefined) return decide(machine, purpose, { attempt: attempt + 1, tries: 1 })
  const passedOver = fallback === undefined ? "" : `; nobody knows the price of ${fallback.unpriced.join(", ")}`
  return Effect.succeed(stop(failure.late === true ? "deadline" : "model_error", `${message}${passedOver}`))
}

interface Failed {
  readonly _tag: "Failed"
  readonly failure: DecisionFailure
}

const tryOnce = <A, R>(
  machine: Machine<A, R>,
  purpose: Purpose,
  terms: Omit<Terms, "freeze" | "moneyIsCapped"> & { readonly reserve: Budget.Reserve },
): Effect.Effect<Decided | Stop | Failed, never, R> =>
  andThen(
    asked(() => comingOf(machine, purpose, terms)),
    (coming) =>
      andThen(
        keepAnswerable(machine, terms.reserve, coming),
        (cannotAnswer): Effect.Effect<Decided | Stop | Failed, Budget.BudgetError | PolicyBroken, R> =>
          cannotAnswer === undefined ? attemptOf(machine, purpose, { ...terms, coming }) : Effect.succeed(cannotAnswer),
      ),
  ).pipe(
    Effect.catch((error): Effect.Effect<Stop | Failed> => {
      switch (error._tag) {
        case "Unpriced":
          return Effect.succeed(stop("unpriced", error.message))
        case "PolicyBroken":
          return Effect.succeed<Failed>({ _tag: "Failed", failure: broken })
        case "BudgetError":
          return Effect.succeed(stopOf(error))
      }
    }),
  )

const attemptOf = <A, R>(
  machine: Machine<A, R>,
  purpose: Purpose,
  of: { readonly reserve: Budget.Reserve; readonly attempt: number; readonly coming: Coming<R> },
): Effect.Effect<Decided | Failed, Budget.BudgetError | PolicyBroken, R> => {
  const { attempt, reserve } = of
  const asking = of.coming.attempt
  const place = { id: `step-${machine.step}/${purpose}/attempt-${attempt}`, reserve }
  const made = Effect.map(
    asked(() => spend(machine, place, limited(machine, reserve, asking))),
    (spent) => outcomeOf(spent, attempt),
  )
  if (asking.turn === undefined) return made
  const turn = asked(() => Wait.forTurn(machine, { id: `${place.id}/turn`, reserve }, asking))
  return Effect.andThen(turn, made).pipe(
    Effect.catchTag("TooLate", ({ failure }) => Effect.succeed<Failed>({ _tag: "Failed", failure })),
  )
}

/** The coming attempt, and what a wrap-up after it would need; nothing where none is made. */
const comingOf = <A, R>(
  machine: Machine<A, R>,
  purpose: Purpose,
  terms: Omit<Terms, "freeze" | "moneyIsCapped"> & { readonly reserve: Budget.Reserve },
): Effect.Effect<Coming<R>, Unpriced, R> => {
  const { purse, policy } = machine
  const view = machine.view(purpose)
  const moneyIsCapped = purse.ledger.account(purse.account).caps.money
  const { freeze } = machine.options
  return andThen(policy.attempt(view, { ...terms, moneyIsCapped, freeze }), (attempt) =>
    purpose === "explore" && machine.settings.wrapUp
      ? andThen(policy.wrapUpNeeds(view), (needs) => Effect.succeed<Coming<R>>({ attempt, needs }))
      : Effect.succeed<Coming<R>>({ attempt, needs: {} }),
  )
}

/** A policy, or the model behind it, that breaks down; what it held is booked. */
class PolicyBroken extends Schema.TaggedError<PolicyBroken>()("PolicyBroken", {}) {}

const broken: DecisionFailure = { code: "EFAILED", message: "the decision broke down", retryable: false }

/** A policy that breaks down makes no decision; it does not tear the loop. */
const asked = <B, E, R>(ask: () => Effect.Effect<B, E, R>): Effect.Effect<B, E | PolicyBroken, R> => {
  try {
    const answer = ask()
    return isDone(answer) ? answer : Effect.catchDefect(answer, brokenBy)
  } catch (defect) {
    return brokenBy(defect)
  }
}

const brokenBy = (defect: unknown): Effect.Effect<never, PolicyBroken> =>
  defect instanceof Unwritten ? Effect.die(defect.reason) : Effect.fail(new PolicyBroken())

/**
 * Cuts an attempt off where its reserve ends; what it cost is then unknown and booked by the attempt itself. What there is
 * to tell of a call that is booked at its hold is on record before that.
 */
const limited = <A, R, R2>(
  machine: Machine<A, R>,
  reserve: Budget.Reserve,
  attempt: Asking<R2>,
): Budget.Attempt<Decision, DecisionFailure, R2> => ({
  ...attempt,
  book: (exit, hold) => {
    const booking = attempt.book(exit, hold)
    const told = booking._tag === "Assume" ? attempt.told?.() : undefined
    if (told !== undefined) Record.reported(machine, hold, told)
    return booking
  },
  use: (hold) => {
    const { ledger, account } = machine.purse
    const leftMillis = () => ledger.leftMillis(account, reserve)
    const late: DecisionFailure = { code: "ETIMEDOUT", message: "no decision before the deadline", retryable: false }
    return leftMillis() === undefined
      ? attempt.use(hold)
      : Effect.uninterruptibleMask((restore) =>
          Effect.flatten(within(attempt.use(hold), { leftMillis, late, restore })),
        )
  },
})

const outcomeOf = (spent: Budget.Spent<Decision, DecisionFailure>, attempt: number): Decided | Failed => {
  const { exit, settlement } = spent
  if (Exit.isSuccess(exit)) {
    const decision = Result.try(() => ({ ...exit.value, proposal: recordable(exit.value.proposal) }))
    // What a policy gave for a decision is none.
    if (Result.isFailure(decision)) return { _tag: "Failed", failure: broken }
    return { _tag: "Decided", decision: decision.success, attempt, uncovered: settlement?.short ?? [] }
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
  coming: Coming<R>,
): Effect.Effect<Stop | undefined> => {
  const lacks = lacking(machine, coming)
  if (lacks === undefined) return Effect.succeed(undefined)
  if (machine.purse.ledger.account(machine.purse.account).state !== "Paused") {
    return Effect.succeed(moveToOutput(machine, reserve, { ...coming, lacks }))
  }
  return Effect.flatMap(machine.whenOpen, () => keepAnswerable(machine, reserve, coming))
}

interface Coming<R> {
  readonly attempt: Asking<R>
  readonly needs: Budget.Grant
}

/** What the output reserve lacks for the wrap-up. */
const lacking = <A, R>(machine: Machine<A, R>, coming: Coming<R>): Budget.Grant | undefined => {
  if (!machine.settings.wrapUp) return undefined
  const self = machine.purse.ledger.account(machine.purse.account)
  const lacking: { [D in Budget.Dimension]?: number } = {}
  for (const d of Budget.dimensions) {
    const free = Budget.available(self, "output", d)
    const missing = free === undefined ? 0 : (coming.needs[d] ?? 0) - free
    if (missing > 0) lacking[d] = missing
  }
  return Object.keys(lacking).length === 0 ? undefined : lacking
}

const moveToOutput = <A, R>(
  machine: Machine<A, R>,
  reserve: Budget.Reserve,
  coming: Coming<R> & { readonly lacks: Budget.Grant },
): Stop | undefined => {
  const { ledger, account } = machine.purse
  const self = ledger.account(account)
  const lacking = coming.lacks
  // A policy whose bound cannot be computed breaks down when it is to be held.
  const hold = Result.getOrElse(
    Result.try(() => coming.attempt.hold(less(ledger.reachable(account, reserve), lacking))),
    (): Budget.Grant => ({}),
  )
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
