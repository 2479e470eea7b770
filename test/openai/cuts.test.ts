import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type { ServerResponse } from "node:http"
import type { Report } from "../../src/model/Provider.ts"
import { call, modelAt, question, serve } from "./raw.ts"
import {
  aChatStream,
  aResponsesStream,
  chunk,
  chunks,
  finished,
  shortChatStream,
  shortResponsesStream,
} from "./streams.ts"

const eventStream = { "content-type": "text/event-stream" }

const protocols = [
  { protocol: "chat", stream: aChatStream, short: shortChatStream },
  { protocol: "responses", stream: aResponsesStream, short: shortResponsesStream },
] as const

/** Sends the first bytes of a body, and calls `then` once they have left. */
const begin = (response: ServerResponse, bytes: Uint8Array, then: () => void): void => {
  response.writeHead(200, eventStream)
  response.flushHeaders()
  response.write(bytes, () => setImmediate(then))
}

/** Waits, in real time and at most a second, until something is so. */
const within = (is: () => boolean) =>
  Effect.promise(async () => {
    for (let waited = 0; waited < 1000 && !is(); waited += 5) {
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    return is()
  })

describe("a connection that is cut", () => {
  for (const { protocol, short: stream } of protocols) {
    it.live(
      `at any byte of a ${protocol} stream before its end is reported as lost, once, and hands on no call`,
      () =>
        Effect.gen(function* () {
          const bytes = new TextEncoder().encode(stream)
          // From here on the end has been said, and a client may know all it needs.
          const end =
            protocol === "chat" ? stream.indexOf("data: [DONE]") + "data: [DONE]\n\n".length - 1 : stream.length - 1
          const last = new TextEncoder().encode(stream.slice(0, end)).length
          let length = 0
          const server = yield* serve((response) =>
            begin(response, bytes.subarray(0, length), () => response.destroy()),
          )
          const model = yield* modelAt(server.url, { protocol, stream: true })
          for (length = 0; length <= last; length++) {
            const { failure, reply, reports } = yield* call(model)
            assert.isUndefined(reply, `after ${length} bytes`)
            assert.strictEqual(failure?.code, "NetworkError", `after ${length} bytes`)
            assert.deepStrictEqual(
              reports.map(({ _tag }) => _tag),
              ["Lost"],
              `after ${length} bytes`,
            )
          }
          assert.lengthOf(server.requests, last + 1)
        }),
      60_000,
    )

    it.live(`after the end of a ${protocol} stream does not matter`, () =>
      Effect.gen(function* () {
        const server = yield* serve((response) =>
          begin(response, new TextEncoder().encode(stream), () => response.destroy()),
        )
        const { reply, reports } = yield* Effect.flatMap(modelAt(server.url, { protocol, stream: true }), call)
        assert.lengthOf(reply?.calls ?? [], 1)
        assert.deepStrictEqual(
          reports.map(({ _tag }) => _tag),
          ["Replied"],
        )
      }),
    )
  }

  it.live("keeps the id of a reply that had begun, so that it can be asked for later", () =>
    Effect.gen(function* () {
      const bytes = new TextEncoder().encode(aResponsesStream)
      const server = yield* serve((response) => begin(response, bytes.subarray(0, 400), () => response.destroy()))
      const { reports } = yield* Effect.flatMap(modelAt(server.url, { stream: true }), call)
      assert.deepStrictEqual(reports, [{ _tag: "Lost", id: "resp_1" }])
    }),
  )
})

/** When a call is interrupted, and how much of its reply has left by then. */
const moments = [
  { when: "before the headers", bytes: undefined },
  { when: "after the headers", bytes: 0 },
  { when: "in the middle of the text", bytes: 300 },
  { when: "in the middle of a call", bytes: 800 },
]

describe("interruption", () => {
  for (const { protocol, stream } of protocols) {
    for (const { bytes, when } of moments) {
      it.live(`of a ${protocol} call ${when} closes the connection within a second and reports once`, () =>
        Effect.gen(function* () {
          const all = new TextEncoder().encode(stream)
          let hasLeft = false
          const server = yield* serve((response) => {
            const left = () => {
              hasLeft = true
            }
            return bytes === undefined ? left() : begin(response, all.subarray(0, bytes), left)
          })
          const model = yield* modelAt(server.url, { protocol, stream: true })
          const reports: Array<Report> = []
          const report = (one: Report) => void reports.push(one)
          const fiber = yield* Effect.forkChild(model.call(question, { maxOutputTokens: 100, headers: {}, report }))
          assert.isTrue(yield* within(() => hasLeft))
          yield* Fiber.interrupt(fiber)
          assert.isTrue(Exit.isFailure(yield* Fiber.await(fiber)))
          assert.deepStrictEqual(
            reports.map(({ _tag }) => _tag),
            ["Lost"],
          )
          assert.isTrue(yield* within(() => server.state.open === 0))
          assert.lengthOf(reports, 1)
          assert.lengthOf(server.requests, 1)
        }),
      )
    }
  }

  for (const { protocol, stream } of protocols) {
    it.live(`of a ${protocol} call whose reply is whole, but its connection still open, reports the reply`, () =>
      Effect.gen(function* () {
        const server = yield* serve((response) => begin(response, new TextEncoder().encode(stream), () => {}))
        const model = yield* modelAt(server.url, { protocol, stream: true })
        const reports: Array<Report> = []
        const report = (one: Report) => void reports.push(one)
        let hasBegun = false
        const onText = () => {
          hasBegun = true
        }
        const how = { maxOutputTokens: 100, headers: {}, report, onText }
        const fiber = yield* Effect.forkChild(model.call(question, how))
        assert.isTrue(yield* within(() => hasBegun))
        yield* Fiber.interrupt(fiber)
        assert.deepStrictEqual(
          reports.map((one) => (one._tag === "Replied" ? one.usage?.outputTokens : one._tag)),
          [7],
        )
        assert.isTrue(yield* within(() => server.state.open === 0))
      }),
    )
  }

  it.live("is the last that a listener hears of it, whatever still comes, and gives the rest back", () =>
    Effect.gen(function* () {
      let [heard, isCancelled] = [0, false]
      let body: ReadableStreamDefaultController<Uint8Array> | undefined
      const stream = new ReadableStream<Uint8Array>({
        start: (controller) => {
          body = controller
        },
        cancel: () => {
          isCancelled = true
        },
      })
      const fetch = () => Promise.resolve(new Response(stream, { headers: eventStream }))
      const piece = new TextEncoder().encode(chunks([chunk({ content: "a" })], ""))
      const model = yield* modelAt("http://127.0.0.1:1/v1", { protocol: "chat", stream: true, fetch })
      const how = { maxOutputTokens: 100, headers: {}, report: () => {}, onText: () => void heard++ }
      const fiber = yield* Effect.forkChild(model.call(question, how))
      assert.isTrue(yield* within(() => body !== undefined))
      body?.enqueue(piece)
      assert.isTrue(yield* within(() => heard === 1))
      fiber.interruptUnsafe()
      if (!isCancelled) body?.enqueue(piece)
      yield* Fiber.await(fiber)
      yield* Effect.sleep(5)
      assert.deepStrictEqual([heard, isCancelled], [1, true])
    }),
  )

  it.live("before anything was sent is reported as not sent", () =>
    Effect.gen(function* () {
      const server = yield* serve(() => {})
      const model = yield* modelAt(server.url)
      const reports: Array<Report> = []
      const report = (one: Report) => void reports.push(one)
      const fiber = yield* Effect.forkChild(model.call(question, { maxOutputTokens: 100, headers: {}, report }), {
        startImmediately: true,
      })
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(reports, [{ _tag: "NotSent" }])
      yield* Effect.sleep(20)
      assert.lengthOf(server.requests, 0)
    }),
  )
})

describe("one timeout", () => {
  it.live("is not waited for by a fetch that does not listen", () =>
    Effect.gen(function* () {
      const fetch = () => new Promise<Response>(() => {})
      const model = yield* modelAt("http://127.0.0.1:1/v1", { timeout: "20 millis", fetch })
      const came = yield* Effect.timeoutOption(call(model), "1 second")
      assert.deepStrictEqual(came._tag === "Some" ? came.value.reports : came, [{ _tag: "Lost" }])
    }),
  )

  it.live("covers a reply that never comes, and one that never ends", () =>
    Effect.gen(function* () {
      const all = new TextEncoder().encode(aChatStream)
      for (const bytes of [undefined, 300]) {
        const server = yield* serve((response) => {
          if (bytes !== undefined) begin(response, all.subarray(0, bytes), () => {})
        })
        const model = yield* modelAt(server.url, { protocol: "chat", stream: true, timeout: "60 millis" })
        const { failure, reports } = yield* call(model)
        assert.strictEqual(failure?.code, "NetworkError")
        assert.isTrue(failure?.retryable)
        assert.deepStrictEqual(
          reports.map(({ _tag }) => _tag),
          ["Lost"],
        )
        assert.isTrue(yield* within(() => server.state.open === 0))
      }
    }),
  )

  it.live("covers a reply that keeps dripping", () =>
    Effect.gen(function* () {
      const drips: Array<NodeJS.Timeout> = []
      const server = yield* serve((response) => {
        response.writeHead(200, eventStream)
        drips.push(setInterval(() => response.write(": keep-alive\n\n"), 5))
      })
      yield* Effect.addFinalizer(() => Effect.sync(() => drips.forEach(clearInterval)))
      const { reports } = yield* Effect.flatMap(modelAt(server.url, { stream: true, timeout: "60 millis" }), call)
      assert.deepStrictEqual(reports, [{ _tag: "Lost" }])
    }),
  )
})

describe("a connection", () => {
  it.live("is used again after a reply, streamed or not", () =>
    Effect.gen(function* () {
      const server = yield* serve((response, { body }) => {
        if (body["stream"] === true) {
          response.writeHead(200, eventStream)
          return response.end(aResponsesStream)
        }
        response.writeHead(200, { "content-type": "application/json" })
        response.end(JSON.stringify(finished))
      })
      for (const stream of [true, false]) {
        const model = yield* modelAt(server.url, { stream })
        for (let n = 0; n < 5; n++) assert.isDefined((yield* call(model)).reply)
      }
      assert.lengthOf(server.requests, 10)
      assert.isAtMost(server.state.connections, 2)
    }),
  )

  it.live("that a server keeps open after the end of a stream is not waited for", () =>
    Effect.gen(function* () {
      const server = yield* serve((response) => begin(response, new TextEncoder().encode(aResponsesStream), () => {}))
      const { reply } = yield* Effect.flatMap(modelAt(server.url, { stream: true }), call)
      assert.strictEqual(reply?.text, "Grüße, 世界 👋")
      assert.isTrue(yield* within(() => server.state.open === 0))
    }),
  )
})
