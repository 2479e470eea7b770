/**
 * A root with something beside it that is not to be reached, and the tools over it.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import * as Effect from "effect/Effect"
import { Files } from "../../src/node/index.ts"
import { call, fill, folder } from "./support.ts"

export const { list_files, patch_file, read_file, search_files, write_file } = Files.toolkit.tools

/** A root with these files beside a folder that is not to be reached. */
export const setting = (files: Readonly<Record<string, string>> = {}) =>
  Effect.map(folder, (base) => {
    const root = path.join(base, "root")
    fs.mkdirSync(root)
    fill(base, { "outside/secret.txt": "secret\n" })
    fill(root, files)
    return { base, root }
  })

export const within =
  (root: string, options: Omit<Files.Options, "root"> = {}) =>
  <A, E, R>(self: Effect.Effect<A, E, R>) =>
    Effect.provide(self, Files.layer({ root, ...options }))

export const read = (params: typeof read_file.parametersSchema.Encoded) => call(read_file, params)
export const write = (file: string, text: string) => call(write_file, { path: file, text })
export const patch = (file: string, ...edits: ReadonlyArray<readonly [string, string]>) =>
  call(patch_file, { path: file, edits: edits.map(([old, now]) => ({ old, new: now })) })
