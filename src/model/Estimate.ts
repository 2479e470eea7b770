/**
 * An upper estimate of the input tokens of a request, for models without a counter of their own.
 *
 * Its law: no text takes more tokens, with the byte-level encodings that models use today (measured: o200k, cl100k),
 * not even gibberish. A token is at least one byte, and that is what signs, capitals, long numbers and every script
 * but Latin are held at; lower-case letters come at least two to a token. Requests in English take about a third of
 * what is held. Images and files are held by what providers charge for them, never by the length of base64:
 *
 * | part | held at |
 * | --- | --- |
 * | image | 2.5 tokens for 32 by 32 pixels, at least 2,240, at most 24,600 and that where the size is unknown |
 * | file with its data | a token for each byte of it, at least 4,096 |
 * | file behind an address | the largest window of a model, 1,050,000: nothing is known of it |
 *
 * For images that is no less than the published rules of Anthropic (a token for 28 by 28 pixels), Google (at most 2,240)
 * and OpenAI, but for its `gpt-4o-mini`, which counts an image 33 times. A bill above the estimate is still booked in
 * full (an over-run).
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import { sizeOf, sizeOfUrl } from "./ImageSize.ts"
import type { Request } from "./Model.ts"

const tokensPerMessage = 16
const tokensPerPart = 4
const tokensPerTool = 32

const patch = 32
const tokensPerPatch = 2.5
const leastImage = 2_240
const largestImage = 24_600
const leastFile = 4_096
const largestInput = 1_050_000

/** Upper estimate of the tokens of a text. */
export const textTokens = (text: string): number => {
  let sixteenths = 0
  // From the end, since a space is cheap only before a word or another space.
  let after = 0
  for (let index = text.length - 1; index >= 0; index--) {
    const unit = text.charCodeAt(index)
    sixteenths += unit === space ? (after === space || isLetter(after) ? 9 : 16) : weightOf(unit)
    after = unit
  }
  return Math.ceil(sixteenths / 16)
}

const space = 0x20

const isLower = (unit: number): boolean => unit >= 0x61 && unit <= 0x7a
const isLetter = (unit: number): boolean => isLower(unit) || (unit >= 0x41 && unit <= 0x5a)
const isDigit = (unit: number): boolean => unit >= 0x30 && unit <= 0x39

/** Sixteenths of a token for a unit of UTF-16; outside ASCII a token for each byte of its UTF-8. */
const weightOf = (unit: number): number => {
  if (isLower(unit)) return 9
  if (unit < 0x80) return isDigit(unit) ? 14 : 16
  // Two bytes, or one of the two halves of four.
  return unit < 0x800 || (unit >= 0xd800 && unit <= 0xdfff) ? 32 : 48
}

interface Counted {
  messages: number
  tokens: number
}

/** What the messages of a history come to that were counted before. */
const counted = new WeakMap<ReadonlyArray<Prompt.Message>, Counted>()

/** What messages come to; they are not changed once they were said. */
const known = new WeakMap<Prompt.Message, number>()

const tokensOf = (message: Prompt.Message): number => {
  const before = known.get(message)
  if (before !== undefined) return before
  const content =
    typeof message.content === "string"
      ? textTokens(message.content)
      : message.content.reduce((sum, part) => sum + tokensOfPart(part), 0)
  const tokens = content + tokensPerMessage
  known.set(message, tokens)
  return tokens
}

type Part = Exclude<Prompt.Message["content"], string>[number]

const tokensOfPart = (part: Part): number => {
  const beside = tokensPerPart + tokensOfJson(part.options)
  switch (part.type) {
    case "text":
    case "reasoning":
      return beside + textTokens(part.text)
    case "file":
      return beside + tokensOfFile(part)
    case "tool-call":
      return beside + textTokens(part.id + part.name) + tokensOfJson(part.params)
    case "tool-result":
      return beside + textTokens(part.id + part.name) + Math.max(tokensOfJson(part.result), tokensOfOutput(part))
    case "tool-approval-request":
    case "tool-approval-response":
      return beside + tokensOfJson(part)
  }
}

const tokensOfOutput = ({ modelOutput = [] }: Prompt.ToolResultPart): number =>
  modelOutput.reduce(
    (sum, part) => sum + tokensPerPart + (part.type === "text" ? textTokens(part.text) : tokensOfFile(part)),
    0,
  )

const tokensOfJson = (value: unknown): number => {
  if (typeof value === "string") return textTokens(value)
  const text = JSON.stringify(value) ?? ""
  return text === "{}" ? 0 : textTokens(text)
}

const tokensOfFile = ({ data, mediaType }: Pick<Prompt.FilePart, "data" | "mediaType">): number => {
  const address =
    data instanceof URL ? data.href : typeof data === "string" && /^(https?|data):/.test(data) ? data : undefined
  if (mediaType.startsWith("image/")) {
    const size = address === undefined ? sizeOf(data as string | Uint8Array) : sizeOfUrl(address)
    if (size === undefined) return largestImage
    const patches = Math.ceil(size.width / patch) * Math.ceil(size.height / patch)
    return Math.min(largestImage, Math.max(leastImage, Math.ceil(patches * tokensPerPatch)))
  }
  if (address?.startsWith("http") === true) return largestInput
  const bytes = data instanceof Uint8Array ? data.byteLength : Math.ceil((String(data).length * 3) / 4)
  return Math.max(leastFile, bytes)
}

/** The messages of a history; only those that are new are looked at. */
const historyTokens = (history: ReadonlyArray<Prompt.Message>): number => {
  const known = counted.get(history) ?? { messages: 0, tokens: 0 }
  counted.set(history, known)
  for (; known.messages < history.length; known.messages++) known.tokens += tokensOf(history[known.messages]!)
  return known.tokens
}

const toolTokens = new WeakMap<object, number>()

const tokensOfTool = (tool: Tool.Any): number => {
  const known = toolTokens.get(tool)
  if (known !== undefined) return known
  const text = tool.name + (Tool.getDescription(tool) ?? "") + JSON.stringify(Tool.getJsonSchema(tool))
  const tokens = textTokens(text) + tokensPerTool
  toolTokens.set(tool, tokens)
  return tokens
}

/** Upper estimate of the input tokens of a request, schemas included. */
export const inputTokens = (request: Request): number =>
  (request.parts === undefined
    ? request.messages.reduce((sum, one) => sum + tokensOf(one), 0)
    : historyTokens(request.parts.history) + tokensOf(request.parts.last)) + tokensBeside(request)

const tokensBeside = ({ tools, answer }: Request): number =>
  tools.reduce((sum, one) => sum + tokensOfTool(one), answer === undefined ? 0 : tokensOfTool(answer.tool))
