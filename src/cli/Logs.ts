/**
 * Finding and reading the logs of runs: by the name of the run in a folder, or by the path of the file.
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import type * as PlatformError from "effect/PlatformError"
import * as Schema from "effect/Schema"
import * as Reading from "../journal/Reading.ts"

/** A command that cannot do what it was asked to: what is wrong, and the remedy, in a sentence. */
export class Unusable extends Schema.TaggedError<Unusable>()("Unusable", { message: Schema.String }) {}

const unusable = (message: string): Effect.Effect<never, Unusable> => Effect.fail(new Unusable({ message }))

/** A log that was read as far as it can be read. */
export interface Log extends Reading.Read {
  readonly file: string
}

/**
 * Reads the log of a run: `run` is the name of one in `directory`, or the path of a `.jsonl` file.
 *
 * **Fails with** `Unusable` when there is no such log, or no line of it can be read.
 */
export const read = (run: string, directory: string): Effect.Effect<Log, Unusable, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const path = yield* Path.Path
    const isPath = run.endsWith(ending)
    if (run.endsWith(contentEnding)) {
      return yield* unusable(`${run} holds the texts of a log: name the log itself, the file without ".content"`)
    }
    const file = isPath ? run : path.join(directory, `${run}${ending}`)
    const remedy = isPath
      ? "give the path of a log"
      : `"bursar runs --dir ${directory}" lists what is there; --dir names another folder`
    const log = yield* textOf(file, { missing: `there is no log ${file}: ${remedy}` })
    const content = yield* textOf(file.slice(0, -ending.length) + contentEnding, { missing: undefined })
    const readable = Reading.read({ log, content })
    const first = readable.unreadable.find((line) => line.file === "log")
    if (readable.events.length === 0 && first !== undefined) {
      return yield* unusable(`${file} is not the log of a run (line ${first.line}: ${first.what}): ${remedy}`)
    }
    return { ...readable, file }
  })

/**
 * The names of the runs in a folder, in order.
 *
 * **Fails with** `Unusable` when there is no such folder.
 */
export const runs = (directory: string): Effect.Effect<ReadonlyArray<string>, Unusable, FileSystem.FileSystem> =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const names = yield* fs
      .readDirectory(directory)
      .pipe(Effect.catch((error) => unusable(`there are no runs in ${directory} (${reasonOf(error)}): ${otherFolder}`)))
    return names
      .filter((name) => name.endsWith(ending) && !name.endsWith(contentEnding))
      .map((name) => name.slice(0, -ending.length))
      .toSorted()
  })

const ending = ".jsonl"
const contentEnding = ".content.jsonl"

const otherFolder = "name the folder of the journal with --dir"

/** The text of a file; where it is missing the given sentence, or nothing at all where none is given. */
const textOf = (
  file: string,
  of: { readonly missing: string | undefined },
): Effect.Effect<string, Unusable, FileSystem.FileSystem> =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    return yield* fs.readFileString(file)
  }).pipe(
    Effect.catch((error) => {
      if (error.reason._tag !== "NotFound") {
        return unusable(`${file} cannot be read (${reasonOf(error)}): give a file that you may read`)
      }
      return of.missing === undefined ? Effect.succeed("") : unusable(of.missing)
    }),
  )

const reasonOf = (error: PlatformError.PlatformError): string => {
  const { _tag: tag } = error.reason
  return (
    { NotFound: "not found", PermissionDenied: "no permission", BadResource: "not a file of that kind" }[
      tag as string
    ] ?? tag
  )
}
