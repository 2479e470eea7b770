/**
 * Writing files under a root: what `write_file` and `patch_file` do. A file is replaced as a whole or not at all: the new
 * one is written beside it and takes its place in one step.
 */
import { randomUUID } from "node:crypto"
import { constants } from "node:fs"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { Reconciled } from "../../tool/Contract.ts"
import * as ToolError from "../../tool/ToolError.ts"
import { attempt, failureAt } from "./errno.ts"
import { locate, locateExisting, makeParent, type Place, type Root } from "./place.ts"
import { isRunning } from "./running.ts"
import { type Content, readBytes, textOf, versionOf } from "./text.ts"

/** Where may be written. */
export interface Writable {
  readonly root: Root
  readonly isProtected: (relative: string) => boolean
  readonly maxFileBytes: number
}

/** A file that was written. `changed` is false when it was like that before. */
export interface Written {
  readonly path: string
  readonly version: string
  readonly changed: boolean
}

/** One replacement in a text. */
export interface Edit {
  readonly old: string
  readonly new: string
}

/**
 * Two changes of this process never mix: what one has read is still there when it writes. Another process may come in
 * between reading and writing; that is looked for right before the file is replaced.
 */
const oneAtATime = Semaphore.makeUnsafe(1)

export const write = (
  at: Writable,
  params: { readonly path: string; readonly text: string },
): Effect.Effect<Written, ToolError.ToolError> =>
  oneAtATime.withPermit(
    Effect.gen(function* () {
      const place = yield* locateWritable(at, params.path)
      const bytes = Buffer.from(params.text)
      if (bytes.length > at.maxFileBytes) {
        return yield* ToolError.mistake("EFBIG", `a file may have ${at.maxFileBytes} bytes, not ${bytes.length}`)
      }
      const before = yield* current(place, at.maxFileBytes)
      const written = { path: place.relative, version: versionOf(bytes) }
      if (before?.version === written.version) return { ...written, changed: false }
      yield* makeParent(at.root, place)
      yield* replace(at, place, { bytes, mode: before?.mode })
      return { ...written, changed: true }
    }),
  )

/** What is at a place now. A file that is too large to read is another one in any case. */
const current = (place: Place, maxFileBytes: number) => {
  if (!place.exists) return Effect.void
  return readBytes(place, maxFileBytes).pipe(
    Effect.map(({ bytes, mode }) => ({ version: versionOf(bytes), mode })),
    Effect.catchIf(
      ({ code }) => code === "EFBIG",
      () =>
        Effect.map(
          attempt(place.asked, () => fs.stat(place.real)),
          ({ mode }) => ({ version: "", mode: mode & 0o7777 }),
        ),
    ),
  )
}

export const patch = (
  at: Writable,
  params: { readonly path: string; readonly edits: ReadonlyArray<Edit>; readonly version?: string },
): Effect.Effect<Written, ToolError.ToolError> =>
  oneAtATime.withPermit(
    Effect.gen(function* () {
      const place = yield* locateWritable(at, params.path)
      if (!place.exists) return yield* failureAt(place.asked, "ENOENT")
      const content = yield* readBytes(place, at.maxFileBytes)
      const version = versionOf(content.bytes)
      if (params.version !== undefined && params.version !== version) {
        return yield* conflict(`${place.asked} is not the version that was read any more`)
      }
      const bytes = Buffer.from(yield* edited(place.asked, yield* textOf(place.asked, content), params.edits))
      const written = { path: place.relative, version: versionOf(bytes) }
      if (written.version === version) return { ...written, changed: false }
      yield* replace(at, place, { bytes, mode: content.mode, ifStill: version })
      return { ...written, changed: true }
    }),
  )

const locateWritable = (at: Writable, asked: string): Effect.Effect<Place, ToolError.ToolError> =>
  Effect.gen(function* () {
    const place = yield* locate(at.root, asked)
    if (place.relative === "." || asked.endsWith("/")) return yield* failureAt(asked, "EISDIR")
    if (at.isProtected(place.relative) || at.isProtected(place.asked)) {
      return yield* ToolError.permission("EPERM", `${place.asked} is protected: it may be read, not written`)
    }
    return place
  })

// --- replacing

interface Next {
  readonly bytes: Buffer
  readonly mode: number | undefined
  /** Replaces the file only if this is still its version. */
  readonly ifStill?: string
}

/** Of a draft nothing is there before; a link in its place is not followed. */
const draftOnly = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | (constants.O_NOFOLLOW ?? 0)

/** It is not interrupted: there is either a new file or none, and no draft. */
const replace = (at: Writable, place: Place, next: Next): Effect.Effect<void, ToolError.ToolError> => {
  const folder = path.dirname(place.real)
  const draft = path.join(folder, `.${process.pid}-${randomUUID()}.draft`)
  const discard = Effect.promise(() => fs.rm(draft, { force: true }).catch(() => undefined))
  return Effect.gen(function* () {
    yield* Effect.promise(() => removeAbandoned(folder))
    yield* attempt(place.asked, () => writeDraft(draft, next))
    if (next.ifStill !== undefined) {
      const { bytes } = yield* readBytes(place, at.maxFileBytes)
      if (versionOf(bytes) !== next.ifStill) return yield* conflict(`${place.asked} was changed meanwhile`)
    }
    const again = yield* locate(at.root, place.asked)
    if (again.real !== place.real) return yield* conflict(`${place.asked} leads somewhere else by now`)
    yield* attempt(place.asked, () => fs.rename(draft, place.real))
  }).pipe(Effect.ensuring(discard), Effect.uninterruptible)
}

const writeDraft = async (draft: string, { bytes, mode }: Next): Promise<void> => {
  const handle = await fs.open(draft, draftOnly, mode ?? 0o666)
  try {
    if (mode !== undefined) await handle.chmod(mode)
    await handle.writeFile(bytes)
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Drafts of processes that were killed while they wrote. */
const removeAbandoned = async (folder: string): Promise<void> => {
  const names = await fs.readdir(folder).catch(() => [])
  for (const name of names) {
    const pid = /^\.(\d+)-[0-9a-f-]{36}\.draft$/.exec(name)?.[1]
    if (pid !== undefined && !isRunning(Number(pid))) await fs.rm(path.join(folder, name), { force: true })
  }
}

// --- editing

const conflict = (what: string): ToolError.ToolError =>
  ToolError.mistake("ECONFLICT", `${what}; nothing was changed: read the file again`, {
    suggestedAction: "read_the_file_again",
  })

/** The text with all edits in it. Each is found in the text as it is, and no two overlap. */
const edited = (
  asked: string,
  text: string,
  edits: ReadonlyArray<Edit>,
): Effect.Effect<string, ToolError.ToolError> => {
  const found: Array<Edit & { readonly start: number }> = []
  for (const [index, edit] of edits.entries()) {
    if (edit.old === "") return Effect.fail(ToolError.mistake("EINVAL", `edit ${index + 1} has an empty old text`))
    const start = text.indexOf(edit.old)
    if (start < 0) return Effect.fail(conflict(`the old text of edit ${index + 1} is not in ${asked}`))
    if (text.includes(edit.old, start + 1)) {
      return Effect.fail(conflict(`the old text of edit ${index + 1} is in ${asked} more than once`))
    }
    found.push({ ...edit, start })
  }
  let result = ""
  let end = 0
  for (const edit of found.toSorted((a, b) => a.start - b.start)) {
    if (edit.start < end) return Effect.fail(ToolError.mistake("EINVAL", "two edits overlap; make them one"))
    result += text.slice(end, edit.start) + edit.new
    end = edit.start + edit.old.length
  }
  return Effect.succeed(result + text.slice(end))
}

// --- finding out

/**
 * Whether a patch is in a file: yes, if every new text is there and no old text apart from it; no, if it could be applied
 * now or the file is still the version it was made for. It is unknown in between, as after a change by somebody else.
 */
export const reconcile = (
  at: Writable,
  params: { readonly path: string; readonly edits: ReadonlyArray<Edit>; readonly version?: string },
): Effect.Effect<Reconciled<Written>, ToolError.ToolError> =>
  Effect.gen(function* (): Effect.fn.Return<Reconciled<Written>, ToolError.ToolError> {
    const place = yield* locateExisting(at.root, params.path)
    yield* Effect.promise(() => removeAbandoned(path.dirname(place.real)))
    const content: Content = yield* readBytes(place, at.maxFileBytes)
    const version = versionOf(content.bytes)
    if (params.version === version) return { _tag: "DidNotHappen" }
    const text = yield* textOf(place.asked, content)
    if (params.edits.every((edit) => reads(text, edit) === "new")) {
      return { _tag: "Happened", result: { path: place.relative, version, changed: true } }
    }
    const untouched = params.edits.every((edit) => reads(text, edit) === "old")
    return { _tag: untouched && params.version === undefined ? "DidNotHappen" : "Unknown" }
  })

const reads = (text: string, edit: Edit): "old" | "new" | "neither" => {
  const isNew = edit.new === "" || text.includes(edit.new)
  const rest = edit.new.includes(edit.old) ? text.replaceAll(edit.new, "\0") : text
  if (isNew && !rest.includes(edit.old)) return "new"
  return text.split(edit.old).length === 2 ? "old" : "neither"
}
