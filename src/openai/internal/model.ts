/**
 * The model of Bursar's agents over a talk: straight from messages to the wire and back.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Estimate from "../../model/Estimate.ts"
import { type Model, ModelFailure, type Request } from "../../model/Model.ts"
import { toReply } from "./answer.ts"
import type { Ask } from "./body.ts"
import { makeCount, makeRetrieve } from "./lookup.ts"
import { continuedFrom } from "./past.ts"
import type { Refusal, Talk } from "./talk.ts"
import { makeForms } from "./tools.ts"

/** The model of Bursar's agents. */
export const toModel = (talk: Talk): Model => {
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
  const estimate = (request: Request) => ({ tokens: estimated(talk, request), bound: "estimated" }) as const
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
            inputTokens: () => estimated(talk, request),
          })
          .pipe(
            Effect.map((answer) => toReply(answer, ask.form?.reword ?? ((text) => text))),
            Effect.mapError((refusal) => toFailure(settings.model, refusal)),
          )
      }),
  }
}

/** The estimate of what is said, and what a provider adds to it by itself: what it remembers, what it is given back. */
const estimated = ({ past, settings, writer }: Talk, request: Request): number => {
  const history = request.parts?.history ?? request.messages
  const said = Estimate.inputTokens(request) + writer.keptTokens(history)
  const before = settings.continues ? continuedFrom(past, history) : undefined
  if (before === undefined) return said
  const messages = history.slice(before.at + 1).concat(request.parts?.last ?? [])
  const tools = before.tools === request.tools ? [] : request.tools
  return Math.max(said, before.tokens + Estimate.inputTokens({ messages, tools, answer: request.answer }))
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
