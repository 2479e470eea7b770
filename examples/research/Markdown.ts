/**
 * Reads the lines of a Markdown file into blocks of prose: paragraphs, list items and table rows.
 *
 * Leaves sentences to {@link ./Passages.ts}. Its law: the text of every {@link Segment} is a verbatim part of exactly
 * one line. Markers are left out by choosing a smaller part, never by rewriting. Code, front matter, HTML, comments,
 * link definitions and headings give no block; headings become the path above the blocks that follow.
 */

/** A verbatim part of one line. */
export interface Segment {
  /** From 1. */
  readonly line: number
  readonly text: string
}

export interface Block {
  readonly kind: "paragraph" | "item" | "row"
  readonly segments: ReadonlyArray<Segment>
  /** Titles from the outermost to the nearest. */
  readonly headings: ReadonlyArray<string>
  /** The titles of the columns, for a row. */
  readonly columns: ReadonlyArray<string>
}

// Private characters that stand for the code spans of a text while its marks are taken off.
const CODE_SPAN = /(`+)(?!`)(.*?[^`])\1(?!`)/g
const HELD_SPAN = /\uE000(\d+)\uE001/g

/** The text without its Markdown marks: what a reader of the rendered page would see. */
export const plain = (text: string): string => {
  const code: Array<string> = []
  const held = text.replace(CODE_SPAN, (_, __, span: string) => `\uE000${code.push(span.trim()) - 1}\uE001`)
  return withoutMarks(held)
    .replace(HELD_SPAN, (_, at: string) => code[Number(at)] ?? "")
    .replace(/\s+/g, " ")
    .trim()
}

const withoutMarks = (text: string): string =>
  text
    .replace(/<!--.*?-->/g, " ")
    .replace(/!\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\])?/g, " ")
    .replace(/\[((?:[^[\]]|\[[^\]]*\])*)\](?:\((?:[^()]|\([^()]*\))*\)|\[[^\]]*\])/g, "$1")
    .replace(/<(https?:[^>\s]+)>/g, "$1")
    .replace(/(?<!\w)<\/?[a-zA-Z][^<>]*>|<\/[a-z]\w*>/g, " ")
    .replace(/\{#[\w-]+\}/g, " ")
    .replace(/(^|[\s(["'“])(\*{1,3}|_{1,3})(?=\S)/g, "$1")
    .replace(/(\S)(\*{1,3}|_{1,3})(?=$|[\s.,;:!?)\]"'”…—-])/g, "$1")
    .replace(/\[([^\]]+)\]/g, "$1")
    .replace(/\\([!-/:-@[-`{-~])/g, "$1")
    .replace(/&nbsp;/g, " ")
    .replace(/&lt;/g, "<")
    .replace(/&gt;/g, ">")
    .replace(/&amp;/g, "&")

const FENCE = /^\s*(?:(?:[-*+]|\d+[.)])\s+)?(`{3,}|~{3,})([^`]*)$/
const HEADING = /^ {0,3}(#{1,6})(?:\s+(.*?))?(?:\s+#+)?\s*$/
const UNDERLINE = /^ {0,3}(=+|-+)\s*$/
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/
const DEFINITION = /^ {0,3}\[[^\]^][^\]]*\]:\s*\S/
const HTML_BLOCK =
  /^\s*<\/?(?:address|article|aside|blockquote|body|center|details|dialog|div|dl|dd|dt|fieldset|figure|figcaption|footer|form|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|meta|nav|ol|p|picture|pre|script|section|source|style|summary|svg|table|tbody|td|tfoot|th|thead|title|tr|ul|video)(?=[\s/>]|$)/i
const ITEM = /^(\s*)(?:[-*+•]|\d{1,9}[.)])(?:\s+\[[ xX]\])?\s+(?=\S)/
const COLUMNS = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/
const QUOTE_MARK = /^(?:\s{0,3}>\s?)+/
const NOTHING = /^\s*(?:\[![A-Za-z]+\]|:{3,}.*|\{%.*%\}|\\|<\/?[A-Z][\w.]*[^>]*>)\s*$/
const TAG_ONLY = /^\s*(?:<\/?[a-zA-Z][^<>]*>\s*)+$/

const cells = (row: string): ReadonlyArray<string> =>
  row
    .trim()
    .replace(/^\||\|$/g, "")
    .split(/(?<!\\)\|/)
    .map(plain)

/** The titles of a table's columns beside the cells of one of its rows, as a sentence would put them. */
export const rowText = (row: string, columns: ReadonlyArray<string>): string =>
  cells(row)
    .map((cell, at) => (at === 0 || !columns[at] || cell === "" ? cell : `${columns[at]}: ${cell}`))
    .filter((cell) => cell !== "" && cell !== "-")
    .join("; ")

const afterFrontMatter = (lines: ReadonlyArray<string>): number => {
  const fence = lines[0]?.replace(/^\uFEFF/, "").trimEnd()
  if (fence !== "---" && fence !== "+++") return 0
  const end = lines.findIndex((line, at) => at > 0 && (line.trimEnd() === fence || line.trimEnd() === "..."))
  const isData = lines.slice(1, Math.max(1, end)).every((line) => /^\s*(?:$|#|-|[\w"'.-]+\s*[:=]|\s)/.test(line))
  return end > 0 && isData ? end + 1 : 0
}

// The one mutable thing here: where the reader stands in the file.
interface Reader {
  readonly blocks: Array<Block>
  readonly titles: Array<{ readonly level: number; readonly title: string }>
  open: { readonly kind: "paragraph" | "item"; readonly segments: Array<Segment> } | undefined
  fence: string | undefined
  skipTo: "comment" | "blank" | undefined
  columns: ReadonlyArray<string> | undefined
  inList: boolean
  afterBlank: boolean
}

const headingsOf = (reader: Reader): ReadonlyArray<string> => reader.titles.map(({ title }) => title)

const flush = (reader: Reader): void => {
  if (reader.open !== undefined && reader.open.segments.length > 0) {
    reader.blocks.push({ ...reader.open, headings: headingsOf(reader), columns: [] })
  }
  reader.open = undefined
}

const enter = (reader: Reader, level: number, title: string): void => {
  flush(reader)
  while ((reader.titles.at(-1)?.level ?? 0) >= level) reader.titles.pop()
  if (title !== "") reader.titles.push({ level, title })
  reader.inList = false
}

// Lines inside something that gives no prose: code, a comment, HTML. Says whether the line was such a line.
const readInside = (reader: Reader, text: string): boolean => {
  if (reader.fence !== undefined) {
    const bare = text.trim()
    if (bare.startsWith(reader.fence) && bare.replaceAll(reader.fence[0]!, "") === "") reader.fence = undefined
    return true
  }
  if (reader.skipTo === "comment") {
    if (text.includes("-->")) reader.skipTo = undefined
    return true
  }
  if (reader.skipTo === "blank" && text.trim() !== "") return true
  reader.skipTo = undefined
  return false
}

// Lines that begin something that gives no prose.
const readMark = (reader: Reader, text: string): boolean => {
  const fence = FENCE.exec(text)
  if (fence !== null) {
    flush(reader)
    reader.fence = fence[1]!
    return true
  }
  if (text.trimStart().startsWith("<!--")) {
    flush(reader)
    if (!text.includes("-->")) reader.skipTo = "comment"
    return true
  }
  if (HTML_BLOCK.test(text)) {
    flush(reader)
    reader.skipTo = "blank"
    return true
  }
  if (TAG_ONLY.test(text) || NOTHING.test(text) || DEFINITION.test(text)) {
    flush(reader)
    return true
  }
  return false
}

const readHeading = (reader: Reader, text: string): boolean => {
  const heading = HEADING.exec(text)
  if (heading !== null) {
    enter(reader, heading[1]!.length, plain(heading[2] ?? ""))
    return true
  }
  const underline = UNDERLINE.exec(text)
  if (underline !== null && reader.open?.kind === "paragraph" && !reader.afterBlank) {
    const title = plain(reader.open.segments.map((segment) => segment.text).join(" "))
    reader.open = undefined
    enter(reader, underline[1]!.startsWith("=") ? 1 : 2, title)
    return true
  }
  if (RULE.test(text)) {
    flush(reader)
    return true
  }
  return false
}

// A table begins where the next line is made of dashes and pipes only.
const readRow = (reader: Reader, text: string, next: string | undefined, line: number): boolean => {
  if (reader.columns === undefined) {
    const begins = text.includes("|") && next?.includes("-") === true && next.includes("|") && COLUMNS.test(next)
    if (!begins) return false
    flush(reader)
    reader.columns = cells(text)
    return true
  }
  if (!text.includes("|")) {
    reader.columns = undefined
    return false
  }
  const row = text
    .trim()
    .replace(/^\|\s*/, "")
    .replace(/\s*\|$/, "")
  if (row !== "" && !COLUMNS.test(text)) {
    const segments = [{ line, text: row }]
    reader.blocks.push({ kind: "row", segments, headings: headingsOf(reader), columns: reader.columns })
  }
  return true
}

const readProse = (reader: Reader, text: string, line: number): void => {
  const marker = ITEM.exec(text)
  const isNewItem = marker !== null && (reader.open === undefined || reader.open.kind === "item" || marker[1] === "")
  if (marker !== null && isNewItem && (reader.inList || marker[1]!.length < 4)) {
    flush(reader)
    reader.inList = true
    reader.open = { kind: "item", segments: [{ line, text: text.slice(marker[0].length).trim() }] }
    return
  }
  const indented = /^(?: {2,}|\t)/.test(text)
  if (reader.open === undefined) {
    if (!indented) reader.inList = false
    if (/^(?: {4,}|\t)/.test(text) && !reader.inList) return // indented code
    reader.open = { kind: reader.inList ? "item" : "paragraph", segments: [] }
  }
  reader.open.segments.push({ line, text: text.trim() })
}

/** The blocks of prose in a file, in order. */
export const blocks = (lines: ReadonlyArray<string>): ReadonlyArray<Block> => {
  const reader: Reader = {
    blocks: [],
    titles: [],
    open: undefined,
    fence: undefined,
    skipTo: undefined,
    columns: undefined,
    inList: false,
    afterBlank: true,
  }
  const strip = (line: string | undefined) => line?.replace(/^\uFEFF/, "").replace(QUOTE_MARK, "")
  for (let at = afterFrontMatter(lines); at < lines.length; at++) {
    const text = strip(lines[at])!
    if (readInside(reader, text)) continue
    const blank = text.trim() === ""
    if (blank) {
      flush(reader)
      reader.columns = undefined
    } else if (
      !readRow(reader, text, strip(lines[at + 1]), at + 1) &&
      !readMark(reader, text) &&
      !readHeading(reader, text)
    ) {
      readProse(reader, text, at + 1)
    }
    reader.afterBlank = blank
  }
  flush(reader)
  return reader.blocks
}
