/**
 * Prices of models out of the table of `@pydantic/genai-prices`: its rates and its matching of names, not its totals.
 *
 * Its laws: a price found is exact or rounded up, never down; a model that the table does not know, or whose bill cannot
 * be told from its tokens, has no price rather than one of 0; and a price carries the version of its table, so that
 * what is written down with a run says for ever what it was priced at.
 */
import { calcPrice, findProvider, type ModelInfo } from "@pydantic/genai-prices"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { readFileSync } from "node:fs"
import { findPackageJSON } from "node:module"
import { CurrentModel, type Model } from "../model/Model.ts"
import type { Price } from "../model/Price.ts"
import { inForce, toPrice, type Use } from "./internal/rates.ts"

/**
 * Nobody knows what a model costs. Under a cap on money it cannot be used.
 *
 * @category errors
 * @since 0.1.0
 */
export class UnknownPrice extends Schema.TaggedError<UnknownPrice>()("UnknownPrice", {
  model: Schema.String,
  provider: Schema.optionalKey(Schema.String),
  /** Why the table has none. */
  reason: Schema.String,
  remedy: Schema.String,
}) {
  override get message(): string {
    const of = this.provider === undefined ? "" : ` of "${this.provider}"`
    return `no price for the model "${this.model}"${of}: ${this.reason}; ${this.remedy}`
  }
}

/**
 * Which price is wanted.
 *
 * @category prices
 * @since 0.1.0
 */
export interface Query extends Use {
  /** As it is asked for, dates and aliases included. */
  readonly model: string
  /** As the table calls it, such as `"openai"`. Guessed from `baseUrl`, else from the model, when absent. */
  readonly provider?: string | undefined
  /** Where requests go, such as `"https://openrouter.ai/api/v1"`. */
  readonly baseUrl?: string | undefined
  /** Prices that win over the table, by `model` or `provider:model`, letter by letter. */
  readonly overrides?: Readonly<Record<string, Price>> | undefined
}

const table = "@pydantic/genai-prices"

/** When releases came out; the package does not say. */
const released: Readonly<Record<string, string>> = { "0.1.8": "2026-09-23" }

/** What the process started with: the package can be told to replace its data while it runs. */
const atStart = findProvider({ providerId: "openai" })

/** The installed version; a bundle may have no folder of packages. */
const installed: string = Result.getOrElse(
  Result.try(() => {
    const manifest = findPackageJSON(table, import.meta.url)
    return manifest === undefined ? "" : (JSON.parse(readFileSync(manifest, "utf8")) as { version: string }).version
  }),
  () => "",
)

/**
 * The version of the table as it stands: package, version and date of its release, where these are known.
 *
 * @category prices
 * @since 0.1.0
 */
export const version = (): string => {
  const date = Object.hasOwn(released, installed) ? released[installed] : undefined
  const bundled = [table, ...(installed === "" ? [] : [installed]), ...(date === undefined ? [] : [`(${date})`])]
  return findProvider({ providerId: "openai" }) === atStart ? bundled.join(" ") : `${table}, updated while running`
}

/**
 * The price of a model now. Put it beside the model; its `version` names the table and the entry.
 *
 * A price that depends on the time of day is the dearest of the day. Where a model answers with pictures or sound its
 * output costs what the dearest of these does. Service tiers are not in the table: give them as an override.
 *
 * **Fails with** `UnknownPrice`, naming the model and the remedy.
 *
 * **Example** (A dated name, and one that nobody knows)
 *
 * ```ts
 * import { Prices } from "bursar/prices"
 * import * as Effect from "effect/Effect"
 *
 * const mini = await Effect.runPromise(Prices.find({ model: "gpt-5-mini-2025-08-07" }))
 * mini.inputPicoUsd // => 250000
 * mini.version?.endsWith("openai:gpt-5-mini") // => true
 *
 * const error = await Effect.runPromise(Effect.flip(Prices.find({ provider: "openai", model: "gpt-0" })))
 * error._tag // => "UnknownPrice"
 * ```
 *
 * @see {@link findAt} for another time
 * @category prices
 * @since 0.1.0
 */
export const find = (query: Query): Effect.Effect<Price, UnknownPrice> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.fromResult(findAt(query, new Date(now))))

/**
 * The price of a model at a time, for prices that were or will be others.
 *
 * **Fails with** `UnknownPrice`, naming the model and the remedy.
 *
 * @category prices
 * @since 0.1.0
 */
export const findAt = (query: Query, at: Date): Result.Result<Price, UnknownPrice> => {
  const override = overrideOf(query)
  if (override !== undefined) return Result.succeed({ version: "given by the caller", ...override })
  const entry = entryOf(query)
  if (entry === undefined) return unknown(query, "the table does not know it")
  return Result.match(toPrice(inForce(entry.model.prices, at), query), {
    onFailure: (reason) => unknown(query, reason),
    onSuccess: (price) => Result.succeed({ ...price, version: `${version()} ${entry.provider}:${entry.model.id}` }),
  })
}

const overrideOf = ({ model, overrides, provider }: Query): Price | undefined =>
  [`${provider}:${model}`, model].flatMap((name) =>
    overrides !== undefined && Object.hasOwn(overrides, name) ? (overrides[name] ?? []) : [],
  )[0]

/** As the package matches names, which it shows only beside a total; of this one nothing is used. */
const entryOf = (query: Query): { readonly provider: string; readonly model: ModelInfo } | undefined => {
  const matched = Result.getOrElse(
    Result.try(() =>
      calcPrice({}, query.model, {
        ...(query.provider === undefined ? {} : { providerId: query.provider }),
        ...(query.baseUrl === undefined ? {} : { providerApiUrl: query.baseUrl }),
      }),
    ),
    () => null,
  )
  return matched === null ? undefined : { provider: matched.provider.id, model: matched.model }
}

const unknown = ({ model, provider }: Query, reason: string): Result.Result<never, UnknownPrice> =>
  Result.fail(
    new UnknownPrice({
      model,
      ...(provider === undefined ? {} : { provider }),
      reason,
      remedy: `check the name, or give its price yourself: Price.perMillion({ input: "1.25", output: "10" })`,
    }),
  )

/**
 * What the table is asked beside the name of the model.
 *
 * @category models
 * @since 0.1.0
 */
export type Priced = Omit<Query, "model">

/** Tiers that cost more than the rates of the table. */
const dearerTiers: ReadonlySet<string | undefined> = new Set(["priority"])

/**
 * The same model at the price of the table, now and for as long as this model is used. A reply that names another model
 * (an alias that moved, a dated version) is priced as that one where the table knows it.
 *
 * **Fails with** `UnknownPrice` where the table does not know the model, or not the service tier `"priority"` that it asks
 * for; give it as an override, or leave the model unpriced then, and money uncapped.
 *
 * **Example** (What a scripted model would cost)
 *
 * ```ts
 * import { Prices } from "bursar/prices"
 * import { ScriptedModel } from "bursar/testing"
 * import * as Effect from "effect/Effect"
 *
 * const { model } = ScriptedModel.make([], { name: "gpt-5-mini" })
 * const priced = await Effect.runPromise(Prices.priced(model, { provider: "openai" }))
 * priced.price?.outputPicoUsd // => 2000000
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export const priced = (model: Model, options: Priced = {}): Effect.Effect<Model, UnknownPrice> =>
  Effect.gen(function* () {
    const query = { ...options, model: model.name }
    const price = yield* find(query)
    if (dearerTiers.has(model.tier) && overrideOf(query) === undefined) {
      return yield* Effect.fromResult(unknown(query, `the table has no rates for the service tier "${model.tier}"`))
    }
    const at = new Date(yield* Clock.currentTimeMillis)
    const known = new Map<string, Price | undefined>([[model.name, price]])
    const priceOf = (name: string): Price | undefined => {
      if (!known.has(name)) known.set(name, Result.getOrUndefined(findAt({ ...options, model: name }, at)))
      return known.get(name)
    }
    return { ...model, price, priceOf }
  })

/**
 * The current model at the price of the table; see {@link priced}.
 *
 * **Example** (A model behind OpenAI under a cap on money)
 *
 * ```ts no-run
 * import { OpenAi } from "bursar/openai"
 * import { Prices } from "bursar/prices"
 * import * as Layer from "effect/Layer"
 *
 * const Model = Prices.layer({ provider: "openai" }).pipe(Layer.provide(OpenAi.layerConfig()))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Priced = {}): Layer.Layer<CurrentModel, UnknownPrice, CurrentModel> =>
  Layer.effect(CurrentModel)(Effect.flatMap(CurrentModel, (model) => priced(model, options)))
