/**
 * A message of a conversation as messages of a Chat Completions request.
 *
 * Left out on purpose: reasoning, approval parts, and whatever a provider ran by itself. A part that cannot be sent is
 * refused, never dropped in silence. A content of one text goes out as a plain string, which every server knows.
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import type {
  ChatCompletionContentPart,
  ChatCompletionMessageFunctionToolCall,
  ChatCompletionMessageParam,
} from "openai/resources/chat/completions"
import { type Converted, refuse, toArguments, toImageUrl, toResultText } from "./input.ts"

/** The messages of one message: each tool result is one of its own. */
export const toMessages = (message: Prompt.Message): Converted<ReadonlyArray<ChatCompletionMessageParam>> => {
  switch (message.role) {
    case "system":
      return Result.succeed([{ role: "system", content: message.content }])
    case "assistant":
      return Result.succeed(fromAssistant(message.content))
    case "tool":
      return Result.all(message.content.filter((part) => part.type === "tool-result").map(fromToolResult))
    case "user":
      return Result.map(toContent(message.content), (content) => [{ role: "user", content }])
  }
}

const fromAssistant = (
  parts: ReadonlyArray<Prompt.AssistantMessagePart>,
): ReadonlyArray<ChatCompletionMessageParam> => {
  const text = parts.map((part) => (part.type === "text" ? part.text : "")).join("")
  const calls = parts.flatMap((part): ReadonlyArray<ChatCompletionMessageFunctionToolCall> =>
    part.type === "tool-call" && !part.providerExecuted
      ? [{ id: part.id, type: "function", function: { name: part.name, arguments: toArguments(part.params) } }]
      : [],
  )
  if (calls.length === 0) return text === "" ? [] : [{ role: "assistant", content: text }]
  return [{ role: "assistant", content: text === "" ? null : text, tool_calls: [...calls] }]
}

const fromToolResult = (part: Prompt.ToolResultPart): Converted<ChatCompletionMessageParam> =>
  Result.map(
    part.modelOutput === undefined ? Result.succeed(toResultText(part.result)) : toText(part.modelOutput),
    (content) => ({ role: "tool", tool_call_id: part.id, content }),
  )

const toText = (parts: ReadonlyArray<Prompt.TextPart | Prompt.FilePart>): Converted<string> =>
  Result.map(
    Result.all(
      parts.map((part) =>
        part.type === "text"
          ? Result.succeed(part.text)
          : refuse(part.mediaType, "a tool result can only be text in Chat Completions"),
      ),
    ),
    (texts) => texts.join("\n"),
  )

const toContent = (
  parts: ReadonlyArray<Prompt.TextPart | Prompt.FilePart>,
): Converted<string | Array<ChatCompletionContentPart>> => {
  const [only] = parts
  if (parts.length === 1 && only?.type === "text") return Result.succeed(only.text)
  return Result.all(
    parts.map((part): Converted<ChatCompletionContentPart> =>
      part.type === "text"
        ? Result.succeed({ type: "text", text: part.text })
        : Result.map(toImageUrl(part), (url) => ({ type: "image_url", image_url: { url } })),
    ),
  )
}
