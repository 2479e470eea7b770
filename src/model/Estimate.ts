/**
 * An upper estimate of the input tokens of a request, for models without a counter of their own.
 *
 * One token for every two bytes of UTF-8, plus a margin for each message and tool. English prose takes about one token
 * for four bytes, code and JSON one for three, so this holds too much rather than too little. A bill above it is still
 * booked in full (an over-run).
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import type { Request } from "./Model.ts"

const bytesPerToken = 2
const tokensPerMessage = 16
const tokensPerTool = 32

interface Counted {
  messages: number
  tokens: number
}

/** What the messages of a history come to that were counted before. */
const counted = new WeakMap<ReadonlyArray<Prompt.Message>, Counted>()

const tokensOf = (message: Prompt.Message): number => bytesToTokens(JSON.stringify(message.content), tokensPerMessage)

const bytesToTokens = (text: string, margin: number): number =>
  Math.ceil(Buffer.byteLength(text) / bytesPerToken) + margin

/** The messages of a history; only those that are new are looked at. */
const historyTokens = (history: ReadonlyArray<Prompt.Message>): number => {
  const known = counted.get(history) ?? { messages: 0, tokens: 0 }
  counted.set(history, known)
  for (; known.messages < history.length; known.messages++) known.tokens += tokensOf(history[known.messages]!)
  return known.tokens
}

const toolTokens = new WeakMap<object, number>()

const tokensOfTool = (tool: Tool.Any): number => {
  const known = toolTokens.get(tool)
  if (known !== undefined) return known
  const text = tool.name + (Tool.getDescription(tool) ?? "") + JSON.stringify(Tool.getJsonSchema(tool))
  const tokens = bytesToTokens(text, tokensPerTool)
  toolTokens.set(tool, tokens)
  return tokens
}

/** Upper estimate of the input tokens of a request, schemas included. */
export const inputTokens = (request: Request): number =>
  (request.parts === undefined
    ? request.messages.reduce((sum, one) => sum + tokensOf(one), 0)
    : historyTokens(request.parts.history) + tokensOf(request.parts.last)) + tokensBeside(request)

const tokensBeside = ({ tools, answer }: Request): number =>
  tools.reduce((sum, one) => sum + tokensOfTool(one), answer === undefined ? 0 : tokensOfTool(answer.tool))
