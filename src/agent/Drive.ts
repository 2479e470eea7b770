/**
 * Running one agent whose account is open: fiber, account, deadline and span end together, on every exit.
 *
 * The loop runs in a fiber of its own, so that cancelling it still yields an outcome. On interruption the subtree is
 * frozen first, then the loop is interrupted; children live inside the loop and are gone before the account closes, so
 * accounts close leaves first and root last. An agent that waits for a person keeps its account, paused.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Budget from "../budget/Budget.ts"
import * as Content from "../event/Content.ts"
import type { EventOf } from "../event/Event.ts"
import { isError, sentenceOf, type StopReason } from "../event/StopReason.ts"
import * as Late from "../loop/Late.ts"
import * as Loop from "../loop/Loop.ts"
import type { Machine } from "../loop/Machine.ts"
import * as Names from "../telemetry/Names.ts"
import * as Trace from "../telemetry/Trace.ts"
import { Permissions } from "../tool/Permission.ts"
import type { OpenedChild, Restore } from "../tool/Setting.ts"
import * as ToolSet from "../tool/ToolSet.ts"
import { childResult, delegateOf } from "./Children.ts"
import { CurrentRun } from "./CurrentRun.ts"
import type { Agent } from "./Definition.ts"
import { endAgents, foldOf } from "./Ends.ts"
import type { Run } from "./Run.ts"
import * as Span from "./Span.ts"

/** Where an agent runs. */
export interface At {
  readonly run: Run
  readonly account: string
  readonly restore: Restore
  /** True where the one who gave the task had seen something from outside. */
  readonly untrusted?: boolean
}

/**
 * Runs an agent to its end and closes its account, or until it waits for a person.
 *
 * It must start in the region that opened the account, and that region must not be interruptible: nothing may come
 * between an open account and the one who closes it. Only the wait for the end is interruptible, through `restore`.
 */
export const drive = <A, R>(
  agent: Agent<A, R>,
  task: string,
  at: At,
): Effect.Effect<Loop.Ending<A> | Loop.Suspended, never, R> => {
  const before = endedBefore(agent, at)
  return before === undefined ? driveOn(agent, task, at) : before
}

/** How an agent ended in an earlier process, which may not have come to close its account. */
const endedBefore = <A, R>(agent: Agent<A, R>, { run, account }: At): Effect.Effect<Loop.Ending<A>> | undefined => {
  const { state } = foldOf(run, account)
  const ended = run.earlierOf(account).find(({ event }) => event._tag === "AgentEnded")?.event
  if (ended === undefined) return undefined
  const { reason, result, answer, text } = ended as EventOf<"AgentEnded">
  const { short = [], detail = "" } = state.control.stopping ?? {}
  const decoded = answer === undefined ? undefined : Effect.result(agent.answer.decode(Content.toJson(answer)))
  const { verified } = state.control
  return Effect.map(decoded ?? Effect.succeed(undefined), (known): Loop.Ending<A> => {
    closeAccount(run, account)
    return {
      _tag: "Ended",
      reason,
      short,
      detail,
      result,
      answer: known === undefined ? undefined : Result.getOrUndefined(known),
      text: text?.text,
      verification: verified,
    }
  })
}

const driveOn = <A, R>(
  agent: Agent<A, R>,
  task: string,
  at: At,
): Effect.Effect<Loop.Ending<A> | Loop.Suspended, never, R> =>
  Trace.span(`invoke_agent ${agent.name}`, Span.of(agent, at), (span) =>
    Effect.gen(function* () {
      const machine = yield* prepare(agent, task, at)
      const { run, account } = at
      if (span.isOn) Span.begun(span, agent, task)
      begin(agent, machine, { ...at, trace: span.isOn ? span.address : undefined })
      // From its first line on a run can be gone on with.
      const loop = Effect.interruptible(Effect.andThen(run.log.flush, Loop.run(machine)))
      const corrects = Effect.tap(loop, () => corrected(machine))
      const fiber = yield* Effect.forkChild(corrects, { uninterruptible: true })
      run.started(account, fiber)
      const exit = yield* at.restore(Fiber.await(fiber)).pipe(
        Effect.onInterrupt(() => run.cancel(account)),
        Effect.exit,
      )
      const ended = Exit.isSuccess(exit) ? exit.value : yield* Fiber.await(fiber)
      if (Exit.isSuccess(ended) && ended.value._tag === "Suspended") {
        suspend(machine, at)
        span.attributes({ [Names.suspended]: true })
        yield* run.log.flush
        return ended.value
      }
      const ending = close(machine, ended as Exit.Exit<Loop.Ending<A>>, at)
      if (span.isOn) Span.ended(span, ending, { agent, at })
      if (isError(ending.reason, ending.result)) span.fail(`bursar.${ending.reason}`, sentenceOf(ending.reason))
      yield* run.log.flush
      if (Exit.isFailure(ended) && !Cause.hasInterruptsOnly(ended.cause)) return yield* ended
      return ending
    }),
  ).pipe(
    Effect.provideService(Trace.CurrentNode, { facts: Span.factsOf(agent, at), watch: at.run.watch }),
    Effect.provideService(CurrentRun, at),
  )

/** Before the account closes: what was assumed is put right where it can be. An end that was reached stays, whatever comes. */
const corrected = <A, R>(machine: Machine<A, R>): Effect.Effect<unknown, never, R> =>
  machine.stored.length === 0 ? Effect.void : Effect.exit(Effect.interruptible(Late.correct(machine)))

const prepare = <A, R>(agent: Agent<A, R>, task: string, at: At): Effect.Effect<Machine<A, R>, never, R> =>
  Effect.gen(function* () {
    const { run, account } = at
    const context = yield* Effect.context<R>()
    const machine: Machine<A, R> = Loop.prepare<A, R>({
      ...agent,
      run: run.id,
      epoch: run.epoch,
      agent: account,
      task,
      purse: { ledger: run.ledger, account },
      tools: yield* ToolSet.make(agent.tools),
      offered: agent.offered,
      delegate: delegateOf(agent, { run, account }, (child, opened, words) =>
        opening(child, opened, { run, words, context, untrusted: () => machine.state.control.untrusted }),
      ),
      effects: run.effects,
      permissions: yield* Permissions,
      record: run.log.record,
      freeze: (name, price, of) => run.freeze(account, { name, price, of }),
      flush: run.log.flush,
      whenOpen: run.whenOpen(account),
    })
    return machine
  })

/** Records the start, or takes up what an earlier process recorded. */
const begin = <A, R>(
  agent: Agent<A, R>,
  machine: Machine<A, R>,
  { run, account, untrusted, trace }: At & { readonly trace: Trace.Address | undefined },
): void => {
  const earlier = run.earlierOf(account)
  if (earlier.some(({ event }) => event._tag === "AgentStarted")) return machine.resume(earlier)
  machine.record({
    _tag: "AgentStarted",
    agent: account,
    name: agent.name,
    policy: agent.policy.name,
    task: Content.fromText(machine.task),
    constraints: agent.constraints,
    ...(agent.verifier === undefined ? {} : { acceptance: agent.verifier.name }),
    ...(untrusted === true ? { untrusted } : {}),
    ...(trace === undefined ? {} : { trace }),
  })
}

/** The account stands still with its agent, unless it was stopped from above meanwhile. */
const suspend = <A, R>(machine: Machine<A, R>, at: At): void => {
  const { run, account } = at
  run.ledger.pause(account, "waits for a person")
  run.suspended(account, (cause) => {
    run.ledger.freeze(account, cause.reason)
    return close(machine, Exit.succeed(Loop.interrupted(machine, cause)), at)
  })
}

/** Closes the books of an agent whose loop has ended, whichever way. */
const close = <A, R>(machine: Machine<A, R>, exit: Exit.Exit<Loop.Ending<A>>, at: At): Loop.Ending<A> => {
  const { run, account } = at
  // Children that stand still, and then those of an earlier process that nobody came to go on with.
  run.endSuspendedBelow(account)
  for (const { id } of run.ledger.childrenOf(account)) {
    endAgents(run, id, "cancelled")
    run.ledger.sweep(id, "cancelled")
  }
  const ending = Exit.isSuccess(exit) ? exit.value : Loop.interrupted(machine, whyInterrupted(exit.cause))
  const answer = ending.answer === undefined ? undefined : machine.answer.encode(ending.answer)
  const { steps } = machine.state.control
  run.log.record({
    _tag: "AgentEnded",
    agent: account,
    reason: ending.reason,
    result: ending.result,
    steps,
    overran: run.ledger.account(account).overran,
    stateDigest: machine.digest,
    ...(answer === undefined ? {} : { answer: Content.fromJson(answer) }),
    ...(ending.text === undefined ? {} : { text: Content.fromText(ending.text) }),
  })
  const { reason, result, detail } = ending
  const end = { agent: account, name: machine.name, reason, result, steps, detail }
  run.ended(account, end, machine.state.control.untrusted)
  closeAccount(run, account)
  return ending
}

const closeAccount = (run: Run, account: string): void => {
  Result.getOrThrowWith(run.ledger.close(account), (refusal) => {
    return new Error(`the account ${account} cannot close: ${Budget.describe(refusal)}`)
  })
}

/** A loop that breaks down is a defect; the books say so before it goes on. */
const whyInterrupted = (cause: Cause.Cause<never>): { readonly reason: StopReason; readonly detail: string } =>
  Cause.hasInterruptsOnly(cause)
    ? { reason: "cancelled", detail: "interrupted" }
    : { reason: "tool_error", detail: `the loop broke down: ${ToolSet.messageOfCause(cause)}` }

// --- children

/** A child with an open account, ready to run in the services of its parent; or one that has ended before. */
const opening = <R>(
  child: Agent<never, R>,
  account: string,
  from: {
    readonly run: Run
    readonly words: string
    readonly context: Context.Context<R>
    readonly untrusted: () => boolean
  },
): OpenedChild => ({
  account,
  run: (restore) =>
    drive(child, from.words, { run: from.run, account, restore, untrusted: from.untrusted() }).pipe(
      Effect.map((ending) => (ending._tag === "Suspended" ? ending : childResult(child, account, from.run, ending))),
      Effect.updateContext((current: Context.Context<never>) => Context.merge(from.context, current)),
    ),
  abandon: Effect.sync(() => {
    endAgents(from.run, account, "cancelled")
    from.run.ledger.freeze(account, "cancelled")
    from.run.ledger.sweep(account, "cancelled")
  }),
})
