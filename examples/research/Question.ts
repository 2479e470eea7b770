/**
 * What a question asks about, and how to divide it among several researchers.
 *
 * A question is plain text throughout, so that a person, a model or {@link facets} may write it. What it asks about
 * are its content words; a facet also names the place where to look, in words that {@link make} reads back.
 */
import type { Index } from "./Search.ts"
import * as Words from "./Words.ts"

/** A content word of a question. */
export interface Term {
  /** As it is written in the question. */
  readonly word: string
  /** Each way is a list of stems that together speak of the word. */
  readonly ways: ReadonlyArray<ReadonlyArray<string>>
}

export interface Question {
  readonly text: string
  readonly terms: ReadonlyArray<Term>
  /** Neighbouring terms in one word, as names are made of them: `retryagent` for "the retry agent". */
  readonly phrases: ReadonlyArray<string>
  /** Where to look: the path of a file, with ` › ` and a heading where only that section is meant. */
  readonly place: string | undefined
  /** The words to look at first, when the question is one side of a larger one. */
  readonly emphasis: ReadonlyArray<string>
}

const PLACE = /,? according to "([^"]+)"/
const EMPHASIS = /,? especially about "([^"]+)"/

const termsOf = (text: string, accepts: (word: string) => boolean): ReadonlyArray<Term> => {
  const all = Words.words(text)
  const terms = all.flatMap((word, at): ReadonlyArray<Term> => {
    if (!accepts(word) || /^[a-zA-Z]$/.test(word)) return []
    const joined = Words.phrasal(word, all[at + 1])
    return [{ word, ways: joined === undefined ? Words.waysToSay(word) : [[joined], ...Words.waysToSay(word)] }]
  })
  const key = (term: Term) => term.ways[0]?.join(" ")
  return terms.filter((term, at) => terms.findIndex((other) => key(other) === key(term)) === at)
}

const phrasesOf = (text: string, accepts: (word: string) => boolean): ReadonlyArray<string> => {
  const all = Words.words(text)
  return all.slice(1).flatMap((word, at) => {
    const before = all[at]!
    return accepts(before) && accepts(word) && text.includes(`${before} ${word}`) ? [Words.stem(before + word)] : []
  })
}

/**
 * Reads a question. One made of function words alone ("How does it work?") has no terms, and nothing answers it.
 *
 * **Example** (The words that matter)
 *
 * ```ts
 * Question.make("What happens to a request when it is aborted?").terms.map((term) => term.word)
 * // => ["request", "aborted"]
 * ```
 */
export const make = (text: string): Question => {
  const asked = text.replace(PLACE, "").replace(EMPHASIS, "")
  const isSubject = (word: string) => !Words.isStopWord(word) && !Words.isAskingWord(word)
  const strong = termsOf(asked, (word) => isSubject(word) && !Words.isWeakWord(word))
  return {
    text,
    terms: strong.length > 0 ? strong : termsOf(asked, isSubject),
    phrases: phrasesOf(asked, isSubject),
    place: PLACE.exec(text)?.[1],
    emphasis: EMPHASIS.exec(text)?.[1]?.split(", ") ?? [],
  }
}

/** Whether a text with these stems speaks of the term. */
export const speaksOf = (stems: ReadonlySet<string>, term: Term): boolean =>
  term.ways.some((way) => way.every((stem) => stems.has(stem)))

/** The question asked of one place only. */
export const inPlace = (text: string, place: string): string => `${bare(text)}, according to "${placeName(place)}"?`

/** The name of a place as a question can hold it: between double quotes. */
export const placeName = (place: string): string => place.replaceAll('"', "'")

const withEmphasis = (text: string, words: ReadonlyArray<string>): string =>
  `${bare(text)}, especially about "${words.join(", ")}"?`

const bare = (text: string): string => text.trim().replace(/[\s?!.]+$/, "")

/** The questions of a text that asks several; a single one otherwise. */
export const parts = (text: string): ReadonlyArray<string> => {
  const asked = text
    .split(/(?<=\?)\s+|;\s+|\n+/)
    .map((part) => part.trim().replace(/^(?:and|or|also)\s+(\S)/i, (_, first: string) => first.toUpperCase()))
    .filter((part) => make(part).terms.some((term) => !Words.isLight(term.word)))
  return asked.length > 1 ? asked : [text]
}

// "kept alive and timed out": the words of each side.
const sidesOf = (question: Question): ReadonlyArray<ReadonlyArray<string>> => {
  const known = new Set(question.terms.map((term) => term.word))
  const sides = question.text
    .split(/\s*,\s*(?:and|or)\s+|\s+(?:and|or|versus|vs\.?|und|oder|et|ou|y|o)\s+|,\s+/i)
    .map((side) => Words.words(side).filter((word) => known.has(word)))
    .filter((side) => side.length > 0)
  return sides.length > 1 ? sides : []
}

/** A place of the corpus and how well it fits the question; {@link ./Answer.ts} finds them. */
export interface Place {
  readonly name: string
  readonly score: number
}

/**
 * Divides one question into at most `limit` distinct sub-questions, each readable by itself: first by the `places`
 * that speak of it, best first, then by its sides and its single words.
 */
export const facets = (question: Question, places: ReadonlyArray<Place>, limit: number): ReadonlyArray<string> => {
  const { terms, text } = question
  const singles = terms.length > 1 ? terms.map((term) => [term.word]) : []
  const all = [
    ...places.map((place) => inPlace(text, place.name)),
    ...[...sidesOf(question), ...singles].map((words) => withEmphasis(text, words)),
  ]
  const distinct = [...new Set(all)].slice(0, limit)
  return distinct.length === 0 ? [text] : distinct
}

/** How much a term tells in a corpus: near 0 where every passage says it, 1 where hardly any does. */
export interface Weight {
  readonly weight: number
  /** Whether the corpus says it at all. */
  readonly known: boolean
}

// What a word weighs that the corpus never says; more than any word it says.
const ABSENT = 1.25
const LIGHT = 0.5

/** The weights of the terms of a question. */
export const weights = (index: Index, terms: ReadonlyArray<Term>): ReadonlyArray<Weight> => {
  const { blocks, blocksOf, files, filesOf } = index.counts
  const most = (counts: ReadonlyMap<string, number>, term: Term) =>
    Math.max(0, ...term.ways.map((way) => Math.min(...way.map((stem) => counts.get(stem) ?? 0))))
  const rarity = (count: number, total: number) => Math.log(1 + total / count) / Math.log(1 + total)
  return terms.map((term) => {
    const inBlocks = most(blocksOf, term)
    const known = inBlocks > 0
    const full = known ? Math.sqrt(rarity(inBlocks, blocks) * rarity(most(filesOf, term), files)) : ABSENT
    return { known, weight: Words.isLight(term.word) ? full * LIGHT : full }
  })
}
