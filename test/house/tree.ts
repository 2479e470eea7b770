/** What the tests of this folder read from the repository. */
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import type { SourceFile } from "./syntax.ts"

/** The folder of the repository, without a slash at the end. */
export const root = path.resolve(fileURLToPath(new URL("../..", import.meta.url)))

export const read = (file: string): SourceFile => ({
  path: file,
  text: fs.readFileSync(path.join(root, file), "utf8"),
})

/** The paths of all `.ts` files below `folder`. */
export const paths = (folder: string): ReadonlyArray<string> =>
  fs
    .readdirSync(path.join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => path.join(folder, file).replaceAll(path.sep, "/"))
    .toSorted()

export const exists = (file: string): boolean => fs.existsSync(path.join(root, file))

interface Manifest {
  readonly name: string
  readonly version: string
  readonly exports: Readonly<Record<string, { readonly default: string }>>
  readonly bin: Readonly<Record<string, string>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
  readonly peerDependencies: Readonly<Record<string, string>>
  readonly peerDependenciesMeta: Readonly<Record<string, { readonly optional?: boolean }>>
}

export const manifest: Manifest = JSON.parse(read("package.json").text)
