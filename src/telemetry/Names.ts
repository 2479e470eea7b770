/**
 * The words of a trace, in one place. The `gen_ai.*` names are those of OpenTelemetry's semantic conventions for
 * generative AI (status "Development"); everything the conventions have no word for starts with `bursar.`.
 *
 * `gen_ai.usage.*` stands on model-call spans and nowhere else, so that a backend that adds up usage is right.
 */
import { type Dimension, dimensions } from "../budget/Dimension.ts"

/** The version of this list. */
export const schemaVersion = 1

export const operation = "gen_ai.operation.name"
export const providerName = "gen_ai.provider.name"
export const agentName = "gen_ai.agent.name"
export const agentId = "gen_ai.agent.id"
export const requestModel = "gen_ai.request.model"
export const requestMaxTokens = "gen_ai.request.max_tokens"
export const requestStream = "gen_ai.request.stream"
export const responseId = "gen_ai.response.id"
export const responseModel = "gen_ai.response.model"
export const responseFinishReasons = "gen_ai.response.finish_reasons"
export const usageInputTokens = "gen_ai.usage.input_tokens"
export const usageOutputTokens = "gen_ai.usage.output_tokens"
export const usageCacheReadTokens = "gen_ai.usage.cache_read.input_tokens"
export const usageCacheCreationTokens = "gen_ai.usage.cache_creation.input_tokens"
export const usageReasoningTokens = "gen_ai.usage.reasoning.output_tokens"
export const toolName = "gen_ai.tool.name"
export const toolCallId = "gen_ai.tool.call.id"
export const toolType = "gen_ai.tool.type"
export const errorType = "error.type"

/** What people and models wrote: on a span only where it was asked for (see `Capture`). */
export const content = {
  systemInstructions: "gen_ai.system_instructions",
  inputMessages: "gen_ai.input.messages",
  outputMessages: "gen_ai.output.messages",
  toolDefinitions: "gen_ai.tool.definitions",
  toolArguments: "gen_ai.tool.call.arguments",
  toolResult: "gen_ai.tool.call.result",
} as const

export const runId = "bursar.run.id"
export const nodeId = "bursar.node.id"
export const nodePath = "bursar.node.path"
export const nodeDepth = "bursar.node.depth"
export const schema = "bursar.schema"
export const stepIndex = "bursar.step.index"
export const stepAdmitted = "bursar.admitted"
export const stepRefused = "bursar.refused"
export const reserve = "bursar.reserve"
export const attempt = "bursar.attempt"
export const stopReason = "bursar.stop.reason"
/** Why the whole run stopped: on its root agent's span and mark and on no other, so that a search by it finds runs. */
export const runStopReason = "bursar.run.stop.reason"
export const stopDimension = "bursar.stop.dimension"
export const result = "bursar.result"
export const overrun = "bursar.overrun"
export const uncapped = "bursar.budget.uncapped"
export const deadlineRemaining = "bursar.deadline.remaining_ms"
export const promptHash = "bursar.prompt.hash"
export const holdMoney = "bursar.hold.money_nano_usd"
export const holdInputTokens = "bursar.hold.input_tokens"
export const holdOutputTokens = "bursar.hold.output_tokens"
export const holdBound = "bursar.hold.bound"
export const cost = "bursar.cost.nano_usd"
/** The service tier that served a call, where the provider said so. */
export const serviceTier = "bursar.service_tier"
export const certainty = "bursar.usage.certainty"
export const toolOutcome = "bursar.tool.outcome"
export const toolEffect = "bursar.tool.effect"
export const toolCode = "bursar.tool.code"
export const toolVersion = "bursar.tool.version"
export const toolResultBytes = "bursar.tool.result.bytes"
export const verifyAccepted = "bursar.verify.accepted"
export const policy = "bursar.policy"
export const assumedCalls = "bursar.usage.assumed_calls"
export const contextEstimate = "bursar.context.input_tokens_estimate"
export const overrunMoney = "bursar.overrun.nano_usd"
export const suspended = "bursar.suspended"
/** True on what a resumed run goes through again. */
export const replayed = "bursar.replayed"
/** The number of the event in the journal. */
export const seq = "bursar.seq"
export const eventsDropped = "bursar.events.dropped"
/** Tells a sampler early that this trace is worth keeping. */
export const keep = "bursar.keep"
/** What a mark marks: `stop`, `freeze` or `overrun`. */
export const mark = "bursar.mark"
/** Why a span is linked to one of another trace: `resumes`, `continues` or `replays`. */
export const link = "bursar.link"

/** What is counted and measured. */
export const metric = {
  operationDuration: "gen_ai.client.operation.duration",
  tokenUsage: "gen_ai.client.token.usage",
  agentDuration: "gen_ai.invoke_agent.duration",
  agentInferences: "gen_ai.invoke_agent.inference_calls",
  agentToolCalls: "gen_ai.invoke_agent.tool_calls",
  toolDuration: "gen_ai.execute_tool.duration",
  runCompleted: "bursar.run.completed",
  utilization: "bursar.budget.utilization",
  granted: "bursar.budget.granted",
  used: "bursar.budget.used",
  refunded: "bursar.budget.refunded",
  assumed: "bursar.budget.assumed",
  overrun: "bursar.budget.overrun",
  held: "bursar.budget.held",
  refused: "bursar.budget.refused",
  nodeOpen: "bursar.node.open",
  holdPending: "bursar.hold.pending",
  holdRatio: "bursar.hold.ratio",
  cost: "bursar.cost",
  cancelLatency: "bursar.cancel.latency",
  violation: "bursar.invariant.violation",
} as const

/** What metrics are told apart by: few values each, never a run, a node, a call or a user. */
export const label = {
  tokenType: "gen_ai.token.type",
  dimension: "bursar.budget.dimension",
  level: "bursar.budget.level",
  whose: "bursar.budget.whose",
  refusal: "bursar.budget.refusal",
  cause: "bursar.cause",
  invariant: "bursar.invariant",
} as const

const words: { readonly [D in Dimension]: string } = {
  steps: "steps",
  ticks: "ticks",
  inputTokens: "input_tokens",
  outputTokens: "output_tokens",
  money: "money_nano_usd",
  toolCalls: "tool_calls",
}

const tells = ["limit", "asked", "used", "refunded", "debt", "remaining", "amount", "available", "from", "to"] as const

/** What a budget attribute or the attribute of a budget event tells of a dimension. */
export type Told = (typeof tells)[number]

// Made once: they are asked for at every step.
const named = <What extends string>(whats: ReadonlyArray<What>, name: (word: string, what: What) => string) =>
  Object.fromEntries(
    whats.map((what) => [what, Object.fromEntries(dimensions.map((d) => [d, name(words[d], what)]))]),
  ) as { readonly [W in What]: { readonly [D in Dimension]: string } }

const budgetNames = named(tells, (word, what) => `bursar.budget.${word}.${what}`)
const usedNames = named(["own", "tree"], (word, whose) => `bursar.${whose}.${word}.used`)

/** The name of a budget attribute of a dimension, such as `bursar.budget.steps.limit`. */
export const budget = (dimension: Dimension, what: Told): string => budgetNames[what][dimension]

/** The word of a dimension in attributes and metrics, with its unit where it has one. */
export const dimension = (self: Dimension): string => words[self]

/** What the whole subtree used, beside what the node used itself. */
export const used = (dimension: Dimension, whose: "own" | "tree"): string => usedNames[whose][dimension]
