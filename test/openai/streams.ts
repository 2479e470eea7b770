/** Streams as they come over the wire, in both protocols. */

/** Events of the Responses protocol, each with its name. */
export const responses = (...all: ReadonlyArray<{ readonly type: string; readonly [name: string]: unknown }>): string =>
  all.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("")

/** Chunks of Chat Completions, and the end mark unless told otherwise. */
export const chunks = (all: ReadonlyArray<unknown>, end = "data: [DONE]\n\n"): string =>
  all.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("") + end

/** A chunk with one choice. */
export const chunk = (delta: unknown, finish: string | null = null, more: object = {}): object => ({
  id: "chatcmpl_1",
  object: "chat.completion.chunk",
  created: 1_800_000_000,
  model: "gpt-test-2026",
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...more,
})

/** A fragment of a call. */
export const fragment = (of: { index?: number; id?: string; name?: string; args?: string }): object => ({
  ...(of.index === undefined ? {} : { index: of.index }),
  ...(of.id === undefined ? {} : { id: of.id }),
  type: "function",
  function: {
    ...(of.name === undefined ? {} : { name: of.name }),
    ...(of.args === undefined ? {} : { arguments: of.args }),
  },
})

export const chatUsage = { prompt_tokens: 12, completion_tokens: 7, total_tokens: 19 }

/** Text with wide characters, two calls, usage at the end. */
export const aChatStream = chunks([
  chunk({ role: "assistant", content: "" }),
  chunk({ content: "Grüße, " }),
  chunk({ content: "世界 👋" }),
  chunk({ tool_calls: [fragment({ index: 0, id: "call_a", name: "weather", args: "" })] }),
  chunk({ tool_calls: [fragment({ index: 0, args: '{"city":' })] }),
  chunk({ tool_calls: [fragment({ index: 0, args: '"Zürich"}' })] }),
  chunk({ tool_calls: [fragment({ index: 1, id: "call_b", name: "weather", args: '{"city":"Bern"}' })] }),
  chunk({}, "tool_calls"),
  { ...chunk({}), choices: [], usage: chatUsage, service_tier: "flex" },
])

const items = [
  {
    id: "msg_1",
    type: "message",
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text: "Grüße, 世界 👋", annotations: [] }],
  },
  {
    id: "fc_1",
    type: "function_call",
    status: "completed",
    call_id: "call_a",
    name: "weather",
    arguments: '{"city":"Zürich"}',
  },
  {
    id: "fc_2",
    type: "function_call",
    status: "completed",
    call_id: "call_b",
    name: "weather",
    arguments: '{"city":"Bern"}',
  },
]

export const finished = {
  id: "resp_1",
  object: "response",
  created_at: 1_800_000_000,
  status: "completed",
  model: "gpt-test-2026",
  service_tier: "flex",
  output: items,
  usage: { input_tokens: 12, output_tokens: 7, total_tokens: 19 },
}

export const aResponsesStream = responses(
  { type: "response.created", response: { id: "resp_1", status: "in_progress", output: [] } },
  { type: "response.output_text.delta", output_index: 0, delta: "Grüße, " },
  { type: "response.output_text.delta", output_index: 0, delta: "世界 👋" },
  ...items.map((item, index) => ({ type: "response.output_item.done", output_index: index, item })),
  { type: "response.completed", response: finished },
)

const shortChunk = (delta: unknown, finish: string | null = null): object => ({
  choices: [{ delta, finish_reason: finish }],
})

/** The shortest that hold everything, for trying every byte over the wire. */
export const shortChatStream = chunks([
  shortChunk({ content: "é" }),
  shortChunk({ tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: "{}" } }] }),
  shortChunk({}, "tool_calls"),
  { choices: [], usage: chatUsage },
])

const shortCall = { type: "function_call", status: "completed", call_id: "a", name: "f", arguments: "{}" }

export const shortResponsesStream = responses(
  { type: "response.output_item.done", item: shortCall },
  { type: "response.completed", response: { id: "resp_1", output: [shortCall], usage: { output_tokens: 7 } } },
)

/** A completion that did not stream. */
export const replyOf = (message: object, finish: string | null = "stop", more: object = {}): object => ({
  id: "chatcmpl_1",
  object: "chat.completion",
  model: "gpt-test-2026",
  choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason: finish }],
  usage: chatUsage,
  ...more,
})

/** A call as it is handed on. */
export const weather = (id: string, city: string) => ({ id, name: "weather", params: { city } })
