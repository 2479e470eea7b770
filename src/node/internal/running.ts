/**
 * Whether a process is still there, and whether it is the one that was meant: numbers of processes come again.
 */
import * as fs from "node:fs"

export const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM"
  }
}

/** When a process started, in ticks: two processes of one number differ in it. 0 where the system does not tell. */
export const startOf = (pid: number): number =>
  Number(textOf(`/proc/${pid}/stat`).split(") ").at(-1)?.split(" ")[19] ?? 0)

/** The text of a file; empty where it cannot be read. */
export const textOf = (file: string): string => {
  try {
    return fs.readFileSync(file, "utf8")
  } catch {
    return ""
  }
}
