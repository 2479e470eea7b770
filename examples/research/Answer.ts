/**
 * Answers a question with passages of the documents, or with nothing when they do not speak of it.
 *
 * Extractive only: it chooses, it does not write. Its law: every finding passes {@link ./Quote.ts}'s `verify`.
 */
import * as Question from "./Question.ts"
import type * as Quote from "./Quote.ts"
import type { Passage, Piece } from "./Passages.ts"
import * as Markdown from "./Markdown.ts"
import * as Search from "./Search.ts"
import * as Words from "./Words.ts"

/** How well a passage covers a question. */
export interface Assessed {
  readonly passage: Passage
  /** The part of the question, by weight, that the passage says in its place: 0 to 1. */
  readonly coverage: number
  readonly score: number
  readonly piece: Piece
}

/**
 * The share of the question, by weight, that the best passage must say for the documents to answer it at all, and
 * that any passage must. Tuned on 113 questions to four sets of documents, half of which these do not answer.
 */
const LEAST_COVERAGE = { best: 0.6, any: 0.45 }
/** A question whose words are to this share unknown to the documents is about something else. */
const MOST_UNKNOWN = 0.45
/** How far below the best passage another may stay, in coverage and in score. */
const LEAST_OF_BEST = { coverage: 0.5, score: 0.6 }
/** What a word counts that is not said in the passage but above it, beside it or in the name of its file. */
const CREDIT = { text: 1, name: 0.75, heading: 0.8, above: 0.7, block: 0.6 }
const CANDIDATES = 400
const ALIKE = 0.7

interface Asked {
  readonly question: Question.Question
  readonly weights: ReadonlyArray<number>
  readonly total: number
  readonly heaviest: number
}

const askedOf = (index: Search.Index, text: string): Asked | undefined => {
  const question = Question.make(text)
  const rated = Question.weights(index, question.terms)
  const sum = (all: ReadonlyArray<Question.Weight>) => all.reduce((total, each) => total + each.weight, 0)
  const known = rated.filter((each) => each.known)
  const total = sum(rated)
  if (known.length === 0 || (total - sum(known)) / total > MOST_UNKNOWN) return undefined
  const heaviest = Math.max(...known.map((each) => each.weight))
  return { question, weights: rated.map((each) => each.weight), total, heaviest }
}

const stemSet = (text: string): ReadonlySet<string> => new Set(Words.stems(text))

const blockText = (index: Search.Index, passage: Passage): string => {
  const around = [index.passages[passage.id - 1], passage, index.passages[passage.id + 1]]
  return around.flatMap((each) => (each?.block === passage.block ? [each.text] : [])).join("\n")
}

// What each term is worth in this passage.
const creditsOf = (index: Search.Index, asked: Asked, passage: Passage): ReadonlyArray<number> => {
  const said = new Set(Words.outsideNames(passage.text))
  const text = stemSet(passage.text)
  const heading = stemSet(passage.headings.at(-1) ?? "")
  const above = stemSet([passage.file, ...passage.headings].join("\n"))
  const block = stemSet(blockText(index, passage))
  return asked.question.terms.map((term) => {
    if (Question.speaksOf(said, term)) return CREDIT.text
    if (Question.speaksOf(text, term)) return CREDIT.name
    if (Question.speaksOf(heading, term)) return CREDIT.heading
    if (Question.speaksOf(above, term)) return CREDIT.above
    return Question.speaksOf(block, term) ? CREDIT.block : 0
  })
}

// The piece that says most of the question, and of those the longest: the one worth quoting.
const bestPiece = (passage: Passage, terms: ReadonlyArray<Question.Term>): Piece | undefined => {
  const rated = passage.pieces.map((piece) => {
    const text = Markdown.plain(piece.text)
    const said = stemSet(text)
    const literal = terms.filter((term) => isLiteral(text, term.word)).length
    const spoken = terms.filter((term) => Question.speaksOf(said, term)).length
    const length = Words.count(text.replace(/\{[^}]*\}/g, ""))
    return { piece, length, spoken, rank: spoken + literal / 2 + piece.share + Math.min(length, 12) / 10 }
  })
  const fit = rated.filter(({ length, spoken }) => spoken > 0 && length >= 4)
  return fit.toSorted((a, b) => b.rank - a.rank)[0]?.piece
}

const isLiteral = (text: string, word: string): boolean => text.toLowerCase().includes(word.toLowerCase())

const assess = (index: Search.Index, asked: Asked, hit: Search.Hit, bestHit: number): ReadonlyArray<Assessed> => {
  const { passage } = hit
  const { question, total, weights } = asked
  const piece = bestPiece(passage, question.terms)
  if (piece === undefined) return []
  const credits = creditsOf(index, asked, passage)
  const coverage = credits.reduce((sum, credit, at) => sum + credit * weights[at]!, 0) / total
  const coversHeaviest = credits.some((credit, at) => credit > 0 && weights[at]! >= asked.heaviest * 0.9)
  const telling = question.terms.map((term, at) => (Words.isLight(term.word) ? 0 : credits[at]!))
  const spoken = telling.filter((credit) => credit > 0).length
  const enough = Math.min(2, question.terms.filter((term) => !Words.isLight(term.word)).length)
  if (coverage < LEAST_COVERAGE.any || !coversHeaviest || spoken < enough) return []
  const quoted = new Set(Words.outsideNames(Markdown.plain(piece.text)))
  const inQuote = question.terms.reduce(
    (sum, term, at) => sum + (Question.speaksOf(quoted, term) ? weights[at]! : 0),
    0,
  )
  const named = stemSet([passage.text, passage.file, ...passage.headings].join("\n"))
  const namesPhrase = question.phrases.some((phrase) => named.has(phrase))
  const opens = index.passages[passage.id - 1]?.headings.join("\n") !== passage.headings.join("\n")
  const score =
    0.75 * coverage +
    0.3 * (inQuote / total) +
    0.3 * (hit.score / bestHit) +
    0.25 * piece.share +
    (question.terms.some((term) => isLiteral(piece.text, term.word)) ? 0.1 : 0) +
    (opens ? 0.1 : 0) +
    (namesPhrase ? 0.15 : 0)
  return [{ passage, coverage, score: score * (0.4 + 0.6 * passage.quality), piece }]
}

const placeOf = (file: string, heading?: string): string => (heading === undefined ? file : `${file} › ${heading}`)

const inPlace = ({ file, headings }: Passage, place: string | undefined): boolean =>
  place === undefined ||
  [undefined, ...headings].some((heading) => Question.placeName(placeOf(file, heading)) === place)

/** The passages that answer `text`, best first; none when the documents do not speak of it. */
export const assessed = (index: Search.Index, text: string): ReadonlyArray<Assessed> => {
  const asked = askedOf(index, text)
  if (asked === undefined) return []
  const hits = Search.search(index, text, { limit: CANDIDATES })
  const bestHit = hits[0]?.score ?? 1
  const all = hits.flatMap((hit) => assess(index, asked, hit, bestHit))
  const best = (of: "coverage" | "score") => Math.max(0, ...all.map((each) => each[of]))
  if (best("coverage") < LEAST_COVERAGE.best) return []
  const least = { coverage: best("coverage") * LEAST_OF_BEST.coverage, score: best("score") * LEAST_OF_BEST.score }
  return all
    .filter((each) => each.coverage >= least.coverage && each.score >= least.score)
    .filter((each) => inPlace(each.passage, asked.question.place))
    .toSorted((a, b) => b.score - a.score || a.passage.id - b.passage.id)
}

const areAlike = (a: string, b: string): boolean => {
  const [left, right] = [stemSet(a), stemSet(b)]
  const shared = [...left].filter((stem) => right.has(stem)).length
  return shared >= ALIKE * Math.min(left.size, right.size)
}

// Takes the best of each file before the second best of any, and nothing twice.
const choose = (all: ReadonlyArray<Assessed>, limit: number): ReadonlyArray<Assessed> => {
  const chosen: Array<Assessed> = []
  const taken = new Map<string, number>()
  const rest = [...all]
  const value = (each: Assessed) => each.score - 0.12 * (taken.get(each.passage.file) ?? 0)
  while (chosen.length < limit && rest.length > 0) {
    const at = rest.reduce((best, each, i) => (value(each) > value(rest[best]!) ? i : best), 0)
    const [next] = rest.splice(at, 1)
    if (next === undefined || chosen.some((each) => areAlike(each.passage.text, next.passage.text))) continue
    chosen.push(next)
    taken.set(next.passage.file, (taken.get(next.passage.file) ?? 0) + 1)
  }
  return chosen
}

// The whole sentence under its heading, so that it can be read without the document.
const claimOf = ({ passage }: Assessed): string => {
  const title = passage.headings.at(-1)
  const text = passage.text.replace(/[\s:;,]+$/, "")
  const ended = /[.!?。！？…]["'”’)]*$/.test(text) ? text : `${text}.`
  return title === undefined ? ended : `${title}: ${ended}`
}

/** At most `limit` findings, best first; none when the documents do not answer the question. */
export const findings = (
  index: Search.Index,
  question: string,
  options: { readonly limit?: number } = {},
): ReadonlyArray<Quote.Finding> =>
  choose(assessed(index, question), options.limit ?? 5).map((each) => ({
    claim: claimOf(each),
    quote: each.piece.text,
    file: each.passage.file,
    line: each.piece.line,
  }))

// Where the answers stand: by file, or by section where fewer than `limit` files hold any.
const placesOf = (all: ReadonlyArray<Assessed>, limit: number): ReadonlyArray<Question.Place> => {
  const by = (name: (passage: Passage) => string): ReadonlyArray<Question.Place> => {
    const scores = new Map<string, number>()
    for (const each of choose(all, 60)) {
      const key = name(each.passage)
      scores.set(key, (scores.get(key) ?? 0) + each.score ** 4)
    }
    return [...scores].map(([name, score]) => ({ name, score })).toSorted((a, b) => b.score - a.score)
  }
  const files = by((passage) => passage.file)
  if (files.length >= limit) return files
  const sections = by(({ file, headings }) => placeOf(file, headings.at(-1)))
  return sections.length > files.length ? sections : files
}

/** At most `limit` distinct sub-questions of `question`, each of which {@link findings} can answer by itself. */
export const subQuestions = (index: Search.Index, question: string, limit = 3): ReadonlyArray<string> => {
  const parts = Question.parts(question)
  const facets = parts.flatMap((part) =>
    Question.facets(Question.make(part), placesOf(assessed(index, part), limit), limit),
  )
  return (parts.length > 1 ? [...parts, ...facets] : facets).slice(0, limit)
}
