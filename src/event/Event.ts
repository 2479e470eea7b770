/**
 * Everything that can happen in a run, as one tagged union. State, spending, audits and reports are folds of these
 * events and of nothing else.
 */
import * as Schema from "effect/Schema"
import { Entry, Sparse } from "../budget/Entry.ts"
import { Content } from "./Content.ts"
import { ResultKind, StopReason } from "./StopReason.ts"

/** One call of a tool, as decided: our id, the provider's id, the tool and its raw arguments. */
export const Call = Schema.Struct({
  call: Schema.String,
  providerId: Schema.String,
  tool: Schema.String,
  params: Content,
})

/** @since 0.1.0 */
export type Call = (typeof Call)["Type"]

/** What a decision was for: ordinary work, or the last answer from the output reserve. */
export const Purpose = Schema.Literals(["explore", "wrap_up"])

/** @since 0.1.0 */
export type Purpose = (typeof Purpose)["Type"]

/** One rule of a verification and whether the answer passed it. */
export const Rule = Schema.Struct({ name: Schema.String, passed: Schema.Boolean, detail: Schema.String })

/** @since 0.1.0 */
export type Rule = (typeof Rule)["Type"]

const inStep = { agent: Schema.String, step: Schema.Finite }

const RunStarted = Schema.TaggedStruct("RunStarted", { agent: Schema.String, task: Content, bursar: Schema.String })
const RunEnded = Schema.TaggedStruct("RunEnded", { agent: Schema.String, reason: StopReason, result: ResultKind })

const AgentStarted = Schema.TaggedStruct("AgentStarted", {
  agent: Schema.String,
  name: Schema.String,
  policy: Schema.String,
  task: Content,
})

const AgentEnded = Schema.TaggedStruct("AgentEnded", {
  agent: Schema.String,
  reason: StopReason,
  result: ResultKind,
  steps: Schema.Finite,
  overran: Schema.Boolean,
  answer: Schema.optionalKey(Content),
})

/** A decision was made. `kind` says what it proposes. */
const Decided = Schema.TaggedStruct("Decided", {
  ...inStep,
  attempt: Schema.Finite,
  purpose: Purpose,
  kind: Schema.Literals(["call", "finish", "invalid"]),
  calls: Schema.optionalKey(Schema.Array(Call)),
  answer: Schema.optionalKey(Content),
  text: Schema.optionalKey(Content),
  why: Schema.optionalKey(Schema.String),
  model: Schema.optionalKey(Schema.String),
  promptHash: Schema.optionalKey(Schema.String),
  used: Sparse,
  certainty: Schema.Literals(["exact", "assumed"]),
})

/** An attempt to decide failed; what it cost is in the budget entries. */
const DecisionFailed = Schema.TaggedStruct("DecisionFailed", {
  ...inStep,
  attempt: Schema.Finite,
  purpose: Purpose,
  code: Schema.String,
  message: Schema.String,
  retryable: Schema.Boolean,
})

const CallStarted = Schema.TaggedStruct("CallStarted", { ...inStep, call: Schema.String, tool: Schema.String })

const CallEnded = Schema.TaggedStruct("CallEnded", {
  ...inStep,
  call: Schema.String,
  tool: Schema.String,
  outcome: Schema.Literals(["ok", "error"]),
  code: Schema.optionalKey(Schema.String),
  message: Schema.optionalKey(Schema.String),
  retryable: Schema.Boolean,
  ran: Schema.Boolean,
  stateChanged: Schema.Boolean,
  child: Schema.optionalKey(Schema.String),
  result: Schema.optionalKey(Content),
})

const Verified = Schema.TaggedStruct("Verified", {
  ...inStep,
  accepted: Schema.Boolean,
  rules: Schema.Array(Rule),
  stateDigest: Schema.String,
})

/** The first cause of the end; it stays, whatever happens afterwards. */
const Stopping = Schema.TaggedStruct("Stopping", {
  ...inStep,
  reason: StopReason,
  short: Schema.Array(Schema.String),
  detail: Schema.String,
})

/**
 * Something that happened in a run.
 *
 * @category events
 * @since 0.1.0
 */
export const Event = Schema.Union([
  RunStarted,
  AgentStarted,
  Decided,
  DecisionFailed,
  CallStarted,
  CallEnded,
  Verified,
  Stopping,
  AgentEnded,
  RunEnded,
  ...Entry.members,
])

/** @since 0.1.0 */
export type Event = (typeof Event)["Type"]

/** The event with that tag. */
export type EventOf<Tag extends Event["_tag"]> = Extract<Event, { readonly _tag: Tag }>

/**
 * An event with its place in the journal: a gapless number and the time.
 *
 * @category events
 * @since 0.1.0
 */
export interface Recorded {
  readonly seq: number
  readonly atMillis: number
  readonly run: string
  readonly event: Event
}
