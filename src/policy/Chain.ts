/**
 * Models that stand in for each other, and rates that they keep: whom to ask next, when, and at what price.
 */
import * as Effect from "effect/Effect"
import type { Grant } from "../budget/Budget.ts"
import * as Meter from "../model/Meter.ts"
import type { Limit, Model, ModelFailure } from "../model/Model.ts"
import type { Price } from "../model/Price.ts"
import * as Rate from "../model/Rate.ts"
import type { Asking, Decision, DecisionFailure, Fallback, Freeze, Stored } from "./Policy.ts"

/** An attempt that says whom to ask once its model has failed for good, and how long it has to wait for its turn. */
export const chained = (
  current: Model,
  asking: Meter.Asking<Decision>,
  of: { readonly at: number; readonly moneyIsCapped: boolean },
): Asking => {
  const fallback = current.fallback === undefined ? undefined : nextIn(current, of.at, of.moneyIsCapped)
  const failed = (failure: ModelFailure): DecisionFailure => {
    const { code, message, model, retryable, retryAfterMillis } = failure
    const next = Meter.mayFareBetter(asking.report()) ? fallback : undefined
    return { code, message, model, retryable, retryAfterMillis, fallback: next }
  }
  const { rate } = current
  return {
    ...asking,
    use: (hold) => Effect.mapError(asking.use(hold), failed),
    turn: rate === undefined ? undefined : turnOf(current, rate, fallback),
  }
}

/** The next model of the chain that may be asked. */
const nextIn = (current: Model, at: number, moneyIsCapped: boolean): Fallback => {
  const unpriced: Array<string> = []
  let [next, place] = [current.fallback, at + 1]
  for (; next !== undefined && !Meter.isPriced(next, moneyIsCapped); place++) {
    unpriced.push(next.name)
    next = next.fallback
  }
  return { to: next === undefined ? undefined : { model: next.name, at: place }, unpriced }
}

/** Takes the rates of a model one after the other; what was taken is not taken again. */
const turnOf = (
  { name: model }: Model,
  limits: ReadonlyArray<Limit>,
  fallback: Fallback | undefined,
): NonNullable<Asking["turn"]> => {
  const left = [...limits]
  const refused = (message: string, late: boolean): DecisionFailure => ({
    code: "ERATE",
    message,
    retryable: false,
    model,
    fallback,
    late,
  })
  return (planned, withinMillis) =>
    Effect.gen(function* () {
      for (let limit = left[0]; limit !== undefined; limit = left[0]) {
        const waits = yield* Rate.take(limit, amountOf(limit, planned)).pipe(
          Effect.mapError(() => refused(`the rate of ${model} cannot be read`, false)),
        )
        if (waits === 0) left.shift()
        else if (waits < withinMillis) return waits
        else {
          const message = `${model} is asked too often: it is free again in ${waits} ms, ${withinMillis} ms are left`
          return yield* Effect.fail(refused(message, true))
        }
      }
      return 0
    })
}

const amountOf = ({ of }: Limit, { inputTokens = 0, outputTokens = 0 }: Grant): number => {
  switch (of) {
    case "requests":
      return 1
    case "inputTokens":
      return inputTokens
    case "tokens":
      return inputTokens + outputTokens
  }
}

/** The model at the prices that it, and those that its replies name, have in this run. */
export const frozen = (current: Model, freeze: Freeze | undefined): Model => {
  if (freeze === undefined) return current
  const { name, priceOf, tier } = current
  const price = Meter.priceOf(current)
  const kept = price === undefined ? undefined : freeze(name, price, current)
  if (priceOf === undefined) return kept === price ? current : { ...current, price: kept }
  const keptOf = (served: string, by: string | undefined): Price | undefined => {
    const found = priceOf(served, by)
    const isAsAsked = by === undefined || by === tier
    return found === undefined ? undefined : freeze(isAsAsked ? served : `${served}, ${by}`, found, current)
  }
  return { ...current, price: kept, priceOf: keptOf }
}

/** Asks the model of a chain that was called so. */
export const laterBill = (
  first: Model,
  { model: name, response }: Stored,
  freeze: Freeze | undefined,
): Effect.Effect<Grant | undefined> => {
  for (let model: Model | undefined = first; model !== undefined; model = model.fallback) {
    const asked = model
    if (asked.name === name && asked.retrieve !== undefined) {
      return Effect.map(asked.retrieve(response), (report) => Meter.laterBill(frozen(asked, freeze), report))
    }
  }
  return Effect.succeed(undefined)
}
