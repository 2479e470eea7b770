/**
 * A model that says what a script tells it to, records every request, and fails on one too many. No network, no keys;
 * waiting happens on the clock of the test.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { CurrentModel, type Model, ModelFailure, type Reply, type Request } from "../model/Model.ts"
import type { Price } from "../model/Price.ts"
import type { Report, Usage } from "../model/Provider.ts"

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
  readonly usage?: {
    readonly input: number
    readonly output: number
    readonly cached?: number
    readonly written?: number
  } | null
  /** What the input counter says beforehand; the reported input unless given. */
  readonly countedInput?: number
  readonly millis?: number
  readonly fault?: "timeout" | "cut" | "unreachable" | { readonly status: number; readonly retryAfterMillis?: number }
  readonly finishReason?: string
}

/** A request as it was sent. */
export interface Sent {
  readonly request: Request
  readonly maxOutputTokens: number | undefined
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
  /** Dispatches for which the script had no turn left; 0 in a good test. */
  readonly pastScript: () => number
  /** The turn the next dispatch will get, or `undefined` past the end. */
  readonly next: () => Turn | undefined
}

/**
 * A model from a script.
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
  options: { readonly name?: string; readonly price?: Price } = {},
): Scripted => {
  const requests: Array<Sent> = []
  const name = options.name ?? "scripted"
  const next = () => turns[requests.length]
  const model: Model = {
    name,
    provider: "scripted",
    price: options.price,
    countInput: () => {
      const turn = next()
      return { tokens: turn?.countedInput ?? turn?.usage?.input ?? 0, bound: "counted" }
    },
    call: (request, { maxOutputTokens, report }) =>
      Effect.gen(function* () {
        const turn = next()
        requests.push({ request, maxOutputTokens })
        if (turn === undefined) {
          const message = `dispatch ${requests.length} is past the end of a script of ${turns.length} turns`
          return yield* Effect.die(new Error(message))
        }
        if (turn.millis !== undefined && turn.millis > 0) yield* Effect.sleep(turn.millis)
        return yield* answer(turn, name, report)
      }),
  }
  return {
    model,
    layer: Layer.succeed(CurrentModel)(model),
    requests,
    pastScript: () => Math.max(0, requests.length - turns.length),
    next,
  }
}

const answer = (turn: Turn, name: string, report: (report: Report) => void): Effect.Effect<Reply, ModelFailure> => {
  if (turn.fault !== undefined) return fail(turn.fault, name, report)
  report({ _tag: "Replied", usage: usageOf(turn), model: name })
  return Effect.succeed({
    text: turn.text ?? "",
    calls: (turn.calls ?? []).map((call) => ({ id: call.id ?? "", name: call.name, params: call.params })),
    cut: turn.finishReason === "length",
    finishReason: turn.finishReason ?? (turn.calls === undefined ? "stop" : "tool-calls"),
  })
}

const usageOf = (turn: Turn): Usage | undefined =>
  turn.usage === null || turn.usage === undefined
    ? undefined
    : {
        inputTokens: turn.usage.input,
        cachedInputTokens: turn.usage.cached,
        cacheWriteInputTokens: turn.usage.written,
        outputTokens: turn.usage.output,
        reasoningTokens: undefined,
      }

const fail = (
  fault: NonNullable<Turn["fault"]>,
  model: string,
  report: (report: Report) => void,
): Effect.Effect<never, ModelFailure> => {
  if (typeof fault === "string") {
    report(fault === "unreachable" ? { _tag: "NotSent" } : { _tag: "Lost" })
    return Effect.fail(new ModelFailure({ model, code: fault, retryable: true }))
  }
  const { status, retryAfterMillis } = fault
  report({ _tag: "Refused", status, retryAfterMillis })
  return Effect.fail(
    new ModelFailure({
      model,
      code: `http_${status}`,
      retryable: status === 429 || status >= 500,
      ...(retryAfterMillis === undefined ? {} : { retryAfterMillis }),
    }),
  )
}
