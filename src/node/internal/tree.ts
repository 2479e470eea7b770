/**
 * What the files of a folder are at one moment: a digest of each, and the text of those that are wanted.
 */
import { createHash } from "node:crypto"
import { constants } from "node:fs"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { digest } from "../../event/Content.ts"
import type { ToolError } from "../../tool/ToolError.ts"
import { attempt, codeOf } from "./errno.ts"
import { covers } from "./glob.ts"
import { decode } from "./text.ts"
import { type Entry, walk } from "./walk.ts"

/** One file. Of a symbolic link, where it leads is its content. */
export const File = Schema.Struct({
  path: Schema.String,
  hash: Schema.String,
  lines: Schema.Int,
  /** Absent where it is no text, too large, or was not asked for. */
  text: Schema.optionalKey(Schema.String),
})

export type File = (typeof File)["Type"]

/** What to look at. */
export interface Looking {
  /** The real path of the folder. */
  readonly root: string
  readonly ignore: ReadonlyArray<string>
  /** Whether the text of a file is wanted. */
  readonly wanted: (path: string, hash: string) => boolean
  /** Texts of larger files are not kept. */
  readonly maxTextBytes: number
}

/** The files of a folder in the order of their paths. */
export const take = (looking: Looking): Effect.Effect<ReadonlyArray<File>, ToolError> =>
  Effect.gen(function* () {
    const ignored = covers(looking.ignore)
    const entries = yield* attempt(".", async (signal) => {
      const entries: Array<Entry> = []
      await walk({ root: looking.root, ignored, signal }, (entry) => entries.push(entry) > 0)
      return entries
    })
    const files = yield* Effect.forEach(
      entries,
      (entry) => attempt(entry.path, (signal) => fileAt(looking, entry, signal)),
      { concurrency: 8 },
    )
    return files.filter((file) => file !== undefined).toSorted((a, b) => (a.path < b.path ? -1 : 1))
  })

/** One digest for all of them. */
export const digestOf = (files: ReadonlyArray<File>): string =>
  digest(JSON.stringify(files.map(({ hash, path }) => [path, hash])))

const fileAt = async (looking: Looking, entry: Entry, signal: AbortSignal): Promise<File | undefined> => {
  const full = path.join(looking.root, entry.path)
  try {
    if (entry.kind === "link") return { path: entry.path, hash: `link:${await fs.readlink(full)}`, lines: 1 }
    if (entry.kind !== "file") return undefined
    const { bytes, hash, lines } = await contentOf(full, looking.maxTextBytes, signal)
    const text = bytes !== undefined && looking.wanted(entry.path, hash) ? decode(bytes) : undefined
    return { path: entry.path, hash, lines, ...(text === undefined ? {} : { text }) }
  } catch (error) {
    const code = codeOf(error) ?? ""
    // It went away, or became something else, while we looked.
    if (["ENOENT", "ELOOP", "ENOTDIR"].includes(code)) return undefined
    if (["EACCES", "EPERM"].includes(code)) return { path: entry.path, hash: "unreadable", lines: 0 }
    throw error
  }
}

const readOnly = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)

const contentOf = async (full: string, maxBytes: number, signal: AbortSignal) => {
  const handle = await fs.open(full, readOnly)
  try {
    const sha256 = createHash("sha256")
    const chunks: Array<Buffer> = []
    let size = 0
    let breaks = 0
    let endsInBreak = true
    for await (const chunk of handle.createReadStream({ autoClose: false, highWaterMark: 256 * 1024, signal })) {
      const bytes = chunk as Buffer
      sha256.update(bytes)
      size += bytes.length
      breaks += breaksIn(bytes)
      endsInBreak = bytes.at(-1) === lineBreak
      if (size <= maxBytes) chunks.push(bytes)
    }
    return {
      hash: `sha256:${sha256.digest("hex")}`,
      lines: endsInBreak ? breaks : breaks + 1,
      bytes: size <= maxBytes ? Buffer.concat(chunks) : undefined,
    }
  } finally {
    await handle.close()
  }
}

const lineBreak = 10

const breaksIn = (bytes: Buffer): number => {
  let count = 0
  for (let at = bytes.indexOf(lineBreak); at >= 0; at = bytes.indexOf(lineBreak, at + 1)) count++
  return count
}
