/** The bound on the input of an agent's request, beside the same count over what was sent. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Model } from "../../src/index.ts"
import { OpenAi } from "../../src/openai/index.ts"
import { forModel } from "../../src/openai/internal/tokens.ts"
import { TestingServer } from "../../src/testing/index.ts"

const Weather = Tool.make("weather", {
  description: "The weather of a city.",
  parameters: Schema.Struct({ city: Schema.String, unit: Schema.Literals(["c", "f"]) }),
  success: Schema.String,
})
const tools = [Weather]
const user = (text: string) => Prompt.userMessage({ content: [Prompt.textPart({ text })] })
const called = (id: string, city: string) => [
  Prompt.assistantMessage({
    content: [Prompt.toolCallPart({ id, name: "weather", params: { city, unit: "c" }, providerExecuted: false })],
  }),
  Prompt.toolMessage({
    content: [
      Prompt.toolResultPart({
        id,
        name: "weather",
        isFailure: false,
        result: `rain in ${city}`,
        providerExecuted: false,
      }),
    ],
  }),
]

const history = [
  Prompt.systemMessage({ content: "You know the weather." }),
  user("How is it in Bern?"),
  ...called("a", "Bern"),
]
const parts = { history, last: user("Go on.") }
const messages = [...history, parts.last]
const how = { maxOutputTokens: 100, headers: {}, report: () => {} }

/** The bound of a request, the same counter over the body that was sent for it, and the bound in bytes. */
const both = (request: Model.Request, protocol: "responses" | "chat") =>
  Effect.scoped(
    Effect.gen(function* () {
      const server = yield* TestingServer.make({ script: [{ text: "Rain." }] })
      const asked = { apiKey: Redacted.make("none"), baseUrl: server.url, protocol }
      const model = yield* OpenAi.model({ model: "gpt-5-mini", ...asked })
      const other = yield* OpenAi.model({ model: "llama", ...asked })
      yield* model.call(request, how)
      const counter = yield* forModel("gpt-5-mini")
      const sent = Result.getOrThrow(counter.body(server.requests[0]!.sent as never))
      return { bound: model.countInput(request).tokens, sent, bytes: other.countInput(request).tokens }
    }),
  )

describe("the bound on the input of a request", () => {
  for (const protocol of ["responses", "chat"] as const) {
    it.live(`is what the tokeniser finds in its body, in ${protocol}`, () =>
      Effect.gen(function* () {
        const answer = { tool: Weather, schema: Schema.Struct({ city: Schema.String }) }
        for (const request of [
          { messages, parts, tools },
          { messages, tools },
          { messages, tools: [] },
          { messages, tools: [], answer },
        ]) {
          const { bound, bytes, sent } = yield* both(request, protocol)
          // The margin is rounded up once more here: beside the messages, and for them.
          assert.isAtLeast(bound, sent)
          assert.isAtMost(bound, sent + 1)
          assert.isAbove(bytes, bound)
        }
      }),
    )
  }

  it.live("grows with its history by what was added", () =>
    Effect.gen(function* () {
      const model = yield* OpenAi.model({ model: "gpt-5-mini", apiKey: Redacted.make("none") })
      const growing = [...history]
      const of = () => model.countInput({ messages: [], parts: { history: growing, last: parts.last }, tools }).tokens
      const before = of()
      growing.push(...called("b", "Basel"))
      const fresh = [...growing]
      const anew = model.countInput({ messages: [], parts: { history: fresh, last: parts.last }, tools }).tokens
      assert.isAbove(of(), before)
      assert.strictEqual(of(), anew)
    }),
  )

  it.live("is that in bytes where something cannot be counted", () =>
    Effect.gen(function* () {
      const model = yield* OpenAi.model({ model: "gpt-5-mini", apiKey: Redacted.make("none") })
      const other = yield* OpenAi.model({ model: "llama", apiKey: Redacted.make("none") })
      const file = Prompt.filePart({ mediaType: "application/pdf", fileName: "a.pdf", data: new Uint8Array(300) })
      const request = { messages: [Prompt.userMessage({ content: [file] })], tools: [] }
      assert.strictEqual(model.countInput(request).tokens, other.countInput(request).tokens)
    }),
  )
})
