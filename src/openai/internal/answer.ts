/**
 * A finished reply, whichever protocol it came by: what it says in order, how it ended, what it used. And the same in
 * the words of Bursar and of `effect/ai`.
 *
 * Its law: a call that was cut is not in it.
 */
import * as AiError from "effect/ai/AiError"
import type * as AiResponse from "effect/ai/Response"
import * as Result from "effect/Result"
import type { Reply } from "../../model/Model.ts"
import type * as Provider from "../../model/Provider.ts"
import type { Json } from "./json.ts"
import { toEncodedUsage } from "./usage.ts"

/** One call as the model made it. `id` is that of no other call; `given` is the id of the same call before it, if there is one. */
export interface Call {
  readonly type: "call"
  readonly id: string
  readonly given?: string
  readonly name: string
  readonly params: unknown
}

/** A piece of what a reply says. */
export type Piece =
  | Call
  | { readonly type: "text"; readonly text: string; readonly isRefusal: boolean }
  | { readonly type: "reasoning"; readonly text: string }

/** A reply that arrived and can be read. */
export interface Answer {
  readonly id: string | undefined
  readonly model: string | undefined
  readonly createdAt: number | undefined
  readonly pieces: ReadonlyArray<Piece>
  readonly end: AiResponse.FinishReason
  readonly usage: Provider.Usage | undefined
  /** The reply as it came can be continued: it is finished, nothing was cut off, and its calls have ids of their own. */
  readonly isWhole: boolean
  /** The items it consists of, where the protocol has items. */
  readonly items: ReadonlyArray<Json>
}

/** All that an answer says in words. */
export const textOf = (pieces: ReadonlyArray<Piece>): string =>
  pieces.map((piece) => (piece.type === "text" ? piece.text : "")).join("")

export const isRefused = ({ pieces }: Answer): boolean =>
  pieces.some((piece) => piece.type === "text" && piece.isRefusal)

/** How a reply ended that says it is finished. */
export const endOf = (pieces: ReadonlyArray<Piece>): AiResponse.FinishReason => {
  if (pieces.some((piece) => piece.type === "text" && piece.isRefusal)) return "content-filter"
  return pieces.some((piece) => piece.type === "call") ? "tool-calls" : "stop"
}

/** Arguments as they are handed on: those that are no JSON as the string that came, for the caller to judge. */
export const toParams = (args: unknown): { readonly params: unknown; readonly isJson: boolean } => {
  if (args === undefined || args === null || args === "") return { params: {}, isJson: args === "" }
  if (typeof args !== "string") return { params: args, isJson: true }
  const params = Result.try((): unknown => JSON.parse(args))
  return { params: Result.getOrElse(params, () => args), isJson: Result.isSuccess(params) }
}

/**
 * Calls with ids of their own, where the server left them empty or gave one twice. Of a call that came twice, word for
 * word and under one id, `given` tells that it did.
 */
export const distinct = (
  pieces: ReadonlyArray<Piece>,
): { readonly pieces: ReadonlyArray<Piece>; readonly isSame: boolean } => {
  const taken = new Map<string, string>()
  let isSame = true
  const all = pieces.map((piece, index): Piece => {
    if (piece.type !== "call") return piece
    const words = JSON.stringify([piece.name, piece.params])
    let { id } = piece
    if (id === "" || taken.has(id)) id = `${id === "" ? "call" : id}_${index}`
    while (taken.has(id)) id += "_"
    taken.set(id, words)
    if (id === piece.id) return piece
    isSame = false
    return taken.get(piece.id) === words ? { ...piece, id, given: piece.id } : { ...piece, id }
  })
  return { pieces: all, isSame }
}

/**
 * In the words of Bursar. `reword` is given the text of a structured answer. A call that came twice keeps the id of the
 * first: whoever runs them takes them for one.
 */
export const toReply = (answer: Answer, reword: (text: string) => string): Reply => ({
  text: isRefused(answer) ? textOf(answer.pieces) : reword(textOf(answer.pieces)),
  calls: answer.pieces.flatMap((piece) =>
    piece.type === "call" ? [{ id: piece.given ?? piece.id, name: piece.name, params: piece.params }] : [],
  ),
  cut: answer.end === "length",
  finishReason: answer.end,
})

/** In the words of `effect/ai`. */
export const toParts = (answer: Answer): Array<AiResponse.PartEncoded> => [
  metadataPart(answer),
  ...answer.pieces.flatMap(toPart),
  finishPart(answer),
]

/** What follows the text of a stream in the words of `effect/ai`. */
export const toTail = (answer: Answer): ReadonlyArray<AiResponse.StreamPartEncoded> => [
  metadataPart(answer),
  ...answer.pieces.flatMap((piece, index) =>
    piece.type === "reasoning"
      ? reasoningParts(piece.text, `${index}`)
      : piece.type === "call"
        ? [callPart(piece)]
        : [],
  ),
  finishPart(answer),
]

const toPart = (piece: Piece): ReadonlyArray<AiResponse.PartEncoded> => {
  switch (piece.type) {
    case "call":
      return [callPart(piece)]
    case "reasoning":
      return piece.text === "" ? [] : [{ type: "reasoning", text: piece.text }]
    case "text":
      return [
        { type: "text", text: piece.text, ...(piece.isRefusal ? { metadata: { openai: { refusal: true } } } : {}) },
      ]
  }
}

const reasoningParts = (text: string, id: string): ReadonlyArray<AiResponse.StreamPartEncoded> =>
  text === ""
    ? []
    : [
        { type: "reasoning-start", id },
        { type: "reasoning-delta", id, delta: text },
        { type: "reasoning-end", id },
      ]

const callPart = ({ id, name, params }: Call): AiResponse.ToolCallPartEncoded => ({
  type: "tool-call",
  id,
  name,
  params,
})

const metadataPart = ({ createdAt, id, model }: Answer): AiResponse.ResponseMetadataPartEncoded => ({
  type: "response-metadata",
  ...(id === undefined ? {} : { id }),
  ...(model === undefined ? {} : { modelId: model }),
  ...(createdAt !== undefined && createdAt >= 0 && createdAt < 1e10
    ? { timestamp: new Date(createdAt * 1000).toISOString() }
    : {}),
})

const finishPart = ({ end, usage }: Answer): AiResponse.FinishPartEncoded => ({
  type: "finish",
  reason: end,
  usage: toEncodedUsage(usage),
})

/** A reply that is none. */
export const unreadable = (description: string): AiError.AiErrorReason =>
  new AiError.InvalidResponseError({ description })

/** The reason behind a reply or a stream that failed: it was answered with HTTP 200 and may have been billed. */
export const failedReason = (code: unknown): AiError.AiErrorReason => {
  const status = typeof code === "number" ? code : /^\d{3}$/.test(String(code)) ? Number(code) : undefined
  if (code === "rate_limit_exceeded" || status === 429) return new AiError.RateLimitError({})
  if (status !== undefined && status >= 400 && status < 500) {
    return new AiError.InvalidRequestError({ description: `the reply failed: ${status}` })
  }
  if (
    typeof code !== "string" ||
    !/^[a-z_]{1,64}$/.test(code) ||
    /server|internal|overload|timeout|unavail/.test(code)
  ) {
    return new AiError.InternalProviderError({ description: "the reply failed" })
  }
  const description = `the reply failed: ${code}`
  return code.endsWith("policy") || code.endsWith("policy_violation")
    ? new AiError.ContentPolicyError({ description })
    : new AiError.InvalidRequestError({ description })
}
