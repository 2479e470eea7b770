/**
 * What became of the files of a folder since they were looked at before, and by how many lines.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { File } from "./tree.ts"

/** A file that is there or not there now as it was not before. */
export interface Change {
  readonly path: string
  readonly before: File | undefined
  readonly after: File | undefined
}

/**
 * What of the package `diff` is used. It takes the square of the lines that differ: texts that differ in more than `most`
 * lines are not compared, and others step by step where they differ in many, so that nothing stands still meanwhile.
 */
export interface Comparing {
  /** How many lines were removed and added. */
  readonly lines: (old: string, now: string, most: number) => Effect.Effect<number | undefined>
  /** The unified diff. */
  readonly patch: (old: Side, now: Side, most: number) => Effect.Effect<string | undefined>
}

interface Part {
  readonly added: boolean
  readonly removed: boolean
  readonly count: number
}

interface Side {
  readonly name: string
  readonly text: string
}

/** So many lines take some milliseconds. */
const atOnce = 300

/** Asks for little at once, and for more in steps. */
const bounded = <A>(
  most: number,
  ask: (bound: { readonly maxEditLength: number; readonly callback?: (found: A | undefined) => void }) => A | undefined,
): Effect.Effect<A | undefined> =>
  Effect.suspend(() => {
    const soon = ask({ maxEditLength: Math.min(most, atOnce) })
    if (soon !== undefined || most <= atOnce) return Effect.succeed(soon)
    return Effect.callback<A | undefined>((resume) => {
      ask({ maxEditLength: most, callback: (found) => resume(Effect.succeed(found)) })
    })
  })

/** The package is loaded when there is something to compare. */
export const load: Effect.Effect<Comparing, Cause.UnknownError> = Effect.map(
  Effect.tryPromise(() => import("diff")),
  ({ diffLines, FILE_HEADERS_ONLY, formatPatch, structuredPatch }): Comparing => ({
    lines: (old, now, most) =>
      Effect.map(
        bounded<ReadonlyArray<Part>>(most, (bound) => diffLines(old, now, bound)),
        (parts) => parts?.reduce((sum, part) => (part.added || part.removed ? sum + part.count : sum), 0),
      ),
    patch: (old, now, most) =>
      Effect.map(
        bounded<Parameters<typeof formatPatch>[0]>(most, (bound) => {
          const options = { context: 3, ...bound }
          return structuredPatch(old.name, now.name, old.text, now.text, undefined, undefined, options)
        }),
        (patch) => (patch === undefined ? undefined : formatPatch(patch, FILE_HEADERS_ONLY)),
      ),
  }),
)

/** The changes from `before` to `after`, in the order of their paths. */
export const between = (before: ReadonlyArray<File>, after: ReadonlyArray<File>): ReadonlyArray<Change> => {
  const old = new Map(before.map((file) => [file.path, file]))
  const now = new Map(after.map((file) => [file.path, file]))
  return [...new Set([...old.keys(), ...now.keys()])]
    .map((path) => ({ path, before: old.get(path), after: now.get(path) }))
    .filter((change) => change.before?.hash !== change.after?.hash)
    .toSorted((a, b) => (a.path < b.path ? -1 : 1))
}

/** The changes in words, so many at most. */
export const inWords = (changes: ReadonlyArray<Change>, most = 20): string => {
  const named = changes.slice(0, most).map((change) => `${kindOf(change)} ${change.path}`)
  return [...named, ...(changes.length > most ? [`and ${changes.length - most} more`] : [])].join(", ")
}

const kindOf = ({ after, before }: Change): string => {
  if (before === undefined) return "added"
  return after === undefined ? "removed" : "changed"
}

/**
 * Lines removed and lines added. Where there is no text to compare, or the texts have less in common than `most` lines of
 * difference allow to find out, every line counts.
 */
export const linesOf = (comparing: Comparing, { after, before }: Change, most: number): Effect.Effect<number> => {
  const all = (before?.lines ?? 0) + (after?.lines ?? 0)
  if (before?.text === undefined || after?.text === undefined) return Effect.succeed(all)
  return Effect.map(comparing.lines(before.text, after.text, most), (lines) => lines ?? all)
}

/** One change as a unified diff. */
export const patchOf = (comparing: Comparing, change: Change, most: number): Effect.Effect<string> => {
  const from = sideOf("a", change.path, change.before)
  const to = sideOf("b", change.path, change.after)
  const differ = `Files ${from.name} and ${to.name} differ`
  if (!isText(from) || !isText(to)) return Effect.succeed(`${differ}; one of them is no text or too large\n`)
  return Effect.map(comparing.patch(from, to, most), (patch) => patch ?? `${differ} in more than ${most} lines\n`)
}

const sideOf = (letter: string, path: string, file: File | undefined) =>
  file === undefined ? { name: "/dev/null", text: "" } : { name: `${letter}/${path}`, text: file.text }

const isText = (side: { readonly name: string; readonly text: string | undefined }): side is Side =>
  side.text !== undefined
