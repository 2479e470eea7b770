/**
 * What is known of the replies a conversation consists of, beyond the words that stand in it: their ids at the provider
 * and their reasoning.
 *
 * A conversation is known by its history, which is one array that grows. Its law: a reply is taken for a message only
 * where the message says exactly what the reply said; where it says anything else, nothing is known.
 */
import type * as Prompt from "effect/ai/Prompt"
import type * as Tool from "effect/ai/Tool"
import type { ResponseInputItem } from "openai/resources/responses/responses"
import { type Answer, type Call, textOf } from "./answer.ts"
import { toArguments } from "./input.ts"
import { asArray, asCount, asRecord, asText, type Json } from "./json.ts"

/** A reply, and where in its history it stands once it has been said. */
export interface Said {
  readonly answer: Answer
  /** The index of its message. */
  readonly at: number
  /** Upper bound of what the request took in and the reply gave out: a continued conversation takes in both. */
  readonly tokens: number
  /** The tools that were offered. */
  readonly tools: ReadonlyArray<Tool.Any>
}

/** The last reply in each history. */
export type Past = WeakMap<ReadonlyArray<Prompt.Message>, Said>

/** The last reply to a history, where the message after it says the same. */
export const continuedFrom = (past: Past, history: ReadonlyArray<Prompt.Message>): Said | undefined => {
  const said = past.get(history)
  const message = said === undefined ? undefined : history[said.at]
  return said !== undefined && message !== undefined && says(message, said.answer) ? said : undefined
}

/** Whether a message says what an answer said, and all of it. */
export const says = (message: Prompt.Message, answer: Answer): boolean => {
  if (message.role !== "assistant" || !answer.isWhole) return false
  const text = message.content.map((part) => (part.type === "text" ? part.text : "")).join("")
  const [had, has] = [callsOf(answer), callsIn(message)]
  return (
    text === textOf(answer.pieces) &&
    had.length === has.length &&
    has.every(({ name, params }, index) => {
      const call = had[index]
      return call?.name === name && toArguments(call.params) === toArguments(params)
    })
  )
}

const callsOf = ({ pieces }: Answer): ReadonlyArray<Call> => pieces.filter((piece) => piece.type === "call")

const callsIn = (message: Prompt.AssistantMessage): ReadonlyArray<Prompt.ToolCallPart> =>
  message.content.filter((part) => part.type === "tool-call")

/** From the ids of calls in a message to those the provider knows them by. */
export const idsOf = (message: Prompt.Message, answer: Answer): ((id: string) => string) => {
  if (message.role !== "assistant") return (id) => id
  const ids = new Map(callsIn(message).map(({ id }, index) => [id, callsOf(answer)[index]?.id ?? id]))
  return (id) => ids.get(id) ?? id
}

/** A message in the items that the reply consisted of, with the reasoning among them. */
export interface Kept {
  readonly items: ReadonlyArray<ResponseInputItem>
  /** Upper bound of the tokens of the reasoning. */
  readonly tokens: number
}

/** A message together with the reasoning behind it, or `undefined` where there is none to give back. */
export const kept = (message: Prompt.Message, answer: Answer): Kept | undefined => {
  if (message.role !== "assistant" || !says(message, answer)) return undefined
  const ids = callsIn(message).map(({ id }) => id)
  const items = answer.items.flatMap((item) => toItem(item, ids))
  // Reasoning is only taken together with what it led to.
  while (items.at(-1)?.type === "reasoning") items.pop()
  const thoughts = items.filter((item) => item.type === "reasoning")
  if (thoughts.length === 0) return undefined
  return { items, tokens: asCount(answer.usage?.reasoningTokens) ?? Buffer.byteLength(JSON.stringify(thoughts)) }
}

// Ids of items mean nothing to a provider that stored none: it would look for them and fail.
const toItem = (item: Json, ids: Array<string>): ReadonlyArray<ResponseInputItem> => {
  switch (item["type"]) {
    case "reasoning": {
      const { encrypted_content, summary } = item
      if (typeof encrypted_content !== "string") return []
      return [{ type: "reasoning", summary: [...asArray(summary)], encrypted_content } as never]
    }
    case "message": {
      const text = asArray(item["content"])
        .map(asRecord)
        .map(({ refusal, text }) => asText(text ?? refusal))
        .join("")
      return text === "" ? [] : [{ role: "assistant", content: text }]
    }
    case "function_call":
      return [
        {
          type: "function_call",
          call_id: ids.shift() ?? asText(item["call_id"]),
          name: asText(item["name"]),
          arguments: asText(item["arguments"]),
        },
      ]
    default:
      return []
  }
}
