import * as fs from "node:fs"
import * as path from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Check } from "../../src/node/index.ts"
import { numbered, put, rulesOf, says, tree, worldOf } from "./checked.ts"
import { fill, folder } from "./support.ts"

describe("a baseline", () => {
  it.live("is every file with its text, without what is ignored", () =>
    Effect.gen(function* () {
      const { baseline, root } = yield* tree(
        {
          "b.txt": "one\ntwo",
          "a/.hidden": "",
          link: "-> b.txt",
          "node_modules/x.js": "",
          "a/node_modules/x.js": "",
          ".git/config": "",
          "coverage/x": "",
        },
        { ignore: ["coverage"] },
      )
      fs.writeFileSync(path.join(root, "c.bin"), Buffer.from([0, 10, 0]))
      assert.deepStrictEqual(baseline.ignore, ["coverage"])
      assert.deepStrictEqual(
        baseline.files.map((file) => [file.path, file.lines, file.text]),
        [
          ["a/.hidden", 0, ""],
          ["b.txt", 2, "one\ntwo"],
          ["link", 1, undefined],
        ],
      )
      const again = yield* Check.baseline(root)
      assert.deepInclude(
        again.files.find((file) => file.path === "c.bin")!,
        { lines: 2 },
      )
    }),
  )

  it.live("is written once and read from there by whoever comes later", () =>
    Effect.gen(function* () {
      const root = yield* folder
      const store = path.join(yield* folder, "deep/baseline.json")
      fill(root, { "a.txt": "before\n", ["__proto__"]: "x" })
      const first = yield* Check.baseline(root, { store })
      put(root, "a.txt", "after\n")
      const others = yield* Effect.all([Check.baseline(root, { store }), Check.baseline(root, { store })], {
        concurrency: 2,
      })
      assert.deepStrictEqual(others, [first, first])
      assert.deepStrictEqual(fs.readdirSync(path.dirname(store)), ["baseline.json"])
      const { changedFiles, changedLines } = yield* Check.since({ root, baseline: first })
      assert.deepStrictEqual([changedFiles, changedLines], [["a.txt"], 2])
    }),
  )

  it.live("stored by several at once is that of one of them for all", () =>
    Effect.gen(function* () {
      const store = path.join(yield* folder, "baseline.json")
      const taking = Effect.forEach(["a", "b", "c", "d", "e", "f"], (text) =>
        Effect.gen(function* () {
          const root = yield* folder
          put(root, "a.txt", text)
          return Check.baseline(root, { store })
        }),
      )
      const all = yield* Effect.all(yield* taking, { concurrency: "unbounded" })
      assert.strictEqual(new Set(all.map((one) => JSON.stringify(one))).size, 1)
    }),
  )

  it.live("that is stored does not need the folder any more", () =>
    Effect.gen(function* () {
      const root = yield* folder
      const store = path.join(yield* folder, "baseline.json")
      put(root, "a.txt", "x")
      const first = yield* Check.baseline(root, { store })
      fs.rmSync(root, { recursive: true })
      assert.deepStrictEqual(yield* Check.baseline(root, { store }), first)
    }),
  )

  it.live("is refused where it proves nothing", () =>
    Effect.gen(function* () {
      const root = yield* folder
      const elsewhere = yield* folder
      const reasons = (effect: Effect.Effect<unknown, Check.CheckError>) =>
        Effect.map(Effect.flip(effect), ({ message }) => message)
      fill(root, { "a.txt": "x" })
      fs.symlinkSync(root, path.join(elsewhere, "link"))
      for (const store of [
        path.join(root, "b.json"),
        path.join(root, "new/b.json"),
        path.join(elsewhere, "link/b.json"),
      ]) {
        assert.include(yield* reasons(Check.baseline(root, { store })), "lies in the folder itself")
      }
      assert.deepStrictEqual(fs.readdirSync(root), ["a.txt"])
      const store = path.join(elsewhere, "b.json")
      yield* Check.baseline(root, { store })
      assert.include(yield* reasons(Check.baseline(root, { store, ignore: ["a"] })), "made with ignore")
      fs.writeFileSync(store, '{"version":1,"files":[')
      assert.include(yield* reasons(Check.baseline(root, { store })), "written once")
      assert.include(yield* reasons(Check.baseline(path.join(root, "none"))), "none")
    }),
  )
})

describe("what became of the files", () => {
  it.live("accepts a folder that is as it was", () =>
    Effect.gen(function* () {
      const { baseline, root } = yield* tree({ "a.txt": "x\n" })
      const verifier = Check.files({ root, baseline, protectedGlobs: ["**"], maxChangedLines: 0 })
      const found = yield* says(verifier)
      assert.isTrue(found.accepted)
      assert.deepStrictEqual(found.evidence, [{ changedFiles: [], changedLines: 0 }])
      // The same text again is no change.
      put(root, "a.txt", "x\n")
      assert.isTrue((yield* says(verifier)).accepted)
    }),
  )

  it.live("names protected files that were changed, added or removed", () =>
    Effect.gen(function* () {
      const { baseline, root } = yield* tree({
        "test/a.test.ts": "1\n",
        "test/b.test.ts": "1\n",
        "test/.c": "1\n",
        "src/a.ts": "1\n",
      })
      put(root, "test/a.test.ts", "2\n")
      fs.rmSync(path.join(root, "test/b.test.ts"))
      put(root, "test/.d", "")
      put(root, "src/a.ts", "2\n")
      const found = yield* says(Check.files({ root, baseline, protectedGlobs: ["test"] }))
      assert.isFalse(found.accepted)
      assert.deepStrictEqual(rulesOf(found), {
        protected_files_unchanged: "added test/.d, changed test/a.test.ts, removed test/b.test.ts",
      })
      const changedFiles = ["src/a.ts", "test/.d", "test/a.test.ts", "test/b.test.ts"]
      assert.deepStrictEqual(found.evidence, [{ changedFiles, changedLines: 5 }])
      assert.isTrue((yield* says(Check.files({ root, baseline, protectedGlobs: ["lib/**"] }))).accepted)
    }),
  )

  it.live("sees a file become a link, and a link lead elsewhere", () =>
    Effect.gen(function* () {
      const { baseline, root } = yield* tree({ "a.txt": "x", "b.txt": "x", link: "-> a.txt" })
      fs.rmSync(path.join(root, "a.txt"))
      fs.rmSync(path.join(root, "link"))
      fill(root, { "a.txt": "-> b.txt", link: "-> b.txt" })
      const { changedFiles } = yield* Check.since({ root, baseline })
      assert.deepStrictEqual(changedFiles, ["a.txt", "link"])
    }),
  )

  it.live("counts lines removed and added, up to the last allowed one", () =>
    Effect.gen(function* () {
      const { baseline, root } = yield* tree({ "a.txt": numbered(100), "b.txt": "gone\ntoo\n" })
      put(
        root,
        "a.txt",
        numbered(100).replace("line 50\n", "changed\n").replace("line 70\n", "").replace("line 90\n", "line 90\nnew\n"),
      )
      fs.rmSync(path.join(root, "b.txt"))
      put(root, "c.txt", "no line break")
      const at = (maxChangedLines: number) => says(Check.files({ root, baseline, maxChangedLines }))
      assert.deepStrictEqual((yield* at(7)).evidence, [{ changedFiles: ["a.txt", "b.txt", "c.txt"], changedLines: 7 }])
      assert.isTrue((yield* at(7)).accepted)
      assert.deepStrictEqual(rulesOf(yield* at(6)), { at_most_changed_lines: "7 lines were changed, at most 6 may be" })
    }),
  )

  it.live("counts every line where texts are too different, too large or none", () =>
    Effect.gen(function* () {
      const { baseline, root } = yield* tree({
        "a.txt": numbered(2000),
        "large.txt": "x".repeat(1024 * 1024) + "\ny\n",
        "b.bin": "\0\n",
      })
      const of = (name: string, text: string) =>
        Effect.gen(function* () {
          const before = fs.readFileSync(path.join(root, name))
          put(root, name, text)
          const { changedLines } = yield* Check.since({ root, baseline })
          fs.writeFileSync(path.join(root, name), before)
          return changedLines
        })
      assert.strictEqual(yield* of("a.txt", numbered(2000, "other")), 4000)
      assert.strictEqual(yield* of("large.txt", "short\n"), 3)
      assert.strictEqual(yield* of("b.bin", "\0\n\0\n"), 3)
      // Where more may be changed, more is compared.
      const different = numbered(2000).replaceAll(/line \d*[0-4]\n/g, "other\n")
      put(root, "a.txt", different)
      const found = yield* says(Check.files({ root, baseline, maxChangedLines: 2500 }))
      assert.deepStrictEqual(found.evidence, [{ changedFiles: ["a.txt"], changedLines: 2000 }])
    }),
  )

  it.live("asks for what has to change", () =>
    Effect.gen(function* () {
      const { baseline, root } = yield* tree({ "src/a.ts": "1", "docs/a.md": "1" })
      const verifier = Check.files({ root, baseline, mustChange: ["src/**", "docs"] })
      put(root, "src/a.ts", "2")
      assert.deepStrictEqual(rulesOf(yield* says(verifier)), { required_files_changed: "nothing was changed in docs" })
      put(root, "docs/b.md", "1")
      assert.isTrue((yield* says(verifier)).accepted)
    }),
  )

  it.live("rejects when the folder is gone", () =>
    Effect.gen(function* () {
      const { baseline, root } = yield* tree({ "a.txt": "1" })
      fs.rmSync(root, { recursive: true })
      const found = yield* says(Check.files({ root, baseline, protectedGlobs: ["**"] }))
      assert.isFalse(found.accepted)
      assert.include(found.rules[0]!.detail, "the check itself failed")
    }),
  )

  it.live("its world moves with what is in the files, not with what is ignored", () =>
    Effect.gen(function* () {
      const { baseline, root } = yield* tree({ "a.txt": "1", "log/x": "1", "node_modules/x": "1" }, { ignore: ["log"] })
      const verifier = Check.files({ root, baseline })
      const before = yield* worldOf(verifier)
      put(root, "a.txt", "1")
      put(root, "log/x", "2")
      put(root, "node_modules/x", "2")
      assert.strictEqual(yield* worldOf(verifier), before)
      put(root, "a.txt", "2")
      assert.notStrictEqual(yield* worldOf(verifier), before)
      put(root, "a.txt", "1")
      assert.strictEqual(yield* worldOf(verifier), before)
      fs.renameSync(path.join(root, "a.txt"), path.join(root, "b.txt"))
      assert.notStrictEqual(yield* worldOf(verifier), before)
    }),
  )
})

describe("the diff", () => {
  it.live("is a unified one over all files", () =>
    Effect.gen(function* () {
      const { baseline, root } = yield* tree({ "a.txt": numbered(9), "gone.txt": "x\n", "b.bin": "\0" })
      assert.strictEqual(yield* Check.diff({ root, baseline }), "")
      put(root, "a.txt", numbered(9).replace("line 4", "changed"))
      fs.rmSync(path.join(root, "gone.txt"))
      put(root, "new.txt", "y")
      put(root, "b.bin", "\0\0")
      const diff = yield* Check.diff({ root, baseline })
      assert.strictEqual(
        diff,
        [
          "--- a/a.txt",
          "+++ b/a.txt",
          "@@ -2,7 +2,7 @@",
          " line 1",
          " line 2",
          " line 3",
          "-line 4",
          "+changed",
          " line 5",
          " line 6",
          " line 7",
          "Files a/b.bin and b/b.bin differ; one of them is no text or too large",
          "--- a/gone.txt",
          "+++ /dev/null",
          "@@ -1,1 +0,0 @@",
          "-x",
          "--- /dev/null",
          "+++ b/new.txt",
          "@@ -0,0 +1,1 @@",
          "+y",
          "\\ No newline at end of file",
          "",
        ].join("\n"),
      )
      const short = yield* Check.diff({ root, baseline, maxBytes: 20 })
      assert.strictEqual(short, `${diff.slice(0, 20)}…`)
    }),
  )

  it.live("says so where texts are too different", () =>
    Effect.gen(function* () {
      const { baseline, root } = yield* tree({ "a.txt": numbered(2000) })
      put(root, "a.txt", numbered(2000, "other"))
      assert.strictEqual(
        yield* Check.diff({ root, baseline }),
        "Files a/a.txt and b/a.txt differ in more than 1000 lines\n",
      )
    }),
  )
})
