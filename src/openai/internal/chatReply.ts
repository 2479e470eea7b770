/**
 * A reply in the Chat Completions protocol. Every field is looked at before it is believed.
 */
import type * as AiError from "effect/ai/AiError"
import type * as AiResponse from "effect/ai/Response"
import * as Result from "effect/Result"
import type { UsageStyle } from "../Options.ts"
import { type Answer, distinct, endOf, failedReason, type Piece, toParams, unreadable } from "./answer.ts"
import { asArray, asNumber, asRecord, asText, type Json, named } from "./json.ts"
import { toUsage } from "./usage.ts"

/** What a reply says; one that failed, or is none, becomes the reason why. */
export const toAnswer = (
  body: unknown,
  style: UsageStyle | undefined,
): Result.Result<Answer, AiError.AiErrorReason> => {
  const reply = asRecord(body)
  const choice = asArray(reply["choices"]).map(asRecord)[0]
  const error = reply["error"] ?? choice?.["error"]
  const reason = choice?.["finish_reason"]
  if (reason === "error" || (error !== undefined && error !== null)) {
    return Result.fail(failedReason(asRecord(error)["code"]))
  }
  if (choice === undefined || typeof choice["message"] !== "object") {
    return Result.fail(unreadable("the reply holds no message"))
  }
  const message = asRecord(choice["message"])
  const calls = asArray(message["tool_calls"]).map(asRecord)
  const whole = calls.filter((call, index) => !isCut(call, { reason, isLast: index === calls.length - 1 }))
  const { isSame, pieces } = distinct([...words(message), ...whole.map(toCall)])
  return Result.succeed({
    id: named(reply["id"]),
    model: named(reply["model"]),
    createdAt: asNumber(reply["created"]),
    pieces,
    end: toEnd(reason, pieces),
    usage: toUsage(usageIn(reply, choice), style),
    isWhole: isSame && whole.length === calls.length,
    items: [],
  })
}

/** Where servers state the usage: beside the choices, in the choice, or under a name of their own. */
export const usageIn = (reply: Json, choice: Json | undefined): unknown =>
  reply["usage"] ?? asRecord(reply["x_groq"])["usage"] ?? choice?.["usage"] ?? undefined

const words = (message: Json): ReadonlyArray<Piece> => {
  const reasoning = asText(message["reasoning_content"] ?? message["reasoning"])
  const [text, refusal] = [textIn(message["content"]), asText(message["refusal"])]
  return [
    ...(reasoning === "" ? [] : [{ type: "reasoning", text: reasoning } as const]),
    ...(text === "" ? [] : [{ type: "text", text, isRefusal: false } as const]),
    ...(refusal === "" ? [] : [{ type: "text", text: refusal, isRefusal: true } as const]),
  ]
}

/** The text of a content, which some servers send in parts. */
export const textIn = (content: unknown): string =>
  Array.isArray(content) ? content.map((part) => asText(asRecord(part)["text"])).join("") : asText(content)

const toCall = (call: Json): Piece => {
  const { arguments: args, name } = asRecord(call["function"])
  return { type: "call", id: asText(call["id"]), name: asText(name), params: toParams(args).params }
}

const finished = new Set<unknown>(["stop", "tool_calls", "function_call"])

/** Of a reply that does not say it is finished, calls are believed where they are whole, and of one that says it was cut, never the last. */
const isCut = (call: Json, of: { readonly reason: unknown; readonly isLast: boolean }): boolean => {
  if (finished.has(of.reason)) return false
  const args = asRecord(call["function"])["arguments"]
  const wasCut = of.reason === "length" || of.reason === "max_tokens" || of.reason === "content_filter"
  return (wasCut && of.isLast) || !toParams(args).isJson
}

const toEnd = (reason: unknown, pieces: ReadonlyArray<Piece>): AiResponse.FinishReason => {
  if (reason === "content_filter") return "content-filter"
  return reason === "length" || reason === "max_tokens" ? "length" : endOf(pieces)
}
