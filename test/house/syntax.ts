/**
 * Reading TypeScript as a tree, with the parser that comes with Vite.
 *
 * Offsets are those of the text; lines are counted from 1.
 */
import { parseSync } from "vite"

/** A file by its path within the repository, written with `/`. */
export interface SourceFile {
  readonly path: string
  readonly text: string
}

/** A node of the syntax tree. Only what this folder looks at is typed. */
export interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [key: string]: unknown
}

export const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string"

/** A comment without its marks; the value of a doc comment starts with `*`. */
export interface Comment {
  readonly type: "Line" | "Block"
  readonly value: string
  readonly start: number
  readonly end: number
}

/** The parsed file; throws on a syntax error, since a file that cannot be read cannot be checked. */
export const parse = ({
  path,
  text,
}: SourceFile): { readonly tree: Node; readonly comments: ReadonlyArray<Comment> } => {
  const { comments, errors, program } = parseSync(path, text)
  const [error] = errors
  if (error !== undefined) throw new Error(`${path}: ${error.message}`)
  const tree: unknown = program
  if (!isNode(tree)) throw new Error(`${path}: the parser gave no tree`)
  return { tree, comments }
}

/** Visits `node` and everything below it; `key` is the field of `parent` in which a node stands. */
export const walk = (
  node: Node,
  visit: (node: Node, parent: Node | undefined, key: string) => void,
  parent?: Node,
  key = "",
): void => {
  visit(node, parent, key)
  for (const [field, value] of Object.entries(node)) {
    for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) walk(child, visit, node, field)
  }
}

/** The line on which `offset` lies. */
export const lineAt = (text: string, offset: number): number => text.slice(0, offset).split("\n").length

/** The node in a field of `node`, if there is one. */
export const field = (node: Node | undefined, name: string): Node | undefined => {
  const value = node?.[name]
  return isNode(value) ? value : undefined
}

/** The nodes in a field of `node` that holds a list. */
export const list = (node: Node | undefined, name: string): ReadonlyArray<Node> => {
  const value = node?.[name]
  return Array.isArray(value) ? value.filter(isNode) : []
}
