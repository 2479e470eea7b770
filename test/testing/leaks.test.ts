/**
 * A server that has stopped has nothing left, whatever was under way; and what its ledger says of each request.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as TestingServer from "../../src/testing/TestingServer.ts"
import { ask, billOf, clientOf, raw, serving, ways } from "./asking.ts"

/** Servers and sockets of this process that do not go away: each has a moment to do so. */
const staying = Effect.promise(async () => {
  const held = () => process.getActiveResourcesInfo().filter((name) => name.startsWith("TCP"))
  for (let turn = 0; turn < 1000 && held().length > 0; turn += 1) await new Promise((resolve) => setImmediate(resolve))
  return held()
})

const underWay: ReadonlyArray<TestingServer.Turn> = [
  { text: "x", latencyMs: 600_000 },
  { text: "x", hang: true },
  { text: "x", hang: 0 },
  { text: "x".repeat(100), hang: 20 },
  { text: "x".repeat(100), chunkLatencyMs: 600_000 },
  { text: "x", delays: [{ atByte: 3, millis: 600_000 }] },
]

describe("a server that stops", () => {
  it.effect("with replies under way leaves no connection, timer, request or listener", () =>
    Effect.gen(function* () {
      const server = yield* Effect.scoped(
        Effect.gen(function* () {
          const server = yield* serving(underWay, { billsAborted: true })
          const calls = yield* Effect.forEach(underWay, (_, index) =>
            Effect.forkChild(raw(server, ways[index % 2 === 0 ? 1 : 3] ?? "chat")),
          )
          yield* server.until((ledger) => ledger.requests === underWay.length)
          yield* server.kill
          yield* Effect.forEach(calls, Fiber.join)
          return server
        }),
      )
      const { openConnections, openRequests, openTimers } = server
      assert.deepStrictEqual(
        { openConnections, openRequests, openTimers },
        {
          openConnections: 0,
          openRequests: 0,
          openTimers: 0,
        },
      )
      for (const entry of server.entries) {
        assert.strictEqual(entry.outcome, "stopped")
        assert.isNumber(entry.closedAtMillis)
      }
      assert.deepInclude(server.ledger, { aborted: 0, inputTokens: 0 })
      assert.deepStrictEqual(yield* staying, [])
    }),
  )

  it.effect("has closed the connections its clients kept", () =>
    Effect.gen(function* () {
      const server = yield* serving(() => ({ text: "x" }))
      yield* Effect.forEach(Array.from({ length: 20 }), () => ask(server, "chat"), { concurrency: "unbounded" })
      assert.isAbove(server.openConnections, 1)
      yield* server.kill
      assert.strictEqual(server.openConnections, 0)
    }),
  )

  it.effect("ends what runs in the background", () =>
    Effect.gen(function* () {
      const server = yield* serving([{ text: "x", latencyMs: 600_000 }])
      yield* Effect.promise(() => clientOf(server).responses.create({ model: "m", input: "x", background: true }))
      assert.strictEqual(server.openTimers, 1)
      yield* server.kill
      assert.strictEqual(server.openTimers, 0)
      assert.strictEqual(server.entries[0]?.outcome, "stopped")
    }),
  )

  it.effect("after a hundred requests of every kind has closed each of them", () =>
    Effect.gen(function* () {
      const turns: ReadonlyArray<TestingServer.Turn> = [
        { text: "x" },
        { text: "x", cut: 9 },
        { status: 429 },
        { text: "x", fails: { afterEvents: 1 } },
        { body: "noise" },
      ]
      yield* Effect.scoped(
        Effect.gen(function* () {
          const server = yield* serving((_, n) => turns[n % turns.length])
          const asked = Array.from({ length: 100 }, (_, index) => ways[index % ways.length] ?? "chat")
          yield* Effect.forEach(asked, (way) => raw(server, way), { concurrency: 10 })
          yield* server.until(() => server.openRequests === 0)
          assert.deepInclude(server.ledger, { requests: 100, replies: 40, cut: 20, refused: 20, failed: 20 })
          assert.strictEqual(server.openTimers, 0)
        }),
      )
      assert.deepStrictEqual(yield* staying, [])
    }),
  )
})

describe("the entries of a ledger", () => {
  it.effect("sum to its totals, and say what each request was", () =>
    Effect.gen(function* () {
      const usage = { input: 10, output: 4, cached: 3, cacheWrite: 2, reasoning: 1 }
      const turns: ReadonlyArray<TestingServer.Turn> = [
        { text: "x", usage },
        { text: "x", usage, cut: 5 },
        { status: 503 },
        { text: "x", usage, fails: { afterEvents: 0 } },
      ]
      const server = yield* serving(turns)
      for (const _ of turns) yield* raw(server, "responses streamed")
      yield* raw(server, "chat", { messages: [] })
      yield* raw(server, "chat")
      assert.deepStrictEqual(
        server.entries.map(({ n, outcome, protocol, streamed }) => [n, outcome, protocol, streamed]),
        [
          [0, "replied", "responses", true],
          [1, "cut", "responses", true],
          [2, "refused", "responses", true],
          [3, "failed", "responses", true],
          [4, "refused", "chat", false],
          [5, "pastScript", "chat", false],
        ],
      )
      const sum = (field: "inputTokens" | "cachedTokens" | "cacheWriteTokens" | "outputTokens" | "reasoningTokens") =>
        server.entries.reduce((total, entry) => total + entry[field], 0)
      assert.deepStrictEqual(billOf(server.ledger), {
        input: sum("inputTokens"),
        cached: sum("cachedTokens"),
        cacheWrite: sum("cacheWriteTokens"),
        output: sum("outputTokens"),
        reasoning: sum("reasoningTokens"),
      })
      assert.strictEqual(server.ledger.cachedTokens, 9)
    }),
  )

  it.effect("is settled before its client holds the reply", () =>
    Effect.gen(function* () {
      for (const way of ways) {
        const server = yield* serving(() => ({ text: "x" }))
        for (const n of [1, 2, 3]) {
          yield* ask(server, way)
          assert.strictEqual(server.ledger.replies, n)
        }
      }
    }),
  )

  it.effect("hold the trace they came with", () =>
    Effect.gen(function* () {
      const server = yield* serving(() => ({ text: "x" }))
      const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
      const body = { model: "m", input: "x" }
      yield* Effect.promise(() => clientOf(server).responses.create(body, { headers: { traceparent } }))
      yield* Effect.promise(() => clientOf(server).responses.create(body))
      assert.deepStrictEqual(
        server.entries.map((entry) => entry.traceparent),
        [traceparent, undefined],
      )
    }),
  )
})
