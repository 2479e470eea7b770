/** Where the names come from that an example uses without importing them. */
import * as path from "node:path"
import { field, list, type Node, parse, type SourceFile, walk } from "./syntax.ts"
import { exists, root } from "./tree.ts"

/** Where a name that an example does not import may come from: the import line for it. */
export type Scope = (name: string) => string | undefined

const isName = (parent: Node | undefined, key: string): boolean =>
  (key === "property" && parent?.type === "MemberExpression" && parent["computed"] !== true) ||
  (key === "key" && parent?.["computed"] !== true && parent?.["shorthand"] !== true) ||
  (key === "right" && parent?.type === "TSQualifiedName") ||
  key === "imported" ||
  key === "exported"

/** The names that a pattern binds. */
const bound = (pattern: Node | undefined): ReadonlyArray<string> => {
  if (pattern === undefined) return []
  if (pattern.type === "Identifier") return [String(pattern["name"])]
  const parts = ["properties", "elements"].flatMap((name) => list(pattern, name))
  return [...parts, ...["value", "argument", "left"].map((name) => field(pattern, name))].flatMap(bound)
}

/** The names with a capital that the code uses and neither declares nor imports. */
export const unknownNames = (tree: Node): ReadonlyArray<string> => {
  const used = new Set<string>()
  const declared = new Set<string>(["Record", "Iterable", ...Object.getOwnPropertyNames(globalThis)])
  walk(tree, (node, parent, key) => {
    const named =
      node.type === "VariableDeclarator" || /(Function|Class|Alias|Interface)\w*Declaration$/.test(node.type)
    const binding = named
      ? field(node, "id")
      : /^Import\w*Specifier$/.test(node.type)
        ? field(node, "local")
        : undefined
    for (const name of bound(binding)) declared.add(name)
    const name = node.type === "Identifier" && !isName(parent, key) ? String(node["name"]) : ""
    if (/^[A-Z]/.test(name)) used.add(name)
  })
  return [...used].filter((name) => !declared.has(name))
}

/** The names that a module exports. */
const exportsOf = (file: SourceFile): ReadonlyArray<string> =>
  list(parse(file).tree, "body")
    .filter(({ type }) => type.startsWith("Export"))
    .flatMap((node) => {
      const declaration = field(node, "declaration")
      const declared = [declaration, ...list(declaration, "declarations")].map((one) => field(one, "id"))
      return [...declared, ...[node, ...list(node, "specifiers")].map((one) => field(one, "exported"))]
    })
    .flatMap(bound)

const quoted = (source: string): string => JSON.stringify(path.join(root, source))

/** What the examples of `file` may use without importing it, out of `sources`; nothing in Markdown. */
export const scopeOf = (file: string, sources: ReadonlyArray<SourceFile>): Scope => {
  if (file.endsWith(".md")) return () => undefined
  const exported = (of: string): ReadonlySet<string> =>
    new Set(sources.filter((source) => source.path === of).flatMap(exportsOf))
  const main = exported("src/index.ts")
  const own = exported(file)
  return (name) => {
    const named = sources.map((source) => source.path).filter((source) => path.basename(source) === `${name}.ts`)
    const module = named.find((source) => path.dirname(source) === path.dirname(file)) ?? named[0]
    if (main.has(name)) return `import { ${name} } from "bursar"`
    if (module !== undefined) return `import * as ${name} from ${quoted(module)}`
    if (own.has(name)) return `import { ${name} } from ${quoted(file)}`
    const effect = ["effect", "effect/ai", "effect/testing"]
    const from = effect.find((folder) => exists(`node_modules/${folder.replace("effect", "effect/dist")}/${name}.js`))
    return from === undefined ? undefined : `import * as ${name} from "${from}/${name}"`
  }
}
