/**
 * Accepting an answer: it decodes, the verifier accepts it, and what was verified is still what is there.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import { digest } from "../event/Content.ts"
import type { Purpose } from "../event/Event.ts"
import type { Proposal } from "../policy/Proposal.ts"
import * as Names from "../telemetry/Names.ts"
import * as Trace from "../telemetry/Trace.ts"
import { within } from "../tool/Bounded.ts"
import type { Candidate, Pay, Verification, Verifier } from "../verify/Verifier.ts"
import { type Decided, type Finished, next, type Stop, stop } from "./Decide.ts"
import type { Machine } from "./Machine.ts"
import * as Record from "./Record.ts"
import { spend } from "./Spend.ts"

type Proposed = Extract<Proposal, { _tag: "Finish" }>

/** Decodes an answer; what does not decode is a decision the host cannot use. */
export const decodeAnswer = <A, R>(
  machine: Machine<A, R>,
  decided: Decided,
  purpose: Purpose,
  proposal: Proposed,
): Effect.Effect<Result.Result<A, string>> =>
  Effect.map(Effect.result(machine.answer.decode(proposal.answer)), (decoded) => {
    const why = Result.isFailure(decoded) ? decoded.failure : undefined
    Record.answer(machine, decided, purpose, { ...proposal, why })
    return decoded
  })

/** Takes an answer of the policy as far as it gets. */
export const finish = <A, R>(
  machine: Machine<A, R>,
  decided: Decided,
  proposal: Proposed,
): Effect.Effect<Finished<A> | Stop | typeof next, never, R> =>
  Effect.flatMap(decodeAnswer(machine, decided, "explore", proposal), (decoded) =>
    Result.isFailure(decoded) ? Effect.succeed(next) : accept(machine, decoded.success, proposal.text),
  )

/** Checks an answer that decodes. */
export const accept = <A, R>(
  machine: Machine<A, R>,
  answer: A,
  text: string | undefined,
): Effect.Effect<Finished<A> | Stop | typeof next, never, R> =>
  Effect.gen(function* () {
    machine.remains = { answer, text }
    const { verifier } = machine
    if (verifier === undefined) return { _tag: "Finished", answer, verification: undefined }
    const verified = yield* verify(machine, verifier, answer)
    if (Result.isFailure(verified)) return stop("unverified", verified.failure)
    return verified.success.accepted ? { _tag: "Finished", answer, verification: verified.success } : next
  })

/** Whether what an earlier process verified is still what is there. */
export const stillStands = <A, R>(machine: Machine<A, R>, answer: A): Effect.Effect<boolean, never, R> => {
  const { verifier, state } = machine
  const { verified } = state.control
  if (verifier === undefined || verified === undefined) return Effect.succeed(false)
  const world = worldOf(verifier, { answer, task: machine.task, state })
  return Effect.map(world, (now) => boundTo(verified.digestBefore, now) === verified.stateDigest)
}

/** How often an answer is checked again because the world moved meanwhile. */
const mostRounds = 3

/** Checks an answer, paid from the verify reserve and within its time; again, if the world moved while it was checked. */
const verify = <A, R>(
  machine: Machine<A, R>,
  verifier: Verifier<A, R>,
  answer: A,
): Effect.Effect<Result.Result<Verification, string>, never, R> =>
  Trace.span("bursar.verify", {}, (span) =>
    Effect.gen(function* () {
      const candidate: Candidate<A> = { answer, task: machine.task, state: machine.state }
      const check = inTime(machine, checked(verifier, candidate, payFor(machine)))
      for (let round = 1; ; round++) {
        const before = yield* worldOf(verifier, candidate)
        const result = yield* Effect.result(check)
        if (Result.isFailure(result)) return result
        const moved = result.success.accepted && (yield* worldOf(verifier, candidate)) !== before
        if (moved && round < mostRounds) continue
        const verification = moved ? unsettled(result.success) : result.success
        span.attributes({ [Names.verifyAccepted]: verification.accepted })
        const stateDigest = boundTo(machine.digest, before)
        machine.record({ _tag: "Verified", agent: machine.agent, step: machine.step, ...verification, stateDigest })
        return Result.succeed(verification)
      }
    }),
  )

/** What a verification stands for: the state of the agent and the part of the world that was looked at. */
const boundTo = (state: string, world: string): string => (world === "" ? state : digest(`${state} ${world}`))

/** A digest of the world; one that cannot be taken differs from every other. */
const worldOf = <A, R>(verifier: Verifier<A, R>, candidate: Candidate<A>): Effect.Effect<string, never, R> =>
  Effect.suspend(() => verifier.world?.(candidate) ?? Effect.succeed("")).pipe(
    Effect.catchCause(() => Effect.sync(() => `unknown ${unknowns++}`)),
  )

let unknowns = 0

const unsettled = ({ rules, evidence }: Verification): Verification => ({
  accepted: false,
  rules: [
    ...rules,
    {
      name: "world_unchanged",
      passed: false,
      detail: "what was checked changed each time before it could be accepted",
    },
  ],
  evidence,
})

/** A check in the time of the verify reserve, which stands still while the account does. */
const inTime = <A, R, B>(machine: Machine<A, R>, check: Effect.Effect<B, string, R>): Effect.Effect<B, string, R> => {
  const { ledger, account } = machine.purse
  const leftMillis = () => ledger.leftMillis(account, "verify")
  const late = "no time is left to check the answer"
  return Effect.uninterruptibleMask((restore) => Effect.flatten(within(check, { leftMillis, late, restore })))
}

/** In a fiber of its own: one that interrupts itself breaks down, and interrupts nobody else. */
const checked = <A, R>(
  verifier: Verifier<A, R>,
  candidate: Candidate<A>,
  pay: Pay,
): Effect.Effect<Verification, string, R> =>
  Effect.forkChild(
    Effect.suspend(() => verifier.check(candidate, pay)),
    { startImmediately: true },
  ).pipe(
    Effect.flatMap((fiber) => Effect.onInterrupt(Fiber.await(fiber), () => Fiber.interrupt(fiber))),
    Effect.flatMap((exit): Effect.Effect<Verification, string> => {
      if (Exit.isSuccess(exit)) return Effect.succeed(exit.value)
      const failed = exit.cause.reasons.find(Cause.isFailReason)
      return failed === undefined ? Effect.succeed(brokenCheck(verifier.name)) : Effect.fail(failed.error.message)
    }),
  )

/** A verifier that breaks down has accepted nothing. */
const brokenCheck = (name: string): Verification => ({
  accepted: false,
  rules: [{ name, passed: false, detail: "the check itself broke down" }],
  evidence: [],
})

const payFor = <A, R>(machine: Machine<A, R>): Pay => {
  let check = 0
  return (attempt) => spend(machine, { id: `step-${machine.step}/verify-${++check}`, reserve: "verify" }, attempt)
}
