/**
 * What a scripted server says: one `Turn` for each request, taken from a list or made by a function.
 *
 * Its law: a turn knows nothing of protocols. The same script serves Responses and Chat Completions, streamed or not.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Tempers } from "./Temper.ts"

/**
 * A tool call a scripted model makes. `arguments` given as a string go out as they are, also when they are no JSON.
 *
 * @category script
 * @since 0.1.0
 */
export const Call = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  arguments: Schema.Union([Schema.String, Schema.Record(Schema.String, Schema.Unknown)]),
})

/** @since 0.1.0 */
export type Call = typeof Call.Type

/**
 * The tokens of a turn. `cached` and `cacheWrite` lie inside `input`, `reasoning` inside `output`.
 *
 * **Units**: tokens.
 *
 * @category script
 * @since 0.1.0
 */
export const TurnUsage = Schema.Struct({
  input: Schema.Natural,
  output: Schema.Natural,
  cached: Schema.optionalKey(Schema.Natural),
  cacheWrite: Schema.optionalKey(Schema.Natural),
  reasoning: Schema.optionalKey(Schema.Natural),
})

/** @since 0.1.0 */
export type TurnUsage = typeof TurnUsage.Type

/**
 * Numbers to state in place of those billed. Any will do, contradictory ones too; `total` is the sum unless given.
 *
 * **Units**: tokens.
 *
 * @category script
 * @since 0.1.0
 */
export const Stated = Schema.Struct({
  input: Schema.Finite,
  output: Schema.Finite,
  cached: Schema.optionalKey(Schema.Finite),
  cacheWrite: Schema.optionalKey(Schema.Finite),
  reasoning: Schema.optionalKey(Schema.Finite),
  total: Schema.optionalKey(Schema.Finite),
})

/** @since 0.1.0 */
export type Stated = typeof Stated.Type

/**
 * A failure in the middle of generating. A stream ends with it after `afterEvents` events (chunks, in Chat
 * Completions): an error event (`as: "error"`, as when absent), or `response.failed` where the protocol has that. A
 * request that does not stream gets status 500, or a response with the status `failed`.
 *
 * @category script
 * @since 0.1.0
 */
export const Failure = Schema.Struct({
  afterEvents: Schema.Natural,
  as: Schema.optionalKey(Schema.Literals(["error", "failed"])),
})

/** @since 0.1.0 */
export type Failure = typeof Failure.Type

/**
 * One answer of a scripted model.
 *
 * What it says:
 *
 * - `reasoningSummary`, `text`, `refusal`, `calls`: in this order; all may be absent.
 * - `incomplete`: the reply is marked as cut for this reason, and its last call as incomplete.
 * - `model`, `serviceTier`: what the reply names instead of what was asked for.
 * - `temper`: how it deviates, instead of the server's own temper.
 *
 * What it costs:
 *
 * - `usage`: what it bills, and states unless `stated` differs; `null` leaves it out of the reply although the server
 *   still counts it; absent means it is worked out from the request and the reply, and then the cap on output cuts the
 *   reply as a provider would.
 * - `reasoningTokens`: spent before the reply when usage is worked out; the cap counts them, and they may eat it whole.
 * - `stated`: what the reply states whatever is billed; `null` leaves it out.
 * - `countedInput`: what the input counter answers beforehand.
 *
 * How it goes wrong (bytes are those of the reply's body, from 0):
 *
 * - `status`, `errorCode`, `errorMessage`, `retryAfterSeconds`, `retryAfterMs`: an error instead of a reply; costs
 *   nothing.
 * - `headers`: sent with whatever is answered, such as `x-ratelimit-remaining-tokens`.
 * - `fails`: a failure while generating, with `errorCode` and `errorMessage`; costs nothing unless `usage` says.
 * - `cut`: so many bytes leave, then the connection is destroyed; `true` is half of them, `"beforeHeaders"` not even
 *   headers. Billed as if it had arrived. More bytes than there are cut nothing.
 * - `hang`: so many bytes leave, then nothing ever again; `true` is not even headers.
 * - `garbage`: from this byte on, what leaves is no JSON and no event.
 * - `delays`: waits before a byte. `latencyMs`: before the headers. `chunkLatencyMs`: between the events of a stream.
 *   The last two replace the server's own.
 * - `body`: sent instead of a reply, as it is: a string raw, anything else as JSON; costs nothing unless `usage` says.
 *
 * **Units**: tokens, bytes, milliseconds of real time; `retryAfterSeconds` in seconds.
 *
 * @category script
 * @since 0.1.0
 */
export const Turn = Schema.Struct({
  text: Schema.optionalKey(Schema.String),
  calls: Schema.optionalKey(Schema.Array(Call)),
  refusal: Schema.optionalKey(Schema.String),
  reasoningSummary: Schema.optionalKey(Schema.String),
  incomplete: Schema.optionalKey(Schema.Literals(["max_output_tokens", "content_filter"])),
  model: Schema.optionalKey(Schema.String),
  serviceTier: Schema.optionalKey(Schema.String),
  temper: Schema.optionalKey(Tempers),
  usage: Schema.optionalKey(Schema.NullOr(TurnUsage)),
  reasoningTokens: Schema.optionalKey(Schema.Natural),
  stated: Schema.optionalKey(Schema.NullOr(Stated)),
  countedInput: Schema.optionalKey(Schema.Natural),
  latencyMs: Schema.optionalKey(Schema.Natural),
  chunkLatencyMs: Schema.optionalKey(Schema.Natural),
  delays: Schema.optionalKey(Schema.Array(Schema.Struct({ atByte: Schema.Natural, millis: Schema.Natural }))),
  status: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 400, maximum: 599 }))),
  retryAfterSeconds: Schema.optionalKey(Schema.Natural),
  retryAfterMs: Schema.optionalKey(Schema.Natural),
  headers: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  errorCode: Schema.optionalKey(Schema.String),
  errorMessage: Schema.optionalKey(Schema.String),
  fails: Schema.optionalKey(Failure),
  cut: Schema.optionalKey(Schema.Union([Schema.Boolean, Schema.Natural, Schema.Literal("beforeHeaders")])),
  hang: Schema.optionalKey(Schema.Union([Schema.Boolean, Schema.Natural])),
  garbage: Schema.optionalKey(Schema.Natural),
  body: Schema.optionalKey(Schema.Unknown),
})

/** @since 0.1.0 */
export type Turn = typeof Turn.Type

/** A part of a parsed body. */
export type Json = { readonly [key: string]: unknown }

/**
 * A request as a script sees it, the same in both protocols: everything that was sent, and
 *
 * - `input`: the whole conversation as Responses items, that of `previous_response_id` first; the messages of a Chat
 *   request are translated (`messages` still holds them as they came).
 * - `tools`: in the flat form of Responses.
 * - `max_output_tokens`: the cap, by whichever name it came.
 * - `counting`: `true` when only the input is to be counted and the answer will not be said.
 *
 * @category script
 * @since 0.1.0
 */
export interface RequestBody {
  readonly model: string
  readonly input: ReadonlyArray<Json>
  readonly tools?: ReadonlyArray<Json>
  readonly max_output_tokens?: number
  readonly counting?: true
  readonly [key: string]: unknown
}

/**
 * Turns in order, or a model that reacts: it is given the request and its number, from 0, and returns `undefined`
 * when it has nothing to say (which, like a request past the end of a list, is answered with 500).
 *
 * @category script
 * @since 0.1.0
 */
export type Script =
  | ReadonlyArray<Turn>
  | ((request: RequestBody, n: number) => Turn | undefined | Promise<Turn | undefined>)

/** The turn for request `n`; `undefined` past the end. Throws on a turn that is none, naming the wrong field. */
export const turnFor = async (script: Script, request: RequestBody, n: number): Promise<Turn | undefined> => {
  const turn = typeof script === "function" ? await script(request, n) : script[n]
  return turn === undefined ? undefined : decode(turn)
}

/** Throws on a list with a turn that is none, so that a slip in a script is found before the first request. */
export const checkScript = (script: Script): void => {
  if (typeof script !== "function") script.forEach(decode)
}

const decode = (turn: unknown): Turn =>
  Effect.runSync(Schema.decodeUnknownEffect(Turn, { onExcessProperty: "error" })(turn))
