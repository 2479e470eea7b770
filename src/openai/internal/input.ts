/**
 * A prompt of `effect/ai` as the input items of a Responses request.
 *
 * Left out on purpose: reasoning (nothing is stored at the provider, so there is nothing to refer to), approval
 * parts, and whatever a provider ran by itself. A part that cannot be sent is refused, never dropped in silence.
 */
import * as AiError from "effect/ai/AiError"
import type * as Prompt from "effect/ai/Prompt"
import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import type {
  ResponseFunctionCallOutputItem,
  ResponseInputContent,
  ResponseInputItem,
} from "openai/resources/responses/responses"

type Converted<A> = Result.Result<A, AiError.AiErrorReason>

/** The input items of a whole conversation, in its order. */
export const toInput = (prompt: Prompt.Prompt): Converted<Array<ResponseInputItem>> =>
  Result.map(Result.all(prompt.content.map(fromMessage)), (items) => items.flat())

const fromMessage = (message: Prompt.Message): Converted<Array<ResponseInputItem>> => {
  if (message.role === "system") return Result.succeed([{ role: "system", content: message.content }])
  if (message.role === "assistant") return Result.succeed(message.content.flatMap(fromAssistantPart))
  if (message.role === "tool") {
    return Result.all(message.content.filter((part) => part.type === "tool-result").map(fromToolResult))
  }
  return Result.map(Result.all(message.content.map(toContent)), (content) => [{ role: "user", content }])
}

const fromAssistantPart = (part: Prompt.AssistantMessagePart): Array<ResponseInputItem> => {
  if (part.type === "text") return part.text === "" ? [] : [{ role: "assistant", content: part.text }]
  if (part.type !== "tool-call" || part.providerExecuted) return []
  return [{ type: "function_call", call_id: part.id, name: part.name, arguments: toJsonText(part.params, "{}") }]
}

const fromToolResult = (part: Prompt.ToolResultPart): Converted<ResponseInputItem> => {
  const output: Converted<string | Array<ResponseFunctionCallOutputItem>> =
    part.modelOutput === undefined
      ? Result.succeed(toJsonText(part.result, "null"))
      : Result.all(part.modelOutput.map(toContent))
  return Result.map(output, (content) => ({ type: "function_call_output", call_id: part.id, output: content }))
}

// Arguments that were no JSON arrived as a string and go back as that same string.
const toJsonText = (value: unknown, absent: string): string =>
  typeof value === "string" ? value : (JSON.stringify(value) ?? absent)

const toContent = (
  part: Prompt.TextPart | Prompt.FilePart,
): Converted<Extract<ResponseInputContent, { type: "input_text" | "input_image" }>> => {
  if (part.type === "text") return Result.succeed({ type: "input_text", text: part.text })
  if (part.mediaType.startsWith("image/")) {
    return Result.succeed({ type: "input_image", detail: "auto", image_url: imageUrl(part) })
  }
  return Result.fail(
    new AiError.InvalidUserInputError({
      description: `only text and images can be sent, this part is ${part.mediaType.slice(0, 64)}`,
    }),
  )
}

const imageUrl = ({ data, mediaType }: Prompt.FilePart): string => {
  if (data instanceof URL) return data.href
  if (typeof data !== "string") return `data:${mediaType};base64,${Base64.encode(data)}`
  return /^(https?|data):/.test(data) ? data : `data:${mediaType};base64,${data}`
}
