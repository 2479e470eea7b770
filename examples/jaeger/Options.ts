/**
 * The options of `npm run jaeger`.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { parseArgs } from "node:util"
import * as Effect from "effect/Effect"
import { wrong, type WrongOption } from "../shared/Options.ts"
import * as Config from "./Config.ts"

/** What `npm run jaeger` was asked for. */
export interface Given {
  readonly onlyBuild: boolean
  readonly ports: Partial<Config.Ports>
  /** How many runs the sampler keeps, in percent; undefined to pass on everything as it comes. */
  readonly keep: number | undefined
  /** A folder with the pages of a built jaeger-ui. */
  readonly ui: string | undefined
  readonly storage: string
}

const usage =
  "npm run jaeger -- [--build] [--free-ports] [--port NAME=NUMBER] [--keep PERCENT] [--ui DIR] [--storage DIR]"

const parsed = (args: ReadonlyArray<string>) =>
  parseArgs({
    args: [...args],
    options: {
      build: { type: "boolean", default: false },
      "free-ports": { type: "boolean", default: false },
      port: { type: "string", multiple: true, default: [] },
      keep: { type: "string" },
      ui: { type: "string" },
      storage: { type: "string", default: ".bursar/jaeger" },
    },
  }).values

/** What the arguments ask for. */
export const given = (args: ReadonlyArray<string>): Effect.Effect<Given, WrongOption> =>
  Effect.gen(function* () {
    const values = yield* Effect.try({ try: () => parsed(args), catch: unknownIn }).pipe(
      Effect.catch((option) => wrong(option, undefined, `use ${usage}`)),
    )
    const free = values["free-ports"] ? Config.portNames.map((name) => [name, 0] as const) : []
    const chosen = yield* Effect.forEach(values.port, portOf)
    return {
      onlyBuild: values.build,
      ports: Object.fromEntries([...free, ...chosen]) as Partial<Config.Ports>,
      keep: yield* percentOf(values.keep),
      ui: yield* pagesIn(values.ui),
      storage: values.storage,
    }
  })

const unknownIn = (error: unknown): string => /'-*([^' ]+)/.exec(String(error))?.[1] ?? "?"

const portOf = (text: string): Effect.Effect<readonly [Config.PortName, number], WrongOption> => {
  const [, name, number] = /^([a-z-]+)=(\d{1,5})$/.exec(text) ?? []
  const known = Config.portNames.find((one) => one === name)
  return known === undefined || Number(number) > 65_535
    ? wrong("port", text, `give NAME=NUMBER, with a name of ${Config.portNames.join(", ")} and 0 for any free port`)
    : Effect.succeed([known, Number(number)])
}

const percentOf = (text: string | undefined): Effect.Effect<number | undefined, WrongOption> =>
  text === undefined || (/^\d{1,3}(\.\d+)?$/.test(text) && Number(text) <= 100)
    ? Effect.succeed(text === undefined ? undefined : Number(text))
    : wrong("keep", text, "give a percentage from 0 to 100")

const pagesIn = (folder: string | undefined): Effect.Effect<string | undefined, WrongOption> => {
  if (folder === undefined) return Effect.succeed(undefined)
  return fs.existsSync(path.join(folder, "index.html"))
    ? Effect.succeed(path.resolve(folder))
    : wrong("ui", folder, "give the folder of a built jaeger-ui, with its index.html")
}
