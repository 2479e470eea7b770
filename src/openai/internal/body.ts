/**
 * The body of a request, in either protocol, as the JSON that is sent.
 *
 * Its law: every message is written once. A history only grows, so that its JSON does, too, and a step of a long
 * conversation costs no more writing than one of a short.
 */
import type * as LanguageModel from "effect/ai/LanguageModel"
import type * as Prompt from "effect/ai/Prompt"
import type * as Tool from "effect/ai/Tool"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type { Settings } from "../Options.ts"
import { toMessages } from "./chatInput.ts"
import { type Converted, toItems } from "./input.ts"
import { continuedFrom, idsOf, kept, type Past, type Said } from "./past.ts"
import { type Form, makeTools, toChoice, toFormat } from "./tools.ts"

/** What is asked, in the words of neither protocol. */
export interface Ask {
  readonly history: ReadonlyArray<Prompt.Message>
  /** What is said after it, and not part of it. */
  readonly last: Prompt.Message | undefined
  readonly tools: ReadonlyArray<Tool.Any>
  readonly choice: LanguageModel.ToolChoice<string>
  readonly form: Form | undefined
}

/** How it is asked. */
export interface Manner {
  readonly maxOutputTokens: number | undefined
  readonly stream: boolean
}

/** A body, and the reply that it continues. */
export interface Body {
  readonly json: string
  readonly continues: Said | undefined
}

/** Writes the bodies of one model. */
export interface Writer {
  readonly body: (ask: Ask, manner: Manner) => Converted<Body>
  /** What the input counter is asked. */
  readonly counted: (ask: Ask) => Converted<Body>
  /** Upper bound of the reasoning that is given back with a history. */
  readonly keptTokens: (history: ReadonlyArray<Prompt.Message>) => number
}

export const makeWriter = (settings: Settings, past: Past): Writer => {
  const tools = makeTools(settings)
  const lines = makeLines(settings, past)
  const write = (ask: Ask, small: Fields, before: Said | undefined): Converted<string> =>
    Result.gen(function* () {
      const offered = ask.tools.length === 0 ? "" : `,"tools":${yield* tools(ask.tools)}`
      const said = before === undefined ? yield* lines.of(ask) : yield* sinceThen(ask, before)
      const name = settings.isResponses ? "input" : "messages"
      return `${JSON.stringify(small).slice(0, -1)}${offered},"${name}":[${said}]}`
    })
  const before = (ask: Ask) => (settings.continues ? continuedFrom(past, ask.history) : undefined)
  return {
    body: (ask, manner) => {
      const continues = before(ask)
      const small = settings.isResponses ? responsesFields : chatFields
      const fields = joined(settings.extra, small(settings, ask, { ...manner, continues }))
      return Result.map(write(ask, fields, continues), (json) => ({ json, continues }))
    },
    counted: (ask) => {
      const continues = before(ask)
      const manner = { maxOutputTokens: undefined, stream: false, continues }
      const fields = joined(settings.extra, responsesFields(settings, ask, manner))
      const known = Object.entries(fields).filter(([name]) => countable.has(name))
      return Result.map(write(ask, Object.fromEntries(known), continues), (json) => ({ json, continues }))
    },
    keptTokens: lines.keptTokens,
  }
}

type Fields = Readonly<Record<string, unknown>>

/** What the input counter knows of a request. */
const countable = new Set(
  (
    "model conversation instructions parallel_tool_calls personality previous_response_id reasoning text tool_choice " +
    "truncation"
  ).split(" "),
)

interface Continued extends Manner {
  readonly continues: Said | undefined
}

const responsesFields = (settings: Settings, ask: Ask, manner: Continued): Fields => {
  const { effort, summary } = settings.reasoning ?? {}
  return present({
    model: settings.model,
    store: settings.store,
    stream: manner.stream ? true : undefined,
    max_output_tokens: manner.maxOutputTokens,
    service_tier: settings.tier,
    previous_response_id: manner.continues?.answer.id,
    reasoning: effort === undefined && summary === undefined ? undefined : { effort, summary },
    include: settings.keepsReasoning ? ["reasoning.encrypted_content"] : undefined,
    text: ask.form === undefined ? undefined : toFormat(ask.form, true),
    ...(ask.tools.length === 0
      ? {}
      : { tool_choice: toChoice(ask.choice, true), parallel_tool_calls: settings.parallelCalls }),
  })
}

// What is so anyway is left out: the fewer fields, the more servers understand them.
const chatFields = (settings: Settings, ask: Ask, manner: Continued): Fields => {
  const choice = toChoice(ask.choice, false)
  const hasTools = ask.tools.length > 0
  return present({
    model: settings.model,
    store: settings.store ? true : undefined,
    stream: manner.stream ? true : undefined,
    stream_options: manner.stream && settings.streamUsage ? { include_usage: true } : undefined,
    [settings.limitField]: manner.maxOutputTokens,
    service_tier: settings.tier,
    reasoning_effort: settings.reasoning?.effort,
    response_format: ask.form === undefined ? undefined : toFormat(ask.form, false),
    tool_choice: hasTools && choice !== "auto" ? choice : undefined,
    parallel_tool_calls: hasTools && !settings.parallelCalls ? false : undefined,
  })
}

const present = (fields: Fields): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))

/** What the caller puts into the body, with ours: lists and objects in one, else as the caller says. */
const joined = (extra: Fields, ours: Fields): Fields => {
  const all: Record<string, unknown> = { ...ours }
  for (const [name, value] of Object.entries(extra)) all[name] = name in ours ? together(value, ours[name]) : value
  return all
}

const together = (theirs: unknown, ours: unknown): unknown => {
  if (Array.isArray(theirs) && Array.isArray(ours)) return [...new Set<unknown>([...theirs, ...ours])]
  return Predicate.isObject(theirs) && Predicate.isObject(ours) ? { ...theirs, ...ours } : theirs
}

/** What was said since a reply, for a provider that knows everything up to it. */
const sinceThen = ({ history, last }: Ask, { answer, at }: Said): Converted<string> => {
  const message = history[at]
  const idOf = message === undefined ? (id: string) => id : idsOf(message, answer)
  const since = history.slice(at + 1).concat(last ?? [])
  return Result.map(Result.all(since.map((one) => toItems(one, idOf))), (items) => inner(items.flat()))
}

/** The JSON of a list without its brackets. */
const inner = (items: ReadonlyArray<unknown>): string => JSON.stringify(items).slice(1, -1)

/** The JSON of a history as far as it is written. */
interface Line {
  messages: number
  json: string
  kept: number
}

/** A message as it is sent. */
interface Written {
  readonly json: string
  readonly kept: number
}

const makeLines = ({ isResponses, keepsReasoning }: Settings, past: Past) => {
  const encode: (message: Prompt.Message) => Converted<ReadonlyArray<unknown>> = isResponses ? toItems : toMessages
  const written = new WeakMap<Prompt.Message, Converted<Written>>()
  const lines = new WeakMap<ReadonlyArray<Prompt.Message>, Line>()
  const plain = (message: Prompt.Message): Converted<Written> =>
    Result.map(encode(message), (items) => ({ json: inner(items), kept: 0 }))
  const fresh = (history: ReadonlyArray<Prompt.Message>, at: number, message: Prompt.Message): Converted<Written> => {
    const said = keepsReasoning ? past.get(history) : undefined
    const whole = said?.at === at ? kept(message, said.answer) : undefined
    return whole === undefined ? plain(message) : Result.succeed({ json: inner(whole.items), kept: whole.tokens })
  }
  const once = (message: Prompt.Message, make: () => Converted<Written>): Converted<Written> => {
    const known = written.get(message) ?? make()
    written.set(message, known)
    return known
  }
  const grown = (history: ReadonlyArray<Prompt.Message>): Converted<Line> => {
    const line = lines.get(history) ?? { messages: 0, json: "", kept: 0 }
    lines.set(history, line)
    for (let message = history[line.messages]; message !== undefined; message = history[++line.messages]) {
      const [at, said] = [line.messages, message]
      const one = once(said, () => fresh(history, at, said))
      if (Result.isFailure(one)) return Result.fail(one.failure)
      line.json = both(line.json, one.success.json)
      line.kept += one.success.kept
    }
    return Result.succeed(line)
  }
  return {
    of: ({ history, last }: Ask): Converted<string> =>
      Result.flatMap(grown(history), ({ json }) =>
        last === undefined
          ? Result.succeed(json)
          : Result.map(
              once(last, () => plain(last)),
              (one) => both(json, one.json),
            ),
      ),
    keptTokens: (history: ReadonlyArray<Prompt.Message>): number =>
      keepsReasoning
        ? Result.getOrElse(
            Result.map(grown(history), (line) => line.kept),
            () => 0,
          )
        : 0,
  }
}

const both = (before: string, after: string): string =>
  before === "" || after === "" ? before + after : `${before},${after}`
