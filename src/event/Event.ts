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

/**
 * Something in the world that a call read or left behind, by where it is and what version of it that was. The value
 * itself stays where it is.
 *
 * **Units**: `range` is the first and last line, from 1, where only a part was read.
 *
 * @category world
 * @since 0.1.0
 */
export const Resource = Schema.Struct({
  path: Schema.String,
  /** A hash, a revision, an entity tag: the same for the same content. */
  version: Schema.String,
  range: Schema.optionalKey(Schema.Tuple([Schema.Finite, Schema.Finite])),
})

/** @since 0.1.0 */
export type Resource = (typeof Resource)["Type"]

/** What a decision was for: ordinary work, or the last answer from the output reserve. */
export const Purpose = Schema.Literals(["explore", "wrap_up"])

/** @since 0.1.0 */
export type Purpose = (typeof Purpose)["Type"]

/** One rule of a verification and whether the answer passed it. */
export const Rule = Schema.Struct({ name: Schema.String, passed: Schema.Boolean, detail: Schema.String })

/** @since 0.1.0 */
export type Rule = (typeof Rule)["Type"]

const inStep = { agent: Schema.String, step: Schema.Finite }

/**
 * What a check looked at: numbers and short facts such as a command and its exit code, and content such as its output.
 */
export const Evidence = Schema.Record(
  Schema.String,
  Schema.Union([Schema.String, Schema.Finite, Schema.Boolean, Schema.Array(Schema.String), Content]),
)

/** @since 0.1.0 */
export type Evidence = (typeof Evidence)["Type"]

/** What a suspended call waits for: a person who agrees to it, or one who knows what became of it. */
export const WaitKind = Schema.Literals(["approval", "uncertain"])

/** @since 0.1.0 */
export type WaitKind = (typeof WaitKind)["Type"]

/** The span that stood for an agent, where its run was traced: a resumed run links to it. */
const trace = Schema.optionalKey(Schema.Struct({ traceId: Schema.String, spanId: Schema.String }))

const RunStarted = Schema.TaggedStruct("RunStarted", { agent: Schema.String, task: Content, bursar: Schema.String })
const RunEnded = Schema.TaggedStruct("RunEnded", { agent: Schema.String, reason: StopReason, result: ResultKind })

/** The run waits for people; its time stands still. */
const RunSuspended = Schema.TaggedStruct("RunSuspended", {
  agent: Schema.String,
  waitsFor: Schema.Array(Schema.String),
  trace,
})

/** Somebody goes on with the run: after a suspension, or after the process that ran it was gone. */
const RunResumed = Schema.TaggedStruct("RunResumed", {
  agent: Schema.String,
  epoch: Schema.Finite,
  after: Schema.Literals(["suspension", "crash"]),
  bursar: Schema.String,
})

/** What a model costs in this run: its rates and the table they come from, as they stood when `agent` first asked it. */
const Priced = Schema.TaggedStruct("Priced", {
  agent: Schema.String,
  model: Schema.String,
  price: Schema.Record(Schema.String, Schema.Unknown),
})

const AgentStarted = Schema.TaggedStruct("AgentStarted", {
  agent: Schema.String,
  name: Schema.String,
  policy: Schema.String,
  task: Content,
  constraints: Schema.Array(Schema.String),
  /** The rules that an answer has to pass. */
  acceptance: Schema.optionalKey(Schema.String),
  /** True where the one who gave the task had seen untrusted results. */
  untrusted: Schema.optionalKey(Schema.Boolean),
  trace,
})

const AgentEnded = Schema.TaggedStruct("AgentEnded", {
  agent: Schema.String,
  reason: StopReason,
  result: ResultKind,
  steps: Schema.Finite,
  overran: Schema.Boolean,
  stateDigest: Schema.String,
  answer: Schema.optionalKey(Content),
  text: Schema.optionalKey(Content),
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
  /** The service tier that served it, where the provider said so. */
  tier: Schema.optionalKey(Schema.String),
  /** Stands for everything the policy was shown. */
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
  model: Schema.optionalKey(Schema.String),
})

/**
 * What a provider told about a call that is booked at its hold all the same: usage that cannot be believed, as it came,
 * or the name of a stored response, by which its usage can be asked for later.
 */
const Reported = Schema.TaggedStruct("Reported", {
  ...inStep,
  /** The hold it is booked at. */
  bookedAt: Schema.String,
  /** The model that was asked. */
  model: Schema.String,
  servedBy: Schema.optionalKey(Schema.String),
  tier: Schema.optionalKey(Schema.String),
  response: Schema.optionalKey(Schema.String),
  /** A number that is none in JSON stands as its word. */
  usage: Schema.optionalKey(Schema.Record(Schema.String, Schema.Union([Schema.Finite, Schema.String]))),
})

/**
 * A model has failed for good. From here on the agent asks `to`, the model at place `at` of the chain (the first is 0);
 * without it there is none left. `unpriced` are those passed over because nobody knows their price and money is capped.
 */
const FellBack = Schema.TaggedStruct("FellBack", {
  ...inStep,
  purpose: Purpose,
  from: Schema.String,
  to: Schema.optionalKey(Schema.String),
  at: Schema.optionalKey(Schema.Finite),
  unpriced: Schema.Array(Schema.String),
})

const ofCall = { ...inStep, call: Schema.String, tool: Schema.String }

/** An attempt of a call starts: from here on it may have had its effect. */
const CallStarted = Schema.TaggedStruct("CallStarted", {
  ...ofCall,
  attempt: Schema.Finite,
  version: Schema.String,
  effect: Schema.Literals(["read", "write", "irreversible"]),
  /** The key under which its effect counts once. */
  key: Schema.optionalKey(Schema.String),
  /** Stands for an effect that must not be repeated while nobody knows whether it happened. */
  mark: Schema.optionalKey(Schema.String),
  /** The account of the child that this call started. */
  child: Schema.optionalKey(Schema.String),
})

/** An attempt of a call failed and another one follows. */
const CallFailed = Schema.TaggedStruct("CallFailed", {
  ...ofCall,
  attempt: Schema.Finite,
  code: Schema.String,
  message: Schema.String,
})

const CallEnded = Schema.TaggedStruct("CallEnded", {
  ...ofCall,
  outcome: Schema.Literals(["ok", "error"]),
  code: Schema.optionalKey(Schema.String),
  message: Schema.optionalKey(Schema.String),
  suggestedAction: Schema.optionalKey(Schema.String),
  retryable: Schema.Boolean,
  /** True for a failure that ends the run. */
  fatal: Schema.optionalKey(Schema.Boolean),
  /** False when it was refused before it ran, or answered from the ledger. */
  ran: Schema.Boolean,
  stateChanged: Schema.Boolean,
  child: Schema.optionalKey(Schema.String),
  result: Schema.optionalKey(Content),
  resources: Schema.optionalKey(Schema.Array(Resource)),
  /** True where the result comes from outside and is no instruction. */
  untrusted: Schema.optionalKey(Schema.Boolean),
  /** The earlier call whose recorded result this is. */
  replayed: Schema.optionalKey(Schema.String),
  /** Stands for tool and arguments where nobody knows whether the effect happened. */
  uncertain: Schema.optionalKey(Schema.String),
})

/** A call stands still until a person has answered. `digest` is bound to the call as it is. */
const ApprovalRequested = Schema.TaggedStruct("ApprovalRequested", {
  ...ofCall,
  approval: Schema.String,
  kind: WaitKind,
  digest: Schema.String,
  reason: Schema.String,
  params: Content,
})

/** A person has answered. */
const ApprovalDecided = Schema.TaggedStruct("ApprovalDecided", {
  ...ofCall,
  approval: Schema.String,
  kind: WaitKind,
  decision: Schema.Literals(["approved", "denied", "happened", "did_not_happen"]),
  by: Schema.String,
  note: Schema.optionalKey(Schema.String),
  result: Schema.optionalKey(Content),
})

const Verified = Schema.TaggedStruct("Verified", {
  ...inStep,
  accepted: Schema.Boolean,
  rules: Schema.Array(Rule),
  evidence: Schema.Array(Evidence),
  /** What was verified: the state of the agent, and the world as the verifier saw it. */
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
  RunSuspended,
  RunResumed,
  AgentStarted,
  Decided,
  DecisionFailed,
  Priced,
  Reported,
  FellBack,
  CallStarted,
  CallFailed,
  CallEnded,
  ApprovalRequested,
  ApprovalDecided,
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
