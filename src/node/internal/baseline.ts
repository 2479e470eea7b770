/**
 * What the files of a folder were, kept to compare them with what they have become.
 */
import * as path from "node:path"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Changes from "./changes.ts"
import { openRoot } from "./place.ts"
import { readIfThere, realPath, writeOnce } from "./store.ts"
import { clip } from "./text.ts"
import * as Tree from "./tree.ts"

/**
 * The files of a folder cannot be looked at, or what was stored of them cannot be used.
 *
 * @category errors
 * @since 0.1.0
 */
export class CheckError extends Schema.TaggedError<CheckError>()("CheckError", {
  location: Schema.String,
  reason: Schema.String,
  remedy: Schema.String,
}) {
  override get message(): string {
    return `${this.location} cannot be checked (${this.reason}): ${this.remedy}`
  }
}

// --- baselines

/**
 * What the files of a folder were at one moment; plain JSON. `.git`, `node_modules` and what `ignore` names are left out, so
 * what happens there is not seen. Symbolic links are not followed: where one leads is its content. Permissions of files are
 * not looked at.
 *
 * @category baselines
 * @since 0.1.0
 */
export const Baseline = Schema.Struct({
  version: Schema.Literal(1),
  ignore: Schema.Array(Schema.String),
  files: Schema.Array(Tree.File),
})

/** @since 0.1.0 */
export type Baseline = (typeof Baseline)["Type"]

/** **Units**: bytes. Of larger files only a digest is kept. */
const maxTextBytes = 1024 * 1024

const alwaysIgnored = ["**/.git", "**/node_modules"]

/**
 * Looks at the files of a folder before an agent changes them.
 *
 * With `store` it is written to that file once, and read from there when it exists: a run that goes on in another process
 * is compared with what there was before it began, not with what it had made of it by then. The file has to lie outside
 * the folder, out of reach of the agent.
 *
 * **Fails with** `CheckError` when the folder cannot be read, or the store cannot be used or was made with another `ignore`.
 *
 * **Example** (A baseline outlives its process)
 *
 * ```ts
 * import { Check } from "bursar/node"
 * import * as Effect from "effect/Effect"
 * import { mkdtempSync, writeFileSync } from "node:fs"
 * import { tmpdir } from "node:os"
 * import { join } from "node:path"
 *
 * const root = mkdtempSync(join(tmpdir(), "bursar-"))
 * const store = join(mkdtempSync(join(tmpdir(), "bursar-")), "baseline.json")
 * writeFileSync(join(root, "a.txt"), "one\n")
 * await Effect.runPromise(Check.baseline(root, { store }))
 *
 * writeFileSync(join(root, "a.txt"), "two\n")
 * const baseline = await Effect.runPromise(Check.baseline(root, { store }))
 * baseline.files[0]?.text // => "one\n"
 * await Effect.runPromise(Check.diff({ root, baseline }))
 * // => "--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,1 @@\n-one\n+two\n"
 * ```
 *
 * @category baselines
 * @since 0.1.0
 */
export const baseline = (
  root: string,
  options: { readonly store?: string; readonly ignore?: ReadonlyArray<string> } = {},
): Effect.Effect<Baseline, CheckError> => {
  const { ignore = [], store } = options
  const taking = Effect.map(
    filesOf(root, ignore, () => true),
    (files): Baseline => ({ version: 1, ignore, files }),
  )
  if (store === undefined) return taking
  return Effect.gen(function* () {
    yield* outOfReach(root, store)
    const stored = yield* storing(store, () => readIfThere(store))
    if (stored !== undefined) return yield* decoded(store, ignore, stored)
    const taken = yield* taking
    const written = yield* storing(store, () => writeOnce(store, JSON.stringify(taken)))
    return yield* decoded(store, ignore, written)
  })
}

/** The files of a folder as they are, with the texts of those that are wanted. */
export const filesOf = (
  root: string,
  ignore: ReadonlyArray<string>,
  wanted: (path: string, hash: string) => boolean,
): Effect.Effect<ReadonlyArray<Tree.File>, CheckError> =>
  openRoot(root).pipe(
    Effect.flatMap((real) =>
      Tree.take({ root: real.path, ignore: [...alwaysIgnored, ...ignore], wanted, maxTextBytes }),
    ),
    Effect.mapError(
      ({ message }) =>
        new CheckError({ location: root, reason: message, remedy: "give a folder whose files can be read" }),
    ),
  )

const outOfReach = (root: string, store: string): Effect.Effect<void, CheckError> =>
  Effect.gen(function* () {
    const [folder, file] = yield* storing(store, () => Promise.all([realPath(root), realPath(store)]))
    if (!file.startsWith(folder + path.sep)) return
    const reason = `the store ${store} lies in the folder itself`
    return yield* new CheckError({ location: root, reason, remedy: "keep it where the agent does not write" })
  })

const storing = <A>(store: string, run: () => Promise<A>): Effect.Effect<A, CheckError> =>
  Effect.tryPromise({
    try: run,
    catch: (error) =>
      new CheckError({ location: store, reason: String(error), remedy: "give a file that can be written" }),
  })

const decodeBaseline = Schema.decodeUnknownEffect(Schema.fromJsonString(Baseline))

const decoded = (store: string, ignore: ReadonlyArray<string>, text: string): Effect.Effect<Baseline, CheckError> =>
  Effect.gen(function* () {
    const found = yield* Effect.mapError(
      decodeBaseline(text),
      ({ message }) =>
        new CheckError({ location: store, reason: message, remedy: "restore the file; it is written once" }),
    )
    if (JSON.stringify(found.ignore) === JSON.stringify(ignore)) return found
    const reason = `it was made with ignore: ${JSON.stringify(found.ignore)}`
    return yield* new CheckError({ location: store, reason, remedy: "give the same globs, or another store" })
  })

// --- changes

/**
 * What became of a folder since a baseline: the paths that were added, removed or changed, and how many lines were removed
 * and added together; an altered line is one of each. A file without text, or that differs in more than some thousand
 * lines, counts with all its lines.
 *
 * @category baselines
 * @since 0.1.0
 */
export interface Since {
  readonly changedFiles: ReadonlyArray<string>
  readonly changedLines: number
}

/** A folder and what it was. */
export interface Compared {
  readonly root: string
  readonly baseline: Baseline
}

/**
 * Compares a folder with what it was.
 *
 * **Fails with** `CheckError` when it cannot be read or the package `diff` is not installed.
 *
 * @category baselines
 * @since 0.1.0
 */
export const since = (compared: Compared): Effect.Effect<Since, CheckError> =>
  Effect.flatMap(changesOf(compared), (changes) => summed(changes, fewLines))

/**
 * What became of a folder, as a unified diff; empty if nothing did. It needs the package `diff`.
 *
 * **Units**: at most `maxBytes` of it (256 KiB).
 *
 * @category baselines
 * @since 0.1.0
 */
export const diff = (compared: Compared & { readonly maxBytes?: number }): Effect.Effect<string, CheckError> =>
  Effect.gen(function* () {
    const changes = yield* changesOf(compared)
    if (changes.length === 0) return ""
    const comparing = yield* loaded
    const patches = yield* Effect.forEach(changes, (change) => Changes.patchOf(comparing, change, fewLines))
    return clip(patches.join(""), compared.maxBytes ?? 256 * 1024)
  })

/** In how many lines two texts may differ to be compared; where more may be changed, up to `mostLines`. */
export const fewLines = 1000
export const mostLines = 5000

/** What became of each file; with the texts to compare. */
export const changesOf = ({ baseline, root }: Compared): Effect.Effect<ReadonlyArray<Changes.Change>, CheckError> => {
  const before = new Map(baseline.files.map((file) => [file.path, file.hash]))
  return Effect.map(
    filesOf(root, baseline.ignore, (path, hash) => before.get(path) !== hash),
    (files) => Changes.between(baseline.files, files),
  )
}

const loaded: Effect.Effect<Changes.Comparing, CheckError> = Effect.mapError(
  Changes.load,
  () => new CheckError({ location: "the tree", reason: "the package diff is missing", remedy: "npm install diff" }),
)

/** The sum of the changes, where finding out what a file has in common stops at `most` lines that differ. */
export const summed = (changes: ReadonlyArray<Changes.Change>, most: number): Effect.Effect<Since, CheckError> =>
  Effect.gen(function* () {
    if (changes.length === 0) return { changedFiles: [], changedLines: 0 }
    const comparing = yield* loaded
    const lines = yield* Effect.forEach(changes, (change) => Changes.linesOf(comparing, change, most))
    return {
      changedFiles: changes.map((change) => change.path),
      changedLines: lines.reduce((sum, one) => sum + one, 0),
    }
  })

/** A digest of the files of a folder: the world that the verifiers here look at. */
export const worldOf = (root: string, ignore: ReadonlyArray<string>): Effect.Effect<string, CheckError> =>
  Effect.map(
    filesOf(root, ignore, () => false),
    Tree.digestOf,
  )
