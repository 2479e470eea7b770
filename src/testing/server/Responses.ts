/**
 * Replies in the Responses protocol: a response as one object, and the events it streams as.
 *
 * Its law: the last event of a stream holds the object that the same reply is without streaming.
 */
import { pieces, type Reply, running, type Wire } from "./Reply.ts"
import type { Stated } from "./Turn.ts"

/** Where a response stands. */
export type Status = "queued" | "in_progress" | "completed" | "incomplete" | "failed" | "cancelled"

/** The id of the reply to request `n`. */
export const idOf = (n: number): string => `resp_${n}`

/** The status a reply ends with. */
export const endOf = ({ failure, incomplete }: Reply): Status =>
  failure !== undefined ? "failed" : incomplete === undefined ? "completed" : "incomplete"

/** The finished response. */
export const response = (reply: Reply): Wire => ({
  ...shell(reply, endOf(reply)),
  ...(reply.stated === undefined ? {} : { usage: toUsage(reply.stated) }),
})

/** A response in another state: nothing said yet, or ended from outside. */
export const unfinished = (reply: Reply, status: Status): Wire => ({ ...shell(reply, status), output: [], usage: null })

/** The response, without its usage. */
const shell = (reply: Reply, status: Status): Wire => {
  const { body } = reply.asked
  const echo = (name: string, otherwise: unknown): unknown => body[name] ?? otherwise
  return {
    id: idOf(reply.n),
    object: "response",
    created_at: createdAt(reply.n),
    status,
    background: reply.asked.background,
    error: status === "failed" ? { code: reply.failure?.code, message: reply.failure?.message } : null,
    incomplete_details: status === "incomplete" ? { reason: reply.incomplete } : null,
    instructions: echo("instructions", null),
    max_output_tokens: reply.asked.cap ?? null,
    metadata: echo("metadata", {}),
    model: reply.model,
    output: status === "failed" ? [] : itemsOf(reply),
    parallel_tool_calls: echo("parallel_tool_calls", true),
    previous_response_id: echo("previous_response_id", null),
    service_tier: reply.tier,
    store: reply.asked.stored,
    temperature: echo("temperature", 1),
    text: echo("text", { format: { type: "text" } }),
    tool_choice: echo("tool_choice", "auto"),
    tools: echo("tools", []),
    top_p: echo("top_p", 1),
  }
}

/** Not the real time, so that the same script writes the same bytes. */
export const createdAt = (n: number): number => 1_800_000_000 + n

/** The output items of a reply: reasoning, message, calls. */
export const itemsOf = (reply: Reply): ReadonlyArray<Item> => {
  const { calls } = reply.said
  const isMessageLast = calls.length === 0
  return [
    ...reasoningOf(reply),
    ...messageOf(reply, reply.incomplete !== undefined && isMessageLast ? "incomplete" : "completed"),
    ...calls.map((call, index): Item => {
      const status = call.isCut ? "incomplete" : "completed"
      const { arguments: args, id, name } = call
      return { id: `fc_${reply.n}_${index}`, type: "function_call", status, call_id: id, name, arguments: args }
    }),
  ]
}

type Part =
  | { readonly type: "output_text"; readonly text: string | null; readonly annotations: []; readonly logprobs: [] }
  | { readonly type: "refusal"; readonly refusal: string }

type Item =
  | { readonly id: string; readonly type: "reasoning"; readonly summary: ReadonlyArray<Summary> }
  | {
      readonly id: string
      readonly type: "message"
      readonly role: "assistant"
      readonly status: string
      readonly content: ReadonlyArray<Part>
    }
  | {
      readonly id: string
      readonly type: "function_call"
      readonly status: string
      readonly call_id: string
      readonly name: string
      readonly arguments: string
    }

interface Summary {
  readonly type: "summary_text"
  readonly text: string
}

const reasoningOf = ({ asked, n, reasoning }: Reply): ReadonlyArray<Item> => {
  if (reasoning === undefined) return []
  const summary: ReadonlyArray<Summary> = reasoning === "" ? [] : [{ type: "summary_text", text: reasoning }]
  const { include } = asked.body
  const isWanted = Array.isArray(include) && include.includes("reasoning.encrypted_content")
  const encrypted = isWanted ? { encrypted_content: Buffer.from(`reasoning ${n}`).toString("base64") } : {}
  return [{ id: `rs_${n}`, type: "reasoning", summary, ...encrypted }]
}

const messageOf = ({ hasNullContent, n, said }: Reply, status: string): ReadonlyArray<Item> => {
  const told = hasNullContent && said.text !== undefined ? null : said.text
  const text: ReadonlyArray<Part> =
    told === undefined ? [] : [{ type: "output_text", text: told, annotations: [], logprobs: [] }]
  const refusal: ReadonlyArray<Part> = said.refusal === undefined ? [] : [{ type: "refusal", refusal: said.refusal }]
  const content = [...text, ...refusal]
  if (content.length === 0) return []
  return [{ id: `msg_${n}`, type: "message", role: "assistant", status, content }]
}

/** Usage as the protocol spells it. */
export const toUsage = (usage: Stated): Wire => ({
  input_tokens: usage.input,
  input_tokens_details: { cached_tokens: usage.cached ?? 0, cache_write_tokens: usage.cacheWrite ?? 0 },
  output_tokens: usage.output,
  output_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
  total_tokens: usage.total ?? usage.input + usage.output,
})

/** The events of a stream in order, numbered from 0; the last one ends it. */
export const events = (reply: Reply): ReadonlyArray<Wire> => {
  const started = {
    ...unfinished(reply, "in_progress"),
    ...(reply.statesRunningUsage && reply.stated !== undefined ? { usage: toUsage(running(reply.stated, 0, 1)) } : {}),
  }
  const said: ReadonlyArray<Wire> = [
    { type: "response.created", response: started },
    { type: "response.in_progress", response: started },
    ...itemsOf(reply).flatMap(itemEvents),
    { type: `response.${endOf(reply)}`, response: response(reply) },
  ]
  return failed(said, reply).map(({ type, ...event }, index) => ({ type, sequence_number: index, ...event }))
}

const failed = (said: ReadonlyArray<Wire>, reply: Reply): ReadonlyArray<Wire> => {
  const { failure } = reply
  if (failure === undefined) return said
  const { code, message } = failure
  const last =
    failure.as === "failed"
      ? { type: "response.failed", response: response(reply) }
      : { type: "error", code, message, param: null }
  return [...said.slice(0, -1).slice(0, failure.afterEvents), last]
}

const itemEvents = (item: Item, index: number): ReadonlyArray<Wire> => {
  const at = { item_id: item.id, output_index: index }
  return [
    { type: "response.output_item.added", output_index: index, item: begun(item) },
    ...insideOf(item, at),
    { type: "response.output_item.done", output_index: index, item },
  ]
}

const begun = (item: Item): Wire => {
  switch (item.type) {
    case "reasoning":
      return { ...item, summary: [] }
    case "message":
      return { ...item, status: "in_progress", content: [] }
    case "function_call":
      return { ...item, status: "in_progress", arguments: "" }
  }
}

const insideOf = (item: Item, at: Wire): ReadonlyArray<Wire> => {
  switch (item.type) {
    case "reasoning":
      return item.summary.flatMap((part, index) => summaryEvents(part, { ...at, summary_index: index }))
    case "message":
      return item.content.flatMap((part, index) => partEvents(part, { ...at, content_index: index }))
    case "function_call": {
      const type = "response.function_call_arguments"
      return [
        ...pieces(item.arguments).map((delta) => ({ type: `${type}.delta`, ...at, delta })),
        { type: `${type}.done`, ...at, name: item.name, arguments: item.arguments },
      ]
    }
  }
}

const summaryEvents = (part: Summary, at: Wire): ReadonlyArray<Wire> => [
  { type: "response.reasoning_summary_part.added", ...at, part: { ...part, text: "" } },
  ...pieces(part.text).map((delta) => ({ type: "response.reasoning_summary_text.delta", ...at, delta })),
  { type: "response.reasoning_summary_text.done", ...at, text: part.text },
  { type: "response.reasoning_summary_part.done", ...at, part },
]

const partEvents = (part: Part, at: Wire): ReadonlyArray<Wire> => {
  const said =
    part.type === "refusal"
      ? [
          ...pieces(part.refusal).map((delta) => ({ type: "response.refusal.delta", ...at, delta })),
          { type: "response.refusal.done", ...at, refusal: part.refusal },
        ]
      : [
          ...pieces(part.text ?? "").map((delta) => ({
            type: "response.output_text.delta",
            ...at,
            delta,
            logprobs: [],
          })),
          { type: "response.output_text.done", ...at, text: part.text, logprobs: [] },
        ]
  return [
    {
      type: "response.content_part.added",
      ...at,
      part: { ...part, ...(part.type === "refusal" ? { refusal: "" } : { text: "" }) },
    },
    ...said,
    { type: "response.content_part.done", ...at, part },
  ]
}
