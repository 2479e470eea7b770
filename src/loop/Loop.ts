/**
 * The machine that runs one agent: `Ready -> Thinking -> Acting -> Observing -> (Verifying) -> Finished | Stopped |
 * Suspended`.
 *
 * The policy only proposes; the loop holds, executes, records, counts and decides when it ends. Each pass consumes a step
 * or ends, so the amount of work is bounded by the budget. A run that has to stop makes one last answer from its output
 * reserve, with what it knows. A run that needs a person stands still, and goes on when one has answered.
 *
 * A step, in this order: may it go on? - decide - settle - act - fold - finish.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { unused } from "../budget/Budget.ts"
import type { Call } from "../event/Event.ts"
import { allowsWrapUp, firstShort, type ResultKind, type StopReason } from "../event/StopReason.ts"
import { finishTool } from "../policy/Answer.ts"
import type { Proposal } from "../policy/Proposal.ts"
import * as Names from "../telemetry/Names.ts"
import * as Trace from "../telemetry/Trace.ts"
import type { Turn } from "../state/State.ts"
import type { CallResult } from "../tool/CallResult.ts"
import { stopAndRequestHuman } from "../tool/ToolError.ts"
import { asksForPerson, endOpen, execute, refuseAll } from "../tool/Executor.ts"
import type { Verification } from "../verify/Verifier.ts"
import { type Decided, decide, type Finished, isPast, next, stop, type Stop } from "./Decide.ts"
import { accept, decodeAnswer, finish, stillStands } from "./Finish.ts"
import { unusableInARow } from "./Guard.ts"
import { Machine, type Options, type Remains } from "./Machine.ts"
import * as Record from "./Record.ts"

/** How a run of the loop ended. */
export interface Ending<A> {
  readonly _tag: "Ended"
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

/** A run of the loop that waits for answers to these questions. */
export interface Suspended {
  readonly _tag: "Suspended"
  readonly waitsFor: ReadonlyArray<string>
}

/** A machine that can also be looked at while it runs: its state outlives an interruption. */
export const prepare = <A, R>(options: Options<A, R>): Machine<A, R> => new Machine(options)

/** Runs a machine to its end, from its start or from where an earlier process left it. */
export const run = <A, R>(machine: Machine<A, R>): Effect.Effect<Ending<A> | Suspended, never, R> =>
  Effect.gen(function* () {
    let passed: Passed<A> = machine.step === 0 ? next : yield* goOn(machine)
    while (passed._tag === "Next") {
      machine.step++
      passed = yield* inStep(machine, (span) => step(machine, span))
    }
    if (passed._tag === "Finished") return completed(passed)
    return passed._tag === "Suspended" ? passed : yield* stopped(machine, passed)
  })

const inStep = <A, R, B>(
  machine: Machine<A, R>,
  use: (span: Trace.TraceSpan) => Effect.Effect<B, never, R>,
  /** True where an earlier process had begun it. */
  again = false,
): Effect.Effect<B, never, R> =>
  Trace.span(
    "bursar.step",
    {
      attributes: () => ({
        [Names.stepIndex]: machine.step,
        ...(again ? { [Names.replayed]: true } : {}),
      }),
      atEnd: () => remaining(machine),
      of: { _tag: "Step", account: machine.agent },
      // Itself, and the request or the call that it is for.
      part: { spans: 2 },
    },
    use,
  )

/** What is left of what most runs end for. */
const remaining = <A, R>({ purse: { ledger, account } }: Machine<A, R>): Readonly<Record<string, unknown>> => {
  const self = ledger.account(account)
  const left = unused(self)
  const of = (dimension: "steps" | "money") =>
    self.caps[dimension] ? { [Names.budget(dimension, "remaining")]: left[dimension] } : {}
  return { ...of("steps"), ...of("money"), [Names.deadlineRemaining]: ledger.leftMillis(account, "output") }
}

const completed = <A>(finished: Finished<A>): Ending<A> => ({
  _tag: "Ended",
  reason: "completed",
  short: [],
  detail: "",
  result: "full",
  answer: finished.answer,
  text: undefined,
  verification: finished.verification,
})

type Passed<A> = Finished<A> | Stop | Suspended | typeof next

const step = <A, R>(machine: Machine<A, R>, span: Trace.TraceSpan): Effect.Effect<Passed<A>, never, R> => {
  if (machine.isPaused)
    return Effect.andThen(
      machine.whenOpen,
      Effect.suspend(() => step(machine, span)),
    )
  const halted = mayGoOn(machine)
  if (halted !== undefined) return Effect.succeed(halted)
  return Effect.flatMap(decide(machine, "explore"), (decided): Effect.Effect<Passed<A>, never, R> => {
    if (decided._tag === "Stop") return Effect.succeed(decided)
    const { proposal } = decided.decision
    switch (proposal._tag) {
      case "Call":
        return act(machine, decided, proposal, span)
      case "Finish":
        return finish(machine, decided, proposal)
      case "Invalid":
        Record.invalid(machine, decided, "explore", proposal)
        return Effect.succeed(next)
    }
  })
}

/** Deadline, cancellation and guards; the hold comes with the decision. */
const mayGoOn = <A, R>(machine: Machine<A, R>): Stop | undefined => {
  const { ledger, account } = machine.purse
  const { state, cause } = ledger.account(account)
  if (state !== "Open" && state !== "Paused")
    return stop(cause === "deadline" ? "deadline" : "cancelled", `the account is ${state.toLowerCase()}`)
  if (isPast(machine, "explore")) return stop("deadline", "the time for exploring has passed")
  const { invalidDecisions } = machine.settings
  if (unusableInARow(machine.state.session.turns, invalidDecisions) >= invalidDecisions) {
    return stop("invalid_decisions", `${invalidDecisions} decisions in a row could not be used`)
  }
  const stuck = machine.guards.stuck(machine.state)
  return stuck === undefined ? undefined : stop("no_progress", stuck)
}

// --- acting

const act = <A, R>(
  machine: Machine<A, R>,
  decided: Decided,
  proposal: Extract<Proposal, { _tag: "Call" }>,
  span: Trace.TraceSpan,
): Effect.Effect<Passed<A>> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.suspend(() => {
      const calls = Record.calls(machine, decided, "explore", proposal)
      if (decided.uncovered.length > 0) {
        const message = `the bill of the reply was above its hold in ${decided.uncovered.join(", ")}`
        refuseAll(machine.setting, calls, { code: "EBUDGET", message })
        return Effect.succeed(stop(firstShort(decided.uncovered), message, decided.uncovered))
      }
      if (machine.guards.isRepeated(proposal.calls, machine.state.world.version)) {
        const message = "the same action against an unchanged state, once too often"
        refuseAll(machine.setting, calls, { code: "EREPEATED", message })
        return Effect.succeed(stop("repeated_action", message))
      }
      return runCalls(machine, calls, { span, restore })
    }),
  )

const runCalls = <A, R>(
  machine: Machine<A, R>,
  calls: ReadonlyArray<Call>,
  at: {
    readonly span: Trace.TraceSpan
    readonly restore: <B, E, R2>(effect: Effect.Effect<B, E, R2>) => Effect.Effect<B, E, R2>
  },
): Effect.Effect<Passed<A>> =>
  Effect.map(execute(machine.setting, calls, at.restore), ({ results, waitsFor }): Passed<A> => {
    if (at.span.isOn) {
      const ran = results.filter((one) => one.ran).length
      at.span.attributes({ [Names.stepAdmitted]: ran, [Names.stepRefused]: results.length - ran })
    }
    const stops = afterCalls(results)
    return stops._tag === "Next" && waitsFor.length > 0 ? { _tag: "Suspended", waitsFor } : stops
  })

/**
 * A tool that broke down ends the run; so does a refusal that only a person can resolve, and a reply whose every call was
 * refused for want of tool calls.
 */
const afterCalls = (results: ReadonlyArray<CallResult>): Stop | typeof next => {
  const fatal = results.find(({ failure }) => failure?.class === "fatal")
  if (fatal !== undefined) return stop("tool_error", `${fatal.call.tool}: ${fatal.failure?.message ?? ""}`)
  const blocked = results.find(asksForPerson)
  if (blocked !== undefined) return stop("blocked", `${blocked.call.tool}: ${blocked.failure?.message ?? ""}`)
  const outOfCalls = results.every(({ failure, short }) => failure?.code === "EBUDGET" && short.includes("toolCalls"))
  return results.length > 0 && outOfCalls
    ? stop("budget:tool_calls", "every call of the reply was refused", ["toolCalls"])
    : next
}

// --- going on where an earlier process ended

/** Finishes the step that was under way: calls without a result, an answer that was not judged, a stop. */
const goOn = <A, R>(machine: Machine<A, R>): Effect.Effect<Passed<A>, never, R> =>
  Effect.gen(function* () {
    const { session, control } = machine.state
    machine.remains = yield* remainsOf(machine)
    if (control.stopping !== undefined)
      return stop(control.stopping.reason, control.stopping.detail, control.stopping.short)
    const turn = session.turns.at(-1)
    if (turn === undefined) return next
    const ended = stopIn(turn)
    if (ended !== undefined) return ended
    const open = machine.openCalls
    if (open.length > 0) {
      return yield* inStep(
        machine,
        (span) => Effect.uninterruptibleMask((restore) => runCalls(machine, open, { span, restore })),
        true,
      )
    }
    const judged = control.verified?.step === turn.step ? control.verified : undefined
    if (turn.kind !== "finish" || judged?.accepted === false) return next
    const decoded = yield* Effect.result(machine.answer.decode(turn.answer))
    if (Result.isFailure(decoded)) return next
    const { success: answer } = decoded
    if (judged !== undefined && (yield* stillStands(machine, answer))) {
      return { _tag: "Finished", answer, verification: judged }
    }
    return yield* inStep(machine, () => accept(machine, answer, turn.text), true)
  })

/** What ends the run among the results that an earlier process recorded without saying so. */
const stopIn = ({ observations }: Turn): Stop | undefined => {
  const fatal = observations.find(({ error }) => error?.fatal === true)
  if (fatal !== undefined) return stop("tool_error", `${fatal.tool}: ${fatal.error?.message ?? ""}`)
  const blocked = observations.find(({ error }) => error?.suggestedAction === stopAndRequestHuman)
  return blocked === undefined ? undefined : stop("blocked", `${blocked.tool}: ${blocked.error?.message ?? ""}`)
}

/** The best answer of an earlier process, and what was said last. */
const remainsOf = <A, R>(machine: Machine<A, R>): Effect.Effect<Remains<A>> => {
  const { turns } = machine.state.session
  const last = turns.at(-1)
  const written = last?.answer === undefined ? undefined : JSON.stringify(last.answer)
  const closing = last?.purpose === "wrap_up" ? { text: last.text ?? written } : {}
  const turn = turns.findLast((one) => one.kind === "finish")
  if (turn === undefined) return Effect.succeed({ ...machine.remains, ...closing })
  return Effect.map(Effect.result(machine.answer.decode(turn.answer)), (decoded) => ({
    answer: Result.getOrUndefined(decoded),
    text: turn.text,
    ...closing,
  }))
}

// --- stopping

const stopped = <A, R>(machine: Machine<A, R>, cause: Stop): Effect.Effect<Ending<A>, never, R> =>
  Effect.gen(function* () {
    const { reason, short, detail } = cause
    if (machine.state.control.stopping === undefined) {
      refuseOpen(machine)
      machine.record({ _tag: "Stopping", agent: machine.agent, step: machine.step, reason, short, detail })
    }
    const didWrapUp = machine.state.session.turns.at(-1)?.purpose === "wrap_up"
    const mayWrapUp = machine.settings.wrapUp && allowsWrapUp(reason) && !didWrapUp
    const wrappedUp = mayWrapUp ? yield* wrapUp(machine) : {}
    return { _tag: "Ended", reason, short, detail, ...leftOver({ ...machine.remains, ...wrappedUp }) }
  })

/** Calls that stand still when their run stops for another reason have a result all the same. */
const refuseOpen = <A, R>(machine: Machine<A, R>): void => {
  machine.options.delegate.endSuspended()
  endOpen(machine.setting, machine.openCalls, { code: "ECANCELLED", message: "the run stopped" })
}

const leftOver = <A>(remains: Remains<A>) => ({
  result: (remains.answer === undefined && !remains.text ? "none" : "partial") as ResultKind,
  ...remains,
  verification: undefined,
})

/** One last answer from the output reserve, with tools withdrawn; nothing where it cannot be paid or fails. */
const wrapUp = <A, R>(machine: Machine<A, R>): Effect.Effect<Partial<Remains<A>>, never, R> =>
  Trace.span("bursar.wrap_up", { of: { _tag: "Step", account: machine.agent }, part: { spans: 2 } }, () =>
    Effect.gen(function* () {
      const decided = yield* decide(machine, "wrap_up")
      if (decided._tag === "Stop") return {}
      const { proposal } = decided.decision
      const said = proposal.text === undefined ? {} : { text: proposal.text }
      switch (proposal._tag) {
        case "Call": {
          const calls = Record.calls(machine, decided, "wrap_up", proposal)
          refuseAll(machine.setting, calls, {
            code: "EWITHDRAWN",
            message: `tools are withdrawn; only ${finishTool} is left`,
          })
          return said
        }
        case "Invalid":
          Record.invalid(machine, decided, "wrap_up", proposal)
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
  refuseOpen(machine)
  const first = machine.state.control.stopping
  if (first !== undefined) return { _tag: "Ended", ...first, ...leftOver(machine.remains) }
  machine.record({ _tag: "Stopping", agent: machine.agent, step: machine.step, short: [], ...cause })
  return { _tag: "Ended", ...cause, short: [], ...leftOver(machine.remains) }
}
