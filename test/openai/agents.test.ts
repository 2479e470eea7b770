import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { Agent, Contract, ToolError } from "../../src/index.ts"
import type { Options } from "../../src/openai/OpenAi.ts"
import * as OpenAi from "../../src/openai/OpenAi.ts"
import * as TestingServer from "../../src/testing/TestingServer.ts"
import { completed, rowOf } from "../support/driven.ts"
import { key } from "./asking.ts"

const Weather = Contract.annotate(
  Tool.make("weather", {
    parameters: Schema.Struct({ city: Schema.String }),
    success: Schema.String,
    failure: ToolError.ToolError,
  }),
  { effect: "read" },
)
const toolkit = Toolkit.make(Weather)
const handlers = toolkit.toLayer({ weather: ({ city }) => Effect.succeed(`dry in ${city}`) })
const agent = Agent.make("forecaster", { instructions: "Tell the weather.", toolkit })

/** Two calls at once, one call, the answer; every reply says what it costs. */
const script: TestingServer.Script = (request, n) => {
  const call = (id: string, city: string) => ({ id, name: "weather", arguments: { city } })
  const usage = { input: 100 + 50 * n, output: 20 + n, reasoning: 5 }
  if (n === 0) return { text: "Let me see.", calls: [call("x", "Bern"), call("y", "Basel")], usage }
  if (n === 1) return { calls: [call("x", "Chur")], usage }
  const results = request.input.filter((item) => item["type"] === "function_call_output")
  return { text: results.map((item) => String(item["output"])).join(", "), usage }
}

const ways: ReadonlyArray<Partial<Options>> = [
  { protocol: "responses", stream: false },
  { protocol: "responses", stream: true },
  { protocol: "chat", stream: false },
  { protocol: "chat", stream: true },
  { conversation: "previous_response_id", stream: true },
  { conversation: "previous_response_id", stream: false },
  { reasoning: { effort: "low" }, stream: true },
]

const tempers: ReadonlyArray<TestingServer.Tempers> = [
  [],
  "repeats-ids",
  "empties-ids",
  "usage-on-every-chunk",
  "other-tier",
]

describe("an agent over real HTTP", () => {
  for (const way of ways) {
    for (const temper of tempers) {
      it.live(
        `${JSON.stringify(way)} with a server that ${temper.length === 0 ? "obeys" : String(temper)} books what is billed`,
        () =>
          Effect.gen(function* () {
            const server = yield* TestingServer.make({ script, temper })
            const model = OpenAi.layer({ model: "gpt-test", apiKey: Redacted.make(key), baseUrl: server.url, ...way })
            const budget = { steps: 9, toolCalls: 9, inputTokens: 60_000, outputTokens: 20_000 }
            const outcome = yield* Agent.run(agent, "rain?", { budget }).pipe(Effect.provide([model, handlers]))
            assert.strictEqual(completed(outcome).answer, "dry in Bern, dry in Basel, dry in Chur")
            const { own } = rowOf(outcome)
            const { ledger } = server
            assert.strictEqual(ledger.replies, 3)
            assert.strictEqual(ledger.requests, 3)
            assert.deepStrictEqual([own.inputTokens, own.outputTokens], [ledger.inputTokens, ledger.outputTokens])
            assert.deepStrictEqual([own.inputTokens, own.outputTokens], [450, 63])
            assert.strictEqual(own.toolCalls, 3)
            // Calls without ids of their own cannot be answered by id: then everything is sent.
            const continues = way.conversation !== undefined && temper !== "empties-ids"
            const named = server.requests.map(({ sent }) => sent["previous_response_id"])
            assert.deepStrictEqual(named, [undefined, ...(continues ? ["resp_0", "resp_1"] : [undefined, undefined])])
          }),
      )
    }
  }
})
