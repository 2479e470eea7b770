/**
 * What requests and replies are worth in tokens on this server, and cutting a reply to what a cap leaves.
 *
 * Its law: the same conversation is worth the same in both protocols, streamed or not; the input counter and the
 * ledger ask the same function.
 */
import { isRecord, record } from "./Json.ts"
import type { RequestBody } from "./Turn.ts"

/** What one request bills. `cached` and `cacheWrite` lie inside `input`, `reasoning` inside `output`. */
export interface Tokens {
  readonly input: number
  readonly cached: number
  readonly cacheWrite: number
  readonly output: number
  readonly reasoning: number
}

/** Nothing billed. */
export const none: Tokens = { input: 0, cached: 0, cacheWrite: 0, output: 0, reasoning: 0 }

/** A tool call as it will be said; `isCut` when its arguments end too early. */
export interface SaidCall {
  readonly id: string
  readonly name: string
  readonly arguments: string
  readonly isCut: boolean
}

/** What a reply says. */
export interface Said {
  readonly text: string | undefined
  readonly refusal: string | undefined
  readonly calls: ReadonlyArray<SaidCall>
}

/** Bytes to a token. */
const bytesPerToken = 4

/** What OpenAI counts for an image of low detail, and for one of 1024 by 1024 pixels otherwise. */
const imageTokens = { low: 85, other: 765 }

const quarter = (bytes: number): number => Math.ceil(bytes / bytesPerToken)

/**
 * The input of a request: a quarter of the bytes of its instructions, the texts, names, arguments and outputs of its
 * input, the JSON of its tools and of the schema of its answer, rounded up; and a fixed number for each image.
 */
export const inputOf = (request: RequestBody): number => {
  const { instructions, response_format: chatFormat, text, tools } = request
  const format = record(text)["format"] ?? record(chatFormat)["json_schema"]
  const parts = [
    ...textsOf(request.input),
    ...(typeof instructions === "string" ? [instructions] : []),
    ...(tools === undefined ? [] : [JSON.stringify(tools)]),
    ...(record(format)["schema"] === undefined ? [] : [JSON.stringify(record(format)["schema"])]),
  ]
  return quarter(bytesOf(parts)) + imagesOf(request.input)
}

const textsOf = (value: unknown): ReadonlyArray<string> => {
  if (typeof value === "string") return [value]
  if (Array.isArray(value)) return value.flatMap(textsOf)
  const { name, content, text, refusal, arguments: args, output } = record(value)
  return [name, content, text, refusal, args, output].flatMap((part) => (part === undefined ? [] : textsOf(part)))
}

const imagesOf = (value: unknown): number => {
  if (Array.isArray(value)) return value.reduce<number>((sum, item) => sum + imagesOf(item), 0)
  if (!isRecord(value)) return 0
  if (value["type"] === "input_image") return value["detail"] === "low" ? imageTokens.low : imageTokens.other
  return imagesOf(value["content"]) + imagesOf(value["output"])
}

/** The output a reply is worth: a quarter of the bytes of its texts, names and arguments, rounded up. */
export const outputOf = ({ text, refusal, calls }: Said): number =>
  quarter(bytesOf([text ?? "", refusal ?? "", ...calls.flatMap((call) => [call.name, call.arguments])]))

const bytesOf = (parts: ReadonlyArray<string>): number => parts.reduce((sum, part) => sum + Buffer.byteLength(part), 0)

/** The reply with spaces after its text, worth `tokens`: they leave JSON what it is. */
export const lengthened = (said: Said, tokens: number): Said => {
  const text = said.text ?? ""
  const missing = tokens * bytesPerToken - bytesOf([text, said.refusal ?? "", ...partsOf(said.calls)])
  return missing <= 0 ? said : { ...said, text: text + " ".repeat(missing) }
}

const partsOf = (calls: ReadonlyArray<SaidCall>): ReadonlyArray<string> =>
  calls.flatMap((call) => [call.name, call.arguments])

/** As much of the reply as `tokens` pay for: text first, calls last, each as far as it goes. */
export const shortened = (said: Said, tokens: number): Said => {
  let left = tokens * bytesPerToken
  const take = (text: string): string => {
    const taken = head(text, left)
    left -= Buffer.byteLength(taken)
    return taken
  }
  const taken = (text: string | undefined) => (text === undefined || left === 0 ? undefined : take(text))
  const text = taken(said.text)
  const refusal = taken(said.refusal)
  const calls: Array<SaidCall> = []
  for (const call of said.calls) {
    if (left <= Buffer.byteLength(call.name)) break
    left -= Buffer.byteLength(call.name)
    const args = take(call.arguments)
    calls.push({ ...call, arguments: args, isCut: call.isCut || args !== call.arguments })
    if (args !== call.arguments) break
  }
  return { text, refusal, calls }
}

/** The longest start of whole characters within so many bytes. */
const head = (text: string, bytes: number): string =>
  new TextDecoder().decode(Buffer.from(text).subarray(0, bytes), { stream: true })
