import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import * as Schema from "effect/Schema"
import * as Estimate from "../../src/model/Estimate.ts"
import type { Reply, Request } from "../../src/model/Model.ts"
import type { Options } from "../../src/openai/OpenAi.ts"
import * as TestingServer from "../../src/testing/TestingServer.ts"
import { call, json, modelAt, serve, user } from "./raw.ts"
import { finished } from "./streams.ts"

const Weather = Tool.make("weather", { parameters: Schema.Struct({ city: Schema.String }), success: Schema.String })
const tools = [Weather]
const last = user("go on")

/** A conversation as an agent holds it: one array that grows, calls under ids of its own. */
const conversation = () => {
  const history: Array<Prompt.Message> = [Prompt.systemMessage({ content: "be brief" }), user("rain?")]
  let calls = 0
  const say = (reply: Reply | undefined, results: ReadonlyArray<unknown>) => {
    const made = (reply?.calls ?? []).map(({ name, params }) =>
      Prompt.toolCallPart({ id: `own_${calls++}`, name, params, providerExecuted: false }),
    )
    const text = reply?.text ?? ""
    const content = [...(text === "" ? [] : [Prompt.textPart({ text })]), ...made]
    history.push(Prompt.assistantMessage({ content }))
    if (made.length === 0) return
    const parts = made.map(({ id, name }, index) =>
      Prompt.toolResultPart({ id, name, result: results[index], isFailure: false, providerExecuted: false }),
    )
    history.push(Prompt.toolMessage({ content: parts }))
  }
  const request = (): Request => ({ messages: [...history, last], parts: { history, last }, tools })
  return { history, say, request }
}

const twoCalls = {
  text: "let me see",
  calls: [
    { id: "call_x", name: "weather", arguments: { city: "Bern" } },
    { id: "call_y", name: "weather", arguments: { city: "Basel" } },
  ],
}

const continuing: Partial<Options> = { conversation: "previous_response_id" }

describe("a conversation that continues replies", () => {
  it.effect("is counted on after a reply that the counter does not know any more", () =>
    Effect.gen(function* () {
      const server = yield* serve((response, { body, path }) => {
        if (!path.endsWith("input_tokens")) return json(response, finished)
        return body["previous_response_id"] === undefined
          ? json(response, { input_tokens: 42 })
          : json(response, { error: { code: "previous_response_not_found" } }, 404)
      })
      const model = yield* modelAt(server.url, { ...continuing, counter: true })
      const { request, say } = conversation()
      say((yield* call(model, request())).reply, [])
      const bound = (one: Request) => Effect.map(model.count?.(one) ?? Effect.die("no counter"), ({ bound }) => bound)
      assert.strictEqual(yield* bound(request()), "estimated")
      assert.strictEqual(yield* bound({ messages: [user("another")], tools: [] }), "counted")
    }),
  )

  it.effect("sends what is new, under the ids the provider gave, and names the reply before", () =>
    Effect.gen(function* () {
      const server = yield* TestingServer.make({ script: [twoCalls, { text: "dry" }, { text: "still dry" }] })
      const model = yield* modelAt(server.url, continuing)
      const { history, request, say } = conversation()
      say((yield* call(model, request())).reply, ["wet", "dry"])
      say((yield* call(model, request())).reply, [])
      history.push(user("and now?"))
      const { reply } = yield* call(model, request())
      assert.strictEqual(reply?.text, "still dry")
      const [first, second, third] = server.requests.map(({ sent }) => sent)
      assert.deepInclude(first, { store: true })
      assert.notProperty(first, "previous_response_id")
      const goOn = { role: "user", content: [{ type: "input_text", text: "go on" }] }
      assert.deepInclude(second, {
        store: true,
        previous_response_id: "resp_0",
        input: [
          { type: "function_call_output", call_id: "call_x", output: "wet" },
          { type: "function_call_output", call_id: "call_y", output: "dry" },
          goOn,
        ],
      })
      assert.deepInclude(third, {
        previous_response_id: "resp_1",
        input: [{ role: "user", content: [{ type: "input_text", text: "and now?" }] }, goOn],
      })
    }),
  )

  it.effect("holds what the provider remembers: what went in before and what came out", () =>
    Effect.gen(function* () {
      const usage = { input: 5_000, output: 700 }
      const server = yield* TestingServer.make({
        script: [
          { ...twoCalls, usage },
          { ...twoCalls, usage: null },
        ],
      })
      const model = yield* modelAt(server.url, continuing)
      const { request, say } = conversation()
      assert.strictEqual(model.countInput(request()).tokens, Estimate.inputTokens(request()))
      say((yield* call(model, request())).reply, ["wet", "dry"])
      const { history } = request().parts ?? { history: [] }
      const added = Estimate.inputTokens({ messages: [...history.slice(-1), last], tools: [] })
      const held = model.countInput(request()).tokens
      assert.strictEqual(held, 5_700 + added)
      // A reply that does not say what it took is taken at what was held for it.
      say((yield* call(model, request(), { maxOutputTokens: 90 })).reply, ["wet", "dry"])
      assert.strictEqual(
        model.countInput(request()).tokens,
        held + 90 + Estimate.inputTokens({ messages: [...history.slice(-1), last], tools: [] }),
      )
    }),
  )

  for (const refusal of [
    { status: 400, errorCode: "previous_response_not_found" },
    { status: 404, errorCode: "not_found" },
  ]) {
    it.effect(`fails once with one request after ${refusal.status}, and then sends everything`, () =>
      Effect.gen(function* () {
        const server = yield* TestingServer.make({ script: [twoCalls, refusal, { text: "dry" }] })
        const model = yield* modelAt(server.url, continuing)
        const { request, say } = conversation()
        say((yield* call(model, request())).reply, ["wet", "dry"])
        const { failure, reports } = yield* call(model, request())
        assert.deepInclude(failure, { code: "PreviousResponseNotFound", retryable: true })
        assert.deepStrictEqual(reports, [{ _tag: "Refused", status: refusal.status, retryAfterMillis: undefined }])
        assert.lengthOf(server.requests, 2)
        assert.strictEqual((yield* call(model, request())).reply?.text, "dry")
        const sent = server.requests[2]?.sent
        assert.notProperty(sent, "previous_response_id")
        assert.lengthOf(sent?.["input"] as Array<unknown>, 8)
        assert.include(JSON.stringify(sent), '"call_id":"own_0"')
      }),
    )
  }

  it.effect("sends everything where the conversation says anything but what the reply said", () =>
    Effect.gen(function* () {
      const changes: ReadonlyArray<(reply: Reply) => Reply> = [
        (reply) => ({ ...reply, text: "something else" }),
        (reply) => ({ ...reply, calls: reply.calls.slice(1) }),
        (reply) => ({ ...reply, calls: reply.calls.map((one) => ({ ...one, params: {} })) }),
      ]
      for (const change of changes) {
        const server = yield* TestingServer.make({ script: [twoCalls, { text: "dry" }] })
        const model = yield* modelAt(server.url, continuing)
        const { request, say } = conversation()
        const { reply } = yield* call(model, request())
        say(reply === undefined ? undefined : change(reply), ["wet", "dry"])
        yield* call(model, request())
        assert.notProperty(server.requests[1]?.sent, "previous_response_id")
      }
    }),
  )

  it.effect("sends everything after a reply that was cut", () =>
    Effect.gen(function* () {
      const cut = { ...twoCalls, incomplete: "max_output_tokens" } as const
      const server = yield* TestingServer.make({ script: [cut, { text: "dry" }] })
      const model = yield* modelAt(server.url, continuing)
      const { request, say } = conversation()
      const { reply } = yield* call(model, request())
      assert.lengthOf(reply?.calls ?? [], 1)
      say(reply, ["wet"])
      yield* call(model, request())
      assert.notProperty(server.requests[1]?.sent, "previous_response_id")
    }),
  )
})

/** A reply with its reasoning in encrypted form. */
const thinking = {
  ...finished,
  output: [
    { id: "rs_1", type: "reasoning", summary: [{ type: "summary_text", text: "hm" }], encrypted_content: "c2VjcmV0" },
    ...finished.output,
  ],
  usage: { input_tokens: 50, output_tokens: 400, output_tokens_details: { reasoning_tokens: 300 } },
}

describe("a conversation of a model that reasons", () => {
  it.effect("gives reasoning back before what it led to, where nothing is stored", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => json(response, thinking))
      const model = yield* modelAt(server.url, { reasoning: { effort: "low" } })
      const { request, say } = conversation()
      say((yield* call(model, request())).reply, ["wet", "dry"])
      const before = Estimate.inputTokens(request())
      assert.strictEqual(model.countInput(request()).tokens, before + 300)
      yield* call(model, request())
      const [first, second] = server.requests.map(({ body }) => body)
      assert.deepInclude(first, {
        store: false,
        reasoning: { effort: "low" },
        include: ["reasoning.encrypted_content"],
      })
      assert.deepStrictEqual((second?.["input"] as Array<unknown> | undefined)?.slice(2), [
        { type: "reasoning", summary: [{ type: "summary_text", text: "hm" }], encrypted_content: "c2VjcmV0" },
        { role: "assistant", content: "Grüße, 世界 👋" },
        { type: "function_call", call_id: "own_0", name: "weather", arguments: '{"city":"Zürich"}' },
        { type: "function_call", call_id: "own_1", name: "weather", arguments: '{"city":"Bern"}' },
        { type: "function_call_output", call_id: "own_0", output: "wet" },
        { type: "function_call_output", call_id: "own_1", output: "dry" },
        { role: "user", content: [{ type: "input_text", text: "go on" }] },
      ])
    }),
  )

  it.effect(
    "does not where it is told not to, where replies are stored, and where the conversation says other things",
    () =>
      Effect.gen(function* () {
        const server = yield* serve((response) => json(response, thinking))
        const cases: ReadonlyArray<Partial<Options> & { readonly says?: string }> = [
          { reasoning: { effort: "low", keep: false } },
          { reasoning: { effort: "low" }, store: true },
          { reasoning: { effort: "low" }, says: "something else" },
          {},
        ]
        for (const { says, ...options } of cases) {
          const model = yield* modelAt(server.url, options)
          const { request, say } = conversation()
          const { reply } = yield* call(model, request())
          say(reply === undefined || says === undefined ? reply : { ...reply, text: says }, ["wet", "dry"])
          yield* call(model, request())
          assert.notInclude(JSON.stringify(server.requests.at(-1)?.body), "c2VjcmV0")
          assert.strictEqual(model.countInput(request()).tokens, Estimate.inputTokens(request()))
        }
      }),
  )
})

describe("a long conversation", () => {
  for (const [protocol, grows] of [
    ["responses", true],
    ["chat", true],
    ["responses", false],
    ["chat", false],
  ] as const) {
    it.effect(
      `${grows ? "in one array" : "in a new array each time"} has each message written once in ${protocol}`,
      () =>
        Effect.gen(function* () {
          const server = yield* TestingServer.make({ script: () => ({ text: "yes" }) })
          const model = yield* modelAt(server.url, { protocol })
          const reads: Array<number> = []
          const history: Array<Prompt.Message> = []
          for (let step = 0; step < 20; step++) {
            const message = user(`question ${step}`)
            const { content } = message
            reads.push(0)
            const watched = Object.create(Object.getPrototypeOf(message) as object, {
              ...Object.getOwnPropertyDescriptors(message),
              content: {
                enumerable: true,
                get: () => {
                  reads[step] = (reads[step] ?? 0) + 1
                  return content
                },
              },
            }) as Prompt.Message
            history.push(watched)
            // Of a conversation that nobody holds in one array, too.
            const request = grows
              ? { messages: [], parts: { history, last }, tools: [] }
              : { messages: [...history, last], tools: [] }
            yield* call(model, request)
          }
          assert.deepStrictEqual(new Set(reads), new Set([1]))
          const sent = server.requests.at(-1)?.body.input
          assert.lengthOf(sent ?? [], 21)
        }),
    )
  }
})
