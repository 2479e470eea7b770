/**
 * The model of Bursar's agents over a talk: straight from messages to the wire and back.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type Model, ModelFailure, type Request } from "../../model/Model.ts"
import { toReply } from "./answer.ts"
import type { Ask } from "./body.ts"
import { makeCount, makeRetrieve } from "./lookup.ts"
import { makeBound } from "./bound.ts"
import type { Refusal, Talk } from "./talk.ts"
import type { Counter } from "./tokens.ts"
import { makeForms } from "./tools.ts"

/** The model of Bursar's agents; `tokens` bounds what it is asked. */
export const toModel = (talk: Talk, tokens: Counter): Model => {
  const { options, settings } = talk
  const forms = makeForms(settings)
  const toAsk = (request: Request): Ask => ({
    history: request.parts?.history ?? request.messages,
    last: request.parts?.last,
    tools: request.tools,
    choice: "auto",
    form: request.answer === undefined ? undefined : forms(request.answer),
  })
  const counter = makeCount(talk)
  const bound = makeBound(talk, tokens)
  const estimate = (request: Request) => ({ tokens: bound(request), bound: "estimated" }) as const
  return {
    name: settings.model,
    provider: "openai",
    price: options.price,
    ...(settings.tier === undefined ? {} : { tier: settings.tier }),
    countInput: estimate,
    ...(settings.hasCounter
      ? {
          count: (request: Request) =>
            Effect.map(counter(toAsk(request)), (tokens) =>
              tokens === undefined ? estimate(request) : ({ tokens, bound: "counted" } as const),
            ),
        }
      : {}),
    ...(settings.isResponses && settings.store ? { retrieve: makeRetrieve(talk) } : {}),
    call: (request, how) =>
      Effect.suspend(() => {
        const ask = toAsk(request)
        return talk
          .ask(ask, {
            maxOutputTokens: how.maxOutputTokens,
            headers: how.headers,
            report: how.report,
            onText: how.onText,
            inputTokens: () => bound(request),
          })
          .pipe(
            Effect.map((answer) => toReply(answer, ask.form?.reword ?? ((text) => text))),
            Effect.mapError((refusal) => toFailure(settings.model, refusal)),
          )
      }),
  }
}

const toFailure = (model: string, { isForgotten, reason, retryAfterMillis }: Refusal): ModelFailure => {
  const told =
    "retryAfter" in reason && reason.retryAfter !== undefined ? Duration.toMillis(reason.retryAfter) : undefined
  const wait = retryAfterMillis ?? told
  return new ModelFailure({
    model,
    code: isForgotten === true ? "PreviousResponseNotFound" : reason._tag,
    retryable: isForgotten === true || reason.isRetryable,
    ...(wait === undefined ? {} : { retryAfterMillis: wait }),
  })
}
