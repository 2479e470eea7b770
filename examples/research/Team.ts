/**
 * The agents of the research job: a lead that splits the question and writes the report, and researchers that search and
 * read. Tools, verifier and budgets are the same whether plain functions or a language model decide.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { Agent, Contract, Policy, Verifier } from "../../src/index.ts"
import * as Corpus from "./Corpus.ts"
import * as Plain from "./Plain.ts"
import * as Quote from "./Quote.ts"
import * as Search from "./Search.ts"

/** A statement with the passage that supports it: the quote is a verbatim part of that line of that file. */
export const Finding = Schema.Struct({
  claim: Schema.String,
  quote: Schema.String,
  file: Schema.String,
  line: Schema.Finite,
})

export const Findings = Schema.Struct({ findings: Schema.Array(Finding) })

/** What the lead writes. `missing` says what was not looked into, or not to the end. */
export const Report = Schema.Struct({
  summary: Schema.String,
  findings: Schema.Array(Finding),
  missing: Schema.Array(Schema.String),
})

export type Report = (typeof Report)["Type"]

const Hit = Schema.Struct({ file: Schema.String, line: Schema.Finite, heading: Schema.String, text: Schema.String })

const SearchDocs = Contract.annotate(
  Tool.make("search", {
    description: "Full-text search over the documents. Answers with passages, best first.",
    parameters: Schema.Struct({ query: Schema.String }),
    success: Schema.Array(Hit),
  }),
  { effect: "read", timeout: "10 seconds" },
)

const ReadDocs = Contract.annotate(
  Tool.make("read", {
    description: "Reads lines of one document, each with its number. At most 80 lines.",
    parameters: Schema.Struct({ file: Schema.String, from: Schema.Finite, to: Schema.Finite }),
    success: Schema.String,
    failure: Schema.String,
  }),
  { effect: "read", timeout: "10 seconds" },
)

export const toolkit = Toolkit.make(SearchDocs, ReadDocs)

/** Runs the tools on an index of the documents. */
export const toolsOf = (index: Search.Index) =>
  toolkit.toLayer({
    search: ({ query }) => Effect.sync(() => Search.search(index, query, { limit: 8 }).map(hitOf)),
    read: ({ file, from, to }) => {
      const found = Corpus.find(index.corpus, file)
      return found === undefined
        ? Effect.fail(`There is no file "${file}" among the documents.`)
        : Effect.sync(() => Corpus.excerpt(found, { from, to: Math.min(to, from + 79) }))
    },
  })

const hitOf = ({ passage }: Search.Hit): typeof Hit.Type => ({
  file: passage.file,
  line: passage.pieces[0]?.line ?? 1,
  heading: passage.headings.join(" › "),
  text: passage.text,
})

interface Cited {
  readonly findings: ReadonlyArray<Quote.Finding>
}

/** Every quote stands in that file at that line, and says something about the question. */
const citesVerbatim = (index: Search.Index, question: string): Verifier.Verifier<Cited> =>
  Verifier.predicate<Cited>("cites_verbatim", ({ answer }) => {
    const wrong = answer.findings
      .map((finding) => Quote.verify(index.corpus, question, finding))
      .filter((check) => check._tag !== "Stands")
    return wrong.length === 0 || wrong.map(Quote.describe).join(" ")
  })

export interface TeamOptions {
  readonly question: string
  readonly index: Search.Index
  readonly researchers: number
}

const asResearcher = {
  description: "Looks for evidence on one part of the question and returns findings with verbatim quotes.",
  atLeast: { steps: 2, toolCalls: 1 },
}

const instructions = {
  researcher:
    "Find evidence in the documents. Search first, then read the lines around what you found. Each finding is a claim " +
    "of one sentence, a quote that is a verbatim part of ONE line, the file, and the number of that line. Quote only " +
    "what you have read and what speaks about the question. If the documents say nothing, give no findings.",
  lead:
    "Split the question into parts that differ, and give each to a researcher, all in one reply. Then write a report: " +
    "a summary, the best findings exactly as the researchers gave them, and what is missing. Without findings say " +
    "that nothing was found.",
}

/** The team whose decisions are plain functions: no model, no key. */
export const plainTeam = (options: TeamOptions) =>
  teamOf(options, { researcher: Plain.researcher(options.index), lead: Plain.lead(options) })

/** The same team, decided by the current language model. */
export const modelTeam = (options: TeamOptions) => {
  const policy = Policy.model({ maxOutputTokens: 4096 })
  return teamOf(options, { researcher: policy, lead: policy })
}

const teamOf = <R>(
  { question, index, researchers }: TeamOptions,
  policies: { readonly researcher: Policy.Policy<R>; readonly lead: Policy.Policy<R> },
) => {
  const verify = citesVerbatim(index, question)
  const researcher = Agent.make("researcher", {
    instructions: `${instructions.researcher} The whole question is: ${question}`,
    policy: policies.researcher,
    toolkit,
    answer: Findings,
    verify,
  })
  return Agent.make("lead", {
    instructions: `${instructions.lead} You have up to ${researchers} researchers.`,
    policy: policies.lead,
    children: [Agent.asTool(researcher, asResearcher)],
    answer: Report,
    verify,
    settings: { concurrency: { calls: researchers, effects: "ordered" } },
  })
}
