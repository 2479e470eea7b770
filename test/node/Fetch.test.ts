import * as zlib from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { Contract } from "../../src/index.ts"
import { digest } from "../../src/event/Content.ts"
import { fetch_url, fetched, pages, serving, text } from "./serving.ts"
import { codeOf, failure, saysOf, until } from "./support.ts"

describe("what is fetched", () => {
  it.live("comes with where it was, its type and its version", () =>
    Effect.gen(function* () {
      const { at } = yield* serving(
        pages({ "/a?b=c": [200, text, "hello"], "/tagged": [200, { ...text, etag: 'W/"7"' }, "hello"] }),
      )
      const page = yield* fetched(at("/a?b=c#part"))
      assert.deepStrictEqual(page, {
        url: at("/a?b=c"),
        status: 200,
        contentType: "text/plain",
        text: "hello",
        version: digest("hello"),
      })
      assert.deepStrictEqual(saysOf(Contract.of(fetch_url), {}, page).resources, [
        { path: at("/a?b=c"), version: digest("hello") },
      ])
      assert.strictEqual((yield* fetched(at("/tagged"))).version, 'W/"7"')
    }),
  )

  it.live("is read in its character set and decompressed", () =>
    Effect.gen(function* () {
      const { at } = yield* serving(
        pages({
          "/latin": [200, { "content-type": "text/html; charset=ISO-8859-1" }, Buffer.from([0xe4])],
          "/odd": [200, { "content-type": "text/html; charset=nonsense" }, "ä"],
          "/gzip": [200, { ...text, "content-encoding": "gzip" }, zlib.gzipSync("packed")],
          "/br": [200, { ...text, "content-encoding": "br" }, zlib.brotliCompressSync("packed")],
          "/deflate": [200, { ...text, "content-encoding": "deflate" }, zlib.deflateSync("packed")],
          "/broken": [200, { ...text, "content-encoding": "gzip" }, "no gzip"],
          "/other": [200, { ...text, "content-encoding": "other" }, "?"],
        }),
      )
      const texts = yield* Effect.forEach(["/latin", "/odd", "/gzip", "/br", "/deflate"], (path) =>
        Effect.map(fetched(at(path)), ({ text }) => text),
      )
      assert.deepStrictEqual(texts, ["ä", "ä", "packed", "packed", "packed"])
      assert.strictEqual(yield* codeOf(fetched(at("/broken"))), "Z_DATA_ERROR mistake")
      assert.strictEqual(yield* codeOf(fetched(at("/other"))), "EMEDIA mistake")
    }),
  )

  it.live("is text, or what is allowed as such", () =>
    Effect.gen(function* () {
      const types = [
        "text/html; charset=utf-8",
        "application/json",
        "application/ld+json",
        "image/svg+xml",
        "application/pdf",
        "image/png",
      ]
      const { at } = yield* serving((request, response) => {
        const type = types[Number(request.url!.slice(1))]
        response
          .writeHead(200, type === undefined ? {} : { "content-type": type })
          .end(request.url === "/7" ? "\0" : "x")
      })
      const codes = yield* Effect.forEach([0, 1, 2, 3, 4, 5, 6, 7], (index) => codeOf(fetched(at(`/${index}`))))
      assert.deepStrictEqual(codes, [
        "ok",
        "ok",
        "ok",
        "ok",
        "EMEDIA mistake",
        "EMEDIA mistake",
        "ok",
        "EMEDIA mistake",
      ])
      assert.strictEqual((yield* fetched(at("/4"), { contentTypes: ["application/pdf"] })).text, "x")
    }),
  )

  it.live("is cut at its cap, and the connection with it", () =>
    Effect.gen(function* () {
      let closed = false
      const { at } = yield* serving((request, response) => {
        response.writeHead(200, { ...text, ...(request.url === "/bomb" ? { "content-encoding": "gzip" } : {}) })
        if (request.url === "/exact") response.end("12345678€")
        else if (request.url === "/bomb") response.end(zlib.gzipSync(Buffer.alloc(50_000_000, "a")))
        else {
          const timer = setInterval(() => response.write("€".repeat(1000)), 1)
          response.on("close", () => {
            closed = true
            clearInterval(timer)
          })
        }
      })
      const exact = yield* fetched(at("/exact"), { maxBytes: 11 })
      assert.strictEqual(exact.text, "12345678€")
      assert.isUndefined(exact.leftOut)
      const over = yield* fetched(at("/exact"), { maxBytes: 10 })
      assert.strictEqual(over.text, "12345678")
      assert.strictEqual(over.leftOut, "what comes after the first 10 bytes")
      const endless = yield* fetched(at("/endless"), { maxBytes: 10_000 })
      assert.strictEqual(endless.text, "€".repeat(3333))
      yield* until(() => closed)
      const bomb = yield* fetched(at("/bomb"), { maxBytes: 1000 })
      assert.strictEqual(bomb.text, "a".repeat(1000))
    }),
  )

  it.live("comes over a connection of its own, which nobody has used before and nobody will", () =>
    Effect.gen(function* () {
      const { at, server } = yield* serving((request, response) => {
        response.writeHead(200, text).end(request.headers.connection)
      })
      let connections = 0
      server.on("connection", () => connections++)
      assert.strictEqual((yield* fetched(at("/"))).text, "close")
      assert.strictEqual((yield* fetched(at("/"))).text, "close")
      assert.strictEqual(connections, 2)
    }),
  )
})

describe("what fails", () => {
  it.live("by its status", () =>
    Effect.gen(function* () {
      const { at } = yield* serving(
        pages({
          "/403": [403, text, "no"],
          "/429": [429, { "retry-after": "2" }],
          "/503": [503, { "retry-after": new Date(Date.now() + 3_600_000).toUTCString() }],
          "/500": [500, { "retry-after": "soon" }],
          "/304": [304, {}],
          "/302": [302, {}],
        }),
      )
      const statuses = ["/404", "/403", "/429", "/503", "/500", "/304", "/302"]
      const codes = yield* Effect.forEach(statuses, (path) => codeOf(fetched(at(path))))
      assert.deepStrictEqual(codes, [
        "EHTTP mistake",
        "EHTTP mistake",
        "EHTTP transient",
        "EHTTP transient",
        "EHTTP transient",
        "EHTTP mistake",
        "EHTTP mistake",
      ])
      assert.strictEqual((yield* failure(fetched(at("/429")))).retryAfterMillis, 2000)
      assert.approximately((yield* failure(fetched(at("/503")))).retryAfterMillis!, 3_600_000, 60_000)
      assert.isUndefined((yield* failure(fetched(at("/500")))).retryAfterMillis)
      assert.include((yield* failure(fetched(at("/404")))).message, "404 Not Found")
    }),
  )

  it.live("by its connection", () =>
    Effect.gen(function* () {
      const { at, port } = yield* serving((request, response) => {
        if (request.url === "/half") response.writeHead(200, { ...text, "content-length": 100 }).write("half")
        setTimeout(() => request.socket.destroy(), 20)
      })
      assert.strictEqual(yield* codeOf(fetched(at("/"))), "ECONNRESET transient")
      assert.strictEqual((yield* failure(fetched(at("/half")))).class, "transient")
      assert.strictEqual((yield* failure(fetched(`https://127.0.0.1:${port}/`))).class, "mistake")
      const free = yield* Effect.scoped(Effect.map(serving(pages({})), ({ at }) => at("/")))
      assert.strictEqual(yield* codeOf(fetched(free)), "ECONNREFUSED transient")
    }),
  )

  it.live("when its time is over or nobody wants it any more, the connection is closed", () =>
    Effect.gen(function* () {
      let open = 0
      const { asked, at } = yield* serving((request, response) => {
        open++
        response.on("close", () => open--)
        if (request.url === "/drips") response.writeHead(200, text).write("a")
        if (request.url === "/refused") response.writeHead(404, text).write("a".repeat(100_000))
      })
      const times = yield* Effect.forEach(["/silent", "/drips"], (path) =>
        codeOf(fetched(at(path), { timeout: "100 millis" })),
      )
      assert.deepStrictEqual(times, ["ETIMEDOUT transient", "ETIMEDOUT transient"])
      const fiber = yield* Effect.forkChild(fetched(at("/silent")), { startImmediately: true })
      yield* until(() => asked.length === 3)
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(yield* codeOf(fetched(at("/refused"))), "EHTTP mistake")
      yield* until(() => open === 0)
    }),
  )

  it.live("because it is no address to fetch", () =>
    Effect.gen(function* () {
      const codes = yield* Effect.forEach(
        [
          "",
          "no address",
          "/relative",
          "file:///etc/passwd",
          "ftp://example.com/",
          "data:text/plain,a",
          "http://me:pw@127.0.0.1/",
        ],
        (url) => codeOf(fetched(url)),
      )
      assert.deepStrictEqual(codes, [
        "EINVAL mistake",
        "EINVAL mistake",
        "EINVAL mistake",
        "EPERM permission",
        "EPERM permission",
        "EPERM permission",
        "EINVAL mistake",
      ])
    }),
  )
})

it("the tool has a contract", () => {
  const contract = Contract.of(fetch_url)
  assert.deepInclude(contract, { effect: "read", untrusted: true, timeoutMillis: 60_000 })
  assert.deepStrictEqual(contract.scopes?.({ url: "https://Example.com/a" } as never), ["fetch:example.com"])
})
