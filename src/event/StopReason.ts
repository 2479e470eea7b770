/**
 * Why a run ended. This list is the only one: journal, spans, command line and documentation use its strings.
 */
import * as Schema from "effect/Schema"
import { type Dimension, dimensions } from "../budget/Dimension.ts"

const budgetWords = {
  steps: "steps",
  ticks: "ticks",
  inputTokens: "input_tokens",
  outputTokens: "output_tokens",
  money: "money",
  toolCalls: "tool_calls",
} as const satisfies Record<Dimension, string>

/** The word for a dimension in stop reasons, attributes and tables. */
export const wordOf = (dimension: Dimension): (typeof budgetWords)[Dimension] => budgetWords[dimension]

/**
 * Every reason a run can stop for.
 *
 * | reason | when |
 * | --- | --- |
 * | `completed` | the answer was accepted |
 * | `budget:<dimension>` | a decision does not fit what is left and cannot be shrunk |
 * | `deadline` | the time for exploring has passed |
 * | `no_progress` | the same actions with the same results, over and over |
 * | `repeated_action` | the same proposal once more, against a state that has not changed |
 * | `invalid_decisions` | too many decisions in a row that the host could not use |
 * | `unverified` | an answer stands, but nothing is left to check it with |
 * | `blocked` | permission or a precondition refused for good, or a person said no |
 * | `tool_error` | a tool failed fatally |
 * | `model_error` | the model failed for good |
 * | `unpriced` | no price is known for the model, and money is capped |
 * | `cancelled` | by the caller, the parent, or an interruption |
 * | `refused_at_open` | a child could not be opened |
 * | `owner_lost` | the process that ran it is gone, and nobody goes on with it |
 *
 * @category endings
 * @since 0.1.0
 */
export const StopReason = Schema.Literals([
  "completed",
  "budget:steps",
  "budget:ticks",
  "budget:input_tokens",
  "budget:output_tokens",
  "budget:money",
  "budget:tool_calls",
  "deadline",
  "no_progress",
  "repeated_action",
  "invalid_decisions",
  "unverified",
  "blocked",
  "tool_error",
  "model_error",
  "unpriced",
  "cancelled",
  "refused_at_open",
  "owner_lost",
])

/** @since 0.1.0 */
export type StopReason = (typeof StopReason)["Type"]

/** How much of an answer there is: an accepted one, an unaccepted one, or none. */
export const ResultKind = Schema.Literals(["full", "partial", "none"])

/** @since 0.1.0 */
export type ResultKind = (typeof ResultKind)["Type"]

/** The reason for being out of a dimension. */
export const outOf = (dimension: Dimension): StopReason => `budget:${budgetWords[dimension]}`

/** The dimension a reason names, if it is a stop for budget. */
export const dimensionOf = (reason: StopReason): Dimension | undefined =>
  dimensions.find((dimension) => reason === outOf(dimension))

/** The first short dimension in the documented order; tool calls are never the reason unless nothing else is short. */
export const firstShort = (short: ReadonlyArray<string>): StopReason =>
  outOf(dimensions.find((dimension) => short.includes(dimension)) ?? "steps")

const sentences: Record<string, string> = {
  completed: "The answer was accepted.",
  deadline: "The time for this agent has passed.",
  no_progress: "The same actions brought the same results.",
  repeated_action: "The same action was proposed again and again.",
  invalid_decisions: "Too many decisions in a row could not be used.",
  unverified: "An answer stands, but nothing was left to check it with.",
  blocked: "What has to be done is not permitted.",
  tool_error: "A tool failed fatally.",
  model_error: "The model failed for good.",
  unpriced: "No price is known for the model, and money is capped.",
  cancelled: "The run was cancelled.",
  refused_at_open: "The agent could not be opened.",
  owner_lost: "The process that ran the agent is gone.",
}

/** A fixed sentence for each reason, free of any text of a provider or a user. */
export const sentenceOf = (reason: StopReason): string => {
  const dimension = dimensionOf(reason)
  return dimension === undefined
    ? (sentences[reason] ?? reason)
    : `The budget for ${budgetWords[dimension].replace("_", " ")} does not cover another decision.`
}

/** Whether a span of a run that stopped for this reason is an error, by the table of stop reasons. */
export const isError = (reason: StopReason, result: ResultKind): boolean => {
  switch (reason) {
    case "completed":
    case "unverified":
    case "cancelled":
      return false
    case "tool_error":
    case "model_error":
    case "unpriced":
    case "owner_lost":
      return true
    default:
      return result === "none"
  }
}

/** Reasons after which one wrap-up may be paid from the output reserve. */
export const allowsWrapUp = (reason: StopReason): boolean =>
  dimensionOf(reason) !== undefined ||
  reason === "deadline" ||
  reason === "no_progress" ||
  reason === "repeated_action" ||
  reason === "blocked" ||
  reason === "invalid_decisions" ||
  reason === "tool_error"
