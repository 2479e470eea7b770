/**
 * How many input tokens a request takes, counted before it is sent: the tokeniser of OpenAI's models, and the recipe
 * that OpenAI publishes for what stands around messages and functions.
 *
 * Its laws: what it says is meant to be no less than what is billed, hence the margin of a tenth on all text, since the
 * recipe says how tokens were counted for some models and promises nothing; an image costs what its contract says,
 * with no margin, and never what its base64 would; what cannot be counted (files, sound, what the provider keeps) is
 * refused rather than left out; and a history that only grows is tokenised once, message by message.
 *
 * A model with another tokeniser is counted by the estimate in bytes, a good deal higher. What tools of the provider
 * bring into a conversation is not in a request and not counted here.
 *
 * **Source**: "How to count tokens with tiktoken", OpenAI Cookbook.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { ChatCompletionCreateParams } from "openai/resources/chat/completions/completions"
import type { ResponseCreateParams } from "openai/resources/responses/responses"
import { textTokens } from "../../model/Estimate.ts"
import { sizeOfUrl } from "../../model/ImageSize.ts"
import { imageTokens, nameOf } from "./imageTokens.ts"

/** The body of a request, of either protocol. */
export type Body = Partial<ResponseCreateParams> | Partial<ChatCompletionCreateParams>

/** Tokens of text, before the margin, and of images. */
export interface Tokens {
  readonly text: number
  readonly images: number
}

/** What about a request cannot be counted: the name of a field or of a kind of part, never its content. */
export interface Uncountable {
  readonly what: string
}

type Counted = Result.Result<Tokens, Uncountable>

/** Tokens of a text on its own. */
export type CountText = (text: string) => number

/** Counts for one model. */
export interface Counter {
  readonly bound: "tokenised" | "bytes"
  /** A whole request, with the margin. */
  readonly body: (body: Body) => Result.Result<number, Uncountable>
  /** One item of `input`, or one of `messages`. Each object is counted once. */
  readonly item: (item: object) => Counted
}

/** Text with its margin of a tenth, rounded up, and images. */
export const total = ({ images, text }: Tokens): number => Math.ceil((text * 11) / 10) + images

// The recipe's numbers.
const perMessage = 3
const perName = 1
const perReply = 3
const perFunction = 7
const perFunctions = 12
const perProperties = 3
const perProperty = 3
const perEnum = -3
const perChoice = 3
// Not in the recipe: how a call and its result are laid out in the open format of gpt-oss, rounded up.
const perCall = 12
const perFormat = 16

/** A counter for `model` over a count of texts. */
export const make = (model: string, countText: CountText, bound: Counter["bound"] = "tokenised"): Counter => {
  const item = once((one: object) => tokensOfItem(one as Json, { model, countText }))
  const items = growing(item)
  const beside = once((one: object) => Result.succeed({ text: tokensOfTool(one as Json, countText), images: 0 }))
  const tools = growing(beside)
  return {
    bound,
    item,
    body: (body) => {
      const { conversation, input, instructions, messages, previous_response_id, response_format, text, ...rest } =
        body as Json
      if (given(previous_response_id)) return uncountable("previous_response_id")
      if (given(conversation)) return uncountable("conversation")
      if (given(rest["prompt"])) return uncountable("prompt")
      const said = typeof input === "string" ? [{ role: "user", content: input }] : (input ?? messages ?? [])
      const offered = (rest["tools"] ?? []) as ReadonlyArray<object>
      const format = formatOf(response_format ?? (text as Json | undefined)?.["format"])
      return Result.map(add(items(said as ReadonlyArray<object>), tools(offered)), (tokens) =>
        total({
          text:
            tokens.text +
            perReply +
            (given(instructions) ? perMessage + countText("system") + countText(asText(instructions)) : 0) +
            (offered.length === 0 ? 0 : perFunctions) +
            (format === undefined ? 0 : perFormat + countText(format)),
          images: tokens.images,
        }),
      )
    },
  }
}

/**
 * A counter for `model`: with the tokeniser when the model has it and it is installed, else in bytes. The tokeniser is
 * loaded by the first model that has it.
 */
export const forModel = (model: string): Effect.Effect<Counter> =>
  hasO200k.test(nameOf(model))
    ? Effect.map(loaded, (countText) => (countText === undefined ? inBytes(model) : make(model, countText)))
    : Effect.sync(() => inBytes(model))

const inBytes = (model: string): Counter => make(model, textTokens, "bytes")

const hasO200k = /^(gpt-4o|chatgpt-4o|gpt-4\.[15]|gpt-[5-9]|gpt-oss|o[1-9]|codex|computer-use)/

/** Special tokens that are written out in a text are text. */
const asWritten = { disallowedSpecial: new Set<string>() }

const loaded: Effect.Effect<CountText | undefined> = Effect.promise(() =>
  import("gpt-tokenizer/encoding/o200k_base").then(
    ({ countTokens }) => byPieces((text) => countTokens(text, asWritten)),
    () => undefined,
  ),
)

const longest = 512

/**
 * Counts long runs without a space (or of nothing else) in pieces, since a tokeniser takes the square of their length.
 * A cut adds a token now and then.
 */
export const byPieces =
  (countText: CountText): CountText =>
  (text) => {
    let [tokens, from, start] = [0, 0, 0]
    for (let end = 1; end <= text.length; end++) {
      if (end < text.length && isSpace(text, end) === isSpace(text, start)) continue
      if (end - start > longest) {
        if (start > from) tokens += countText(text.slice(from, start))
        for (let at = start; at < end; at += longest) tokens += countText(text.slice(at, Math.min(end, at + longest)))
        from = end
      }
      start = end
    }
    return from === text.length ? tokens : tokens + countText(from === 0 ? text : text.slice(from))
  }

const isSpace = (text: string, at: number): boolean => text.charCodeAt(at) <= 0x20

/** Remembers what objects came to. They are not changed once they were counted. */
const once = <A extends object>(count: (one: A) => Counted): ((one: A) => Counted) => {
  const known = new WeakMap<A, Counted>()
  return (one) => {
    const before = known.get(one)
    if (before !== undefined) return before
    const counted = count(one)
    known.set(one, counted)
    return counted
  }
}

/**
 * Adds up a list that only grows: of the same array only what is new is looked at. With `count` going by messages of
 * another kind than those on the wire, this counts a conversation without writing it out again.
 */
export const growing = <A extends object>(count: (one: A) => Counted): ((list: ReadonlyArray<A>) => Counted) => {
  const known = new WeakMap<
    ReadonlyArray<A>,
    { readonly length: number; readonly last: A | undefined; readonly sum: Counted }
  >()
  return (list) => {
    const before = known.get(list)
    const grown = before !== undefined && before.length <= list.length && list[before.length - 1] === before.last
    let sum: Counted = grown ? before.sum : Result.succeed({ text: 0, images: 0 })
    for (let index = grown ? before.length : 0; index < list.length; index++) sum = add(sum, count(list[index]!))
    known.set(list, { length: list.length, last: list.at(-1), sum })
    return sum
  }
}

const add = (a: Counted, b: Counted): Counted => {
  if (Result.isFailure(a)) return a
  if (Result.isFailure(b)) return b
  return Result.succeed({ text: a.success.text + b.success.text, images: a.success.images + b.success.images })
}

type Json = Readonly<Record<string, unknown>>

interface With {
  readonly model: string
  readonly countText: CountText
}

const uncountable = (what: string): Result.Result<never, Uncountable> => Result.fail({ what })

const given = (value: unknown): boolean => value !== undefined && value !== null

const asText = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""))

const tokensOfItem = (item: Json, by: With): Counted => {
  const { countText } = by
  const text = (tokens: number): Counted => Result.succeed({ text: tokens, images: 0 })
  switch (item["type"] ?? "message") {
    case "message": {
      const { content, name, refusal, role, tool_calls } = item
      const calls = ((tool_calls ?? []) as ReadonlyArray<Json>).map(({ custom, function: called }) => {
        const one = (called ?? custom ?? {}) as Json
        return perCall + countText(asText(one["name"])) + countText(asText(one["arguments"] ?? one["input"] ?? ""))
      })
      const around =
        perMessage +
        countText(asText(role)) +
        (given(name) ? perName + countText(asText(name)) : 0) +
        (given(refusal) ? countText(asText(refusal)) : 0) +
        (role === "tool" ? perCall : 0) +
        calls.reduce((sum, tokens) => sum + tokens, 0)
      return add(text(around), tokensOfContent(content, by))
    }
    case "function_call":
      return text(perMessage + perCall + countText(asText(item["name"])) + countText(asText(item["arguments"])))
    case "function_call_output":
      return add(text(perMessage + perCall), tokensOfContent(item["output"], by))
    case "item_reference":
      return uncountable("item_reference")
    default:
      // Reasoning that is handed back, and whatever else comes: as long as it is written.
      return text(perMessage + countText(asText(item)))
  }
}

const tokensOfContent = (content: unknown, by: With): Counted => {
  if (typeof content === "string") return Result.succeed({ text: by.countText(content), images: 0 })
  let sum: Counted = Result.succeed({ text: 0, images: 0 })
  for (const part of (content ?? []) as ReadonlyArray<Json>) sum = add(sum, tokensOfPart(part, by))
  return sum
}

const tokensOfPart = (part: Json, { countText, model }: With): Counted => {
  switch (part["type"]) {
    case "text":
    case "input_text":
    case "output_text":
    case "refusal":
      return Result.succeed({ text: countText(asText(part["text"] ?? part["refusal"])), images: 0 })
    case "input_image":
      return image(model, part["detail"], part["image_url"])
    case "image_url": {
      const { detail, url } = part["image_url"] as Json
      return image(model, detail, url)
    }
    default:
      return uncountable(asText(part["type"]).slice(0, 64))
  }
}

const image = (model: string, detail: unknown, url: unknown): Counted =>
  Result.succeed({ text: 0, images: imageTokens(model, detail, typeof url === "string" ? sizeOfUrl(url) : undefined) })

/** A function by the recipe; anything that it does not know as long as it is written. */
const tokensOfTool = (tool: Json, countText: CountText): number => {
  const { description, name, parameters } = (tool["function"] ?? tool) as Json
  if (tool["type"] !== "function") return perFunction + countText(asText(tool))
  const { additionalProperties: _, properties, required: __, type: ___, ...rest } = (parameters ?? {}) as Json
  const entries = Object.entries((properties ?? {}) as Readonly<Record<string, unknown>>)
  return (
    perFunction +
    countText(`${asText(name)}:${described(description)}`) +
    (entries.length === 0 ? 0 : perProperties) +
    entries.reduce((sum, [key, schema]) => sum + tokensOfProperty(key, (schema ?? {}) as Json, countText), 0) +
    tokensOfRest(rest, countText)
  )
}

const tokensOfProperty = (key: string, schema: Json, countText: CountText): number => {
  const { description, enum: choices, type, ...rest } = schema
  const chosen = (choices ?? []) as ReadonlyArray<unknown>
  return (
    perProperty +
    countText(`${key}:${asText(type)}:${described(description)}`) +
    (given(choices) ? perEnum : 0) +
    chosen.reduce<number>((sum, one) => sum + perChoice + countText(asText(one)), 0) +
    tokensOfRest(rest, countText)
  )
}

/** The recipe leaves out a full stop at the end. */
const described = (description: unknown): string => (given(description) ? asText(description).replace(/\.$/, "") : "")

const tokensOfRest = (rest: Json, countText: CountText): number =>
  Object.keys(rest).length === 0 ? 0 : countText(asText(rest))

/** The schema of a structured answer as it is written. */
const formatOf = (format: unknown): string | undefined => {
  if (!given(format)) return undefined
  const { json_schema, type, ...rest } = format as Json
  if (type === "text") return undefined
  return asText(json_schema ?? rest)
}
