import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Fetch } from "../../src/node/index.ts"
import { admits, isPublic } from "../../src/node/internal/address.ts"
import { fetched, pages, serving, text } from "./serving.ts"
import { codeOf } from "./support.ts"

describe("redirects", () => {
  it.live("are followed, so many at most", () =>
    Effect.gen(function* () {
      const { asked, at } = yield* serving((request, response) => {
        const left = Number(request.url!.slice(1))
        if (left === 0) response.writeHead(200, text).end("there")
        else response.writeHead([301, 302, 303, 307, 308][left % 5]!, { location: `./${left - 1}` }).end("gone")
      })
      assert.deepInclude(yield* fetched(at("/5")), { text: "there", url: at("/0") })
      assert.strictEqual(asked.length, 6)
      assert.strictEqual(yield* codeOf(fetched(at("/6"))), "EREDIRECT mistake")
      assert.strictEqual(yield* codeOf(fetched(at("/1"), { maxRedirects: 0 })), "EREDIRECT mistake")
    }),
  )

  it.live("are looked at like the first address", () =>
    Effect.gen(function* () {
      const there = yield* serving(pages({ "/": [200, text, "private"] }))
      const targets = [
        "http://10.0.0.1/",
        "http://127.0.0.2/",
        "http://[::1]/",
        `http://inner.test:${there.port}/`,
        "file:///etc/passwd",
        "http://me:pw@127.0.0.1/",
        "http://%/",
      ]
      const { at } = yield* serving((request, response) => {
        response.writeHead(302, { location: targets[Number(request.url!.slice(1))] }).end()
      })
      const lookup = () => Promise.resolve([{ address: "127.0.0.2", family: 4 }])
      const codes = yield* Effect.forEach(targets, (_, index) => codeOf(fetched(at(`/${index}`), { lookup })))
      assert.deepStrictEqual(codes, [
        "EPERM permission",
        "EPERM permission",
        "EPERM permission",
        "EPERM permission",
        "EPERM permission",
        "EINVAL mistake",
        "EINVAL mistake",
      ])
      assert.deepStrictEqual(there.asked, [])
    }),
  )

  it.live("go only where it is allowed", () =>
    Effect.gen(function* () {
      const { asked, at } = yield* serving(pages({ "/a": [302, { location: "/b" }], "/b": [200, text, "b"] }))
      const allow = (url: URL) => url.pathname === "/a"
      assert.strictEqual(yield* codeOf(fetched(at("/a"), { allow })), "EPERM permission")
      assert.strictEqual(yield* codeOf(fetched(at("/b"), { allow })), "EPERM permission")
      assert.deepStrictEqual(asked, ["127.0.0.1/a"])
    }),
  )
})

describe("addresses", () => {
  it.live("names are resolved once, and connected to is what was looked at", () =>
    Effect.gen(function* () {
      const { asked, port } = yield* serving(pages({ "/": [200, text, "here"] }))
      const asks: Array<string> = []
      const lookup = (host: string) => {
        asks.push(host)
        // The second answer is another one, as of a name that is made to change.
        return Promise.resolve([{ address: asks.length === 1 ? "127.0.0.1" : "127.0.0.2", family: 4 }])
      }
      const page = yield* fetched(`http://site.test:${port}/`, { lookup })
      assert.strictEqual(page.text, "here")
      assert.deepStrictEqual([asks, asked], [["site.test"], ["site.test/"]])
      assert.strictEqual(yield* codeOf(fetched(`http://site.test:${port}/`, { lookup })), "EPERM permission")
    }),
  )

  it.live("of several only those are used that may be", () =>
    Effect.gen(function* () {
      const { port } = yield* serving(pages({ "/": [200, text, "here"] }))
      const both = () =>
        Promise.resolve([
          { address: "10.255.255.1", family: 4 },
          { address: "127.0.0.1", family: 4 },
        ])
      assert.strictEqual((yield* fetched(`http://site.test:${port}/`, { lookup: both })).text, "here")
      const none = () => Promise.resolve([])
      assert.strictEqual(yield* codeOf(fetched("http://site.test/", { lookup: none })), "EPERM permission")
    }),
  )

  it.live("names that do not exist are a mistake, resolvers that fail may recover", () =>
    Effect.gen(function* () {
      const failing = (code: string) => () => Promise.reject(Object.assign(new Error(code), { code }))
      assert.strictEqual(
        yield* codeOf(fetched("http://no.test/", { lookup: failing("ENOTFOUND") })),
        "ENOTFOUND mistake",
      )
      assert.strictEqual(
        yield* codeOf(fetched("http://no.test/", { lookup: failing("EAI_AGAIN") })),
        "EAI_AGAIN transient",
      )
    }),
  )

  it.live("of this machine are not connected to, however they are written", () =>
    Effect.gen(function* () {
      const { asked, port } = yield* serving(pages({ "/": [200, text, "private"] }))
      let connections = 0
      const hosts = [
        "127.0.0.1",
        "localhost",
        "0x7f.1",
        "2130706433",
        "017700000001",
        "127.1",
        "0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::]",
      ]
      const codes = yield* Effect.forEach(hosts, (host) =>
        codeOf(fetched(`http://${host}:${port}/`, { allowAddresses: [] })).pipe(
          Effect.tap(() => Effect.sync(() => (connections = asked.length))),
        ),
      )
      assert.deepStrictEqual(new Set(codes), new Set(["EPERM permission"]))
      assert.strictEqual(connections, 0)
    }),
  )

  it("are public or not, at the edges of every block", () => {
    const blocked = [
      "0.0.0.0",
      "0.255.255.255",
      "10.0.0.0",
      "10.255.255.255",
      "100.64.0.0",
      "100.127.255.255",
      "127.0.0.0",
      "127.255.255.255",
      "169.254.0.0",
      "169.254.169.254",
      "172.16.0.0",
      "172.31.255.255",
      "192.0.0.1",
      "192.0.2.1",
      "192.88.99.1",
      "192.168.0.0",
      "192.168.255.255",
      "198.18.0.0",
      "198.19.255.255",
      "198.51.100.1",
      "203.0.113.1",
      "224.0.0.0",
      "239.255.255.255",
      "240.0.0.0",
      "255.255.255.255",
      "::",
      "::1",
      "::ffff:8.8.8.8",
      "::7f00:1",
      "64:ff9b::7f00:1",
      "64:ff9b:1::1",
      "100::1",
      "2001::1",
      "2001:1ff:ffff::1",
      "2001:db8::1",
      "2002:7f00:1::1",
      "3fff::1",
      "fc00::1",
      "fdff::1",
      "fe80::1",
      "fec0::1",
      "ff02::1",
      "4000::1",
      "no address",
      "",
    ]
    const open = [
      "1.0.0.1",
      "9.255.255.255",
      "11.0.0.0",
      "100.63.255.255",
      "100.128.0.0",
      "126.255.255.255",
      "128.0.0.0",
      "169.253.255.255",
      "169.255.0.0",
      "172.15.255.255",
      "172.32.0.0",
      "192.167.255.255",
      "192.169.0.0",
      "198.17.255.255",
      "198.20.0.0",
      "223.255.255.255",
      "2000::1",
      "2001:200::1",
      "2606:4700:4700::1111",
      "2a00::1",
    ]
    assert.deepStrictEqual(blocked.filter(isPublic), [])
    assert.deepStrictEqual(
      open.filter((address) => !isPublic(address)),
      [],
    )
  })

  it("may be allowed one by one or in blocks", () => {
    const admitted = admits(["127.0.0.1", "10.1.0.0/16", "fd00::/8"])
    const known = [
      "127.0.0.1",
      "::ffff:127.0.0.1",
      "10.1.255.255",
      "fd12::1",
      "8.8.8.8",
      "127.0.0.2",
      "10.2.0.0",
      "fc00::1",
    ]
    assert.deepStrictEqual(known.map(admitted), [true, true, true, true, true, false, false, false])
    assert.throws(() => Fetch.layer({ allowAddresses: ["nonsense"] }))
  })
})
