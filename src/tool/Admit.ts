/**
 * Admitting the calls of a reply, in order, while the budget lasts. Children of one reply are carved together, from what
 * the other calls leave.
 */
import * as Result from "effect/Result"
import { describe, type Hold, type Ledger, type Refusal } from "../budget/Budget.ts"
import type { Call } from "../event/Event.ts"
import { refused } from "./CallResult.ts"
import { inEpoch } from "./Epoch.ts"
import type { Admitted, Prepared, Ready, Setting } from "./Setting.ts"

/** Every call with its hold, its account or its refusal. Those that stand still or wait behind one hold nothing. */
export const admitAll = (setting: Setting, prepared: ReadonlyArray<Prepared>): ReadonlyArray<Admitted> => {
  const { ledger, account } = setting.purse
  const tasks: Array<Extract<Prepared, { _tag: "Task" }>> = []
  const admitted = new Map<string, Admitted>()
  for (const one of prepared) {
    const { call } = one
    if (one._tag === "Started") admitted.set(call.call, { _tag: "Child", call, child: one.child, started: true })
    else if (one._tag !== "Tool" && one._tag !== "Task") admitted.set(call.call, one)
    else if (!hasRoom(ledger, account, tasks.length)) admitted.set(call.call, outOfCalls(call))
    else if (one._tag === "Task") tasks.push(one)
    else admitted.set(call.call, hold(setting, one))
  }
  if (tasks.length === 0) return prepared.map((one) => admitted.get(one.call.call)!)
  const room = keepRoom(setting, prepared)
  const opened = setting.delegate.openAll(tasks.map(({ call, task }) => ({ call: call.call, tool: call.tool, task })))
  for (const one of room) Result.getOrThrow(ledger.void(one))
  tasks.forEach(({ call }, index) => {
    const result = opened[index]!
    admitted.set(
      call.call,
      Result.isSuccess(result)
        ? { _tag: "Child", call, child: result.success, started: false }
        : outOfBudget(call, result.failure),
    )
  })
  return prepared.map((one) => admitted.get(one.call.call)!)
}

/** Holds, while children are carved, what calls will need that stand still now. */
const keepRoom = (setting: Setting, prepared: ReadonlyArray<Prepared>): ReadonlyArray<Hold> => {
  const { ledger, account } = setting.purse
  return prepared.flatMap((one) => {
    if (one._tag !== "Waiting" && one._tag !== "Later") return []
    const money = setting.tools.get(one.call.tool)?.contract.costNanoUsd ?? 0
    const id = inEpoch(`${one.call.call}/room`, setting.epoch)
    return Result.getOrElse(
      Result.map(ledger.hold({ account, id }, "explore", { toolCalls: 1, money }), (hold) => [hold]),
      () => [],
    )
  })
}

/** Whether one more call fits beside the starts of children that are already admitted. */
const hasRoom = (ledger: Ledger, account: string, promised: number): boolean => {
  const left = ledger.reachable(account, "explore").toolCalls
  return left === undefined || left > promised
}

const outOfCalls = (call: Call): Admitted =>
  refused(call, { code: "EBUDGET", message: "no tool call is left in the budget" }, ["toolCalls"])

const outOfBudget = (call: Call, reason: Refusal): Admitted => {
  const short = reason._tag === "Insufficient" ? reason.shortages.map((shortage) => shortage.dimension) : []
  return refused(call, { code: "EBUDGET", message: describe(reason) }, short)
}

const hold = (setting: Setting, one: Ready): Admitted => {
  const { ledger, account } = setting.purse
  const amounts = { toolCalls: 1, money: one.runnable.contract.costNanoUsd }
  const placed = ledger.hold({ account, id: inEpoch(one.call.call, setting.epoch) }, "explore", amounts)
  return Result.isSuccess(placed) ? { ...one, hold: placed.success } : outOfBudget(one.call, placed.failure)
}
