import { once } from "node:events"
import { createServer } from "node:net"
import { inspect } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Redacted from "effect/Redacted"
import type { Report } from "../../src/model/Provider.ts"
import * as Provider from "../../src/model/Provider.ts"
import * as TestingServer from "../../src/testing/TestingServer.ts"
import { asking, failing, key } from "./asking.ts"

/** A port of this machine that nobody listens on. */
const closedPort = Effect.promise(async () => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  server.close()
  await once(server, "close")
  return typeof address === "object" && address !== null ? address.port : 0
})

describe("an error status", () => {
  const cases = [
    { turn: { status: 400 }, reason: "InvalidRequestError", retryAfterMillis: undefined },
    { turn: { status: 401 }, reason: "AuthenticationError", retryAfterMillis: undefined },
    { turn: { status: 403 }, reason: "AuthenticationError", retryAfterMillis: undefined },
    { turn: { status: 404 }, reason: "InvalidRequestError", retryAfterMillis: undefined },
    { turn: { status: 408 }, reason: "UnknownError", retryAfterMillis: undefined },
    { turn: { status: 429, retryAfterSeconds: 7 }, reason: "RateLimitError", retryAfterMillis: 7000 },
    {
      turn: { status: 429, errorCode: "insufficient_quota" },
      reason: "QuotaExhaustedError",
      retryAfterMillis: undefined,
    },
    { turn: { status: 500 }, reason: "InternalProviderError", retryAfterMillis: undefined },
    { turn: { status: 503, retryAfterSeconds: 0 }, reason: "InternalProviderError", retryAfterMillis: 0 },
  ]
  for (const { turn, reason, retryAfterMillis } of cases) {
    it.effect(`${JSON.stringify(turn)} is ${reason}, reported once and not tried again`, () =>
      Effect.gen(function* () {
        const server = yield* TestingServer.make({ script: [turn, turn, turn] })
        const { error, reports } = yield* failing(server.url)
        assert.strictEqual(error.reason._tag, reason)
        assert.deepStrictEqual(reports, [{ _tag: "Refused", status: turn.status, retryAfterMillis }])
        assert.strictEqual(server.ledger.requests, 1)
      }),
    )
  }

  it.effect("tells when to come back", () =>
    Effect.gen(function* () {
      const server = yield* TestingServer.make({ script: [{ status: 429, retryAfterSeconds: 7 }] })
      const { error } = yield* failing(server.url)
      assert.deepStrictEqual(error.retryAfter, Duration.seconds(7))
    }),
  )

  it.effect("names status, code and request id", () =>
    Effect.gen(function* () {
      const server = yield* TestingServer.make({ script: [{ status: 400, errorCode: "context_length_exceeded" }] })
      const { error } = yield* failing(server.url)
      assert.include(error.message, "HTTP 400")
      assert.include(error.message, "[code: context_length_exceeded]")
      assert.include(error.message, "[requestId: req_testing]")
    }),
  )
})

describe("a request without a reply", () => {
  it.effect("was not sent when nobody listens", () =>
    Effect.gen(function* () {
      const port = yield* closedPort
      for (const host of ["127.0.0.1", "localhost"]) {
        const { error, reports } = yield* failing(`http://${host}:${port}/v1`)
        assert.strictEqual(error.reason._tag, "NetworkError")
        assert.deepStrictEqual(reports, [{ _tag: "NotSent" }])
      }
    }),
  )

  it.effect("was not sent when it could not be built", () =>
    Effect.gen(function* () {
      const server = yield* TestingServer.make({ script: [] })
      const reports: Array<Report> = []
      const error = yield* LanguageModel.generateText({ prompt: "well?" }).pipe(
        asking(server.url, reports),
        Effect.provideService(Provider.CallHeaders, { "not a header": "x" }),
        Effect.flip,
      )
      assert.deepInclude(error.reason, { _tag: "NetworkError", reason: "EncodeError" })
      assert.deepStrictEqual(reports, [{ _tag: "NotSent" }])
      assert.strictEqual(server.ledger.requests, 0)
    }),
  )

  it.effect("is lost when the connection is cut in mid reply", () =>
    Effect.gen(function* () {
      const server = yield* TestingServer.make({ script: [{ text: "half of this", cut: true }] })
      const { error, reports } = yield* failing(server.url)
      assert.strictEqual(error.reason._tag, "NetworkError")
      assert.isTrue(error.isRetryable)
      assert.deepStrictEqual(reports, [{ _tag: "Lost" }])
      assert.strictEqual(server.ledger.cut, 1)
      assert.isAbove(server.ledger.outputTokens, 0)
    }),
  )

  it.effect("is lost when the server dies before it answers", () =>
    Effect.gen(function* () {
      const server = yield* TestingServer.make({ script: [{ text: "late", latencyMs: 600_000 }] })
      const call = yield* Effect.forkChild(failing(server.url))
      yield* server.until((ledger) => ledger.requests === 1)
      yield* server.kill
      const { reports } = yield* Fiber.join(call)
      assert.deepStrictEqual(reports, [{ _tag: "Lost" }])
    }),
  )

  it.effect("is lost at the timeout, and the server sees it go", () =>
    Effect.gen(function* () {
      const server = yield* TestingServer.make({ script: [{ text: "late", latencyMs: 600_000 }] })
      const { error, reports } = yield* failing(server.url, { timeout: "100 millis" })
      assert.include(error.message, "no whole reply within the timeout")
      assert.deepStrictEqual(reports, [{ _tag: "Lost" }])
      yield* server.until((ledger) => ledger.aborted === 1)
    }),
  )
})

describe("a reply that is none", () => {
  for (const body of ["<html>", "", { hello: "world" }, { object: "response", status: "queued", output: [] }]) {
    it.effect(`${JSON.stringify(body)} counts as a reply of unknown usage`, () =>
      Effect.gen(function* () {
        const server = yield* TestingServer.make({ script: [{ body }] })
        const { error, reports } = yield* failing(server.url)
        assert.strictEqual(error.reason._tag, "InvalidResponseError")
        assert.deepStrictEqual(reports, [{ _tag: "Replied", usage: undefined, model: undefined }])
      }),
    )
  }
})

describe("the text of an error", () => {
  const quoting = `the prompt was "a private question" and the key ${key}`
  const scripts: Array<[string, TestingServer.Turn]> = [
    ...[400, 401, 403, 404, 429, 500].map((status): [string, TestingServer.Turn] => [
      `HTTP ${status}`,
      { status, errorMessage: quoting, errorCode: key },
    ]),
    ["no JSON", { body: quoting }],
    ["a failed reply", { body: { status: "failed", error: { code: key, message: quoting } } }],
    ["a cut reply", { text: quoting, cut: true }],
  ]
  const assertSilent = (error: unknown, secret = key) => {
    for (const text of [
      String(error),
      JSON.stringify(error),
      inspect(error, { depth: 20 }),
      Cause.pretty(Cause.fail(error)),
    ]) {
      assert.notInclude(text, secret)
      assert.notInclude(text, "a private question")
    }
  }

  for (const [name, turn] of scripts) {
    it.effect(`of ${name} holds neither key nor prompt`, () =>
      Effect.gen(function* () {
        const server = yield* TestingServer.make({ script: [turn] })
        assertSilent((yield* failing(server.url)).error)
      }),
    )
  }

  it.effect("of a key that fits into no header does not hold it", () =>
    Effect.gen(function* () {
      const server = yield* TestingServer.make({ script: [] })
      const { error, reports } = yield* failing(server.url, { apiKey: Redacted.make("sk-secret\nline") })
      assertSilent(error, "sk-secret")
      assert.deepStrictEqual(reports, [{ _tag: "NotSent" }])
    }),
  )

  it.effect("of an address with a password does not hold it", () =>
    Effect.gen(function* () {
      const { error } = yield* failing(`http://user:hunter2@127.0.0.1:${yield* closedPort}/v1`)
      assertSilent(error, "hunter2")
    }),
  )
})
