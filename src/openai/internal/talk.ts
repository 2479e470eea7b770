/**
 * One model behind a line, asked in the words of neither protocol.
 *
 * Its law: one question is at most one request. A question that continued a reply which the provider does not know any
 * more fails, and may be asked again: then it holds the whole conversation.
 */
import * as AiError from "effect/ai/AiError"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { plausible } from "../../model/Price.ts"
import type * as Provider from "../../model/Provider.ts"
import type { Options, Settings } from "../Options.ts"
import { type Answer, isRefused, textOf } from "./answer.ts"
import { type Ask, type Body, makeWriter, type Writer } from "./body.ts"
import { type Line, send } from "./call.ts"
import * as ChatReply from "./chatReply.ts"
import * as ChatStream from "./chatStream.ts"
import { makeLine, makeTarget } from "./client.ts"
import type { Failure } from "./failure.ts"
import type { Past } from "./past.ts"
import { reportOf } from "./report.ts"
import * as ResponsesReply from "./responsesReply.ts"

/** How a question is asked. */
export interface How {
  readonly maxOutputTokens: number | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly report: (report: Provider.Report) => void
  readonly onText: ((delta: string) => void) | undefined
  /** Upper bound of the input, for a reply that does not say what it took in. */
  readonly inputTokens: () => number
}

/** Why there is no answer. */
export interface Refusal {
  readonly reason: AiError.AiErrorReason
  /** How long to wait, where the provider says so. */
  readonly retryAfterMillis?: number | undefined
  /** Asked again, the question will be another one. */
  readonly isForgotten?: boolean | undefined
}

/** A model to talk to. */
export interface Talk {
  readonly options: Options
  readonly settings: Settings
  readonly line: Line
  readonly past: Past
  readonly writer: Writer
  readonly ask: (ask: Ask, how: How) => Effect.Effect<Answer, Refusal>
}

export const makeTalk = (options: Options, settings: Settings): Talk => {
  const past: Past = new WeakMap()
  const writer = makeWriter(settings, past)
  const line = makeLine(options, settings)
  const path = settings.isResponses ? "/responses" : "/chat/completions"
  const target = makeTarget(options, settings, "POST", path)
  const { assembly } = settings.isResponses ? ResponsesReply : ChatStream
  const { toAnswer } = settings.isResponses ? ResponsesReply : ChatReply
  const ask = (one: Ask, how: How): Effect.Effect<Answer, Refusal> =>
    Effect.suspend(() => {
      const stream = settings.stream ?? how.onText !== undefined
      const body = writer.body(one, { maxOutputTokens: how.maxOutputTokens, stream })
      if (Result.isFailure(body)) {
        how.report({ _tag: "NotSent" })
        return Effect.fail({ reason: body.failure })
      }
      const heard = new Heard(how.onText)
      const outgoing = { method: "post", target, path, body: body.success.json, headers: how.headers } as const
      const on = { report: how.report, toReport: (reply: unknown) => reportOf(reply, settings) }
      const at = one.history.length
      return send(line, { ...outgoing, assembly, onText: heard.push }, on).pipe(
        Effect.mapError((failure) => refused(past, failure, { ask: one, body: body.success })),
        Effect.flatMap((reply) => Effect.fromResult(read(toAnswer(reply, settings.usageStyle), one))),
        Effect.tap((answer) =>
          Effect.sync(() => {
            heard.rest(textOf(answer.pieces))
            if (settings.continues || settings.keepsReasoning) remember(past, { ask: one, answer, at, how })
          }),
        ),
      )
    })
  return { options, settings, line, past, writer, ask }
}

const read = (answer: Result.Result<Answer, AiError.AiErrorReason>, { form }: Ask): Result.Result<Answer, Refusal> =>
  Result.flatMap(
    Result.mapError(answer, (reason) => ({ reason })),
    (said) =>
      form !== undefined && isRefused(said)
        ? Result.fail({ reason: new AiError.ContentPolicyError({ description: "the model refused to answer" }) })
        : Result.succeed(said),
  )

const refused = (past: Past, failure: Failure, of: { readonly ask: Ask; readonly body: Body }): Refusal => {
  const { reason, report } = failure
  const isForgotten = of.body.continues !== undefined && failure.isForgotten === true
  if (isForgotten) past.delete(of.ask.history)
  return { reason, isForgotten, retryAfterMillis: report._tag === "Refused" ? report.retryAfterMillis : undefined }
}

const remember = (
  past: Past,
  of: { readonly ask: Ask; readonly answer: Answer; readonly at: number; readonly how: How },
): void => {
  const { answer, ask, at, how } = of
  const usage = plausible(answer.usage)
  const tokens =
    usage === undefined ? how.inputTokens() + (how.maxOutputTokens ?? 0) : usage.inputTokens + usage.outputTokens
  past.set(ask.history, { answer, at, tokens, tools: ask.tools })
}

/** Tells the text of a reply as it comes. Its law: what it told, put together, is the text of the reply. */
class Heard {
  readonly #onText: ((delta: string) => void) | undefined
  #told = ""

  constructor(onText: ((delta: string) => void) | undefined) {
    this.#onText = onText
  }

  readonly push = (delta: string): void => {
    if (this.#onText === undefined) return
    this.#told += delta
    this.#onText(delta)
  }

  /** Tells what the reply says in the end and no delta said: all of it, where it did not stream. */
  rest(text: string): void {
    if (text.length > this.#told.length && text.startsWith(this.#told)) this.push(text.slice(this.#told.length))
  }
}
