/**
 * Counting the input of a request that is not sent: the provider's input counter.
 *
 * Its law: unless the turn states another number, the answer is what the same request would bill as input if it came
 * next. The script is asked, so a function of the request and its number; it is told by `counting`.
 */
import type { Hub } from "./Generate.ts"
import { record } from "./Json.ts"
import { isRefusal, type Refusal, responsesBody } from "./Request.ts"
import type { Wire } from "./Reply.ts"
import { inputOf } from "./Tokens.ts"
import { turnFor } from "./Turn.ts"

/** The answer of the counter, or why there is none. */
export const countInput = async (hub: Hub, sent: unknown): Promise<Wire | Refusal> => {
  if (hub.options.hasCounter === false) return { status: 404, message: "no POST /v1/responses/input_tokens here" }
  const { input, model } = record(sent)
  const body = responsesBody({ ...record(sent), model: model ?? "", input: input ?? [] }, hub.store.conversation)
  if (isRefusal(body)) return body
  const asked = { ...body, counting: true } as const
  const turn = await turnFor(hub.options.script, asked, hub.turns).catch(() => undefined)
  const tokens = turn?.countedInput ?? turn?.usage?.input ?? inputOf(body)
  return { object: "response.input_tokens", input_tokens: tokens }
}
