/**
 * Which way the rooms of `src` lean: a pure check over the import lines of its files.
 *
 * A room imports itself and the rooms above it, never below or beside it. A door to the outside imports any room and
 * is imported by nobody; so is `testing`. Heavy packages stay behind their door. Only `src/index.ts` stands outside
 * the rooms, and it imports rooms only.
 */
import * as path from "node:path/posix"
import { isNode, lineAt, type Node, parse, type SourceFile, walk } from "./syntax.ts"

/** From the top. Rooms on one line stand on one rung and do not import each other. */
export const rungs: ReadonlyArray<ReadonlyArray<string>> = [
  ["budget"],
  ["event"],
  ["state"],
  ["journal", "telemetry"],
  ["scope"],
  ["model"],
  ["tool"],
  ["policy"],
  ["verify"],
  ["loop"],
  ["agent"],
  ["pattern"],
  ["durable"],
]

/** The doors, each with the packages that only it may import; a trailing `/` stands for a whole scope. */
export const doors: Readonly<Record<string, ReadonlyArray<string>>> = {
  openai: ["openai", "gpt-tokenizer"],
  prices: ["@pydantic/genai-prices"],
  otel: ["@opentelemetry/", "@effect/opentelemetry"],
  node: ["@effect/platform-node", "diff"],
  cli: ["@effect/platform-node"],
  testing: [],
}

type Place =
  | { readonly kind: "index" }
  | { readonly kind: "room"; readonly name: string; readonly rung: number }
  | { readonly kind: "door"; readonly name: string }
  | { readonly kind: "nowhere" }

const placeOf = (file: string): Place => {
  if (file === "src/index.ts") return { kind: "index" }
  const [top, name, ...rest] = file.split("/")
  if (top !== "src" || name === undefined || rest.length === 0) return { kind: "nowhere" }
  if (Object.hasOwn(doors, name)) return { kind: "door", name }
  const rung = rungs.findIndex((rooms) => rooms.includes(name))
  return rung < 0 ? { kind: "nowhere" } : { kind: "room", name, rung }
}

/** What is wrong with an arrow between two places of `src`. */
const arrow = (from: Place, to: Place): string | undefined => {
  if (from.kind === "nowhere" || to.kind === "nowhere") return "leads out of the rooms"
  if (to.kind === "index") return "imports the public door from the inside"
  if (to.kind === "door") {
    if (from.kind === "door" && from.name === to.name) return undefined
    return `imports the door ${to.name}, which nothing imports`
  }
  if (from.kind !== "room" || from.name === to.name || to.rung < from.rung) return undefined
  return `${from.name} imports ${to.name}, which does not stand above it`
}

const packageOf = (specifier: string): string =>
  specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/")

const isBehind = (door: string, name: string): boolean =>
  (doors[door] ?? []).some((own) => (own.endsWith("/") ? name.startsWith(own) : name === own))

/** What is wrong with importing a package, where `declared` are the packages a user of Bursar has. */
const foreign = (from: Place, specifier: string, declared: ReadonlySet<string>): string | undefined => {
  if (from.kind === "index") return "is imported by src/index.ts, which imports rooms only"
  if (specifier.startsWith("node:")) return undefined
  const name = packageOf(specifier)
  if (name === "bursar") return "is this package itself; import the file"
  if (name === "effect" && /^effect(\/[a-z-]+)?$/.test(specifier)) return "is a barrel; import the module"
  const owners = Object.keys(doors).filter((door) => isBehind(door, name))
  if (owners.length > 0 && !(from.kind === "door" && owners.includes(from.name))) {
    return `belongs behind ${owners.map((door) => `src/${door}`).join(" or ")}`
  }
  return declared.has(name) ? undefined : "is not among the dependencies or peers of package.json"
}

interface Import {
  readonly offset: number
  /** `undefined` when it is not written as a plain string. */
  readonly specifier: string | undefined
}

/** Every way to name another module: static, type only, re-export, dynamic and `import("x").Type`. */
const importsOf = (file: SourceFile): ReadonlyArray<Import> => {
  const found: Array<Import> = []
  const add = (node: Node, source: unknown): void => {
    const value = isNode(source) ? source["value"] : undefined
    found.push({ offset: node.start, specifier: typeof value === "string" ? value : undefined })
  }
  walk(parse(file).tree, (node) => {
    if (node.type === "ImportDeclaration" || node.type === "ExportAllDeclaration") add(node, node["source"])
    else if (node.type === "ImportExpression" || node.type === "TSImportType") add(node, node["source"])
    else if (node.type === "ExportNamedDeclaration" && node["source"] !== null) add(node, node["source"])
    else if (node.type === "TSExternalModuleReference") add(node, node["expression"])
  })
  return found
}

const fault = (file: string, specifier: string | undefined, declared: ReadonlySet<string>): string | undefined => {
  if (specifier === undefined) return "imports a computed name, which cannot be checked"
  const from = placeOf(file)
  const why = specifier.startsWith(".")
    ? arrow(from, placeOf(path.join(path.dirname(file), specifier)))
    : foreign(from, specifier, declared)
  return why === undefined ? undefined : `"${specifier}" ${why}`
}

const vague = /^(utils?|common|shared|helpers?)$/i

const faultOfName = (file: string): string | undefined => {
  if (placeOf(file).kind === "nowhere") return "lies in no room"
  const word = file.split("/").find((part) => vague.test(part.replace(/\..*$/, "")))
  return word === undefined ? undefined : `"${word}" says nothing about what is inside`
}

/** Every breach in these files of `src`, as `path:line what`. */
export const breaches = (files: ReadonlyArray<SourceFile>, declared: ReadonlySet<string>): ReadonlyArray<string> =>
  files.flatMap((file) => {
    const name = faultOfName(file.path)
    const imports = importsOf(file).flatMap(({ offset, specifier }) => {
      const why = fault(file.path, specifier, declared)
      return why === undefined ? [] : [`${file.path}:${lineAt(file.text, offset)} ${why}`]
    })
    return name === undefined ? imports : [`${file.path}:1 ${name}`, ...imports]
  })

/**
 * The doors that `package.json` names and that have no `index.ts` although there is something behind them. Behind the
 * main door there is something as soon as there are agents.
 */
export const missingDoors = (files: ReadonlyArray<string>, exports: ReadonlyArray<string>): ReadonlyArray<string> =>
  exports.flatMap((door) => {
    const folder = door === "." ? "src" : path.join("src", door)
    const behind = door === "." ? "src/agent/" : `${folder}/`
    const index = `${folder}/index.ts`
    return files.some((file) => file.startsWith(behind)) && !files.includes(index) ? [index] : []
  })
