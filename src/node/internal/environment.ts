/**
 * The environment of a process that was started for a model: a few names, and never the whole of ours, in which keys and
 * passwords lie.
 */
import * as path from "node:path"

/** What a process needs to find programs and to speak the language of the user. */
export const passedOn = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"]

/** The environment with `given` on top of what is passed on. */
export const environment = (given: Readonly<Record<string, string>>): Record<string, string> => {
  const own = passedOn.flatMap((name) => {
    const value = process.env[name]
    if (value === undefined) return []
    return [[name, name === "PATH" ? absoluteOnly(value) : value] as const]
  })
  return { ...Object.fromEntries(own), ...given }
}

/** Without what would look for programs in the folder that the model writes to. */
const absoluteOnly = (value: string): string =>
  value
    .split(path.delimiter)
    .filter((folder) => path.isAbsolute(folder))
    .join(path.delimiter)
