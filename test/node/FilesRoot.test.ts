import * as fs from "node:fs"
import * as path from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import { Files } from "../../src/node/index.ts"
import { list_files, patch, read, search_files, setting, within, write } from "./rooted.ts"
import { call, codeOf, contents, failure } from "./support.ts"

describe("nothing leads out of the root", () => {
  const links = {
    "in/a.txt": "inside\n",
    inner: "-> in",
    self: "-> .",
    file: "-> ../outside/secret.txt",
    folder: "-> ../outside",
    "in/up": "-> ../..",
    dangling: "-> ../outside/new.txt",
    danglingFolder: "-> ../nowhere",
    danglingInside: "-> in/none.txt",
    absolute: "-> /etc",
    loop: "-> loop",
    chain: "-> inner/up/outside",
  }
  const out = [
    "../outside/secret.txt",
    "in/../../outside/secret.txt",
    "..",
    "/etc/passwd",
    "\\\\host\\share",
    "C:\\Windows",
    "file",
    "folder/secret.txt",
    "folder/new.txt",
    "folder/new/deep.txt",
    "in/up/outside/secret.txt",
    "dangling",
    "danglingFolder/x.txt",
    "danglingInside",
    "absolute/passwd",
    "loop",
    "loop/x",
    "chain/secret.txt",
    "self/self/folder/secret.txt",
  ]

  it.live.each(out)("%s", (file) =>
    Effect.gen(function* () {
      const { base, root } = yield* setting(links)
      const before = contents(base)
      yield* Effect.gen(function* () {
        assert.strictEqual(yield* codeOf(read({ path: file })), "EPERM permission")
        assert.strictEqual(yield* codeOf(write(file, "gone")), "EPERM permission")
        assert.strictEqual(yield* codeOf(patch(file, ["secret", "gone"])), "EPERM permission")
      }).pipe(within(root))
      assert.deepStrictEqual(contents(base), before)
    }),
  )

  it.live("links that stay inside are followed, and results name the real path", () =>
    Effect.gen(function* () {
      const { root } = yield* setting(links)
      yield* Effect.gen(function* () {
        assert.deepInclude(yield* read({ path: "inner/a.txt" }), { path: "in/a.txt", text: "inside\n" })
        assert.deepInclude(yield* read({ path: "self/self/in/a.txt" }), { path: "in/a.txt" })
        assert.deepInclude(yield* write("inner/b.txt", "new\n"), { path: "in/b.txt" })
        assert.deepInclude(yield* patch("inner/a.txt", ["inside", "changed"]), { path: "in/a.txt", changed: true })
      }).pipe(within(root))
      assert.strictEqual(fs.readFileSync(path.join(root, "in/a.txt"), "utf8"), "changed\n")
      assert.isTrue(fs.lstatSync(path.join(root, "inner")).isSymbolicLink())
    }),
  )

  it.live("lists and searches do not follow links", () =>
    Effect.gen(function* () {
      const { root } = yield* setting(links)
      const hits = yield* call(search_files, { query: "secret" }).pipe(within(root))
      assert.deepStrictEqual(hits, { hits: [], files: 1 })
      const { paths } = yield* call(list_files, {}).pipe(within(root))
      assert.deepStrictEqual(
        paths.toSorted(),
        ["in/a.txt", ...Object.keys(links).filter((name) => name !== "in/a.txt")].toSorted(),
      )
      const outside = yield* call(list_files, { glob: "../**" }).pipe(within(root))
      assert.deepStrictEqual(outside.paths, [])
    }),
  )

  it.live("a root may itself be a link", () =>
    Effect.gen(function* () {
      const { base, root } = yield* setting({ "a.txt": "x", out: "-> ../outside/secret.txt" })
      fs.symlinkSync("root", path.join(base, "alias"))
      yield* Effect.gen(function* () {
        assert.deepInclude(yield* read({ path: "a.txt" }), { path: "a.txt" })
        assert.deepInclude(yield* write("b/c.txt", "y"), { path: "b/c.txt" })
        assert.strictEqual(yield* codeOf(read({ path: "out" })), "EPERM permission")
      }).pipe(within(path.join(base, "alias")))
      assert.strictEqual(fs.readFileSync(path.join(root, "b/c.txt"), "utf8"), "y")
    }),
  )

  it.live("a root that is not there is a failure before anything runs", () =>
    Effect.gen(function* () {
      const { root } = yield* setting({ file: "x" })
      assert.strictEqual(
        yield* codeOf(Effect.asVoid(Files.toolkit).pipe(within(path.join(root, "none")))),
        "ENOROOT fatal",
      )
      assert.strictEqual(
        yield* codeOf(Effect.asVoid(Files.toolkit).pipe(within(path.join(root, "file")))),
        "ENOROOT fatal",
      )
    }),
  )

  const Part = Schema.Literals(["..", ".", "", "in", "up", "inner", "folder", "outside", "self", "new", "secret.txt"])
  it.live.prop("whatever path is written: what lies outside stays as it was", [Schema.Array(Part)], ([parts]) =>
    Effect.scoped(
      Effect.gen(function* () {
        const { base, root } = yield* setting(links)
        const outside = contents(path.join(base, "outside"))
        const file = parts.join("/")
        const written = yield* Effect.exit(write(file, "written").pipe(within(root)))
        assert.deepStrictEqual(contents(path.join(base, "outside")), outside)
        assert.deepStrictEqual(fs.readdirSync(base).toSorted(), ["outside", "root"])
        if (Exit.isSuccess(written)) {
          assert.strictEqual(fs.readFileSync(path.join(root, written.value.path), "utf8"), "written")
        } else {
          assert.deepInclude(["EPERM", "EISDIR", "EINVAL", "ENOTDIR"], (yield* failure(written)).code, file)
        }
      }),
    ),
  )
})
