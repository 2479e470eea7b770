/**
 * What a turn becomes for one request: what is said, what is billed and what is stated, after the cap and the tempers.
 * The protocols write it; nothing here knows one.
 *
 * Its law: what is billed is decided before what is stated, and never looks at it.
 */
import type { Asked } from "./Request.ts"
import { type Temper } from "./Temper.ts"
import { inputOf, lengthened, none, outputOf, type Said, type SaidCall, shortened, type Tokens } from "./Tokens.ts"
import type { Call, Failure, Json, Stated, Turn, TurnUsage } from "./Turn.ts"

/** A reply and its costs. */
export interface Reply {
  readonly n: number
  readonly asked: Asked
  readonly model: string
  readonly tier: string
  /** The summary of the reasoning; `undefined` when the model does not reason. */
  readonly reasoning: string | undefined
  readonly said: Said
  readonly hasNullContent: boolean
  readonly incomplete: Turn["incomplete"]
  readonly failure: (Failure & { readonly code: string; readonly message: string }) | undefined
  readonly billed: Tokens
  /** `undefined`: usage is left out. */
  readonly stated: Stated | undefined
  readonly statesRunningUsage: boolean
}

/** What is said, and for what, on the way through the cap and the tempers. */
interface Draft {
  readonly said: Said
  readonly tokens: Tokens
  readonly incomplete: Turn["incomplete"]
}

/** The reply of a turn to a request. */
export const reply = (turn: Turn, asked: Asked, n: number, tempers: ReadonlySet<Temper>): Reply => {
  const { incomplete, said, tokens } = [capped, lengthening, eaten, overBilled].reduce(
    (draft, step) => step(draft, { turn, asked, tempers }),
    drafted(turn, asked, tempers),
  )
  const failure = failureOf(turn)
  const billed = failure === undefined || isUsage(turn.usage) ? tokens : none
  return {
    n,
    asked,
    model: turn.model ?? (tempers.has("other-model") ? `${asked.body.model}-2026-11-30` : asked.body.model),
    tier: turn.serviceTier ?? (tempers.has("other-tier") ? otherTier(asked.tier) : asked.tier),
    reasoning: reasoningOf(turn, tempers),
    said,
    hasNullContent: tempers.has("null-content"),
    incomplete,
    failure,
    billed,
    stated: statedOf(turn, billed, tempers),
    statesRunningUsage: tempers.has("usage-on-every-chunk"),
  }
}

const isUsage = (usage: Turn["usage"]): usage is TurnUsage => usage !== undefined && usage !== null

const failureOf = ({ errorCode, errorMessage, fails }: Turn): Reply["failure"] =>
  fails === undefined
    ? undefined
    : { ...fails, code: errorCode ?? "server_error", message: errorMessage ?? "scripted failure" }

const reasoningOf = (turn: Turn, tempers: ReadonlySet<Temper>): string | undefined =>
  turn.reasoningSummary ?? (turn.reasoningTokens !== undefined || tempers.has("eats-cap") ? "" : undefined)

const otherTier = (asked: string): string => (asked === "priority" ? "default" : "priority")

/** The reply as the script has it, and what it is worth. */
const drafted = (turn: Turn, asked: Asked, tempers: ReadonlySet<Temper>): Draft => {
  const all = callsOf(turn, asked, tempers)
  const calls = all.map((call, index) => named(call, index, tempers)).map(toSaidCall)
  const said: Said = {
    text: turn.text,
    refusal: turn.refusal,
    calls:
      turn.incomplete === undefined ? calls : calls.map((call, at) => (at === calls.length - 1 ? torn(call) : call)),
  }
  const tokens = isUsage(turn.usage) ? { ...none, ...turn.usage } : counted(turn, asked, { ...said, calls })
  return { said, tokens, incomplete: turn.incomplete }
}

const torn = (call: SaidCall): SaidCall => ({ ...call, arguments: call.arguments.slice(0, -1), isCut: true })

const counted = (turn: Turn, asked: Asked, said: Said): Tokens => {
  const reasoning = turn.reasoningTokens ?? 0
  return { ...none, input: inputOf(asked.body), output: Math.max(1, reasoning + outputOf(said)), reasoning }
}

/** Whether a request lets the model call tools. */
const offersTools = ({ body }: Asked): boolean => (body.tools ?? []).length > 0 && body["tool_choice"] !== "none"

const callsOf = (turn: Turn, asked: Asked, tempers: ReadonlySet<Temper>): ReadonlyArray<Call> => {
  const calls = turn.calls ?? []
  if (offersTools(asked)) return calls
  if (tempers.has("obeys")) return []
  if (!tempers.has("ignores-tools") || calls.length > 0) return calls
  const name = asked.body.input.findLast((item) => item["type"] === "function_call")?.["name"]
  return [{ id: "call_withdrawn", name: typeof name === "string" ? name : "withdrawn", arguments: {} }]
}

const named = (call: Call, index: number, tempers: ReadonlySet<Temper>): Call => {
  if (tempers.has("empties-ids")) return { ...call, id: "" }
  return tempers.has("repeats-ids") ? { ...call, id: `call_${index}` } : call
}

const toSaidCall = (call: Call): SaidCall => ({
  id: call.id,
  name: call.name,
  arguments: typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments),
  isCut: false,
})

interface Circumstances {
  readonly turn: Turn
  readonly asked: Asked
  readonly tempers: ReadonlySet<Temper>
}

/** Cut at the cap: where the tokens are ours to count, or the temper is to obey. */
const capped = (draft: Draft, { asked: { cap }, tempers, turn }: Circumstances): Draft => {
  const isOurs = !isUsage(turn.usage) && !tempers.has("ignores-cap")
  if (cap === undefined || draft.tokens.output <= cap || !(isOurs || tempers.has("obeys"))) return draft
  const reasoning = Math.min(draft.tokens.reasoning, cap)
  return {
    said: shortened(draft.said, cap - reasoning),
    tokens: { ...draft.tokens, output: cap, reasoning },
    incomplete: "max_output_tokens",
  }
}

/** More than the cap, by a quarter of it. */
const lengthening = (draft: Draft, { asked: { cap }, tempers }: Circumstances): Draft => {
  if (!tempers.has("ignores-cap") || cap === undefined || draft.tokens.output > cap) return draft
  const output = cap + Math.ceil(cap / 4)
  const said = lengthened(draft.said, output - draft.tokens.reasoning)
  return { ...draft, said, tokens: { ...draft.tokens, output } }
}

const eaten = (draft: Draft, { asked: { cap }, tempers }: Circumstances): Draft => {
  if (!tempers.has("eats-cap")) return draft
  const output = cap ?? draft.tokens.output
  const tokens = { ...draft.tokens, output, reasoning: output }
  return { said: shortened(draft.said, 0), tokens, incomplete: "max_output_tokens" }
}

const overBilled = (draft: Draft, { asked: { cap }, tempers }: Circumstances): Draft => {
  if (!tempers.has("over-bills")) return draft
  const more = (tokens: number): number => Math.ceil(tokens * 1.5)
  const output = Math.max(more(draft.tokens.output), (cap ?? 0) + 1)
  return { ...draft, tokens: { ...draft.tokens, input: more(draft.tokens.input), output } }
}

const statedOf = (turn: Turn, billed: Tokens, tempers: ReadonlySet<Temper>): Stated | undefined => {
  if (turn.stated !== undefined) return turn.stated ?? undefined
  if (turn.usage === null || tempers.has("omits-usage")) return undefined
  if (tempers.has("zero-usage")) return none
  return tempers.has("under-reports") ? scaled(billed) : billed
}

const scaled = (billed: Tokens): Stated => {
  const half = (tokens: number): number => Math.floor(tokens / 2)
  return {
    input: half(billed.input),
    cached: half(billed.cached),
    cacheWrite: half(billed.cacheWrite),
    output: half(billed.output),
    reasoning: half(billed.reasoning),
  }
}

/** What a stored response states: what was stated, or what was billed where that said nothing. */
export const storedUsage = ({ billed, stated }: Reply): Stated =>
  stated === undefined || (stated.input === 0 && stated.output === 0) ? billed : stated

/** A part of what is stated, after `done` of `all` chunks. */
export const running = (stated: Stated, done: number, all: number): Stated => ({
  ...stated,
  output: Math.ceil((stated.output * done) / all),
  reasoning: Math.ceil(((stated.reasoning ?? 0) * done) / all),
  ...(stated.total === undefined ? {} : { total: Math.ceil((stated.total * done) / all) }),
})

/** Texts in the pieces in which they stream, of whole characters. */
export const pieces = (text: string): ReadonlyArray<string> => {
  const characters = [...text]
  return Array.from({ length: Math.ceil(characters.length / pieceLength) }, (_, index) =>
    characters.slice(index * pieceLength, (index + 1) * pieceLength).join(""),
  )
}

/** Characters of a delta: about three tokens. */
const pieceLength = 12

/** A parsed event, chunk or body. */
export type Wire = Json
