/**
 * Process groups: a process that was started as the leader of a group of its own, and everything it started. They are
 * ended together, and whether they are gone is asked of the system.
 */
import * as fs from "node:fs"
import * as Effect from "effect/Effect"
import * as ToolError from "../../tool/ToolError.ts"
import { codeOf } from "./errno.ts"

/** Groups that are not known to be gone. When this process exits they go with it. */
const living = new Set<number>()
let watching = false

/** Remembers a group until {@link end} has seen it gone. */
export const remember = (group: number): void => {
  living.add(group)
  if (watching) return
  watching = true
  process.on("exit", () => {
    for (const group of living) signal(group, "SIGKILL")
  })
}

/**
 * Ends a group: asks it to, and after `graceMillis` does not ask any more. Comes back when no process of it is left.
 *
 * **Fails with** a fatal `EUNENDED` when what is left belongs to somebody else and may not be ended.
 */
export const end = (group: number, graceMillis: number): Effect.Effect<void, ToolError.ToolError> =>
  Effect.callback((resume) => {
    const startMillis = performance.now()
    const wait = pauses()
    let killing = false
    const look = (): void => {
      if (!isAlive(group)) {
        living.delete(group)
        resume(Effect.void)
        return
      }
      killing ||= performance.now() - startMillis >= graceMillis
      // Again and again: a process that was being started at that moment may have missed it.
      if (killing && signal(group, "SIGKILL") === "EPERM") return resume(Effect.fail(unended(group)))
      const left = killing ? Infinity : graceMillis - (performance.now() - startMillis)
      setTimeout(look, Math.min(wait(), left))
    }
    if (isAlive(group)) signal(group, "SIGTERM")
    look()
  })

/** Short pauses first: most processes end at once. */
const pauses = (): (() => number) => {
  let millis = 2
  return () => (millis = Math.min(millis * 1.5, 100))
}

const unended = (group: number): ToolError.ToolError =>
  ToolError.fatal("EUNENDED", `processes of the group ${group} belong to another user and could not be ended`)

/** Sends a signal to every process of a group; the code of what went wrong. */
const signal = (group: number, name: NodeJS.Signals | 0): string | undefined => {
  try {
    process.kill(-group, name)
    return undefined
  } catch (error) {
    return codeOf(error)
  }
}

/**
 * Whether a group has a process that runs. One that has ended and waits to be collected does not count: in a container
 * whose first process collects nobody it would wait for ever.
 */
export const isAlive = (group: number): boolean => {
  const code = signal(group, 0)
  if (code === "ESRCH") return false
  // Elsewhere than on Linux this is what a group of such processes answers.
  if (process.platform !== "linux") return code !== "EPERM"
  return hasRunning(group)
}

const hasRunning = (group: number): boolean => {
  let processes: ReadonlyArray<string>
  try {
    processes = fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name))
  } catch {
    return true
  }
  return processes.some((pid) => {
    try {
      // "pid (name) state parent group ...", where the name may contain anything.
      const stat = fs.readFileSync(`/proc/${pid}/stat`, "utf8")
      const [state, , of] = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
      return Number(of) === group && state !== "Z" && state !== "X"
    } catch {
      return false
    }
  })
}
