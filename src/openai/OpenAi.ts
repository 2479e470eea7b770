/**
 * A `LanguageModel` of `effect/ai` over the official `openai` package (Responses API).
 *
 * It leaves deciding, retrying and budgeting to its caller. Its laws: one call is at most one HTTP request (the
 * package's own retries are off); every request is reported once through `OnReport` before the call ends; interrupting
 * a call aborts its request; no error carries prompt text, reply text or the API key.
 */
import * as Config from "effect/Config"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as OpenAiStructuredOutput from "effect/ai/OpenAiStructuredOutput"
import type * as AiResponse from "effect/ai/Response"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { OpenAI } from "openai"
import * as Model from "../model/Model.ts"
import type { CurrentModel } from "../model/Model.ts"
import type { Price } from "../model/Price.ts"
import * as Provider from "../model/Provider.ts"
import { send } from "./internal/call.ts"
import type { Target } from "./internal/failure.ts"
import { toParts } from "./internal/reply.ts"
import { toBody } from "./internal/request.ts"
import { toStreamParts } from "./internal/stream.ts"

/**
 * Where the requests of a model go and under which key.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options {
  /** The model asked for, such as `"gpt-5-mini"`. The reply names the one that really answered. */
  readonly model: string
  readonly apiKey: Redacted.Redacted
  /** Up to and with `/v1`; OpenAI's own address when absent. */
  readonly baseUrl?: string | undefined
  /** From sending a request to the last byte of its reply, in real time; 5 minutes when absent. */
  readonly timeout?: Duration.Input | undefined
  /** Sent as `OpenAI-Organization`. */
  readonly organization?: string | undefined
  /** Sent as `OpenAI-Project`. */
  readonly project?: string | undefined
  /** What the model costs. Without it, it cannot be used under a cap on money. */
  readonly price?: Price | undefined
}

/**
 * Provides a `LanguageModel`, and with it the current model of Bursar's agents, that asks OpenAI or whatever speaks the
 * Responses protocol at `baseUrl`.
 *
 * Each call reads `MaxOutputTokens` (sent as `max_output_tokens`; OpenAI refuses less than 16), `CallHeaders` and
 * `OnReport` from the calling fiber. Nothing is stored at the provider; tool calls may come in parallel. A tool's
 * schema is enforced by the provider ("strict") where OpenAI can enforce it as it stands.
 *
 * `streamText` sends one request that does not stream and emits the finished reply as stream parts: the parts are
 * those of a stream, the waiting is not. Arguments that are no JSON are handed on as the string that came, for a
 * caller that set `toolCallValidation: "deferred"`.
 *
 * **Fails with** `AiError`, whose reason is `RateLimitError`, `QuotaExhaustedError`, `AuthenticationError`,
 * `InvalidRequestError`, `InternalProviderError` or `UnknownError` after an error status; `NetworkError` without a
 * reply; `InvalidResponseError` for a reply that cannot be read; `ContentPolicyError` when the model refuses to fill
 * in a schema; `InvalidUserInputError`, `ToolConfigurationError` or `UnsupportedSchemaError` for what cannot be sent.
 *
 * **Dies** on an empty API key.
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
export const layer = (options: Options): Layer.Layer<LanguageModel.LanguageModel | CurrentModel> =>
  Model.layer({
    model: options.model,
    provider: "openai",
    ...(options.price === undefined ? {} : { price: options.price }),
  }).pipe(Layer.provideMerge(Layer.effect(LanguageModel.LanguageModel, make(options))))

/**
 * Provides the same, configured by `OPENAI_API_KEY`, `OPENAI_BASE_URL` (optional) and
 * `OPENAI_MODEL` (`gpt-5-mini` when absent). A `model` given here wins over `OPENAI_MODEL`.
 *
 * **Fails with** `ConfigError` when the key is missing or empty.
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
): Layer.Layer<LanguageModel.LanguageModel | CurrentModel, Config.ConfigError> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const apiKey = yield* Config.schema(Schema.Redacted(Schema.NonEmptyString), "OPENAI_API_KEY")
      const baseUrl = yield* Config.option(Config.NonEmptyString("OPENAI_BASE_URL"))
      const model = options.model ?? (yield* Config.withDefault(Config.NonEmptyString("OPENAI_MODEL"), "gpt-5-mini"))
      return layer({ ...options, apiKey, model, baseUrl: Option.getOrUndefined(baseUrl) })
    }),
  )

const make = (options: Options): Effect.Effect<LanguageModel.LanguageModel> =>
  Effect.suspend(() => {
    const client = toClient(options)
    const target: Target = { url: addressOf(client.baseURL), secret: Redacted.value(options.apiKey) }
    const ask = generate(client, target, options.model)
    return LanguageModel.make({
      codecTransformer: OpenAiStructuredOutput.toCodecOpenAI,
      supportsSystemMessagesInHistory: Effect.succeed(true),
      generateText: (request) => ask(request, "generateText"),
      streamText: (request) => Stream.fromIterableEffect(Effect.map(ask(request, "streamText"), toStreamParts)),
    })
  })

// What the package would otherwise read from the environment behind `Config`'s back is given here. Its log, which
// `OPENAI_LOG` could turn on, stays off: it knows the requests.
const toClient = (options: Options): OpenAI =>
  new OpenAI({
    apiKey: Redacted.value(options.apiKey),
    adminAPIKey: null,
    organization: options.organization ?? null,
    project: options.project ?? null,
    baseURL: options.baseUrl ?? "https://api.openai.com/v1",
    timeout: Duration.toMillis(Duration.fromInputUnsafe(options.timeout ?? "5 minutes")),
    maxRetries: 0,
    logLevel: "off",
  })

const generate =
  (client: OpenAI, target: Target, model: string) =>
  (
    options: LanguageModel.ProviderOptions,
    method: string,
  ): Effect.Effect<Array<AiResponse.PartEncoded>, AiError.AiError> =>
    Effect.gen(function* () {
      // `effect/ai` asks again with the full prompt when a shortened one was refused; here it was full already.
      if (options.incrementalFallback === true) return yield* Effect.fail({ reason: askedTwice })
      const headers = yield* Provider.CallHeaders
      const report = yield* Provider.OnReport
      const body = toBody(model, options, yield* Provider.MaxOutputTokens)
      if (Result.isFailure(body)) {
        report({ _tag: "NotSent" })
        return yield* Effect.fail({ reason: body.failure })
      }
      const reply = yield* send({ client, target, body: body.success, headers, report })
      const parts = Result.mapError(toParts(reply, options.responseFormat.type), (reason) => ({ reason }))
      return yield* Effect.fromResult(parts)
    }).pipe(Effect.mapError(({ reason }) => AiError.make({ module: "OpenAi", method, reason })))

const askedTwice = new AiError.InvalidRequestError({ description: "the request was refused with its full prompt" })

// Without a user name, password or query, since errors name it.
const addressOf = (baseUrl: string): string => {
  const address = URL.parse(baseUrl)
  return address === null ? "an invalid address" : `${address.origin}${address.pathname.replace(/\/$/, "")}/responses`
}
