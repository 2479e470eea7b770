import { execFileSync } from "node:child_process"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Corpus from "../../../examples/research/Corpus.ts"
import { folderWith, undici } from "./documents.ts"

const GUIDE = "# Guide\n\nThe valve opens when the pressure falls.\n"

describe("Corpus.load", () => {
  it.live("reads every Markdown file of a folder inside node_modules, in the order of their paths", () =>
    Effect.gen(function* () {
      const corpus = yield* Corpus.load(undici)
      const paths = corpus.files.map((file) => file.path)
      assert.isAtLeast(paths.length, 40)
      assert.deepStrictEqual(paths, paths.toSorted())
      assert.include(paths, "docs/docs/api/RetryAgent.md")
    }).pipe(Effect.provide(NodeServices.layer)),
  )

  it.live("counts files with the same text once, whatever their line ends", () =>
    Effect.gen(function* () {
      const folder = yield* folderWith({
        "b/copy.md": GUIDE,
        "a.md": GUIDE,
        "c.markdown": GUIDE.replaceAll("\n", "\r\n"),
      })
      const corpus = yield* Corpus.load(folder)
      assert.deepStrictEqual(
        corpus.files.map((file) => file.path),
        ["a.md"],
      )
      assert.deepStrictEqual(corpus.duplicates, [
        { path: "b/copy.md", of: "a.md" },
        { path: "c.markdown", of: "a.md" },
      ])
      assert.strictEqual(Corpus.find(corpus, "./b/copy.md")?.path, "a.md")
      assert.strictEqual(Corpus.find(corpus, `${folder}/a.md`)?.path, "a.md")
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  )

  it.live("leaves out what is not Markdown text and says why", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const outside = yield* folderWith({ "secret.md": "Secret text outside the folder.\n" })
      const folder = yield* folderWith({
        "good.md": GUIDE,
        "binary.md": "abc\0def",
        "blank.md": " \n\n",
        "huge.md": "",
        "notes.txt": "Not Markdown.",
        "node_modules/x/README.md": GUIDE,
        ".git/HEAD.md": GUIDE,
        "folder.md/inner.md": "# Inner\n\nText inside a folder named like a file.\n",
      })
      yield* fs.truncate(`${folder}/huge.md`, 50_000_000)
      yield* fs.symlink(`${folder}/nowhere.md`, `${folder}/broken.md`)
      yield* fs.symlink(`${folder}/good.md`, `${folder}/again.md`)
      yield* fs.symlink(`${outside}/secret.md`, `${folder}/escape.md`)
      yield* fs.symlink(folder, `${folder}/loop`)
      execFileSync("mkfifo", [`${folder}/pipe.md`])
      const corpus = yield* Corpus.load(folder)
      assert.deepStrictEqual(
        corpus.files.map((file) => file.path),
        ["folder.md/inner.md", "good.md"],
      )
      assert.deepStrictEqual(corpus.duplicates, [{ path: "again.md", of: "good.md" }])
      assert.deepStrictEqual(
        corpus.skipped.map((skipped) => `${skipped.path} ${skipped.reason}`),
        [
          "binary.md is not text",
          "blank.md is empty",
          "broken.md is a broken link",
          "escape.md links to a file outside the folder",
          "huge.md is larger than 2000000 bytes",
          "pipe.md is not a regular file",
        ],
      )
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  )

  it.live("stops reading when it has read enough", () =>
    Effect.gen(function* () {
      const folder = yield* folderWith({ "a.md": GUIDE, "b.md": `${GUIDE}More.\n` })
      const corpus = yield* Corpus.load(folder, { maxTotalBytes: GUIDE.length })
      assert.strictEqual(corpus.files.length, 1)
      assert.strictEqual(corpus.skipped[0]?.path, "b.md")
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  )

  it.live("names the folder and the remedy when there is nothing to read", () =>
    Effect.gen(function* () {
      const folder = yield* folderWith({ "notes.txt": "No Markdown.", "empty.md": "" })
      const missing = yield* Effect.flip(Corpus.load(`${folder}/missing`))
      const file = yield* Effect.flip(Corpus.load(`${folder}/notes.txt`))
      const empty = yield* Effect.flip(Corpus.load(folder))
      assert.deepStrictEqual([missing._tag, file._tag, empty._tag], ["DocsNotFound", "DocsNotFolder", "DocsEmpty"])
      for (const error of [missing, file, empty]) {
        assert.include(error.message, folder)
        assert.include(error.message, "Give --docs")
      }
      assert.include(empty.message, "1 could not be used")
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  )
})
