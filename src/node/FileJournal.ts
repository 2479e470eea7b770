/**
 * A journal on disk: one folder, and for each run a log `<run>.jsonl` and beside it `<run>.content.jsonl`, where the
 * texts lie that the log refers to by hash. Both are only ever appended to.
 *
 * What was recorded is written before each effect on the outside world and after it, so a killed process loses at most
 * what it had decided since. A last line that was cut off in the middle is taken away when the run is resumed. While a
 * process writes a log, `<run>.lock` keeps others from doing so.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { Recorded } from "../event/Event.ts"
import { Journal, JournalError, type Log, makeLog, nameTaken, type Reopened } from "../journal/Journal.ts"
import * as Line from "../journal/Line.ts"
import * as Reading from "../journal/Reading.ts"
import { appender, type Appender, lock, wholeLines } from "./internal/files.ts"

/**
 * Where and how to keep journals.
 *
 * @category journal
 * @since 0.1.0
 */
export interface Options {
  /** The folder; made when it is missing. */
  readonly directory: string
  /** `drop` keeps hashes only: such a run can be audited, but not resumed. */
  readonly content?: "keep" | "drop"
  /** Waits at each write until the disk has it; slower, and safe against a power cut. */
  readonly fsync?: boolean
}

/**
 * Keeps the journal of every run in a folder.
 *
 * **Fails with** `JournalError`, when a run starts and its file cannot be written or exists already. A write that fails
 * later is a defect: nothing may be spent that is not on record.
 *
 * **Example** (A run that leaves a log)
 *
 * ```ts
 * import { Agent, Policy, Proposal } from "bursar"
 * import { FileJournal } from "bursar/node"
 * import * as Effect from "effect/Effect"
 * import { existsSync, mkdtempSync } from "node:fs"
 * import { tmpdir } from "node:os"
 * import { join } from "node:path"
 *
 * const directory = mkdtempSync(join(tmpdir(), "bursar-"))
 * const echo = Agent.make("echo", { policy: Policy.make((view) => Proposal.finish(view.task)) })
 * const outcome = await Effect.runPromise(
 *   Agent.run(echo, "hello", { budget: { steps: 2 } }).pipe(Effect.provide(FileJournal.layer({ directory }))),
 * )
 * existsSync(outcome.report.journal ?? "") // => true
 * ```
 *
 * @category journal
 * @since 0.1.0
 */
export const layer = (options: Options): Layer.Layer<never> => Layer.succeed(Journal)(make(options))

/** The journal that {@link layer} provides. */
export const make = (options: Options): Journal => ({
  open: (run) =>
    Effect.gen(function* () {
      const paths = pathsOf(options.directory, run)
      yield* attempt(paths.log, () => fs.mkdirSync(options.directory, { recursive: true }))
      // A process may have died before it wrote the first line: then there is no run of that name.
      if (fs.existsSync(paths.log) && wholeLines(paths.log).bytes > 0) return yield* Effect.fail(nameTaken(paths.log))
      return yield* openLog(options, run, { firstSeq: 0, kept: new Set() })
    }),
  reopen: (run) =>
    Effect.gen(function* (): Effect.fn.Return<Reopened, JournalError, Scope.Scope> {
      const paths = pathsOf(options.directory, run)
      if (!fs.existsSync(paths.log)) return yield* Effect.fail(missing(paths.log))
      yield* locked(paths)
      const { events, kept, bytes } = yield* readFiles(paths)
      yield* attempt(paths.log, () => {
        fs.truncateSync(paths.log, bytes.log)
        if (fs.existsSync(paths.content)) fs.truncateSync(paths.content, bytes.content)
      })
      const log = yield* opened(options, run, { firstSeq: (events.at(-1)?.seq ?? -1) + 1, kept })
      return { log, events }
    }),
})

/**
 * The events of a run, in order, with their texts where they were kept. A last line that was cut off is left out.
 *
 * **Fails with** `JournalError` when there is no such run, or a line cannot be read.
 *
 * @category reading
 * @since 0.1.0
 */
export const read = (options: {
  readonly directory: string
  readonly run: string
}): Effect.Effect<ReadonlyArray<Recorded>, JournalError> =>
  Effect.suspend(() => {
    const paths = pathsOf(options.directory, options.run)
    return fs.existsSync(paths.log)
      ? Effect.map(readFiles(paths), ({ events }) => events)
      : Effect.fail(missing(paths.log))
  })

/**
 * The names of the runs that are kept in a folder, oldest name first.
 *
 * @category reading
 * @since 0.1.0
 */
export const runs = (directory: string): Effect.Effect<ReadonlyArray<string>, JournalError> =>
  attempt(directory, () =>
    fs
      .readdirSync(directory)
      .filter((name) => name.endsWith(".jsonl") && !name.endsWith(".content.jsonl"))
      .map((name) => name.slice(0, -".jsonl".length))
      .toSorted(),
  )

interface Paths {
  readonly log: string
  readonly content: string
  readonly lock: string
}

const pathsOf = (directory: string, run: string): Paths => ({
  log: path.join(directory, `${run}.jsonl`),
  content: path.join(directory, `${run}.content.jsonl`),
  lock: path.join(directory, `${run}.lock`),
})

const missing = (location: string): JournalError =>
  new JournalError({ location, reason: "there is no such run", remedy: "name a run whose log is in that folder" })

const attempt = <A>(location: string, run: () => A): Effect.Effect<A, JournalError> =>
  Effect.try({
    try: run,
    catch: (error) =>
      new JournalError({
        location,
        reason: error instanceof Error ? error.message : String(error),
        remedy: "give a folder that can be written",
      }),
  })

// --- writing

interface From {
  readonly firstSeq: number
  /** Hashes whose texts are in the side store already. */
  readonly kept: Set<string>
}

const openLog = (options: Options, run: string, from: From): Effect.Effect<Log, JournalError, Scope.Scope> =>
  Effect.gen(function* () {
    const paths = pathsOf(options.directory, run)
    yield* locked(paths)
    yield* attempt(paths.log, () => {
      for (const file of [paths.log, paths.content]) if (fs.existsSync(file)) fs.truncateSync(file)
    })
    return yield* opened(options, run, from)
  })

const locked = ({ lock: file, log }: Paths): Effect.Effect<void, JournalError, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.flatMap(
      attempt(log, () => lock(file)),
      (taken) => (typeof taken === "number" ? Effect.fail(inUse(log, taken)) : Effect.succeed(taken)),
    ),
    (unlock) => Effect.sync(unlock),
  )

const inUse = (location: string, pid: number): JournalError =>
  new JournalError({
    location,
    reason: `the process ${pid} is writing it`,
    remedy: "wait until that process has ended, or end it",
  })

const opened = (options: Options, run: string, from: From): Effect.Effect<Log, JournalError, Scope.Scope> => {
  const paths = pathsOf(options.directory, run)
  const files = attempt(paths.log, () => {
    const fsync = options.fsync ?? false
    const log = appender(paths.log, fsync)
    return { log, store: appender(paths.content, fsync) }
  })
  // The texts first: a line in the log may count on them.
  const write = (to: { readonly log: Appender; readonly store: Appender }) => {
    to.store.write()
    to.log.write()
  }
  return Effect.acquireRelease(files, (to) =>
    Effect.sync(() => {
      try {
        write(to)
      } finally {
        to.log.close()
        to.store.close()
      }
    }),
  ).pipe(
    Effect.flatMap((to) => {
      const { kept, firstSeq } = from
      const sink = (recorded: Recorded) => {
        const { line, contents } = Line.encode(recorded)
        to.log.add(line)
        if (options.content === "drop") return
        for (const content of contents) if (!kept.has(content.hash)) to.store.add(JSON.stringify(content))
        for (const content of contents) kept.add(content.hash)
      }
      return makeLog({ run, sink, firstSeq, flush: Effect.sync(() => write(to)), location: paths.log })
    }),
  )
}

// --- reading

interface Whole {
  readonly events: ReadonlyArray<Recorded>
  /** Hashes whose texts are in the side store. */
  readonly kept: Set<string>
  /** How much of each file is whole lines. */
  readonly bytes: { readonly log: number; readonly content: number }
}

const readFiles = (paths: Paths): Effect.Effect<Whole, JournalError> =>
  Effect.gen(function* () {
    const log = yield* attempt(paths.log, () => wholeLines(paths.log))
    const content = yield* attempt(paths.content, () => wholeLines(paths.content))
    const { events, kept, unreadable } = Reading.read({ log: log.text, content: content.text })
    const [first] = unreadable
    if (first !== undefined) {
      return yield* new JournalError({
        location: paths[first.file],
        reason: `line ${first.line}: ${first.what}`,
        remedy: "restore the file; a log is only ever appended to",
      })
    }
    return { events, kept: new Set(kept), bytes: { log: log.bytes, content: content.bytes } }
  })
