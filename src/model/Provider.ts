/**
 * What Bursar tells a model provider about one call, and what the provider tells back.
 *
 * A `LanguageModel` of `effect/ai` has no field for a limit on the output and loses the usage of a reply that
 * fails to decode. These references close both gaps: a provider that knows them reads {@link MaxOutputTokens}
 * and {@link CallHeaders} from the calling fiber and calls {@link OnReport} once, from inside its hook, before it
 * returns or fails. A provider that does not know them still works; its calls are then booked at their hold.
 */
import * as Context from "effect/Context"

/**
 * What one reply used, normalised: cached and cache-written tokens lie **inside** `inputTokens`, reasoning tokens
 * inside `outputTokens`. `undefined` means the provider did not say, which is not zero.
 *
 * **Units**: tokens.
 *
 * @category usage
 * @since 0.1.0
 */
export interface Usage {
  readonly inputTokens: number | undefined
  readonly cachedInputTokens: number | undefined
  readonly cacheWriteInputTokens: number | undefined
  readonly outputTokens: number | undefined
  readonly reasoningTokens: number | undefined
  /** Input and output together, where the provider says that too: less than its parts is no usage to believe. */
  readonly totalTokens?: number | undefined
}

/**
 * How one request ended, as far as billing is concerned.
 *
 * - `Replied`: a reply arrived; `usage` is `undefined` when the provider left it out. `model` and `tier` are those that
 *   served it, `id` names the stored response for whoever asks for its usage later.
 * - `Refused`: the provider answered with an error status instead of a reply.
 * - `NotSent`: the connection was never opened; nothing can have been billed.
 * - `Lost`: the request left and no reply came back (timeout, cut connection); it may have been billed. `id` names the
 *   stored response, if that much of it came.
 *
 * @category usage
 * @since 0.1.0
 */
export type Report =
  | Replied
  | { readonly _tag: "Refused"; readonly status: number; readonly retryAfterMillis: number | undefined }
  | { readonly _tag: "NotSent" }
  | { readonly _tag: "Lost"; readonly id?: string | undefined }

/**
 * A reply arrived. `model` is the one that served it and `tier` the service tier really used, where the provider said so.
 *
 * @category usage
 * @since 0.1.0
 */
export interface Replied {
  readonly _tag: "Replied"
  readonly usage: Usage | undefined
  readonly model: string | undefined
  readonly tier?: string | undefined
  /** Names the stored response, so that its usage can be asked for later. */
  readonly id?: string | undefined
}

/**
 * The most output tokens the coming call may produce, reasoning included; `undefined` leaves it to the provider.
 * A provider puts it on the wire (`max_output_tokens`).
 *
 * @category references
 * @since 0.1.0
 */
export const MaxOutputTokens = Context.Reference<number | undefined>("bursar/model/MaxOutputTokens", {
  defaultValue: () => undefined,
})

/**
 * Where a provider reports how its request ended. Called once for each request, before the hook returns or fails.
 *
 * @category references
 * @since 0.1.0
 */
export const OnReport = Context.Reference<(report: Report) => void>("bursar/model/OnReport", {
  defaultValue: () => () => {},
})

/**
 * HTTP headers to send with the coming call, such as the W3C `traceparent` of its span.
 *
 * @category references
 * @since 0.1.0
 */
export const CallHeaders = Context.Reference<Readonly<Record<string, string>>>("bursar/model/CallHeaders", {
  defaultValue: () => ({}),
})
