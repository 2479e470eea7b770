/**
 * Patterns of file names: `*` within one name, `**` over folders, `?`, `[abc]`, `{a,b}`. A name that starts with a dot is
 * a name like any other.
 */
import * as path from "node:path"

/** Stands for the dot, which the matcher of Node treats specially at the start of a name. */
const dot = "\uE000"

/** A pattern as the matcher gets it. The dots of a range such as `{1..3}` stay. */
export const patternForMatcher = (pattern: string): string =>
  pattern.replace(/^\.\//, "").replaceAll(/\{[^{},/]*\.\.[^{},/]*\}|\./g, (found) => (found === "." ? dot : found))

/** A path as the matcher gets it. */
export const pathForMatcher = (relative: string): string => relative.replaceAll(".", dot)

/**
 * Whether one of the patterns names this path or a folder that it lies in. For patterns of the developer: one of a model
 * can take for ever.
 */
export const covers = (patterns: ReadonlyArray<string>): ((relative: string) => boolean) => {
  if (patterns.length === 0) return () => false
  const known = patterns.map((pattern) => patternForMatcher(pattern.replace(/\/$/, "")))
  return (relative) => {
    const parts = pathForMatcher(relative).split("/")
    return parts.some((_, index) => {
      const upTo = parts.slice(0, index + 1).join("/")
      return known.some((pattern) => path.posix.matchesGlob(upTo, pattern))
    })
  }
}
