/**
 * A message of a conversation as input items of a Responses request.
 *
 * Left out on purpose: approval parts, and whatever a provider ran by itself. A part that cannot be sent is refused,
 * never dropped in silence.
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

export type Converted<A> = Result.Result<A, AiError.AiErrorReason>

/** The items of one message. `idOf` is given the id of a call and returns the one that the provider knows. */
export const toItems = (
  message: Prompt.Message,
  idOf: (id: string) => string = (id) => id,
): Converted<ReadonlyArray<ResponseInputItem>> => {
  switch (message.role) {
    case "system":
      return Result.succeed([{ role: "system", content: message.content }])
    case "assistant":
      return Result.succeed(message.content.flatMap((part) => fromAssistantPart(part, idOf)))
    case "tool":
      return Result.all(
        message.content.filter((part) => part.type === "tool-result").map((part) => fromToolResult(part, idOf)),
      )
    case "user":
      return Result.map(Result.all(message.content.map(toContent)), (content) => [{ role: "user", content }])
  }
}

const fromAssistantPart = (
  part: Prompt.AssistantMessagePart,
  idOf: (id: string) => string,
): ReadonlyArray<ResponseInputItem> => {
  if (part.type === "text") return part.text === "" ? [] : [{ role: "assistant", content: part.text }]
  if (part.type !== "tool-call" || part.providerExecuted) return []
  return [{ type: "function_call", call_id: idOf(part.id), name: part.name, arguments: toArguments(part.params) }]
}

const fromToolResult = (part: Prompt.ToolResultPart, idOf: (id: string) => string): Converted<ResponseInputItem> => {
  const output: Converted<string | Array<ResponseFunctionCallOutputItem>> =
    part.modelOutput === undefined
      ? Result.succeed(toResultText(part.result))
      : Result.all(part.modelOutput.map(toContent))
  return Result.map(output, (content) => ({
    type: "function_call_output",
    call_id: idOf(part.id),
    output: content,
  }))
}

/** Arguments that were no JSON arrived as a string and go back as that same string. */
export const toArguments = (params: unknown): string => toJsonText(params, "{}")

export const toResultText = (result: unknown): string => toJsonText(result, "null")

const toJsonText = (value: unknown, absent: string): string =>
  typeof value === "string" ? value : (JSON.stringify(value) ?? absent)

const toContent = (
  part: Prompt.TextPart | Prompt.FilePart,
): Converted<Extract<ResponseInputContent, { type: "input_text" | "input_image" }>> =>
  part.type === "text"
    ? Result.succeed({ type: "input_text", text: part.text })
    : Result.map(toImageUrl(part), (url) => ({ type: "input_image", detail: "auto", image_url: url }))

/** The address of an image, or the image itself as one. */
export const toImageUrl = ({ data, mediaType }: Prompt.FilePart): Converted<string> => {
  if (!mediaType.startsWith("image/")) return refuse(mediaType, "only text and images can be sent")
  const type = mediaType === "image/*" ? "image/jpeg" : mediaType
  if (data instanceof URL) return Result.succeed(data.href)
  if (typeof data !== "string") return Result.succeed(`data:${type};base64,${Base64.encode(data)}`)
  return Result.succeed(/^(https?|data):/.test(data) ? data : `data:${type};base64,${data}`)
}

export const refuse = (mediaType: string, why: string) =>
  Result.fail(new AiError.InvalidUserInputError({ description: `${why}, this part is ${mediaType.slice(0, 64)}` }))
