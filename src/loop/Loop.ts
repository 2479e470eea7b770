/**
 * The machine that runs one agent: `Ready -> Thinking -> Acting -> Observing -> (Verifying) -> Finished | Stopped`.
 *
 * The policy only proposes; the loop holds, executes, records, counts and decides when it ends. Each pass consumes a step
 * or ends, so the amount of work is bounded by the budget. A run that has to stop makes one last answer from its output
 * reserve, with what it knows.
 *
 * A step, in this order: may it go on? - decide - settle - act - fold - finish.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Budget from "../budget/Budget.ts"
import * as Content from "../event/Content.ts"
import type { Call, Purpose } from "../event/Event.ts"
import { allowsWrapUp, firstShort, type ResultKind, type StopReason } from "../event/StopReason.ts"
import { finishTool } from "../policy/Answer.ts"
import type { Proposal } from "../policy/Proposal.ts"
import { digestOf } from "../state/State.ts"
import * as Names from "../telemetry/Names.ts"
import * as Trace from "../telemetry/Trace.ts"
import type { CallResult } from "../tool/CallResult.ts"
import { execute, refuseAll } from "../tool/Executor.ts"
import type { Pay, Verification } from "../verify/Verifier.ts"
import { type Decided, decide, isPast, stop, type Stop } from "./Decide.ts"
import { isStuck, unusableInARow } from "./Guard.ts"
import { Machine, type Options, type Remains } from "./Machine.ts"

/** How a run of the loop ended. */
export interface Ending<A> {
  readonly reason: StopReason
  readonly short: ReadonlyArray<string>
  readonly detail: string
  readonly result: ResultKind
  /** The accepted answer, or the best there is of one that stopped. */
  readonly answer: A | undefined
  /** Text of the last answer, where it did not decode. */
  readonly text: string | undefined
  readonly verification: Verification | undefined
}

interface Finished<A> {
  readonly _tag: "Finished"
  readonly answer: A
  readonly verification: Verification | undefined
}

/** A machine that can also be looked at while it runs: its state outlives an interruption. */
export const prepare = <A, R>(options: Options<A, R>): Machine<A, R> => new Machine(options)

/** Runs a machine to its end. */
export const run = <A, R>(machine: Machine<A, R>): Effect.Effect<Ending<A>, never, R> =>
  Effect.gen(function* () {
    for (;;) {
      machine.step++
      const passed = yield* Trace.span("bursar.step", { attributes: { [Names.stepIndex]: machine.step } }, (span) =>
        step(machine, span),
      )
      if (passed._tag === "Finished") return completed(passed)
      if (passed._tag === "Stop") return yield* stopped(machine, passed)
    }
  })

const completed = <A>(finished: Finished<A>): Ending<A> => ({
  reason: "completed",
  short: [],
  detail: "",
  result: "full",
  answer: finished.answer,
  text: undefined,
  verification: finished.verification,
})

type Passed<A> = Finished<A> | Stop | typeof next

const next = { _tag: "Next" } as const

const step = <A, R>(machine: Machine<A, R>, span: Trace.TraceSpan): Effect.Effect<Passed<A>, never, R> =>
  Effect.gen(function* () {
    const halted = mayGoOn(machine)
    if (halted !== undefined) return halted
    const decided = yield* decide(machine, "explore")
    if (decided._tag === "Stop") return decided
    const { proposal } = decided.decision
    switch (proposal._tag) {
      case "Call":
        return yield* act(machine, decided, proposal, span)
      case "Finish":
        return yield* finish(machine, decided, proposal)
      case "Invalid":
        recordInvalid(machine, decided, "explore", proposal)
        return next
    }
  })

/** Deadline, cancellation and guards; the hold comes with the decision. */
const mayGoOn = <A, R>(machine: Machine<A, R>): Stop | undefined => {
  const { ledger, account } = machine.purse
  const { state, cause } = ledger.account(account)
  if (state !== "Open")
    return stop(cause === "deadline" ? "deadline" : "cancelled", `the account is ${state.toLowerCase()}`)
  if (isPast(machine, "explore")) return stop("deadline", "the time for exploring has passed")
  const { turns } = machine.state.session
  const { invalidDecisions, noProgress } = machine.settings
  if (unusableInARow(turns, invalidDecisions) >= invalidDecisions) {
    return stop("invalid_decisions", `${invalidDecisions} decisions in a row could not be used`)
  }
  return noProgress !== undefined && isStuck(turns, machine.tools, noProgress)
    ? stop("no_progress", `the last ${noProgress.repeat} rounds were the same`)
    : undefined
}

// --- acting

const act = <A, R>(
  machine: Machine<A, R>,
  decided: Decided,
  proposal: Extract<Proposal, { _tag: "Call" }>,
  span: Trace.TraceSpan,
): Effect.Effect<Passed<A>> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const calls = recordCalls(machine, decided, "explore", proposal)
      if (decided.uncovered.length > 0) {
        const message = `the bill of the reply was above its hold in ${decided.uncovered.join(", ")}`
        refuseAll(machine.setting, calls, { code: "EBUDGET", message })
        return stop(firstShort(decided.uncovered), message, decided.uncovered)
      }
      const results = yield* execute(machine.setting, calls, restore)
      span.attributes({
        [Names.stepAdmitted]: results.filter((one) => one.ran).length,
        [Names.stepRefused]: results.filter((one) => !one.ran).length,
      })
      return afterCalls(results)
    }),
  )

/** A tool that broke down ends the run; so does a reply whose every call was refused for want of tool calls. */
const afterCalls = (results: ReadonlyArray<CallResult>): Stop | typeof next => {
  const fatal = results.find((one) => one.code === "EFATAL")
  if (fatal !== undefined) return stop("tool_error", `${fatal.call.tool}: ${fatal.message ?? ""}`)
  const outOfCalls = results.every((one) => one.code === "EBUDGET" && one.short.includes("toolCalls"))
  return results.length > 0 && outOfCalls
    ? stop("budget:tool_calls", "every call of the reply was refused", ["toolCalls"])
    : next
}

const recordCalls = <A, R>(
  machine: Machine<A, R>,
  decided: Decided,
  purpose: Purpose,
  proposal: Extract<Proposal, { _tag: "Call" }>,
): ReadonlyArray<Call> => {
  const calls = proposal.calls.map((one, index): Call => ({
    call: `step-${machine.step}/call-${index + 1}`,
    providerId: one.id ?? "",
    tool: one.tool,
    params: Content.fromJson(one.params ?? null),
  }))
  machine.record({ ...decidedEvent(machine, decided, purpose), kind: "call", calls, ...textOf(proposal) })
  return calls
}

const recordInvalid = <A, R>(
  machine: Machine<A, R>,
  decided: Decided,
  purpose: Purpose,
  proposal: Extract<Proposal, { _tag: "Invalid" }>,
): void =>
  machine.record({
    ...decidedEvent(machine, decided, purpose),
    kind: "invalid",
    why: proposal.why,
    ...textOf(proposal),
  })

const textOf = (proposal: Proposal) => (proposal.text === undefined ? {} : { text: Content.fromText(proposal.text) })

const decidedEvent = <A, R>(machine: Machine<A, R>, decided: Decided, purpose: Purpose) => ({
  _tag: "Decided" as const,
  agent: machine.agent,
  step: machine.step,
  attempt: decided.attempt,
  purpose,
  used: Budget.nonZero(Budget.amounts(decided.decision.used)),
  certainty: decided.decision.certainty,
  ...(decided.decision.model === undefined ? {} : { model: decided.decision.model }),
})

// --- finishing

/** Decodes an answer; what does not decode is a decision the host cannot use. */
const decodeAnswer = <A, R>(
  machine: Machine<A, R>,
  decided: Decided,
  purpose: Purpose,
  proposal: Extract<Proposal, { _tag: "Finish" }>,
): Effect.Effect<Result.Result<A, string>> =>
  Effect.map(Effect.result(machine.answer.decode(proposal.answer)), (decoded) => {
    const answer = Content.fromJson(proposal.answer ?? null)
    const event = { ...decidedEvent(machine, decided, purpose), answer, ...textOf(proposal) }
    machine.record(
      Result.isSuccess(decoded)
        ? { ...event, kind: "finish" }
        : {
            ...event,
            kind: "invalid",
            why: `The answer does not have the form that was asked for: ${decoded.failure}`,
          },
    )
    return decoded
  })

const finish = <A, R>(
  machine: Machine<A, R>,
  decided: Decided,
  proposal: Extract<Proposal, { _tag: "Finish" }>,
): Effect.Effect<Passed<A>, never, R> =>
  Effect.gen(function* () {
    const decoded = yield* decodeAnswer(machine, decided, "explore", proposal)
    if (Result.isFailure(decoded)) return next
    const answer = decoded.success
    machine.remains = { answer, text: proposal.text }
    const verified = yield* verify(machine, answer)
    if (verified === undefined) return { _tag: "Finished", answer, verification: undefined }
    if (Result.isFailure(verified)) return stop("unverified", verified.failure)
    return verified.success.accepted ? { _tag: "Finished", answer, verification: verified.success } : next
  })

/** Checks an answer, paid from the verify reserve and within its time; `undefined` without a verifier. */
const verify = <A, R>(
  machine: Machine<A, R>,
  answer: A,
): Effect.Effect<Result.Result<Verification, string> | undefined, never, R> => {
  const { verifier, purse } = machine
  if (verifier === undefined) return Effect.succeed(undefined)
  const stateDigest = digestOf(machine.state)
  const limit = purse.ledger.leftMillis(purse.account, "verify") ?? Infinity
  return Trace.span("bursar.verify", {}, (span) =>
    Effect.suspend(() => verifier.check({ answer, task: machine.task, state: machine.state }, payFor(machine))).pipe(
      Effect.mapError((error) => error.message),
      Effect.catchDefect(() => Effect.succeed(brokenCheck(verifier.name))),
      Effect.timeoutOrElse({ duration: limit, orElse: () => Effect.fail("no time is left to check the answer") }),
      Effect.tap((verification) =>
        Effect.sync(() => {
          span.attributes({ [Names.verifyAccepted]: verification.accepted })
          machine.record({ _tag: "Verified", agent: machine.agent, step: machine.step, ...verification, stateDigest })
        }),
      ),
      Effect.result,
    ),
  )
}

/** A verifier that breaks down has accepted nothing. */
const brokenCheck = (name: string): Verification => ({
  accepted: false,
  rules: [{ name, passed: false, detail: "the check itself broke down" }],
})

const payFor = <A, R>(machine: Machine<A, R>): Pay => {
  let check = 0
  return (attempt) =>
    Budget.spend(machine.purse, { id: `step-${machine.step}/verify-${++check}`, reserve: "verify" }, attempt)
}

// --- stopping

const stopped = <A, R>(machine: Machine<A, R>, cause: Stop): Effect.Effect<Ending<A>, never, R> =>
  Effect.gen(function* () {
    const { reason, short, detail } = cause
    machine.record({ _tag: "Stopping", agent: machine.agent, step: machine.step, reason, short, detail })
    const wrappedUp = machine.settings.wrapUp && allowsWrapUp(reason) ? yield* wrapUp(machine) : {}
    return { reason, short, detail, ...leftOver({ ...machine.remains, ...wrappedUp }) }
  })

const leftOver = <A>(remains: Remains<A>) => ({
  result: (remains.answer === undefined && !remains.text ? "none" : "partial") as ResultKind,
  ...remains,
  verification: undefined,
})

/** One last answer from the output reserve, with tools withdrawn; nothing where it cannot be paid or fails. */
const wrapUp = <A, R>(machine: Machine<A, R>): Effect.Effect<Partial<Remains<A>>, never, R> =>
  Trace.span("bursar.wrap_up", {}, () =>
    Effect.gen(function* () {
      const decided = yield* decide(machine, "wrap_up")
      if (decided._tag === "Stop") return {}
      const { proposal } = decided.decision
      const said = proposal.text === undefined ? {} : { text: proposal.text }
      switch (proposal._tag) {
        case "Call": {
          const calls = recordCalls(machine, decided, "wrap_up", proposal)
          refuseAll(machine.setting, calls, {
            code: "EWITHDRAWN",
            message: `tools are withdrawn; only ${finishTool} is left`,
          })
          return said
        }
        case "Invalid":
          recordInvalid(machine, decided, "wrap_up", proposal)
          return said
        case "Finish": {
          const decoded = yield* decodeAnswer(machine, decided, "wrap_up", proposal)
          if (Result.isSuccess(decoded)) return { answer: decoded.success, text: proposal.text }
          return { text: proposal.text ?? JSON.stringify(proposal.answer) }
        }
      }
    }),
  )

/** How a run ended that was interrupted: with all it had. A cause that was there before stays. */
export const interrupted = <A, R>(
  machine: Machine<A, R>,
  cause: { readonly reason: StopReason; readonly detail: string },
): Ending<A> => {
  const first = machine.state.control.stopping
  if (first !== undefined) return { ...first, ...leftOver(machine.remains) }
  machine.record({ _tag: "Stopping", agent: machine.agent, step: machine.step, short: [], ...cause })
  return { ...cause, short: [], ...leftOver(machine.remains) }
}
