/**
 * A journal on disk: one folder, and for each run a log `<run>.jsonl` and beside it `<run>.content.jsonl`, where the
 * texts lie that the log refers to by hash. Both are only ever appended to.
 *
 * What was recorded is written before each effect on the outside world, so a killed process loses at most what it had
 * decided since.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Journal, JournalError, type Log, makeLog } from "../journal/Journal.ts"
import * as Line from "../journal/Line.ts"

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
 * **Fails with** `JournalError`, when a run starts and its file cannot be written. A write that fails later is a defect:
 * nothing may be spent that is not on record.
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
export const layer = (options: Options): Layer.Layer<never> =>
  Layer.succeed(Journal)({ open: (run) => Effect.acquireRelease(openFiles(options, run), close) })

interface Files extends Log {
  readonly close: () => void
}

const openFiles = (options: Options, run: string): Effect.Effect<Files, JournalError> => {
  const location = path.join(options.directory, `${run}.jsonl`)
  return Effect.try({
    try: () => {
      fs.mkdirSync(options.directory, { recursive: true })
      const log = appender(location, options.fsync ?? false)
      const store = appender(path.join(options.directory, `${run}.content.jsonl`), options.fsync ?? false)
      return { log, store }
    },
    catch: (error) => new JournalError({ location, reason: error instanceof Error ? error.message : String(error) }),
  }).pipe(
    Effect.flatMap(({ log, store }) => {
      const kept = new Set<string>()
      const write = () => {
        store.write()
        log.write()
      }
      const sink: Parameters<typeof makeLog>[0]["sink"] = (recorded) => {
        const { line, contents } = Line.encode(recorded)
        log.add(line)
        if (options.content === "drop") return
        for (const content of contents) if (!kept.has(content.hash)) store.add(JSON.stringify(content))
        for (const content of contents) kept.add(content.hash)
      }
      return Effect.map(makeLog({ run, sink, flush: Effect.sync(write), location }), (made) => ({
        ...made,
        location,
        close: () => {
          write()
          log.close()
          store.close()
        },
      }))
    }),
  )
}

const close = (files: Files): Effect.Effect<void> => Effect.sync(files.close)

/** Collects lines and appends them in one write. */
const appender = (file: string, fsync: boolean) => {
  const descriptor = fs.openSync(file, "a")
  let lines: Array<string> = []
  return {
    add: (line: string): void => {
      lines.push(line)
    },
    write: (): void => {
      if (lines.length === 0) return
      const text = `${lines.join("\n")}\n`
      lines = []
      fs.writeFileSync(descriptor, text)
      if (fsync) fs.fsyncSync(descriptor)
    },
    close: (): void => fs.closeSync(descriptor),
  }
}
