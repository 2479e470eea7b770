/**
 * A call of a model as an attempt of the budget: bounded before it is sent, booked after it.
 *
 * | what happened | booking |
 * | --- | --- |
 * | a reply with plausible usage | what was used |
 * | usage missing, all zero beside a reply, or contradicting itself | the hold |
 * | timeout, cut connection, interruption | the hold |
 * | 400, 401, 403, 404, 413, 422, 429 or 5xx instead of a reply | one step and one tick |
 * | any other status | the hold |
 * | never sent | one tick |
 */
import * as Effect from "effect/Effect"
import { type Attempt, type Booking, dimensions, type Grant, type Hold } from "../budget/Budget.ts"
import * as Names from "../telemetry/Names.ts"
import * as Trace from "../telemetry/Trace.ts"
import type { Model, ModelFailure, Reply, Request } from "./Model.ts"
import { type Complete, costOf, plausible, worstCase } from "./Price.ts"
import type { Report } from "./Provider.ts"

/**
 * The output a call asks for, and the least that is still of use. Without `min` the output is never shrunk.
 *
 * **Units**: tokens.
 */
export interface OutputLimits {
  readonly max: number
  readonly min?: number | undefined
}

/** A reply together with what it cost. */
export interface Metered {
  readonly reply: Reply
  readonly model: string
  readonly used: Grant
  readonly certainty: "exact" | "assumed"
}

/** One request as an attempt that yields what `as` makes of the reply. The caller has checked {@link isPriced}. */
export const attempt = <A>(
  model: Model,
  request: Request,
  options: {
    readonly output: OutputLimits
    readonly reserve: string
    readonly attempt: number
    readonly as: (metered: Metered) => A
  },
): Attempt<A, ModelFailure> => {
  const count = model.countInput(request)
  const worst = (outputTokens: number): Grant => ({
    steps: 1,
    ticks: 1,
    inputTokens: count.tokens,
    outputTokens,
    money: model.price === undefined ? 0 : worstCase(model.price, { inputTokens: count.tokens, outputTokens }),
  })
  let report: Report = { _tag: "Lost" }
  let booked: { readonly of: Report; readonly booking: Booking } | undefined
  const booking = () =>
    (booked?.of === report ? booked : (booked = { of: report, booking: book(report, model) })).booking
  const use = (hold: Hold) =>
    Trace.span(
      `chat ${model.name}`,
      { kind: "client", attributes: () => atStart(model, hold, { ...options, count }) },
      (span) =>
        model
          .call(request, {
            maxOutputTokens: hold.amounts.outputTokens,
            headers: traceparent(span.headers),
            report: (one) => {
              report = one
            },
          })
          .pipe(
            Effect.map((reply) => {
              const metered = meteredOf(model, reply, { report, booking: booking(), hold })
              if (span.isOn) span.attributes(atEnd(metered, report))
              return options.as(metered)
            }),
            Effect.tapError((error) => Effect.sync(() => span.fail(error.code, "The model did not reply."))),
          ),
    )
  return {
    hold: (reachable) => worst(shrink(options.output, worst, reachable)),
    use,
    book: () => booking(),
  }
}

/** What the smallest useful reply to a request would need. */
export const leastFor = (model: Model, request: Request, output: OutputLimits): Grant => {
  const [inputTokens, outputTokens] = [model.countInput(request).tokens, output.min ?? output.max]
  const money = model.price === undefined ? 0 : worstCase(model.price, { inputTokens, outputTokens })
  return { steps: 1, ticks: 1, inputTokens, outputTokens, money }
}

/** False when money is capped and nobody knows the price: then no request may be sent. */
export const isPriced = (model: Model, moneyIsCapped: boolean): boolean => !moneyIsCapped || model.price !== undefined

/** The largest output that fits what can be reached, from `max` down to `min`; `max` where none fits and none is given. */
const shrink = (output: OutputLimits, worst: (out: number) => Grant, reachable: Grant): number => {
  const fits = (out: number): boolean => {
    const amounts = worst(out)
    return dimensions.every((d) => (amounts[d] ?? 0) <= (reachable[d] ?? Infinity))
  }
  if (output.min === undefined || fits(output.max)) return output.max
  let [low, high] = [Math.min(output.min, output.max), output.max]
  if (!fits(low)) return low
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (fits(middle)) low = middle
    else high = middle
  }
  return low
}

/** Statuses with which a provider refuses before it generates anything. 5xx is an assumption about the provider. */
const isUnbilled = (status: number): boolean => [400, 401, 403, 404, 413, 422, 429].includes(status) || status >= 500

const book = (report: Report, model: Model): Booking => {
  switch (report._tag) {
    case "Replied": {
      const usage = plausible(report.usage)
      return usage === undefined ? { _tag: "Assume" } : { _tag: "Settle", actual: billOf(model, usage) }
    }
    case "Refused":
      return isUnbilled(report.status) ? { _tag: "Settle", actual: { steps: 1, ticks: 1 } } : { _tag: "Assume" }
    case "NotSent":
      return { _tag: "Settle", actual: { ticks: 1 } }
    case "Lost":
      return { _tag: "Assume" }
  }
}

const billOf = (model: Model, usage: Complete): Grant => ({
  steps: 1,
  ticks: 1,
  inputTokens: usage.inputTokens,
  outputTokens: usage.outputTokens,
  money: model.price === undefined ? 0 : costOf(model.price, usage),
})

const meteredOf = (
  model: Model,
  reply: Reply,
  of: { readonly report: Report; readonly booking: Booking; readonly hold: Hold },
): Metered => ({
  reply,
  model: (of.report._tag === "Replied" ? of.report.model : undefined) ?? model.name,
  used: of.booking._tag === "Settle" ? of.booking.actual : of.hold.amounts,
  certainty: of.booking._tag === "Settle" ? "exact" : "assumed",
})

/** Only the W3C header: it is what providers and gateways read. */
const traceparent = (headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  headers["traceparent"] === undefined ? {} : { traceparent: headers["traceparent"] }

const atStart = (
  model: Model,
  hold: Hold,
  of: { readonly reserve: string; readonly attempt: number; readonly count: { readonly bound: string } },
): Readonly<Record<string, unknown>> => ({
  [Names.operation]: "chat",
  [Names.providerName]: model.provider,
  [Names.requestModel]: model.name,
  [Names.requestMaxTokens]: hold.amounts.outputTokens,
  [Names.reserve]: of.reserve,
  [Names.attempt]: of.attempt,
  [Names.holdBound]: of.count.bound,
  [Names.holdInputTokens]: hold.amounts.inputTokens,
  [Names.holdOutputTokens]: hold.amounts.outputTokens,
  [Names.holdMoney]: hold.amounts.money,
})

/** Usage stands here only when the provider told it: an assumption is not usage. */
const atEnd = (metered: Metered, report: Report): Readonly<Record<string, unknown>> => {
  const usage = report._tag === "Replied" ? plausible(report.usage) : undefined
  return {
    [Names.responseModel]: metered.model,
    [Names.responseFinishReasons]: [metered.reply.finishReason],
    [Names.certainty]: metered.certainty,
    [Names.cost]: metered.used.money,
    [Names.usageInputTokens]: usage?.inputTokens,
    [Names.usageOutputTokens]: usage?.outputTokens,
    [Names.usageCacheReadTokens]: usage?.cachedInputTokens,
    [Names.usageReasoningTokens]: usage?.reasoningTokens,
  }
}
