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

/** Each message is measured once: a history only grows at its end. */
const measured = new WeakMap<object, number>()

const measure = (part: object, render: () => string, margin: number): number => {
  const known = measured.get(part)
  if (known !== undefined) return known
  const tokens = Math.ceil(Buffer.byteLength(render()) / bytesPerToken) + margin
  measured.set(part, tokens)
  return tokens
}

/** Upper estimate of the input tokens of a request, schemas included. */
export const inputTokens = (request: Request): number => {
  const message = (one: Prompt.Message) => measure(one, () => JSON.stringify(one.content), tokensPerMessage)
  const tool = (one: Tool.Any) =>
    measure(
      one,
      () => one.name + (Tool.getDescription(one) ?? "") + JSON.stringify(Tool.getJsonSchema(one)),
      tokensPerTool,
    )
  const answer = request.answer === undefined ? 0 : tool(request.answer.tool)
  return (
    request.messages.reduce((sum, one) => sum + message(one), 0) +
    request.tools.reduce((sum, one) => sum + tool(one), answer)
  )
}
