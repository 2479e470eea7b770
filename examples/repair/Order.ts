/**
 * What a run was asked for, kept beside its journal, so that another process can go on with it: the folder it works in,
 * how its tests are run, who decides. The folder it works in is a copy, unless the user wants it otherwise.
 */
import * as fs from "node:fs/promises"
import * as path from "node:path"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Vector } from "./Team.ts"
import { WrongOption } from "../shared/Options.ts"

/** The order of a run. */
export const Order = Schema.Struct({
  version: Schema.Literal(1),
  run: Schema.String,
  /** The project as it was given. */
  project: Schema.String,
  /** The folder in which everybody works. */
  root: Schema.String,
  isCopy: Schema.Boolean,
  /** How the tests are run, in words; `node` is the Node of the process. */
  test: Schema.Array(Schema.String),
  decidedBy: Schema.Literals(["functions", "model"]),
  price: Schema.optionalKey(Schema.String),
  /** The exit code of the tests before anybody changed anything; null where a signal or the time ended them. */
  before: Schema.NullOr(Schema.Int),
})

export type Order = (typeof Order)["Type"]

/** Where things lie in the folder of all runs. */
export const placesOf = (folder: string, run: string) => ({
  runs: path.join(folder, "runs"),
  order: path.join(folder, "runs", `${run}.repair.json`),
  baseline: path.join(folder, "runs", `${run}.baseline.json`),
  work: path.resolve(folder, "repair", run),
})

/** A name for a run: the time and a few random letters. */
export const freshRun = (): string => {
  const [day, time] = new Date().toISOString().slice(0, 19).replaceAll(/[-:]/g, "").split("T")
  const random = Math.floor(Math.random() * 36 ** 6).toString(36)
  return `repair-${day}-${time}-${random.padStart(6, "0")}`
}

/** The tests run with the Node that runs this, whatever the `PATH` says. */
export const vectorOf = ({ test: [command = "", ...args] }: Order): Vector => ({
  command: command === "node" ? process.execPath : command,
  args,
})

/** On top of what commands are given anyway: programs that are scripts find the same Node. */
export const env = (): Readonly<Record<string, string>> => {
  const found = (process.env["PATH"] ?? "").split(path.delimiter).filter((folder) => path.isAbsolute(folder))
  return { PATH: [path.dirname(process.execPath), ...found].join(path.delimiter) }
}

/** What of a project is not copied: its history, and runs. */
const leftOut = new Set([".git", ".bursar"])

/** Copies a project. The new folder may lie in it. */
export const copy = (project: string, into: string): Effect.Effect<void, WrongOption> =>
  attempt("project", project, "could not be copied", async () => {
    await fs.mkdir(into, { recursive: true })
    for (const name of await fs.readdir(project)) {
      if (leftOut.has(name)) continue
      await fs.cp(path.join(project, name), path.join(into, name), { recursive: true, verbatimSymlinks: true })
    }
  })

/** Writes the order; there is either the whole of it or none. */
export const keep = (file: string, order: Order): Effect.Effect<void, WrongOption> =>
  attempt("project", order.project, "its order could not be kept", async () => {
    await fs.mkdir(path.dirname(file), { recursive: true })
    await fs.writeFile(`${file}.draft`, `${JSON.stringify(order, null, 2)}\n`)
    await fs.rename(`${file}.draft`, file)
  })

/** The order of an earlier run, whose folder and baseline are still there. */
export const find = (folder: string, run: string): Effect.Effect<Order, WrongOption> =>
  Effect.gen(function* () {
    const wrong = (remedy: string) => new WrongOption({ option: "resume", value: run, remedy })
    const places = placesOf(folder, run)
    const none = wrong(`name a run of this example in ${places.runs}`)
    if (!/^[\w-]+$/.test(run)) return yield* none
    const text = yield* Effect.mapError(
      Effect.tryPromise(() => fs.readFile(places.order, "utf8")),
      () => none,
    )
    const order = yield* Effect.mapError(Schema.decodeEffect(Schema.fromJsonString(Order))(text), () =>
      wrong(`${places.order} cannot be read: start a new run`),
    )
    for (const needed of [order.root, places.baseline]) {
      const isThere = yield* Effect.promise(() => fs.access(needed).then(...yesOrNo))
      if (!isThere) return yield* wrong(`${needed} is gone: start a new run`)
    }
    return order
  })

const yesOrNo = [() => true, () => false] as const

/** Takes away what was made for a run that did not come to start. */
export const discard = (folder: string, run: string): Effect.Effect<void> => {
  const { baseline, order, work } = placesOf(folder, run)
  return Effect.promise(async () => {
    for (const made of [work, baseline, order]) await fs.rm(made, { recursive: true, force: true })
  })
}

const attempt = (
  option: string,
  value: string,
  remedy: string,
  run: () => Promise<void>,
): Effect.Effect<void, WrongOption> =>
  Effect.tryPromise({
    try: run,
    catch: (error) =>
      new WrongOption({
        option,
        value,
        remedy: `${remedy}: ${error instanceof Error ? error.message : String(error)}`,
      }),
  })
