/**
 * Builds what is published: `node test/house/build.ts [--out FOLDER]`, into `dist` unless told, in place of what is there.
 *
 * Declarations come from the compiler, one for each source. JavaScript is bundled: one file for each door and each
 * command, and chunks for what they share. Resolving and compiling a hundred small files was most of what Bursar added
 * to the start of a process. Packages stay outside.
 */
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { parseArgs } from "node:util"
import { build } from "rolldown"
import { manifest, root } from "./tree.ts"

const { values } = parseArgs({ options: { out: { type: "string", default: path.join(root, "dist") } } })
const out = path.resolve(values.out)

/** The source of each built file that users name, by its path below `dist` without ending. */
const entries = Object.fromEntries(
  [...Object.values(manifest.exports).map((door) => door.default), ...Object.values(manifest.bin)].map((file) => {
    const name = path.posix.relative("dist", file).replace(/\.js$/, "")
    return [name, path.join(root, "src", `${name}.ts`)]
  }),
)

fs.rmSync(out, { recursive: true, force: true })

/** The rooms behind the main door; the others have doors of their own. */
const inCore = (id: string): boolean =>
  /^src\/(?!(cli|node|openai|otel|prices|testing)\/)[a-z]+\//.test(path.relative(root, id).replaceAll(path.sep, "/"))

const tsc = path.join(root, "node_modules/typescript/bin/tsc")
const declared = spawnSync(process.execPath, [tsc, "-p", "src", "--emitDeclarationOnly", "--outDir", out], {
  cwd: root,
  stdio: "inherit",
})
if (declared.status !== 0) process.exit(1)

await build({
  cwd: root,
  input: entries,
  platform: "node",
  external: (id) => !id.startsWith(".") && !path.isAbsolute(id),
  output: {
    dir: out,
    sourcemap: true,
    chunkFileNames: "chunks/[name]-[hash].js",
    // What the main door needs is one file, whoever else needs parts of it.
    codeSplitting: { groups: [{ name: "core", test: inCore }] },
  },
})
