/**
 * Folders of documents for the tests of the research example.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Corpus from "../../../examples/research/Corpus.ts"
import * as Search from "../../../examples/research/Search.ts"

/** The folder whose documents the example reads by default. */
export const undici = "node_modules/undici"

/** The index of a folder. */
export const indexOf = (folder: string) =>
  Corpus.load(folder).pipe(Effect.map(Search.make), Effect.provide(NodeServices.layer))

/** A folder that lives as long as the test, with these files in it. */
export const folderWith = Effect.fnUntraced(function* (files: Readonly<Record<string, string>>) {
  const fs = yield* FileSystem.FileSystem
  const folder = yield* fs.makeTempDirectoryScoped({ prefix: "bursar-docs-" })
  for (const [path, text] of Object.entries(files)) {
    const parent = path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : ""
    yield* fs.makeDirectory(`${folder}/${parent}`, { recursive: true })
    yield* fs.writeFileString(`${folder}/${path}`, text)
  }
  return folder
})
