/**
 * Runs the calls of one decision. What comes back is exactly one result for each call, in call order, whatever happens.
 *
 * In this order for each call: known name (`ENOTOOL`) -> arguments (`EINVAL`) -> hold (`EBUDGET`) -> run under its own
 * timeout and the deadline (`ETIMEDOUT`) -> settle -> result. Scope, approval and preconditions will stand between the
 * arguments and the hold, the idempotency ledger between the hold and the run.
 *
 * Calls are admitted in order before any of them runs. Reads and children run side by side; anything with an effect runs
 * in order, unless the caller says otherwise.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import { describe, type Hold, type Ledger, type Purse, type Refusal, type Settlement } from "../budget/Budget.ts"
import * as Content from "../event/Content.ts"
import type { Call, Event } from "../event/Event.ts"
import * as Names from "../telemetry/Names.ts"
import * as Trace from "../telemetry/Trace.ts"
import {
  type CallResult,
  cancelledReason,
  codeOf,
  end,
  type Ended,
  interrupted,
  outcomeWord,
  type Refused,
  refused,
  resultOf,
} from "./CallResult.ts"
import type { Runnable, ToolFailure, ToolSet } from "./ToolSet.ts"

/** What a child agent brought back. */
export interface ChildResult {
  readonly child: string
  readonly outcome: "ok" | "error"
  readonly data: unknown
  readonly error: ToolFailure | undefined
}

/** Lets the interruption of the caller in where the work can be interrupted. */
export type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** A child whose account is open and which has not started yet. */
export interface OpenedChild {
  readonly account: string
  /**
   * Runs the child to its end and closes its account. It is started where nothing can interrupt it and lets itself be
   * interrupted through `restore`; then too it ends with a result.
   */
  readonly run: (restore: Restore) => Effect.Effect<ChildResult>
  /** Closes the account of a child that was never started. */
  readonly abandon: Effect.Effect<void>
}

/**
 * Opens children for calls. Provided by the room of agents; here only its shape is known.
 */
export interface Delegate {
  readonly names: ReadonlySet<string>
  /** Decodes the arguments of a child's call into its task. */
  readonly decode: (tool: string, params: unknown) => Effect.Effect<string, ToolFailure>
  /** Carves accounts for a batch, at once; each is either open or refused. */
  readonly openAll: (
    batch: ReadonlyArray<{ readonly call: string; readonly tool: string; readonly task: string }>,
  ) => ReadonlyArray<Result.Result<OpenedChild, Refusal>>
}

/** Everything the executor needs to know of the agent whose calls it runs. */
export interface Setting {
  readonly agent: string
  readonly step: number
  readonly purse: Purse
  readonly tools: ToolSet
  readonly delegate: Delegate
  readonly record: (event: Event) => void
  readonly flush: Effect.Effect<void>
  readonly concurrency: Concurrency
}

/** How calls of one reply run: how many at a time, and whether effects wait for each other. */
export interface Concurrency {
  readonly calls: number
  readonly effects: "ordered" | "concurrent"
}

/** A call on its way: refused with a result, or admitted with its hold or its open child. */
type Admitted =
  | Refused
  | {
      readonly _tag: "Tool"
      readonly call: Call
      readonly runnable: Runnable
      readonly params: unknown
      readonly hold: Hold
    }
  | { readonly _tag: "Child"; readonly call: Call; readonly child: OpenedChild }

type Prepared =
  | Refused
  | { readonly _tag: "Tool"; readonly call: Call; readonly runnable: Runnable; readonly params: unknown }
  | { readonly _tag: "Task"; readonly call: Call; readonly task: string }

/** The calls of one decision, and the results they have had so far. */
interface Batch {
  readonly setting: Setting
  readonly results: Map<string, CallResult>
}

/** Records the one result of a call, in one go with the note that it has one. */
const endIn = ({ setting, results }: Batch, ended: Parameters<typeof end>[1]): CallResult => {
  const result = end(setting, ended)
  results.set(ended.call.call, result)
  return result
}

/**
 * Runs the calls of a decision. It is started where nothing can interrupt it, right after the calls were recorded, and
 * lets itself be interrupted through `restore`; every call has its result first.
 */
export const execute = (
  setting: Setting,
  calls: ReadonlyArray<Call>,
  restore: Restore,
): Effect.Effect<ReadonlyArray<CallResult>> =>
  Effect.suspend(() => {
    const batch: Batch = { setting, results: new Map() }
    return restore(Effect.forEach(calls, (call) => prepare(setting, call))).pipe(
      Effect.flatMap((prepared) => {
        const admitted = admit(setting, prepared)
        return restore(runAll(batch, admitted)).pipe(Effect.onExit(() => endUnstarted(batch, admitted)))
      }),
      Effect.onExit(() => Effect.sync(() => endWithout(batch, calls))),
      Effect.map(() => calls.map((call) => batch.results.get(call.call)!)),
    )
  })

/** Interrupted before they were looked at: nothing is held for them yet. */
const endWithout = (batch: Batch, calls: ReadonlyArray<Call>): void => {
  for (const call of calls) if (!batch.results.has(call.call)) endIn(batch, refused(call, cancelledReason))
}

/** Refuses calls without running them, each with its result. */
export const refuseAll = (
  setting: Setting,
  calls: ReadonlyArray<Call>,
  reason: { readonly code: string; readonly message: string },
): void => {
  for (const call of calls) end(setting, refused(call, reason))
}

// --- before anything runs

const prepare = (setting: Setting, call: Call): Effect.Effect<Prepared> => {
  const params = Content.toJson(call.params)
  const fail = (failure: ToolFailure): Prepared => refused(call, failure)
  if (setting.delegate.names.has(call.tool)) {
    return setting.delegate
      .decode(call.tool, params)
      .pipe(Effect.match({ onFailure: fail, onSuccess: (task): Prepared => ({ _tag: "Task", call, task }) }))
  }
  const runnable = setting.tools.get(call.tool)
  if (runnable === undefined) {
    const known = [...setting.tools.keys(), ...setting.delegate.names].join(", ")
    return Effect.succeed(
      refused(call, { code: "ENOTOOL", message: `there is no tool ${call.tool}; there are: ${known}` }),
    )
  }
  return runnable.decode(params).pipe(
    Effect.match({
      onFailure: fail,
      onSuccess: (decoded): Prepared => ({ _tag: "Tool", call, runnable, params: decoded }),
    }),
  )
}

/** Admits in order while it fits. Children of one reply are carved together, from what the other calls leave. */
const admit = (setting: Setting, prepared: ReadonlyArray<Prepared>): ReadonlyArray<Admitted> => {
  const { ledger, account } = setting.purse
  const tasks: Array<Extract<Prepared, { _tag: "Task" }>> = []
  const admitted = new Map<string, Admitted>()
  for (const one of prepared) {
    if (one._tag === "Refused") admitted.set(one.call.call, one)
    else if (!hasRoom(ledger, account, tasks.length)) admitted.set(one.call.call, outOfCalls(one.call))
    else if (one._tag === "Task") tasks.push(one)
    else admitted.set(one.call.call, hold(setting, one))
  }
  const opened = setting.delegate.openAll(tasks.map(({ call, task }) => ({ call: call.call, tool: call.tool, task })))
  tasks.forEach(({ call }, index) => {
    const result = opened[index]!
    admitted.set(
      call.call,
      Result.isSuccess(result) ? { _tag: "Child", call, child: result.success } : outOfBudget(call, result.failure),
    )
  })
  return prepared.map((one) => admitted.get(one.call.call)!)
}

/** Whether one more call fits beside the starts of children that are already admitted. */
const hasRoom = (ledger: Ledger, account: string, promised: number): boolean => {
  const left = ledger.reachable(account, "explore").toolCalls
  return left === undefined || left > promised
}

const outOfCalls = (call: Call): Admitted =>
  refused(call, { code: "EBUDGET", message: "no tool call is left in the budget", short: ["toolCalls"] })

const outOfBudget = (call: Call, reason: Refusal): Admitted =>
  refused(call, {
    code: "EBUDGET",
    message: describe(reason),
    short: reason._tag === "Insufficient" ? reason.shortages.map((shortage) => shortage.dimension) : [],
  })

const hold = (setting: Setting, one: Extract<Prepared, { _tag: "Tool" }>): Admitted => {
  const { ledger, account } = setting.purse
  const amounts = { toolCalls: 1, money: one.runnable.contract.costNanoUsd }
  const placed = ledger.hold({ account, id: one.call.call }, "explore", amounts)
  return Result.isSuccess(placed) ? { ...one, hold: placed.success } : outOfBudget(one.call, placed.failure)
}

// --- running

/** Segment by segment; after a fatal failure no further one is started. */
const runAll = (batch: Batch, admitted: ReadonlyArray<Admitted>): Effect.Effect<void> => {
  const { concurrency, flush } = batch.setting
  const run = (segment: ReadonlyArray<Admitted>) =>
    Effect.forEach(segment, (one) => runOne(batch, one), { concurrency: concurrency.calls, discard: true })
  const isFatal = () => [...batch.results.values()].some((result) => result.code === "EFATAL")
  return Effect.forEach(
    segments(admitted, concurrency),
    (segment) => Effect.suspend(() => (isFatal() ? Effect.void : Effect.andThen(flush, run(segment)))),
    { discard: true },
  )
}

/** Runs of calls that may go side by side; a call with an effect stands alone. */
const segments = (
  admitted: ReadonlyArray<Admitted>,
  concurrency: Concurrency,
): ReadonlyArray<ReadonlyArray<Admitted>> => {
  if (concurrency.effects === "concurrent") return [admitted]
  const groups: Array<Array<Admitted>> = []
  let open = false
  for (const one of admitted) {
    const alone = one._tag === "Tool" && one.runnable.contract.effect !== "read"
    if (open && !alone) groups.at(-1)!.push(one)
    else groups.push([one])
    open = !alone
  }
  return groups
}

const runOne = (batch: Batch, one: Admitted): Effect.Effect<CallResult> => {
  switch (one._tag) {
    case "Refused":
      return Effect.sync(() => endIn(batch, one))
    case "Tool":
      return runTool(batch, one)
    case "Child":
      return runChild(batch, one)
  }
}

const runTool = (batch: Batch, one: Extract<Admitted, { _tag: "Tool" }>): Effect.Effect<CallResult> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.suspend(() => {
      const { setting } = batch
      const { agent, step, purse } = setting
      const { contract } = one.runnable
      const left = purse.ledger.leftMillis(purse.account, "explore")
      if (left === 0) return Effect.sync(() => giveBack(batch, one, tooLate))
      setting.record({ _tag: "CallStarted", agent, step, call: one.call.call, tool: one.call.tool })
      const limit = Math.min(contract.timeoutMillis, left ?? Infinity)
      const timedOut: ToolFailure = { code: "ETIMEDOUT", message: `no result within ${limit} ms` }
      return inSpan(one.call, contract.effect, (span) =>
        restore(
          one.runnable
            .run(one.params, one.call.call)
            .pipe(Effect.timeoutOrElse({ duration: limit, orElse: () => Effect.fail(timedOut) })),
        ).pipe(
          Effect.exit,
          Effect.flatMap((exit) => {
            settle(purse.ledger, one.hold, exit)
            const result = endIn(batch, { ...resultOf(exit), call: one.call, stateChanged: contract.effect !== "read" })
            span.attributes({ [Names.toolOutcome]: outcomeWord(result) })
            if (result.code === "EFATAL") span.fail("bursar.tool_error", "The tool failed fatally.")
            return Effect.succeed(result)
          }),
        ),
      )
    }),
  )

const tooLate = { code: "EBUDGET", message: "the time for exploring has passed" } as const

/** Ends a call that was admitted and not started. */
const giveBack = (
  batch: Batch,
  one: Extract<Admitted, { _tag: "Tool" }>,
  reason: { readonly code: string; readonly message: string },
): CallResult => {
  Result.getOrThrowWith(batch.setting.purse.ledger.void(one.hold), lawBroken)
  return endIn(batch, refused(one.call, reason))
}

/** A started attempt costs its call. What it cost in money is known only if it came to an end. */
const settle = (ledger: Ledger, hold: Hold, exit: Exit.Exit<unknown, ToolFailure>): Settlement | undefined => {
  const unknown = interrupted(exit) || codeOf(exit) === "ETIMEDOUT"
  if (unknown) Result.getOrThrowWith(ledger.assume(hold), lawBroken)
  return unknown ? undefined : Result.getOrThrowWith(ledger.settle(hold, hold.amounts), lawBroken)
}

const lawBroken = (refusal: Refusal): Error => new Error(`the hold of a call could not be resolved: ${refusal._tag}`)

const runChild = (batch: Batch, one: Extract<Admitted, { _tag: "Child" }>): Effect.Effect<CallResult> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.suspend(() => {
      const { agent, step, record } = batch.setting
      record({ _tag: "CallStarted", agent, step, call: one.call.call, tool: one.call.tool })
      return inSpan(one.call, undefined, (span) =>
        one.child.run(restore).pipe(
          Effect.exit,
          Effect.map((exit) => {
            const ended = childResultOf(exit)
            const { account } = one.child
            const result = endIn(batch, { ...ended, call: one.call, stateChanged: false, child: account })
            span.attributes({ [Names.toolOutcome]: outcomeWord(result) })
            if (result.code === "EFATAL") span.fail("bursar.tool_error", "The child agent broke down.")
            return result
          }),
        ),
      )
    }),
  )

/** A child that breaks down has closed its books; for its parent it is a tool that failed fatally. */
const childResultOf = (exit: Exit.Exit<ChildResult>): Ended => {
  if (Exit.isSuccess(exit)) {
    const { outcome, data, error } = exit.value
    return { outcome, data, failure: error, ran: true }
  }
  return { outcome: "error", data: undefined, failure: { code: "EFATAL", message: "the agent broke down" }, ran: true }
}

const inSpan = <A>(
  call: Call,
  effect: string | undefined,
  use: (span: Trace.TraceSpan) => Effect.Effect<A>,
): Effect.Effect<A> =>
  Trace.span(
    `execute_tool ${call.tool}`,
    {
      attributes: {
        [Names.operation]: "execute_tool",
        [Names.toolName]: call.tool,
        [Names.toolCallId]: call.call,
        [Names.toolType]: "function",
        ...(effect === undefined ? {} : { [Names.toolEffect]: effect }),
      },
    },
    use,
  )

/** What did not start gives its hold or its account back and gets its result. */
const endUnstarted = (batch: Batch, admitted: ReadonlyArray<Admitted>): Effect.Effect<void> =>
  Effect.forEach(
    admitted.filter((one) => !batch.results.has(one.call.call)),
    (one) => {
      switch (one._tag) {
        case "Refused":
          return Effect.sync(() => endIn(batch, one))
        case "Child":
          return Effect.map(one.child.abandon, () => endIn(batch, refused(one.call, cancelledReason)))
        case "Tool":
          return Effect.sync(() => giveBack(batch, one, cancelledReason))
      }
    },
    { discard: true },
  )
