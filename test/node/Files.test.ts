import * as fs from "node:fs"
import * as path from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { Contract } from "../../src/index.ts"
import { digest } from "../../src/event/Content.ts"
import { Files } from "../../src/node/index.ts"
import { list_files, read, read_file, search_files, setting, within, write } from "./rooted.ts"
import { call, codeOf, failure, saysOf } from "./support.ts"

describe("reading", () => {
  it.live("gives text, version and lines, and says what they are", () =>
    Effect.gen(function* () {
      const { root } = yield* setting({ "a/b.txt": "one\ntwo\nthree" })
      const page = yield* read({ path: "./a//b.txt" }).pipe(within(root))
      assert.deepStrictEqual(page, {
        path: "a/b.txt",
        version: digest("one\ntwo\nthree"),
        text: "one\ntwo\nthree",
        firstLine: 1,
        lastLine: 3,
        totalLines: 3,
      })
      const { resources } = saysOf(Contract.of(read_file), {}, page)
      assert.deepStrictEqual(resources, [{ path: "a/b.txt", version: page.version }])
    }),
  )

  it.live("gives a range of lines and says which are left out", () =>
    Effect.gen(function* () {
      const { root } = yield* setting({ "a.txt": "1\n2\n3\n4\n5\n" })
      const page = yield* read({ path: "a.txt", firstLine: 2, lastLine: 3 }).pipe(within(root))
      assert.deepInclude(page, { text: "2\n3\n", firstLine: 2, lastLine: 3, totalLines: 5 })
      assert.strictEqual(page.leftOut, "lines 1 to 1, lines 4 to 5")
      const { resources } = saysOf(Contract.of(read_file), {}, page)
      assert.deepStrictEqual(resources, [{ path: "a.txt", version: page.version, range: [2, 3] }])
      assert.strictEqual(yield* codeOf(read({ path: "a.txt", firstLine: 6 }).pipe(within(root))), "EINVAL mistake")
      const empty = yield* read({ path: "e.txt" }).pipe(within((yield* setting({ "e.txt": "" })).root))
      assert.deepInclude(empty, { text: "", lastLine: 0, totalLines: 0 })
    }),
  )

  it.live("stops at its cap: after a whole line, or within the first one but not within a character", () =>
    Effect.gen(function* () {
      const { root } = yield* setting({ "lines.txt": "12345\n12345\n12345\n", "long.txt": "äöü€\nrest\n" })
      const lines = yield* read({ path: "lines.txt" }).pipe(within(root, { maxReadBytes: 13 }))
      assert.deepInclude(lines, { text: "12345\n12345\n", lastLine: 2, leftOut: "lines 3 to 3" })
      const long = yield* read({ path: "long.txt" }).pipe(within(root, { maxReadBytes: 8 }))
      assert.deepInclude(long, { text: "äöü", lastLine: 1 })
      assert.strictEqual(long.leftOut, "the last 4 bytes of line 1, lines 2 to 2")
    }),
  )

  it.live("refuses what is missing, no file, no text or too large", () =>
    Effect.gen(function* () {
      const { root } = yield* setting({ "a.txt": "text", "big.txt": "123456789" })
      fs.writeFileSync(path.join(root, "null.bin"), Buffer.from([65, 0, 66]))
      fs.writeFileSync(path.join(root, "latin.txt"), Buffer.from([0xe4, 0xf6]))
      const codes = yield* Effect.forEach(
        ["none.txt", "no/such/file", ".", "a.txt/b", "null.bin", "latin.txt", "big.txt", "a\0b", "", "x".repeat(300)],
        (file) => codeOf(read({ path: file })),
      ).pipe(within(root, { maxFileBytes: 8 }))
      assert.deepStrictEqual(codes, [
        "ENOENT mistake",
        "ENOENT mistake",
        "EISDIR mistake",
        "ENOTDIR mistake",
        "EBINARY mistake",
        "EBINARY mistake",
        "EFBIG mistake",
        "EINVAL mistake",
        "EINVAL mistake",
        "EINVAL mistake",
      ])
    }),
  )

  it.live("does not wait for the other end of a pipe", () =>
    Effect.gen(function* () {
      const { root } = yield* setting()
      const { execFileSync } = yield* Effect.promise(() => import("node:child_process"))
      execFileSync("mkfifo", [path.join(root, "pipe")])
      assert.strictEqual(yield* codeOf(read({ path: "pipe" }).pipe(within(root))), "EINVAL mistake")
      assert.strictEqual(yield* codeOf(write("pipe", "x").pipe(within(root))), "EINVAL mistake")
    }),
  )

  it.live("says nothing of where on the machine the root lies", () =>
    Effect.gen(function* () {
      const { base, root } = yield* setting({ "a.txt": "x", out: "-> ../outside" })
      const messages = yield* Effect.forEach(["none", ".", "a.txt/b", "out/secret.txt", "../x"], (file) =>
        Effect.map(failure(read({ path: file })), ({ message }) => message),
      ).pipe(within(root))
      for (const message of messages) assert.notInclude(message, base)
    }),
  )
})

describe("listing", () => {
  const tree = {
    "a.txt": "",
    ".env": "",
    "src/a.ts": "",
    "src/deep/b.ts": "",
    "src/deep/.c.ts": "",
    "node_modules/x/index.js": "",
    ".git/config": "",
  }
  const list = (params: typeof list_files.parametersSchema.Encoded) => call(list_files, params)

  it.live("gives what is there, without what is ignored", () =>
    Effect.gen(function* () {
      const { root } = yield* setting(tree)
      const all = yield* list({}).pipe(within(root))
      assert.deepStrictEqual(all, { paths: [".env", "a.txt", "src/a.ts", "src/deep/.c.ts", "src/deep/b.ts"] })
      const other = yield* list({}).pipe(within(root, { ignore: ["src", "node_modules"] }))
      assert.deepStrictEqual(other, { paths: [".env", ".git/config", "a.txt"] })
    }),
  )

  it.live("goes as deep as it is told and as a glob says", () =>
    Effect.gen(function* () {
      const { root } = yield* setting(tree)
      yield* Effect.gen(function* () {
        assert.deepStrictEqual(yield* list({ depth: 1 }), { paths: [".env", "a.txt", "src/"] })
        assert.deepStrictEqual(yield* list({ depth: 2 }), { paths: [".env", "a.txt", "src/a.ts", "src/deep/"] })
        assert.deepStrictEqual(yield* list({ glob: "**/*.ts" }), {
          paths: ["src/a.ts", "src/deep/.c.ts", "src/deep/b.ts"],
        })
        assert.deepStrictEqual(yield* list({ glob: "./src/*.{ts,js}" }), { paths: ["src/a.ts"] })
        assert.deepStrictEqual(yield* list({ glob: "*", depth: 1 }), { paths: [".env", "a.txt", "src/"] })
      }).pipe(within(root))
    }),
  )

  it.live("stops at its cap and says how much there is", () =>
    Effect.gen(function* () {
      const { root } = yield* setting(tree)
      const listed = yield* list({}).pipe(within(root, { maxEntries: 2 }))
      assert.deepStrictEqual(listed, { paths: [".env", "a.txt"], leftOut: "3 more paths; use a narrower glob" })
    }),
  )

  it.live("a glob that does not come to an end is given up", () =>
    Effect.gen(function* () {
      const { root } = yield* setting({ ["a".repeat(200)]: "" })
      const started = performance.now()
      const failed = yield* failure(
        list({ glob: "*a".repeat(30) + "b" }).pipe(within(root, { matchTimeout: "200 millis" })),
      )
      assert.strictEqual(failed.code, "EPATTERN")
      assert.isBelow(performance.now() - started, 20_000)
    }),
  )
})

describe("searching", () => {
  const search = (params: typeof search_files.parametersSchema.Encoded) => call(search_files, params)
  const tree = { "a.ts": "const One = 1\nconst two = 2\n", "b/c.md": "one (1)\r\n", "d.bin": "one\0" }

  it.live("finds texts and regular expressions", () =>
    Effect.gen(function* () {
      const { root } = yield* setting(tree)
      const leftOut = "1 files that are no text, too large or not readable"
      yield* Effect.gen(function* () {
        assert.deepStrictEqual(yield* search({ query: "one (" }), {
          hits: [{ path: "b/c.md", line: 1, text: "one (1)" }],
          files: 2,
          leftOut,
        })
        const folded = yield* search({ query: "ONE", ignoreCase: true })
        assert.deepStrictEqual(
          folded.hits.map((hit) => `${hit.path}:${hit.line}`),
          ["a.ts:1", "b/c.md:1"],
        )
        const matched = yield* search({ query: "^const \\w+ = \\d$", regexp: true, glob: "**/*.ts" })
        assert.deepStrictEqual(matched, {
          hits: [
            { path: "a.ts", line: 1, text: "const One = 1" },
            { path: "a.ts", line: 2, text: "const two = 2" },
          ],
          files: 1,
        })
        const any = yield* search({ query: "ONE", regexp: true, ignoreCase: true, glob: "b/**" })
        assert.strictEqual(any.hits.length, 1)
      }).pipe(within(root))
    }),
  )

  it.live("stops at its cap and says so", () =>
    Effect.gen(function* () {
      const { root } = yield* setting({ "a.txt": "x\n".repeat(10), "b.txt": `${"x".repeat(2000)}\n` })
      const capped = yield* search({ query: "x" }).pipe(within(root, { maxHits: 4 }))
      assert.strictEqual(capped.hits.length, 4)
      assert.strictEqual(capped.leftOut, "what comes after the first 4 hits")
      const exact = yield* search({ query: "x", glob: "a.txt" }).pipe(within(root, { maxHits: 10 }))
      assert.isUndefined(exact.leftOut)
      const long = yield* search({ query: "x", glob: "b.txt" }).pipe(within(root))
      assert.isAtMost(Buffer.byteLength(long.hits[0]!.text), 303)
    }),
  )

  it.live("refuses what cannot be searched for", () =>
    Effect.gen(function* () {
      const { root } = yield* setting(tree)
      const codes = yield* Effect.all([
        codeOf(search({ query: "" })),
        codeOf(search({ query: "a\nb" })),
        codeOf(search({ query: "(", regexp: true })),
      ]).pipe(within(root))
      assert.deepStrictEqual(codes, ["EINVAL mistake", "EINVAL mistake", "EPATTERN mistake"])
    }),
  )

  it.live("a regular expression that does not come to an end is given up, and the process goes on meanwhile", () =>
    Effect.gen(function* () {
      const { root } = yield* setting({ "a.txt": `${"a".repeat(60)}!\n` })
      let ticks = 0
      const timer = setInterval(() => ticks++, 10)
      const hostile = search({ query: "^(a+)+$", regexp: true })
      const failed = yield* failure(hostile.pipe(within(root, { matchTimeout: "500 millis" })))
      clearInterval(timer)
      assert.deepInclude(failed, { code: "EPATTERN", class: "mistake" })
      assert.include(failed.message, "too long")
      assert.isAbove(ticks, 10)
    }),
  )

  it.live("ends with the one who asked", () =>
    Effect.gen(function* () {
      const { root } = yield* setting({ "a.txt": `${"a".repeat(60)}!\n` })
      const endless = search({ query: "^(a+)+$", regexp: true }).pipe(within(root, { matchTimeout: "1 hour" }))
      assert.isTrue(Option.isNone(yield* Effect.timeoutOption(endless, "300 millis")))
    }),
  )
})

it.live("the tools that look are a toolkit of their own", () =>
  Effect.gen(function* () {
    assert.deepStrictEqual(Object.keys(Files.readOnly.tools), ["list_files", "read_file", "search_files"])
    for (const tool of Object.values(Files.readOnly.tools)) assert.strictEqual(Contract.of(tool).effect, "read")
    const { root } = yield* setting({ "a.txt": "x" })
    const files = yield* Files.readOnly.pipe(within(root))
    assert.deepStrictEqual(Object.keys(files.tools), ["list_files", "read_file", "search_files"])
  }),
)
