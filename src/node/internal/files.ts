/**
 * Files of lines that are only ever appended to, and a lock beside them.
 */
import * as fs from "node:fs"
import { isRunning, startOf, textOf } from "./running.ts"

/** Collects lines and appends them in one write. */
export interface Appender {
  readonly add: (line: string) => void
  readonly write: () => void
  readonly close: () => void
}

/**
 * Lines are written whole or not at all: after a write that failed the file is cut back to what it was, and every further
 * write fails the same way, since what came after a line that is missing would be worth nothing.
 */
export const appender = (file: string, fsync: boolean): Appender => {
  const descriptor = fs.openSync(file, "a")
  let lines: Array<string> = []
  let size = fs.fstatSync(descriptor).size
  let failure: Error | undefined
  return {
    add: (line) => {
      lines.push(line)
    },
    write: () => {
      if (failure !== undefined) throw failure
      if (lines.length === 0) return
      const bytes = Buffer.from(`${lines.join("\n")}\n`)
      try {
        writeAll(descriptor, bytes)
        if (fsync) fs.fsyncSync(descriptor)
      } catch (error) {
        failure = error instanceof Error ? error : new Error(String(error))
        cutBack(descriptor, size)
        throw error
      }
      size += bytes.length
      lines = []
    },
    close: () => fs.closeSync(descriptor),
  }
}

/** A file that cannot even be cut back has half a line at its end, which is left out when it is read. */
const cutBack = (descriptor: number, size: number): void => {
  try {
    fs.ftruncateSync(descriptor, size)
  } catch {
    return
  }
}

const writeAll = (descriptor: number, bytes: Buffer): void => {
  for (let from = 0; from < bytes.length;) from += fs.writeSync(descriptor, bytes, from)
}

/** The whole lines of a file, and how many bytes they take; what stands behind the last line break was cut off. */
export const wholeLines = (file: string): { readonly text: string; readonly bytes: number } => {
  if (!fs.existsSync(file)) return { text: "", bytes: 0 }
  const content = fs.readFileSync(file)
  const bytes = content.lastIndexOf("\n") + 1
  return { text: content.toString("utf8", 0, bytes), bytes }
}

/**
 * Takes a lock file and answers with what gives it back, or with the process that has it. The lock of a process that is
 * gone counts for nothing.
 */
export const lock = (file: string): (() => void) | number => {
  const mine = `${process.pid} ${startOf(process.pid)}\n`
  const draft = `${file}.${process.pid}.${locks++}`
  fs.writeFileSync(draft, mine)
  try {
    for (;;) {
      if (took(draft, file)) return () => fs.rmSync(file, { force: true })
      const owner = ownerOf(file)
      if (owner !== undefined) return owner
      // Moved away under a name of our own, so that a lock that somebody takes at this moment is not the one removed.
      discard(file, `${draft}.stale`)
    }
  } finally {
    fs.rmSync(draft, { force: true })
  }
}

let locks = 0

/** A link is made whole or not at all: nobody ever sees a lock without its owner. */
const took = (draft: string, file: string): boolean => {
  try {
    fs.linkSync(draft, file)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false
    throw error
  }
}

/** Takes a lock away whose owner is gone; one that was taken meanwhile is put back. */
const discard = (file: string, aside: string): void => {
  try {
    fs.renameSync(file, aside)
  } catch {
    return
  }
  if (ownerOf(aside) !== undefined) took(aside, file)
  fs.rmSync(aside, { force: true })
}

/** The living process that a lock names. */
const ownerOf = (file: string): number | undefined => {
  const [pid = 0, start] = textOf(file).trim().split(" ").map(Number)
  return pid > 0 && isRunning(pid) && startOf(pid) === start ? pid : undefined
}
