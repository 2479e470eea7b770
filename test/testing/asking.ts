/**
 * Asking a testing server, through the official client and as raw bytes.
 */
import * as net from "node:net"
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { OpenAI } from "openai"
import type { ChatCompletion, ChatCompletionChunk, ChatCompletionTool } from "openai/resources/chat/completions"
import type { FunctionTool, Response, ResponseStreamEvent } from "openai/resources/responses/responses"
import * as TestingServer from "../../src/testing/TestingServer.ts"

/** The official client, which would otherwise try again. */
export const clientOf = ({ url }: { readonly url: string }): OpenAI =>
  new OpenAI({ apiKey: "none", baseURL: url, maxRetries: 0, logLevel: "off" })

/** A server for a test, or for several at once. */
export const serving = (
  script: TestingServer.Script,
  options: Omit<TestingServer.Options, "script"> = {},
): ReturnType<typeof TestingServer.make> => TestingServer.make({ script, ...options })

const parameters = { type: "object", properties: {}, required: [], additionalProperties: false }

/** The tool `look`, in both protocols. */
export const look: FunctionTool = { type: "function", name: "look", parameters, strict: true }
export const chatLook: ChatCompletionTool = { type: "function", function: { name: "look", parameters, strict: true } }

/** The four ways to ask. */
export const ways = ["responses", "responses streamed", "chat", "chat streamed"] as const
export type Way = (typeof ways)[number]

/** What a client got, whichever way it asked. */
export interface Got {
  readonly text: string
  readonly refusal: string
  readonly calls: ReadonlyArray<{ readonly id: string; readonly name: string; readonly arguments: string }>
  /** `stop`, `length`, `content_filter` or `tool_calls`. */
  readonly finish: string
  readonly model: string
  readonly tier: string | null | undefined
  readonly usage:
    | {
        readonly input: number
        readonly output: number
        readonly cached: number
        readonly written: number
        readonly reasoning: number
        readonly total: number
      }
    | undefined
}

/** What to ask; everything optional has the server's or the provider's default. */
export interface Asking {
  readonly content?: string
  readonly cap?: number
  readonly tools?: boolean
  readonly signal?: AbortSignal
}

/** Asks one way through the official client and puts together what came. */
export const ask = (
  server: { readonly url: string },
  way: Way,
  asking: Asking = {},
): Effect.Effect<Got, Cause.UnknownError> => Effect.tryPromise((signal) => asked(server, way, { signal, ...asking }))

const asked = (server: { readonly url: string }, way: Way, asking: Asking): Promise<Got> => {
  const { cap, content = "hello", signal, tools = false } = asking
  const client = clientOf(server)
  const options = signal === undefined ? {} : { signal }
  const messages = [{ role: "user" as const, content }]
  const responses = {
    model: "m",
    input: messages,
    ...(cap === undefined ? {} : { max_output_tokens: cap }),
    ...(tools ? { tools: [look] } : {}),
  }
  const chat = {
    model: "m",
    messages,
    ...(cap === undefined ? {} : { max_completion_tokens: cap }),
    ...(tools ? { tools: [chatLook] } : {}),
  }
  switch (way) {
    case "responses":
      return client.responses.create(responses, options).then(ofResponse)
    case "responses streamed":
      return client.responses
        .create({ ...responses, stream: true }, options)
        .then(collected)
        .then(ofEvents)
    case "chat":
      return client.chat.completions.create(chat, options).then(ofCompletion)
    case "chat streamed":
      return client.chat.completions
        .create({ ...chat, stream: true, stream_options: { include_usage: true } }, options)
        .then(collected)
        .then(ofChunks)
  }
}

/** Everything a stream yields. */
export const collected = async <A>(stream: AsyncIterable<A>): Promise<ReadonlyArray<A>> => {
  const all: Array<A> = []
  for await (const one of stream) all.push(one)
  return all
}

const ofResponse = (response: Response): Got => {
  const parts = response.output.flatMap((item) => (item.type === "message" ? (item.content ?? []) : []))
  const calls = response.output.filter((item) => item.type === "function_call")
  const { usage } = response
  const reason = response.incomplete_details?.reason
  return {
    text: parts.map((part) => (part.type === "output_text" ? part.text : "")).join(""),
    refusal: parts.map((part) => (part.type === "refusal" ? part.refusal : "")).join(""),
    calls: calls.map(({ arguments: args, call_id: id, name }) => ({ id, name, arguments: args })),
    finish:
      reason === undefined
        ? calls.length > 0
          ? "tool_calls"
          : "stop"
        : reason === "content_filter"
          ? reason
          : "length",
    model: response.model,
    tier: response.service_tier,
    usage: usage && {
      input: usage.input_tokens,
      output: usage.output_tokens,
      cached: usage.input_tokens_details.cached_tokens,
      written: usage.input_tokens_details.cache_write_tokens,
      reasoning: usage.output_tokens_details.reasoning_tokens,
      total: usage.total_tokens,
    },
  }
}

/** From the deltas, except what only the last event tells. */
const ofEvents = (events: ReadonlyArray<ResponseStreamEvent>): Got => {
  const last = events.at(-1)
  if (last?.type !== "response.completed" && last?.type !== "response.incomplete") {
    throw new Error(`the stream ended with ${last?.type}`)
  }
  const deltas = (type: ResponseStreamEvent["type"]): string =>
    events
      .map((event) => (event.type === type && "delta" in event && typeof event.delta === "string" ? event.delta : ""))
      .join("")
  const begun = events.flatMap((event) =>
    event.type === "response.output_item.added" && event.item.type === "function_call" ? [event.item] : [],
  )
  const args = (id: string | undefined): string =>
    events
      .map((event) =>
        event.type === "response.function_call_arguments.delta" && event.item_id === id ? event.delta : "",
      )
      .join("")
  return {
    ...ofResponse(last.response),
    text: deltas("response.output_text.delta"),
    refusal: deltas("response.refusal.delta"),
    calls: begun.map(({ call_id: id, id: item, name }) => ({ id, name, arguments: args(item) })),
  }
}

const ofCompletion = ({ choices, model, service_tier: tier, usage }: ChatCompletion): Got => {
  const choice = choices[0]
  const calls = choice?.message.tool_calls ?? []
  return {
    text: choice?.message.content ?? "",
    refusal: choice?.message.refusal ?? "",
    calls: calls.flatMap((call) =>
      call.type === "function" ? [{ id: call.id, name: call.function.name, arguments: call.function.arguments }] : [],
    ),
    finish: choice?.finish_reason ?? "none",
    model,
    tier,
    usage: ofChatUsage(usage),
  }
}

const ofChatUsage = (usage: ChatCompletion["usage"] | null): Got["usage"] =>
  usage === undefined || usage === null
    ? undefined
    : {
        input: usage.prompt_tokens,
        output: usage.completion_tokens,
        cached: usage.prompt_tokens_details?.cached_tokens ?? 0,
        written: usage.prompt_tokens_details?.cache_write_tokens ?? 0,
        reasoning: usage.completion_tokens_details?.reasoning_tokens ?? 0,
        total: usage.total_tokens,
      }

const ofChunks = (chunks: ReadonlyArray<ChatCompletionChunk>): Got => {
  const choices = chunks.flatMap((chunk) => chunk.choices)
  const calls: Array<{ id: string; name: string; arguments: string }> = []
  for (const part of choices.flatMap(({ delta }) => delta.tool_calls ?? [])) {
    const call = (calls[part.index] ??= { id: part.id ?? "", name: part.function?.name ?? "", arguments: "" })
    call.arguments += part.function?.arguments ?? ""
  }
  return {
    text: choices.map(({ delta }) => delta.content ?? "").join(""),
    refusal: choices.map(({ delta }) => delta.refusal ?? "").join(""),
    calls,
    finish: choices.at(-1)?.finish_reason ?? "none",
    model: chunks[0]?.model ?? "",
    tier: chunks[0]?.service_tier,
    usage: ofChatUsage(chunks.at(-1)?.usage),
  }
}

/** A request's body, one way. */
export const bodyOf = (way: Way, more: object = {}): object => {
  const said = [{ role: "user", content: "hello" }]
  const streamed = way.endsWith("streamed")
  return {
    model: "m",
    ...(way.startsWith("chat") ? { messages: said } : { input: said }),
    ...(streamed ? { stream: true } : {}),
    ...more,
  }
}

/** The path of a way below the base URL. */
export const pathOf = (way: Way): string => (way.startsWith("chat") ? "/chat/completions" : "/responses")

/** What came over the wire: the head, and the bytes of the body with the chunked coding taken off. */
export interface Raw {
  readonly head: string
  readonly body: Buffer
  /** Whether the body came to its proper end. */
  readonly isWhole: boolean
}

/** Posts over a bare socket and reads until the server closes it, or has sent the whole body. */
export const raw = (server: { readonly url: string }, way: Way, more: object = {}): Effect.Effect<Raw> =>
  Effect.callback((resume) => {
    const { hostname, pathname, port } = new URL(server.url)
    const json = JSON.stringify(bodyOf(way, more))
    const socket = net.connect(Number(port), hostname)
    let bytes = Buffer.alloc(0)
    socket.on("data", (data: Buffer) => {
      bytes = Buffer.concat([bytes, data])
    })
    socket.on("error", () => {})
    socket.on("close", () => resume(Effect.succeed(split(bytes))))
    const lines = ["host: x", "connection: close", `content-length: ${Buffer.byteLength(json)}`]
    socket.write(`POST ${pathname}${pathOf(way)} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n${json}`)
    return Effect.sync(() => void socket.destroy())
  })

const split = (bytes: Buffer): Raw => {
  const end = bytes.indexOf("\r\n\r\n")
  if (end < 0) return { head: bytes.toString(), body: Buffer.alloc(0), isWhole: false }
  const head = bytes.subarray(0, end).toString()
  const rest = bytes.subarray(end + 4)
  const length = /content-length: (\d+)/i.exec(head)?.[1]
  return length === undefined
    ? { head, ...unchunked(rest) }
    : { head, body: rest, isWhole: rest.length === Number(length) }
}

const unchunked = (bytes: Buffer): { readonly body: Buffer; readonly isWhole: boolean } => {
  const parts: Array<Buffer> = []
  let rest = bytes
  for (;;) {
    const line = rest.indexOf("\r\n")
    if (line < 0) return { body: Buffer.concat(parts), isWhole: false }
    const size = Number.parseInt(rest.subarray(0, line).toString(), 16)
    if (size === 0) return { body: Buffer.concat(parts), isWhole: true }
    parts.push(rest.subarray(line + 2, line + 2 + size))
    rest = rest.subarray(line + 2 + size + 2)
  }
}

/** The tokens of a ledger or an entry, by the names of a turn's usage. */
export const billOf = (bill: TestingServer.Ledger | TestingServer.Entry | undefined) => ({
  input: bill?.inputTokens,
  cached: bill?.cachedTokens,
  cacheWrite: bill?.cacheWriteTokens,
  output: bill?.outputTokens,
  reasoning: bill?.reasoningTokens,
})
