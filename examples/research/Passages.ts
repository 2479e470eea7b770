/**
 * Cuts the files of a corpus into passages: the sentences, list items and table rows that may be quoted.
 *
 * Its law: every {@link Passage} holds at least one quotable piece, and every piece stands verbatim on one line of its
 * file. Documents are often wrapped by hand, so one sentence may hold several pieces; `text` is the whole sentence.
 */
import type { Corpus, SourceFile } from "./Corpus.ts"
import * as Markdown from "./Markdown.ts"
import * as Words from "./Words.ts"

/** A verbatim part of one line, and which part of its sentence that is (1: the whole sentence stands on the line). */
export interface Piece extends Markdown.Segment {
  readonly share: number
}

export interface Passage {
  /** Its place in the list of all passages. */
  readonly id: number
  /** The path of the file, relative to the folder of the corpus. */
  readonly file: string
  /** Counts the blocks of prose of the corpus; sentences of one paragraph share it. */
  readonly block: number
  readonly kind: Markdown.Block["kind"]
  /** Titles from the outermost to the nearest. */
  readonly headings: ReadonlyArray<string>
  /** The whole sentence, item or row without Markdown marks. */
  readonly text: string
  /** What can be quoted of it: of each sentence in it, the part on each line. */
  readonly pieces: ReadonlyArray<Piece>
  /** From 0 (a bare name or link) to 1 (a sentence). */
  readonly quality: number
}

const LONGEST_ITEM = 320
const LONGEST_PIECE = 400
const SENTENCE_END = /[.!?…]["'”’)\]*_`]*(?=\s|$)|[。！？]/gu
const ABBREVIATION = /(?:^|[\s(])(?:e\.g|i\.e|etc|vs|cf|approx|resp|no|incl|max|min|[A-Za-z])\.$/i

// Where one sentence ends and the next begins, in a text whose lines are joined by line feeds.
const sentenceEnds = (text: string): ReadonlyArray<number> => {
  const ends: Array<number> = []
  for (const match of text.matchAll(SENTENCE_END)) {
    const end = match.index + match[0].length
    const sentence = text.slice(ends.at(-1) ?? 0, end)
    const insideCode = (sentence.match(/`/g)?.length ?? 0) % 2 === 1
    const goesOn = /^\s*\p{Ll}/u.test(text.slice(end)) || ABBREVIATION.test(text.slice(0, match.index + 1))
    if (!insideCode && !goesOn && Words.count(sentence) >= 4) ends.push(end)
  }
  return ends
}

interface Range {
  readonly from: number
  readonly to: number
}

// A rest of a few words ("**Default:** `5`.") stays with the sentence before it.
const sentences = (text: string): ReadonlyArray<Range> => {
  const ends = sentenceEnds(text)
  const rest = text.slice(ends.at(-1) ?? 0)
  const last =
    ends.length === 0 || Words.count(rest) >= 4 ? [...ends, text.length] : [...ends.slice(0, -1), text.length]
  return last.map((to, at) => ({ from: last[at - 1] ?? 0, to }))
}

// A line without a full stop for 400 characters is cut at the last clause, or else the last word, before that.
const cut = (piece: Markdown.Segment): ReadonlyArray<Markdown.Segment> => {
  const rest = piece.text
  if (rest.length <= LONGEST_PIECE) return [piece]
  const head = rest.slice(0, LONGEST_PIECE)
  const at = Math.max(head.lastIndexOf("; "), head.lastIndexOf(", ")) + 1
  const end = at > LONGEST_PIECE / 3 ? at : head.lastIndexOf(" ") > 0 ? head.lastIndexOf(" ") : LONGEST_PIECE
  const tail = cut({ line: piece.line, text: rest.slice(end).trim() })
  return [{ line: piece.line, text: rest.slice(0, end).trim() }, ...tail]
}

// A quote is looked for with grep: it may not begin like an option, nor hold what a terminal or a decoder changes.
const quotable = (piece: Markdown.Segment): Markdown.Segment => ({ ...piece, text: piece.text.replace(/^[-\s|]+/, "") })
// oxlint-disable-next-line no-control-regex
const isClean = (text: string): boolean => !/[\u0000-\u0008\u000B-\u001F\uFFFD]/.test(text)

const piecesIn = (segments: ReadonlyArray<Markdown.Segment>, range: Range): ReadonlyArray<Piece> => {
  let at = 0
  return segments
    .flatMap((segment) => {
      const from = at
      at += segment.text.length + 1
      return cut({
        line: segment.line,
        text: segment.text.slice(Math.max(0, range.from - from), Math.max(0, range.to - from)).trim(),
      })
    })
    .map((piece) => ({ ...quotable(piece), share: piece.text.length / Math.max(1, range.to - range.from - 1) }))
    .filter((piece) => piece.text !== "" && isClean(piece.text))
}

// What a reader would not call a statement: a list of links, a change log entry, a lead-in, a name alone.
const qualityOf = (raw: string, text: string): number => {
  const length = Words.count(text)
  const linked = [...raw.matchAll(/\[([^\]]*)\](?:\(|\[)/g)].reduce((sum, [, label]) => sum + Words.count(label!), 0)
  const isChange = /\b[0-9a-f]{7,40}\b|(?:\(|\s)#\d+\b|^\s*\*?\*?(?:feat|fix|chore|docs|build|ci)(?:\(.*\))?!?:/.test(
    raw,
  )
  return (
    (length < 5 ? 0.4 : length < 7 ? 0.8 : 1) *
    (linked >= length * 0.8 ? 0.3 : 1) *
    (isChange ? 0.5 : 1) *
    (/^(?:See|Refer to|Read|Check out)\b|^For (?:more|further)\b/.test(text) ? 0.75 : 1) *
    (/^(?:It|This|They|These|That|Those|He|She)\b/.test(text) ? 0.9 : 1) *
    (/^`[^`]+`(?:\s*\{|\s*[-–—:]?\s)/.test(raw) ? 0.93 : 1) *
    (/[:：]\s*$/.test(text) ? 0.6 : /\?\s*$/.test(text) ? 0.5 : 1) *
    (/[.!。！]["'”)]*$/.test(text) ? 1 : 0.85) *
    (/[^\p{L}\s]{4,}|https?:/u.test(text) ? 0.8 : 1)
  )
}

type Cut = Omit<Passage, "id" | "block">

const passagesOf = (file: SourceFile, block: Markdown.Block): ReadonlyArray<Cut> => {
  const joined = block.segments.map((segment) => segment.text).join("\n")
  const sentencesOfBlock = block.kind === "row" ? [{ from: 0, to: joined.length }] : sentences(joined)
  const isWhole = block.kind === "row" || (block.kind === "item" && joined.length <= LONGEST_ITEM)
  return (isWhole ? [{ from: 0, to: joined.length }] : sentencesOfBlock).flatMap((range) => {
    const raw = joined.slice(range.from, range.to)
    const text = block.kind === "row" ? Markdown.rowText(raw, block.columns) : Markdown.plain(raw)
    const inside = sentencesOfBlock.filter(({ from, to }) => from >= range.from && to <= range.to)
    const pieces = inside.flatMap((sentence) => piecesIn(block.segments, sentence))
    const said = Words.count(text) >= 3 && pieces.length > 0 && /\p{L}{2}/u.test(text)
    if (!said) return []
    return [
      { file: file.path, kind: block.kind, headings: block.headings, text, pieces, quality: qualityOf(raw, text) },
    ]
  })
}

/** The passages of one file, in order; `firstId` and `firstBlock` are where its numbering begins. */
export const ofFile = (file: SourceFile, firstId = 0, firstBlock = 0): ReadonlyArray<Passage> => {
  let id = firstId
  return Markdown.blocks(file.lines).flatMap((block, at) =>
    passagesOf(file, block).map((passage) => ({ ...passage, id: id++, block: firstBlock + at })),
  )
}

/** All passages of a corpus, in the order of its files. */
export const ofCorpus = (corpus: Corpus): ReadonlyArray<Passage> => {
  const all: Array<Passage> = []
  for (const file of corpus.files) {
    all.push(...ofFile(file, all.length, (all.at(-1)?.block ?? -1) + 1))
  }
  return all
}
