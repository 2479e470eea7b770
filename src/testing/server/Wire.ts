/**
 * The Responses protocol as far as the testing server speaks it: checking a request, writing a reply, counting tokens.
 */
import type { Call, RequestBody, Turn, TurnUsage } from "./Turn.ts"

/** A reply to send and what it costs on the server's side. */
export interface Answer {
  readonly status: number
  readonly body: string
  readonly json: boolean
  readonly usage: TurnUsage
}

const nothing: TurnUsage = { input: 0, output: 0 }

/** The error body OpenAI sends. */
export const errorBody = (message: string, code?: string): string =>
  JSON.stringify({ error: { message, type: "invalid_request_error", param: null, code: code ?? null } })

/** Why a provider would refuse this request before any model sees it; `undefined` when it would not. */
export const faultOf = (body: unknown): string | undefined => {
  if (!isRequest(body)) return "the body is no Responses request with a model and a list of input items"
  if (body["stream"] === true) return "this server does not stream"
  const cap = body.max_output_tokens
  if (cap !== undefined && (!Number.isInteger(cap) || cap < 16)) {
    return `max_output_tokens is ${cap}; an integer of at least 16 is expected`
  }
  const called = idsOf(body, "function_call")
  const answered = idsOf(body, "function_call_output")
  const unasked = answered.find((id) => !called.includes(id))
  if (unasked !== undefined)
    return `no tool call found for function call output with call_id ${JSON.stringify(unasked)}`
  const open = called.find((id) => !answered.includes(id))
  return open === undefined ? undefined : `no tool output found for function call ${JSON.stringify(open)}`
}

/** Whether a parsed body has the shape every script relies on. */
export const isRequest = (body: unknown): body is RequestBody => {
  const { model, input } = asRecord(body)
  return typeof model === "string" && Array.isArray(input) && input.every((item) => typeof item === "object" && item)
}

const idsOf = (body: RequestBody, type: string): ReadonlyArray<unknown> =>
  body.input.filter((item) => item["type"] === type).map((item) => item["call_id"])

/** What a turn answers to a request. */
export const toAnswer = (turn: Turn, request: RequestBody, n: number): Answer => {
  if (turn.status !== undefined) {
    const body = errorBody(turn.errorMessage ?? `scripted error ${turn.status}`, turn.errorCode)
    return { status: turn.status, body, json: true, usage: nothing }
  }
  if (turn.body !== undefined) {
    const raw = typeof turn.body === "string" ? turn.body : undefined
    const body = raw ?? JSON.stringify(turn.body)
    return { status: 200, body, json: raw === undefined, usage: turn.usage ?? nothing }
  }
  const cut = capped(turn, request)
  const usage = cut.usage ?? counted(cut, request)
  return { status: 200, body: JSON.stringify(toReply(cut, request, n, usage)), json: true, usage }
}

/**
 * The tokens of a turn that states none: a quarter of the bytes, rounded up. Input counts the texts, arguments and
 * tool outputs of the input and the JSON of the tools; output counts texts, names and arguments, and is at least 1.
 */
const counted = (turn: Turn, request: RequestBody): TurnUsage => {
  const tools = request.tools === undefined ? "" : JSON.stringify(request.tools)
  return { input: quarter(textsOf(request.input).join("") + tools), output: Math.max(1, outputTokens(turn)) }
}

const outputTokens = (turn: Turn): number =>
  quarter(
    (turn.text ?? "") + (turn.refusal ?? "") + (turn.calls ?? []).map((call) => call.name + argumentsOf(call)).join(""),
  )

const quarter = (text: string): number => Math.ceil(Buffer.byteLength(text) / 4)

const textsOf = (value: unknown): ReadonlyArray<string> => {
  if (typeof value === "string") return [value]
  if (Array.isArray(value)) return value.flatMap(textsOf)
  const { name, content, text, arguments: args, output } = asRecord(value)
  return [name, content, text, args, output].flatMap((part) => (part === undefined ? [] : textsOf(part)))
}

/** The turn as `max_output_tokens` leaves it, when its tokens are ours to count. */
const capped = (turn: Turn, request: RequestBody): Turn => {
  const cap = request.max_output_tokens
  if (turn.usage !== undefined || cap === undefined || outputTokens(turn) <= cap) return turn
  const text = Buffer.from(turn.text ?? "")
    .subarray(0, cap * 4)
    .toString()
  const { input } = counted(turn, request)
  return { ...turn, text, usage: { input, output: cap }, incomplete: "max_output_tokens" }
}

const toReply = (turn: Turn, request: RequestBody, n: number, usage: TurnUsage): object => ({
  id: `resp_${n}`,
  object: "response",
  created_at: 1_800_000_000 + n,
  status: turn.incomplete === undefined ? "completed" : "incomplete",
  error: null,
  incomplete_details: turn.incomplete === undefined ? null : { reason: turn.incomplete },
  model: turn.model ?? request.model,
  output: [...toMessages(turn, n), ...toCalls(turn, n)],
  parallel_tool_calls: true,
  ...(turn.usage === null ? {} : { usage: toUsage(usage) }),
})

const toMessages = (turn: Turn, n: number): ReadonlyArray<object> => {
  const content = [
    ...(turn.text === undefined ? [] : [{ type: "output_text", text: turn.text, annotations: [] }]),
    ...(turn.refusal === undefined ? [] : [{ type: "refusal", refusal: turn.refusal }]),
  ]
  if (content.length === 0) return []
  const status = turn.incomplete === undefined || turn.calls !== undefined ? "completed" : "incomplete"
  return [{ id: `msg_${n}`, type: "message", role: "assistant", status, content }]
}

const toCalls = (turn: Turn, n: number): ReadonlyArray<object> => {
  const calls = turn.calls ?? []
  return calls.map((call, index) => {
    const cut = turn.incomplete !== undefined && index === calls.length - 1
    return {
      id: `fc_${n}_${index}`,
      type: "function_call",
      status: cut ? "incomplete" : "completed",
      call_id: call.id,
      name: call.name,
      arguments: cut ? argumentsOf(call).slice(0, -1) : argumentsOf(call),
    }
  })
}

const argumentsOf = (call: Call): string =>
  typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments)

const toUsage = (usage: TurnUsage): object => ({
  input_tokens: usage.input,
  input_tokens_details: { cached_tokens: usage.cached ?? 0, cache_write_tokens: usage.cacheWrite ?? 0 },
  output_tokens: usage.output,
  output_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
  total_tokens: usage.input + usage.output,
})

const asRecord = (value: unknown): { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null ? { ...value } : {}
