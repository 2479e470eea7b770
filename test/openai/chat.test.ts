import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import * as Schema from "effect/Schema"
import * as TestingServer from "../../src/testing/TestingServer.ts"
import { asking } from "./asking.ts"
import { call, events, json, modelAt, question, serve, user } from "./raw.ts"
import { chunk, chunks, replyOf, weather } from "./streams.ts"

const Weather = Tool.make("weather", {
  description: "Tells the weather",
  parameters: Schema.Struct({ city: Schema.String }),
  success: Schema.String,
})
const Search = Tool.make("search", { parameters: Schema.Struct({ query: Schema.optionalKey(Schema.String) }) })

describe("a request of Chat Completions", () => {
  it.effect("holds messages, tools and limit, and nothing that goes without saying", () =>
    Effect.gen(function* () {
      const server = yield* TestingServer.make({ script: [{ text: "done" }] })
      const model = yield* modelAt(server.url, { protocol: "chat" })
      const parts = [
        Prompt.textPart({ text: "what is this?" }),
        Prompt.filePart({ mediaType: "image/png", data: new Uint8Array([1, 2, 3]) }),
        Prompt.filePart({ mediaType: "image/*", data: new URL("https://example.com/a.png") }),
      ]
      const calls = [
        Prompt.toolCallPart({ id: "c1", name: "weather", params: { city: "Bern" }, providerExecuted: false }),
        Prompt.toolCallPart({ id: "c2", name: "weather", params: "{not json", providerExecuted: false }),
      ]
      const result = (id: string, result: unknown) =>
        Prompt.toolResultPart({ id, name: "weather", result, isFailure: false, providerExecuted: false })
      const messages = [
        Prompt.systemMessage({ content: "be brief" }),
        Prompt.userMessage({ content: parts }),
        Prompt.assistantMessage({ content: [Prompt.textPart({ text: "let me see" }), ...calls] }),
        Prompt.toolMessage({ content: [result("c1", { sky: "blue" }), result("c2", "bad arguments")] }),
        Prompt.assistantMessage({ content: [Prompt.textPart({ text: "blue" })] }),
        user("and now?"),
      ]
      yield* call(model, { messages, tools: [Weather, Search] })
      assert.deepStrictEqual(server.requests[0]?.sent, {
        model: "gpt-test",
        max_completion_tokens: 100,
        messages: [
          { role: "system", content: "be brief" },
          {
            role: "user",
            content: [
              { type: "text", text: "what is this?" },
              { type: "image_url", image_url: { url: "data:image/png;base64,AQID" } },
              { type: "image_url", image_url: { url: "https://example.com/a.png" } },
            ],
          },
          {
            role: "assistant",
            content: "let me see",
            tool_calls: [
              { id: "c1", type: "function", function: { name: "weather", arguments: '{"city":"Bern"}' } },
              { id: "c2", type: "function", function: { name: "weather", arguments: "{not json" } },
            ],
          },
          { role: "tool", tool_call_id: "c1", content: '{"sky":"blue"}' },
          { role: "tool", tool_call_id: "c2", content: "bad arguments" },
          { role: "assistant", content: "blue" },
          { role: "user", content: "and now?" },
        ],
        tools: [
          {
            type: "function",
            function: {
              name: "weather",
              description: "Tells the weather",
              parameters: {
                type: "object",
                properties: { city: { type: "string" } },
                required: ["city"],
                additionalProperties: false,
              },
              strict: true,
            },
          },
          {
            type: "function",
            function: {
              name: "search",
              parameters: { type: "object", properties: { query: { type: "string" } }, additionalProperties: true },
            },
          },
        ],
      })
    }),
  )

  it.effect("is what the options make of it", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => events(response, chunks([chunk({ content: "yes" }, "stop")])))
      const model = yield* modelAt(`${server.url}/deployments/a`, {
        protocol: "chat",
        stream: true,
        auth: "api-key",
        query: { "api-version": "2025-04-01-preview" },
        headers: { "x-own": "1" },
        limitField: "max_tokens",
        parallelCalls: false,
        reasoning: { effort: "low" },
        strict: false,
        tier: "flex",
        store: true,
        options: { seed: 7, metadata: { cache: "yes" } },
      })
      const headers = { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" }
      yield* call(model, { ...question, tools: [Weather] }, { headers })
      const [request] = server.requests
      assert.strictEqual(request?.path, "/v1/deployments/a/chat/completions?api-version=2025-04-01-preview")
      assert.deepInclude(request?.headers, { "x-own": "1", "api-key": "sk-test-0123456789abcdef", ...headers })
      assert.notProperty(request?.headers, "authorization")
      const { messages, tools, ...rest } = request?.body ?? {}
      assert.lengthOf(messages as Array<unknown>, 1)
      assert.notInclude(JSON.stringify(tools), "strict")
      assert.deepStrictEqual(rest, {
        model: "gpt-test",
        store: true,
        stream: true,
        stream_options: { include_usage: true },
        max_tokens: 100,
        service_tier: "flex",
        reasoning_effort: "low",
        parallel_tool_calls: false,
        seed: 7,
        metadata: { cache: "yes" },
      })
      assert.strictEqual(model.tier, "flex")
    }),
  )

  it.effect("asks for a form of the answer, and says no more than OpenAI can enforce", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => json(response, replyOf({ content: '{"query":null}' }, "stop")))
      for (const [strict, text] of [
        [true, "{}"],
        [false, '{"query":null}'],
      ] as const) {
        const model = yield* modelAt(server.url, { protocol: "chat", strict })
        const answer = { tool: Search, schema: Schema.Struct({ query: Schema.optionalKey(Schema.String) }) }
        // What OpenAI has to say as `null` is left out again, as the schema has it.
        assert.strictEqual((yield* call(model, { ...question, answer })).reply?.text, text)
      }
      const forms = server.requests.map(({ body }) => body["response_format"])
      const query = { type: "string" }
      assert.deepStrictEqual(forms, [
        {
          type: "json_schema",
          json_schema: {
            name: "answer",
            strict: true,
            schema: {
              type: "object",
              properties: { query: { anyOf: [query, { type: "null" }] } },
              required: ["query"],
              additionalProperties: false,
            },
          },
        },
        {
          type: "json_schema",
          json_schema: {
            name: "answer",
            schema: { type: "object", properties: { query }, additionalProperties: true },
          },
        },
      ])
    }),
  )
})

const toolCall = (id: unknown, name: string, args: unknown): object => ({
  id,
  type: "function",
  function: { name, arguments: args },
})

describe("a reply of Chat Completions", () => {
  const cases: ReadonlyArray<{
    readonly name: string
    readonly body: object
    readonly text?: string
    readonly calls?: ReadonlyArray<object>
    readonly finishReason?: string
  }> = [
    { name: "of text", body: replyOf({ content: "yes" }), text: "yes" },
    {
      name: "of text in parts",
      body: replyOf({
        content: [
          { type: "text", text: "y" },
          { type: "text", text: "es" },
        ],
      }),
      text: "yes",
    },
    { name: "of nothing", body: replyOf({ content: null }), text: "" },
    { name: "without the reason of its end", body: replyOf({ content: "yes" }, null), text: "yes" },
    {
      name: "that is a refusal",
      body: replyOf({ content: null, refusal: "no" }),
      text: "no",
      finishReason: "content-filter",
    },
    {
      name: "cut by a filter",
      body: replyOf({ content: "we" }, "content_filter"),
      text: "we",
      finishReason: "content-filter",
    },
    { name: "cut by its limit", body: replyOf({ content: "we" }, "length"), text: "we", finishReason: "length" },
    {
      name: "with calls",
      body: replyOf(
        {
          content: null,
          tool_calls: [toolCall("a", "weather", '{"city":"Bern"}'), toolCall("b", "weather", '{"city":"Basel"}')],
        },
        "tool_calls",
      ),
      calls: [weather("a", "Bern"), weather("b", "Basel")],
      finishReason: "tool-calls",
    },
    {
      name: "with calls that says only that it stopped",
      body: replyOf({ content: "", tool_calls: [toolCall("a", "weather", { city: "Bern" })] }),
      calls: [weather("a", "Bern")],
      finishReason: "tool-calls",
    },
    {
      name: "with calls without ids",
      body: replyOf({
        tool_calls: [toolCall("", "weather", '{"city":"Bern"}'), toolCall(null, "weather", '{"city":"Basel"}')],
      }),
      calls: [weather("call_0", "Bern"), weather("call_1", "Basel")],
      finishReason: "tool-calls",
    },
    {
      name: "with calls of one id",
      body: replyOf({
        tool_calls: [toolCall("a", "weather", '{"city":"Bern"}'), toolCall("a", "weather", '{"city":"Basel"}')],
      }),
      calls: [weather("a", "Bern"), weather("a_1", "Basel")],
      finishReason: "tool-calls",
    },
    {
      name: "with a call that comes twice",
      body: replyOf({
        tool_calls: [toolCall("a", "weather", '{"city":"Bern"}'), toolCall("a", "weather", '{"city":"Bern"}')],
      }),
      calls: [weather("a", "Bern"), weather("a", "Bern")],
      finishReason: "tool-calls",
    },
    {
      name: "with a call without arguments",
      body: replyOf({ tool_calls: [toolCall("a", "search", "")] }),
      calls: [{ id: "a", name: "search", params: {} }],
      finishReason: "tool-calls",
    },
    {
      name: "with arguments that are no JSON",
      body: replyOf({ tool_calls: [toolCall("a", "search", "{not json")] }, "tool_calls"),
      calls: [{ id: "a", name: "search", params: "{not json" }],
      finishReason: "tool-calls",
    },
    {
      name: "cut by its limit in its last call, though what came of it is JSON",
      body: replyOf(
        { tool_calls: [toolCall("a", "weather", '{"city":"Bern"}'), toolCall("b", "weather", '{"city":"Basel"}')] },
        "length",
      ),
      calls: [weather("a", "Bern")],
      finishReason: "length",
    },
    {
      name: "without the reason of its end, and a call that is not whole",
      body: replyOf({ tool_calls: [toolCall("a", "weather", '{"city":"Be')] }, null),
      calls: [],
      finishReason: "stop",
    },
  ]
  for (const { body, calls = [], finishReason = "stop", name, text = "" } of cases) {
    it.effect(`${name} is read`, () =>
      Effect.gen(function* () {
        const server = yield* serve((response) => json(response, body))
        const { heard, reply, reports } = yield* Effect.flatMap(
          modelAt(server.url, { protocol: "chat", stream: false }),
          (model) => call(model, question, { listens: true }),
        )
        assert.deepStrictEqual(reply, { text, calls, cut: finishReason === "length", finishReason } as typeof reply)
        assert.strictEqual(heard, text)
        assert.deepStrictEqual(
          reports.map(({ _tag }) => _tag),
          ["Replied"],
        )
      }),
    )
  }

  for (const body of [{}, { choices: [] }, { choices: [{}] }, "text", null]) {
    it.effect(`that is ${JSON.stringify(body)} cannot be read`, () =>
      Effect.gen(function* () {
        const server = yield* serve((response) => json(response, body))
        const { failure, reports } = yield* Effect.flatMap(modelAt(server.url, { protocol: "chat" }), call)
        assert.strictEqual(failure?.code, "InvalidResponseError")
        assert.deepStrictEqual(reports, [{ _tag: "Replied", usage: undefined, model: undefined }])
      }),
    )
  }

  for (const [error, code, retryable] of [
    [{ code: 429 }, "RateLimitError", true],
    [{ code: 502 }, "InternalProviderError", true],
    [{ code: 400 }, "InvalidRequestError", false],
    [{ code: "rate_limit_exceeded" }, "RateLimitError", true],
    [{ message: "a private question" }, "InternalProviderError", true],
  ] as const) {
    it.effect(`that is the error ${JSON.stringify(error)} behind status 200 is ${code}`, () =>
      Effect.gen(function* () {
        const server = yield* serve((response) => json(response, { error }))
        const { failure, reports } = yield* Effect.flatMap(modelAt(server.url, { protocol: "chat" }), call)
        assert.deepInclude(failure, { code, retryable })
        assert.deepStrictEqual(
          reports.map(({ _tag }) => _tag),
          ["Replied"],
        )
      }),
    )
  }
})

describe("the LanguageModel over Chat Completions", () => {
  it.effect("says the same", () =>
    Effect.gen(function* () {
      const server = yield* TestingServer.make({ script: [{ text: "It is four." }] })
      const reply = yield* LanguageModel.generateText({ prompt: "2 + 2?" }).pipe(
        asking(server.url, [], { protocol: "chat" }),
      )
      assert.strictEqual(reply.text, "It is four.")
      assert.property(server.requests[0]?.sent, "messages")
    }),
  )
})
