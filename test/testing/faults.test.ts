/**
 * Every fault, at any byte, in both protocols, streamed and not.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { APIConnectionError, APIError, RateLimitError } from "openai"
import type * as TestingServer from "../../src/testing/TestingServer.ts"
import { ask, billOf, clientOf, collected, raw, serving, ways } from "./asking.ts"

const usage = { input: 5, output: 3, cached: 0, cacheWrite: 0, reasoning: 0 }
const turn: TestingServer.Turn = { text: "héllo, this is a reply 👩‍🚀", usage }

/** What came of one turn over a bare socket, and what was booked. */
const played = (way: (typeof ways)[number], script: TestingServer.Turn, options: Parameters<typeof serving>[1] = {}) =>
  Effect.scoped(
    Effect.gen(function* () {
      const server = yield* serving([script], options)
      const got = yield* raw(server, way)
      yield* server.until(() => server.openRequests === 0)
      const entry = server.entries[0]
      assert.isDefined(entry)
      return { ...got, entry, ledger: server.ledger }
    }),
  )

for (const way of ways) {
  describe(way, () => {
    it.effect("is cut after so many bytes, wherever that is, and billed", () =>
      Effect.gen(function* () {
        const whole = yield* played(way, turn)
        assert.isTrue(whole.isWhole)
        assert.strictEqual(whole.entry.sentBytes, whole.body.length)
        const length = whole.body.length
        const places = [0, 1, 2, 63, Math.floor(length / 3), length - 15, length - 1, length]
        for (const cut of places) {
          const { body, entry, head, isWhole, ledger } = yield* played(way, { ...turn, cut })
          assert.include(head, "200 OK")
          assert.deepStrictEqual(body, whole.body.subarray(0, cut))
          assert.strictEqual(isWhole, cut === length && !way.endsWith("streamed"))
          assert.deepInclude(entry, { outcome: "cut", sentBytes: cut })
          assert.deepStrictEqual(billOf(ledger), usage)
        }
        const past = yield* played(way, { ...turn, cut: length + 1 })
        assert.isTrue(past.isWhole)
        assert.strictEqual(past.entry.outcome, "replied")
      }),
    )

    it.effect("is cut in the middle, or before its headers", () =>
      Effect.gen(function* () {
        const { body } = yield* played(way, turn)
        const half = yield* played(way, { ...turn, cut: true })
        assert.strictEqual(half.body.length, Math.floor(body.length / 2))
        const none = yield* played(way, { ...turn, cut: "beforeHeaders" })
        assert.strictEqual(none.head, "")
        assert.deepInclude(none.entry, { outcome: "cut", sentBytes: 0, inputTokens: 5 })
        const server = yield* serving(() => ({ ...turn, cut: "beforeHeaders" as const }))
        assert.instanceOf((yield* Effect.flip(ask(server, way))).cause, APIConnectionError)
      }),
    )

    it.effect("hangs at a byte until its client goes away, and bills what it is told to", () =>
      Effect.gen(function* () {
        for (const [hang, sentBytes] of [[true, 0] as const, [0, 0] as const, [40, 40] as const]) {
          for (const billsAborted of [false, true]) {
            const server = yield* serving([{ ...turn, hang }], { billsAborted })
            const call = yield* Effect.forkChild(Effect.exit(raw(server, way)))
            yield* server.until((ledger) => ledger.requests === 1)
            yield* Effect.promise(() => settled(server, sentBytes))
            assert.strictEqual(server.entries[0]?.outcome, "open")
            yield* Fiber.interrupt(call)
            yield* server.until((ledger) => ledger.aborted === 1 && server.openRequests === 0)
            const bill = billsAborted ? usage : { ...usage, input: 0, output: 0 }
            assert.deepStrictEqual(billOf(server.entries[0]), bill)
            assert.deepInclude(server.entries[0], { outcome: "aborted", sentBytes })
            assert.isAtLeast(server.entries[0]?.closedAtMillis ?? 0, server.entries[0]?.arrivedAtMillis ?? Infinity)
          }
        }
      }),
    )

    it.effect("is noise from a byte on", () =>
      Effect.gen(function* () {
        const { body } = yield* played(way, turn)
        const noisy = yield* played(way, { ...turn, garbage: 50 })
        assert.deepStrictEqual(noisy.body.subarray(0, 50), body.subarray(0, 50))
        assert.strictEqual(noisy.body.length, body.length)
        assert.include(noisy.body.subarray(50).toString(), "noise")
        assert.deepStrictEqual(billOf(noisy.ledger), usage)
        const server = yield* serving(() => ({ ...turn, garbage: 0 }))
        assert.isTrue(Exit.isFailure(yield* Effect.exit(ask(server, way))))
      }),
    )

    it.effect("waits before a byte, and arrives whole", () =>
      Effect.gen(function* () {
        const { body } = yield* played(way, turn)
        const delays = [0, 1, 30, 31, body.length - 1].map((atByte) => ({ atByte, millis: 2 }))
        const late = yield* played(way, { ...turn, delays, latencyMs: 2, chunkLatencyMs: 1 })
        assert.isTrue(late.isWhole)
        assert.deepStrictEqual(late.body, body)
        assert.strictEqual(late.entry.outcome, "replied")
      }),
    )

    it.effect("an error has its status, its code and every header", () =>
      Effect.gen(function* () {
        const script: TestingServer.Turn = {
          status: 429,
          errorCode: "rate_limit_exceeded",
          errorMessage: "slow down",
          retryAfterSeconds: 2,
          retryAfterMs: 1500,
          headers: { "x-ratelimit-remaining-requests": "-1", "x-ratelimit-reset-tokens": "6m0s" },
        }
        const server = yield* serving([script], { headers: { "x-ratelimit-limit-requests": "500" } })
        const { cause: error } = yield* Effect.flip(ask(server, way))
        assert.instanceOf(error, RateLimitError)
        const { code, headers, status } = error
        assert.deepStrictEqual([status, code], [429, "rate_limit_exceeded"])
        const names = ["retry-after", "retry-after-ms", "x-ratelimit-remaining-requests"]
        assert.deepStrictEqual(
          [...names, "x-ratelimit-reset-tokens", "x-ratelimit-limit-requests"].map((name) => headers.get(name)),
          ["2", "1500", "-1", "6m0s", "500"],
        )
        assert.deepInclude(server.ledger, { refused: 1, inputTokens: 0 })
        assert.deepInclude(server.entries[0], { outcome: "refused", id: undefined })
      }),
    )

    it.effect("a failure while generating is an error to the client, and costs nothing unless its turn says so", () =>
      Effect.gen(function* () {
        for (const as of ["error", "failed"] as const) {
          const fails = { afterEvents: 3, as }
          const free = yield* played(way, { text: "x".repeat(100), fails, errorCode: "server_error" })
          assert.deepInclude(free.ledger, { failed: 1, replies: 0, inputTokens: 0, outputTokens: 0 })
          const paid = yield* played(way, { ...turn, fails })
          assert.deepStrictEqual(billOf(paid.entry), usage)
          assert.include(free.body.toString(), "server_error")
          assert.notInclude(free.body.toString(), "[DONE]")
        }
      }),
    )
  })
}

/** Until so many bytes have left. */
const settled = async (server: TestingServer.TestingServer, bytes: number): Promise<void> => {
  while ((server.entries[0]?.sentBytes ?? 0) < bytes) await new Promise((resolve) => setImmediate(resolve))
}

describe("a failure in a stream", () => {
  const fails = { afterEvents: 4 }
  it.effect("of Responses is an error event, at which the client throws", () =>
    Effect.gen(function* () {
      const server = yield* serving([{ text: "x", fails, errorCode: "rate_limit_exceeded" }])
      const { cause: error } = yield* Effect.flip(ask(server, "responses streamed"))
      assert.instanceOf(error, APIError)
      assert.strictEqual((error as APIError).code, "rate_limit_exceeded")
      const again = yield* serving([{ text: "x", fails: { ...fails, as: "failed" }, errorCode: "server_error" }])
      const events = yield* Effect.promise(async () =>
        collected(await clientOf(again).responses.create({ model: "m", input: "x", stream: true })),
      )
      assert.lengthOf(events, 5)
      const last = events.at(-1)
      assert.isTrue(last?.type === "response.failed" && last.response.error?.code === "server_error")
    }),
  )

  it.effect("of Chat Completions is an error chunk, at which the client throws", () =>
    Effect.gen(function* () {
      const server = yield* serving([{ text: "x".repeat(100), fails, errorCode: "overloaded" }])
      const { cause: error } = yield* Effect.flip(ask(server, "chat streamed"))
      assert.instanceOf(error, APIError)
      assert.strictEqual((error as APIError).code, "overloaded")
    }),
  )

  it.effect("of Responses without a stream is a response that failed", () =>
    Effect.gen(function* () {
      const server = yield* serving([
        { text: "x", fails: { ...fails, as: "failed" } },
        { text: "x", fails },
      ])
      const { body } = yield* raw(server, "responses")
      assert.deepInclude(JSON.parse(body.toString()), { status: "failed", output: [] })
      assert.include((yield* raw(server, "responses")).head, "500 ")
    }),
  )
})

describe("a body of its own", () => {
  it.effect("takes the place of a stream or of a reply", () =>
    Effect.gen(function* () {
      for (const way of ways) {
        const text = yield* played(way, { body: "<html>", usage })
        assert.strictEqual(text.body.toString(), "<html>")
        assert.include(text.head, way.endsWith("streamed") ? "text/event-stream" : "text/plain")
        assert.deepStrictEqual(billOf(text.ledger), usage)
        const json = yield* played(way, { body: { odd: true } })
        assert.strictEqual(json.body.toString(), '{"odd":true}')
        assert.include(json.head, "application/json")
        const nothing = yield* played(way, { body: "" })
        assert.deepInclude(nothing.entry, { outcome: "replied", sentBytes: 0 })
      }
    }),
  )
})

describe("a client that goes away in the middle of a stream", () => {
  for (const way of ["responses streamed", "chat streamed"] as const) {
    it.effect(`${way}: is noticed; nothing more is written`, () =>
      Effect.gen(function* () {
        const server = yield* serving([{ text: "x".repeat(2000), chunkLatencyMs: 20 }])
        const call = yield* Effect.forkChild(Effect.exit(raw(server, way)))
        yield* server.until((ledger) => ledger.requests === 1)
        yield* Effect.promise(() => settled(server, 1))
        yield* Fiber.interrupt(call)
        yield* server.until((ledger) => ledger.aborted === 1 && server.openRequests === 0)
        const sent = server.entries[0]?.sentBytes
        assert.strictEqual(server.openTimers, 0)
        yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 10)))
        assert.strictEqual(server.entries[0]?.sentBytes, sent)
      }),
    )
  }

  it.effect("while the script is still thinking is noticed, and its turn counts for nothing", () =>
    Effect.gen(function* () {
      const thinking = Promise.withResolvers<TestingServer.Turn>()
      const server = yield* serving(() => thinking.promise, { billsAborted: true })
      const call = yield* Effect.forkChild(Effect.exit(raw(server, "responses")))
      yield* server.until((ledger) => ledger.requests === 1)
      yield* Fiber.interrupt(call)
      yield* server.until((ledger) => ledger.aborted === 1)
      thinking.resolve(turn)
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      assert.deepInclude(server.ledger, { aborted: 1, replies: 0, inputTokens: 0 })
      assert.deepInclude(server.entries[0], { outcome: "aborted", id: undefined })
      assert.strictEqual((yield* Effect.promise(() => fetch(`${server.url}/responses/resp_0`))).status, 404)
    }),
  )

  it.effect("after the end was said has its reply, whatever was still to come", () =>
    Effect.gen(function* () {
      const server = yield* serving([{ ...turn, chunkLatencyMs: 5 }])
      yield* Effect.promise(async () => {
        const messages = [{ role: "user" as const, content: "x" }]
        const stream_options = { include_usage: true }
        const stream = await clientOf(server).chat.completions.create({
          model: "m",
          messages,
          stream: true,
          stream_options,
        })
        for await (const chunk of stream) if (chunk.choices[0]?.finish_reason === "stop") break
      })
      yield* server.until(() => server.openRequests === 0)
      assert.deepInclude(server.ledger, { replies: 1, aborted: 0 })
    }),
  )
})
