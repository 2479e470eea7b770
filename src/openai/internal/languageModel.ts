/**
 * A `LanguageModel` of `effect/ai` over the same talk as the model of Bursar's agents.
 *
 * It is given the whole conversation anew at each call, so that it neither continues replies nor gives reasoning back.
 */
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as OpenAiStructuredOutput from "effect/ai/OpenAiStructuredOutput"
import type * as AiResponse from "effect/ai/Response"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as Provider from "../../model/Provider.ts"
import { type Answer, toParts, toTail } from "./answer.ts"
import type { Ask } from "./body.ts"
import type { Talk } from "./talk.ts"
import { codecForm } from "./tools.ts"

export const toLanguageModel = (talk: Talk): Effect.Effect<LanguageModel.LanguageModel> =>
  LanguageModel.make({
    codecTransformer: OpenAiStructuredOutput.toCodecOpenAI,
    supportsSystemMessagesInHistory: Effect.succeed(true),
    generateText: (options) =>
      ask(talk, options, undefined).pipe(Effect.map(toParts), Effect.mapError(failing("generateText"))),
    streamText: (options) =>
      Stream.callback<AiResponse.StreamPartEncoded, AiError.AiError>((queue) => {
        const text = new TextParts((part) => void Queue.offerUnsafe(queue, part))
        return ask(talk, options, text.push).pipe(
          Effect.mapError(failing("streamText")),
          Effect.map((answer) => {
            text.end(answer)
            Queue.endUnsafe(queue)
          }),
          Effect.catchCause((cause) => Effect.sync(() => void Queue.failCauseUnsafe(queue, cause))),
        )
      }),
  })

interface Refused {
  readonly reason: AiError.AiErrorReason
}

const failing =
  (method: string) =>
  ({ reason }: Refused) =>
    AiError.make({ module: "OpenAi", method, reason })

const ask = (
  talk: Talk,
  options: LanguageModel.ProviderOptions,
  onText: ((delta: string) => void) | undefined,
): Effect.Effect<Answer, Refused> =>
  Effect.gen(function* () {
    // `effect/ai` asks again with the full prompt when a shortened one was refused; here it was full already.
    if (options.incrementalFallback === true) return yield* Effect.fail({ reason: askedTwice })
    const report = yield* Provider.OnReport
    const one = toAsk(options)
    if (Result.isFailure(one)) {
      report({ _tag: "NotSent" })
      return yield* Effect.fail({ reason: one.failure })
    }
    const maxOutputTokens = yield* Provider.MaxOutputTokens
    const headers = yield* Provider.CallHeaders
    return yield* talk.ask(one.success, { maxOutputTokens, headers, report, onText, inputTokens: () => 0 })
  })

const askedTwice = new AiError.InvalidRequestError({ description: "the request was refused with its full prompt" })

const toAsk = (options: LanguageModel.ProviderOptions): Result.Result<Ask, AiError.AiErrorReason> => {
  const { prompt, responseFormat, toolChoice, tools } = options
  const plain = { history: prompt.content, last: undefined, tools, choice: toolChoice, form: undefined }
  return responseFormat.type === "text"
    ? Result.succeed(plain)
    : Result.map(codecForm(responseFormat.objectName, responseFormat.schema), (form) => ({ ...plain, form }))
}

/** The text of a reply as one part of a stream, from its first piece to what follows its last. */
class TextParts {
  readonly #emit: (part: AiResponse.StreamPartEncoded) => void
  #hasBegun = false

  constructor(emit: (part: AiResponse.StreamPartEncoded) => void) {
    this.#emit = emit
  }

  readonly push = (delta: string): void => {
    if (!this.#hasBegun) this.#emit({ type: "text-start", id: "text" })
    this.#hasBegun = true
    this.#emit({ type: "text-delta", id: "text", delta })
  }

  end(answer: Answer): void {
    if (this.#hasBegun) this.#emit({ type: "text-end", id: "text" })
    toTail(answer).forEach(this.#emit)
  }
}
