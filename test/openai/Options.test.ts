import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { Options } from "../../src/openai/OpenAi.ts"
import { call, events, json, modelAt, question, serve } from "./raw.ts"
import { aResponsesStream, finished } from "./streams.ts"

const wrong: ReadonlyArray<readonly [Partial<Options>, string]> = [
  [{ model: "" }, 'model is "": name a model, such as "gpt-5-mini"'],
  [{ apiKey: Redacted.make("") }, 'apiKey is "": give a key; "none" where a server needs none'],
  [{ baseUrl: "sk-slipped" }, 'baseUrl is no address: give one such as "http://127.0.0.1:8000/v1"'],
  [{ baseUrl: "ftp://127.0.0.1" }, 'baseUrl is no address: give one such as "http://127.0.0.1:8000/v1"'],
  [{ timeout: 0 }, "timeout is 0 ms: give 1 to 2147483647 ms"],
  [{ timeout: "25 days" }, "timeout is 2160000000 ms: give 1 to 2147483647 ms"],
  [
    { protocol: "chat", conversation: "previous_response_id" },
    'conversation is "previous_response_id": set `protocol` to "responses"',
  ],
  [
    { conversation: "previous_response_id", store: false },
    'store is false: leave it out, or set `conversation` to "history"',
  ],
  [{ protocol: "chat", counter: true }, 'counter is true: set `protocol` to "responses"'],
  [{ protocol: "chat", reasoning: { summary: "auto" } }, "reasoning.summary is set: leave it out in chat"],
  [{ protocol: "chat", reasoning: { keep: true } }, "reasoning.keep is true: leave it out in chat"],
  [{ limitField: "max_tokens" }, 'limitField is set: set `protocol` to "chat"'],
  [{ streamUsage: false }, 'streamUsage is set: set `protocol` to "chat"'],
  [{ options: { max_output_tokens: 9 } }, "options.max_output_tokens is set: set the output limit of the agent"],
  [{ options: { seed: 7, stream: true } }, "options.stream is set: set `stream`"],
  [{ options: { service_tier: "flex" } }, "options.service_tier is set: set `tier`"],
  [{ options: { instructions: "be brief" } }, "options.instructions is set: give them to the agent"],
  [
    { options: { prompt: { id: "pmpt_1" } } },
    "options.prompt is set: give the agent its instructions; what a stored prompt holds cannot be bounded",
  ],
  [
    { options: { prediction: { type: "content", content: "x" } } },
    "options.prediction is set: leave it out; what is predicted wrong is billed beyond the output limit",
  ],
  [
    { options: { tools: [{ type: "web_search" }] } },
    "options.tools is set: give the tools to the agent; those that a provider runs itself cannot be bounded",
  ],
]

describe("an option that cannot be used", () => {
  for (const [options, message] of wrong) {
    it.effect(`is named, with the remedy: ${message}`, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(modelAt("http://127.0.0.1:1/v1", options))
        assert.strictEqual(error._tag, "OptionsError")
        assert.strictEqual(error.message, message)
      }),
    )
  }
})

describe("an option", () => {
  it.effect("of the caller's own goes out as it is, joined with what is written into the same field", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => json(response, finished))
      const model = yield* modelAt(server.url, {
        reasoning: { effort: "low" },
        options: { seed: 7, cache: { ttl: 60 }, include: ["message.output_text.logprobs"], reasoning: { mode: "x" } },
      })
      yield* call(model)
      assert.deepStrictEqual(server.requests[0]?.body, {
        model: "gpt-test",
        store: false,
        max_output_tokens: 100,
        reasoning: { mode: "x", effort: "low" },
        include: ["message.output_text.logprobs", "reasoning.encrypted_content"],
        seed: 7,
        cache: { ttl: 60 },
        input: [{ role: "user", content: [{ type: "input_text", text: "a private question" }] }],
      })
    }),
  )

  it.effect("for the service tier is the default one at OpenAI, and none elsewhere", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* modelAt("https://api.openai.com/v1")).tier, "default")
      assert.strictEqual((yield* modelAt("https://api.openai.com/v1", { tier: "flex" })).tier, "flex")
      assert.isUndefined((yield* modelAt("http://127.0.0.1:1/v1")).tier)
    }),
  )

  it.effect("for fetch is what sends the request", () =>
    Effect.gen(function* () {
      const sent: Array<string> = []
      const own: typeof fetch = async (url, init) => {
        sent.push(typeof url === "string" ? url : "no text")
        assert.isDefined(init?.signal)
        return new Response(JSON.stringify(finished), { headers: { "content-type": "application/json" } })
      }
      const model = yield* modelAt("http://127.0.0.1:1/v1", { fetch: own })
      assert.lengthOf((yield* call(model)).reply?.calls ?? [], 2)
      assert.deepStrictEqual(sent, ["http://127.0.0.1:1/v1/responses"])
    }),
  )
})

describe("a call", () => {
  it.effect("sends one request, whatever the answer, and follows nowhere", () =>
    Effect.gen(function* () {
      const elsewhere = yield* serve((response) => json(response, finished))
      for (const status of [301, 307, 308, 408, 409, 429, 500, 503]) {
        const server = yield* serve((response) => {
          response.writeHead(status, { location: `${elsewhere.url}/responses`, "retry-after-ms": "1234" })
          response.end("a private question")
        })
        const model = yield* modelAt(server.url)
        const { failure, reports } = yield* call(model)
        assert.deepStrictEqual(reports, [{ _tag: "Refused", status, retryAfterMillis: 1234 }])
        assert.strictEqual(failure?.retryAfterMillis, 1234)
        assert.notInclude(String(failure), "private")
        assert.lengthOf(server.requests, 1)
      }
      assert.lengthOf(elsewhere.requests, 0)
    }),
  )

  for (const stream of [true, false]) {
    it.effect(
      `whose listener throws dies with what it threw, and is reported once (${stream ? "" : "not "}streamed)`,
      () =>
        Effect.gen(function* () {
          const server = yield* serve((response) =>
            stream ? events(response, aResponsesStream) : json(response, finished),
          )
          const model = yield* modelAt(server.url, { stream })
          const reports: Array<string> = []
          const exit = yield* Effect.exit(
            model.call(question, {
              maxOutputTokens: 100,
              headers: {},
              report: ({ _tag }) => void reports.push(_tag),
              onText: () => {
                throw new Error("my mistake")
              },
            }),
          )
          assert.include(String(exit), "my mistake")
          assert.deepStrictEqual(reports, [stream ? "Lost" : "Replied"])
        }),
    )
  }
})
