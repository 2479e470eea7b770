/**
 * A model that says what a script tells it to, records every request, and fails on one too many. No network, no keys;
 * waiting happens on the clock of the test.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { CurrentModel, type Model, ModelFailure, type Reply, type Request, withFallback } from "../model/Model.ts"
import type { Price } from "../model/Price.ts"
import type { Replied, Report, Usage } from "../model/Provider.ts"

/**
 * Usage as the script says it; `total` is what the provider says of input and output together, if it does.
 *
 * **Units**: tokens.
 *
 * @category scripts
 * @since 0.1.0
 */
export interface ScriptedUsage {
  readonly input: number
  readonly output: number
  readonly cached?: number
  readonly written?: number
  readonly reasoning?: number
  readonly total?: number
}

/**
 * One reply, or one fault instead of it.
 *
 * **Units**: tokens; `millis` until it comes.
 *
 * @category scripts
 * @since 0.1.0
 */
export interface Turn {
  readonly text?: string
  readonly calls?: ReadonlyArray<{ readonly id?: string; readonly name: string; readonly params: unknown }>
  /** What the provider reports; `null` for a reply without usage. */
  readonly usage?: ScriptedUsage | null
  /** The reply is streamed in so many pieces, each with a running total; the last one is what is reported. */
  readonly frames?: ReadonlyArray<ScriptedUsage>
  /** What the input counter says beforehand; the reported input unless given. */
  readonly countedInput?: number
  readonly millis?: number
  /** After `timeout` and `cut` nobody knows what was billed; `unreachable` was never sent. */
  readonly fault?: "timeout" | "cut" | "unreachable" | { readonly status: number; readonly retryAfterMillis?: number }
  readonly finishReason?: string
  /** The model that the reply names; the one that was asked unless given. */
  readonly model?: string
  /** The service tier that the reply names. */
  readonly tier?: string
  /** Names the stored response. A reply that is cut off had said it by then. */
  readonly id?: string
  /** What is said of the stored response when it is asked for; nothing unless given. */
  readonly stored?: ScriptedUsage
}

/**
 * A request as it was sent: to which model, and with what its caller had set for it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Sent {
  readonly request: Request
  readonly maxOutputTokens: number | undefined
  readonly model: string
  readonly options: Readonly<Record<string, unknown>>
}

/**
 * A model of a script. `options` are what its caller sets for it, and go with every request.
 *
 * @category models
 * @since 0.1.0
 */
export interface Named {
  readonly name?: string
  readonly price?: Price
  readonly options?: Readonly<Record<string, unknown>>
}

/**
 * A scripted model and what it was asked.
 *
 * @category models
 * @since 0.1.0
 */
export interface Scripted {
  readonly model: Model
  readonly layer: Layer.Layer<CurrentModel>
  readonly requests: ReadonlyArray<Sent>
  /** Stored responses that were asked for, by their ids. */
  readonly retrieved: ReadonlyArray<string>
  /** Dispatches for which the script had no turn left; 0 in a good test. */
  readonly pastScript: () => number
  /** The turn the next dispatch will get, or `undefined` past the end. */
  readonly next: () => Turn | undefined
}

/**
 * A model from a script. Those in `fallback` are asked after it has failed for good, and go on in the same script.
 *
 * **Example** (One reply, and one request too many)
 *
 * ```ts
 * import { ScriptedModel } from "bursar/testing"
 *
 * const scripted = ScriptedModel.make([{ text: "hello", usage: { input: 10, output: 2 } }])
 * scripted.next()?.text // => "hello"
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export const make = (
  turns: ReadonlyArray<Turn>,
  options: Named & { readonly fallback?: ReadonlyArray<Named> } = {},
): Scripted => {
  const { fallback = [], ...first } = options
  const script = new Script(turns)
  const model = withFallback(script.model(first), ...fallback.map((one) => script.model(one)))
  return {
    model,
    layer: Layer.succeed(CurrentModel)(model),
    requests: script.requests,
    retrieved: script.retrieved,
    pastScript: () => Math.max(0, script.requests.length - turns.length),
    next: () => script.next(),
  }
}

/** What all models of a script go through together. */
class Script {
  readonly requests: Array<Sent> = []
  readonly retrieved: Array<string> = []
  readonly #turns: ReadonlyArray<Turn>

  constructor(turns: ReadonlyArray<Turn>) {
    this.#turns = turns
  }

  next(): Turn | undefined {
    return this.#turns[this.requests.length]
  }

  model({ name = "scripted", price, options = {} }: Named): Model {
    return {
      name,
      provider: "scripted",
      price,
      countInput: () => {
        const turn = this.next()
        return { tokens: turn?.countedInput ?? turn?.usage?.input ?? 0, bound: "counted" }
      },
      call: (request, { maxOutputTokens, onText, report }) =>
        Effect.gen({ self: this }, function* () {
          const turn = this.next()
          this.requests.push({ request, maxOutputTokens, model: name, options })
          if (turn === undefined) {
            const message = `dispatch ${this.requests.length} is past the end of a script of ${this.#turns.length} turns`
            return yield* Effect.die(new Error(message))
          }
          if (turn.millis !== undefined && turn.millis > 0) yield* Effect.sleep(turn.millis)
          return yield* answer(turn, name, { report, onText })
        }),
      retrieve: (id) =>
        Effect.sync(() => {
          this.retrieved.push(id)
          const turn = this.#turns.find((one) => one.id === id)
          return turn?.stored === undefined ? undefined : replied(turn, name, turn.stored)
        }),
    }
  }
}

interface Told {
  readonly report: (report: Report) => void
  readonly onText: ((delta: string) => void) | undefined
}

const answer = (turn: Turn, name: string, { report, onText }: Told): Effect.Effect<Reply, ModelFailure> => {
  if (onText !== undefined) for (const piece of piecesOf(turn)) onText(piece)
  if (turn.fault !== undefined) return fail(turn.fault, { model: name, id: turn.id }, report)
  report(replied(turn, name, turn.frames?.at(-1) ?? turn.usage))
  return Effect.succeed({
    text: turn.text ?? "",
    calls: (turn.calls ?? []).map((call) => ({ id: call.id ?? "", name: call.name, params: call.params })),
    cut: turn.finishReason === "length",
    finishReason: turn.finishReason ?? (turn.calls === undefined ? "stop" : "tool-calls"),
  })
}

/** The text as it is streamed: a piece for each frame. */
const piecesOf = ({ frames = [], text = "" }: Turn): ReadonlyArray<string> => {
  const at = (index: number) => Math.floor((text.length * index) / frames.length)
  return frames.map((_, index) => text.slice(at(index), at(index + 1)))
}

const replied = (turn: Turn, name: string, usage: ScriptedUsage | null | undefined): Replied => ({
  _tag: "Replied",
  usage: usage === null || usage === undefined ? undefined : usageOf(usage),
  model: turn.model ?? name,
  tier: turn.tier,
  id: turn.id,
})

const usageOf = (usage: ScriptedUsage): Usage => ({
  inputTokens: usage.input,
  cachedInputTokens: usage.cached,
  cacheWriteInputTokens: usage.written,
  outputTokens: usage.output,
  reasoningTokens: usage.reasoning,
  totalTokens: usage.total,
})

const fail = (
  fault: NonNullable<Turn["fault"]>,
  of: { readonly model: string; readonly id: string | undefined },
  report: (report: Report) => void,
): Effect.Effect<never, ModelFailure> => {
  const { model, id } = of
  if (typeof fault === "string") {
    report(fault === "unreachable" ? { _tag: "NotSent" } : { _tag: "Lost", id })
    return Effect.fail(new ModelFailure({ model, code: fault, retryable: true }))
  }
  const { status, retryAfterMillis } = fault
  report({ _tag: "Refused", status, retryAfterMillis })
  return Effect.fail(
    new ModelFailure({
      model,
      code: `http_${status}`,
      retryable: status === 408 || status === 409 || status === 429 || status >= 500,
      ...(retryAfterMillis === undefined ? {} : { retryAfterMillis }),
    }),
  )
}
