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
import type * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import { describe, type Hold, type Ledger, type Purse, type Refusal, type Settlement } from "../budget/Budget.ts"
import * as Content from "../event/Content.ts"
import type { Call, Event } from "../event/Event.ts"
import * as Names from "../telemetry/Names.ts"
import * as Trace from "../telemetry/Trace.ts"
import {
  type CallResult,
  cancelled,
  cancelledReason,
  codeOf,
  end,
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

/** A child whose account is open and which has not started yet. */
export interface OpenedChild {
  readonly account: string
  /** Runs the child to its end and closes its account, also when interrupted. */
  readonly run: Effect.Effect<ChildResult>
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

/** Runs the calls of a decision. Interruption gives every call its result first. */
export const execute = (setting: Setting, calls: ReadonlyArray<Call>): Effect.Effect<ReadonlyArray<CallResult>> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const prepared = yield* restore(Effect.forEach(calls, (call) => prepare(setting, call)))
      const admitted = admit(setting, prepared)
      const results = new Map<string, CallResult>()
      yield* restore(runAll(setting, admitted, results)).pipe(
        Effect.onExit(() => endUnstarted(setting, admitted, results)),
      )
      return calls.map((call) => results.get(call.call)!)
    }),
  )

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

const runAll = (
  setting: Setting,
  admitted: ReadonlyArray<Admitted>,
  results: Map<string, CallResult>,
): Effect.Effect<void> =>
  Effect.forEach(
    segments(admitted, setting.concurrency),
    (segment) =>
      Effect.andThen(
        setting.flush,
        Effect.forEach(
          segment,
          (one) => Effect.map(runOne(setting, one), (result) => results.set(one.call.call, result)),
          { concurrency: setting.concurrency.calls, discard: true },
        ),
      ),
    { discard: true },
  )

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

const runOne = (setting: Setting, one: Admitted): Effect.Effect<CallResult> => {
  switch (one._tag) {
    case "Refused":
      return Effect.sync(() => end(setting, one))
    case "Tool":
      return runTool(setting, one)
    case "Child":
      return runChild(setting, one)
  }
}

const runTool = (setting: Setting, one: Extract<Admitted, { _tag: "Tool" }>): Effect.Effect<CallResult> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.suspend(() => {
      const { agent, step, purse } = setting
      const { contract } = one.runnable
      setting.record({ _tag: "CallStarted", agent, step, call: one.call.call, tool: one.call.tool })
      const left = purse.ledger.leftMillis(purse.account, "explore")
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
            const result = end(setting, { ...resultOf(exit), call: one.call, stateChanged: contract.effect !== "read" })
            span.attributes({ [Names.toolOutcome]: outcomeWord(result) })
            if (result.code === "EFATAL") span.fail("bursar.tool_error", "The tool failed fatally.")
            return Effect.succeed(result)
          }),
        ),
      )
    }),
  )

/** A started attempt costs its call. What it cost in money is known only if it came to an end. */
const settle = (ledger: Ledger, hold: Hold, exit: Exit.Exit<unknown, ToolFailure>): Settlement | undefined => {
  const unknown = interrupted(exit) || codeOf(exit) === "ETIMEDOUT"
  if (unknown) Result.getOrThrowWith(ledger.assume(hold), lawBroken)
  return unknown ? undefined : Result.getOrThrowWith(ledger.settle(hold, hold.amounts), lawBroken)
}

const lawBroken = (refusal: Refusal): Error => new Error(`the hold of a call could not be resolved: ${refusal._tag}`)

const runChild = (setting: Setting, one: Extract<Admitted, { _tag: "Child" }>): Effect.Effect<CallResult> =>
  Effect.suspend(() => {
    const { agent, step } = setting
    setting.record({ _tag: "CallStarted", agent, step, call: one.call.call, tool: one.call.tool })
    return inSpan(one.call, undefined, (span) =>
      one.child.run.pipe(
        Effect.map((child) => {
          const ended = { outcome: child.outcome, data: child.data, failure: child.error, ran: true }
          span.attributes({ [Names.toolOutcome]: child.outcome })
          return end(setting, { ...ended, call: one.call, stateChanged: false, child: child.child })
        }),
        Effect.onInterrupt(() =>
          Effect.sync(() =>
            end(setting, { ...cancelled, ran: true, call: one.call, stateChanged: false, child: one.child.account }),
          ),
        ),
      ),
    )
  })

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
const endUnstarted = (
  setting: Setting,
  admitted: ReadonlyArray<Admitted>,
  results: ReadonlyMap<string, CallResult>,
): Effect.Effect<void> =>
  Effect.forEach(
    admitted.filter((one) => !results.has(one.call.call)),
    (one) => {
      const { ledger, account } = setting.purse
      if (one._tag === "Refused") return Effect.sync(() => end(setting, one))
      if (one._tag === "Child") {
        if (ledger.account(one.child.account).state === "Closed") return Effect.void
        return Effect.andThen(
          one.child.abandon,
          Effect.sync(() => end(setting, refused(one.call, cancelledReason))),
        )
      }
      const pending = ledger.pendingHolds(account).some((hold) => hold.id === one.hold.id)
      if (!pending) return Effect.void
      Result.getOrThrowWith(ledger.void(one.hold), lawBroken)
      return Effect.sync(() => end(setting, refused(one.call, cancelledReason)))
    },
    { discard: true },
  )
