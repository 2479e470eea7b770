/**
 * Research on a budget: a lead agent splits a question, researchers search and read real Markdown files on budgets carved
 * from what the lead has left, a verifier checks every quote, and the lead writes a report with citations.
 *
 * Run it: `npm start` or
 * `npm start -- "What happens to a request when it is aborted?" --docs DIR --money "0.50 USD" --steps 60
 *  --wall-clock "2 minutes" --researchers 4 --json`
 *
 * Without `OPENAI_API_KEY` plain functions decide; with it a language model does, on the same budgets, tools and checks.
 * It prints a line for each event worth seeing, the report, the books of the budget tree, and where the journal lies.
 *
 * Exit codes: 0 answered (or certainly nothing found), 1 an error, 2 an option that cannot be used, 3 a limit was hit
 * somewhere in the tree and the report is partial, 130 cancelled.
 */
import { fileURLToPath } from "node:url"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import { sentenceOf } from "./shared/Options.ts"
import { cancellation } from "./shared/Signals.ts"
import { Otel } from "../src/otel/index.ts"
import { type Done, run } from "./research/Job.ts"
import { reportText } from "./research/Report.ts"
import type { Report } from "./research/Team.ts"
import { budgetTables, endings, eventLine } from "./shared/Table.ts"

const defaults = {
  question: "What happens to a request when it is aborted?",
  docs: fileURLToPath(new URL("../node_modules/undici", import.meta.url)),
  steps: "60",
  toolCalls: "120",
  wallClock: "2 minutes",
  researchers: "4",
}

const text = (name: string, description: string) => Flag.String(name).pipe(Flag.withDescription(description))

const flags = {
  question: Argument.String("question").pipe(Argument.withDefault(defaults.question)),
  docs: text("docs", "A folder of Markdown files").pipe(Flag.withDefault(defaults.docs)),
  money: text("money", 'Cap on money, such as "0.50 USD"').pipe(Flag.optional),
  steps: text("steps", "Cap on decisions").pipe(Flag.withDefault(defaults.steps)),
  toolCalls: text("tool-calls", "Cap on tool calls").pipe(Flag.withDefault(defaults.toolCalls)),
  wallClock: text("wall-clock", 'Time limit, such as "2 minutes"').pipe(Flag.withDefault(defaults.wallClock)),
  researchers: text("researchers", "How many researchers at most").pipe(Flag.withDefault(defaults.researchers)),
  price: text("price", 'Price of the model in USD per million tokens, "INPUT/OUTPUT"').pipe(Flag.optional),
  json: Flag.Boolean("json").pipe(Flag.withDescription("Print one JSON object"), Flag.withDefault(false)),
}

const cancelled = cancellation()

const command = Command.make("research", flags, (given) =>
  Effect.gen(function* () {
    const startMillis = Date.now()
    const done = yield* run({
      question: given.question,
      docs: given.docs,
      budget: {
        steps: given.steps,
        toolCalls: given.toolCalls,
        wallClock: given.wallClock,
        money: Option.getOrUndefined(given.money),
      },
      researchers: given.researchers,
      price: Option.getOrUndefined(given.price),
      useModel: (process.env["OPENAI_API_KEY"] ?? "") !== "",
      journals: ".bursar/runs",
      cancelled,
      onEvent: (event) => {
        const line = given.json ? undefined : eventLine(event, startMillis)
        if (line !== undefined) console.log(line)
      },
    })
    console.log(given.json ? asJson(given.question, done) : asText(given.question, done))
    process.exitCode = exitCodeOf(done)
  }),
).pipe(Command.withDescription("Answers a question from a folder of Markdown files, with citations, on a budget"))

const reportOf = ({ outcome }: Done): Report =>
  answerOf(outcome) ?? {
    summary: `No report: the run stopped (${reasonOf(outcome)}) before one could be written.`,
    findings: [],
    missing: ["the whole question"],
  }

const answerOf = (outcome: Done["outcome"]): Report | undefined => {
  if (outcome._tag === "Completed") return outcome.answer
  return outcome._tag === "Stopped" ? outcome.partial : undefined
}

const reasonOf = (outcome: Done["outcome"]): string => {
  if (outcome._tag === "Completed") return "completed"
  return outcome._tag === "Stopped" ? outcome.reason : "suspended"
}

const asText = (question: string, done: Done): string => {
  const { report } = done.outcome
  return [
    "",
    reportText(question, reportOf(done), done.corpus),
    ...(done.outcome._tag === "Stopped" ? ["", `Stopped: ${done.outcome.reason} (${done.outcome.detail})`] : []),
    "",
    budgetTables(report.accounts),
    "",
    endings(report.ends),
    "",
    `Journal: ${report.journal ?? "none"}`,
  ].join("\n")
}

const asJson = (question: string, done: Done): string => {
  const { corpus, outcome } = done
  const { run, accounts, ends, journal, overran } = outcome.report
  const reason = reasonOf(outcome)
  const documents = {
    root: corpus.root,
    files: corpus.files.length,
    skipped: corpus.skipped,
    duplicates: corpus.duplicates,
  }
  return JSON.stringify(
    { question, reason, report: reportOf(done), run, documents, agents: ends, accounts, overran, journal },
    null,
    2,
  )
}

const exitCodeOf = ({ outcome }: Done): number => {
  if (outcome._tag === "Stopped" && outcome.reason === "cancelled") return 130
  if (outcome._tag === "Stopped" && (outcome.reason === "model_error" || outcome.reason === "unpriced")) return 1
  const limited = outcome.report.ends.some((end) => end.reason !== "completed")
  return limited || (outcome._tag === "Completed" && outcome.answer.missing.length > 0) ? 3 : 0
}

/** An option that cannot be used, or documents that cannot be read: a sentence for the user, nothing was spent. */
const wrongInput = new Set([
  "WrongOption",
  "BudgetError",
  "DocsNotFound",
  "DocsNotFolder",
  "DocsUnreadable",
  "DocsEmpty",
  "JournalError",
])

const program = command.pipe(
  Command.run({ version: "0.1.0" }),
  Effect.provide(Layer.mergeAll(NodeServices.layer, Otel.layerConfig({}))),
)

const exit = await Effect.runPromiseExit(program)
if (Exit.isFailure(exit)) {
  const error: unknown = Cause.squash(exit.cause)
  const tag = typeof error === "object" && error !== null && "_tag" in error ? String(error._tag) : ""
  if (tag !== "ShowHelp") console.error(sentenceOf(error))
  process.exitCode = wrongInput.has(tag) || tag === "ShowHelp" ? 2 : 1
}
