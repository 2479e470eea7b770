/**
 * Type-checks every example of the doc comments and of `README.md` at once, those that do not run included:
 * `npm run check:docs`. Errors are reported at the line of the original.
 */
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { scopeOf } from "./docImports.ts"
import { type Example, examples, fileName, typed } from "./docs.ts"
import type { SourceFile } from "./syntax.ts"
import { paths, read, root } from "./tree.ts"

/** Unused names are fine in an example, and the doors are read from the sources. */
const settings = (files: ReadonlyArray<string>): string =>
  JSON.stringify({
    extends: "../../../tsconfig.json",
    compilerOptions: {
      noUnusedLocals: false,
      noUnusedParameters: false,
      moduleDetection: "force",
      paths: { bursar: ["../../../src/index.ts"], "bursar/*": ["../../../src/*/index.ts"] },
    },
    include: [],
    files,
  })

/** What the compiler says, with each example called by the file it stands in. */
const check = (
  folder: string,
  sources: ReadonlyArray<SourceFile>,
  all: ReadonlyArray<Example>,
): { readonly status: number; readonly output: string } => {
  for (const example of all)
    fs.writeFileSync(path.join(folder, fileName(example)), typed(example, scopeOf(example.path, sources)))
  fs.writeFileSync(path.join(folder, "tsconfig.json"), settings(all.map(fileName)))
  const tsc = path.join(root, "node_modules/typescript/bin/tsc")
  const { status, stderr, stdout } = spawnSync(process.execPath, [tsc, "-p", folder, "--noEmit", "--pretty", "false"], {
    encoding: "utf8",
    cwd: folder,
  })
  const output = all.reduce((text, one) => text.replaceAll(`${fileName(one)}(`, `${one.path}(`), stdout + stderr)
  return { status: status ?? 1, output }
}

const sources = paths("src").map(read)
const all = examples(sources)
const parent = path.join(root, "test/.tmp")
fs.mkdirSync(parent, { recursive: true })
const folder = fs.mkdtempSync(path.join(parent, "types-"))
try {
  const { output, status } = all.length === 0 ? { output: "", status: 0 } : check(folder, sources, all)
  process.stdout.write(output)
  console.log(`${all.length} examples type-checked`)
  process.exitCode = status
} finally {
  fs.rmSync(folder, { recursive: true, force: true })
}
