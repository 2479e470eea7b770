/**
 * Running one call of a tool, which may take several attempts. Each attempt is on record before it starts and booked
 * after it. What fails is treated by its class:
 *
 * - transient: tried again from the retry reserve, with backoff, as often as the tool may be; an effect only if it counts
 *   once under its key or by nature, and an irreversible one never;
 * - of an effect whose reply was lost nobody knows whether it happened: its tool is asked to find out (`reconcile`), then a
 *   person, and it is not repeated meanwhile;
 * - anything else is the result of the call.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import type { Hold, Refusal } from "../budget/Budget.ts"
import * as Content from "../event/Content.ts"
import type { EventOf } from "../event/Event.ts"
import * as Approval from "./Approval.ts"
import { within } from "./Bounded.ts"
import { cancelledReason, type Ending, failed, failureOf, interrupted, type Refused, refused } from "./CallResult.ts"
import type { Reconciled } from "./Contract.ts"
import { inEpoch } from "./Epoch.ts"
import { andThen } from "./Immediate.ts"
import { awaitTurn } from "./Quota.ts"
import type { Ready, Restore, Setting } from "./Setting.ts"
import { messageOf, type Produced, type ToolFailure } from "./ToolSet.ts"

/** A call that stands still until a person has said what became of it. */
export interface Unknown {
  readonly _tag: "Unknown"
  readonly approval: string
}

/** Runs a call whose hold is placed to its end. */
export const runAttempts = (
  setting: Setting,
  ready: Ready & { readonly hold: Hold },
  restore: Restore,
): Effect.Effect<Ending | Refused | Unknown> => {
  const at: Attempt = { setting, ready, attempt: ready.attempt, restore, first: true }
  return Effect.flatMap(tryOnce(at, ready.hold), (tried) =>
    tried._tag === "Tried" ? tryAgain(at, tried.failure) : Effect.succeed(tried),
  )
}

/** After a failure: another attempt, as often as that is allowed, or what the failure comes to. */
const tryAgain = (at: Attempt, failure: ToolFailure): Effect.Effect<Ending | Refused | Unknown> =>
  Effect.gen(function* () {
    const next = yield* whatNext(at, failure)
    if (next._tag !== "Again") return next
    const placed = yield* holdAgain(at, failure)
    if (placed._tag === "Failed") return placed
    const following = { ...at, attempt: at.attempt + 1, first: false }
    const tried = yield* tryOnce(following, placed.hold)
    return tried._tag === "Tried" ? yield* tryAgain(following, tried.failure) : tried
  })

/**
 * A call that an earlier process had begun, before anything runs again: what is known of it, or `undefined` where it may
 * simply run once more.
 */
export const settleBegun = (
  setting: Setting,
  ready: Ready,
  restore: Restore,
): Effect.Effect<Ending | Unknown | undefined> =>
  Effect.suspend(() => {
    const at: Attempt = { setting, ready, attempt: ready.attempt - 1, restore, first: true }
    const standing = Approval.standing(setting.state, subjectOf(at), "uncertain")
    if (standing._tag === "NotAsked" && isRepeatable(ready)) return Effect.succeed(undefined)
    const lost: ToolFailure = { code: "ELOST", class: "transient", message: "the process ended while the call ran" }
    const found = standing._tag === "NotAsked" ? findOut(at, lost) : Effect.sync(() => ask(at, lost))
    return Effect.map(found, (known) => {
      if (known._tag === "Ok" && ready.key !== undefined) fileReceipt(setting, ready, known)
      return known._tag === "Again" ? undefined : known
    })
  })

/** From now on a call under the same key is answered with this result. */
export const fileReceipt = (
  { agent, effects }: Setting,
  { call, key }: Ready,
  { of, result }: Extract<Ending, { _tag: "Ok" }>,
): void => {
  const { resources, untrusted } = of
  if (key !== undefined) effects.finished(key, { call: `${agent} ${call.call}`, result, resources, untrusted })
}

interface Attempt {
  readonly setting: Setting
  readonly ready: Ready
  readonly attempt: number
  readonly restore: Restore
  readonly first: boolean
}

interface Tried {
  readonly _tag: "Tried"
  readonly failure: ToolFailure
}

const placeOf = ({ setting: { agent, step }, ready: { call } }: Attempt) => ({
  agent,
  step,
  call: call.call,
  tool: call.tool,
})

// --- one attempt

const tryOnce = (at: Attempt, hold: Hold): Effect.Effect<Ending | Refused | Tried> => {
  const { setting, ready, restore, first } = at
  const { contract } = ready.runnable
  if (contract.quota === undefined) return start(at, hold)
  const millis = Math.min(contract.timeoutMillis, leftOf(at) ?? Infinity)
  const turn = Effect.exit(restore(awaitTurn(ready.call.tool, contract, millis)))
  return Effect.flatMap(turn, (turn): Effect.Effect<Ending | Refused | Tried> => {
    if (Exit.isSuccess(turn) && leftOf(at) !== 0) return start(at, hold)
    Result.getOrThrowWith(setting.purse.ledger.void(hold), lawBroken)
    const failure = Exit.isSuccess(turn) ? tooLate : failureOf(turn)
    return Effect.succeed(first && !ready.begun ? refused(ready.call, failure) : failed(failure))
  })
}

export const tooLate: ToolFailure = { code: "EBUDGET", message: "the time for exploring has passed" }

/** The time that is left for an attempt; one after the first is paid from the retry reserve. */
const leftOf = ({ setting: { purse }, first }: Attempt): number | undefined =>
  purse.ledger.leftMillis(purse.account, first ? "explore" : "retry")

/** Starts an attempt, now. */
const start = (at: Attempt, hold: Hold): Effect.Effect<Ending | Tried> => {
  const { setting, ready, attempt, restore } = at
  const { contract } = ready.runnable
  setting.record({
    _tag: "CallStarted",
    ...placeOf(at),
    attempt,
    version: contract.version,
    effect: contract.effect,
    ...(ready.key === undefined ? {} : { key: ready.key }),
    ...(isRepeatable(ready) ? {} : { mark: markOf(ready) }),
  })
  const millis = contract.timeoutMillis
  const message = `no result within ${Math.min(millis, leftOf(at) ?? Infinity)} ms`
  const late: ToolFailure = { code: "ETIMEDOUT", class: "transient", message }
  // From here on it may happen, and cost something: that has to outlive the process.
  return andThen(setting.flush, () =>
    Effect.map(
      within(running(at), { millis, leftMillis: () => leftOf(at), late, restore }),
      (known): Ending | Tried => {
        settle(setting, hold, known)
        return Exit.isSuccess(known) ? succeeded(ready, known.value) : { _tag: "Tried", failure: failureOf(known) }
      },
    ),
  )
}

const running = ({ setting: { agent }, ready, attempt }: Attempt): Effect.Effect<Produced, ToolFailure> => {
  const { call, runnable, params, key, print } = ready
  // What changes nothing needs no key.
  const own = runnable.contract.effect === "read" ? `${agent}/${call.call}` : print()
  return runnable.run(params, { agent, call: call.call, key: key ?? own, attempt })
}

/** A started attempt costs its call. What it cost in money is known only if it came to an end. */
const settle = ({ purse: { ledger } }: Setting, hold: Hold, exit: Exit.Exit<Produced, ToolFailure>): void => {
  const unknown = interrupted(exit) || (Exit.isFailure(exit) && failureOf(exit).code === "ETIMEDOUT")
  if (unknown) Result.getOrThrowWith(ledger.assume(hold), lawBroken)
  else Result.getOrThrowWith(ledger.settle(hold, hold.amounts), lawBroken)
}

const lawBroken = (refusal: Refusal): Error => new Error(`the hold of a call could not be resolved: ${refusal._tag}`)

const succeeded = ({ runnable, params }: Ready, { value, data }: Produced): Ending => {
  const { contract } = runnable
  // What a contract says about a result may be wrong; the result stands all the same.
  const said = <A>(ask: (() => A) | undefined, otherwise: A): A =>
    ask === undefined ? otherwise : Result.getOrElse(Result.try(ask), () => otherwise)
  const { resources, stateChanged } = contract
  const changes = contract.effect !== "read"
  return {
    _tag: "Ok",
    result: Content.fromJson(data ?? null),
    of: {
      stateChanged: changes && said(stateChanged && (() => stateChanged(params as never, value as never)), true),
      untrusted: contract.untrusted,
      resources: said(resources && (() => resources(params as never, value as never)), []),
    },
  }
}

// --- after a failure

interface Again {
  readonly _tag: "Again"
}

type Next = Ending | Unknown | Again

const again: Again = { _tag: "Again" }

/** Stands for the effect of a call: its key, or else tool, version and arguments. */
export const markOf = ({ key, print }: Ready): string => key ?? print()

/** Whether a second run of the call does no more than one. */
export const isRepeatable = ({ runnable: { contract } }: Ready): boolean =>
  contract.effect === "read" || (contract.effect === "write" && contract.idempotency !== "none")

const whatNext = (at: Attempt, failure: ToolFailure): Effect.Effect<Next> => {
  const { contract } = at.ready.runnable
  const lost = failure.code === "ETIMEDOUT" || failure.code === "ECANCELLED" || failure.mayHaveHappened === true
  const unknown = contract.effect !== "read" && lost
  if (failure.code === "ECANCELLED") return Effect.succeed(unknown ? cancelledAt(at) : failed(failure))
  if (failure.class === "transient" && isRepeatable(at.ready) && triesLeft(at) > 0) return Effect.succeed(again)
  return unknown ? findOut(at, failure) : Effect.succeed(failed(failure))
}

/** Interrupted while its effect may have happened. */
const cancelledAt = ({ setting, ready }: Attempt): Extract<Ending, { _tag: "Failed" }> => {
  if (isRepeatable(ready)) return failed(cancelledReason)
  setting.effects.unknown(markOf(ready))
  return failed(cancelledReason, markOf(ready))
}

const triesLeft = ({ setting, ready: { runnable, call } }: Attempt): number =>
  runnable.contract.retries - (setting.state.control.retries.get(call.tool) ?? 0)

/** Nobody knows whether an effect happened: asks its tool, then a person, or tells the model. */
const findOut = (at: Attempt, failure: ToolFailure): Effect.Effect<Next> =>
  Effect.gen(function* (): Effect.fn.Return<Next> {
    const { setting, ready } = at
    const { contract } = ready.runnable
    const found = yield* reconciled(at)
    if (found === "interrupted") return cancelledAt(at)
    switch (found._tag) {
      case "Happened": {
        const encoded = yield* Effect.result(ready.runnable.encode(found.result))
        return Result.isSuccess(encoded)
          ? succeeded(ready, { value: found.result, data: encoded.success })
          : failed(encoded.failure)
      }
      case "DidNotHappen":
        // The host repeats nothing that cannot be undone; the model may, knowing this.
        if (contract.effect === "write" && triesLeft(at) > 0) return again
        return failed({ ...failure, message: `${failure.message}; it did not happen` })
      case "Unknown": {
        if (contract.whenUncertain === "ask") return ask(at, failure)
        setting.effects.unknown(markOf(ready))
        return failed({ ...failure, suggestedAction: "find_out_before_repeating" }, markOf(ready))
      }
    }
  })

const reconciled = (at: Attempt): Effect.Effect<Reconciled | "interrupted"> => {
  const { setting, ready, restore } = at
  const { reconcile, timeoutMillis: millis } = ready.runnable.contract
  if (reconcile === undefined) return Effect.succeed({ _tag: "Unknown" })
  const { ledger, account } = setting.purse
  const asking = Effect.suspend(() => reconcile(ready.params as never, ready.key ?? ready.print()))
  const leftMillis = () => ledger.leftMillis(account, "output")
  return Effect.map(
    within(Effect.mapError(asking, messageOf), { millis, leftMillis, late: "no answer", restore }),
    (exit): Reconciled | "interrupted" => {
      if (Exit.isSuccess(exit)) return exit.value
      return interrupted(exit) ? "interrupted" : { _tag: "Unknown" }
    },
  )
}

/** Asks a person what became of a call; the call stands still. An answer that is there already settles it. */
const ask = (at: Attempt, failure: ToolFailure): Next => {
  const { setting, ready } = at
  const standing = Approval.standing(setting.state, subjectOf(at), "uncertain")
  switch (standing._tag) {
    case "Open":
      setting.effects.asked(placeOf(at), markOf(ready), standing.approval)
      return { _tag: "Unknown", approval: standing.approval }
    case "Decided":
      return answered(at, standing.decision)
    case "NotAsked": {
      const reason = `nobody knows whether it happened (${failure.code})`
      const asked = Approval.question(setting.state, subjectOf(at), { kind: "uncertain", reason, step: setting.step })
      setting.record(asked)
      setting.effects.asked(placeOf(at), markOf(ready), asked.approval)
      return { _tag: "Unknown", approval: asked.approval }
    }
  }
}

/** What a question about this attempt is bound to. */
const subjectOf = ({ setting: { run, agent }, ready, attempt }: Attempt): Approval.Subject => ({
  run,
  agent,
  call: ready.call,
  version: ready.runnable.contract.version,
  params: [ready.print(), attempt],
})

const answered = ({ ready }: Attempt, { decision, result }: EventOf<"ApprovalDecided">): Next => {
  if (decision === "did_not_happen") return again
  const stateChanged = ready.runnable.contract.effect !== "read"
  const of = { stateChanged, untrusted: false, resources: [] }
  return { _tag: "Ok", result: result ?? Content.fromJson(null), of }
}

// --- trying again

const mostMillis = 30_000

type HeldAgain = { readonly _tag: "Held"; readonly hold: Hold } | Extract<Ending, { _tag: "Failed" }>

/** Holds the next attempt from the retry reserve, and waits; where that cannot be afforded the failure stands. */
const holdAgain = (at: Attempt, failure: ToolFailure): Effect.Effect<HeldAgain> =>
  Effect.gen(function* () {
    const { setting, ready, attempt, restore } = at
    const { ledger, account } = setting.purse
    const stands = failed(failure)
    const wait = waitOf(at, failure, yield* Random.next)
    // Nothing is held, and nothing fails, because the account stands still.
    const open = yield* Effect.exit(restore(setting.whenOpen))
    if (Exit.isFailure(open)) return failed(cancelledReason)
    if (wait >= (ledger.leftMillis(account, "retry") ?? Infinity) || triesLeft(at) <= 0) return stands
    const amounts = { toolCalls: 1, money: ready.runnable.contract.costNanoUsd, ticks: wait > 0 ? 1 : 0 }
    const id = inEpoch(`${ready.call.call}/attempt-${attempt + 1}`, setting.epoch)
    const placed = ledger.hold({ account, id }, "retry", amounts)
    if (Result.isFailure(placed)) return stands
    const { code, message } = failure
    setting.record({ _tag: "CallFailed", ...placeOf(at), attempt, code, message })
    const waited = yield* Effect.exit(restore(Effect.andThen(Effect.sleep(wait), setting.whenOpen)))
    if (Exit.isSuccess(waited)) return { _tag: "Held", hold: placed.success }
    Result.getOrThrowWith(ledger.void(placed.success), lawBroken)
    return failed(cancelledReason)
  })

const waitOf = ({ ready, attempt }: Attempt, failure: ToolFailure, jitter: number): number => {
  const own = ready.runnable.contract.backoffMillis * 2 ** (attempt - 1) * (0.5 + jitter / 2)
  return Math.ceil(Math.max(failure.retryAfterMillis ?? 0, Math.min(own, mostMillis)))
}
