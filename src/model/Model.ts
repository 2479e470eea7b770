/**
 * A model as Bursar needs it: with a name, a price, a way to bound the input beforehand, and one call that does exactly
 * one request.
 *
 * {@link layer} makes one of any `LanguageModel` of `effect/ai`. On the way it closes three holes: tools are never run by
 * `effect/ai` (their handlers are replaced by ones that die, and resolution is switched off), approval parts are taken
 * out of the prompt (with them `generateText` would run approved tools), and no `ResponseIdTracker` is in context (with
 * one, a single call may send two requests).
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as References from "effect/References"
import * as Schema from "effect/Schema"
import type * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as ResponseIdTracker from "effect/ai/ResponseIdTracker"
import type * as Tool from "effect/ai/Tool"
import * as Estimate from "./Estimate.ts"
import type { Price } from "./Price.ts"
import type { Rate } from "./Rate.ts"
import { CallHeaders, MaxOutputTokens, OnReport, type Report, type Usage } from "./Provider.ts"

export { inChain, withCeiling, withFallback, withRate } from "./Variants.ts"

/**
 * One request: messages, the tools offered, and, for the last answer, the tool whose parameters are the schema of it.
 *
 * @category requests
 * @since 0.1.0
 */
export interface Request {
  readonly messages: ReadonlyArray<Prompt.Message>
  /**
   * The same as `messages` in two parts, for whoever counts or caches: a history that only grows, in one array for the
   * whole conversation, and what is said last.
   */
  readonly parts?: { readonly history: ReadonlyArray<Prompt.Message>; readonly last: Prompt.Message } | undefined
  /** Stands for everything that is said. */
  readonly hash?: string | undefined
  readonly tools: ReadonlyArray<Tool.Any>
  /** Ask for a JSON reply with the parameters of this tool instead of text. */
  readonly answer?: { readonly tool: Tool.Any; readonly schema: Schema.Top } | undefined
}

/**
 * What came back. Parameters of calls are as the model sent them, not yet decoded.
 *
 * @category requests
 * @since 0.1.0
 */
export interface Reply {
  readonly text: string
  readonly calls: ReadonlyArray<{ readonly id: string; readonly name: string; readonly params: unknown }>
  /** True when the reply was cut off by the limit on its output. */
  readonly cut: boolean
  readonly finishReason: string
}

/**
 * A request that brought no reply. `code` is the tag of the provider's error; the text of the provider is not kept.
 *
 * @category errors
 * @since 0.1.0
 */
export class ModelFailure extends Schema.TaggedError<ModelFailure>()("ModelFailure", {
  model: Schema.String,
  code: Schema.String,
  retryable: Schema.Boolean,
  retryAfterMillis: Schema.optionalKey(Schema.Finite),
}) {
  override get message(): string {
    return `${this.model}: ${this.code}${this.retryable ? " (may be tried again)" : ""}`
  }
}

/**
 * A model that can be bounded before a call and booked after it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Model {
  readonly name: string
  readonly provider: string
  /** Absent when nobody knows it: then the model cannot be used under a money cap. */
  readonly price: Price | undefined
  /** Input tokens of a request before it is sent, and whether they were counted or estimated. */
  readonly countInput: (request: Request) => Count
  /**
   * The same from the counter of the provider, which takes a request of its own: asked before the hold. It never fails;
   * where the counter cannot be reached it answers with the estimate.
   */
  readonly count?: ((request: Request) => Effect.Effect<Count>) | undefined
  /** Sends one request, and reports once how it ended. */
  readonly call: (request: Request, how: Call) => Effect.Effect<Reply, ModelFailure>
  /** What became of a stored response, for correcting a call that was booked at its hold; `undefined` if nobody knows. */
  readonly retrieve?: ((id: string) => Effect.Effect<Report | undefined>) | undefined
  /** The service tier that every request asks for. */
  readonly tier?: string | undefined
  /** What is held and booked where nobody knows a price; see {@link withCeiling}. */
  readonly ceiling?: Price | undefined
  /** Whether the provider bills what it answers with a 5xx status; `"unbilled"` unless given, like a 429. */
  readonly serverErrors?: "unbilled" | "unknown" | undefined
  /** How often it may be asked; see {@link withRate}. */
  readonly rate?: ReadonlyArray<Limit> | undefined
  /** What the model that a reply names costs; `tier` is the one it was served in. */
  readonly priceOf?: ((model: string, tier: string | undefined) => Price | undefined) | undefined
  /** Asked after this one has failed for good. */
  readonly fallback?: Model | undefined
}

/**
 * So much of something in a window of time; `of` is what is counted.
 *
 * @category rates
 * @since 0.1.0
 */
export interface Limit extends Rate {
  readonly of: "requests" | "inputTokens" | "tokens"
}

/**
 * Input tokens of a request, and whether a counter of the provider said so or an estimate.
 *
 * @category requests
 * @since 0.1.0
 */
export interface Count {
  readonly tokens: number
  readonly bound: "counted" | "estimated"
}

/**
 * How one request is sent.
 *
 * **Units**: `maxOutputTokens` is the most output it may produce, reasoning included.
 *
 * @category requests
 * @since 0.1.0
 */
export interface Call {
  readonly maxOutputTokens: number
  /** HTTP headers to send along, such as the W3C `traceparent` of the span. */
  readonly headers: Readonly<Record<string, string>>
  /**
   * Called once for each request, before the call returns or fails; what is not reported is booked at its hold, and so is
   * a call that sent several requests of which more than one may be billed.
   */
  readonly report: (report: Report) => void
  /** Text as it arrives, for whoever shows it; a model that does not stream never calls it. */
  readonly onText?: ((delta: string) => void) | undefined
}

/**
 * The model of the current fiber.
 *
 * @category models
 * @since 0.1.0
 */
export class CurrentModel extends Context.Service<CurrentModel, Model>()("bursar/CurrentModel") {}

/**
 * The current model from the `LanguageModel` in context, whichever it is.
 *
 * `model` is its name and `price` what it costs; without a price it is refused under a money cap. A provider that does
 * not know Bursar's references may ignore the limit on its output, and its usage is taken from the reply.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: {
  readonly model: string
  readonly provider?: string
  readonly price?: Price
}): Layer.Layer<CurrentModel, never, LanguageModel.LanguageModel> =>
  Layer.effect(CurrentModel)(Effect.map(LanguageModel.LanguageModel, (service) => fromLanguageModel(service, options)))

/** A {@link Model} that speaks through a `LanguageModel`. */
export const fromLanguageModel = (
  service: LanguageModel.LanguageModel,
  options: { readonly model: string; readonly provider?: string; readonly price?: Price },
): Model => ({
  name: options.model,
  provider: options.provider ?? "custom",
  price: options.price,
  countInput: (request) => ({ tokens: Estimate.inputTokens(request), bound: "estimated" }),
  call: (request, how) => callOnce(service, { model: options.model, request, how }),
})

const callOnce = (
  service: LanguageModel.LanguageModel,
  of: { readonly model: string; readonly request: Request; readonly how: Call },
): Effect.Effect<Reply, ModelFailure> =>
  Effect.suspend(() => {
    const { model, request, how } = of
    let reported = false
    const told = (one: Report) => {
      reported = true
      how.report(one)
    }
    // What the provider says itself comes before what is made of its answer.
    const once = (one: Report) => {
      if (!reported) told(one)
    }
    // A conversation that Bursar made holds no approvals.
    const messages = request.parts === undefined ? withoutApprovals(request.messages) : request.messages
    const prompt = Prompt.fromMessages(messages)
    const shared = { prompt, toolkit: untouchable(request.tools), ...unresolved }
    const generate: Effect.Effect<Generated, AiError.AiError> =
      request.answer === undefined
        ? (service.generateText(shared as never) as never)
        : (service.generateObject({ prompt, schema: request.answer.schema, objectName: "answer" } as never) as never)
    return generate.pipe(
      Effect.map((reply) => {
        once({ _tag: "Replied", usage: usageOf(reply.usage), model: undefined })
        return toReply(reply)
      }),
      Effect.catch((error) => failed(error, { model, once })),
      Effect.updateContext((context: Context.Context<never>) => inCall(context, { ...how, report: told })),
    )
  })

/** What a provider finds in context during one call; and no tracker, with which a call may send two requests. */
const inCall = (context: Context.Context<never>, how: Call): Context.Context<never> => {
  const plain: Context.Context<never> = Option.isNone(Context.getOption(context, ResponseIdTracker.ResponseIdTracker))
    ? context
    : Context.omit(ResponseIdTracker.ResponseIdTracker)(context)
  const sized = Context.add(Context.add(plain, MaxOutputTokens, how.maxOutputTokens), CallHeaders, how.headers)
  return Context.add(Context.add(sized, OnReport, how.report), References.TracerEnabled, false)
}

const unresolved = { disableToolCallResolution: true, toolCallValidation: "deferred", toolChoice: "auto" } as const

interface Generated {
  readonly content: ReadonlyArray<Response.AnyPart>
  readonly text: string
  readonly finishReason: string
  readonly usage: Response.Usage
}

/** A toolkit that declares tools and cannot run them: running is the host's alone. One for each list of tools. */
const untouchable = (tools: ReadonlyArray<Tool.Any>): unknown => {
  const known = toolkits.get(tools)
  if (known !== undefined) return known
  const made = {
    tools: Object.fromEntries(tools.map((tool) => [tool.name, tool])),
    handle: (name: string) => Effect.die(new Error(`effect/ai must not run the tool ${name}`)),
  }
  toolkits.set(tools, made)
  return made
}

const toolkits = new WeakMap<ReadonlyArray<Tool.Any>, unknown>()

/** Leaves out approval requests and responses: with them `generateText` would run the approved tools. */
export const withoutApprovals = (messages: ReadonlyArray<Prompt.Message>): ReadonlyArray<Prompt.Message> =>
  messages.map((message) => {
    if (message.role !== "assistant" && message.role !== "tool") return message
    const parts: ReadonlyArray<{ readonly type: string }> = message.content
    if (!parts.some(isApproval)) return message
    const [content, { options }] = [parts.filter((part) => !isApproval(part)) as never, message]
    return message.role === "tool"
      ? Prompt.toolMessage({ content, options })
      : Prompt.assistantMessage({ content, options })
  })

const isApproval = (part: { readonly type: string }): boolean =>
  part.type === "tool-approval-request" || part.type === "tool-approval-response"

const toReply = (generated: Generated): Reply => ({
  text: generated.text,
  calls: generated.content.flatMap((part) =>
    // What the provider ran itself is no call for the host.
    part.type === "tool-call" && !part.providerExecuted
      ? [{ id: part.id, name: part.name, params: part.params as unknown }]
      : [],
  ),
  cut: generated.finishReason === "length",
  finishReason: generated.finishReason,
})

const usageOf = (usage: Response.Usage): Usage => ({
  inputTokens: usage.inputTokens.total,
  cachedInputTokens: usage.inputTokens.cacheRead,
  cacheWriteInputTokens: usage.inputTokens.cacheWrite,
  outputTokens: usage.outputTokens.total,
  reasoningTokens: usage.outputTokens.reasoning,
})

/** An answer that does not fit its schema is still a reply: its text is kept for the host to judge. */
const failed = (
  error: AiError.AiError,
  options: { readonly model: string; readonly once: (report: Report) => void },
): Effect.Effect<Reply, ModelFailure> => {
  const { reason } = error
  if (reason._tag === "StructuredOutputError") {
    options.once({ _tag: "Replied", usage: undefined, model: undefined })
    return Effect.succeed({ text: reason.responseText ?? "", calls: [], cut: false, finishReason: "invalid" })
  }
  const retryAfter = reason._tag === "RateLimitError" ? reason.retryAfter : undefined
  options.once(reportOf(reason))
  return Effect.fail(
    new ModelFailure({
      model: options.model,
      code: reason._tag,
      retryable: error.isRetryable,
      ...(retryAfter === undefined ? {} : { retryAfterMillis: Duration.toMillis(retryAfter) }),
    }),
  )
}

/** What a failure means for billing where the provider did not say so itself. */
const reportOf = (reason: AiError.AiErrorReason): Report => {
  switch (reason._tag) {
    case "RateLimitError":
    case "QuotaExhaustedError":
      return { _tag: "Refused", status: 429, retryAfterMillis: undefined }
    case "AuthenticationError":
      return { _tag: "Refused", status: 401, retryAfterMillis: undefined }
    case "InvalidRequestError":
    case "InvalidUserInputError":
      return { _tag: "Refused", status: 400, retryAfterMillis: undefined }
    case "UnsupportedSchemaError":
    case "ToolConfigurationError":
      return { _tag: "NotSent" }
    default:
      return { _tag: "Lost" }
  }
}
