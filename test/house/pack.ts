/**
 * Builds and packs Bursar, installs the tarball as its users do and tries every door, types included:
 * `npm run check:pack`.
 *
 * One consumer has all the optional peers and opens every door; the other has `effect` alone and opens those that need
 * nothing else. The last line is `N passed, N failed`.
 */
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { exists, manifest, root } from "./tree.ts"

/** The doors that open with `effect` alone. */
const light = [".", "./testing"]

let passed = 0
let failed = 0

/** Counts and prints one check; `trouble` says what is wrong, or is empty. */
const check = (name: string, trouble: string): boolean => {
  if (trouble === "") passed += 1
  else failed += 1
  console.log(trouble === "" ? `ok   ${name}` : `FAIL ${name}\n${trouble.trimEnd().replaceAll(/^/gm, "       ")}`)
  return trouble === ""
}

/** The environment without what an outer `npm run` says about its own package and project settings. */
const environment = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => !/^npm_(package|lifecycle)_|^npm_config_(local_prefix|strict_allow_scripts|allow_scripts)$/i.test(name),
  ),
)

interface Ran {
  readonly ok: boolean
  readonly stdout: string
  /** What was printed when it failed; empty when it did not. */
  readonly trouble: string
}

const run = (cwd: string, command: string, ...args: ReadonlyArray<string>): Ran => {
  const { error, signal, status, stderr, stdout } = spawnSync(command, args, {
    cwd,
    env: environment,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    maxBuffer: 1 << 28,
    timeout: 300_000,
  })
  const ok = status === 0
  const said = `${stdout ?? ""}${stderr ?? ""}`.trim()
  return { ok, stdout: stdout ?? "", trouble: ok ? "" : `${said}\n${error?.message ?? signal ?? `exit ${status}`}` }
}

const specifierOf = (door: string): string => path.posix.join(manifest.name, door)
const fileOf = (door: string): string => `${door === "." ? "main" : path.posix.basename(door)}.ts`

/** Everything that should be in the tarball, and nothing that should not. */
const contents = (files: ReadonlyArray<string>): string => {
  const built = Object.keys(manifest.exports).flatMap((door) =>
    [".js", ".d.ts"].map((ending) => path.posix.join("dist", door, `index${ending}`)),
  )
  const missing = ["package.json", "README.md", "LICENSE", ...built].filter((file) => !files.includes(file))
  const alien = files.filter((file) => !/^(package\.json|README\.md|LICENSE|dist\/.+|src\/.+)$/.test(file))
  const strays = files.filter((file) => file.startsWith("dist/") && !isChunk(file) && !exists(sourceOf(file)))
  return [
    ...missing.map((file) => `misses ${file}`),
    ...alien.map((file) => `has ${file}`),
    ...strays.map((file) => `has ${file} without its source`),
  ].join("\n")
}

/** What the built doors and commands share. */
const isChunk = (file: string): boolean => /^dist\/chunks\/[^/]+\.js(\.map)?$/.test(file)

const sourceOf = (file: string): string => file.replace(/^dist\//, "src/").replace(/(\.d\.ts|\.js)(\.map)?$/, ".ts")

/** What `npm pack --json` says. */
type Packed = [{ readonly filename: string; readonly files: ReadonlyArray<{ readonly path: string }> }]

/** Builds from nothing and packs into `folder`; the path of the tarball, or `undefined`. */
const pack = (folder: string): string | undefined => {
  if (!check("builds", run(root, "npm", "run", "build").trouble)) return undefined
  const packed = run(root, "npm", "pack", "--json", "--ignore-scripts", "--pack-destination", folder)
  if (!check("packs", packed.trouble)) return undefined
  const [{ filename, files }] = JSON.parse(packed.stdout) as Packed
  check("the tarball holds the doors, the sources, README and LICENSE only", contents(files.map((file) => file.path)))
  return path.join(folder, filename)
}

interface Consumer {
  readonly name: string
  readonly doors: ReadonlyArray<string>
  readonly peers: ReadonlyArray<string>
}

/** The versions this repository itself is tested with. */
const versions = (names: ReadonlyArray<string>): Readonly<Record<string, string>> =>
  Object.fromEntries(names.map((name) => [name, manifest.devDependencies[name] ?? "*"]))

const settings = {
  target: "ES2023",
  // `DOM` for the types of effect, which name a few of its interfaces.
  lib: ["ES2024", "ESNext.Disposable", "DOM", "DOM.Iterable"],
  types: ["node"],
  module: "NodeNext",
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  noEmit: true,
  skipLibCheck: false,
}

/** Writes a package with one file per door, and installs what it depends on. */
const install = (folder: string, tarball: string, { doors, peers }: Consumer): Ran => {
  const dependencies = { [manifest.name]: `file:${tarball}`, ...versions(["effect", ...peers]) }
  const devDependencies = versions(["@types/node"])
  const write = (file: string, text: string): void => fs.writeFileSync(path.join(folder, file), text)
  fs.mkdirSync(folder)
  write(
    "package.json",
    JSON.stringify({ name: "consumer", private: true, type: "module", dependencies, devDependencies }),
  )
  for (const door of doors) {
    const names = "export const names: ReadonlyArray<keyof typeof door> = []"
    write(fileOf(door), `import * as door from "${specifierOf(door)}"\n${names}\nexport default door\n`)
  }
  write("tsconfig.json", JSON.stringify({ compilerOptions: settings, include: ["*.ts"] }))
  return run(folder, "npm", "install", "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund")
}

/** Type errors of the consumer or of Bursar's own declarations; those within other packages are not ours. */
const typeErrors = (folder: string, door: string): string => {
  const tsc = path.join(root, "node_modules/typescript/bin/tsc")
  const project = path.join(folder, `tsconfig.${fileOf(door)}.json`)
  fs.writeFileSync(project, JSON.stringify({ extends: "./tsconfig.json", include: [], files: [fileOf(door)] }))
  const { ok, stdout, trouble } = run(folder, process.execPath, tsc, "-p", project, "--pretty", "false")
  if (ok) return ""
  const errors = stdout.split("\n").filter((line) => /error TS\d+/.test(line))
  const ours = errors.filter(
    (line) => !line.startsWith("node_modules/") || line.startsWith(`node_modules/${manifest.name}/`),
  )
  return errors.length === 0 ? trouble : ours.join("\n")
}

const importing = (folder: string, door: string): string => {
  const code = `if (Object.keys(await import("${specifierOf(door)}")).length === 0) throw new Error("it exports nothing")`
  return run(folder, process.execPath, "--input-type=module", "-e", code).trouble
}

const oneEffect = (folder: string): string => {
  const places = run(folder, "npm", "ls", "effect", "--all", "--parseable").stdout.trim().split("\n")
  const copies = [...new Set(places)].filter((place) => /[\\/]effect$/.test(place))
  return copies.length === 1 ? "" : `${copies.length} copies:\n${copies.join("\n")}`
}

const consume = (folder: string, tarball: string, consumer: Consumer): void => {
  const say = (what: string): string => `${consumer.name}: ${what}`
  if (!check(say("installs"), install(folder, tarball, consumer).trouble)) return
  check(say("has one effect"), oneEffect(folder))
  for (const door of consumer.doors) {
    check(say(`${specifierOf(door)} has types`), typeErrors(folder, door))
    check(say(`${specifierOf(door)} can be imported`), importing(folder, door))
  }
}

/** The testing server starts as its users start it, says where it listens and stops when told to. */
const serves = (folder: string): string => {
  const script = path.join(folder, "turns.json")
  fs.writeFileSync(script, JSON.stringify([{ text: "yes" }]))
  const code = `
    import { spawn } from "node:child_process"
    const server = spawn("npx", ["bursar-testing-server", "--script", "turns.json"], { detached: true, stdio: ["ignore", "pipe", "inherit"] })
    const end = () => process.kill(-server.pid, "SIGTERM")
    for await (const line of server.stdout) {
      const body = JSON.stringify({ model: "m", input: "hello" })
      const reply = await fetch(JSON.parse(line).url + "/responses", { method: "POST", body }).finally(end)
      const { output } = await reply.json()
      console.log(output[0].content[0].text)
    }`
  const { ok, stdout, trouble } = run(folder, process.execPath, "--input-type=module", "-e", code)
  return ok && stdout.trim() !== "yes" ? `it said ${JSON.stringify(stdout)}` : trouble
}

const main = (folder: string): void => {
  const tarball = pack(folder)
  if (tarball === undefined) return
  const doors = Object.keys(manifest.exports)
  const peers = Object.keys(manifest.peerDependencies).filter((name) => name !== "effect")
  consume(path.join(folder, "full"), tarball, { name: "with all peers", doors, peers })
  const bare = path.join(folder, "bare")
  consume(bare, tarball, { name: "with effect alone", doors: light, peers: [] })
  check("with effect alone: npx bursar-testing-server serves", serves(bare))
}

const scratch = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "bursar-pack-")))
try {
  main(scratch)
} finally {
  fs.rmSync(scratch, { recursive: true, force: true })
}
console.log(`${passed} passed, ${failed} failed`)
if (failed > 0) process.exitCode = 1
