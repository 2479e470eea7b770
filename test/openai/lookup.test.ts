import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Tool from "effect/ai/Tool"
import * as Schema from "effect/Schema"
import * as Estimate from "../../src/model/Estimate.ts"
import * as TestingServer from "../../src/testing/TestingServer.ts"
import { call, json, modelAt, question, serve } from "./raw.ts"

const Weather = Tool.make("weather", { parameters: Schema.Struct({ city: Schema.String }) })
const request = { ...question, tools: [Weather] }
const estimate = { tokens: Estimate.inputTokens(request), bound: "estimated" } as const

describe("the input counter", () => {
  it.effect("is asked what the call will ask, without what does not count", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => json(response, { object: "response.input_tokens", input_tokens: 42 }))
      const model = yield* modelAt(server.url, {
        counter: true,
        tier: "flex",
        reasoning: { effort: "low" },
        options: { seed: 7, text: { verbosity: "low" } },
      })
      assert.isDefined(model.count)
      assert.deepStrictEqual(yield* model.count?.(request) ?? Effect.die("no counter"), {
        tokens: 42,
        bound: "counted",
      })
      const [sent] = server.requests
      assert.strictEqual(sent?.path, "/v1/responses/input_tokens")
      const { tools, ...rest } = sent?.body ?? {}
      assert.lengthOf(tools as Array<unknown>, 1)
      assert.deepStrictEqual(rest, {
        model: "gpt-test",
        input: [{ role: "user", content: [{ type: "input_text", text: "a private question" }] }],
        reasoning: { effort: "low" },
        text: { verbosity: "low" },
        tool_choice: "auto",
        parallel_tool_calls: true,
      })
    }),
  )

  it.effect("says what the call is then billed", () =>
    Effect.gen(function* () {
      const server = yield* TestingServer.make({ script: () => ({ text: "yes" }) })
      const model = yield* modelAt(server.url, { counter: true })
      const counted = yield* model.count?.(request) ?? Effect.die("no counter")
      const { reports } = yield* call(model, request)
      const [report] = reports
      assert.strictEqual(report?._tag === "Replied" ? report.usage?.inputTokens : undefined, counted.tokens)
    }),
  )

  for (const [name, status, body, asked] of [
    ["that is not there", 404, {}, 1],
    ["that fails", 500, {}, 2],
    ["that is asked too often", 429, {}, 2],
    ["that says nothing", 200, {}, 2],
    ["that says a half", 200, { input_tokens: 1.5 }, 2],
    ["that says zero beside a question", 200, { input_tokens: 0 }, 2],
  ] as const) {
    it.effect(`${name} leaves the estimate, and is asked ${asked} times for 2 calls`, () =>
      Effect.gen(function* () {
        const server = yield* serve((response) => json(response, body, status))
        const model = yield* modelAt(server.url, { counter: true })
        for (let n = 0; n < 2; n++) {
          assert.deepStrictEqual(yield* model.count?.(request) ?? Effect.die("no counter"), estimate)
        }
        assert.lengthOf(server.requests, asked)
      }),
    )
  }

  it.effect("is there at OpenAI and where the options say so, and only for Responses", () =>
    Effect.gen(function* () {
      assert.isUndefined((yield* modelAt("http://127.0.0.1:1/v1")).count)
      assert.isDefined((yield* modelAt("https://api.openai.com/v1")).count)
      assert.isUndefined((yield* modelAt("https://api.openai.com/v1", { counter: false })).count)
      assert.isUndefined((yield* modelAt("https://api.openai.com/v1", { protocol: "chat" })).count)
    }),
  )
})

describe("a stored reply", () => {
  it.effect("says what it used, also where its stream was cut before it said so", () =>
    Effect.gen(function* () {
      const server = yield* TestingServer.make({
        script: [{ text: "a long answer", usage: { input: 9, output: 3 }, cut: 900 }],
      })
      const model = yield* modelAt(server.url, { store: true, stream: true })
      const { reports } = yield* call(model)
      const [lost] = reports
      assert.deepStrictEqual(reports, [{ _tag: "Lost", id: "resp_0" }])
      const id = lost?._tag === "Lost" ? (lost.id ?? "") : ""
      const report = yield* model.retrieve?.(id) ?? Effect.die("nothing is stored")
      assert.deepStrictEqual(report, {
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
    }),
  )

  for (const [name, status, body] of [
    ["that is unknown", 404, {}],
    ["that is not over", 200, { id: "resp_1", status: "in_progress", usage: null }],
    ["that is none", 200, { hello: "world" }],
  ] as const) {
    it.effect(`${name} says nothing`, () =>
      Effect.gen(function* () {
        const server = yield* serve((response) => json(response, body, status))
        const model = yield* modelAt(server.url, { store: true })
        assert.isUndefined(yield* model.retrieve?.("resp_1") ?? Effect.die("nothing is stored"))
        assert.strictEqual(server.requests[0]?.path, "/v1/responses/resp_1")
        assert.strictEqual(server.requests[0]?.method, "GET")
      }),
    )
  }

  it.effect("is not looked up under an id that would be another address", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => json(response, {}))
      const model = yield* modelAt(server.url, { store: true })
      for (const id of ["", "../models", "a/b", "a?b=c"]) {
        assert.isUndefined(yield* model.retrieve?.(id) ?? Effect.die("nothing is stored"))
      }
      assert.lengthOf(server.requests, 0)
    }),
  )

  it.effect("is there only where replies are stored", () =>
    Effect.gen(function* () {
      assert.isUndefined((yield* modelAt("http://127.0.0.1:1/v1")).retrieve)
      assert.isUndefined((yield* modelAt("http://127.0.0.1:1/v1", { protocol: "chat", store: true })).retrieve)
      assert.isDefined((yield* modelAt("http://127.0.0.1:1/v1", { conversation: "previous_response_id" })).retrieve)
    }),
  )
})
