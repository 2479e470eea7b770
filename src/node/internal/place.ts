/**
 * Where a path that somebody gave leads, seen from one folder that nothing may leave. Symbolic links are followed as long
 * as they stay inside; what would lead out, by `..`, as an absolute path or through a link, is refused.
 */
import * as fs from "node:fs/promises"
import * as path from "node:path"
import * as Effect from "effect/Effect"
import * as ToolError from "../../tool/ToolError.ts"
import { attempt, codeOf, failureAt } from "./errno.ts"

/** A folder, by its real path: the one without symbolic links. */
export interface Root {
  readonly path: string
}

/** A place in a folder; whether there is anything is another matter. */
export interface Place {
  /** As it was asked for, tidied. */
  readonly asked: string
  /** From the root, with `/`, without symbolic links. */
  readonly relative: string
  /** On the machine, without symbolic links. */
  readonly real: string
  readonly exists: boolean
}

/** The folder that `root` is or leads to. */
export const openRoot = (root: string): Effect.Effect<Root, ToolError.ToolError> =>
  Effect.tryPromise({
    try: async () => {
      const real = await fs.realpath(root)
      if ((await fs.stat(real)).isDirectory()) return { path: real }
      throw new Error("a file")
    },
    catch: () => ToolError.fatal("ENOROOT", `${root} is not a folder that can be used`),
  })

/** Finds the place of `asked` under `root`. */
export const locate = (root: Root, asked: string): Effect.Effect<Place, ToolError.ToolError> =>
  Effect.flatMap(tidy(asked), (tidied) => attempt(tidied, () => follow(root, tidied, tidied)))

/** The same for a place where there is something. */
export const locateExisting = (root: Root, asked: string): Effect.Effect<Place, ToolError.ToolError> =>
  Effect.filterOrFail(
    locate(root, asked),
    (place) => place.exists,
    (place) => failureAt(place.asked, "ENOENT"),
  )

/** Makes the folder that a place lies in, and looks again that it is where it was. */
export const makeParent = (root: Root, place: Place): Effect.Effect<void, ToolError.ToolError> =>
  attempt(place.asked, async () => {
    const parent = path.dirname(place.real)
    await fs.mkdir(parent, { recursive: true })
    if ((await fs.realpath(parent)) !== parent || !isWithin(root, parent)) throw leadsOut(place.asked)
  })

const longest = 4096

const tidy = (asked: string): Effect.Effect<string, ToolError.ToolError> => {
  if (asked === "" || asked.includes("\0") || asked.length > longest) {
    return Effect.fail(ToolError.mistake("EINVAL", "a path is a text of 1 to 4096 characters without null characters"))
  }
  if (path.isAbsolute(asked) || path.win32.isAbsolute(asked)) {
    return Effect.fail(
      ToolError.permission("EPERM", `${asked} is an absolute path; give one that is relative to the root folder`),
    )
  }
  const tidied = path.posix.normalize(asked.split(path.sep).join("/")).replace(/\/$/, "")
  return tidied === ".." || tidied.startsWith("../") ? Effect.fail(leadsOut(asked)) : Effect.succeed(tidied)
}

/** Where the system ends up. Of what is not there yet, the nearest folder that is decides. */
const follow = async (root: Root, relative: string, asked: string): Promise<Place> => {
  const full = path.join(root.path, relative)
  const found = await realOf(full)
  if (found !== undefined) return placeAt(root, asked, found, true)
  // There is nothing at its end, but there is a link: it may lead anywhere by the time it is used.
  if (await isThere(full)) throw leadsOut(asked)
  const above = path.posix.dirname(relative)
  if (above === relative) throw ToolError.fatal("ENOROOT", "the root folder is gone")
  const parent = await follow(root, above, asked)
  return placeAt(root, asked, path.join(parent.real, path.posix.basename(relative)), false)
}

const placeAt = (root: Root, asked: string, real: string, exists: boolean): Place => {
  if (!isWithin(root, real)) throw leadsOut(asked)
  const relative = path.relative(root.path, real).split(path.sep).join("/")
  return { asked, relative: relative === "" ? "." : relative, real, exists }
}

const realOf = async (full: string): Promise<string | undefined> => {
  try {
    return await fs.realpath(full)
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined
    throw error
  }
}

const isThere = async (full: string): Promise<boolean> => {
  try {
    await fs.lstat(full)
    return true
  } catch {
    return false
  }
}

const isWithin = (root: Root, real: string): boolean => {
  const prefix = root.path.endsWith(path.sep) ? root.path : root.path + path.sep
  return real === root.path || real.startsWith(prefix)
}

const leadsOut = (asked: string): ToolError.ToolError =>
  ToolError.permission("EPERM", `${asked} leads out of the root folder`)
