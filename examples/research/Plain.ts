/**
 * Deciding without a model: policies that are ordinary functions of what was seen so far. They search, read and quote;
 * they do not write.
 */
import { Policy, Proposal, type State } from "../../src/index.ts"
import { counted } from "../shared/Table.ts"
import * as Answer from "./Answer.ts"
import type * as Quote from "./Quote.ts"
import type * as Search from "./Search.ts"

/** How many lines around a passage are read, and how many findings a researcher and the report hold. */
const around = 3
const most = { perResearcher: 5, inReport: 12 }

/** Searches, reads the lines it wants to quote, and answers with what really stands there. */
export const researcher = (index: Search.Index): Policy.Policy =>
  Policy.make((view) => {
    const wanted = Answer.findings(index, view.task, { limit: most.perResearcher })
    const hits = resultsOf(view, "search")
    const pages = resultsOf(view, "read")
    if (view.purpose === "wrap_up")
      return Proposal.finish({ findings: wanted.filter((one) => isSeen(one, hits, pages)) })
    if (hits.length === 0) return Proposal.call("search", { query: view.task })
    if (wanted.length === 0) return Proposal.finish({ findings: [] })
    if (pages.length === 0) return Proposal.callAll(readingsOf(wanted))
    return Proposal.finish({ findings: wanted.filter((one) => pages.some((page) => standsOn(one, page))) })
  })

const observationsOf = (view: Policy.View): ReadonlyArray<State.Observation> =>
  view.turns.flatMap((turn) => turn.observations)

const resultsOf = (view: Policy.View, tool: string): ReadonlyArray<unknown> =>
  observationsOf(view).flatMap((one) => (one.tool === tool && one.outcome === "ok" ? [one.data] : []))

/** One reading for each stretch of a file; neighbours are read together. */
const readingsOf = (wanted: ReadonlyArray<Quote.Finding>): ReadonlyArray<Proposal.ProposedCall> => {
  const stretches: Array<{ file: string; from: number; to: number }> = []
  for (const { file, line } of wanted.toSorted((a, b) => a.file.localeCompare(b.file) || a.line - b.line)) {
    const last = stretches.at(-1)
    if (last?.file === file && line - around <= last.to + 1 && line - last.from < 70) last.to = line + around
    else stretches.push({ file, from: Math.max(1, line - around), to: line + around })
  }
  return stretches.map((params) => ({ tool: "read", params }))
}

/** Whether a page, as `read` gives it, holds the quote at its line. */
const standsOn = ({ quote, line }: Quote.Finding, page: unknown): boolean =>
  typeof page === "string" &&
  page.split("\n").some((text) => Number.parseInt(text, 10) === line && text.includes(quote))

/** With nothing left to read with, a passage that the search showed will do; the verifier checks it all the same. */
const isSeen = (one: Quote.Finding, hits: ReadonlyArray<unknown>, pages: ReadonlyArray<unknown>): boolean =>
  pages.some((page) => standsOn(one, page)) ||
  (hits as ReadonlyArray<ReadonlyArray<{ readonly file: string; readonly line: number }>>)
    .flat()
    .some((hit) => hit.file === one.file && Math.abs(hit.line - one.line) <= around)

interface ResearcherResult {
  readonly status: "completed" | "stopped"
  readonly reason?: string
  readonly answer?: { readonly findings: ReadonlyArray<Quote.Finding> }
}

/** Sends out researchers on parts of the question, then puts together what they bring back. */
export const lead = (options: {
  readonly question: string
  readonly index: Search.Index
  readonly researchers: number
}): Policy.Policy => {
  const parts = Answer.subQuestions(options.index, options.question, options.researchers)
  return Policy.make((view) => {
    const asked = observationsOf(view)
    return asked.length === 0 && view.purpose !== "wrap_up"
      ? Proposal.callAll(parts.map((task) => ({ tool: "researcher", params: { task } })))
      : Proposal.finish(report(asked, parts))
  })
}

const report = (asked: ReadonlyArray<State.Observation>, parts: ReadonlyArray<string>) => {
  const findings = best(asked.map((one) => resultOf(one)?.answer?.findings ?? []))
  return { summary: summaryOf(findings), findings, missing: missingOf(asked, parts) }
}

const resultOf = (one: State.Observation): ResearcherResult | undefined =>
  one.outcome === "ok" ? (one.data as ResearcherResult) : undefined

/** One finding of each researcher in turn, so that no part of the question is crowded out; no line twice. */
const best = (lists: ReadonlyArray<ReadonlyArray<Quote.Finding>>): ReadonlyArray<Quote.Finding> => {
  const longest = Math.max(0, ...lists.map((list) => list.length))
  const inTurn = Array.from({ length: longest }, (_, index) =>
    lists.flatMap((list) => list.slice(index, index + 1)),
  ).flat()
  const byPlace = new Map(inTurn.toReversed().map((one) => [`${one.file}:${one.line}`, one]))
  return inTurn.filter((one) => byPlace.get(`${one.file}:${one.line}`) === one).slice(0, most.inReport)
}

const summaryOf = (findings: ReadonlyArray<Quote.Finding>): string => {
  if (findings.length === 0) return "Nothing found: the documents do not answer this question."
  const files = new Set(findings.map((one) => one.file)).size
  return `What the documents say about the question: ${counted(findings.length, "passage")} in ${counted(files, "file")}.`
}

/** Every part that was not looked into, or not to the end, and why. */
const missingOf = (asked: ReadonlyArray<State.Observation>, parts: ReadonlyArray<string>): ReadonlyArray<string> => {
  const taskOf = (one: State.Observation) => (one.params as { readonly task: string }).task
  const answered = new Set(asked.map(taskOf))
  return [
    ...parts.filter((part) => !answered.has(part)).map((part) => `${part} (not asked)`),
    ...asked.flatMap((one) => {
      const result = resultOf(one)
      if (result?.status === "completed") return []
      const why = result === undefined ? (one.error?.code ?? "no result") : `stopped: ${result.reason ?? "unknown"}`
      return [`${taskOf(one)} (${why})`]
    }),
  ]
}
