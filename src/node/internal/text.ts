/**
 * Reading files as text: whole, of a bounded size, and only if they are text.
 */
import { hash } from "node:crypto"
import { constants } from "node:fs"
import * as fs from "node:fs/promises"
import * as Effect from "effect/Effect"
import * as ToolError from "../../tool/ToolError.ts"
import { attempt, failureAt } from "./errno.ts"

/** A file as it was read. */
export interface Content {
  readonly bytes: Buffer
  /** The permission bits. */
  readonly mode: number
}

/** What opening a file to read adds: no link is followed at its end, and nothing waits for the other end of a pipe. */
const readOnly = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0)

/** Reads a whole file of at most `maxBytes`. */
export const readBytes = (
  file: { readonly real: string; readonly asked: string },
  maxBytes: number,
): Effect.Effect<Content, ToolError.ToolError> => attempt(file.asked, (signal) => readContent(file, maxBytes, signal))

/** The promise behind {@link readBytes}. It fails with a `ToolError` or with an error of the system. */
export const readContent = async (
  { asked, real }: { readonly real: string; readonly asked: string },
  maxBytes: number,
  signal: AbortSignal,
): Promise<Content> => {
  const handle = await fs.open(real, readOnly)
  try {
    const stat = await handle.stat()
    if (stat.isDirectory()) throw failureAt(asked, "EISDIR")
    if (!stat.isFile()) throw ToolError.mistake("EINVAL", `${asked} is not a regular file`)
    if (stat.size > maxBytes) throw tooLarge(asked, stat.size, maxBytes)
    return { bytes: await handle.readFile({ signal }), mode: stat.mode & 0o7777 }
  } finally {
    await handle.close()
  }
}

const tooLarge = (asked: string, size: number, maxBytes: number): ToolError.ToolError =>
  ToolError.mistake("EFBIG", `${asked} has ${size} bytes; files of more than ${maxBytes} bytes are not read`)

/** The text of a file; it is UTF-8, a null character says otherwise. */
export const decode = (bytes: Buffer): string | undefined => {
  if (bytes.includes(0)) return undefined
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

/** The text of a file that has to be text. */
export const textOf = (asked: string, { bytes }: Content): Effect.Effect<string, ToolError.ToolError> => {
  const text = decode(bytes)
  return text === undefined
    ? Effect.fail(ToolError.mistake("EBINARY", `${asked} is not a text in UTF-8 (${bytes.length} bytes)`))
    : Effect.succeed(text)
}

/** What a file is at this moment, as a digest; the same as `Content.digest` of its text. */
export const versionOf = (bytes: Buffer): string => `sha256:${hash("sha256", bytes)}`

/** The lines of a text with their line breaks. An empty text has none. */
export const linesOf = (text: string): ReadonlyArray<string> => text.match(/[^\n]*\n|[^\n]+$/g) ?? []

/** The first at most `max` bytes of a text, without a character that was cut in the middle. */
export const headOf = (bytes: Buffer, max: number): Buffer => {
  const head = bytes.subarray(0, max)
  const lead = head.findLastIndex((byte, index) => index >= head.length - 4 && !isContinuation(byte))
  return lead >= 0 && lead + widthOf(head[lead]!) > head.length ? head.subarray(0, lead) : head
}

/** The last at most `max` bytes of a text, without a character that was cut in the middle. */
export const tailOf = (bytes: Buffer, max: number): Buffer => {
  if (bytes.length <= max) return bytes
  const tail = bytes.subarray(bytes.length - max)
  const start = tail.findIndex((byte, index) => index === 3 || !isContinuation(byte))
  return tail.subarray(Math.max(0, start))
}

const isContinuation = (byte: number): boolean => (byte & 0xc0) === 0x80

/** How many bytes the character has that starts with this one. */
const widthOf = (lead: number): number => {
  if (lead >= 0xf0) return 4
  return lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1
}

/** A text of at most `max` bytes: the whole one, or its head with a mark. */
export const clip = (text: string, max: number): string => {
  const bytes = Buffer.from(text)
  return bytes.length <= max ? text : `${headOf(bytes, max).toString()}…`
}
