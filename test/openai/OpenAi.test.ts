import { assert, describe, it, vi } from "@effect/vitest"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { Report } from "../../src/model/Provider.ts"
import * as Provider from "../../src/model/Provider.ts"
import { OpenAi } from "../../src/openai/index.ts"
import * as TestingServer from "../../src/testing/TestingServer.ts"
import { asking, key } from "./asking.ts"

const Weather = Tool.make("weather", {
  description: "Tells the weather",
  parameters: Schema.Struct({ city: Schema.String }),
  success: Schema.String,
})
const Search = Tool.make("search", { parameters: Schema.Struct({ query: Schema.optionalKey(Schema.String) }) })
const toolkit = Toolkit.make(Weather, Search)

const withTools = (prompt: Prompt.RawInput, toolChoice: "auto" | { readonly tool: "weather" } = "auto") =>
  LanguageModel.generateText({
    prompt,
    toolkit,
    toolChoice,
    disableToolCallResolution: true,
    toolCallValidation: "deferred",
  })

describe("a request", () => {
  it.effect("carries model, limit, key, headers, and asks for nothing to be stored", () =>
    Effect.gen(function* () {
      const server = yield* TestingServer.make({ script: [{ text: "yes" }] })
      yield* LanguageModel.generateText({ prompt: "well?" }).pipe(
        asking(server.url, [], { organization: "org-1", project: "proj-1" }),
        Effect.provideService(Provider.MaxOutputTokens, 77),
        Effect.provideService(Provider.CallHeaders, { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7-01" }),
      )
      const [request] = server.requests
      assert.deepStrictEqual(request?.body, {
        model: "gpt-test",
        input: [{ role: "user", content: [{ type: "input_text", text: "well?" }] }],
        store: false,
        max_output_tokens: 77,
      })
      assert.strictEqual(request?.headers["authorization"], `Bearer ${key}`)
      assert.strictEqual(request?.headers["traceparent"], "00-0af7651916cd43dd8448eb211c80319c-b7-01")
      assert.strictEqual(request?.headers["openai-organization"], "org-1")
      assert.strictEqual(request?.headers["openai-project"], "proj-1")
    }),
  )

  it.effect("goes where the options say, whatever the environment says", () =>
    Effect.gen(function* () {
      const server = yield* TestingServer.make({ script: [{ text: "yes" }] })
      const names = ["ADMIN_KEY", "API_KEY", "ORG_ID", "PROJECT_ID", "BASE_URL"].map((name) => `OPENAI_${name}`)
      yield* Effect.acquireRelease(
        Effect.sync(() => names.forEach((name) => vi.stubEnv(name, "http://127.0.0.1:1"))),
        () => Effect.sync(() => vi.unstubAllEnvs()),
      )
      yield* LanguageModel.generateText({ prompt: "well?" }).pipe(asking(server.url))
      const headers = server.requests[0]?.headers
      assert.strictEqual(headers?.["authorization"], `Bearer ${key}`)
      assert.notProperty(headers, "openai-organization")
      assert.notProperty(headers, "openai-project")
    }),
  )

  it.effect("without a key is never made", () =>
    Effect.gen(function* () {
      const server = yield* TestingServer.make({ script: [] })
      const call = LanguageModel.generateText({ prompt: "well?" })
      const none = OpenAi.layer({ model: "gpt-test", apiKey: Redacted.make(""), baseUrl: server.url })
      const error = yield* call.pipe(Effect.provide(none), Effect.flip)
      assert.strictEqual(error.message, 'apiKey is "": give a key; "none" where a server needs none')
      assert.strictEqual(server.ledger.requests, 0)
    }),
  )

  it.effect("without a limit names none", () =>
    Effect.gen(function* () {
      const server = yield* TestingServer.make({ script: [{ text: "yes" }] })
      yield* LanguageModel.generateText({ prompt: "well?" }).pipe(asking(server.url))
      assert.notProperty(server.requests[0]?.body, "max_output_tokens")
    }),
  )

  it.effect("holds system, user, image, assistant, call and result in their order", () =>
    Effect.gen(function* () {
      const server = yield* TestingServer.make({ script: [{ text: "done" }] })
      const prompt = Prompt.make([
        { role: "system", content: "be brief" },
        {
          role: "user",
          content: [
            { type: "text", text: "what is this?" },
            { type: "file", mediaType: "image/png", data: new Uint8Array([1, 2, 3]) },
            { type: "file", mediaType: "image/png", data: new URL("https://example.com/a.png") },
          ],
        },
        {
          role: "assistant",
          content: [
            { type: "text", text: "let me see" },
            { type: "tool-call", id: "call_1", name: "weather", params: { city: "Bern" } },
            { type: "tool-call", id: "call_2", name: "weather", params: "{not json" },
          ],
        },
        {
          role: "tool",
          content: [
            { type: "tool-result", id: "call_1", name: "weather", result: { sky: "blue" }, isFailure: false },
            { type: "tool-result", id: "call_2", name: "weather", result: "bad arguments", isFailure: true },
          ],
        },
      ])
      yield* LanguageModel.generateText({ prompt }).pipe(asking(server.url))
      assert.deepStrictEqual(server.requests[0]?.body.input, [
        { role: "system", content: "be brief" },
        {
          role: "user",
          content: [
            { type: "input_text", text: "what is this?" },
            { type: "input_image", detail: "auto", image_url: "data:image/png;base64,AQID" },
            { type: "input_image", detail: "auto", image_url: "https://example.com/a.png" },
          ],
        },
        { role: "assistant", content: "let me see" },
        { type: "function_call", call_id: "call_1", name: "weather", arguments: '{"city":"Bern"}' },
        { type: "function_call", call_id: "call_2", name: "weather", arguments: "{not json" },
        { type: "function_call_output", call_id: "call_1", output: '{"sky":"blue"}' },
        { type: "function_call_output", call_id: "call_2", output: "bad arguments" },
      ])
    }),
  )

  it.effect("sends tools strict where OpenAI can enforce them, and the choice", () =>
    Effect.gen(function* () {
      const server = yield* TestingServer.make({ script: [{ text: "done" }, { text: "done" }] })
      yield* withTools("rain?").pipe(asking(server.url))
      yield* withTools("rain?", { tool: "weather" }).pipe(asking(server.url))
      const [first, second] = server.requests.map((request) => request.body)
      assert.deepStrictEqual(first?.tools, [
        {
          type: "function",
          name: "weather",
          description: "Tells the weather",
          strict: true,
          parameters: {
            type: "object",
            properties: { city: { type: "string" } },
            required: ["city"],
            additionalProperties: false,
          },
        },
        {
          type: "function",
          name: "search",
          strict: false,
          parameters: { type: "object", properties: { query: { type: "string" } }, additionalProperties: true },
        },
      ])
      assert.strictEqual(first?.["tool_choice"], "auto")
      assert.strictEqual(first?.["parallel_tool_calls"], true)
      assert.deepStrictEqual(second?.["tool_choice"], { type: "function", name: "weather" })
    }),
  )

  it.effect("asks for a schema and decodes the answer with it", () =>
    Effect.gen(function* () {
      const server = yield* TestingServer.make({ script: [{ text: '{"name":"Ada","age":null}' }] })
      const schema = Schema.Struct({ name: Schema.String, age: Schema.optionalKey(Schema.Int) })
      const reply = yield* LanguageModel.generateObject({ prompt: "who?", schema, objectName: "a person" }).pipe(
        asking(server.url),
      )
      assert.deepStrictEqual(reply.value, { name: "Ada" })
      const format: unknown = server.requests[0]?.body["text"]
      assert.deepInclude(format, {
        format: {
          type: "json_schema",
          name: "a_person",
          strict: true,
          schema: {
            type: "object",
            properties: {
              name: { type: "string" },
              age: {
                anyOf: [
                  { type: "integer", minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER },
                  { type: "null" },
                ],
              },
            },
            required: ["name", "age"],
            additionalProperties: false,
          },
        },
      })
    }),
  )

  it.effect("that cannot be built is reported as not sent", () =>
    Effect.gen(function* () {
      const server = yield* TestingServer.make({ script: [] })
      const reports: Array<Report> = []
      const prompt = Prompt.make([{ role: "user", content: [{ type: "file", mediaType: "audio/wav", data: "AAAA" }] }])
      const error = yield* LanguageModel.generateText({ prompt }).pipe(asking(server.url, reports), Effect.flip)
      assert.strictEqual(error.reason._tag, "InvalidUserInputError")
      assert.deepStrictEqual(reports, [{ _tag: "NotSent" }])
      assert.strictEqual(server.ledger.requests, 0)
    }),
  )
})

describe("a conversation", () => {
  it.effect("goes through a tool call and back", () =>
    Effect.gen(function* () {
      const server = yield* TestingServer.make({
        script: (request) => {
          const output = request.input.find((item) => item["type"] === "function_call_output")
          return output === undefined
            ? { calls: [{ id: "call_1", name: "weather", arguments: { city: "Bern" } }] }
            : { text: `it is ${String(output["output"])}` }
        },
      })
      const question = Prompt.make("rain in Bern?")
      const asked = yield* withTools(question).pipe(asking(server.url))
      assert.strictEqual(asked.finishReason, "tool-calls")
      assert.deepStrictEqual(
        asked.toolCalls.map(({ id, name, params }) => ({ id, name, params })),
        [{ id: "call_1", name: "weather", params: { city: "Bern" } }],
      )
      const result = { type: "tool-result", id: "call_1", name: "weather", result: "dry", isFailure: false } as const
      const history = Prompt.concat(question, Prompt.fromResponseParts(asked.content))
      const answered = yield* withTools(Prompt.concat(history, [{ role: "tool", content: [result] }])).pipe(
        asking(server.url),
      )
      assert.strictEqual(answered.text, "it is dry")
      assert.strictEqual(answered.finishReason, "stop")
      assert.strictEqual(server.ledger.replies, 2)
    }),
  )
})

describe("streamText", () => {
  it.effect("emits the text as it comes and the rest at the end, from one request", () =>
    Effect.gen(function* () {
      const server = yield* TestingServer.make({
        script: [{ text: "hello", calls: [{ id: "call_1", name: "weather", arguments: { city: "Bern" } }] }],
      })
      const reports: Array<Report> = []
      const parts = yield* LanguageModel.streamText({
        prompt: "hi",
        toolkit,
        disableToolCallResolution: true,
        toolCallValidation: "deferred",
      }).pipe(Stream.runCollect, asking(server.url, reports))
      assert.deepStrictEqual(
        parts.map((part) => part.type),
        ["text-start", "text-delta", "text-end", "response-metadata", "tool-call", "finish"],
      )
      assert.deepStrictEqual(
        reports.map((report) => report._tag),
        ["Replied"],
      )
      assert.strictEqual(server.ledger.requests, 1)
      assert.strictEqual(server.requests[0]?.body["stream"], true)
    }),
  )
})

describe("interruption", () => {
  for (const method of ["generateText", "streamText"] as const) {
    it.effect(`of ${method} closes the connection and reports the request as lost, once`, () =>
      Effect.gen(function* () {
        const server = yield* TestingServer.make({ script: [{ text: "late", latencyMs: 600_000 }] })
        const reports: Array<Report> = []
        const call =
          method === "generateText"
            ? LanguageModel.generateText({ prompt: "well?" })
            : LanguageModel.streamText({ prompt: "well?" }).pipe(Stream.runDrain)
        const fiber = yield* call.pipe(asking(server.url, reports), Effect.forkChild)
        yield* server.until((ledger) => ledger.requests === 1)
        yield* Fiber.interrupt(fiber)
        assert.deepStrictEqual(reports, [{ _tag: "Lost" }])
        yield* server.until((ledger) => ledger.aborted === 1)
        assert.strictEqual(server.ledger.replies, 0)
      }),
    )
  }
})

describe("layerConfig", () => {
  const configured = (config: unknown, options?: Parameters<typeof OpenAi.layerConfig>[0]) =>
    OpenAi.layerConfig(options).pipe(Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(config))))
  const ask = LanguageModel.generateText({ prompt: "well?" })

  it.effect("reads key, address and model; a given model wins; gpt-5-mini is the default", () =>
    Effect.gen(function* () {
      const server = yield* TestingServer.make({ script: () => ({ text: "yes" }) })
      const config = { OPENAI_API_KEY: key, OPENAI_BASE_URL: server.url }
      yield* ask.pipe(Effect.provide(configured(config)))
      yield* ask.pipe(Effect.provide(configured({ ...config, OPENAI_MODEL: "gpt-a" })))
      yield* ask.pipe(Effect.provide(configured({ ...config, OPENAI_MODEL: "gpt-a" }, { model: "gpt-b" })))
      assert.deepStrictEqual(
        server.requests.map((request) => request.body.model),
        ["gpt-5-mini", "gpt-a", "gpt-b"],
      )
      assert.strictEqual(server.requests[0]?.headers["authorization"], `Bearer ${key}`)
    }),
  )

  it.effect("fails without a key and with an empty one", () =>
    Effect.gen(function* () {
      for (const config of [{}, { OPENAI_API_KEY: "" }]) {
        const error = yield* ask.pipe(Effect.provide(configured(config)), Effect.flip)
        assert.strictEqual(error._tag, "ConfigError")
      }
    }),
  )
})
