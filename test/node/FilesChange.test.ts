import * as fs from "node:fs"
import * as path from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { Contract } from "../../src/index.ts"
import { digest } from "../../src/event/Content.ts"
import { patch, patch_file, read, setting, within, write, write_file } from "./rooted.ts"
import { call, codeOf, contents, failure, saysOf } from "./support.ts"

describe("writing", () => {
  it.live("makes folders, says what changed, and keeps the mode of a file", () =>
    Effect.gen(function* () {
      const { root } = yield* setting({ "run.sh": "echo 1\n" })
      fs.chmodSync(path.join(root, "run.sh"), 0o777)
      yield* Effect.gen(function* () {
        const first = yield* write("a/b/c.txt", "text")
        assert.deepStrictEqual(first, { path: "a/b/c.txt", version: digest("text"), changed: true })
        const second = yield* write("a/b/c.txt", "text")
        assert.deepStrictEqual(second, { ...first, changed: false })
        const contract = Contract.of(write_file)
        assert.deepStrictEqual(saysOf(contract, {}, first), {
          resources: [{ path: "a/b/c.txt", version: first.version }],
          stateChanged: true,
        })
        assert.isFalse(saysOf(contract, {}, second).stateChanged)
        assert.deepInclude(contract, { effect: "write", idempotency: "natural" })
        yield* write("run.sh", "echo 2\n")
      }).pipe(within(root))
      assert.strictEqual(fs.statSync(path.join(root, "run.sh")).mode & 0o777, 0o777)
      assert.deepStrictEqual(contents(root), { "a/b/c.txt": "text", "run.sh": "echo 2\n" })
    }),
  )

  it.live("takes away the draft of a process that was killed while it wrote, and no other", () =>
    Effect.gen(function* () {
      const id = "0b5f0f0e-1f6d-4d60-9c38-000000000001"
      const [gone, alive] = [`.4194999-${id}.draft`, `.${process.pid}-${id}.draft`]
      const { root } = yield* setting({ "a.txt": "old", [gone]: "half", [alive]: "half", ".notes.draft": "mine" })
      yield* write("a.txt", "new").pipe(within(root))
      assert.deepStrictEqual(contents(root), { "a.txt": "new", [alive]: "half", ".notes.draft": "mine" })
    }),
  )

  it.live("refuses folders, files in the way of folders, and texts that are too large", () =>
    Effect.gen(function* () {
      const { root } = yield* setting({ "a/b.txt": "x" })
      const codes = yield* Effect.forEach([".", "a", "a/", "new/", "a/b.txt/c", "a/./.."], (file) =>
        codeOf(write(file, "y")),
      ).pipe(within(root))
      assert.deepStrictEqual(codes, [
        "EISDIR mistake",
        "EISDIR mistake",
        "EISDIR mistake",
        "EISDIR mistake",
        "ENOTDIR mistake",
        "EISDIR mistake",
      ])
      assert.strictEqual(
        yield* codeOf(write("c.txt", "123456789").pipe(within(root, { maxFileBytes: 8 }))),
        "EFBIG mistake",
      )
      assert.deepStrictEqual(contents(root), { "a/b.txt": "x" })
    }),
  )

  it.live("does not write what is protected, under whatever name", () =>
    Effect.gen(function* () {
      const { root } = yield* setting({
        "test/a.test.ts": "x",
        "test/.hidden": "x",
        ".git/config": "x",
        "src/a.ts": "x",
        alias: "-> test",
      })
      const before = contents(root)
      const codes = yield* Effect.forEach(
        [
          "test/a.test.ts",
          "test/new/b.ts",
          "test/.hidden",
          "alias/a.test.ts",
          "src/../test/x",
          ".git/config",
          "sub/.git/hooks/pre-commit",
          "lib/.env",
        ],
        (file) => Effect.all([codeOf(write(file, "y")), codeOf(patch(file, ["x", "y"]))]),
      ).pipe(within(root, { protect: ["test", "**/.env"] }))
      assert.deepStrictEqual(new Set(codes.flat()), new Set(["EPERM permission"]))
      assert.deepStrictEqual(contents(root), before)
      assert.strictEqual(yield* codeOf(write("src/a.ts", "y").pipe(within(root, { protect: ["test"] }))), "ok")
    }),
  )
})

describe("patching", () => {
  it.live("replaces each text where it stands, whatever their order", () =>
    Effect.gen(function* () {
      const { root } = yield* setting({ "a.txt": "one two three\n" })
      const patched = yield* patch("a.txt", ["three", "3"], ["one", "$& one"]).pipe(within(root))
      assert.deepStrictEqual(patched, {
        path: "a.txt",
        version: digest("$& one two 3\n"),
        changed: true,
      })
      assert.deepStrictEqual(contents(root), { "a.txt": "$& one two 3\n" })
    }),
  )

  const conflicts: ReadonlyArray<readonly [string, string, ReadonlyArray<readonly [string, string]>]> = [
    [
      "ECONFLICT mistake",
      "a text that is missing",
      [
        ["one", "1"],
        ["four", "4"],
      ],
    ],
    [
      "ECONFLICT mistake",
      "a text that occurs twice",
      [
        ["two", "2"],
        ["e", "E"],
      ],
    ],
    ["ECONFLICT mistake", "a text that overlaps itself", [["aa", "b"]]],
    [
      "ECONFLICT mistake",
      "a text that only an edit before would make",
      [
        ["one", "new"],
        ["new", "old"],
      ],
    ],
    [
      "EINVAL mistake",
      "texts that overlap",
      [
        ["one two", "1"],
        ["two three", "2"],
      ],
    ],
    ["EINVAL mistake", "an empty text", [["", "x"]]],
  ]
  it.live.each(conflicts)("%s and an untouched file: %s", ([code, , edits]) =>
    Effect.gen(function* () {
      const { root } = yield* setting({ "a.txt": "one two three aaa\n" })
      const failed = yield* failure(patch("a.txt", ...edits).pipe(within(root)))
      assert.strictEqual(`${failed.code} ${failed.class}`, code)
      if (failed.code === "ECONFLICT") assert.include(failed.message, "read the file again")
      assert.deepStrictEqual(contents(root), { "a.txt": "one two three aaa\n" })
      assert.deepStrictEqual(fs.readdirSync(root), ["a.txt"])
    }),
  )

  it.live("knows the version it was made for", () =>
    Effect.gen(function* () {
      const { root } = yield* setting({ "a.txt": "one\n" })
      const edits = [{ old: "one", new: "one\none more" }]
      yield* Effect.gen(function* () {
        const { version } = yield* read({ path: "a.txt" })
        const first = yield* call(patch_file, { path: "a.txt", edits, version })
        assert.isTrue(first.changed)
        assert.strictEqual(yield* codeOf(call(patch_file, { path: "a.txt", edits, version })), "ECONFLICT mistake")
      }).pipe(within(root))
      assert.deepStrictEqual(contents(root), { "a.txt": "one\none more\n" })
    }),
  )

  it.live("fails for what is missing or no text", () =>
    Effect.gen(function* () {
      const { root } = yield* setting({ "a/b.txt": "x" })
      fs.writeFileSync(path.join(root, "c.bin"), Buffer.from([0]))
      const codes = yield* Effect.forEach(["none", "a", "c.bin"], (file) => codeOf(patch(file, ["x", "y"]))).pipe(
        within(root),
      )
      assert.deepStrictEqual(codes, ["ENOENT mistake", "EISDIR mistake", "EBINARY mistake"])
    }),
  )

  it.live("patches of one file at one time are all in it", () =>
    Effect.gen(function* () {
      const names = Array.from({ length: 20 }, (_, index) => `<${index}>`)
      const { root } = yield* setting({ "a.txt": names.join("\n") })
      yield* Effect.forEach(names, (name) => patch("a.txt", [name, `done ${name}`]), { concurrency: "unbounded" }).pipe(
        within(root),
      )
      assert.deepStrictEqual(contents(root), { "a.txt": names.map((name) => `done ${name}`).join("\n") })
    }),
  )

  it.live("interrupted at any moment, a write is there or not, and leaves nothing behind", () =>
    Effect.gen(function* () {
      const { root } = yield* setting({ "a.txt": "old" })
      const turn = Effect.promise(() => new Promise((done) => setImmediate(done)))
      for (let turns = 1; turns < 20_000; turns = Math.ceil(turns * 1.3)) {
        fs.writeFileSync(path.join(root, "a.txt"), "old")
        const fiber = yield* Effect.forkChild(write("a.txt", "new").pipe(within(root)), { startImmediately: true })
        yield* Effect.repeat(turn, { times: turns })
        yield* Fiber.interrupt(fiber)
        const text = fs.readFileSync(path.join(root, "a.txt"), "utf8")
        assert.include(["old", "new"], text)
        // What still went on behind its back would show by now.
        yield* Effect.repeat(turn, { times: 300 })
        assert.strictEqual(fs.readFileSync(path.join(root, "a.txt"), "utf8"), text)
        assert.deepStrictEqual(fs.readdirSync(root), ["a.txt"])
      }
    }),
  )
})

describe("what became of a patch", () => {
  const { reconcile } = Contract.of(patch_file)
  const ask = (params: typeof patch_file.parametersSchema.Type) => reconcile!(params as never, "key")
  const edits = [
    { old: "one", new: "1" },
    { old: "two", new: "two\nand a half" },
    { old: " (draft)", new: "" },
  ]
  const before = "one\ntwo\nthree (draft)\n"
  const after = "1\ntwo\nand a half\nthree\n"

  const readings: ReadonlyArray<readonly [string, string, string]> = [
    ["is in the file", after, "Happened"],
    ["could be applied now", before, "DidNotHappen"],
    ["is in it by half", "1\ntwo\nthree (draft)\n", "Unknown"],
    ["fits to nothing", "something else\n", "Unknown"],
    ["is in a file that went on", `${after}four\n`, "Happened"],
  ]
  it.live.each(readings)("it %s", ([, text, expected]) =>
    Effect.gen(function* () {
      const { root } = yield* setting({ "a.txt": text })
      const found = yield* ask({ path: "a.txt", edits }).pipe(within(root))
      assert.strictEqual(found._tag, expected)
      if (found._tag === "Happened") {
        const result = { path: "a.txt", version: digest(text), changed: true }
        assert.deepStrictEqual(found.result, result)
      }
    }),
  )

  it.live("by the version it was made for, even if the file reads as if it were there", () =>
    Effect.gen(function* () {
      const text = "two\nand a half\n"
      const { root } = yield* setting({ "a.txt": text })
      const params = { path: "a.txt", edits: [{ old: "two", new: "two\nand a half" }] }
      const tagOf = (version: string) => Effect.map(ask({ ...params, version }), ({ _tag }) => _tag)
      assert.strictEqual(yield* tagOf(digest(text)).pipe(within(root)), "DidNotHappen")
      assert.strictEqual(yield* tagOf(digest("two\n")).pipe(within(root)), "Happened")
    }),
  )

  it.live("nobody knows where no folder is given", () =>
    Effect.map(ask({ path: "a.txt", edits }), ({ _tag }) => assert.strictEqual(_tag, "Unknown")),
  )
})
