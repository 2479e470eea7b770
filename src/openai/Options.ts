/**
 * How a model behind `bursar/openai` is reached, what it is asked and how its numbers are read.
 *
 * Its law: nothing a caller sets is ignored, and nothing can be set that would loosen the bound of a call.
 */
import * as Duration from "effect/Duration"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Price } from "../model/Price.ts"

/**
 * A model and how it is asked. Only `model` and `apiKey` are needed for OpenAI itself; the rest is for choosing, and
 * for servers that only resemble it.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options {
  /** The model asked for, such as `"gpt-5-mini"`. The reply names the one that really answered. */
  readonly model: string
  readonly apiKey: Redacted.Redacted
  /** What the model costs. Without it, it cannot be used under a cap on money. */
  readonly price?: Price | undefined

  /** Up to and with `/v1`; OpenAI's own address when absent. */
  readonly baseUrl?: string | undefined
  /** Where the key goes: `Authorization: Bearer` when absent, or the header `api-key`, as Azure wants it. */
  readonly auth?: "bearer" | "api-key" | undefined
  /** Added to every address, such as `{ "api-version": "2025-04-01-preview" }`. */
  readonly query?: Readonly<Record<string, string>> | undefined
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Sent as `OpenAI-Organization`. */
  readonly organization?: string | undefined
  /** Sent as `OpenAI-Project`. */
  readonly project?: string | undefined
  /**
   * From sending a request to the last byte of its reply, in real time, at most 24 days; 5 minutes when absent. Node's
   * own `fetch` waits no longer than 5 minutes for the next byte: give a {@link fetch} of your own for more.
   */
  readonly timeout?: Duration.Input | undefined
  /** Sends the requests; Node's own when absent. It must honour `signal`. */
  readonly fetch?: typeof fetch | undefined

  /** Responses when absent, or Chat Completions, which more servers speak. */
  readonly protocol?: "responses" | "chat" | undefined
  /** Whether replies stream. When absent, one streams where somebody listens to its text. */
  readonly stream?: boolean | undefined
  /**
   * `"history"` when absent: every request holds the whole conversation. With `"previous_response_id"` (Responses only)
   * a request holds what is new and names the reply before it; everything is then stored at the provider.
   */
  readonly conversation?: "history" | "previous_response_id" | undefined
  /** Whether replies are stored at the provider, from where a lost one can be asked for its usage; `false` when absent. */
  readonly store?: boolean | undefined
  /**
   * For models that reason. With it, and unless replies are stored or `keep` is `false`, their reasoning is asked for in
   * encrypted form and given back with the reply it belongs to.
   */
  readonly reasoning?: Reasoning | undefined
  /** The service tier to ask for; `"default"` at OpenAI and none elsewhere when absent. */
  readonly tier?: string | undefined
  /**
   * Fields to put into the body as they are, such as `{ seed: 7, prompt_cache_key: "a" }`. Lists and objects are joined
   * with what this module writes into the same field.
   */
  readonly options?: Readonly<Record<string, unknown>> | undefined

  /** Whether several tools may be called in one reply; `true` when absent. */
  readonly parallelCalls?: boolean | undefined
  /** Whether schemas are enforced by the provider where it can enforce them as they stand; `true` when absent. */
  readonly strict?: boolean | undefined
  /** The name of the limit in Chat Completions; `"max_completion_tokens"` when absent. */
  readonly limitField?: "max_completion_tokens" | "max_tokens" | undefined
  /** Whether a stream of Chat Completions is asked to state its usage (`stream_options`); `true` when absent. */
  readonly streamUsage?: boolean | undefined
  /** How the server counts; told by its totals, and inclusive where they do not tell, when absent. */
  readonly usageStyle?: UsageStyle | undefined
  /** Whether there is an input counter (`/responses/input_tokens`); when absent, at OpenAI itself only. */
  readonly counter?: boolean | undefined
}

/**
 * How a model reasons, in the words of its provider.
 *
 * @category options
 * @since 0.1.0
 */
export interface Reasoning {
  /** Such as `"low"`. */
  readonly effort?: string | undefined
  /** Asks for a summary of the reasoning, such as `"auto"`; Responses only. */
  readonly summary?: string | undefined
  readonly keep?: boolean | undefined
}

/**
 * Whether cached and reasoning tokens lie inside the totals (`"inclusive"`) or on top of them.
 *
 * @category options
 * @since 0.1.0
 */
export type UsageStyle = "inclusive" | "exclusive" | "exclusive-cache" | "exclusive-reasoning"

/**
 * An option that cannot be used.
 *
 * @category errors
 * @since 0.1.0
 */
export class OptionsError extends Schema.TaggedError<OptionsError>()("OptionsError", {
  field: Schema.String,
  value: Schema.String,
  remedy: Schema.String,
}) {
  override get message(): string {
    return `${this.field} is ${this.value}: ${this.remedy}`
  }
}

/** OpenAI's own address. */
export const openAiUrl = "https://api.openai.com/v1"

/** Options with everything filled in. */
export interface Settings {
  readonly model: string
  readonly baseUrl: string
  readonly timeoutMillis: number
  readonly isResponses: boolean
  readonly stream: boolean | undefined
  readonly continues: boolean
  readonly store: boolean
  readonly reasoning: Reasoning | undefined
  /** Whether reasoning is asked for in encrypted form and given back. */
  readonly keepsReasoning: boolean
  readonly tier: string | undefined
  readonly extra: Readonly<Record<string, unknown>>
  readonly parallelCalls: boolean
  readonly strict: boolean
  readonly limitField: "max_completion_tokens" | "max_tokens"
  readonly streamUsage: boolean
  readonly usageStyle: UsageStyle | undefined
  readonly hasCounter: boolean
}

/** Fills in what is absent. Fails on the first option that cannot be used. */
export const settle = (options: Options): Result.Result<Settings, OptionsError> => {
  const [wrong] = faults(options)
  if (wrong !== undefined) return Result.fail(wrong)
  const baseUrl = options.baseUrl ?? openAiUrl
  const isResponses = options.protocol !== "chat"
  const continues = options.conversation === "previous_response_id"
  const store = options.store ?? continues
  const isOpenAi = URL.parse(baseUrl)?.hostname === "api.openai.com"
  return Result.succeed({
    model: options.model,
    baseUrl,
    timeoutMillis: Math.ceil(timeoutOf(options)),
    isResponses,
    stream: options.stream,
    continues,
    store,
    reasoning: options.reasoning,
    keepsReasoning: isResponses && !store && options.reasoning !== undefined && options.reasoning.keep !== false,
    tier: options.tier ?? (isOpenAi ? "default" : undefined),
    extra: options.options ?? {},
    parallelCalls: options.parallelCalls ?? true,
    strict: options.strict ?? true,
    limitField: options.limitField ?? "max_completion_tokens",
    streamUsage: options.streamUsage ?? true,
    usageStyle: options.usageStyle,
    hasCounter: isResponses && (options.counter ?? isOpenAi),
  })
}

const timeoutOf = ({ timeout }: Options): number => Duration.toMillis(Duration.fromInputUnsafe(timeout ?? "5 minutes"))

/** The longest a timer of Node can run. */
const mostMillis = 2 ** 31 - 1

/** Fields whose value belongs to this module, because the bound of a call or the reading of its reply rests on them. */
const reserved: Readonly<Record<string, string>> = {
  model: "set `model`",
  input: "leave it to the conversation",
  messages: "leave it to the conversation",
  instructions: "give them to the agent",
  prompt: "give the agent its instructions; what a stored prompt holds cannot be bounded",
  prediction: "leave it out; what is predicted wrong is billed beyond the output limit",
  tools: "give the tools to the agent; those that a provider runs itself cannot be bounded",
  functions: "give the tools to the agent",
  function_call: "give the tools to the agent",
  web_search_options: "leave it out; tools that a provider runs itself cannot be bounded",
  stream: "set `stream`",
  stream_options: "set `streamUsage`",
  max_output_tokens: "set the output limit of the agent",
  max_completion_tokens: "set the output limit of the agent",
  max_tokens: "set the output limit of the agent",
  n: "ask once for each reply; more choices would not fit the bound of a call",
  best_of: "ask once for each reply; more choices would not fit the bound of a call",
  store: "set `store`",
  background: "leave it out; a call waits for its reply",
  conversation: 'set `conversation` to "previous_response_id"',
  previous_response_id: 'set `conversation` to "previous_response_id"',
  service_tier: "set `tier`",
}

const faults = (options: Options): ReadonlyArray<OptionsError> => {
  const millis = timeoutOf(options)
  const isChat = options.protocol === "chat"
  const continues = options.conversation === "previous_response_id"
  const protocol = URL.parse(options.baseUrl ?? openAiUrl)?.protocol
  const fault = (is: boolean, field: string, value: string, remedy: string): ReadonlyArray<OptionsError> =>
    is ? [new OptionsError({ field, value, remedy })] : []
  return [
    ...fault(options.model === "", "model", '""', 'name a model, such as "gpt-5-mini"'),
    ...fault(Redacted.value(options.apiKey) === "", "apiKey", '""', 'give a key; "none" where a server needs none'),
    // What is no address may be a key that slipped: it is not repeated.
    ...fault(!/^https?:$/.test(protocol ?? ""), "baseUrl", "no address", 'give one such as "http://127.0.0.1:8000/v1"'),
    ...fault(!(millis >= 1 && millis <= mostMillis), "timeout", `${millis} ms`, `give 1 to ${mostMillis} ms`),
    ...fault(isChat && continues, "conversation", '"previous_response_id"', 'set `protocol` to "responses"'),
    ...fault(
      continues && options.store === false,
      "store",
      "false",
      'leave it out, or set `conversation` to "history"',
    ),
    ...fault(isChat && options.counter === true, "counter", "true", 'set `protocol` to "responses"'),
    ...fault(isChat && options.reasoning?.summary !== undefined, "reasoning.summary", "set", "leave it out in chat"),
    ...fault(isChat && options.reasoning?.keep === true, "reasoning.keep", "true", "leave it out in chat"),
    ...fault(!isChat && options.limitField !== undefined, "limitField", "set", 'set `protocol` to "chat"'),
    ...fault(!isChat && options.streamUsage !== undefined, "streamUsage", "set", 'set `protocol` to "chat"'),
    ...Object.keys(options.options ?? {}).flatMap((name) =>
      fault(Object.hasOwn(reserved, name), `options.${name}`, "set", reserved[name] ?? ""),
    ),
  ]
}
