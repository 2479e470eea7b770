/**
 * Models behind the official `openai` package: OpenAI itself, and whatever speaks the Responses or the Chat Completions
 * protocol. As the current model of Bursar's agents, and as a `LanguageModel` of `effect/ai` beside it.
 *
 * It leaves deciding, retrying and budgeting to its caller. Its laws: one call is at most one HTTP request (the
 * package's own retries are off); every request is reported once before the call ends; interrupting a call closes its
 * connection; a reply that was cut is no reply; no error carries prompt text, reply text or the API key.
 */
import * as Config from "effect/Config"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { CurrentModel, type Model } from "../model/Model.ts"
import { toLanguageModel } from "./internal/languageModel.ts"
import { toModel } from "./internal/model.ts"
import { makeTalk, type Talk } from "./internal/talk.ts"
import { forModel } from "./internal/tokens.ts"
import { type Options, type OptionsError, settle } from "./Options.ts"

export { type Options, OptionsError, type Reasoning, type UsageStyle } from "./Options.ts"

/**
 * A model that asks OpenAI, or whatever speaks one of its protocols at `baseUrl`, straight: messages are written to the
 * wire once, however long the conversation gets.
 *
 * | what came of a call | report | result |
 * | --- | --- | --- |
 * | a reply | `Replied`, with usage as it was stated, service tier and id | the reply |
 * | a reply that failed, refused to fill in a schema, or cannot be read | `Replied` | `ModelFailure` |
 * | an error status | `Refused` | `ModelFailure` |
 * | a stream without its end, or with an error in it; a timeout; a cut connection; interruption | `Lost` | `ModelFailure` |
 * | a connection that was never opened, a request that cannot be built | `NotSent` | `ModelFailure` |
 *
 * The `code` of a failure is the tag of an `AiErrorReason`, or `PreviousResponseNotFound`: the provider does not know
 * the reply that the call continued. That may be tried again, and then the request holds the whole conversation.
 *
 * A tool's schema is enforced by the provider ("strict") where OpenAI can enforce it as it stands. Of a reply that was
 * cut by its limit, a call is handed on only where it is whole. Arguments that are no JSON are handed on as the string
 * that came.
 *
 * **Fails with** `OptionsError`, which names the option, its value and the remedy.
 *
 * **Example** (Asking a model that answers from a script, and listening to it)
 *
 * ```ts
 * import { OpenAi } from "bursar/openai"
 * import { TestingServer } from "bursar/testing"
 * import * as Effect from "effect/Effect"
 * import * as Prompt from "effect/ai/Prompt"
 * import * as Redacted from "effect/Redacted"
 *
 * const heard: Array<string> = []
 * const program = Effect.scoped(
 *   Effect.gen(function* () {
 *     const server = yield* TestingServer.make({ script: [{ text: "It is four." }] })
 *     const model = yield* OpenAi.model({ model: "gpt-5-mini", apiKey: Redacted.make("none"), baseUrl: server.url })
 *     const messages = [Prompt.userMessage({ content: [Prompt.textPart({ text: "2 + 2?" })] })]
 *     return yield* model.call(
 *       { messages, tools: [] },
 *       { maxOutputTokens: 100, headers: {}, report: () => {}, onText: (delta) => void heard.push(delta) },
 *     )
 *   }),
 * )
 * const reply = await Effect.runPromise(program)
 * reply.text // => "It is four."
 * heard.join("") // => "It is four."
 * ```
 *
 * **Example** (A server that speaks Chat Completions in the style of Azure, by older names and without strict schemas)
 *
 * ```ts
 * import { OpenAi } from "bursar/openai"
 * import { TestingServer } from "bursar/testing"
 * import * as Effect from "effect/Effect"
 * import * as Prompt from "effect/ai/Prompt"
 * import * as Redacted from "effect/Redacted"
 *
 * const program = Effect.scoped(
 *   Effect.gen(function* () {
 *     const server = yield* TestingServer.make({ script: [{ text: "Four.", usage: { input: 9, output: 2 } }] })
 *     const model = yield* OpenAi.model({
 *       model: "local",
 *       apiKey: Redacted.make("none"),
 *       baseUrl: server.url,
 *       protocol: "chat",
 *       auth: "api-key",
 *       query: { "api-version": "2025-04-01-preview" },
 *       limitField: "max_tokens",
 *       strict: false,
 *     })
 *     const messages = [Prompt.userMessage({ content: [Prompt.textPart({ text: "2 + 2?" })] })]
 *     const how = { maxOutputTokens: 100, headers: {}, report: () => {} }
 *     const reply = yield* model.call({ messages, tools: [] }, how)
 *     return { text: reply.text, sent: server.requests[0]?.sent["max_tokens"] }
 *   }),
 * )
 * await Effect.runPromise(program) // => { text: "Four.", sent: 100 }
 * ```
 *
 * **Example** (An option that would loosen the bound of a call)
 *
 * ```ts
 * import { OpenAi } from "bursar/openai"
 * import * as Effect from "effect/Effect"
 * import * as Redacted from "effect/Redacted"
 *
 * const model = OpenAi.model({ model: "gpt-5-mini", apiKey: Redacted.make("none"), options: { seed: 7, n: 5 } })
 * const error = await Effect.runPromise(Effect.flip(model))
 * error.field // => "options.n"
 * ```
 *
 * @see {@link layer} for agents
 * @category models
 * @since 0.1.0
 */
export const model = (options: Options): Effect.Effect<Model, OptionsError> =>
  Effect.gen(function* () {
    const talk = yield* talkTo(options)
    return toModel(talk, yield* forModel(options.model))
  })

/**
 * Provides {@link model} as the current model of Bursar's agents, and a `LanguageModel` of `effect/ai` over the same
 * code.
 *
 * Each call of the `LanguageModel` reads `MaxOutputTokens` (OpenAI refuses less than 16), `CallHeaders` and `OnReport`
 * from the calling fiber. `streamText` streams, unless `stream` is `false`. Arguments that are no JSON are handed on as
 * the string that came, for a caller that set `toolCallValidation: "deferred"`.
 *
 * **Fails with** `OptionsError`. Its calls fail with `AiError`, whose reason is `RateLimitError`, `QuotaExhaustedError`,
 * `AuthenticationError`, `InvalidRequestError`, `InternalProviderError` or `UnknownError` after an error status;
 * `NetworkError` without a whole reply; `InvalidResponseError` for a reply that cannot be read; `ContentPolicyError` when
 * the model refuses to fill in a schema; `InvalidUserInputError`, `ToolConfigurationError` or `UnsupportedSchemaError`
 * for what cannot be sent.
 *
 * **Example** (Asking a model that answers from a script)
 *
 * ```ts
 * import { OpenAi } from "bursar/openai"
 * import { TestingServer } from "bursar/testing"
 * import * as Effect from "effect/Effect"
 * import * as LanguageModel from "effect/ai/LanguageModel"
 * import * as Redacted from "effect/Redacted"
 *
 * const program = Effect.scoped(
 *   Effect.gen(function* () {
 *     const server = yield* TestingServer.make({ script: [{ text: "Four." }] })
 *     const model = OpenAi.layer({ model: "gpt-5-mini", apiKey: Redacted.make("none"), baseUrl: server.url })
 *     const reply = yield* LanguageModel.generateText({ prompt: "2 + 2?" }).pipe(Effect.provide(model))
 *     return reply.text
 *   }),
 * )
 * await Effect.runPromise(program) // => "Four."
 * ```
 *
 * @see {@link layerConfig} for taking key, address and model from the environment
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options): Layer.Layer<LanguageModel.LanguageModel | CurrentModel, OptionsError> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const talk = yield* talkTo(options)
      const language = yield* toLanguageModel(talk)
      const model = toModel(talk, yield* forModel(options.model))
      return Context.add(Context.make(LanguageModel.LanguageModel, language), CurrentModel, model)
    }),
  )

/**
 * Provides the same, configured by `OPENAI_API_KEY`, `OPENAI_BASE_URL` (optional) and
 * `OPENAI_MODEL` (`gpt-5-mini` when absent). A `model` given here wins over `OPENAI_MODEL`.
 *
 * **Fails with** `ConfigError` when the key is missing or empty, and with `OptionsError` like {@link layer}.
 *
 * **Example** (A configuration without a key)
 *
 * ```ts
 * import { OpenAi } from "bursar/openai"
 * import * as ConfigProvider from "effect/ConfigProvider"
 * import * as Effect from "effect/Effect"
 * import * as Layer from "effect/Layer"
 *
 * const empty = ConfigProvider.layer(ConfigProvider.fromUnknown({}))
 * const error = Effect.void.pipe(Effect.provide(OpenAi.layerConfig().pipe(Layer.provide(empty))), Effect.flip)
 * const tag = await Effect.runPromise(Effect.map(error, ({ _tag }) => _tag))
 * tag // => "ConfigError"
 * ```
 *
 * @see {@link layer} for explicit values
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (
  options: Omit<Partial<Options>, "apiKey" | "baseUrl"> = {},
): Layer.Layer<LanguageModel.LanguageModel | CurrentModel, Config.ConfigError | OptionsError> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const apiKey = yield* Config.schema(Schema.Redacted(Schema.NonEmptyString), "OPENAI_API_KEY")
      const baseUrl = yield* Config.option(Config.NonEmptyString("OPENAI_BASE_URL"))
      const model = options.model ?? (yield* Config.withDefault(Config.NonEmptyString("OPENAI_MODEL"), "gpt-5-mini"))
      return layer({ ...options, apiKey, model, baseUrl: Option.getOrUndefined(baseUrl) })
    }),
  )

const talkTo = (options: Options): Effect.Effect<Talk, OptionsError> =>
  Effect.suspend(() => Effect.fromResult(Result.map(settle(options), (settings) => makeTalk(options, settings))))
