/**
 * Whether traces hold what people, models and tools wrote. They do not, unless it is asked for, with one switch for all
 * of it.
 *
 * Its law: what is written went through the redactor first; where that fails, nothing is written; and no value is longer
 * than its limit.
 */
import * as Context from "effect/Context"

/**
 * What a redactor is given: the attribute that is to be written, its text, and the agent it belongs to.
 *
 * @category content
 * @since 0.1.0
 */
export interface Piece {
  readonly key: string
  readonly text: string
  /** The name of the agent; absent outside of one. */
  readonly agent: string | undefined
}

/**
 * How content is written.
 *
 * **Units**: `mostBytes` of UTF-8 for one attribute; 4 KiB unless given.
 *
 * @category content
 * @since 0.1.0
 */
export interface Options {
  /** Gives what may be written of a piece, or `undefined` for nothing. One that throws has given nothing. */
  readonly redact?: ((piece: Piece) => string | undefined) | undefined
  readonly mostBytes?: number | undefined
}

/**
 * What traces hold of content: nothing while it is `undefined`, and that is what it is unless provided.
 *
 * **Example** (Content with a name taken out)
 *
 * ```ts
 * import { Capture } from "bursar"
 * import * as Effect from "effect/Effect"
 * import * as Layer from "effect/Layer"
 *
 * const Shown = Layer.succeed(Capture.Content)({ redact: ({ text }) => text.replaceAll("Ada", "someone") })
 * const isShown = Effect.map(Effect.service(Capture.Content), (content) => content !== undefined)
 * await Effect.runPromise(Effect.provide(isShown, Shown)) // => true
 * ```
 *
 * @category content
 * @since 0.1.0
 */
export const Content = Context.Reference<Options | undefined>("bursar/telemetry/Content", {
  defaultValue: () => undefined,
})

const most = 4_096

/**
 * What is written for a value; `undefined` for nothing. A text loses its end, an array its middle: the first messages of
 * a conversation and its last ones tell most.
 */
export const write = (
  options: Options,
  of: { readonly key: string; readonly agent: string | undefined },
  value: unknown,
): string | undefined => {
  const mostBytes = options.mostBytes ?? most
  const kept = (part: unknown): ReadonlyArray<string> => {
    const text = redacted(options, { ...of, text: textOf(part) })
    return text === undefined ? [] : [text]
  }
  try {
    if (!Array.isArray(value)) return kept(value).map((text) => cut(text, mostBytes))[0]
    const items = value.flatMap(kept)
    if (items.length === 0 && value.length > 0) return undefined
    return withoutMiddle(
      items.map((text) => asItem(text, Math.floor(mostBytes / 4))),
      mostBytes,
    )
  } catch {
    // A value that cannot be written as JSON.
    return undefined
  }
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? "null"))

const redacted = ({ redact }: Options, piece: Piece): string | undefined => {
  if (redact === undefined) return piece.text
  try {
    const text: unknown = redact(piece)
    return typeof text === "string" ? text : undefined
  } catch {
    return undefined
  }
}

const bytesOf = (text: string): number => Buffer.byteLength(text)

/** Cut between two characters. */
const cut = (text: string, mostBytes: number): string =>
  bytesOf(text) <= mostBytes
    ? text
    : `${new TextDecoder().decode(Buffer.from(text).subarray(0, Math.max(0, mostBytes - 3)), { stream: true })}...`

/** One element of a JSON array: as it is where it is JSON and short, else a text. */
const asItem = (text: string, mostBytes: number): string =>
  bytesOf(text) <= mostBytes && isJson(text) ? text : JSON.stringify(cut(text, mostBytes))

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const withoutMiddle = (items: ReadonlyArray<string>, mostBytes: number): string => {
  const whole = `[${items.join(",")}]`
  if (bytesOf(whole) <= mostBytes) return whole
  const left = (from: number, to: number) => `{"omitted":${to - from}}`
  const [head, tail]: [Array<string>, Array<string>] = [[], []]
  let room = mostBytes - bytesOf(`[${left(0, items.length)}]`)
  let [from, to] = [0, items.length]
  while (from < to) {
    const item = (from <= items.length - to ? items[from] : items[to - 1])!
    room -= bytesOf(item) + 1
    if (room < 0) break
    if (from <= items.length - to) [from] = [head.push(item)]
    else to = items.length - tail.unshift(item)
  }
  return `[${[...head, left(from, to), ...tail].join(",")}]`
}
