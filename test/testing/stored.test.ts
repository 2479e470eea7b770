/**
 * Counting input beforehand, and responses that are stored: retrieved, continued, run in the background, cancelled.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { NotFoundError } from "openai"
import type { ResponseCreateParamsNonStreaming, ResponseInputItem } from "openai/resources/responses/responses"
import type * as TestingServer from "../../src/testing/TestingServer.ts"
import { billOf, clientOf, collected, look, raw, serving } from "./asking.ts"

type Server = TestingServer.TestingServer

const count = (server: Server, body: object = {}) =>
  Effect.promise(() => clientOf(server).responses.inputTokens.count({ model: "m", input: "hello there", ...body }))

const create = (server: Server, body: Partial<ResponseCreateParamsNonStreaming> = {}) =>
  Effect.promise(() => clientOf(server).responses.create({ model: "m", input: "hello there", ...body }))

const retrieve = (server: Server, id: string) => Effect.promise(() => clientOf(server).responses.retrieve(id))

const usage = { input: 40, output: 9 }
const told = { input_tokens: 40, output_tokens: 9, total_tokens: 49 }

describe("the input counter", () => {
  it.effect("answers what the next request would bill, and costs nothing", () =>
    Effect.gen(function* () {
      const server = yield* serving([{ text: "a" }, { text: "b", usage }])
      const body = {
        tools: [look],
        instructions: "Be brief.",
        text: { format: { type: "json_schema" as const, name: "answer", schema: { type: "object" } } },
        input: [
          {
            role: "user" as const,
            content: [
              { type: "input_text" as const, text: "see" },
              { type: "input_image" as const, image_url: "data:,", detail: "high" as const },
            ],
          },
        ],
      }
      const counted = yield* count(server, body)
      assert.deepStrictEqual(Object.keys(counted), ["object", "input_tokens"])
      assert.strictEqual(counted.object, "response.input_tokens")
      assert.deepInclude(server.ledger, { requests: 0, counted: 1, inputTokens: 0 })
      yield* create(server, body)
      assert.strictEqual(server.ledger.inputTokens, counted.input_tokens)
      assert.isAbove(counted.input_tokens, 765)
      assert.strictEqual((yield* count(server)).input_tokens, 40)
      yield* create(server)
      assert.strictEqual((yield* count(server)).input_tokens, Math.ceil("hello there".length / 4))
    }),
  )

  it.effect("answers what a turn states, also one of a function, which is told that it is only counted", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const server = yield* serving(({ counting }, n) => {
        seen.push([counting, n])
        return { text: "x", usage, countedInput: 7 }
      })
      assert.strictEqual((yield* count(server)).input_tokens, 7)
      yield* create(server)
      assert.deepStrictEqual(seen, [
        [true, 0],
        [undefined, 0],
      ])
      assert.strictEqual(server.ledger.inputTokens, 40)
    }),
  )

  it.effect("counts a continued conversation whole", () =>
    Effect.gen(function* () {
      const server = yield* serving(() => ({ text: "four by four is 16" }))
      const { id } = yield* create(server)
      const counted = yield* count(server, { previous_response_id: id })
      yield* create(server, { previous_response_id: id })
      assert.strictEqual(server.entries[1]?.inputTokens, counted.input_tokens)
      const text = "hello therefour by four is 16hello there"
      assert.strictEqual(counted.input_tokens, Math.ceil(text.length / 4))
    }),
  )

  it.effect("refuses what it cannot count, and can be absent", () =>
    Effect.gen(function* () {
      const server = yield* serving([])
      const wrong = yield* Effect.tryPromise(() =>
        clientOf(server).responses.inputTokens.count({ model: "m", input: "x", previous_response_id: "resp_7" }),
      ).pipe(Effect.flip)
      assert.propertyVal(wrong.cause, "code", "previous_response_not_found")
      const none = yield* serving([], { hasCounter: false })
      const absent = yield* Effect.tryPromise(() => clientOf(none).responses.inputTokens.count({ model: "m" })).pipe(
        Effect.flip,
      )
      assert.instanceOf(absent.cause, NotFoundError)
      assert.strictEqual(none.ledger.counted, 0)
    }),
  )
})

describe("a stored response", () => {
  it.effect("can be retrieved as it was sent", () =>
    Effect.gen(function* () {
      const server = yield* serving([{ text: "x", usage }])
      const sent = yield* create(server)
      assert.deepStrictEqual(yield* retrieve(server, sent.id), sent)
      assert.deepInclude(server.ledger, { requests: 1, retrieved: 1, inputTokens: 40 })
    }),
  )

  const hidden: Array<[string, TestingServer.Turn]> = [
    ["was left out", { text: "x", usage, temper: "omits-usage" }],
    ["was zero", { text: "x", usage, temper: "zero-usage" }],
    ["was not stated", { text: "x", usage, stated: null }],
    ["was cut", { text: "x", usage, cut: 10 }],
    ["was cut before the headers", { text: "x", usage, cut: "beforeHeaders" }],
    ["was noise", { text: "x", usage, garbage: 0 }],
  ]
  for (const [name, turn] of hidden) {
    for (const way of ["responses", "responses streamed"] as const) {
      it.effect(`tells its usage also where the ${way} reply ${name}`, () =>
        Effect.gen(function* () {
          const server = yield* serving([turn])
          yield* raw(server, way)
          const id = server.entries[0]?.id ?? ""
          assert.deepInclude(yield* retrieve(server, id), { status: "completed" })
          assert.deepInclude((yield* retrieve(server, id)).usage, told)
        }),
      )
    }
  }

  it.effect("goes on stating what an under-reporting server stated", () =>
    Effect.gen(function* () {
      const server = yield* serving([{ text: "x", usage, temper: "under-reports" }])
      const { id } = yield* create(server)
      assert.deepInclude((yield* retrieve(server, id)).usage, { input_tokens: 20, output_tokens: 4 })
      assert.strictEqual(server.ledger.inputTokens, 40)
    }),
  )

  it.effect("is there, in progress, while its stream is under way", () =>
    Effect.gen(function* () {
      const server = yield* serving([{ text: "x", usage, hang: 100 }])
      const call = yield* Effect.forkChild(Effect.exit(raw(server, "responses streamed")))
      yield* server.until((ledger) => ledger.requests === 1)
      const stored = yield* retrieve(server, "resp_0")
      assert.deepInclude(stored, { status: "in_progress", output: [] })
      assert.propertyVal(stored, "usage", null)
      yield* Fiber.interrupt(call)
    }),
  )

  for (const billsAborted of [false, true]) {
    it.effect(
      `whose client went away is ${billsAborted ? "there when it is billed" : "gone when nobody pays it"}`,
      () =>
        Effect.gen(function* () {
          const server = yield* serving([{ text: "x", usage, hang: true }], { billsAborted })
          const call = yield* Effect.forkChild(Effect.exit(raw(server, "responses")))
          yield* server.until((ledger) => ledger.requests === 1)
          yield* Fiber.interrupt(call)
          yield* server.until((ledger) => ledger.aborted === 1)
          const found = yield* Effect.exit(Effect.tryPromise(() => clientOf(server).responses.retrieve("resp_0")))
          assert.strictEqual(Exit.isSuccess(found), billsAborted)
          if (Exit.isSuccess(found)) assert.deepInclude(found.value.usage, told)
        }),
    )
  }

  it.effect("is not kept with `store: false`, after an error, or for Chat Completions", () =>
    Effect.gen(function* () {
      const server = yield* serving([{ text: "x" }, { status: 500 }, { text: "x" }])
      yield* raw(server, "responses", { store: false })
      yield* raw(server, "responses")
      yield* raw(server, "chat")
      for (const id of ["resp_0", "resp_1", "resp_2", "chatcmpl_2"]) {
        const error = yield* Effect.tryPromise(() => clientOf(server).responses.retrieve(id)).pipe(Effect.flip)
        assert.instanceOf(error.cause, NotFoundError)
      }
    }),
  )
})

describe("previous_response_id", () => {
  const call = { id: "call_1", name: "look", arguments: {} }

  it.effect("continues a conversation: the script sees it whole, the wire only what is new", () =>
    Effect.gen(function* () {
      const server = yield* serving([{ text: "a", calls: [call] }, { text: "b" }, { text: "c" }])
      const first = yield* create(server, { instructions: "x".repeat(400) })
      const output: ResponseInputItem = { type: "function_call_output", call_id: "call_1", output: "seen" }
      const second = yield* create(server, { previous_response_id: first.id, input: [output] })
      yield* create(server, { previous_response_id: second.id, input: "and?" })
      assert.deepStrictEqual(
        server.requests[2]?.body.input.map(({ role, type }) => type ?? role),
        ["user", "message", "function_call", "function_call_output", "message", "user"],
      )
      assert.strictEqual(server.requests[2]?.sent["input"], "and?")
      const inputs = server.entries.map(({ inputTokens }) => inputTokens)
      assert.isBelow(inputs[1] ?? 0, 100, "instructions are not continued")
      assert.isAbove(inputs[2] ?? 0, inputs[1] ?? 0)
    }),
  )

  it.effect("wants the outputs of the calls that were made", () =>
    Effect.gen(function* () {
      const server = yield* serving(() => ({ calls: [call] }))
      const { id } = yield* create(server)
      const { body, head } = yield* raw(server, "responses", { previous_response_id: id })
      assert.include(head, "400 ")
      assert.include(body.toString(), "no tool output found")
    }),
  )

  it.effect("of a response that was not stored is unknown, and says so by its code", () =>
    Effect.gen(function* () {
      const server = yield* serving(() => ({ text: "x" }))
      const { id } = yield* create(server, { store: false })
      const { body } = yield* raw(server, "responses", { previous_response_id: id })
      assert.deepInclude(JSON.parse(body.toString()).error, {
        code: "previous_response_not_found",
        param: "previous_response_id",
        type: "invalid_request_error",
      })
      assert.deepInclude(server.ledger, { replies: 1, refused: 1 })
    }),
  )
})

describe("a response in the background", () => {
  it.effect("is queued at once, goes on without its client, and ends", () =>
    Effect.gen(function* () {
      const thinking = [600_000, 5]
      const server = yield* serving((_, n) => ({ text: "x", usage, latencyMs: thinking[n] ?? 0 }))
      const queued = yield* create(server, { background: true })
      assert.deepInclude(queued, { status: "queued", background: true })
      assert.propertyVal(queued, "usage", null)
      yield* server.until(() => server.openRequests === 0)
      assert.strictEqual(server.entries[0]?.outcome, "open")
      assert.strictEqual((yield* retrieve(server, queued.id)).status, "in_progress")
      const early = yield* raw(server, "responses", { previous_response_id: queued.id })
      assert.include(early.body.toString(), "previous_response_not_found")
      const { id } = yield* create(server, { background: true })
      yield* server.until((ledger) => ledger.replies === 1)
      const done = yield* retrieve(server, id)
      assert.strictEqual(done.status, "completed")
      assert.deepInclude(done.usage, told)
      const late = yield* Effect.promise(() => clientOf(server).responses.cancel(id))
      assert.strictEqual(late.status, "completed")
    }),
  )

  for (const billsAborted of [false, true]) {
    it.effect(`is cancelled, and bills ${billsAborted ? "all" : "nothing"}`, () =>
      Effect.gen(function* () {
        const server = yield* serving([{ text: "x", usage, latencyMs: 600_000 }], { billsAborted })
        const { id } = yield* create(server, { background: true })
        const cancelled = yield* Effect.promise(() => clientOf(server).responses.cancel(id))
        assert.deepInclude(cancelled, { status: "cancelled", output: [] })
        assert.propertyVal(cancelled, "usage", null)
        assert.strictEqual((yield* retrieve(server, id)).status, "cancelled")
        assert.deepInclude(server.ledger, { cancelled: 1, replies: 0, inputTokens: billsAborted ? 40 : 0 })
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
        assert.strictEqual(server.openTimers, 0)
      }),
    )
  }

  it.effect("streams, and goes on when its client goes away", () =>
    Effect.gen(function* () {
      const server = yield* serving(() => ({ text: "x", usage, latencyMs: 20, chunkLatencyMs: 2 }))
      const stream = yield* Effect.promise(() =>
        clientOf(server).responses.create({ model: "m", input: "x", stream: true, background: true }),
      )
      const events = yield* Effect.promise(() => collected(stream))
      assert.strictEqual(events.at(-1)?.type, "response.completed")
      const call = yield* Effect.forkChild(Effect.exit(raw(server, "responses streamed", { background: true })))
      yield* server.until((ledger) => ledger.requests === 2)
      yield* Fiber.interrupt(call)
      yield* server.until((ledger) => ledger.replies === 2)
      assert.strictEqual(server.ledger.aborted, 0)
      assert.strictEqual((yield* retrieve(server, "resp_1")).status, "completed")
      assert.deepInclude(billOf(server.entries[1]), usage)
    }),
  )

  it.effect("that streams ends its stream when it is cancelled", () =>
    Effect.gen(function* () {
      const server = yield* serving([{ text: "x".repeat(600), usage, latencyMs: 600_000 }])
      const reading = yield* Effect.forkChild(raw(server, "responses streamed", { background: true }))
      yield* server.until((ledger) => ledger.requests === 1)
      yield* Effect.promise(() => clientOf(server).responses.cancel("resp_0"))
      yield* server.until(() => server.openRequests === 0)
      assert.strictEqual(server.entries[0]?.outcome, "cancelled")
      reading.interruptUnsafe()
    }),
  )

  it.effect("is what can be cancelled, and nothing else", () =>
    Effect.gen(function* () {
      const server = yield* serving([{ text: "x" }])
      const { id } = yield* create(server)
      const cancel = (which: string) =>
        Effect.tryPromise(() => clientOf(server).responses.cancel(which)).pipe(Effect.flip)
      assert.include(String((yield* cancel(id)).cause), "Cannot cancel a synchronous response")
      assert.instanceOf((yield* cancel("resp_9")).cause, NotFoundError)
    }),
  )
})
