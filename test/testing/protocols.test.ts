/**
 * One script, both protocols, streamed and not, read back through the official client.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { ChatCompletionMessageParam } from "openai/resources/chat/completions"
import type { ResponseInputItem } from "openai/resources/responses/responses"
import type * as TestingServer from "../../src/testing/TestingServer.ts"
import { ask, billOf, chatLook, clientOf, collected, type Got, look, raw, serving, ways } from "./asking.ts"

const usage = { input: 11, output: 7, cached: 3, cacheWrite: 2, reasoning: 4 }
const told = { input: 11, output: 7, cached: 3, written: 2, reasoning: 4, total: 18 }
const plain: Got = {
  text: "",
  refusal: "",
  calls: [],
  finish: "stop",
  model: "m",
  tier: "default",
  usage: told,
}

const calls = [
  { id: "call_a", name: "look", arguments: { path: "a/rather/long/path", deep: true } },
  { id: "call_b", name: "look", arguments: "no JSON" },
]
const gotCalls = [
  { id: "call_a", name: "look", arguments: '{"path":"a/rather/long/path","deep":true}' },
  { id: "call_b", name: "look", arguments: "no JSON" },
]
const torn = [...gotCalls.slice(0, 1), { id: "call_b", name: "look", arguments: "no JSO" }]

const long = "Ünïcödé 👩‍🚀 and then some more of it, so that there are several deltas."

const replies: Array<[string, TestingServer.Turn, Partial<Got>]> = [
  ["a text", { text: long }, { text: long }],
  ["two calls", { calls }, { calls: gotCalls, finish: "tool_calls" }],
  ["a text and calls", { text: long, calls }, { text: long, calls: gotCalls, finish: "tool_calls" }],
  ["a refusal", { refusal: "I would rather not do that." }, { refusal: "I would rather not do that." }],
  ["a text cut at the cap", { text: "half", incomplete: "max_output_tokens" }, { text: "half", finish: "length" }],
  ["a filtered text", { text: "half", incomplete: "content_filter" }, { text: "half", finish: "content_filter" }],
  ["a call cut at the cap", { calls, incomplete: "max_output_tokens" }, { calls: torn, finish: "length" }],
  ["nothing", {}, {}],
  ["reasoning before a text", { reasoningSummary: "Let me think about that.", text: "So." }, { text: "So." }],
  [
    "another model and tier",
    { text: "x", model: "m-1", serviceTier: "flex" },
    { text: "x", model: "m-1", tier: "flex" },
  ],
]

describe("a reply is what the script says", () => {
  for (const way of ways) {
    for (const [name, turn, got] of replies) {
      it.effect(`${way}: ${name}`, () =>
        Effect.gen(function* () {
          const server = yield* serving([{ ...turn, usage }])
          assert.deepStrictEqual(yield* ask(server, way), { ...plain, ...got })
          assert.deepStrictEqual(billOf(server.ledger), usage)
          const [entry] = server.entries
          const isChat = way.startsWith("chat")
          assert.deepInclude(entry, {
            n: 0,
            id: isChat ? "chatcmpl_0" : "resp_0",
            protocol: isChat ? "chat" : "responses",
            streamed: way.endsWith("streamed"),
            outcome: "replied",
            model: turn.model ?? "m",
            serviceTier: turn.serviceTier ?? "default",
          })
        }),
      )
    }
  }
})

describe("the same script", () => {
  const script: TestingServer.Script = ({ input, max_output_tokens: cap, tools }) => ({
    text: JSON.stringify({ input, cap, tools: tools?.map(({ name }) => name) }),
  })

  it.effect("sees the same request in both protocols, and counts it the same", () =>
    Effect.gen(function* () {
      const server = yield* serving(script)
      const asking = { cap: 4000, tools: true }
      const got = yield* Effect.forEach(ways, (way) => ask(server, way, asking))
      for (const one of got) assert.deepStrictEqual(one, got[0])
      assert.deepStrictEqual(JSON.parse(got[0]?.text ?? ""), {
        input: [{ role: "user", content: "hello" }],
        cap: 4000,
        tools: ["look"],
      })
      for (const entry of server.entries) assert.deepStrictEqual(billOf(entry), billOf(server.entries[0]))
    }),
  )

  it.effect("sees tool calls, their outputs and images of a Chat request as items", () =>
    Effect.gen(function* () {
      const server = yield* serving(script)
      const messages: Array<ChatCompletionMessageParam> = [
        { role: "system", content: "be brief" },
        {
          role: "user",
          content: [
            { type: "text", text: "see" },
            { type: "image_url", image_url: { url: "data:image/png;base64,AAAA", detail: "low" } },
          ],
        },
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "c", type: "function", function: { name: "look", arguments: "{}" } }],
        },
        { role: "tool", tool_call_id: "c", content: "seen" },
      ]
      const items: Array<ResponseInputItem> = [
        { role: "system", content: "be brief" },
        {
          role: "user",
          content: [
            { type: "input_text", text: "see" },
            { type: "input_image", image_url: "data:image/png;base64,AAAA", detail: "low" },
          ],
        },
        { type: "function_call", call_id: "c", name: "look", arguments: "{}" },
        { type: "function_call_output", call_id: "c", output: "seen" },
      ]
      const client = clientOf(server)
      const model = "m"
      yield* Effect.promise(() => client.chat.completions.create({ model, messages, tools: [chatLook] }))
      yield* Effect.promise(() => client.responses.create({ model, input: items, tools: [look] }))
      const [chat, responses] = server.requests
      assert.deepStrictEqual(chat?.body.input, responses?.body.input)
      assert.deepStrictEqual(chat?.body.tools, responses?.body.tools)
      assert.deepStrictEqual(billOf(server.entries[0]), billOf(server.entries[1]))
      assert.deepStrictEqual(chat?.sent["messages"], messages)
    }),
  )
})

describe("a Responses stream", () => {
  const turn: TestingServer.Turn = {
    reasoningSummary: "Thinking.",
    text: "Text.",
    refusal: "No.",
    calls: [{ id: "c", name: "look", arguments: {} }],
  }
  const events = (script: ReadonlyArray<TestingServer.Turn>) =>
    Effect.gen(function* () {
      const server = yield* serving(script)
      const client = clientOf(server)
      return yield* Effect.promise(async () =>
        collected(await client.responses.create({ model: "m", input: "hello", stream: true })),
      )
    })

  it.effect("has the events OpenAI sends, in their order and numbered", () =>
    Effect.gen(function* () {
      const all = yield* events([turn])
      assert.deepStrictEqual(
        all.map(({ type }) => type),
        [
          "response.created",
          "response.in_progress",
          "response.output_item.added",
          "response.reasoning_summary_part.added",
          "response.reasoning_summary_text.delta",
          "response.reasoning_summary_text.done",
          "response.reasoning_summary_part.done",
          "response.output_item.done",
          "response.output_item.added",
          "response.content_part.added",
          "response.output_text.delta",
          "response.output_text.done",
          "response.content_part.done",
          "response.content_part.added",
          "response.refusal.delta",
          "response.refusal.done",
          "response.content_part.done",
          "response.output_item.done",
          "response.output_item.added",
          "response.function_call_arguments.delta",
          "response.function_call_arguments.done",
          "response.output_item.done",
          "response.completed",
        ],
      )
      all.forEach((event, index) => assert.propertyVal(event, "sequence_number", index))
    }),
  )

  it.effect("ends with the response that the same reply is without streaming", () =>
    Effect.gen(function* () {
      const server = yield* serving([{ ...turn, usage }])
      const whole = yield* raw(server, "responses")
      const last = (yield* events([{ ...turn, usage }])).at(-1)
      assert.isTrue(last?.type === "response.completed")
      const streamed = last?.type === "response.completed" ? last.response : undefined
      const { output, usage: stated } = JSON.parse(whole.body.toString())
      assert.deepStrictEqual(streamed?.output, output)
      assert.deepStrictEqual(streamed?.usage, stated)
    }),
  )

  it.effect("is put together again by the client's own accumulator", () =>
    Effect.gen(function* () {
      const server = yield* serving([{ ...turn, usage }])
      const client = clientOf(server)
      const final = yield* Effect.promise(() => client.responses.stream({ model: "m", input: "hello" }).finalResponse())
      assert.strictEqual(final.output_text, "Text.")
      assert.strictEqual(final.usage?.total_tokens, 18)
    }),
  )

  it.effect("comes as lines of event and data", () =>
    Effect.gen(function* () {
      const server = yield* serving([{ text: "x" }])
      const { body, head, isWhole } = yield* raw(server, "responses streamed")
      assert.isTrue(isWhole)
      assert.include(head, "content-type: text/event-stream")
      const blocks = body.toString().split("\n\n")
      assert.strictEqual(blocks.pop(), "")
      for (const block of blocks) {
        const [, type, data] = /^event: (\S+)\ndata: (.+)$/.exec(block) ?? []
        assert.propertyVal(JSON.parse(data ?? ""), "type", type)
      }
    }),
  )
})

describe("a Chat stream", () => {
  const stream = (script: ReadonlyArray<TestingServer.Turn>, includeUsage: boolean) =>
    Effect.gen(function* () {
      const server = yield* serving(script)
      const more = includeUsage ? { stream_options: { include_usage: true } } : {}
      const { body } = yield* raw(server, "chat streamed", more)
      const lines = body.toString().split("\n\n")
      assert.strictEqual(lines.pop(), "")
      assert.strictEqual(lines.pop(), "data: [DONE]")
      return lines.map((line) => JSON.parse(line.replace(/^data: /, "")))
    })

  it.effect("states usage in one last chunk without choices, where it was asked for", () =>
    Effect.gen(function* () {
      const chunks = yield* stream([{ text: long, usage }], true)
      const last = chunks.pop()
      assert.deepStrictEqual(last.choices, [])
      assert.strictEqual(last.usage.total_tokens, 18)
      for (const chunk of chunks) assert.isNull(chunk.usage)
    }),
  )

  it.effect("states none where it was not", () =>
    Effect.gen(function* () {
      const chunks = yield* stream([{ text: long, usage }], false)
      for (const chunk of chunks) assert.notProperty(chunk, "usage")
      assert.strictEqual(chunks.at(-1).choices[0].finish_reason, "stop")
    }),
  )

  it.effect("is put together again by the client's own accumulator", () =>
    Effect.gen(function* () {
      const server = yield* serving([{ text: long, calls, usage }])
      const client = clientOf(server)
      const final = yield* Effect.promise(() =>
        client.chat.completions
          .stream({
            model: "m",
            messages: [{ role: "user", content: "hello" }],
            stream_options: { include_usage: true },
          })
          .finalChatCompletion(),
      )
      assert.strictEqual(final.choices[0]?.message.content, long)
      assert.strictEqual(final.usage?.total_tokens, 18)
      assert.deepStrictEqual(
        final.choices[0]?.message.tool_calls
          ?.map((call) => (call.type === "function" ? call.function : undefined))
          .map((call) => call?.arguments),
        gotCalls.map((call) => call.arguments),
      )
    }),
  )
})

describe("the cap", () => {
  for (const way of ways) {
    it.effect(`${way}: cuts what is worked out: text, then calls`, () =>
      Effect.gen(function* () {
        const text = "x".repeat(60)
        const server = yield* serving(() => ({ text, calls }))
        const cut = yield* ask(server, way, { cap: 18 })
        assert.strictEqual(cut.finish, "length")
        assert.strictEqual(cut.text, text)
        assert.deepStrictEqual(cut.calls, [{ id: "call_a", name: "look", arguments: '{"path":' }])
        assert.strictEqual(cut.usage?.output, 18)
        const short = yield* ask(server, way, { cap: 16 })
        assert.deepStrictEqual(short.calls, [])
        assert.deepStrictEqual(billOf(server.entries[1]).output, 16)
      }),
    )

    it.effect(`${way}: counts reasoning, which may eat it whole`, () =>
      Effect.gen(function* () {
        const server = yield* serving([
          { reasoningTokens: 20, text: "x".repeat(40) },
          { reasoningTokens: 500, text: "never said", calls },
        ])
        const some = yield* ask(server, way, { cap: 25 })
        assert.deepInclude(some, { text: "x".repeat(20), finish: "length" })
        assert.deepInclude(some.usage, { output: 25, reasoning: 20 })
        const nothing = yield* ask(server, way, { cap: 25 })
        assert.deepInclude(nothing, { text: "", calls: [], finish: "length" })
        assert.deepInclude(billOf(server.entries[1]), { output: 25, reasoning: 25 })
      }),
    )
  }

  it.effect("cuts between characters", () =>
    Effect.gen(function* () {
      const server = yield* serving([{ text: `x${"👩".repeat(20)}` }])
      assert.strictEqual((yield* ask(server, "responses", { cap: 16 })).text, `x${"👩".repeat(15)}`)
    }),
  )

  it.effect("has an older name in Chat Completions", () =>
    Effect.gen(function* () {
      const server = yield* serving([{ text: "x".repeat(400) }])
      yield* raw(server, "chat", { max_tokens: 3 })
      assert.strictEqual(server.ledger.outputTokens, 3)
    }),
  )
})

describe("a request", () => {
  const call = { id: "c", type: "function", function: { name: "look", arguments: "{}" } }
  const user = { role: "user", content: "hello" }
  const assistant = { role: "assistant", tool_calls: [call] }
  const tool = { role: "tool", tool_call_id: "c", content: "seen" }
  const refused: Array<[string, "chat" | "responses", object, string]> = [
    ["without messages", "chat", { messages: [] }, "no Chat Completions request"],
    ["with both caps", "chat", { max_tokens: 5, max_completion_tokens: 5 }, "at the same time"],
    ["with a cap of 0", "chat", { max_completion_tokens: 0 }, "at least 1"],
    ["for two choices", "chat", { n: 2 }, "one choice"],
    ["with tools that are none", "chat", { tools: "look" }, "no list of tools"],
    ["with a stream that is none", "chat", { stream: "yes" }, "no boolean"],
    ["with stream options and no stream", "chat", { stream_options: { include_usage: true } }, "only allowed when"],
    ["with an open call at its end", "chat", { messages: [user, assistant] }, "must be followed by tool messages"],
    ["with an open call inside", "chat", { messages: [user, assistant, user, tool] }, "must be followed by"],
    ["with an output alone", "chat", { messages: [user, tool] }, "must be a response to a preceding message"],
    ["with an output twice", "chat", { messages: [user, assistant, tool, tool] }, "must be a response to a preceding"],
    ["with an unknown response before it", "responses", { previous_response_id: "resp_9" }, "'resp_9' not found"],
    ["in a conversation of the server", "responses", { conversation: "conv_1" }, "keeps no conversations"],
    ["in the background and not stored", "responses", { background: true, store: false }, "requires 'store'"],
    [
      "with an output before its call",
      "responses",
      {
        input: [
          { type: "function_call_output", call_id: "c", output: "" },
          { type: "function_call", call_id: "c" },
        ],
      },
      "no tool call found",
    ],
  ]
  for (const [name, way, more, message] of refused) {
    it.effect(`${way} ${name} is refused as the provider would, without asking the script`, () =>
      Effect.gen(function* () {
        const server = yield* serving([{ text: "yes" }])
        const { body, head } = yield* raw(server, way, more)
        assert.include(head, "400 Bad Request")
        assert.include(JSON.parse(body.toString()).error.message, message)
        assert.deepInclude(server.ledger, { requests: 1, refused: 1 })
        assert.deepInclude(server.entries[0], { outcome: "refused", id: undefined })
        yield* raw(server, way, way === "chat" ? { messages: [user, assistant, tool] } : {})
        assert.strictEqual(server.ledger.replies, 1)
      }),
    )
  }
})
