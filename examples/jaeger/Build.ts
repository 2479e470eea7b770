/**
 * Jaeger and a collector as executables, built from Go modules: once, into the cache of the user.
 *
 * `go/` has a module for each of the two, and their versions stand there and nowhere else. An executable lies in a
 * folder named by the hash of its module, of the version of Go and of the machine it is for: what is there is what was
 * asked for, in this checkout and in any other. It is put there whole or not at all, so two builds at a time do no harm.
 */
import { spawn, spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** There is no Go, or one that is too old. */
export class GoNeeded extends Schema.TaggedError<GoNeeded>()("GoNeeded", {
  needed: Schema.String,
  found: Schema.optionalKey(Schema.String),
}) {
  override get message(): string {
    const found = this.found === undefined ? "there is none on the path" : `the one on the path is ${this.found}`
    return (
      `Jaeger and the collector are built with Go ${this.needed} or newer, and ${found}: ` +
      `install Go ${this.needed} or newer and put its bin folder on the path`
    )
  }
}

/** Go could not build one of the two; what it said last. */
export class BuildFailed extends Schema.TaggedError<BuildFailed>()("BuildFailed", {
  program: Schema.String,
  output: Schema.String,
}) {
  override get message(): string {
    return `go could not build ${this.program}:\n${this.output}`
  }
}

/** Where the two executables lie. */
export interface Programs {
  readonly jaeger: string
  readonly collector: string
}

interface Module {
  readonly name: keyof Programs
  readonly folder: string
  /** What `go build` is told to build, inside the module. */
  readonly target: string
}

const folderOf = (name: string): string => fileURLToPath(new URL(`go/${name}`, import.meta.url))

const modules: ReadonlyArray<Module> = [
  { name: "collector", folder: folderOf("collector"), target: "." },
  { name: "jaeger", folder: folderOf("jaeger"), target: "github.com/jaegertracing/jaeger/cmd/jaeger" },
]

/** Without the symbols for a debugger: two thirds of the size. */
const flags = ["-ldflags", "-s -w"]

interface Go {
  readonly version: string
  readonly machine: string
}

/**
 * Answers with the executables, and builds those that are not there yet; `log` is told before a build, which takes
 * minutes, and after it.
 */
export const programs = (log: (line: string) => void): Effect.Effect<Programs, GoNeeded | BuildFailed> =>
  Effect.gen(function* () {
    const go = yield* found
    const [collector, jaeger] = yield* Effect.forEach(modules, (module) => built(module, go, log))
    return { collector: collector!, jaeger: jaeger! }
  })

// --- the toolchain

/** The larger of what the two modules ask for, such as "1.26". */
const needed = (): string =>
  modules
    .map(({ folder }) => /^go (\d+\.\d+)/m.exec(fs.readFileSync(path.join(folder, "go.mod"), "utf8"))![1]!)
    .reduce((most, one) => (isAtLeast(one, most) ? one : most))

const isAtLeast = (version: string, least: string): boolean => {
  const [major, minor] = version.split(".").map(Number)
  const [leastMajor, leastMinor] = least.split(".").map(Number)
  return major! > leastMajor! || (major === leastMajor && minor! >= leastMinor!)
}

// Whatever Go is there is used or refused: none is fetched behind the user's back.
const environment = (): NodeJS.ProcessEnv => ({ ...process.env, GOTOOLCHAIN: "local", GOWORK: "off" })

const found: Effect.Effect<Go, GoNeeded> = Effect.suspend(() => {
  const least = needed()
  // Outside of any module, whose own demands Go would speak of first.
  const asked = spawnSync("go", ["env", "GOVERSION", "GOOS", "GOARCH"], {
    cwd: os.tmpdir(),
    env: environment(),
    encoding: "utf8",
  })
  if (asked.status !== 0) return Effect.fail(new GoNeeded({ needed: least }))
  const [version = "", ...machine] = asked.stdout.trim().split("\n")
  const number = /(\d+\.\d+)/.exec(version)?.[1] ?? "0.0"
  return isAtLeast(number, least)
    ? Effect.succeed({ version, machine: machine.join("-") })
    : Effect.fail(new GoNeeded({ needed: least, found: version }))
})

// --- the cache

const cacheFolder = (): string => {
  const set = process.env["XDG_CACHE_HOME"] ?? ""
  return path.join(path.isAbsolute(set) ? set : path.join(os.homedir(), ".cache"), "bursar", "jaeger")
}

const keyOf = ({ folder, target }: Module, { version, machine }: Go): string => {
  const hash = createHash("sha256").update(JSON.stringify([version, machine, target, flags]))
  for (const name of fs.readdirSync(folder).toSorted()) {
    hash.update(JSON.stringify([name, fs.readFileSync(path.join(folder, name), "utf8")]))
  }
  return hash.digest("hex").slice(0, 16)
}

const built = (module: Module, go: Go, log: (line: string) => void): Effect.Effect<string, BuildFailed> =>
  Effect.gen(function* () {
    const file = path.join(cacheFolder(), `${module.name}-${keyOf(module, go)}`, module.name)
    if (fs.existsSync(file)) return file
    log(`Building ${module.name} with ${go.version}, once: this takes minutes.`)
    fs.mkdirSync(path.dirname(file), { recursive: true })
    const startMillis = Date.now()
    const unfinished = `${file}.${process.pid}`
    yield* build(module, unfinished)
    fs.renameSync(unfinished, file)
    log(`Built ${file} in ${((Date.now() - startMillis) / 1000).toFixed(0)} s.`)
    return file
  })

/** Kindly, since it takes every core there is; ended when it is interrupted. */
const build = ({ name, folder, target }: Module, file: string): Effect.Effect<void, BuildFailed> =>
  Effect.callback((resume) => {
    const command = ["go", "build", ...flags, "-o", file, target]
    const [first, ...rest] = process.platform === "win32" ? command : ["nice", "-n", "15", ...command]
    const child = spawn(first!, rest, { cwd: folder, env: environment(), stdio: ["ignore", "pipe", "pipe"] })
    let output = ""
    const keep = (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-4000)
    }
    child.stdout.on("data", keep)
    child.stderr.on("data", keep)
    child.on("error", (error) => resume(Effect.fail(new BuildFailed({ program: name, output: error.message }))))
    child.on("close", (code) =>
      resume(code === 0 ? Effect.void : Effect.fail(new BuildFailed({ program: name, output: output.trim() }))),
    )
    return Effect.sync(() => {
      child.kill()
      fs.rmSync(file, { force: true })
    })
  })
