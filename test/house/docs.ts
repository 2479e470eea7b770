/**
 * The examples in doc comments and in `README.md`: finding them and turning each into a module that runs.
 *
 * - A fence opened with `ts` is type-checked and run; `ts no-run` is type-checked only. Any other word after `ts` is
 *   an error, and other languages are left alone.
 * - `<expression> // => <expected>` asserts deep equality, where `<expected>` is any expression on that line. The
 *   comment may also stand alone on the line below. It follows an expression statement (at any depth, so also
 *   `yield* x // => 1`), the `const name = ...` of one name, or `console.log(<expression>)`, and is an error elsewhere.
 * - An example in a doc comment may leave its imports out: an unknown name with a capital is the module of that name
 *   in `src` (through the main door when that exports it), else an export of the commented file, else a module of
 *   `effect`, `effect/ai` or `effect/testing`. An example in `README.md` shows all of its imports.
 *
 * Every line of the module has the number it has in the original, so that errors point there.
 */
import * as path from "node:path"
import { type Scope, unknownNames } from "./docImports.ts"
import { field, lineAt, list, type Node, parse, type SourceFile, walk } from "./syntax.ts"
import { exists, read, root } from "./tree.ts"

/** One fence. `line` is that of its opening. */
export interface Example {
  readonly path: string
  readonly line: number
  readonly code: string
  readonly run: boolean
}

const opening = /^(\s*)(`{3,})ts(?:\s+(.*?))?\s*$/

/** The fences among `lines`, of which the first is line `first` of the file. */
const fences = (file: string, lines: ReadonlyArray<string>, first: number): ReadonlyArray<Example> => {
  const found: Array<Example> = []
  for (let at = 0; at < lines.length; at++) {
    const [, indent = "", ticks = "", info = ""] = opening.exec(lines[at] ?? "") ?? []
    if (ticks === "") continue
    const where = `${file}:${first + at}`
    if (info !== "" && info !== "no-run") throw new Error(`${where} "ts ${info}" is neither "ts" nor "ts no-run"`)
    const end = lines.findIndex((line, index) => index > at && line.trim() === ticks)
    if (end < 0) throw new Error(`${where} the example is not closed`)
    const code = lines.slice(at + 1, end).map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line))
    found.push({ path: file, line: first + at, code: code.join("\n"), run: info === "" })
    at = end
  }
  return found
}

/** Every example of one file: of its doc comments, or of the whole text when it is Markdown. */
export const examplesIn = (file: SourceFile): ReadonlyArray<Example> => {
  if (file.path.endsWith(".md")) return fences(file.path, file.text.split("\n"), 1)
  return parse(file).comments.flatMap((comment) => {
    if (comment.type !== "Block" || !comment.value.startsWith("*")) return []
    const lines = comment.value.slice(1).split("\n")
    return fences(
      file.path,
      lines.map((line) => line.replace(/^\s*\* ?/, "")),
      lineAt(file.text, comment.start),
    )
  })
}

/** Every example of the repository, with `sources` as the files of `src`. */
export const examples = (sources: ReadonlyArray<SourceFile>): ReadonlyArray<Example> =>
  [...sources, ...["README.md"].filter(exists).map(read)].flatMap(examplesIn)

/** A piece of text and where it goes. */
interface Insertion {
  readonly at: number
  readonly text: string
}

/** What a statement is about: an expression, or the name it has just bound. */
const subject = (statement: Node, code: string): Node | string | undefined => {
  if (statement.type === "VariableDeclaration") {
    const [only, ...rest] = list(statement, "declarations")
    const id = field(only, "id")
    return id?.type === "Identifier" && rest.length === 0 ? String(id["name"]) : undefined
  }
  const expression = field(statement, "expression")
  const callee = field(expression, "callee")
  if (callee === undefined || code.slice(callee.start, callee.end) !== "console.log") return expression
  const [shown, ...rest] = list(expression, "arguments")
  return rest.length === 0 ? shown : undefined
}

/** What turns the statement before one `// =>` into a comparison. */
const comparison = (statement: Node, code: string, rest: string): ReadonlyArray<Insertion> | undefined => {
  const about = subject(statement, code)
  if (about === undefined) return undefined
  if (typeof about === "string") return [{ at: statement.end, text: `; __same((${about}), ${rest};` }]
  return [
    { at: about.start, text: "__same((" },
    { at: about.end, text: `), ${rest}` },
  ]
}

/** The code with a comparison for each `// =>`. */
const compared = (example: Example): string => {
  const { code } = example
  const { comments, tree } = parse({ path: `${example.path}:${example.line}.ts`, text: code })
  const statements: Array<Node> = []
  walk(tree, (node) => void (/^(ExpressionStatement|VariableDeclaration)$/.test(node.type) && statements.push(node)))
  const insertions = comments.flatMap((comment) => {
    const expected = /^\s*=>(.*)$/.exec(comment.value)?.[1]?.trim()
    if (comment.type !== "Line" || expected === undefined) return []
    const where = `${example.path}:${example.line + lineAt(code, comment.start)}`
    const before = statements.findLast(
      ({ end }) => end <= comment.start && /^[\s;]*$/.test(code.slice(end, comment.start)),
    )
    const rest = `(${expected}), ${JSON.stringify(where)})`
    const found = before === undefined || expected === "" ? undefined : comparison(before, code, rest)
    if (found === undefined) throw new Error(`${where} "// =>" stands between no two values`)
    return found
  })
  return insertions
    .toSorted((one, other) => other.at - one.at)
    .reduce((text, { at, text: more }) => text.slice(0, at) + more + text.slice(at), code)
}

const module = (example: Example, scope: Scope, code: string, more: ReadonlyArray<string>): string => {
  const names = unknownNames(parse({ path: `${example.path}:${example.line}.ts`, text: code }).tree)
  const imports = [...more, ...names.flatMap((name) => scope(name) ?? [])]
  return `${imports.join("; ")}${"\n".repeat(example.line)}${code}\n`
}

/** The module to type-check. */
export const typed = (example: Example, scope: Scope): string => module(example, scope, example.code, [])

/** The module to run. */
export const runnable = (example: Example, scope: Scope): string => {
  const same = JSON.stringify(path.join(root, "test/house/same.ts"))
  return module(example, scope, compared(example), [`import { same as __same } from ${same}`])
}

/** A name for the module that keeps the original in sight. */
export const fileName = ({ line, path: file }: Example): string =>
  `${file.replace(/\.ts$/, "").replaceAll("/", ".")}.${line}.ts`
