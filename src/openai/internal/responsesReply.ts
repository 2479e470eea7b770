/**
 * A reply in the Responses protocol, and the events it streams as.
 *
 * Replies come from outside, also from gateways that only resemble OpenAI, so every field is looked at before it is
 * believed. A stream is read into the object that the same reply is without streaming; its text is told on the way.
 */
import type * as AiError from "effect/ai/AiError"
import type * as AiResponse from "effect/ai/Response"
import * as Result from "effect/Result"
import type { UsageStyle } from "../Options.ts"
import { type Answer, distinct, endOf, failedReason, type Piece, toParams, unreadable } from "./answer.ts"
import { asArray, asNumber, asRecord, asText, type Json, named } from "./json.ts"
import type { Assembly, Step } from "./stream.ts"
import { toUsage } from "./usage.ts"

/** What a reply says; one that failed, or is none, becomes the reason why. */
export const toAnswer = (
  body: unknown,
  style: UsageStyle | undefined,
): Result.Result<Answer, AiError.AiErrorReason> => {
  const reply = asRecord(body)
  const { output, status } = reply
  if (status === "failed" || (output === undefined && reply["error"] !== undefined)) {
    return Result.fail(failedReason(asRecord(reply["error"])["code"]))
  }
  if (!Array.isArray(output) || (status !== "completed" && status !== "incomplete")) {
    return Result.fail(unreadable("the reply is not a finished Responses object"))
  }
  const items = output.map(asRecord)
  const said = items.map((item) => toPieces(item, status === "completed"))
  const { isSame, pieces } = distinct(said.flatMap(({ pieces }) => pieces))
  const id = named(reply["id"])
  return Result.succeed({
    id,
    model: named(reply["model"]),
    createdAt: asNumber(reply["created_at"]),
    pieces,
    end: status === "completed" ? endOf(pieces) : cutBy(asRecord(reply["incomplete_details"])["reason"], pieces),
    usage: toUsage(reply["usage"], style),
    isWhole: status === "completed" && id !== undefined && isSame && said.every(({ isCut }) => !isCut),
    items,
  })
}

const cutBy = (why: unknown, pieces: ReadonlyArray<Piece>): AiResponse.FinishReason => {
  if (why === "content_filter" || endOf(pieces) === "content-filter") return "content-filter"
  return why === "max_output_tokens" ? "length" : "other"
}

interface Said {
  readonly pieces: ReadonlyArray<Piece>
  readonly isCut: boolean
}

const toPieces = (item: Json, isComplete: boolean): Said => {
  switch (item["type"]) {
    case "function_call":
      return toCall(item, isComplete)
    case "message":
      return { pieces: asArray(item["content"]).map(toText), isCut: false }
    case "reasoning": {
      const summary = asArray(item["summary"]).map((part) => asText(asRecord(part)["text"]))
      return { pieces: [{ type: "reasoning", text: summary.join("\n") }], isCut: false }
    }
    default:
      return { pieces: [], isCut: false }
  }
}

const toText = (content: unknown): Piece => {
  const { refusal, text, type } = asRecord(content)
  const isRefusal = type === "refusal"
  return { type: "text", text: asText(isRefusal ? refusal : text), isRefusal }
}

// In a reply that was cut short, only a call marked complete is a call; the rest of its arguments never came.
const toCall = (item: Json, isComplete: boolean): Said => {
  const { params, isJson } = toParams(item["arguments"])
  const isCut = item["status"] === "incomplete" || (!isComplete && (item["status"] !== "completed" || !isJson))
  if (isCut) return { pieces: [], isCut }
  return { pieces: [{ type: "call", id: asText(item["call_id"]), name: asText(item["name"]), params }], isCut }
}

/** Puts the events of a stream together. */
export const assembly = (): Assembly => {
  const items: Array<Json> = []
  let id: string | undefined
  let last: Json | undefined
  return {
    step: (event, name): Step => {
      const type = named(event["type"]) ?? name
      id ??= named(asRecord(event["response"])["id"])
      switch (type) {
        case "response.output_text.delta":
        case "response.refusal.delta":
          return { text: asText(event["delta"]) }
        case "response.output_item.done":
          items[asNumber(event["output_index"]) ?? items.length] = asRecord(event["item"])
          return {}
        case "response.completed":
        case "response.incomplete":
        case "response.failed":
          last = { status: type.slice("response.".length), ...asRecord(event["response"]) }
          return { isEnd: true }
        case "error":
          return { failed: { code: event["code"] ?? asRecord(event["error"])["code"] } }
        default:
          return {}
      }
    },
    // Only its last event says that a reply is finished, and holds its usage. Some servers leave its items out there.
    whole: () =>
      last !== undefined && asArray(last["output"]).length === 0
        ? { ...last, output: [...items].filter(Boolean) }
        : last,
    id: () => id,
  }
}
