/**
 * What people, models and tools wrote, in the form that the semantic conventions for generative AI give to it: messages of
 * a role and parts. For spans that are asked to show it.
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import type { Reply } from "./Model.ts"

type Part = { readonly type: string; readonly [name: string]: unknown }

const text = (content: string): Part => ({ type: "text", content })

/** What the system says. */
export const instructions = (messages: ReadonlyArray<Prompt.Message>): ReadonlyArray<Part> =>
  messages.flatMap((message) => (message.role === "system" ? [text(message.content)] : []))

/** What everybody else says, in order. */
export const messages = (all: ReadonlyArray<Prompt.Message>) =>
  all.flatMap((message) =>
    message.role === "system"
      ? []
      : [{ role: message.role, parts: (message.content as ReadonlyArray<Prompt.Part>).flatMap(partOf) }],
  )

const partOf = (part: Prompt.Part): ReadonlyArray<Part> => {
  switch (part.type) {
    case "text":
      return [text(part.text)]
    case "reasoning":
      return [{ type: "reasoning", content: part.text }]
    case "tool-call":
      return [{ type: "tool_call", id: part.id, name: part.name, arguments: part.params }]
    case "tool-result":
      return [{ type: "tool_call_response", id: part.id, response: part.result }]
    case "file":
      return [{ type: "file", mime_type: part.mediaType }]
    default:
      return []
  }
}

/** What a model said. */
export const reply = ({ calls, finishReason, text: said }: Reply) => ({
  role: "assistant",
  parts: [
    ...(said === "" ? [] : [text(said)]),
    ...calls.map(({ id, name, params }): Part => ({ type: "tool_call", id, name, arguments: params })),
  ],
  finish_reason: finishReason,
})

/** What was offered. */
export const tools = (all: ReadonlyArray<Tool.Any>) =>
  all.map((tool) => ({
    type: "function",
    name: tool.name,
    description: Tool.getDescription(tool),
    parameters: Tool.getJsonSchema(tool),
  }))
