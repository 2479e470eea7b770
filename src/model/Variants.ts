/**
 * A model with a rate, with others to fall back on, or with a ceiling for its price: plain records, made of records.
 */
import * as Duration from "effect/Duration"
import type { Limit, Model } from "./Model.ts"
import type { Price } from "./Price.ts"

/**
 * A model that is asked no more often than that. A request beyond it waits, inside the deadline of the agent; the wait is
 * a tick. Where it would pass the deadline the model counts as failed, and the run stops with `deadline` unless there is a
 * model to fall back on.
 *
 * **Units**: `requests` in each `window`; `inputTokens` as they are bounded beforehand; `tokens` the same and the output
 * asked for, which is how providers count. One process shares a rate by the name of provider and model, or by `key`;
 * several share it through a store of `effect/persistence/RateLimiter` in context.
 *
 * **Dies** on a limit that is not a whole number above 0, or a window that is not longer than 0.
 *
 * **Example** (Sixty requests and 30,000 tokens a minute)
 *
 * ```ts
 * import { Model } from "bursar"
 * import { ScriptedModel } from "bursar/testing"
 *
 * const { model } = ScriptedModel.make([])
 * const slow = Model.withRate(model, { requests: 60, tokens: 30_000, window: "1 minute" })
 * slow.rate?.map(({ of, limit }) => `${limit} ${of}`) // => ["60 requests", "30000 tokens"]
 * ```
 *
 * @category rates
 * @since 0.1.0
 */
export const withRate = (
  model: Model,
  rate: {
    readonly requests?: number
    readonly inputTokens?: number
    readonly tokens?: number
    readonly window: Duration.Input
    readonly key?: string
  },
): Model => {
  const windowMillis = Duration.toMillis(rate.window)
  if (!(windowMillis > 0 && Number.isFinite(windowMillis))) {
    throw new Error(`window is ${windowMillis} ms: give a time above 0`)
  }
  const key = rate.key ?? `${model.provider}/${model.name}`
  const limits = (["requests", "inputTokens", "tokens"] as const).flatMap((of): ReadonlyArray<Limit> => {
    const limit = rate[of]
    if (limit === undefined) return []
    if (!Number.isSafeInteger(limit) || limit < 1) throw new Error(`${of} is ${limit}: give a whole number above 0`)
    return [{ of, key: `bursar/model/${key}/${of}`, limit, windowMillis }]
  })
  return { ...model, rate: [...(model.rate ?? []), ...limits] }
}

/**
 * A model with others to ask after it has failed for good: its retries are used up, or it cannot be reached or used
 * (401, 403, 404, a quota). A request that would be invalid anywhere (400, 413, 422) is not asked again elsewhere. An
 * agent that has fallen back stays with the later model.
 *
 * Each model is held at its own price and counted with its own counter. An attempt with a later model is paid like a
 * retry: from the retry reserve, then explore. Under a cap on money those without a price are passed over. What is kept
 * for a wrap-up is what the model that is asked at the time needs.
 *
 * **Example** (A large model, and a small one where it fails)
 *
 * ```ts
 * import { Model } from "bursar"
 * import { ScriptedModel } from "bursar/testing"
 *
 * const large = ScriptedModel.make([], { name: "large" }).model
 * const small = ScriptedModel.make([], { name: "small" }).model
 * Model.withFallback(large, small).fallback?.name // => "small"
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export const withFallback = (first: Model, ...others: ReadonlyArray<Model>): Model => {
  const [next, ...rest] = first.fallback === undefined ? others : [first.fallback, ...others]
  return next === undefined ? first : { ...first, fallback: withFallback(next, ...rest) }
}

/** The model at a place of a chain, from 0; the last one beyond its end. */
export const inChain = (model: Model, at: number): Model =>
  at === 0 || model.fallback === undefined ? model : inChain(model.fallback, at - 1)

/**
 * A model that may be asked under a cap on money although nobody knows its price: it is held and booked as if it cost
 * `ceiling`, and what a decision cost is marked as assumed. A price that is known comes before it.
 *
 * **Example** (Never dearer than 5 and 30 USD per million tokens)
 *
 * ```ts
 * import { Model, Price } from "bursar"
 * import { ScriptedModel } from "bursar/testing"
 * import * as Result from "effect/Result"
 *
 * const { model } = ScriptedModel.make([])
 * const ceiling = Result.getOrThrow(Price.perMillion({ input: "5", output: "30" }))
 * Model.withCeiling(model, ceiling).ceiling?.outputPicoUsd // => 30000000
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export const withCeiling = (model: Model, ceiling: Price): Model => ({ ...model, ceiling })
