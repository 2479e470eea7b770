import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as TestingServer from "../../src/testing/TestingServer.ts"

const post = (url: string, body: unknown) =>
  Effect.promise(async (signal) => {
    const response = await fetch(`${url}/responses`, { method: "POST", body: JSON.stringify(body), signal })
    return { status: response.status, headers: response.headers, body: await response.json().catch(() => undefined) }
  })

const say = (content: string, more: object = {}) => ({ model: "m", input: [{ role: "user", content }], ...more })

describe("a script", () => {
  it.effect("of turns is followed in order; past its end the answer is 500 and counted", () =>
    Effect.gen(function* () {
      const server = yield* TestingServer.make({ script: [{ text: "one" }] })
      const first = yield* post(server.url, say("a"))
      const second = yield* post(server.url, say("b"))
      assert.deepInclude(first.body, { object: "response", status: "completed", model: "m" })
      assert.strictEqual(second.status, 500)
      assert.include(JSON.stringify(second.body), "no turn for request 1")
      assert.deepInclude(server.ledger, { requests: 2, replies: 1, pastScript: 1 })
    }),
  )

  it.effect("that is a function sees the parsed request, also of many callers at once", () =>
    Effect.gen(function* () {
      const server = yield* TestingServer.make({
        script: (request) => ({ text: `heard ${String(request.input[0]?.["content"])}` }),
        latency: "5 millis",
      })
      const names = Array.from({ length: 20 }, (_, index) => `agent ${index}`)
      const replies = yield* Effect.forEach(names, (name) => post(server.url, say(name)), { concurrency: "unbounded" })
      replies.forEach(({ body }, index) => assert.include(JSON.stringify(body), `heard agent ${index}`))
      assert.strictEqual(server.ledger.replies, 20)
    }),
  )

  it.effect("that throws or has nothing to say is past its end", () =>
    Effect.gen(function* () {
      const server = yield* TestingServer.make({
        script: (_, n) => {
          if (n === 0) throw new Error("scripted slip")
          return undefined
        },
      })
      const thrown = yield* post(server.url, say("a"))
      assert.include(JSON.stringify(thrown.body), "scripted slip")
      assert.strictEqual((yield* post(server.url, say("b"))).status, 500)
      assert.strictEqual(server.ledger.pastScript, 2)
    }),
  )

  it.effect("with a slip in it dies before the first request", () =>
    Effect.gen(function* () {
      const slip: object = { txt: "misspelt" }
      const exit = yield* Effect.exit(Effect.scoped(TestingServer.make({ script: [slip] })))
      assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause))
    }),
  )
})

describe("the ledger", () => {
  it.effect("counts a turn that states no usage by its bytes, also when the reply leaves usage out", () =>
    Effect.gen(function* () {
      const server = yield* TestingServer.make({ script: [{ text: "12345" }, { text: "12345", usage: null }] })
      const stated = yield* post(server.url, say("123456789"))
      const silent = yield* post(server.url, say("123456789"))
      assert.deepInclude(stated.body, {
        usage: {
          input_tokens: 3,
          input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
          output_tokens: 2,
          output_tokens_details: { reasoning_tokens: 0 },
          total_tokens: 5,
        },
      })
      assert.notProperty(silent.body, "usage")
      assert.deepInclude(server.ledger, { replies: 2, inputTokens: 6, outputTokens: 4 })
    }),
  )

  it.effect("cuts a counted reply at max_output_tokens and leaves a stated one alone", () =>
    Effect.gen(function* () {
      const long = "x".repeat(400)
      const server = yield* TestingServer.make({
        script: [{ text: long }, { text: long, usage: { input: 1, output: 100 } }],
      })
      const counted = yield* post(server.url, say("a", { max_output_tokens: 16 }))
      assert.deepInclude(counted.body, { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } })
      assert.strictEqual(server.ledger.outputTokens, 16)
      const stated = yield* post(server.url, say("a", { max_output_tokens: 16 }))
      assert.deepInclude(stated.body, { status: "completed" })
      assert.strictEqual(server.ledger.outputTokens, 116)
    }),
  )

  for (const billsAborted of [false, true]) {
    it.effect(`counts a client that went away, ${billsAborted ? "and bills it" : "and bills nothing"}`, () =>
      Effect.gen(function* () {
        const turn = { text: "late", usage: { input: 7, output: 3 } }
        const server = yield* TestingServer.make({ script: [turn], latency: "10 minutes", billsAborted })
        const call = yield* Effect.forkChild(post(server.url, say("a")))
        yield* server.until((ledger) => ledger.requests === 1)
        yield* Fiber.interrupt(call)
        yield* server.until((ledger) => ledger.aborted === 1)
        assert.deepInclude(server.ledger, { replies: 0, inputTokens: billsAborted ? 7 : 0 })
      }),
    )
  }
})

describe("the protocol", () => {
  const call = { type: "function_call", call_id: "c", name: "t", arguments: "{}" }
  const output = { type: "function_call_output", call_id: "c", output: "" }
  const cases: Array<[string, unknown, string]> = [
    ["a body that is none", "text", "no Responses request"],
    ["stream options without a stream", say("a", { stream_options: { include_usage: true } }), "only allowed when"],
    ["a limit of 15", say("a", { max_output_tokens: 15 }), "at least 16"],
    ["a call without its output", { model: "m", input: [call] }, "no tool output found"],
    ["an output without its call", { model: "m", input: [output] }, "no tool call found"],
  ]
  for (const [name, body, message] of cases) {
    it.effect(`refuses ${name} without asking the script`, () =>
      Effect.gen(function* () {
        const server = yield* TestingServer.make({ script: [{ text: "yes" }] })
        const refused = yield* post(server.url, body)
        assert.strictEqual(refused.status, 400)
        assert.include(JSON.stringify(refused.body), message)
        assert.deepInclude(server.ledger, { requests: 1, refused: 1 })
        const well = yield* post(server.url, { model: "m", input: [call, output], max_output_tokens: 16 })
        assert.strictEqual(well.status, 200)
      }),
    )
  }

  it.effect("knows one path", () =>
    Effect.gen(function* () {
      const server = yield* TestingServer.make({ script: [] })
      const response = yield* Effect.promise(() => fetch(`${server.url}/models`))
      assert.strictEqual(response.status, 404)
      yield* Effect.promise(() => response.text())
      assert.strictEqual(server.ledger.requests, 0)
    }),
  )

  it.effect("states errors with status, code and retry-after", () =>
    Effect.gen(function* () {
      const turn = { status: 429, retryAfterSeconds: 3, errorCode: "rate_limit_exceeded" }
      const server = yield* TestingServer.make({ script: [turn] })
      const refused = yield* post(server.url, say("a"))
      assert.strictEqual(refused.status, 429)
      assert.strictEqual(refused.headers.get("retry-after"), "3")
      assert.include(JSON.stringify(refused.body), "rate_limit_exceeded")
      assert.deepInclude(server.ledger, { refused: 1, inputTokens: 0 })
    }),
  )
})

describe("the end", () => {
  const refuses = (url: string) => Effect.exit(post(url, say("again"))).pipe(Effect.map(Exit.isFailure))

  it.effect("by kill cuts every connection and nobody listens any more; twice is harmless", () =>
    Effect.gen(function* () {
      const server = yield* TestingServer.make({ script: [{ text: "late", latencyMs: 600_000 }] })
      const call = yield* Effect.forkChild(Effect.exit(post(server.url, say("a"))))
      yield* server.until((ledger) => ledger.requests === 1)
      assert.strictEqual(server.openConnections, 1)
      yield* server.kill
      yield* server.kill
      assert.isTrue(Exit.isFailure(yield* Fiber.join(call)))
      assert.strictEqual(server.openConnections, 0)
      assert.strictEqual(server.ledger.aborted, 0)
      assert.isTrue(yield* refuses(server.url))
    }),
  )

  it.effect("of the scope stops it", () =>
    Effect.gen(function* () {
      const url = yield* Effect.scoped(
        Effect.gen(function* () {
          const server = yield* TestingServer.make({ script: [{ text: "yes" }] })
          yield* post(server.url, say("a"))
          return server.url
        }),
      )
      assert.isTrue(yield* refuses(url))
    }),
  )
})
