/**
 * The most that the input of a request comes to, told before it is sent and without asking anybody: by the tokeniser of
 * the model where it is known and installed, else in bytes.
 *
 * Its law: a history is counted message by message, once; a step of a long conversation costs no more counting than one
 * of a short. What the tokeniser cannot count is counted in bytes, with all the rest of its request.
 */
import type * as Prompt from "effect/ai/Prompt"
import type * as Tool from "effect/ai/Tool"
import * as Result from "effect/Result"
import * as Estimate from "../../model/Estimate.ts"
import type { Request } from "../../model/Model.ts"
import { toMessages } from "./chatInput.ts"
import { type Converted, toItems } from "./input.ts"
import { continuedFrom } from "./past.ts"
import type { Talk } from "./talk.ts"
import { type Counter, growing, total, type Uncountable } from "./tokens.ts"
import { type Form, makeForms, makeTools, toFormat } from "./tools.ts"

/** Upper bound of the input tokens of a request. */
export type Bound = (request: Request) => number

type Said = Pick<Request, "answer" | "messages" | "parts" | "tools">

/** What is said, and what a provider adds to it by itself: what it remembers, what it is given back. */
export const makeBound = ({ past, settings, writer }: Talk, counter: Counter): Bound => {
  const counted = counter.bound === "bytes" ? Estimate.inputTokens : tokenised(settings.isResponses, settings, counter)
  return (request) => {
    const history = request.parts?.history ?? request.messages
    const said = counted(request) + writer.keptTokens(history)
    const before = settings.continues ? continuedFrom(past, history) : undefined
    if (before === undefined) return said
    const messages = history.slice(before.at + 1).concat(request.parts?.last ?? [])
    const tools = before.tools === request.tools ? [] : request.tools
    return Math.max(said, before.tokens + counted({ messages, tools, answer: request.answer }))
  }
}

const tokenised = (isResponses: boolean, settings: Talk["settings"], counter: Counter): ((said: Said) => number) => {
  const encode: (message: Prompt.Message) => Converted<ReadonlyArray<object>> = isResponses ? toItems : toMessages
  const items = growing(counter.item)
  const ofMessage = (message: Prompt.Message) =>
    Result.flatMap(
      Result.mapError(encode(message), (): Uncountable => ({ what: message.role })),
      (all) => items(all),
    )
  const messages = growing(ofMessage)
  const beside = makeBeside(isResponses, settings, counter)
  return (request) => {
    const { parts } = request
    const around = beside(request)
    const history = messages(parts?.history ?? request.messages)
    const last = parts === undefined ? nothing : ofMessage(parts.last)
    if (Result.isFailure(history) || Result.isFailure(last) || around === undefined)
      return Estimate.inputTokens(request)
    const { images, text } = history.success
    return around + total({ text: text + last.success.text, images: images + last.success.images })
  }
}

const nothing = Result.succeed({ text: 0, images: 0 })

/** What stands beside the messages: tools, the form of the answer, the start of the reply. One number for each pair. */
const makeBeside = (isResponses: boolean, settings: Talk["settings"], counter: Counter) => {
  const [tools, forms] = [makeTools(settings), makeForms(settings)]
  const known = new WeakMap<ReadonlyArray<Tool.Any>, Map<Form | undefined, number | undefined>>()
  return (request: Said): number | undefined => {
    const form = request.answer === undefined ? undefined : forms(request.answer)
    const before = known.get(request.tools)
    if (before?.has(form) === true) return before.get(form)
    const offered = Result.map(tools(request.tools), (json): unknown => JSON.parse(json))
    const format = form === undefined ? undefined : toFormat(form, isResponses)
    const body = (tools: unknown) =>
      counter.body(
        (isResponses ? { input: [], tools, text: format } : { messages: [], tools, response_format: format }) as never,
      )
    const tokens = Result.isSuccess(offered) ? Result.getOrUndefined(body(offered.success)) : undefined
    known.set(request.tools, (before ?? new Map<Form | undefined, number | undefined>()).set(form, tokens))
    return tokens
  }
}
