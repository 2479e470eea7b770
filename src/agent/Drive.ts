/**
 * Running one agent whose account is open: fiber, account, deadline and span end together, on every exit.
 *
 * The loop runs in a fiber of its own, so that cancelling it still yields an outcome. On interruption the subtree is
 * frozen first, then the loop is interrupted; children live inside the loop and are gone before the account closes, so
 * accounts close leaves first and root last.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Budget from "../budget/Budget.ts"
import * as Content from "../event/Content.ts"
import { dimensionOf, isError, sentenceOf, type StopReason } from "../event/StopReason.ts"
import * as Loop from "../loop/Loop.ts"
import type { Machine } from "../loop/Machine.ts"
import * as Names from "../telemetry/Names.ts"
import * as Trace from "../telemetry/Trace.ts"
import type { ChildResult, OpenedChild, Restore } from "../tool/Executor.ts"
import * as ToolSet from "../tool/ToolSet.ts"
import { delegateOf } from "./Children.ts"
import type { Agent } from "./Definition.ts"
import type { Run } from "./Run.ts"

/**
 * Runs an agent to its end and closes its account.
 *
 * It must start in the region that opened the account, and that region must not be interruptible: nothing may come
 * between an open account and the one who closes it. Only the wait for the end is interruptible, through `restore`.
 */
export const drive = <A, R>(
  agent: Agent<A, R>,
  task: string,
  at: { readonly run: Run; readonly account: string; readonly restore: Restore },
): Effect.Effect<Loop.Ending<A>, never, R> =>
  Trace.span(`invoke_agent ${agent.name}`, { attributes: atStart(agent, at) }, (span) =>
    Effect.gen(function* () {
      const machine = yield* prepare(agent, task, at)
      const { run, account } = at
      run.log.record({
        _tag: "AgentStarted",
        agent: account,
        name: agent.name,
        policy: agent.policy.name,
        task: Content.fromText(task),
      })
      const fiber = yield* Effect.forkChild(Effect.interruptible(Loop.run(machine)))
      run.started(account, fiber)
      const exit = yield* at.restore(Fiber.await(fiber)).pipe(
        Effect.onInterrupt(() => run.cancel(account)),
        Effect.exit,
      )
      const ended = Exit.isSuccess(exit) ? exit.value : yield* Fiber.await(fiber)
      const ending = close(machine, ended, at)
      span.attributes(atEnd(ending, at))
      if (isError(ending.reason, ending.result)) span.fail(`bursar.${ending.reason}`, sentenceOf(ending.reason))
      yield* run.log.flush
      if (Exit.isFailure(ended) && !Cause.hasInterruptsOnly(ended.cause)) return yield* ended
      return ending
    }),
  ).pipe(Effect.provideService(Trace.Facts, factsOf(agent, at)))

const prepare = <A, R>(
  agent: Agent<A, R>,
  task: string,
  at: { readonly run: Run; readonly account: string },
): Effect.Effect<Machine<A, R>, never, R> =>
  Effect.gen(function* () {
    const { run, account } = at
    const context = yield* Effect.context<R>()
    return Loop.prepare<A, R>({
      ...agent,
      agent: account,
      task,
      purse: { ledger: run.ledger, account },
      tools: yield* ToolSet.make(agent.tools),
      offered: [...agent.tools, ...agent.children.map((child) => child.tool)],
      delegate: delegateOf(agent, { run, account }, (child, opened, words) =>
        opening(child, opened, { run, words, context }),
      ),
      record: run.log.record,
      flush: run.log.flush,
    })
  })

/** Closes the books of an agent whose loop has ended, whichever way. */
const close = <A, R>(
  machine: Machine<A, R>,
  exit: Exit.Exit<Loop.Ending<A>>,
  at: { readonly run: Run; readonly account: string },
): Loop.Ending<A> => {
  const { run, account } = at
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
    ...(answer === undefined ? {} : { answer: Content.fromJson(answer) }),
  })
  run.ended(account, {
    agent: account,
    name: machine.name,
    reason: ending.reason,
    result: ending.result,
    steps,
    detail: ending.detail,
  })
  Result.getOrThrowWith(run.ledger.close(account), (refusal) => {
    return new Error(`the account ${account} cannot close: ${Budget.describe(refusal)}`)
  })
  return ending
}

/** A loop that breaks down is a defect; the books say so before it goes on. */
const whyInterrupted = (cause: Cause.Cause<never>): { readonly reason: StopReason; readonly detail: string } =>
  Cause.hasInterruptsOnly(cause)
    ? { reason: "cancelled", detail: "interrupted" }
    : { reason: "tool_error", detail: `the loop broke down: ${ToolSet.messageOfCause(cause)}` }

// --- children

/** A child with an open account, ready to run in the services of its parent. */
const opening = <R>(
  child: Agent<never, R>,
  account: string,
  from: { readonly run: Run; readonly words: string; readonly context: Context.Context<R> },
): OpenedChild => ({
  account,
  run: (restore) =>
    drive(child, from.words, { run: from.run, account, restore }).pipe(
      Effect.map((ending) => childResult(child, account, ending)),
      Effect.updateContext((current: Context.Context<never>) => Context.merge(from.context, current)),
    ),
  abandon: Effect.sync(() => {
    from.run.ledger.freeze(account, "cancelled")
    Result.getOrThrow(from.run.ledger.close(account))
  }),
})

const childResult = <R>(child: Agent<never, R>, account: string, ending: Loop.Ending<never>): ChildResult => {
  const encoded = ending.answer === undefined ? undefined : child.answer.encode(ending.answer)
  const answer = encoded === undefined ? {} : { answer: encoded }
  const text = ending.text === undefined ? {} : { text: ending.text }
  if (ending.reason === "completed") {
    return { child: account, outcome: "ok", data: { status: "completed", ...answer }, error: undefined }
  }
  if (ending.result === "partial") {
    const data = { status: "stopped", reason: ending.reason, ...answer, ...text }
    return { child: account, outcome: "ok", data, error: undefined }
  }
  const message = `${child.name} stopped without a result: ${ending.reason}. ${sentenceOf(ending.reason)}`
  return { child: account, outcome: "error", data: undefined, error: { code: "ESTOPPED", message } }
}

// --- the span

const factsOf = <A, R>(agent: Agent<A, R>, at: { readonly run: Run; readonly account: string }) => {
  const account = at.run.ledger.account(at.account)
  return {
    [Names.runId]: at.run.id,
    [Names.nodeId]: account.id,
    [Names.nodePath]: account.path,
    [Names.nodeDepth]: account.depth,
    [Names.agentName]: agent.name,
  }
}

const atStart = <A, R>(
  agent: Agent<A, R>,
  at: { readonly run: Run; readonly account: string },
): Readonly<Record<string, unknown>> => {
  const account = at.run.ledger.account(at.account)
  const grant = Budget.granted(account)
  const limits = Budget.dimensions.filter((d) => account.caps[d]).map((d) => [Names.budget(d, "limit"), grant[d]])
  const left = at.run.ledger.leftMillis(account.id, "output")
  return {
    [Names.operation]: "invoke_agent",
    [Names.agentId]: account.id,
    [Names.uncapped]: Budget.dimensions.filter((d) => !account.caps[d]),
    ...Object.fromEntries(limits),
    ...(account.parent === undefined ? {} : { [Names.reserve]: account.parent.reserve }),
    ...(left === undefined ? {} : { [Names.deadlineRemaining]: left }),
    "bursar.policy": agent.policy.name,
  }
}

const atEnd = <A>(
  ending: Loop.Ending<A>,
  at: { readonly run: Run; readonly account: string },
): Readonly<Record<string, unknown>> => {
  const account = at.run.ledger.account(at.account)
  const [own, tree, left] = [Budget.ownUsed(account), Budget.used(account), Budget.unused(account)]
  const dimension = dimensionOf(ending.reason)
  const perDimension = Budget.dimensions.flatMap((d) => [
    [Names.used(d, "own"), own[d]],
    [Names.used(d, "tree"), tree[d]],
    ...(account.caps[d] ? [[Names.budget(d, "refunded"), left[d]]] : []),
    ...(account.debt[d] > 0 ? [[Names.budget(d, "debt"), account.debt[d]]] : []),
  ])
  return {
    [Names.stopReason]: ending.reason,
    [Names.result]: ending.result,
    ...(dimension === undefined ? {} : { [Names.stopDimension]: dimension }),
    ...(account.overran ? { [Names.overrun]: true } : {}),
    ...Object.fromEntries(perDimension),
  }
}
