/**
 * The command `bursar`: looking at runs after the fact, from their logs alone. It executes nothing and writes nothing.
 *
 * | exit code | meaning |
 * | --- | --- |
 * | 0 | sound, equal, shown |
 * | 1 | defects were found, the replay differs, or a part of the log cannot be read |
 * | 2 | wrong usage, or no log that can be read; a sentence on stderr says what is wrong and the remedy |
 */
import * as Argument from "effect/cli/Argument"
import * as CliConfig from "effect/cli/CliConfig"
import * as CliOutput from "effect/cli/CliOutput"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Audit from "../journal/Audit.ts"
import * as Metrics from "../journal/Metrics.ts"
import * as Replay from "../journal/Replay.ts"
import * as Show from "../journal/Show.ts"
import { harmless, inOneLine } from "../journal/show/Words.ts"
import * as Logs from "./Logs.ts"
import { auditText, damageIn, type Listed, metricsText, replayText, runsText } from "./Text.ts"

/** The command has done its work, and this is its exit code. */
class Exits extends Schema.TaggedError<Exits>()("Exits", { code: Schema.Finite }) {}

const exits = (isFine: boolean): Effect.Effect<void, Exits> =>
  isFine ? Effect.void : Effect.fail(new Exits({ code: 1 }))

const run = Argument.String("run").pipe(
  Argument.withDescription("The name of a run in the folder, or the path of its .jsonl log"),
)

const dir = Flag.String("dir").pipe(
  Flag.withDescription("The folder of the journal"),
  Flag.withMetavar("DIR"),
  Flag.withDefault(".bursar/runs"),
)

const json = Flag.Boolean("json").pipe(
  Flag.withDescription("Print JSON"),
  Flag.withDefault(false),
  Flag.withoutNegation,
)

const print = (lines: ReadonlyArray<string>): Effect.Effect<void> => Console.log(lines.map(harmless).join("\n"))

const printJson = (value: unknown): Effect.Effect<void> => Console.log(JSON.stringify(value, null, 2))

const audit = Command.make("audit", { run, dir, json }, (input) =>
  Effect.gen(function* () {
    const log = yield* Logs.read(input.run, input.dir)
    const found = Audit.audit(log.events)
    const { file, isCutOff, unreadable } = log
    const isSound = found.isSound && unreadable.length === 0
    yield* input.json ? printJson({ file, ...found, isSound, unreadable, isCutOff }) : print(auditText(found, log))
    yield* exits(isSound)
  }),
).pipe(
  Command.withDescription(
    "Check a run from its log: nothing missing, nothing twice, every call with one result, the books right",
  ),
  Command.withShortDescription("Check a run from its log"),
  Command.withExamples([
    { command: "bursar audit 20261130-101502-k3j2xq", description: "A run in .bursar/runs" },
    { command: "bursar audit logs/run.jsonl --json", description: "A log anywhere, for a program" },
  ]),
)

const replay = Command.make("replay", { run, dir, json }, (input) =>
  Effect.gen(function* () {
    const log = yield* Logs.read(input.run, input.dir)
    const found = Replay.replay(log.events)
    const { file, isCutOff, unreadable } = log
    const equal = found.equal && unreadable.length === 0
    yield* input.json
      ? printJson({ file, ...found, equal, unreadable, isCutOff })
      : print([...replayText(found), ...damageIn(log)])
    yield* exits(equal)
  }),
).pipe(
  Command.withDescription(
    "Rebuild the books and the state of every agent from the log and compare them with what was recorded; nothing is executed",
  ),
  Command.withShortDescription("Rebuild books and states and compare"),
)

const show = Command.make("show", { run, dir, json }, (input) =>
  Effect.gen(function* () {
    const log = yield* Logs.read(input.run, input.dir)
    const { file, events, isCutOff, unreadable } = log
    yield* input.json
      ? printJson({ file, ...Show.summarize(events), unreadable, isCutOff })
      : print([...Show.show(events).split("\n"), ...damageIn(log)])
    yield* exits(unreadable.length === 0)
  }),
).pipe(
  Command.withDescription("Print a run as a tree: agents, steps, calls, checks, costs, and how each ended"),
  Command.withShortDescription("Print a run as a tree"),
)

const listed = (name: string, directory: string) =>
  Logs.read(name, directory).pipe(
    Effect.map(({ events }): Listed => ({ run: name, summary: Show.summarize(events), problem: undefined })),
    Effect.catch((error) => Effect.succeed<Listed>({ run: name, summary: undefined, problem: error.message })),
  )

const runs = Command.make("runs", { dir, json }, (input) =>
  Effect.gen(function* () {
    const names = yield* Logs.runs(input.dir)
    const found = yield* Effect.forEach(names, (name) => listed(name, input.dir))
    yield* input.json
      ? printJson(found.map(({ run, summary, problem }) => ({ ...summary, run, problem })))
      : print(runsText(found, input.dir))
  }),
).pipe(Command.withDescription("List the runs of a folder"))

const some = Argument.String("run").pipe(
  Argument.withDescription("Runs, by name or path; all of the folder when none is given"),
  Argument.variadic(),
)

const metrics = Command.make("metrics", { runs: some, dir, json }, (input) =>
  Effect.gen(function* () {
    const names = input.runs.length === 0 ? yield* Logs.runs(input.dir) : input.runs
    const logs = yield* Effect.forEach(names, (name) => Logs.read(name, input.dir))
    const found = Metrics.measure(logs.map(({ events }) => events))
    const damaged = logs.filter(({ unreadable }) => unreadable.length > 0)
    const damage = damaged.map(({ file, unreadable }) => ({ file, unreadable: unreadable.length }))
    yield* input.json
      ? printJson({ ...found, damaged: damage })
      : print([
          ...metricsText(found),
          ...damage.map(
            ({ file, unreadable }) => `WRONG   ${unreadable} lines of ${file} cannot be read and count for nothing`,
          ),
        ])
    yield* exits(damaged.length === 0)
  }),
).pipe(
  Command.withDescription("Figures of many runs: successes, steps, time, cost, errors, by the reason they stopped for"),
  Command.withShortDescription("Figures of many runs"),
)

const bursar = Command.make("bursar").pipe(
  Command.withDescription("Look at runs of agents after the fact, from their journals alone"),
  Command.withSubcommands([audit, replay, show, runs, metrics]),
)

/** Help where it was asked for; else one sentence about what is wrong. */
const presenter: CliOutput.Presenter = {
  present: (event) => {
    if (event._tag !== "InvalidInvocation") return CliOutput.defaultPresenter.present(event)
    const path = event.commandPath.join(" ")
    const what = event.errors.map(({ message }) => inOneLine(message)).join("; ")
    return Console.error(`${path}: ${what}: see "${path} --help"`)
  },
}

const settings = Layer.mergeAll(
  CliOutput.layerPresenter(presenter),
  CliConfig.layer({ builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions] }),
)

/**
 * Runs the command with its arguments and answers with the exit code.
 *
 * @category running
 * @since 0.1.0
 */
export const main = (args: ReadonlyArray<string>, version: string): Effect.Effect<number, never, Command.Environment> =>
  Command.runWith(bursar, { version })(args).pipe(
    Effect.as(0),
    Effect.catchTags({
      Exits: ({ code }) => Effect.succeed(code),
      Unusable: ({ message }) => Effect.as(Console.error(`bursar: ${inOneLine(message)}`), 2),
    }),
    Effect.orElseSucceed(() => 2),
    Effect.provide(settings),
  )
