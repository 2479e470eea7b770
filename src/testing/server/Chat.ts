/**
 * Replies in the Chat Completions protocol: a completion as one object, and the chunks it streams as.
 *
 * Its law: the deltas of a stream, put together, are the message of the object.
 */
import { pieces, type Reply, running, type Wire } from "./Reply.ts"
import { createdAt } from "./Responses.ts"
import type { SaidCall } from "./Tokens.ts"
import type { Stated } from "./Turn.ts"

/** The id of the reply to request `n`. */
export const idOf = (n: number): string => `chatcmpl_${n}`

/** The finished completion. */
export const completion = (reply: Reply): Wire => {
  const { calls, refusal } = reply.said
  const message = {
    role: "assistant",
    content: contentOf(reply),
    refusal: refusal ?? null,
    annotations: [],
    ...(calls.length === 0 ? {} : { tool_calls: calls.map(toCall) }),
  }
  return {
    ...shell(reply, "chat.completion"),
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReason(reply) }],
    ...(reply.stated === undefined ? {} : { usage: toUsage(reply.stated) }),
  }
}

/** What is neither text nor refusal nor calls is an empty text, as OpenAI sends it when reasoning ate the cap. */
const contentOf = ({ hasNullContent, said: { calls, refusal, text } }: Reply): string | null => {
  if (hasNullContent) return null
  return text ?? (calls.length > 0 || refusal !== undefined ? null : "")
}

const shell = ({ model, n, tier }: Reply, object: string): Wire => ({
  id: idOf(n),
  object,
  created: createdAt(n),
  model,
  service_tier: tier,
  system_fingerprint: "fp_testing",
})

const toCall = (call: SaidCall): Wire => ({
  id: call.id,
  type: "function",
  function: { name: call.name, arguments: call.arguments },
})

const finishReason = ({ incomplete, said: { calls } }: Reply): string => {
  if (incomplete !== undefined) return incomplete === "content_filter" ? "content_filter" : "length"
  return calls.length > 0 ? "tool_calls" : "stop"
}

/** Usage as the protocol spells it. */
export const toUsage = (usage: Stated): Wire => ({
  prompt_tokens: usage.input,
  completion_tokens: usage.output,
  total_tokens: usage.total ?? usage.input + usage.output,
  prompt_tokens_details: {
    cached_tokens: usage.cached ?? 0,
    cache_write_tokens: usage.cacheWrite ?? 0,
    audio_tokens: 0,
  },
  completion_tokens_details: {
    reasoning_tokens: usage.reasoning ?? 0,
    audio_tokens: 0,
    accepted_prediction_tokens: 0,
    rejected_prediction_tokens: 0,
  },
})

/** The chunks of a stream. `finishAt` is the first after which a client knows the end, `isDone` whether `[DONE]` follows. */
export interface Chunks {
  readonly chunks: ReadonlyArray<Wire>
  readonly finishAt: number
  readonly isDone: boolean
}

/** The chunks of a reply, the one with the usage last where it was asked for. */
export const chunks = (reply: Reply): Chunks => {
  const { failure, stated } = reply
  const choices = choicesOf(reply)
  const all = choices.map((choice, index) => ({
    ...shell(reply, "chat.completion.chunk"),
    choices: [{ index: 0, logprobs: null, finish_reason: null, ...choice }],
    ...usageAt(reply, index + 1, choices.length),
  }))
  if (failure !== undefined) {
    const { code, message } = failure
    const said = all.slice(0, -1).slice(0, failure.afterEvents)
    return {
      chunks: [...said, { error: { message, type: "server_error", param: null, code } }],
      finishAt: said.length,
      isDone: false,
    }
  }
  const finishAt = all.length - 1
  if (!reply.asked.includeUsage || stated === undefined) return { chunks: all, finishAt, isDone: true }
  const last = { ...shell(reply, "chat.completion.chunk"), choices: [], usage: toUsage(stated) }
  return { chunks: [...all, last], finishAt, isDone: true }
}

/** What a chunk says of usage: `null` where the last one will say it, a running total by temper. */
const usageAt = ({ asked, stated, statesRunningUsage }: Reply, done: number, all: number): Wire => {
  if (statesRunningUsage && stated !== undefined) return { usage: toUsage(running(stated, done, all)) }
  return asked.includeUsage ? { usage: null } : {}
}

const choicesOf = (reply: Reply): ReadonlyArray<Wire> => {
  const { calls, refusal } = reply.said
  const content = contentOf(reply)
  return [
    { delta: { role: "assistant", content: content === null ? null : "", refusal: null } },
    ...pieces(content ?? "").map((piece) => ({ delta: { content: piece } })),
    ...pieces(refusal ?? "").map((piece) => ({ delta: { refusal: piece } })),
    ...calls.flatMap(callDeltas),
    { delta: {}, finish_reason: finishReason(reply) },
  ]
}

const callDeltas = (call: SaidCall, index: number): ReadonlyArray<Wire> => {
  const { id, name } = call
  return [
    { delta: { tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] } },
    ...pieces(call.arguments).map((piece) => ({ delta: { tool_calls: [{ index, function: { arguments: piece } }] } })),
  ]
}
