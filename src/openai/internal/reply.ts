/**
 * What a Responses reply says, in the words of `effect/ai`: parts, finish reason, usage. Replies come from outside,
 * also from gateways that only resemble OpenAI, so every field is looked at before it is believed.
 */
import * as AiError from "effect/ai/AiError"
import type * as AiResponse from "effect/ai/Response"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type {
  Response,
  ResponseFunctionToolCall,
  ResponseOutputItem,
  ResponseOutputMessage,
} from "openai/resources/responses/responses"
import type * as Provider from "../../model/Provider.ts"

type Encoded = typeof AiResponse.Usage.Encoded

/** What to report about a reply that arrived. */
export const toReport = (reply: unknown): Provider.Report => {
  const { usage, model } = asRecord(reply)
  return { _tag: "Replied", usage: toUsage(usage), model: typeof model === "string" ? model : undefined }
}

/** Token counts as the provider stated them, plausible or not: whoever books them judges them. */
const toUsage = (usage: unknown): Provider.Usage | undefined => {
  if (typeof usage !== "object" || usage === null) return undefined
  const { input_tokens, output_tokens, input_tokens_details, output_tokens_details } = asRecord(usage)
  return {
    inputTokens: asNumber(input_tokens),
    cachedInputTokens: asNumber(asRecord(input_tokens_details)["cached_tokens"]),
    cacheWriteInputTokens: asNumber(asRecord(input_tokens_details)["cache_write_tokens"]),
    outputTokens: asNumber(output_tokens),
    reasoningTokens: asNumber(asRecord(output_tokens_details)["reasoning_tokens"]),
  }
}

/** The parts of a finished or cut reply; a reply that failed, or is none, becomes the reason why. */
export const toParts = (
  reply: Response,
  format: "text" | "json",
): Result.Result<Array<AiResponse.PartEncoded>, AiError.AiErrorReason> => {
  const { status, output } = asRecord(reply)
  if (status === "failed") return Result.fail(failedReason(asRecord(asRecord(reply)["error"])["code"]))
  if (!Array.isArray(output) || (status !== "completed" && status !== "incomplete")) {
    return Result.fail(
      new AiError.InvalidResponseError({ description: "the reply is not a finished Responses object" }),
    )
  }
  const refused = output.some(isRefusal)
  if (refused && format === "json") {
    return Result.fail(new AiError.ContentPolicyError({ description: "the model refused to answer" }))
  }
  return Result.try({
    try: () => {
      const content = output.filter(isItem).flatMap((item) => fromItem(item, status === "completed"))
      return [metadataPart(reply), ...content, finishPart(reply, content, refused)]
    },
    catch: () => new AiError.InvalidResponseError({ description: "the reply has a part that cannot be read" }),
  })
}

const fromItem = (item: ResponseOutputItem, complete: boolean): Array<AiResponse.PartEncoded> => {
  if (item.type === "function_call") return fromCall(item, complete)
  if (item.type === "message") return asArray(item.content).map(fromContent)
  if (item.type !== "reasoning") return []
  const text = asArray(item.summary)
    .map((summary) => asText(summary.text))
    .join("\n")
  return text === "" ? [] : [{ type: "reasoning", text }]
}

const fromContent = (content: ResponseOutputMessage["content"][number]): AiResponse.TextPartEncoded =>
  content.type === "refusal"
    ? { type: "text", text: asText(content.refusal), metadata: { openai: { refusal: true } } }
    : { type: "text", text: asText(content.text) }

// Arguments that are no JSON go on as they came: the caller judges them, and the paid reply is not lost over them.
// In a reply that was cut short, only a call marked complete is a call; the rest of its arguments never came.
const fromCall = (call: ResponseFunctionToolCall, complete: boolean): Array<AiResponse.PartEncoded> => {
  const params = Result.try(() => JSON.parse(call.arguments) as unknown)
  if (!complete && (call.status !== "completed" || Result.isFailure(params))) return []
  return [
    { type: "tool-call", id: call.call_id, name: call.name, params: Result.getOrElse(params, () => call.arguments) },
  ]
}

const metadataPart = (reply: Response): AiResponse.ResponseMetadataPartEncoded => {
  const { id, model, created_at: createdAt } = asRecord(reply)
  return {
    type: "response-metadata",
    ...(typeof id === "string" ? { id } : {}),
    ...(typeof model === "string" ? { modelId: model } : {}),
    ...(typeof createdAt === "number" && createdAt >= 0 && createdAt < 1e10
      ? { timestamp: new Date(createdAt * 1000).toISOString() }
      : {}),
  }
}

const finishPart = (
  reply: Response,
  content: ReadonlyArray<AiResponse.PartEncoded>,
  refused: boolean,
): AiResponse.FinishPartEncoded => {
  const why = reply.status === "incomplete" ? asRecord(reply.incomplete_details)["reason"] : undefined
  const reason = (): AiResponse.FinishReason => {
    if (refused || why === "content_filter") return "content-filter"
    if (why === "max_output_tokens") return "length"
    if (reply.status === "incomplete") return "other"
    return content.some((part) => part.type === "tool-call") ? "tool-calls" : "stop"
  }
  return { type: "finish", reason: reason(), usage: toEncodedUsage(toUsage(reply.usage)) }
}

// `effect/ai` decodes these as integers and would throw the reply away over anything else.
const toEncodedUsage = (usage: Provider.Usage | undefined): Encoded => {
  const total = asCount(usage?.inputTokens)
  const cacheRead = asCount(usage?.cachedInputTokens)
  const cacheWrite = asCount(usage?.cacheWriteInputTokens)
  const output = asCount(usage?.outputTokens)
  const reasoning = asCount(usage?.reasoningTokens)
  const uncached = total === undefined ? undefined : asCount(total - (cacheRead ?? 0) - (cacheWrite ?? 0))
  const text = output === undefined ? undefined : asCount(output - (reasoning ?? 0))
  return { inputTokens: { total, uncached, cacheRead, cacheWrite }, outputTokens: { total: output, text, reasoning } }
}

/** The reason behind a reply with status "failed": it was answered with HTTP 200 and may have been billed. */
const failedReason = (code: unknown): AiError.AiErrorReason => {
  if (code === "rate_limit_exceeded") return new AiError.RateLimitError({})
  if (typeof code !== "string" || !/^[a-z_]{1,64}$/.test(code) || code === "server_error") {
    return new AiError.InternalProviderError({ description: "the reply has status failed" })
  }
  const description = `the reply has status failed: ${code}`
  return code.endsWith("policy") || code.endsWith("policy_violation")
    ? new AiError.ContentPolicyError({ description })
    : new AiError.InvalidRequestError({ description })
}

const isItem = (item: unknown): item is ResponseOutputItem => typeof item === "object" && item !== null

const isRefusal = (item: unknown): boolean =>
  asArray(asRecord(item)["content"]).some((content) => asRecord(content)["type"] === "refusal")

const asRecord = (value: unknown): { readonly [key: string]: unknown } => (Predicate.isObject(value) ? value : {})

function asArray<A>(value: ReadonlyArray<A>): ReadonlyArray<A>
function asArray(value: unknown): ReadonlyArray<unknown>
function asArray(value: unknown): ReadonlyArray<unknown> {
  return Array.isArray(value) ? value : []
}

const asText = (value: unknown): string => (typeof value === "string" ? value : "")

const asNumber = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined)

const asCount = (value: number | undefined): number | undefined =>
  value !== undefined && Number.isSafeInteger(value) && value >= 0 ? value : undefined
