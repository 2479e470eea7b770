/** Building Jaeger and a collector, with a stand-in for Go: what is needed, what is said, and what is built once. */
import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as path from "node:path"
import * as Effect from "effect/Effect"
import { temporary } from "../../examples/jaeger/Stack.ts"
import { run } from "./Starting.ts"

/** Says its version, notes each build, and makes an executable, or fails as `broken` says. */
const goOf = (version: string, { broken }: { readonly broken?: string }): string =>
  [
    "#!/bin/sh",
    `if [ "$1" = env ]; then printf '%s\\n' ${version} plan9 mips; exit; fi`,
    'echo "$PWD $*" >> "$BUILDS"',
    ...(broken === undefined ? [] : [`echo '${broken}' >&2; exit 1`]),
    'while [ "$1" != -o ]; do shift; done',
    'echo program > "$2"',
  ].join("\n")

interface Bench {
  readonly build: (version: string, options?: { readonly broken?: string }) => ReturnType<typeof run>
  readonly builds: () => ReadonlyArray<string>
  readonly files: () => ReadonlyArray<string>
}

const bench = Effect.map(temporary, (folder): Bench => {
  const [bin, cache, builds] = [path.join(folder, "bin"), path.join(folder, "cache"), path.join(folder, "builds")]
  fs.mkdirSync(bin)
  fs.writeFileSync(builds, "")
  return {
    build: (version, options = {}) =>
      Effect.suspend(() => {
        fs.writeFileSync(path.join(bin, "go"), goOf(version, options), { mode: 0o755 })
        const PATH = `${bin}:${process.env["PATH"]}`
        return run(["--build"], { cwd: folder, env: { PATH, XDG_CACHE_HOME: cache, BUILDS: builds } })
      }),
    builds: () => fs.readFileSync(builds, "utf8").split("\n").filter(Boolean),
    files: () =>
      fs
        .globSync("**", { cwd: cache, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => entry.name)
        .toSorted(),
  }
})

describe("building", () => {
  it.live("without Go says what to install", () =>
    Effect.gen(function* () {
      const { code, stderr } = yield* run(["--build"], { cwd: yield* temporary, env: { PATH: "/nonexistent" } })
      assert.strictEqual(code, 2)
      assert.match(stderr, /built with Go 1\.\d+ or newer, and there is none on the path: install Go 1\.\d+ or newer/)
    }).pipe(Effect.scoped),
  )

  it.live("with a Go that is too old says which it found and what to install", () =>
    Effect.gen(function* () {
      const { build, builds } = yield* bench
      const { code, stderr } = yield* build("go1.9.7")
      assert.strictEqual(code, 2)
      assert.match(stderr, /the one on the path is go1\.9\.7: install Go 1\.\d+ or newer/)
      assert.deepStrictEqual(builds(), [])
    }).pipe(Effect.scoped),
  )

  it.live("happens once for one version of Go, kindly, and says where the two lie", () =>
    Effect.gen(function* () {
      const { build, builds, files } = yield* bench
      const first = yield* build("go1.99.1")
      assert.strictEqual(first.code, 0)
      assert.deepStrictEqual(files(), ["collector", "jaeger"])
      assert.match(builds()[0]!, /go\/collector build .* \.$/)
      assert.match(builds()[1]!, /go\/jaeger build .* github\.com\/jaegertracing\/jaeger\/cmd\/jaeger$/)
      const again = yield* build("go1.99.1")
      assert.strictEqual(again.code, 0)
      assert.lengthOf(builds(), 2)
      for (const file of again.stdout.trim().split("\n")) assert.isTrue(fs.existsSync(file), file)
      yield* build("go1.99.2")
      assert.lengthOf(builds(), 4)
    }).pipe(Effect.scoped),
  )

  it.live("that fails says what Go said, and leaves nothing that could be taken for a program", () =>
    Effect.gen(function* () {
      const { build, files } = yield* bench
      const { code, stderr } = yield* build("go1.99.1", { broken: "no such module" })
      assert.strictEqual(code, 1)
      assert.strictEqual(stderr.trim(), "go could not build collector:\nno such module")
      assert.deepStrictEqual(files(), [])
    }).pipe(Effect.scoped),
  )
})
