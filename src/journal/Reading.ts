/**
 * Reading the two files of a run as far as they can be read: the log, a line for each event, and beside it the texts that
 * the log refers to by hash. A journal refuses to go on from a damaged log; this one says what is wrong with it and gives
 * what is left.
 */
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Recorded } from "../event/Event.ts"
import * as Line from "./Line.ts"

/**
 * A line that cannot be read, in words.
 *
 * **Units**: lines are counted from 1.
 *
 * @category reading
 * @since 0.1.0
 */
export interface Unreadable {
  readonly file: "log" | "content"
  readonly line: number
  readonly what: string
}

/**
 * What could be read.
 *
 * @category reading
 * @since 0.1.0
 */
export interface Read {
  readonly events: ReadonlyArray<Recorded>
  readonly unreadable: ReadonlyArray<Unreadable>
  /** Hashes whose texts are there. */
  readonly kept: ReadonlyArray<string>
  /** True where the last line of the log was cut off, as by a process that was killed while it wrote. */
  readonly isCutOff: boolean
}

/**
 * Reads the text of a log and of the file of contents beside it.
 *
 * **Example** (A log of one event, and a line that is none)
 *
 * ```ts
 * const line = Line.encode({
 *   seq: 0,
 *   atMillis: 0,
 *   run: "r",
 *   event: { _tag: "RunEnded", agent: "a", reason: "completed", result: "full" },
 * }).line
 * const read = Reading.read({ log: `${line}\noops\n{"seq":`, content: "" })
 * read.events.length // => 1
 * read.unreadable // => [{ file: "log", line: 2, what: "it is not JSON" }]
 * read.isCutOff // => true
 * ```
 *
 * @category reading
 * @since 0.1.0
 */
export const read = (files: { readonly log: string; readonly content: string }): Read => {
  const unreadable: Array<Unreadable> = []
  const texts = new Map<string, string>()
  for (const [index, line] of wholeLines(files.content).entries()) {
    const stored = storedIn(line)
    if (stored === undefined) unreadable.push({ file: "content", line: index + 1, what: "it is no text with its hash" })
    else texts.set(stored.hash, stored.text)
  }
  const events: Array<Recorded> = []
  for (const [index, line] of wholeLines(files.log).entries()) {
    const decoded = Line.decode(line, (hash) => texts.get(hash))
    if (Result.isFailure(decoded)) unreadable.push({ file: "log", line: index + 1, what: decoded.failure })
    else if (Number.isNaN(decoded.success.atMillis)) unreadable.push({ file: "log", line: index + 1, what: noTime })
    else events.push(decoded.success)
  }
  return { events, unreadable, kept: [...texts.keys()], isCutOff: files.log !== "" && !files.log.endsWith("\n") }
}

const noTime = "its time cannot be read"

/** What stands behind the last line break was not written to its end. */
const wholeLines = (text: string): ReadonlyArray<string> => text.split("\n").slice(0, -1)

const Stored = Schema.fromJsonString(Schema.Struct({ hash: Schema.String, text: Schema.String }))

const decodeStored = Schema.decodeUnknownExit(Stored)

const storedIn = (line: string): Line.Stored | undefined => {
  const stored = decodeStored(line)
  return Exit.isSuccess(stored) ? stored.value : undefined
}
