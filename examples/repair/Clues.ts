/**
 * What can be learned from reading: what `node --test` prints about a test that failed, and what a line of source says.
 * Nothing here looks at files; it is given what others have read.
 */
import { fileURLToPath } from "node:url"

/** A place in a file; the path is relative to the project, lines count from 1. */
export interface Place {
  readonly file: string
  readonly line: number
}

/** A test that failed: where it stands, what it said, and the function of the project that gave the error, if one did. */
export interface Failure {
  readonly name: string
  readonly error: string
  /** The statement of the test that failed. */
  readonly at: Place
  readonly raisedIn: (Place & { readonly function: string }) | undefined
}

/**
 * The tests that failed, from the summary at the end of the output.
 *
 * **Example** (A test that failed)
 *
 * ```ts
 * const output = "test at test/a.test.js:3:1\n✖ adds up (0.3ms)\n  Error: no\n      at add (file:///p/src/a.js:7:9)\n"
 * Clues.failures(output)[0]?.name // => "adds up"
 * ```
 */
export const failures = (output: string): ReadonlyArray<Failure> => {
  const blocks = output.split(/^test at (?=.+:\d+:\d+$)/m).slice(1)
  return blocks.flatMap((block) => failureOf(block.split("\n")) ?? [])
}

const failureOf = ([place = "", title = "", ...rest]: ReadonlyArray<string>): Failure | undefined => {
  const [, file, line] = /^(.+):(\d+):\d+$/.exec(place) ?? []
  const [, name] = /^\S+ (.+) \([\d.]+ms\)$/.exec(title) ?? []
  if (file === undefined || name === undefined) return undefined
  const end = rest.findIndex((text) => text !== "" && !text.startsWith(" "))
  const said = end < 0 ? rest : rest.slice(0, end)
  const frames = framesOf(said, file)
  const inTest = frames.find((frame) => frame.file === file)
  const [first] = frames
  return {
    name,
    error: (said[0] ?? "").trim(),
    at: { file, line: inTest?.line ?? Number(line) },
    raisedIn: first === undefined || first.file === file ? undefined : first,
  }
}

/** The frames of a stack that lie in the project; where that is, the path of the test file tells. */
const framesOf = (lines: ReadonlyArray<string>, test: string) => {
  const frames = lines.flatMap((text) => {
    const [, name = "", url = "", line] =
      /^ +at (?:async )?(?:(\S+) \()?(file:\/\/.+?|\/.+?):(\d+):\d+\)?$/.exec(text) ?? []
    if (line === undefined) return []
    return [{ function: name, path: url.startsWith("file:") ? fileURLToPath(url) : url, line: Number(line) }]
  })
  const root = frames.find(({ path }) => path.endsWith(`/${test}`))?.path.slice(0, -test.length)
  return frames.flatMap(({ path, ...frame }) =>
    root !== undefined && path.startsWith(root) ? [{ ...frame, file: path.slice(root.length) }] : [],
  )
}

/** A call of a function with a text, as it stands in a line of source. */
export interface Call {
  readonly function: string
  readonly input: string
}

/** The innermost call with a text in a line: `parsePrice("$5")` of `assert.equal(parsePrice("$5"), price)`. */
export const callIn = (line: string): Call | undefined => {
  const [, name, , input] = /(\w+)\((["'`])((?:(?!\2).)*)\2/.exec(line) ?? []
  return name === undefined || input === undefined ? undefined : { function: name, input }
}

/** Full-width characters of a text, such as the ones a Chinese or Japanese keyboard types. */
export const fullWidthIn = (text: string): ReadonlyArray<string> =>
  [...new Set(text)].filter((one) => /[\uFF01-\uFF5E\uFFE0-\uFFE6\u3000]/.test(one))

/** A text in ordinary characters: "￥19" is "¥19". */
export const ordinary = (text: string): string => text.normalize("NFKC")
