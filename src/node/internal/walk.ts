/**
 * Going over the tree below a folder, in the order of the names. Symbolic links are told, never followed.
 */
import type { Dirent } from "node:fs"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { codeOf } from "./errno.ts"

/** Something in the tree, by its path from the root. */
export interface Entry {
  readonly path: string
  readonly kind: "file" | "folder" | "link" | "other"
  /** 1 for what lies right in the root. */
  readonly depth: number
}

/** How to go over a tree. */
export interface Walk {
  readonly root: string
  /** What is left out, and folders that are not entered. */
  readonly ignored: (relative: string) => boolean
  /** Folders at this depth are told but not entered. */
  readonly maxDepth?: number
  readonly signal: AbortSignal
}

/** Calls `visit` for every entry until it answers with `false`. Folders that cannot be read count as empty. */
export const walk = async (
  { root, ignored, maxDepth = Infinity, signal }: Walk,
  visit: (entry: Entry) => boolean | Promise<boolean>,
): Promise<void> => {
  const enter = async (folder: string, depth: number): Promise<boolean> => {
    for (const found of await entriesOf(path.join(root, folder))) {
      signal.throwIfAborted()
      const relative = folder === "" ? found.name : `${folder}/${found.name}`
      if (ignored(relative)) continue
      if (!(await visit({ path: relative, kind: kindOf(found), depth }))) return false
      if (found.isDirectory() && depth < maxDepth && !(await enter(relative, depth + 1))) return false
    }
    return true
  }
  await enter("", 1)
}

const entriesOf = async (folder: string): Promise<ReadonlyArray<Dirent>> => {
  try {
    const found = await fs.readdir(folder, { withFileTypes: true })
    return found.toSorted((a, b) => (a.name < b.name ? -1 : 1))
  } catch (error) {
    if (unreadable.includes(codeOf(error) ?? "")) return []
    throw error
  }
}

const unreadable = ["EACCES", "EPERM", "ENOENT", "ENOTDIR"]

const kindOf = (found: Dirent): Entry["kind"] => {
  if (found.isDirectory()) return "folder"
  if (found.isSymbolicLink()) return "link"
  return found.isFile() ? "file" : "other"
}
