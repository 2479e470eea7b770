/**
 * Full-text search over the passages of a corpus, by MiniSearch.
 *
 * Leaves to {@link ./Answer.ts} whether a hit answers anything: a search always ranks, it never judges.
 */
import MiniSearch from "minisearch"
import type { Corpus } from "./Corpus.ts"
import * as Passages from "./Passages.ts"
import * as Question from "./Question.ts"
import * as Words from "./Words.ts"

export interface Index {
  readonly corpus: Corpus
  readonly passages: ReadonlyArray<Passages.Passage>
  /** In how many blocks (with their headings) and in how many files each stem occurs. */
  readonly counts: {
    readonly blocks: number
    readonly blocksOf: ReadonlyMap<string, number>
    readonly files: number
    readonly filesOf: ReadonlyMap<string, number>
  }
  readonly engine: MiniSearch<Passages.Passage>
}

export interface Hit {
  readonly passage: Passages.Passage
  readonly score: number
  /** The content words of the question that the passage says, as the question writes them. */
  readonly matched: ReadonlyArray<string>
}

const FIELDS = ["text", "headings", "file"]

const engineOf = (passages: ReadonlyArray<Passages.Passage>): MiniSearch<Passages.Passage> => {
  const engine = new MiniSearch<Passages.Passage>({
    fields: FIELDS,
    extractField: (passage, field) => {
      if (field === "headings") return passage.headings.join("\n")
      return field === "text" ? passage.text : field === "file" ? passage.file : String(passage.id)
    },
    tokenize: (text) => [...Words.indexed(text)],
    processTerm: (stem) => stem, // the tokens are stems already
    searchOptions: { boost: { text: 3, headings: 2, file: 1 }, bm25: { k: 1.2, b: 0.4, d: 0.5 } },
  })
  engine.addAll(passages)
  return engine
}

const countsOf = (passages: ReadonlyArray<Passages.Passage>): Index["counts"] => {
  const stemsOfBlock = new Map<number, { readonly file: string; readonly stems: Set<string> }>()
  for (const { block, file, headings, text } of passages) {
    const entry = stemsOfBlock.get(block) ?? { file, stems: new Set(Words.stems([file, ...headings].join("\n"))) }
    for (const stem of Words.stems(text)) entry.stems.add(stem)
    stemsOfBlock.set(block, entry)
  }
  const blocksOf = new Map<string, number>()
  const stemsOfFile = new Map<string, Set<string>>()
  for (const { file, stems } of stemsOfBlock.values()) {
    const inFile = stemsOfFile.get(file) ?? new Set()
    stemsOfFile.set(file, inFile)
    for (const stem of stems) {
      blocksOf.set(stem, (blocksOf.get(stem) ?? 0) + 1)
      inFile.add(stem)
    }
  }
  const filesOf = new Map<string, number>()
  for (const stems of stemsOfFile.values()) {
    for (const stem of stems) filesOf.set(stem, (filesOf.get(stem) ?? 0) + 1)
  }
  return { blocks: stemsOfBlock.size, blocksOf, files: stemsOfFile.size, filesOf }
}

/** Builds the index of a corpus; about a second for ten thousand passages. */
export const make = (corpus: Corpus): Index => {
  const passages = Passages.ofCorpus(corpus)
  return { corpus, passages, counts: countsOf(passages), engine: engineOf(passages) }
}

/** The passages that share a content word with `query`, best first. */
export const search = (index: Index, query: string, options: { readonly limit?: number } = {}): ReadonlyArray<Hit> => {
  const { emphasis, terms } = Question.make(query)
  const wanted = [
    ...new Set([...terms.flatMap((term) => term.ways.flat()), ...emphasis.flatMap((word) => Words.stems(word))]),
  ]
  if (wanted.length === 0) return []
  const emphasised = new Set(emphasis.flatMap((word) => Words.stems(word)))
  const results = index.engine.search(wanted.join("\n"), {
    tokenize: (text) => text.split("\n"),
    boostTerm: (stem) => (emphasised.has(stem) ? 2 : 1),
  })
  return results.slice(0, options.limit ?? 20).map((result) => {
    const passage = index.passages[result.id as number]!
    const said = new Set(Words.stems(passage.text))
    const matched = terms.filter((term) => Question.speaksOf(said, term)).map((term) => term.word)
    return { passage, score: result.score, matched }
  })
}
