/**
 * What the events of a journal come to on spans: numbers, names and fixed words. Nothing that a user, a tool or a provider
 * wrote, no ids of holds and no keys.
 */
import { type Dimension, dimensions } from "../budget/Dimension.ts"
import type { Entry } from "../budget/Entry.ts"
import type { Refusal } from "../budget/Refusal.ts"
import type { Event, EventOf } from "../event/Event.ts"
import * as Names from "./Names.ts"

/** An event on the span of an account (or of the one above it), of a call of a model, or of a call of a tool. */
export interface SpanEvent {
  readonly on:
    | { readonly _tag: "Account"; readonly account: string }
    | { readonly _tag: "Above"; readonly account: string }
    | { readonly _tag: "Hold"; readonly account: string; readonly hold: string }
    | { readonly _tag: "Call"; readonly agent: string; readonly call: string }
  readonly name: string
  readonly attributes: Readonly<Record<string, unknown>>
  /** True for what has to be found in a trace, however much else there is. */
  readonly matters: boolean
}

type Amounts = { readonly [D in Dimension]?: number | undefined }

const told = (
  amounts: Amounts,
  what: Names.Told,
  attributes: Record<string, string | number> = {},
): Readonly<Record<string, string | number>> => {
  for (const d of dimensions) if (amounts[d] !== undefined) attributes[Names.budget(d, what)] = amounts[d]
  return attributes
}

const of = (account: string) => ({ _tag: "Account", account }) as const

/** What an event of the journal says on a span; `undefined` where it says nothing there. `pathOf` names an account. */
export const spanEvent = (event: Event, pathOf: (account: string) => string): SpanEvent | undefined => {
  switch (event._tag) {
    case "CallFailed":
      return {
        on: { _tag: "Call", agent: event.agent, call: event.call },
        name: "bursar.tool.attempt_failed",
        attributes: { [Names.attempt]: event.attempt, [Names.errorType]: wordIn(event.code) },
        matters: false,
      }
    case "ApprovalRequested":
    case "ApprovalDecided":
      return {
        on: { _tag: "Call", agent: event.agent, call: event.call },
        name: event._tag === "ApprovalRequested" ? "bursar.approval.requested" : "bursar.approval.decided",
        attributes: {
          "bursar.kind": event.kind,
          ...("decision" in event ? { "bursar.decision": event.decision } : {}),
        },
        matters: false,
      }
    case "Stopping":
      return stopping(event)
    case "FellBack":
      return {
        on: of(event.agent),
        name: "bursar.model.fell_back",
        attributes: { "bursar.from": event.from, ...(event.to === undefined ? {} : { "bursar.to": event.to }) },
        matters: false,
      }
    case "Priced":
    case "Reported":
    case "RunStarted":
    case "RunEnded":
    case "RunSuspended":
    case "RunResumed":
    case "AgentStarted":
    case "AgentEnded":
    case "Decided":
    case "DecisionFailed":
    case "CallStarted":
    case "CallEnded":
    case "Verified":
      return undefined
    default:
      return ofEntry(event, pathOf)
  }
}

const stopping = ({ agent, reason }: EventOf<"Stopping">): SpanEvent | undefined => {
  const name = reason === "deadline" ? "bursar.deadline.passed" : reason === "no_progress" ? "bursar.no_progress" : ""
  return name === "" ? undefined : { on: of(agent), name, attributes: {}, matters: true }
}

/** What became of a call, in one word. */
export const outcomeOf = (event: EventOf<"CallEnded">): string => {
  if (event.replayed !== undefined) return "replayed"
  if (event.outcome === "ok") return "ok"
  if (event.uncertain !== undefined) return "uncertain"
  if (event.fatal === true) return "fatal"
  if (event.code === "ECANCELLED") return "cancelled"
  if (event.suggestedAction === "stop_and_request_human" || event.code === "EPERM") return "permission"
  if (!event.ran) return "refused"
  if (event.code === "ETIMEDOUT") return "timeout"
  return event.retryable ? "transient" : "model_mistake"
}

/** A tool may give any text for a code; a word says enough. */
export const wordIn = (code: string): string => (/^[A-Z][A-Z0-9_]{0,31}$/.test(code) ? code : "other")

const ofEntry = (entry: Entry, pathOf: (account: string) => string): SpanEvent | undefined => {
  const { _tag, account } = entry
  switch (_tag) {
    case "Opened":
      return undefined
    case "Held":
    case "Extended":
      return onHold(entry, _tag === "Held" ? "held" : "extended", entry.amounts)
    case "Settled":
      return onHold(entry, "settled", entry.actual)
    case "Voided":
    case "Assumed":
      return onHold(entry, _tag === "Voided" ? "voided" : "assumed", entry.held)
    case "Frozen": {
      const attributes = { "bursar.reason": entry.cause, "bursar.closing_work": entry.closingWork }
      return { on: of(account), name: "bursar.frozen", attributes, matters: true }
    }
    case "Paused":
      return { on: of(account), name: "bursar.paused", attributes: { "bursar.reason": entry.cause }, matters: false }
    case "Resumed":
      return {
        on: of(account),
        name: "bursar.resumed",
        attributes: { "bursar.paused_ms": entry.pausedMillis },
        matters: false,
      }
    case "Refused":
      return {
        on: of(account),
        name: "bursar.budget.refused",
        attributes: { "bursar.operation": entry.operation, ...refusal(entry.reason) },
        matters: true,
      }
    case "Overran":
      return { on: of(account), name: "bursar.budget.overrun", attributes: overrun(entry, pathOf), matters: true }
    default:
      return budgetEvent(entry, pathOf)
  }
}

const onHold = (
  { account, hold, reserve }: { readonly account: string; readonly hold: string; readonly reserve: string },
  word: string,
  amounts: Amounts,
): SpanEvent => ({
  on: { _tag: "Hold", account, hold },
  name: `bursar.budget.${word}`,
  attributes: told(amounts, "amount", { [Names.reserve]: reserve }),
  matters: false,
})

/** Every short dimension, with what was asked and what there was, and whose account was short. */
const refusal = (reason: Refusal): Readonly<Record<string, unknown>> => {
  if (reason._tag !== "Insufficient") return { "bursar.reason": reason._tag }
  const { shortages } = reason
  const amounts = (what: "asked" | "available") =>
    Object.fromEntries(shortages.map((one) => [Names.budget(one.dimension as Dimension, what), one[what]]))
  return {
    "bursar.reason": reason._tag,
    "bursar.short": shortages.map(({ dimension }) => Names.dimension(dimension as Dimension)),
    "bursar.accounts": [...new Set(shortages.map(({ account }) => account))],
    "bursar.whose": [...new Set(shortages.map(({ whose }) => whose))],
    ...amounts("asked"),
    ...amounts("available"),
  }
}

const overrun = (
  { excess, covered, debt, reserve }: EventOf<"Overran">,
  pathOf: (account: string) => string,
): Readonly<Record<string, unknown>> => ({
  [Names.reserve]: reserve,
  ...told(excess, "amount"),
  ...told(debt, "debt"),
  "bursar.covered_by": covered.map(
    (one) => `${pathOf(one.account)} ${one.reserve}: ${one.amount} ${Names.dimension(one.dimension)}`,
  ),
})

type Rest = Exclude<
  Entry,
  {
    readonly _tag:
      | "Opened"
      | "Held"
      | "Extended"
      | "Settled"
      | "Voided"
      | "Assumed"
      | "Frozen"
      | "Paused"
      | "Resumed"
      | "Refused"
      | "Overran"
  }
>

const budgetEvent = (entry: Rest, pathOf: (account: string) => string): SpanEvent => {
  const { account } = entry
  const as = (word: string, attributes: Readonly<Record<string, unknown>>, on: SpanEvent["on"] = of(account)) => ({
    on,
    name: `bursar.budget.${word}`,
    attributes,
    matters: false,
  })
  const above = { _tag: "Above", account } as const
  switch (entry._tag) {
    case "Carved": {
      const asked = told(entry.asked, "asked")
      return as(
        "carved",
        { "bursar.child": entry.path, [Names.reserve]: entry.reserve, ...asked, ...told(entry.grant, "amount") },
        above,
      )
    }
    case "Closed":
      return as("refunded", { "bursar.child": pathOf(account), ...told(entry.returned, "amount") }, above)
    case "Moved":
      return as("moved", { "bursar.from": entry.from, "bursar.to": entry.to, ...told(entry.amounts, "amount") })
    case "Amended":
      return as("amended", { ...told(entry.from, "from"), ...told(entry.to, "to"), ...told(entry.wanted, "asked") })
    case "Adjusted":
      return as("adjusted", { "bursar.landed_on": pathOf(entry.landedOn), ...told(entry.actual, "amount") })
    case "ToppedUp":
      return as("topped_up", told(entry.amounts, "amount"))
    case "Reclaimed":
      return as("reclaimed", told(entry.amounts, "amount"))
    case "Waited":
      return as("waited", told(entry.need, "asked"))
    case "Served":
      return as("served", told(entry.amounts, "amount"))
    case "DebtPaid":
      return as("debt_paid", told(entry.paid, "amount"))
  }
}
