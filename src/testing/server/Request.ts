/**
 * A request of either protocol, checked as the provider would check it before any model sees it, and translated into
 * the one form scripts see.
 *
 * Its law: what is refused here costs nothing and asks no script; every tool call of the conversation has its one
 * output, in order.
 */
import { isRecord, record, records } from "./Json.ts"
import { toItems, toTools, unpaired } from "./Messages.ts"
import type { Json, RequestBody } from "./Turn.ts"

/** The protocols of generation. */
export type Protocol = "responses" | "chat"

/** A request that may be answered. */
export interface Asked {
  readonly protocol: Protocol
  /** As the script sees it. */
  readonly body: RequestBody
  readonly streamed: boolean
  /** Whether the client of a Chat stream asked for usage. */
  readonly includeUsage: boolean
  readonly cap: number | undefined
  /** The service tier asked for. */
  readonly tier: string
  /** Whether the response is kept for `previous_response_id` and retrieval. */
  readonly stored: boolean
  readonly background: boolean
}

/** Why a request is refused. */
export interface Refusal {
  readonly status: number
  readonly message: string
  readonly code?: string | undefined
  readonly param?: string | undefined
}

/** Finds the conversation up to a stored response, its own output included. */
export type Earlier = (id: string) => ReadonlyArray<Json> | undefined

const bad = (message: string, param?: string, code?: string): Refusal => ({ status: 400, message, param, code })

/** The error body OpenAI sends. */
export const errorOf = ({ status, message, code, param }: Refusal): string => {
  const type =
    status >= 500
      ? "server_error"
      : status === 429
        ? rateType(code)
        : status === 401
          ? "authentication_error"
          : undefined
  return JSON.stringify({
    error: { message, type: type ?? "invalid_request_error", param: param ?? null, code: code ?? null },
  })
}

const rateType = (code: string | undefined): string =>
  code === "insufficient_quota" ? "insufficient_quota" : "rate_limit_error"

/** Whether a value is a refusal. */
export const isRefusal = (value: Asked | RequestBody | Refusal): value is Refusal =>
  "status" in value && "message" in value && typeof value.status === "number"

/** The body of a request in the one form, or why it cannot be read. */
export const bodyOf = (protocol: Protocol, sent: unknown, earlier: Earlier): RequestBody | Refusal =>
  protocol === "chat" ? chatBody(sent) : responsesBody(sent, earlier)

/** What a readable body asks, or why it is refused. */
export const ask = (protocol: Protocol, body: RequestBody): Asked | Refusal => {
  const refusal = (protocol === "chat" ? chatFault(body) : responsesFault(body)) ?? commonFault(body)
  if (refusal !== undefined) return refusal
  return {
    protocol,
    body,
    streamed: body["stream"] === true,
    includeUsage: record(body["stream_options"])["include_usage"] === true,
    cap: body.max_output_tokens ?? undefined,
    tier: tierOf(body["service_tier"]),
    stored: protocol === "responses" && body["store"] !== false,
    background: protocol === "responses" && body["background"] === true,
  }
}

const tierOf = (asked: unknown): string => (typeof asked === "string" && asked !== "auto" ? asked : "default")

/** A Responses body with the whole conversation as a list of items; also one whose input only is to be counted. */
export const responsesBody = (sent: unknown, earlier: Earlier): RequestBody | Refusal => {
  const { input, model, previous_response_id: previous } = record(sent)
  const given = typeof input === "string" ? [{ role: "user", content: input }] : records(input)
  const items = given ?? (input === undefined && typeof previous === "string" ? [] : undefined)
  if (!isRecord(sent) || typeof model !== "string" || items === undefined) {
    return bad("the body is no Responses request with a model and a list of input items")
  }
  const before = typeof previous === "string" ? earlier(previous) : []
  if (before === undefined) {
    const message = `Previous response with id '${String(previous)}' not found.`
    return bad(message, "previous_response_id", "previous_response_not_found")
  }
  const { max_output_tokens: cap, tools } = sent
  return {
    ...sent,
    model,
    input: before.length === 0 ? items : [...before, ...items],
    // What is neither list nor number is refused by its name below.
    ...(tools === undefined ? {} : { tools: tools as ReadonlyArray<Json> }),
    ...(cap === undefined ? {} : { max_output_tokens: cap as number }),
  }
}

/** A Chat body with its messages as items, its tools in the flat form and its cap under the one name. */
const chatBody = (sent: unknown): RequestBody | Refusal => {
  const { max_completion_tokens: newer, max_tokens: older, messages, model, tools } = record(sent)
  const said = records(messages)
  if (!isRecord(sent) || typeof model !== "string" || said === undefined || said.length === 0) {
    return bad("the body is no Chat Completions request with a model and a list of messages")
  }
  if (isGiven(newer) && isGiven(older)) {
    return bad("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.", "max_tokens")
  }
  const cap = newer ?? older
  const flat = toTools(tools)
  return {
    ...sent,
    model,
    input: toItems(said),
    ...(flat === undefined ? {} : { tools: flat }),
    ...(isGiven(cap) ? { max_output_tokens: cap as number } : {}),
  }
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== null

const commonFault = (body: RequestBody): Refusal | undefined => {
  const { stream, stream_options: options, tools } = body
  if (isGiven(stream) && typeof stream !== "boolean") return bad("stream is no boolean", "stream")
  if (isGiven(options) && stream !== true) {
    return bad("The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options")
  }
  if (isGiven(tools) && records(tools) === undefined) return bad("tools is no list of tools", "tools")
  return undefined
}

const responsesFault = (body: RequestBody): Refusal | undefined => {
  const cap: unknown = body.max_output_tokens
  if (isGiven(cap) && (!Number.isInteger(cap) || Number(cap) < 16)) {
    const message = `max_output_tokens is ${JSON.stringify(cap)}; an integer of at least 16 is expected`
    return bad(message, "max_output_tokens", "integer_below_min_value")
  }
  if (isGiven(body["conversation"])) {
    return bad("this server keeps no conversations; previous_response_id continues one", "conversation")
  }
  if (body["background"] === true && body["store"] === false) {
    return bad("Background mode requires 'store' to be true.", "store")
  }
  const trouble = unpaired(body.input)
  return trouble === undefined ? undefined : bad(trouble, "input")
}

const chatFault = (body: RequestBody): Refusal | undefined => {
  const cap: unknown = body.max_output_tokens
  if (isGiven(cap) && (!Number.isInteger(cap) || Number(cap) < 1)) {
    return bad(`the cap on tokens is ${JSON.stringify(cap)}; an integer of at least 1 is expected`, "max_tokens")
  }
  if (isGiven(body["n"]) && body["n"] !== 1) return bad("this server gives one choice; n is to be 1", "n")
  const messages = records(body["messages"]) ?? []
  const trouble = unanswered(messages) ?? unpaired(body.input)
  return trouble === undefined ? undefined : bad(trouble, "messages")
}

/** A Chat message with tool calls is followed by their tool messages at once. */
const unanswered = (messages: ReadonlyArray<Json>): string | undefined => {
  const open = new Map<unknown, number>()
  const waiting = () => [...open].filter(([, count]) => count > 0).map(([id]) => id)
  for (const [index, message] of messages.entries()) {
    if (message["role"] === "tool") {
      const id = message["tool_call_id"]
      const count = open.get(id) ?? 0
      if (count === 0) return "messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
      open.set(id, count - 1)
      continue
    }
    if (waiting().length > 0) return missing(waiting(), index)
    open.clear()
    for (const { id } of records(message["tool_calls"]) ?? []) open.set(id, (open.get(id) ?? 0) + 1)
  }
  return waiting().length > 0 ? missing(waiting(), messages.length) : undefined
}

const missing = (ids: ReadonlyArray<unknown>, index: number): string =>
  `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'; before message ${index} there is none for ${JSON.stringify(ids)}`
