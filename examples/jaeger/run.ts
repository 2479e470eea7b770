/**
 * A real Jaeger and a real collector on this machine: `npm run jaeger`. The first time they are built, from Go modules,
 * which takes minutes; after that they are up in a second, until Ctrl-C.
 *
 * `--build` only builds. `--free-ports` takes ports that are free instead of the usual ones, `--port NAME=NUMBER` another
 * for one of them. `--keep PERCENT` puts the sampler of `otel-collector.yaml` to work: runs are judged when they are over,
 * and of those that nothing is remarkable about as many are kept; without it every span is passed on as it comes.
 * `--ui DIR` serves the pages of a built jaeger-ui. What Jaeger keeps lies in `.bursar/jaeger` or `--storage DIR`, for a
 * week.
 *
 * Exit codes: 0 built, or stopped by Ctrl-C; 1 one of the two failed; 2 an option or a port that cannot be used, or no Go.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Build from "./Build.ts"
import * as Config from "./Config.ts"
import { type Given, given } from "./Options.ts"
import * as Stack from "./Stack.ts"

const changeOf =
  ({ keep, ui }: Given) =>
  (config: Config.Config): Config.Config => {
    const sampled = keep === undefined ? Config.keepAll(config) : config
    return ui === undefined
      ? sampled
      : Config.set(sampled, ["jaeger", "extensions", "jaeger_query", "ui", "assets_path"], ui)
  }

const guide = ({ metrics, otlp, query }: Stack.Stack, { ui }: Given): string =>
  [
    "",
    "Jaeger and a collector are up. Send a run through them:",
    "",
    `  OTEL_EXPORTER_OTLP_ENDPOINT=${otlp} npm start`,
    "",
    "and read it:",
    "",
    ...(ui === undefined
      ? [
          `  curl -s '${query}/api/traces?service=bursar&limit=1' | jq '.data[].spans[].operationName'`,
          `  curl -sG '${query}/api/traces?service=bursar' --data-urlencode 'tags={"bursar.run.stop.reason":"budget:money"}'`,
          "",
          "This Jaeger has no pages, only its JSON API: they are no Go module. Give a built jaeger-ui with --ui DIR.",
        ]
      : [`  ${query}/search?service=bursar`]),
    `Metrics are at ${metrics}.`,
    "",
    "Ctrl-C stops both.",
  ].join("\n")

const say = (line: string): void => console.log(line)

const program = Effect.gen(function* () {
  const options = yield* given(process.argv.slice(2))
  const programs = yield* Build.programs(say)
  if (options.onlyBuild) return say(`${programs.collector}\n${programs.jaeger}`)
  const env = options.keep === undefined ? undefined : { BURSAR_KEEP_PERCENT: String(options.keep) }
  const { ports, storage } = options
  const stack = yield* Stack.start({ programs, storage, ports, change: changeOf(options), env })
  say(guide(stack, options))
  return yield* Effect.raceFirst(stack.collector.ended, stack.jaeger.ended)
}).pipe(Effect.scoped)

const refused = new Set(["WrongOption", "GoNeeded", "PortTaken"])

const fiber = Effect.runFork(program)
let signals = 0
const end = (): void => {
  // What still runs is killed as the process exits.
  if (++signals > 1) process.exit(1)
  fiber.interruptUnsafe()
}
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, end)

// npm passes a SIGTERM on to the shell between it and us, and no further.
const { ppid } = process
const watch = (): void => {
  if (process.ppid === ppid) return
  clearInterval(watching)
  end()
}
const watching = setInterval(watch, 500).unref()
if (process.env["npm_lifecycle_event"] === undefined) clearInterval(watching)

const exit = await Effect.runPromise(Fiber.await(fiber))
if (Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause)) {
  const error = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
  console.error(error?.message ?? Cause.pretty(exit.cause))
  process.exitCode = error !== undefined && refused.has(error._tag) ? 2 : 1
}
process.exit()
