import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { call, events, json, modelAt, question, serve } from "./raw.ts"
import { chatUsage, chunk, chunks, fragment, replyOf, weather } from "./streams.ts"

const calling = (...fragments: ReadonlyArray<object>) =>
  fragments.map((one) => chunk({ content: null, tool_calls: [one] }))
const usageChunk = { ...chunk({}), choices: [], usage: chatUsage }

describe("a stream of Chat Completions", () => {
  const cases: ReadonlyArray<{
    readonly name: string
    readonly body: string
    readonly text?: string
    readonly calls?: ReadonlyArray<object>
    readonly usage?: readonly [number, number]
  }> = [
    { name: "without usage", body: chunks([chunk({ content: "yes" }), chunk({}, "stop")]), text: "yes" },
    {
      name: "with usage that is null to the end",
      body: chunks([chunk({ content: "yes" }, null, { usage: null }), chunk({}, "stop", { usage: null })]),
      text: "yes",
    },
    {
      name: "with usage on every chunk",
      body: chunks(
        [1, 2, 3].map((n) =>
          chunk({ content: "x" }, n === 3 ? "stop" : null, { usage: { prompt_tokens: 12, completion_tokens: n } }),
        ),
      ),
      text: "xxx",
      usage: [12, 3],
    },
    {
      name: "with usage on every chunk but the last",
      body: chunks([
        chunk({ content: "x" }, null, { usage: { prompt_tokens: 12, completion_tokens: 1 } }),
        chunk({}, "stop", { usage: null }),
      ]),
      text: "x",
      usage: [12, 1],
    },
    {
      name: "with usage beside its last choice",
      body: chunks([chunk({ content: "yes" }), chunk({}, "stop", { usage: chatUsage })]),
      text: "yes",
      usage: [12, 7],
    },
    {
      name: "with usage under a name of the server's own",
      body: chunks([chunk({ content: "yes" }), chunk({}, "stop", { x_groq: { usage: chatUsage } })]),
      text: "yes",
      usage: [12, 7],
    },
    {
      name: "without [DONE]",
      body: chunks([chunk({ content: "yes" }), chunk({}, "stop"), usageChunk], ""),
      text: "yes",
      usage: [12, 7],
    },
    {
      name: "without an empty line after [DONE]",
      body: chunks([chunk({ content: "yes" }), usageChunk], "data: [DONE]"),
      text: "yes",
      usage: [12, 7],
    },
    {
      name: "without the reason of its end",
      body: chunks([
        chunk({ content: "yes" }),
        ...calling(fragment({ index: 0, id: "a", name: "weather", args: '{"city":"Bern"}' })),
        usageChunk,
      ]),
      text: "yes",
      calls: [weather("a", "Bern")],
      usage: [12, 7],
    },
    {
      name: "without the reason of its end, and a call that is not whole",
      body: chunks([...calling(fragment({ index: 0, id: "a", name: "weather", args: '{"city":"Be' })), usageChunk]),
      calls: [],
      usage: [12, 7],
    },
    {
      name: "with id and name on every fragment",
      body: chunks([
        ...calling(
          fragment({ index: 0, id: "a", name: "weather", args: '{"city"' }),
          fragment({ index: 0, id: "a", name: "weather", args: ':"Bern"}' }),
          fragment({ index: 1, id: "b", name: "weather", args: '{"city":"Basel"}' }),
        ),
        chunk({}, "tool_calls"),
      ]),
      calls: [weather("a", "Bern"), weather("b", "Basel")],
    },
    {
      name: "with a call that is said twice",
      body: chunks([
        ...calling(
          fragment({ index: 0, id: "a", name: "weather", args: '{"city":"Bern"}' }),
          fragment({ index: 0, id: "a", name: "weather", args: '{"city":"Bern"}' }),
        ),
        chunk({}, "tool_calls"),
      ]),
      calls: [weather("a", "Bern")],
    },
    {
      name: "with empty ids and names after the first fragment",
      body: chunks([
        ...calling(
          fragment({ index: 0, id: "a", name: "weather", args: "" }),
          fragment({ index: 0, id: "", name: "", args: '{"city":"Bern"}' }),
        ),
        chunk({}, "tool_calls"),
      ]),
      calls: [weather("a", "Bern")],
    },
    {
      name: "without any id",
      body: chunks([
        ...calling(
          fragment({ index: 0, name: "weather", args: '{"city":"Bern"}' }),
          fragment({ index: 1, name: "weather", args: '{"city":"Basel"}' }),
        ),
        chunk({}, "tool_calls"),
      ]),
      calls: [weather("call_0", "Bern"), weather("call_1", "Basel")],
    },
    {
      name: "with one index for all its calls",
      body: chunks([
        ...calling(
          fragment({ index: 0, id: "a", name: "weather", args: '{"city":"Bern"}' }),
          fragment({ index: 0, id: "b", name: "weather", args: '{"city":"Basel"}' }),
        ),
        chunk({}, "stop"),
      ]),
      calls: [weather("a", "Bern"), weather("b", "Basel")],
    },
    {
      name: "with one index and no ids",
      body: chunks([
        ...calling(
          fragment({ index: 0, name: "weather", args: '{"city":' }),
          fragment({ index: 0, args: '"Bern"}' }),
          fragment({ index: 0, name: "weather", args: '{"city":"Basel"}' }),
        ),
        chunk({}, "stop"),
      ]),
      calls: [weather("call_0", "Bern"), weather("call_1", "Basel")],
    },
    {
      name: "without indices",
      body: chunks([
        ...calling(
          fragment({ id: "a", name: "weather", args: '{"city":' }),
          fragment({ args: '"Bern"}' }),
          fragment({ id: "b", name: "weather", args: '{"city":"Basel"}' }),
        ),
        chunk({}, "stop"),
      ]),
      calls: [weather("a", "Bern"), weather("b", "Basel")],
    },
    {
      name: "with one id for all its calls",
      body: chunks([
        ...calling(
          fragment({ index: 0, id: "a", name: "weather", args: '{"city":"Bern"}' }),
          fragment({ index: 1, id: "a", name: "weather", args: '{"city":"Basel"}' }),
        ),
        chunk({}, "stop"),
      ]),
      calls: [weather("a", "Bern"), weather("a_1", "Basel")],
    },
    {
      name: "cut by its limit in its last call",
      body: chunks([
        chunk({ content: "so" }),
        ...calling(
          fragment({ index: 0, id: "a", name: "weather", args: '{"city":"Bern"}' }),
          fragment({ index: 1, id: "b", name: "weather", args: '{"city":"Basel"}' }),
        ),
        chunk({}, "length"),
        usageChunk,
      ]),
      text: "so",
      calls: [weather("a", "Bern")],
      usage: [12, 7],
    },
  ]
  for (const { body, calls = [], name, text = "", usage } of cases) {
    it.effect(`${name} is read`, () =>
      Effect.gen(function* () {
        const server = yield* serve((response) => events(response, body))
        const { failure, heard, reply, reports } = yield* Effect.flatMap(
          modelAt(server.url, { protocol: "chat" }),
          (model) => call(model, question, { listens: true }),
        )
        assert.isUndefined(failure)
        assert.strictEqual(reply?.text, text)
        assert.strictEqual(heard, text)
        assert.deepStrictEqual(reply?.calls, calls as NonNullable<typeof reply>["calls"])
        const [report] = reports
        assert.lengthOf(reports, 1)
        const stated = report?._tag === "Replied" ? report.usage : undefined
        assert.deepStrictEqual(stated && [stated.inputTokens, stated.outputTokens], usage as Array<number> | undefined)
      }),
    )
  }

  it.effect("with an error in it fails, is lost, and hands on no call", () =>
    Effect.gen(function* () {
      const said = calling(fragment({ index: 0, id: "a", name: "weather", args: '{"city":"Bern"}' }))
      const server = yield* serve((response) =>
        events(
          response,
          chunks([...said, { error: { code: 502, message: "a private question" } }, chunk({}, "tool_calls")]),
        ),
      )
      const { failure, reports } = yield* Effect.flatMap(modelAt(server.url, { protocol: "chat", stream: true }), call)
      assert.deepInclude(failure, { code: "InternalProviderError", retryable: true })
      assert.notInclude(String(failure), "private")
      assert.deepStrictEqual(reports, [{ _tag: "Lost", id: "chatcmpl_1" }])
    }),
  )

  it.effect("that was asked for and came in one piece is read, and the other way round", () =>
    Effect.gen(function* () {
      const server = yield* serve((response, { body }) =>
        body["stream"] === true
          ? json(response, replyOf({ content: "yes" }))
          : events(response, chunks([chunk({ content: "yes" }, "stop")])),
      )
      for (const stream of [true, false]) {
        const model = yield* modelAt(server.url, { protocol: "chat", stream })
        const { heard, reply } = yield* call(model, question, { listens: true })
        assert.strictEqual(reply?.text, "yes")
        assert.strictEqual(heard, "yes")
      }
    }),
  )
})
