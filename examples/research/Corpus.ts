/**
 * Reads a folder of Markdown files into memory, once, before any agent runs.
 *
 * Nothing outside the folder is followed and nothing that is not Markdown text is read; what was left out is recorded
 * with the reason. Files with the same text count once. The result is plain data: every later module is pure.
 */
import { createHash } from "node:crypto"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as Schema from "effect/Schema"

export interface SourceFile {
  /** Relative to the folder, with forward slashes. */
  readonly path: string
  /** Without their line ends; line 1 stands at 0. */
  readonly lines: ReadonlyArray<string>
}

export interface Corpus {
  /** The folder as it was asked for. */
  readonly root: string
  /** Sorted by path. */
  readonly files: ReadonlyArray<SourceFile>
  readonly skipped: ReadonlyArray<{ readonly path: string; readonly reason: string }>
  /** Files left out because `of` holds the same text. */
  readonly duplicates: ReadonlyArray<{ readonly path: string; readonly of: string }>
}

export interface LoadOptions {
  /** The largest file that is read. Default: 2 MB. */
  readonly maxFileBytes?: number
  /** How much is read altogether. Default: 64 MB. */
  readonly maxTotalBytes?: number
}

/** There is nothing at the path the documents were to come from. */
export class DocsNotFound extends Schema.TaggedError<DocsNotFound>()("DocsNotFound", { folder: Schema.String }) {
  override get message() {
    return `The folder "${this.folder}" does not exist. Give --docs the path of a folder that holds Markdown files.`
  }
}

/** The path leads to something else than a folder. */
export class DocsNotFolder extends Schema.TaggedError<DocsNotFolder>()("DocsNotFolder", { folder: Schema.String }) {
  override get message() {
    return `"${this.folder}" is not a folder. Give --docs the folder that holds the file, not the file itself.`
  }
}

/** The folder is there, but the operating system does not let it be read. */
export class DocsUnreadable extends Schema.TaggedError<DocsUnreadable>()("DocsUnreadable", {
  folder: Schema.String,
  reason: Schema.String,
}) {
  override get message() {
    return `The folder "${this.folder}" cannot be read (${this.reason}). Check its permissions, or give --docs another.`
  }
}

/** The folder holds no Markdown file with text in it. */
export class DocsEmpty extends Schema.TaggedError<DocsEmpty>()("DocsEmpty", {
  folder: Schema.String,
  skippedFiles: Schema.Natural,
}) {
  override get message() {
    const skipped = this.skippedFiles === 0 ? "" : ` (${this.skippedFiles} could not be used)`
    return `The folder "${this.folder}" holds no usable .md or .markdown file${skipped}. Give --docs a folder that does.`
  }
}

export type DocsError = DocsNotFound | DocsNotFolder | DocsUnreadable | DocsEmpty

const MARKDOWN = /\.(?:md|markdown)$/i
const SKIPPED_FOLDERS = new Set(["node_modules", ".git"])

// UTF-8 orders by code point as its bytes do; what matters is that every machine orders alike.
const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

// A line ends at a line feed, as `grep -n` counts; a carriage return before it belongs to the end.
const linesOf = (text: string): ReadonlyArray<string> => {
  const lines = text.split("\n").map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line))
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines
}

interface Candidate {
  readonly path: string
  readonly isLink: boolean
}

interface Listing {
  readonly found: Array<Candidate>
  readonly skipped: Array<{ readonly path: string; readonly reason: string }>
}

const reasonOf = (error: PlatformError): string => `cannot be read: ${error.reason._tag}`

const list = Effect.fnUntraced(function* (root: string) {
  const fs = yield* FileSystem.FileSystem
  const listing: Listing = { found: [], skipped: [] }
  const open = [""]
  for (let folder = open.pop(); folder !== undefined; folder = open.pop()) {
    const entries = yield* fs.readDirectoryEntries(folder === "" ? root : `${root}/${folder}`).pipe(
      Effect.catchIf(
        () => folder !== "",
        (error) => {
          listing.skipped.push({ path: folder, reason: reasonOf(error) })
          return Effect.succeed([])
        },
      ),
    )
    for (const { name, type } of entries) {
      const path = folder === "" ? name : `${folder}/${name}`
      if (type === "Directory" && !SKIPPED_FOLDERS.has(name)) open.push(path)
      else if (type !== "Directory" && MARKDOWN.test(name)) {
        listing.found.push({ path, isLink: type === "SymbolicLink" || type === "Unknown" })
      }
    }
  }
  // A file comes before the links to it, so that it is cited by its own name.
  listing.found.sort((a, b) => Number(a.isLink) - Number(b.isLink) || byText(a.path, b.path))
  return listing
})

type Read = { readonly text: string; readonly bytes: number } | { readonly reason: string }

// Asks for the size before reading, so that a huge file is never held in memory.
const read = Effect.fnUntraced(
  function* (root: string, candidate: Candidate, limits: Required<LoadOptions>, readBytes: number) {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const absolute = `${root}/${candidate.path}`
    if (candidate.isLink) {
      const inside = path.relative(root, yield* fs.realPath(absolute))
      if (inside.startsWith("..") || path.isAbsolute(inside)) return { reason: "links to a file outside the folder" }
      if (inside.split(path.sep).some((part) => SKIPPED_FOLDERS.has(part)))
        return { reason: "links into a skipped folder" }
    }
    const { size, type } = yield* fs.stat(absolute)
    const bytes = Number(size)
    if (type !== "File") return { reason: "is not a regular file" }
    if (bytes > limits.maxFileBytes) return { reason: `is larger than ${limits.maxFileBytes} bytes` }
    if (readBytes + bytes > limits.maxTotalBytes) return { reason: `${limits.maxTotalBytes} bytes are already read` }
    const text = yield* fs.readFileString(absolute)
    if (text.includes("\0")) return { reason: "is not text" }
    return text.trim() === "" ? { reason: "is empty" } : { text, bytes }
  },
  (effect, _, candidate) =>
    Effect.catchTag(effect, "PlatformError", (error) =>
      Effect.succeed<Read>({
        reason: candidate.isLink && error.reason._tag === "NotFound" ? "is a broken link" : reasonOf(error),
      }),
    ),
)

const rootOf = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  const root = yield* fs.realPath(folder)
  const { type } = yield* fs.stat(root)
  return type === "Directory" ? root : yield* new DocsNotFolder({ folder })
})

// A folder that cannot be used fails the load; with its name and the remedy.
const naming = (folder: string) =>
  Effect.mapError((error: PlatformError | DocsNotFolder): DocsError => {
    if (error._tag === "DocsNotFolder") return error
    const reason = error.reason._tag
    return reason === "NotFound" ? new DocsNotFound({ folder }) : new DocsUnreadable({ folder, reason })
  })

/**
 * Reads every Markdown file below `folder`.
 *
 * **Fails with** `DocsNotFound`, `DocsNotFolder` or `DocsUnreadable` when the folder itself cannot be used, and with
 * `DocsEmpty` when no file in it can. A single bad file never fails the load; it is listed in `skipped`.
 */
export const load = Effect.fnUntraced(function* (folder: string, options: LoadOptions = {}) {
  const limits = { maxFileBytes: 2_000_000, maxTotalBytes: 64_000_000, ...options }
  const root = yield* rootOf(folder).pipe(naming(folder))
  const { found, skipped } = yield* list(root).pipe(naming(folder))
  const files: Array<SourceFile> = []
  const duplicates: Array<{ readonly path: string; readonly of: string }> = []
  const seen = new Map<string, string>()
  let readBytes = 0
  for (const candidate of found) {
    const { path } = candidate
    const result: Read = yield* read(root, candidate, limits, readBytes)
    if ("reason" in result) {
      skipped.push({ path, reason: result.reason })
      continue
    }
    readBytes += result.bytes
    const lines = linesOf(result.text)
    const hash = createHash("sha256").update(lines.join("\n")).digest("hex")
    const first = seen.get(hash)
    if (first !== undefined) duplicates.push({ path, of: first })
    else {
      seen.set(hash, path)
      files.push({ path, lines })
    }
  }
  if (files.length === 0) return yield* new DocsEmpty({ folder, skippedFiles: skipped.length })
  for (const each of [files, skipped, duplicates]) each.sort((a, b) => byText(a.path, b.path))
  return { root: folder, files, skipped, duplicates } satisfies Corpus
})

/**
 * The file cited as `path`. A duplicate is found under either of its names, and a leading `./` or the folder itself
 * may be written before it, as models like to do.
 */
export const find = (corpus: Corpus, path: string): SourceFile | undefined => {
  const root = corpus.root.replace(/^\.\//, "").replace(/\/*$/, "/")
  const bare = path.trim().replaceAll("\\", "/").replace(/^\.\//, "")
  const names = bare.startsWith(root) ? [bare, bare.slice(root.length)] : [bare]
  const originals = names.map((name) => corpus.duplicates.find((duplicate) => duplicate.path === name)?.of ?? name)
  return corpus.files.find((file) => originals.includes(file.path))
}

/** The lines `from` to `to` of a file, from 1, both included, each with its number before it. */
export const excerpt = (file: SourceFile, lines: { readonly from: number; readonly to: number }): string => {
  const from = Math.max(1, lines.from)
  return file.lines
    .slice(from - 1, Math.max(from, lines.to))
    .map((line, at) => `${from + at}: ${line}`)
    .join("\n")
}
