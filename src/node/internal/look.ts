/**
 * Finding and reading files under a root: what `list_files`, `search_files` and `read_file` do.
 */
import * as path from "node:path"
import * as Effect from "effect/Effect"
import * as ToolError from "../../tool/ToolError.ts"
import { attempt } from "./errno.ts"
import * as Matcher from "./matcher.ts"
import { locateExisting, type Root } from "./place.ts"
import { clip, decode, headOf, linesOf, readBytes, readContent, textOf, versionOf } from "./text.ts"
import { type Entry, walk } from "./walk.ts"

/** Where to look and how much of it. */
export interface Limits {
  readonly root: Root
  readonly ignored: (relative: string) => boolean
  readonly maxEntries: number
  readonly maxHits: number
  readonly maxReadBytes: number
  readonly maxFileBytes: number
  readonly matchMillis: number
}

/** More than this is not gone over, whatever there is. */
const mostVisited = 200_000

// --- listing

export interface Listing {
  readonly paths: ReadonlyArray<string>
  readonly leftOut?: string
}

export const list = (
  limits: Limits,
  params: { readonly glob?: string; readonly depth?: number },
): Effect.Effect<Listing, ToolError.ToolError> =>
  Effect.gen(function* () {
    const { depth = Infinity, glob } = params
    const { entries, complete } = yield* entriesOf(limits, depth)
    const shown = entries.filter((entry) => entry.kind !== "folder" || entry.depth === depth)
    const wanted = glob === undefined ? shown : yield* selected(limits, glob, shown)
    const paths = wanted.slice(0, limits.maxEntries).map((one) => (one.kind === "folder" ? `${one.path}/` : one.path))
    const leftOut = [
      ...(wanted.length > paths.length ? [`${wanted.length - paths.length} more paths; use a narrower glob`] : []),
      ...(complete ? [] : [`whatever comes after the first ${mostVisited} files and folders`]),
    ].join("; ")
    return { paths, ...(leftOut === "" ? {} : { leftOut }) }
  })

const entriesOf = ({ root, ignored }: Limits, maxDepth: number) =>
  attempt(".", async (signal) => {
    const entries: Array<Entry> = []
    await walk({ root: root.path, ignored, maxDepth, signal }, (entry) => entries.push(entry) < mostVisited)
    return { entries, complete: entries.length < mostVisited }
  })

const selected = (limits: Limits, glob: string, entries: ReadonlyArray<Entry>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const matcher = yield* Matcher.make(limits.matchMillis)
      const paths = entries.map((one) => one.path)
      const found = yield* matcher.glob(glob, paths)
      return entries.filter((_, index) => found.has(index))
    }),
  )

// --- searching

export interface Hit {
  readonly path: string
  readonly line: number
  readonly text: string
}

export interface Hits {
  readonly hits: ReadonlyArray<Hit>
  readonly files: number
  readonly leftOut?: string
}

interface Search {
  readonly query: string
  readonly regexp?: boolean
  readonly ignoreCase?: boolean
  readonly glob?: string
}

/** **Units**: bytes of a line that are shown. */
const shownBytes = 300

export const search = (limits: Limits, params: Search): Effect.Effect<Hits, ToolError.ToolError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const find = yield* finder(limits, params)
      const { complete, entries } = yield* entriesOf(limits, Infinity)
      const files = entries.filter((one) => one.kind === "file")
      const wanted = params.glob === undefined ? files : yield* selected(limits, params.glob, files)
      const hits: Array<Hit> = []
      let skipped = 0
      let searched = 0
      for (const file of wanted) {
        if (hits.length > limits.maxHits) break
        const text = yield* textAt(limits, file.path)
        if (text === undefined) skipped++
        else {
          searched++
          const lines = text.split("\n")
          const found = [...(yield* find(lines))].slice(0, limits.maxHits + 1)
          hits.push(...found.map((index) => hitAt(file.path, lines, index)))
        }
      }
      const leftOut = [
        ...(hits.length > limits.maxHits ? [`what comes after the first ${limits.maxHits} hits`] : []),
        ...(skipped > 0 ? [`${skipped} files that are no text, too large or not readable`] : []),
        ...(complete ? [] : [`whatever comes after the first ${mostVisited} files and folders`]),
      ].join("; ")
      return { hits: hits.slice(0, limits.maxHits), files: searched, ...(leftOut === "" ? {} : { leftOut }) }
    }),
  )

const hitAt = (file: string, lines: ReadonlyArray<string>, index: number): Hit => ({
  path: file,
  line: index + 1,
  text: clip((lines[index] ?? "").replace(/\r$/, ""), shownBytes),
})

/** What finds the lines of a text. */
const finder = (limits: Limits, { ignoreCase = false, query, regexp = false }: Search) =>
  Effect.gen(function* () {
    if (query === "" || (!regexp && query.includes("\n"))) {
      return yield* ToolError.mistake("EINVAL", "search for a text within one line, of at least one character")
    }
    if (regexp) {
      const matcher = yield* Matcher.make(limits.matchMillis)
      const pattern = { source: query, flags: ignoreCase ? "i" : "" }
      return (lines: ReadonlyArray<string>) => matcher.regexp(pattern, lines)
    }
    const fold = (text: string) => (ignoreCase ? text.toLowerCase() : text)
    const wanted = fold(query)
    return (lines: ReadonlyArray<string>) =>
      Effect.sync(() => new Set(lines.flatMap((line, index) => (fold(line).includes(wanted) ? [index] : []))))
  })

/** The text of a file of the tree, or nothing if it is none. */
const textAt = ({ maxFileBytes, root }: Limits, file: string): Effect.Effect<string | undefined> => {
  const place = { asked: file, real: path.join(root.path, file) }
  return Effect.match(
    attempt(file, (signal) => readContent(place, maxFileBytes, signal)),
    { onFailure: () => undefined, onSuccess: ({ bytes }) => decode(bytes) },
  )
}

// --- reading

export interface Page {
  readonly path: string
  readonly version: string
  readonly text: string
  readonly firstLine: number
  readonly lastLine: number
  readonly totalLines: number
  readonly leftOut?: string
}

export const read = (
  limits: Limits,
  params: { readonly path: string; readonly firstLine?: number; readonly lastLine?: number },
): Effect.Effect<Page, ToolError.ToolError> =>
  Effect.gen(function* () {
    const place = yield* locateExisting(limits.root, params.path)
    const content = yield* readBytes(place, limits.maxFileBytes)
    const lines = linesOf(yield* textOf(place.asked, content))
    const { firstLine = 1, lastLine = Infinity } = params
    if (firstLine > Math.max(1, lines.length) || lastLine < firstLine) {
      return yield* ToolError.mistake("EINVAL", `${place.asked} has the lines 1 to ${lines.length}`)
    }
    const page = pageOf(lines.slice(firstLine - 1, lastLine), limits.maxReadBytes)
    const last = firstLine - 1 + page.lines
    const leftOut = whatIsLeftOut({ first: firstLine, last, total: lines.length }, page.cut)
    return {
      path: place.relative,
      version: versionOf(content.bytes),
      text: page.text,
      firstLine,
      lastLine: last,
      totalLines: lines.length,
      ...(leftOut === "" ? {} : { leftOut }),
    }
  })

/** As many whole lines as there is room for; of a first line that is longer than that, its head. */
const pageOf = (lines: ReadonlyArray<string>, maxBytes: number) => {
  let left = maxBytes
  let count = 0
  for (const line of lines) {
    left -= Buffer.byteLength(line)
    if (left < 0) break
    count++
  }
  const [first] = lines
  if (count > 0 || first === undefined) return { text: lines.slice(0, count).join(""), lines: count, cut: 0 }
  const whole = Buffer.from(first)
  const head = headOf(whole, maxBytes)
  return { text: head.toString(), lines: 1, cut: whole.length - head.length }
}

const whatIsLeftOut = (
  { first, last, total }: { readonly first: number; readonly last: number; readonly total: number },
  cutBytes: number,
): string =>
  [
    ...(first > 1 ? [`lines 1 to ${first - 1}`] : []),
    ...(cutBytes > 0 ? [`the last ${cutBytes} bytes of line ${last}`] : []),
    ...(last < total ? [`lines ${last + 1} to ${total}`] : []),
  ].join(", ")
