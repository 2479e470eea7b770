import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Schema from "effect/Schema"
import type { Report } from "../../src/model/Provider.ts"
import * as TestingServer from "../../src/testing/TestingServer.ts"
import { asking, failing } from "./asking.ts"

/** Asks once; the reply and the reports. */
const asked = (turn: TestingServer.Turn) =>
  Effect.gen(function* () {
    const server = yield* TestingServer.make({ script: [turn] })
    const reports: Array<Report> = []
    const reply = yield* LanguageModel.generateText({
      prompt: "well?",
      disableToolCallResolution: true,
      toolCallValidation: "deferred",
    }).pipe(asking(server.url, reports))
    return { reply, reports }
  })

describe("usage", () => {
  it.effect("is reported exactly as stated, once, with the model that answered", () =>
    Effect.gen(function* () {
      const usage = { input: 120, cached: 100, cacheWrite: 5, output: 30, reasoning: 20 }
      const { reply, reports } = yield* asked({ text: "yes", usage, model: "gpt-test-2026" })
      assert.deepStrictEqual(reports, [
        {
          _tag: "Replied",
          usage: {
            inputTokens: 120,
            cachedInputTokens: 100,
            cacheWriteInputTokens: 5,
            outputTokens: 30,
            reasoningTokens: 20,
          },
          model: "gpt-test-2026",
          tier: "default",
          id: "resp_0",
        },
      ])
      assert.deepStrictEqual(
        { ...reply.usage.inputTokens },
        { total: 120, uncached: 15, cacheRead: 100, cacheWrite: 5 },
      )
      assert.deepStrictEqual({ ...reply.usage.outputTokens }, { total: 30, text: 10, reasoning: 20 })
    }),
  )

  it.effect("left out is unknown, not zero", () =>
    Effect.gen(function* () {
      const { reply, reports } = yield* asked({ text: "yes", usage: null })
      assert.deepStrictEqual(reports, [
        { _tag: "Replied", usage: undefined, model: "gpt-test", tier: "default", id: "resp_0" },
      ])
      assert.isUndefined(reply.usage.inputTokens.total)
      assert.isUndefined(reply.usage.outputTokens.total)
    }),
  )

  it.effect("that makes no sense is reported as it is and does not cost the reply", () =>
    Effect.gen(function* () {
      const usage = { input_tokens: 10.5, output_tokens: -3, input_tokens_details: { cached_tokens: 99 } }
      const output = [{ type: "message", content: [{ type: "output_text", text: "yes" }] }]
      const { reply, reports } = yield* asked({ body: { status: "completed", model: "m", output, usage } })
      assert.deepStrictEqual(reports, [
        {
          _tag: "Replied",
          usage: {
            inputTokens: 10.5,
            cachedInputTokens: 99,
            cacheWriteInputTokens: undefined,
            outputTokens: -3,
            reasoningTokens: undefined,
          },
          model: "m",
        },
      ])
      assert.strictEqual(reply.text, "yes")
      assert.isUndefined(reply.usage.inputTokens.total)
    }),
  )

  it.effect("is reported even when the reply fails to decode", () =>
    Effect.gen(function* () {
      const server = yield* TestingServer.make({ script: [{ text: "no JSON", usage: { input: 9, output: 3 } }] })
      const reports: Array<Report> = []
      const schema = Schema.Struct({ answer: Schema.String })
      const error = yield* LanguageModel.generateObject({ prompt: "well?", schema }).pipe(
        asking(server.url, reports),
        Effect.flip,
      )
      assert.strictEqual(error.reason._tag, "StructuredOutputError")
      assert.deepInclude(reports, {
        _tag: "Replied",
        usage: {
          inputTokens: 9,
          cachedInputTokens: 0,
          cacheWriteInputTokens: 0,
          outputTokens: 3,
          reasoningTokens: 0,
        },
        model: "gpt-test",
        tier: "default",
        id: "resp_0",
      })
      assert.lengthOf(reports, 1)
    }),
  )
})

describe("a reply", () => {
  it.effect("names itself and its model", () =>
    Effect.gen(function* () {
      const { reply } = yield* asked({ text: "yes" })
      const metadata = reply.content.find((part) => part.type === "response-metadata")
      assert.strictEqual(metadata?.id, "resp_0")
      assert.strictEqual(metadata?.modelId, "gpt-test")
    }),
  )

  it.effect("keeps arguments that are no JSON, and calls of tools nobody declared", () =>
    Effect.gen(function* () {
      const { reply } = yield* asked({
        calls: [
          { id: "a", name: "unheard_of", arguments: '{"city": "Ber' },
          { id: "b", name: "unheard_of", arguments: {} },
        ],
      })
      assert.deepStrictEqual(
        reply.content.flatMap((part) => (part.type === "tool-call" ? [[part.id, part.params]] : [])),
        [
          ["a", '{"city": "Ber'],
          ["b", {}],
        ],
      )
    }),
  )

  it.effect("cut by its limit says so and does not pass on the call that was cut", () =>
    Effect.gen(function* () {
      const { reply, reports } = yield* asked({
        text: "let me",
        calls: [
          { id: "a", name: "weather", arguments: { city: "Bern" } },
          { id: "b", name: "weather", arguments: { city: "Basel" } },
        ],
        incomplete: "max_output_tokens",
      })
      assert.strictEqual(reply.finishReason, "length")
      assert.strictEqual(reply.text, "let me")
      assert.deepStrictEqual(
        reply.content.flatMap((part) => (part.type === "tool-call" ? [part.id] : [])),
        ["a"],
      )
      assert.deepStrictEqual(
        reports.map((report) => report._tag),
        ["Replied"],
      )
    }),
  )

  it.effect("cut by a filter says so", () =>
    Effect.gen(function* () {
      const { reply } = yield* asked({ text: "well", incomplete: "content_filter" })
      assert.strictEqual(reply.finishReason, "content-filter")
    }),
  )

  it.effect("that refuses is text with a content-filter ending", () =>
    Effect.gen(function* () {
      const { reply } = yield* asked({ refusal: "I will not" })
      assert.strictEqual(reply.finishReason, "content-filter")
      assert.strictEqual(reply.text, "I will not")
    }),
  )

  it.effect("that refuses to fill in a schema fails, and is still reported", () =>
    Effect.gen(function* () {
      const server = yield* TestingServer.make({ script: [{ refusal: "I will not" }] })
      const reports: Array<Report> = []
      const schema = Schema.Struct({ answer: Schema.String })
      const error = yield* LanguageModel.generateObject({ prompt: "well?", schema }).pipe(
        asking(server.url, reports),
        Effect.flip,
      )
      assert.strictEqual(error.reason._tag, "ContentPolicyError")
      assert.deepStrictEqual(
        reports.map((report) => report._tag),
        ["Replied"],
      )
    }),
  )

  it.effect("keeps a summary of its reasoning", () =>
    Effect.gen(function* () {
      const output = [
        { type: "reasoning", summary: [{ type: "summary_text", text: "thinking" }] },
        { type: "message", content: [{ type: "output_text", text: "yes" }] },
        { type: "web_search_call" },
      ]
      const { reply } = yield* asked({ body: { status: "completed", output } })
      assert.strictEqual(reply.reasoningText, "thinking")
      assert.strictEqual(reply.text, "yes")
    }),
  )

  for (const [code, reason] of [
    ["server_error", "InternalProviderError"],
    ["rate_limit_exceeded", "RateLimitError"],
    ["invalid_prompt", "InvalidRequestError"],
    ["bio_policy", "ContentPolicyError"],
  ]) {
    it.effect(`that failed with ${code} is ${reason}, reported as a reply`, () =>
      Effect.gen(function* () {
        const server = yield* TestingServer.make({
          script: [{ body: { status: "failed", output: [], error: { code } } }],
        })
        const { error, reports } = yield* failing(server.url)
        assert.strictEqual(error.reason._tag, reason)
        assert.deepStrictEqual(reports, [{ _tag: "Replied", usage: undefined, model: undefined }])
      }),
    )
  }
})
