/**
 * Checks a finding against the documents it cites, for a verifier that trusts no researcher.
 */
import * as Corpus from "./Corpus.ts"
import * as Markdown from "./Markdown.ts"
import * as Question from "./Question.ts"
import * as Words from "./Words.ts"

/** A statement and the place that supports it. */
export interface Finding {
  /** One readable sentence. */
  readonly claim: string
  /** A verbatim part of one line. */
  readonly quote: string
  /** The path of the file, relative to the folder of the corpus. */
  readonly file: string
  /** From 1. */
  readonly line: number
}

/** What became of a quote. `Misplaced` names the lines of that file where it does stand, if any. */
export type QuoteCheck =
  | { readonly _tag: "Stands" }
  | { readonly _tag: "TooShort" }
  | { readonly _tag: "NoSuchFile"; readonly file: string }
  | {
      readonly _tag: "Misplaced"
      readonly file: string
      readonly line: number
      readonly standsAt: ReadonlyArray<number>
    }
  | { readonly _tag: "OffTopic"; readonly question: string }

// "The" stands on nearly every line and proves nothing.
const FEWEST_WORDS = 3

/** Whether the quote stands verbatim in that file at that line. */
export const checkQuote = (corpus: Corpus.Corpus, finding: Omit<Finding, "claim">): QuoteCheck => {
  const { line, quote } = finding
  if (Words.count(quote) < FEWEST_WORDS) return { _tag: "TooShort" }
  const file = Corpus.find(corpus, finding.file)
  if (file === undefined) return { _tag: "NoSuchFile", file: finding.file }
  if (file.lines[line - 1]?.includes(quote) === true) return { _tag: "Stands" }
  const standsAt = file.lines.flatMap((text, at) => (text.includes(quote) ? [at + 1] : []))
  return { _tag: "Misplaced", file: file.path, line, standsAt }
}

/** Whether the quote says a content word of the question, in any form of that word. */
export const aboutQuestion = (quote: string, question: string): boolean => {
  const said = new Set(Words.stems(Markdown.plain(quote)))
  return Question.make(question).terms.some((term) => Question.speaksOf(said, term))
}

/** Both checks: the quote stands where it is said to stand, and it says something about the question. */
export const verify = (corpus: Corpus.Corpus, question: string, finding: Omit<Finding, "claim">): QuoteCheck => {
  const check = checkQuote(corpus, finding)
  return check._tag === "Stands" && !aboutQuestion(finding.quote, question) ? { _tag: "OffTopic", question } : check
}

/** The outcome in one sentence, for a researcher who may try again. */
export const describe = (check: QuoteCheck): string => {
  switch (check._tag) {
    case "Stands":
      return "The quote stands at the cited line."
    case "TooShort":
      return `The quote is too short to prove anything; quote at least ${FEWEST_WORDS} words.`
    case "NoSuchFile":
      return `There is no file "${check.file}" among the documents.`
    case "Misplaced":
      return check.standsAt.length === 0
        ? `The quote stands nowhere in ${check.file}; a quote must be a verbatim part of one line.`
        : `The quote does not stand at ${check.file}:${check.line}, but at line ${check.standsAt.join(", ")}.`
    case "OffTopic":
      return `The quote says no content word of the question "${check.question}".`
  }
}
