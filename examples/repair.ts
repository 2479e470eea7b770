/**
 * Repairing a project on a budget: a maintainer has an investigator find out why tests fail and a fixer change the
 * sources, until the tests, run for real, pass and no test was touched.
 *
 * Run it: `npm run example -- repair` or
 * `npm run example -- repair --project DIR --test "npm test" --money "0.50 USD" --price "0.25/2.00" --steps 60
 *  --tool-calls 120 --wall-clock "5 minutes" --json`
 *
 * Without `OPENAI_API_KEY` plain functions decide, on a small built-in project; with it a language model does, on that or
 * any other. The project is copied to `.bursar/repair/<run>` and stays as it is, unless `--in-place` says otherwise.
 * `--resume RUN` goes on with a run whose process was killed. It prints a line for each event worth seeing, what was
 * changed, the exit codes of the tests before and after, the rules that were checked and the books of the budget tree.
 *
 * Exit codes: 0 the tests pass, 1 an error, 2 an option that cannot be used, 3 a limit was hit, 130 cancelled.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import { sentenceOf } from "./shared/Options.ts"
import { cancellation } from "./shared/Signals.ts"
import { Otel } from "../src/otel/index.ts"
import { run } from "./repair/Job.ts"
import { asJson, asText, exitCodeOf, wordsOf } from "./repair/Text.ts"
import { eventLine } from "./shared/Table.ts"

const text = (name: string, description: string) =>
  Flag.String(name).pipe(Flag.withDescription(description), Flag.optional)

const yes = (name: string, description: string) =>
  Flag.Boolean(name).pipe(Flag.withDescription(description), Flag.withDefault(false))

const flags = {
  project: text("project", "The folder of a project whose tests fail; the built-in one unless given"),
  test: text("test", 'How its tests are run, such as "npm test"; "node --test" unless given'),
  inPlace: yes("in-place", "Change the project itself instead of a copy"),
  steps: text("steps", "Cap on decisions; 60 unless given"),
  toolCalls: text("tool-calls", "Cap on tool calls; 120 unless given"),
  money: text("money", 'Cap on money, such as "0.50 USD"'),
  wallClock: text("wall-clock", 'Time limit, such as "5 minutes"'),
  price: text("price", 'Price of the model in USD per million tokens, "INPUT/OUTPUT"'),
  resume: text("resume", "Go on with this run"),
  json: yes("json", "Print one JSON object"),
}

const cancelled = cancellation()

const command = Command.make("repair", flags, ({ json, inPlace, ...given }) =>
  Effect.gen(function* () {
    const startMillis = Date.now()
    const done = yield* run({
      project: Option.getOrUndefined(given.project),
      test: Option.getOrUndefined(given.test),
      inPlace,
      steps: Option.getOrUndefined(given.steps),
      toolCalls: Option.getOrUndefined(given.toolCalls),
      money: Option.getOrUndefined(given.money),
      wallClock: Option.getOrUndefined(given.wallClock),
      price: Option.getOrUndefined(given.price),
      resume: Option.getOrUndefined(given.resume),
      useModel: (process.env["OPENAI_API_KEY"] ?? "") !== "",
      folder: ".bursar",
      cancelled,
      onEvent: (event) => {
        const line = json ? undefined : eventLine(event, startMillis, wordsOf)
        if (line !== undefined) console.log(line)
      },
    })
    console.log(json ? asJson(done) : asText(done))
    process.exitCode = exitCodeOf(done)
  }),
).pipe(Command.withDescription("Repairs a project until its tests pass, on a budget"))

/** An option that cannot be used, a run that cannot go on: a sentence for the user, nothing was spent. */
const wrongInput = new Set(["WrongOption", "BudgetError", "JournalError", "ResumeError", "CheckError", "ShowHelp"])

const exitCodes: Readonly<Record<string, number>> = { Cancelled: 130 }

const program = command.pipe(
  Command.run({ version: "0.1.0" }),
  Effect.provide(Layer.mergeAll(NodeServices.layer, Otel.layerConfig({}))),
)

const exit = await Effect.runPromiseExit(program)
if (Exit.isFailure(exit)) {
  const error: unknown = Cause.squash(exit.cause)
  const tag = typeof error === "object" && error !== null && "_tag" in error ? String(error._tag) : ""
  if (tag !== "ShowHelp") console.error(sentenceOf(error))
  process.exitCode = exitCodes[tag] ?? (wrongInput.has(tag) ? 2 : 1)
}
