/**
 * Results of calls: from what a tool, a child or a refusal came to, to the one event that ends the call.
 */
import * as Cause from "effect/Cause"
import * as Exit from "effect/Exit"
import { dimensions } from "../budget/Budget.ts"
import * as Content from "../event/Content.ts"
import type { Call, Event } from "../event/Event.ts"
import type { ToolFailure } from "./ToolSet.ts"

/** What became of a call. */
export interface CallResult {
  readonly call: Call
  readonly outcome: "ok" | "error"
  readonly code: string | undefined
  readonly message: string | undefined
  /** False when it was refused before it ran. */
  readonly ran: boolean
  /** The dimensions that were short, when it was refused for the budget. */
  readonly short: ReadonlyArray<string>
}

/** A call that was refused before it ran. */
export interface Refused {
  readonly _tag: "Refused"
  readonly call: Call
  readonly code: string
  readonly message: string
  readonly short: ReadonlyArray<string>
}

/** Where the end of a call is recorded. */
export interface Place {
  readonly agent: string
  readonly step: number
  readonly record: (event: Event) => void
}

export const refused = (
  call: Call,
  reason: { readonly code: string; readonly message: string; readonly short?: ReadonlyArray<string> },
): Refused => ({ _tag: "Refused", call, short: [], ...reason })

export const cancelledReason = { code: "ECANCELLED", message: "cancelled" } as const

export interface Ended {
  readonly outcome: "ok" | "error"
  readonly data: unknown
  readonly failure: ToolFailure | undefined
  readonly ran: boolean
}

export const cancelled: Ended = { outcome: "error", data: undefined, failure: cancelledReason, ran: true }

export const resultOf = (exit: Exit.Exit<unknown, ToolFailure>): Ended => {
  if (Exit.isSuccess(exit)) return { outcome: "ok", data: exit.value, failure: undefined, ran: true }
  if (interrupted(exit)) return cancelled
  const failed = exit.cause.reasons.find(Cause.isFailReason)
  const failure = failed?.error ?? { code: "EFATAL", message: "the tool broke down" }
  return { outcome: "error", data: undefined, failure, ran: true }
}

export const codeOf = (exit: Exit.Exit<unknown, ToolFailure>): string | undefined => resultOf(exit).failure?.code

export const outcomeWord = (result: CallResult): string => {
  switch (result.code) {
    case undefined:
      return "ok"
    case "ETIMEDOUT":
      return "timeout"
    case "ECANCELLED":
      return "cancelled"
    case "EFATAL":
      return "fatal"
    default:
      return "model_mistake"
  }
}

/** Records the one result of a call. */
export const end = (
  setting: Place,
  ended: Refused | (Ended & { readonly call: Call; readonly stateChanged: boolean; readonly child?: string }),
): CallResult => {
  const { call } = ended
  const refusal = "_tag" in ended ? ended : undefined
  const failure = "_tag" in ended ? { code: ended.code, message: ended.message } : ended.failure
  const ok = "_tag" in ended ? undefined : ended
  const outcome = ok?.outcome ?? "error"
  setting.record({
    _tag: "CallEnded",
    agent: setting.agent,
    step: setting.step,
    call: call.call,
    tool: call.tool,
    outcome,
    ...(failure === undefined ? {} : { code: failure.code, message: failure.message }),
    retryable: failure?.code === "ETIMEDOUT",
    ran: ok?.ran ?? false,
    stateChanged: outcome === "ok" && (ok?.stateChanged ?? false),
    ...(ok?.child === undefined ? {} : { child: ok.child }),
    ...(outcome === "ok" ? { result: Content.fromJson(ok?.data ?? null) } : {}),
  })
  return {
    call,
    outcome,
    code: failure?.code,
    message: failure?.message,
    ran: ok?.ran ?? false,
    short: refusal?.short.filter((one) => (dimensions as ReadonlyArray<string>).includes(one)) ?? [],
  }
}

export const interrupted = (exit: Exit.Exit<unknown, unknown>): boolean =>
  Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)
