/**
 * Results of calls: from what a tool, a child or a refusal came to, to the one event that ends the call.
 */
import * as Cause from "effect/Cause"
import * as Exit from "effect/Exit"
import { dimensions } from "../budget/Budget.ts"
import type * as Content from "../event/Content.ts"
import type { Call, Event, EventOf, Resource } from "../event/Event.ts"
import type { Receipt } from "./EffectLedger.ts"
import type { ToolFailure } from "./ToolSet.ts"

/** What became of a call. */
export interface CallResult {
  readonly call: Call
  readonly outcome: "ok" | "error"
  readonly failure: ToolFailure | undefined
  /** False when it was refused before it ran. */
  readonly ran: boolean
  /** The dimensions that were short, when it was refused for the budget. */
  readonly short: ReadonlyArray<string>
}

/** A call that was refused before it ran. */
export interface Refused {
  readonly _tag: "Refused"
  readonly call: Call
  readonly failure: ToolFailure
  readonly short: ReadonlyArray<string>
}

/** Where the end of a call is recorded. */
export interface Place {
  readonly agent: string
  readonly step: number
  readonly record: (event: Event) => void
}

export const refused = (call: Call, failure: ToolFailure, short: ReadonlyArray<string> = []): Refused => ({
  _tag: "Refused",
  call,
  failure,
  short,
})

export const cancelledReason = { code: "ECANCELLED", message: "cancelled" } as const

/** A call that ran, or was answered with what an earlier one brought. */
export type Ending =
  | { readonly _tag: "Ok"; readonly result: Content.Content; readonly of: Facts }
  | { readonly _tag: "Failed"; readonly failure: ToolFailure; readonly uncertain?: string; readonly child?: string }
  | { readonly _tag: "Replayed"; readonly receipt: Receipt }

/** What a result says beside itself. */
export interface Facts {
  readonly stateChanged: boolean
  readonly untrusted: boolean
  readonly resources: ReadonlyArray<Resource>
  readonly child?: string
}

export const failed = (failure: ToolFailure, uncertain?: string): Extract<Ending, { _tag: "Failed" }> => ({
  _tag: "Failed",
  failure,
  ...(uncertain === undefined ? {} : { uncertain }),
})

/** Why a call that ran brought no result. */
export const failureOf = (exit: Exit.Failure<unknown, ToolFailure>): ToolFailure => {
  if (interrupted(exit)) return cancelledReason
  const reason = exit.cause.reasons.find(Cause.isFailReason)
  return reason?.error ?? { code: "EFATAL", class: "fatal", message: "the tool broke down" }
}

/** Records the one result of a call. */
export const end = (place: Place, call: Call, ended: Refused | Ending): CallResult => {
  const failure = ended._tag === "Refused" || ended._tag === "Failed" ? ended.failure : undefined
  const ran = ended._tag === "Ok" || ended._tag === "Failed"
  const event: EventOf<"CallEnded"> = {
    _tag: "CallEnded",
    agent: place.agent,
    step: place.step,
    call: call.call,
    tool: call.tool,
    outcome: failure === undefined ? "ok" : "error",
    ...(failure === undefined ? {} : saidOf(failure)),
    retryable: failure?.class === "transient",
    ...(failure?.class === "fatal" ? { fatal: true } : {}),
    ran,
    stateChanged: ended._tag === "Ok" && ended.of.stateChanged,
    ...factsOf(ended),
  }
  place.record(event)
  const short = ended._tag === "Refused" ? ended.short : []
  return {
    call,
    outcome: event.outcome,
    failure,
    ran,
    short: short.filter((one) => (dimensions as ReadonlyArray<string>).includes(one)),
  }
}

const saidOf = ({ code, message, suggestedAction }: ToolFailure) => ({
  code,
  message,
  ...(suggestedAction === undefined ? {} : { suggestedAction }),
})

const factsOf = (ended: Refused | Ending): Partial<EventOf<"CallEnded">> => {
  switch (ended._tag) {
    case "Refused":
      return {}
    case "Failed":
      return {
        ...(ended.uncertain === undefined ? {} : { uncertain: ended.uncertain }),
        ...(ended.child === undefined ? {} : { child: ended.child }),
      }
    case "Ok":
      return {
        result: ended.result,
        ...seenOf(ended.of),
        ...(ended.of.child === undefined ? {} : { child: ended.of.child }),
      }
    case "Replayed": {
      const { receipt } = ended
      return {
        ...(receipt.result === undefined ? {} : { result: receipt.result }),
        ...seenOf(receipt),
        replayed: receipt.call,
      }
    }
  }
}

const seenOf = ({ resources, untrusted }: Pick<Facts, "resources" | "untrusted">) => ({
  ...(resources.length === 0 ? {} : { resources }),
  ...(untrusted ? { untrusted } : {}),
})

export const interrupted = (exit: Exit.Exit<unknown, unknown>): boolean =>
  Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)
