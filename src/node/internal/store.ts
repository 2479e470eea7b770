/**
 * A file that is written once: whoever comes first writes it, everybody reads it.
 */
import { randomUUID } from "node:crypto"
import * as fs from "node:fs/promises"
import * as path from "node:path"
import { codeOf } from "./errno.ts"

/** What a file holds; `undefined` where there is none. */
export const readIfThere = async (file: string): Promise<string | undefined> => {
  try {
    return await fs.readFile(file, "utf8")
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined
    throw error
  }
}

/** Writes a file whole, unless somebody was faster; what it holds now. */
export const writeOnce = async (file: string, text: string): Promise<string> => {
  const draft = path.join(path.dirname(file), `.${randomUUID()}.draft`)
  await fs.mkdir(path.dirname(file), { recursive: true })
  try {
    const handle = await fs.open(draft, "wx")
    try {
      await handle.writeFile(text)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await fs.link(draft, file)
    return text
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error
    return await fs.readFile(file, "utf8")
  } finally {
    await fs.rm(draft, { force: true })
  }
}

/** The path without symbolic links, of what may not be there yet. */
export const realPath = async (file: string): Promise<string> => {
  const full = path.resolve(file)
  try {
    return await fs.realpath(full)
  } catch (error) {
    const parent = path.dirname(full)
    if (codeOf(error) !== "ENOENT" || parent === full) throw error
    return path.join(await realPath(parent), path.basename(full))
  }
}
