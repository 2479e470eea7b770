/**
 * Runs the calls of one decision. What comes back is exactly one result for each call, in call order, whatever happens;
 * or, for a call that has to wait for a person, the question it waits for.
 *
 * In this order for each call: what `Prepare` asks (name, arguments, permission, receipt, preconditions, approval) -> hold
 * (`EBUDGET`) -> receipt and preconditions once more -> run under its own timeout and the deadline, as often as its
 * failures allow (`Attempts`) -> settle -> result.
 *
 * Calls are admitted in order before any of them runs. Reads and children run side by side; anything with an effect runs
 * in order, unless the caller says otherwise.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Content from "../event/Content.ts"
import type { Call } from "../event/Event.ts"
import type * as Trace from "../telemetry/Trace.ts"
import { admitAll } from "./Admit.ts"
import { endIn, giveBack, inSpan, type Told } from "./Batch.ts"
import { fileReceipt, isRepeatable, markOf, runAttempts, settleBegun, tooLate, type Unknown } from "./Attempts.ts"
import { type CallResult, cancelledReason, end, type Ending, failed, type Refused, refused } from "./CallResult.ts"
import { andThen, isDone } from "./Immediate.ts"
import { runChild } from "./RunChild.ts"
import { preconditions, prepareAll, stillUncertain } from "./Prepare.ts"
import type { Admitted, Batch, Concurrency, Prepared, Restore, Setting } from "./Setting.ts"
import { stopAndRequestHuman } from "./ToolError.ts"
import type { ToolFailure } from "./ToolSet.ts"

/** What became of the calls of a reply. */
export interface Executed {
  readonly results: ReadonlyArray<CallResult>
  /** The questions that calls without a result wait for; empty when every call has one. */
  readonly waitsFor: ReadonlyArray<string>
}

type OfTool = Extract<Admitted, { _tag: "Tool" }>

/**
 * Runs the calls of a decision. It is started where nothing can interrupt it, right after the calls were recorded, and
 * lets itself be interrupted through `restore`; every call has its result first.
 */
export const execute = (setting: Setting, calls: ReadonlyArray<Call>, restore: Restore): Effect.Effect<Executed> => {
  const batch: Batch = { setting, results: new Map(), waiting: new Map() }
  const run = Effect.suspend(() =>
    andThen(admitted(setting, calls, restore), (ready) =>
      Effect.onExit(restore(runAll(batch, ready)), (exit) => endUnstarted(batch, ready, Exit.isSuccess(exit))),
    ),
  )
  return Effect.flatMap(Effect.exit(run), (exit): Effect.Effect<Executed> => {
    if (Exit.isFailure(exit)) {
      endWithout(batch, calls)
      return Effect.failCause(exit.cause)
    }
    return Effect.succeed({
      results: calls.flatMap((call) => batch.results.get(call.call) ?? []),
      waitsFor: [...new Set([...batch.waiting.values()].flat())],
    })
  })
}

/** Prepares calls and admits them, in one go with seeing that the account does not stand still. */
const admitted = (
  setting: Setting,
  calls: ReadonlyArray<Call>,
  restore: Restore,
): Effect.Effect<ReadonlyArray<Admitted>> => {
  const admit = (prepared: ReadonlyArray<Prepared>): Effect.Effect<ReadonlyArray<Admitted>> =>
    isPaused(setting)
      ? Effect.andThen(
          restore(setting.whenOpen),
          Effect.suspend(() => admit(prepared)),
        )
      : Effect.succeed(admitAll(setting, prepared))
  const preparing = prepareAll(setting, calls)
  const prepared = isDone(preparing) ? preparing : restore(preparing)
  return setting.state.control.started.size === 0
    ? andThen(prepared, admit)
    : Effect.flatMap(
        Effect.flatMap(prepared, (all) => Effect.forEach(all, (one) => cleared(setting, one, restore))),
        admit,
      )
}

/** What became of a call that an earlier process began is found out before anything is held for it. */
const cleared = (setting: Setting, one: Prepared, restore: Restore): Effect.Effect<Prepared> =>
  one._tag === "Tool" && one.begun
    ? Effect.map(settleBegun(setting, one, restore), (known): Prepared => {
        if (known === undefined) return one
        const { call } = one
        return known._tag === "Unknown"
          ? { _tag: "Waiting", call, approval: known.approval }
          : { _tag: "Known", call, ending: known }
      })
    : Effect.succeed(one)

const isPaused = ({ purse: { ledger, account } }: Setting): boolean => ledger.account(account).state === "Paused"

/** Interrupted: what has no result yet gets one. */
const endWithout = (batch: Batch, calls: ReadonlyArray<Call>): void => {
  for (const call of calls) {
    if (!batch.results.has(call.call)) endIn(batch, call, withoutResult(batch.setting, call, cancelledReason))
  }
}

/** Ends calls that stand still. */
export const endOpen = (setting: Setting, calls: ReadonlyArray<Call>, reason: ToolFailure): void => {
  for (const call of calls) end(setting, call, withoutResult(setting, call, reason))
}

/** The end of a call without a result: one that had begun may have had its effect. */
const withoutResult = ({ state }: Setting, call: Call, reason: ToolFailure): Refused | Ending => {
  const begun = state.control.started.get(call.call)
  return begun === undefined ? refused(call, reason) : failed(reason, begun.mark)
}

/** Refuses calls without running them, each with its result. */
export const refuseAll = (setting: Setting, calls: ReadonlyArray<Call>, reason: ToolFailure): void => {
  for (const call of calls) end(setting, call, refused(call, reason))
}

// --- running

/** Segment by segment; after a fatal failure, or behind a call that stands still, no further one is started. */
const runAll = (batch: Batch, admitted: ReadonlyArray<Admitted>): Effect.Effect<void> => {
  const { concurrency } = batch.setting
  const run = (segment: ReadonlyArray<Admitted>) =>
    segment.length === 1
      ? runOne(batch, segment[0]!)
      : Effect.forEach(segment, (one) => runOne(batch, one), { concurrency: concurrency.calls, discard: true })
  const goesOn = () =>
    batch.waiting.size === 0 && ![...batch.results.values()].some(({ failure }) => failure?.class === "fatal")
  const [first, ...rest] = segments(admitted, concurrency)
  const begin = first === undefined ? Effect.void : run(first)
  return rest.length === 0
    ? begin
    : Effect.andThen(
        begin,
        Effect.forEach(rest, (segment) => Effect.suspend(() => (goesOn() ? run(segment) : Effect.void)), {
          discard: true,
        }),
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

const runOne = (batch: Batch, one: Admitted): Effect.Effect<void> => {
  switch (one._tag) {
    case "Refused":
      return endAtOnce(batch, one.call, one)
    case "Replay":
      return endAtOnce(batch, one.call, { _tag: "Replayed", receipt: one.receipt })
    case "Known":
      return endAtOnce(batch, one.call, one.ending)
    case "Tool":
      return runTool(batch, one)
    case "Child":
      return runChild(batch, one)
    case "Waiting":
      return Effect.sync(() => batch.waiting.set(one.call.call, [one.approval]))
    // Twins end with the call they stand for, and what comes later has not come yet.
    case "Twin":
    case "Later":
      return Effect.void
  }
}

/** A call that has its result without being run. A name that no tool has is the model's own word. */
const endAtOnce = (batch: Batch, call: Call, ended: Refused | Ending): Effect.Effect<void> => {
  const { delegate, tools } = batch.setting
  const isKnown = tools.has(call.tool) || delegate.names.has(call.tool)
  return inSpan(batch, call, { tool: isKnown ? call.tool : undefined }, () =>
    Effect.sync(() => void endIn(batch, call, ended)),
  )
}

const runTool = (batch: Batch, one: OfTool): Effect.Effect<void> =>
  Effect.uninterruptibleMask((restore) =>
    inSpan(batch, one.call, toldOf(one), (span) => {
      const { setting } = batch
      const ended =
        one.key === undefined ? toResult(batch, one, { restore, span }) : claimed(batch, one, { restore, span })
      return isPaused(setting) ? Effect.andThen(restore(setting.whenOpen), ended) : ended
    }),
  )

const toldOf = ({ call: { tool }, runnable: { contract } }: OfTool): Told => ({
  tool,
  effect: contract.effect,
  version: contract.version,
  reserve: "explore",
})

interface Way {
  readonly restore: Restore
  readonly span: Trace.TraceSpan
}

const toResult = (batch: Batch, one: OfTool, { restore, span }: Way): Effect.Effect<void> =>
  Effect.flatMap(Effect.exit(Effect.suspend(() => toEnd(batch, one, restore))), (exit) =>
    endTool(batch, one, { exit, span }),
  )

/** Runs a call under its key: not beside another call of that key, and not after one. Its result is on record first. */
const claimed = (batch: Batch, one: OfTool, way: Way): Effect.Effect<void> => {
  const { effects } = batch.setting
  const key = one.key!
  return Effect.flatMap(effects.claim(key, way.restore), (claim) => {
    if (claim._tag === "Claimed") {
      return Effect.ensuring(
        toResult(batch, one, way),
        Effect.sync(() => effects.release(key)),
      )
    }
    giveBack(batch, one)
    return Effect.sync(() => endIn(batch, one.call, { _tag: "Replayed", receipt: claim.receipt }))
  })
}

type Ended = Ending | Refused | Unknown

/** Records what a call came to, in one go with the note that it has a result. */
const endTool = (
  batch: Batch,
  one: OfTool,
  { exit, span }: { readonly exit: Exit.Exit<Ended>; readonly span: Trace.TraceSpan },
): Effect.Effect<void> => {
  if (Exit.isFailure(exit)) return exit
  const ended = exit.value
  if (ended._tag === "Unknown") {
    batch.waiting.set(one.call.call, [ended.approval])
    return Effect.void
  }
  const result = endIn(batch, one.call, ended)
  if (result.failure?.class === "fatal") span.fail("bursar.tool_error", "The tool failed fatally.")
  // What happened has to outlive the process, or it would happen again.
  return one.runnable.contract.effect === "read" ? Effect.void : batch.setting.flush
}

/** Runs a call whose hold is placed, where it still may. */
const toEnd = (batch: Batch, one: OfTool, restore: Restore): Effect.Effect<Ended> => {
  const { setting } = batch
  if (!isTooLate(setting)) {
    return one.runnable.contract.effect === "read"
      ? runAttempts(setting, one, restore)
      : effectToEnd(batch, one, restore)
  }
  giveBack(batch, one)
  // What had begun in an earlier process may have had its effect, and may not be finished any more.
  return Effect.succeed(
    one.begun ? failed(tooLate, isRepeatable(one) ? undefined : markOf(one)) : refused(one.call, tooLate),
  )
}

const isTooLate = ({ purse: { ledger, account } }: Setting): boolean => ledger.leftMillis(account, "explore") === 0

const effectToEnd = (batch: Batch, one: OfTool, restore: Restore): Effect.Effect<Ended> =>
  Effect.gen(function* (): Effect.fn.Return<Ended> {
    const { setting } = batch
    const known = one.begun ? undefined : (standsInTheWay(setting, one) ?? (yield* stillHolds(one, restore)))
    if (known !== undefined) {
      giveBack(batch, one)
      return known
    }
    const ended = yield* runAttempts(setting, one, restore)
    if (ended._tag === "Ok") fileReceipt(setting, one, ended)
    return ended
  })

/** A call like it in the same reply may have come to nothing that anybody knows of. */
const standsInTheWay = ({ effects }: Setting, one: OfTool): Ended | undefined => {
  if (isRepeatable(one)) return undefined
  const approval = effects.questionAbout(markOf(one))
  if (approval !== undefined) return { _tag: "Unknown", approval }
  return effects.isUncertain(markOf(one)) ? refused(one.call, stillUncertain) : undefined
}

/** The calls before it in the same reply may have changed what its preconditions look at. */
const stillHolds = (one: OfTool, restore: Restore): Effect.Effect<Refused | undefined> =>
  restore(preconditions(one)).pipe(
    Effect.as(undefined),
    Effect.catch((failure) => Effect.succeed<Refused | undefined>(refused(one.call, failure))),
  )

// --- what is left when a batch is over

/**
 * What did not start gives its hold or its account back. Where the calls stand still it stays without a result, to go on
 * later; else it was cancelled, or comes after a failure that ends the run.
 */
const endUnstarted = (batch: Batch, admitted: ReadonlyArray<Admitted>, completed: boolean): Effect.Effect<void> => {
  if (completed) endClosed(batch, admitted)
  const standsStill = completed && batch.waiting.size > 0
  const isOpen = (one: Admitted) => !batch.results.has(one.call.call) && !batch.waiting.has(one.call.call)
  return Effect.forEach(
    admitted.filter(isOpen),
    (one) =>
      Effect.gen(function* () {
        if (one._tag === "Tool") giveBack(batch, one)
        if (one._tag === "Child" && !(standsStill && one.started)) yield* one.child.abandon
        if (one._tag === "Twin") return endTwin(batch, one)
        if (one._tag === "Replay" || one._tag === "Known") {
          yield* runOne(batch, one)
          return
        }
        if (standsStill) batch.waiting.set(one.call.call, [])
        else endIn(batch, one.call, one._tag === "Refused" ? one : refused(one.call, cancelledReason))
      }),
    { discard: true },
  )
}

/** A child that stood still may have been ended meanwhile: then nobody waits for it. */
const endClosed = (batch: Batch, admitted: ReadonlyArray<Admitted>): void => {
  const { ledger } = batch.setting.purse
  for (const one of admitted) {
    if (one._tag !== "Child" || !batch.waiting.has(one.call.call)) continue
    const { account } = one.child
    if (ledger.account(account).state !== "Closed") continue
    batch.waiting.delete(one.call.call)
    endIn(batch, one.call, { ...failed({ code: "ESTOPPED", message: "the agent was cancelled" }), child: account })
  }
}

/** A twin has the result of the call it stands for, and waits where that one waits. */
const endTwin = (batch: Batch, { call, of }: Extract<Admitted, { _tag: "Twin" }>): void => {
  const first = batch.setting.state.session.turns.at(-1)?.observations.find((one) => one.call === of)
  if (first === undefined || first.outcome === "pending") {
    batch.waiting.set(call.call, batch.waiting.get(of) ?? [])
    return
  }
  if (first.error !== undefined) {
    const { code, message } = first.error
    endIn(batch, call, refused(call, { code, message }))
    return
  }
  const { resources, untrusted } = first
  const result = Content.fromJson(first.data ?? null)
  endIn(batch, call, {
    _tag: "Replayed",
    receipt: { call: `${batch.setting.agent} ${of}`, result, resources, untrusted },
  })
}

/** Whether a result asks for a person: then nothing goes on without one. */
export const asksForPerson = ({ failure }: CallResult): boolean => failure?.suggestedAction === stopAndRequestHuman
