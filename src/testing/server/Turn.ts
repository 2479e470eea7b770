/**
 * What a scripted server says: one `Turn` for each request, taken from a list or made by a function.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

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
 * The tokens a turn states. `cached` and `cacheWrite` lie inside `input`, `reasoning` inside `output`.
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
 * One answer of a scripted model.
 *
 * - `text`, `calls`, `refusal`: what it says, in this order; all may be absent.
 * - `usage`: what it states; `null` leaves it out of the reply although the server still counts it; absent means it
 *   is worked out from the request and the reply, and then `max_output_tokens` cuts the reply as a provider would.
 * - `incomplete`: the reply is marked as cut for this reason, and its last call as incomplete.
 * - `latencyMs`: how long the model thinks, instead of the server's own latency.
 * - `status`, `retryAfterSeconds`, `errorCode`, `errorMessage`: an error instead of a reply; costs nothing.
 * - `cut`: half of the reply leaves, then the connection is destroyed; counted as if it had arrived.
 * - `model`: the model the reply names instead of the one asked for.
 * - `body`: sent instead of a reply, as it is: a string raw, anything else as JSON; costs nothing unless `usage` says.
 *
 * @category script
 * @since 0.1.0
 */
export const Turn = Schema.Struct({
  text: Schema.optionalKey(Schema.String),
  calls: Schema.optionalKey(Schema.Array(Call)),
  refusal: Schema.optionalKey(Schema.String),
  usage: Schema.optionalKey(Schema.NullOr(TurnUsage)),
  incomplete: Schema.optionalKey(Schema.Literals(["max_output_tokens", "content_filter"])),
  latencyMs: Schema.optionalKey(Schema.Natural),
  status: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 400, maximum: 599 }))),
  retryAfterSeconds: Schema.optionalKey(Schema.Natural),
  errorCode: Schema.optionalKey(Schema.String),
  errorMessage: Schema.optionalKey(Schema.String),
  cut: Schema.optionalKey(Schema.Boolean),
  model: Schema.optionalKey(Schema.String),
  body: Schema.optionalKey(Schema.Unknown),
})

/** @since 0.1.0 */
export type Turn = typeof Turn.Type

/**
 * The body of a request as the server parsed it, as far as a script will want to look.
 *
 * @category script
 * @since 0.1.0
 */
export interface RequestBody {
  readonly model: string
  readonly input: ReadonlyArray<{ readonly [key: string]: unknown }>
  readonly tools?: ReadonlyArray<{ readonly [key: string]: unknown }>
  readonly max_output_tokens?: number
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
