/**
 * A call of a model as an attempt of the budget: bounded before it is sent, booked after it.
 *
 * | what happened | booking |
 * | --- | --- |
 * | a reply with plausible usage | what was used |
 * | usage missing, all zero beside a reply, or contradicting itself | the hold |
 * | timeout, cut connection, interruption | the hold |
 * | 400, 401, 403, 404, 413, 422, 429 instead of a reply | one step and one tick |
 * | 5xx | one step and one tick, or the hold where the model says that it may be billed |
 * | any other status | the hold |
 * | never sent | one tick |
 *
 * A reply is priced by the model and the service tier that served it. Where nobody knows a price the call is refused under
 * a cap on money, or booked at the ceiling of the model; without a cap its money is unknown, and counted as that.
 */
import * as Effect from "effect/Effect"
import { type Attempt, type Booking, dimensions, type Grant, type Hold } from "../budget/Budget.ts"
import * as Trace from "../telemetry/Trace.ts"
import * as ChatSpan from "./ChatSpan.ts"
import type { Count, Model, ModelFailure, Reply, Request } from "./Model.ts"
import { isNatural } from "./Plausible.ts"
import { type Complete, costOf, plausible, type Price, worstCase } from "./Price.ts"
import type { Replied, Report, Usage } from "./Provider.ts"

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
  readonly tier: string | undefined
  readonly used: Grant
  readonly certainty: "exact" | "assumed"
  readonly unpriced: boolean
}

/** What a provider told about a call that is booked at its hold all the same; usage as it came. Missing usage tells nothing. */
export interface Told {
  readonly model: string
  readonly servedBy?: string | undefined
  readonly tier?: string | undefined
  readonly response?: string | undefined
  readonly usage?: Usage | undefined
}

/** An attempt at a model. */
export interface Asking<A> extends Attempt<A, ModelFailure> {
  /** How the last request ended. */
  readonly report: () => Report
  readonly told: () => Told | undefined
}

/** What the input comes to by the counter of the provider, where it has one and answers; else the estimate. */
export const count = (model: Model, request: Request, withinMillis = Infinity): Effect.Effect<Count> => {
  const estimated = Effect.sync(() => model.countInput(request))
  if (model.count === undefined) return estimated
  const counted = Effect.suspend(() => model.count!(request)).pipe(
    Effect.catchDefect(() => estimated),
    Effect.flatMap((one) => (isNatural(one.tokens) ? Effect.succeed(one) : estimated)),
  )
  return Number.isFinite(withinMillis)
    ? Effect.timeoutOrElse(counted, { duration: Math.max(0, withinMillis), orElse: () => estimated })
    : counted
}

/** One request as an attempt that yields what `as` makes of the reply. The caller has checked {@link isPriced}. */
export const attempt = <A>(
  model: Model,
  request: Request,
  options: {
    readonly output: OutputLimits
    readonly reserve: string
    readonly attempt: number
    /** What the input was counted at; the estimate unless given. */
    readonly count?: Count | undefined
    readonly onText?: ((delta: string) => void) | undefined
    readonly as: (metered: Metered) => A
  },
): Asking<A> => {
  const count = options.count ?? model.countInput(request)
  const price = priceBefore(model)
  const worst = (outputTokens: number): Grant => worstOf(model, price, { inputTokens: count.tokens, outputTokens })
  let report: Report = lost
  let booked: Booked | undefined
  const booking = () => (booked?.of === report ? booked : (booked = book(report, model)))
  const use = (hold: Hold) =>
    Trace.span(
      `chat ${model.name}`,
      {
        kind: "client",
        of: { _tag: "Hold", hold },
        attributes: () => ChatSpan.atStart(model, hold, { ...options, count, request }),
      },
      (span) => {
        if (span.isOn) ChatSpan.asked(span, request)
        return model
          .call(request, {
            maxOutputTokens: hold.amounts.outputTokens,
            headers: ChatSpan.traceparent(span),
            onText: options.onText,
            report: (one) => {
              report = report === lost ? one : together(report, one, model)
            },
          })
          .pipe(
            Effect.map((reply) => {
              const metered = meteredOf(model, reply, { report, booked: booking(), hold })
              if (span.isOn) ChatSpan.replied(span, metered, report)
              return options.as(metered)
            }),
            Effect.tapError(({ code }) =>
              Effect.sync(() => ChatSpan.failed(span, code, booking().booking._tag === "Assume")),
            ),
          )
      },
    )
  return {
    hold: (reachable) => worst(shrink(options.output, worst, reachable)),
    unpriced: price === undefined,
    use,
    book: () => booking().booking,
    report: () => report,
    told: () => (booking().booking._tag === "Assume" ? told(model, report) : undefined),
  }
}

const lost: Report = { _tag: "Lost" }

/** What two requests in one call come to: the one that can have been billed, or nobody knows what. */
const together = (before: Report, one: Report, model: Model): Report => {
  if (isFree(before, model)) return one
  return isFree(one, model) ? before : { _tag: "Lost" }
}

const isFree = (report: Report, model: Model): boolean =>
  report._tag === "NotSent" || (report._tag === "Refused" && isUnbilled(report.status, model))

/** What the smallest useful reply to a request would need. `bound` is what the input comes to; the estimate unless given. */
export const leastFor = (model: Model, request: Request, output: OutputLimits, bound?: number): Grant => {
  const inputTokens = bound ?? model.countInput(request).tokens
  return worstOf(model, priceBefore(model), { inputTokens, outputTokens: output.min ?? output.max })
}

/** False when money is capped and nobody knows the price, nor what to assume: then no request may be sent. */
export const isPriced = (model: Model, moneyIsCapped: boolean): boolean =>
  !moneyIsCapped || priceBefore(model) !== undefined

/** Whether the same request might fare better with another model: not where it is the request that is wrong. */
export const mayFareBetter = (report: Report): boolean =>
  report._tag !== "Refused" || !(report.status === 400 || report.status === 413 || report.status === 422)

/** What a call came to by a report that came later; `undefined` where that tells no more than the hold does. */
export const laterBill = (model: Model, report: Report | undefined): Grant | undefined => {
  const usage = report?._tag === "Replied" ? plausible(report.usage) : undefined
  return usage === undefined ? undefined : billOf(model, usage, report as Replied).actual
}

// --- before a call

/** What a model costs, where that is known. */
export const priceOf = (model: Model): Price | undefined => model.price ?? model.priceOf?.(model.name, model.tier)

/** What a call is held at: the price that is known, else the ceiling. */
const priceBefore = (model: Model): Price | undefined => priceOf(model) ?? model.ceiling

const worstOf = (
  model: Model,
  price: Price | undefined,
  tokens: { readonly inputTokens: number; readonly outputTokens: number },
): Grant => {
  const { inputTokens, outputTokens } = tokens
  const money = price === undefined ? 0 : worstCase(price, { inputTokens, outputTokens, serviceTier: model.tier })
  return { steps: 1, ticks: 1, inputTokens, outputTokens, money }
}

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

// --- after it

interface Booked {
  readonly of: Report
  readonly booking: Booking
  readonly priced: Bill["priced"]
}

interface Bill {
  readonly actual: Grant
  readonly priced: "known" | "ceiling" | "unknown"
}

/** Statuses with which a provider refuses before it generates anything. */
const isUnbilled = (status: number, { serverErrors }: Model): boolean =>
  [400, 401, 403, 404, 413, 422, 429].includes(status) || (status >= 500 && serverErrors !== "unknown")

const book = (report: Report, model: Model): Booked => ({ of: report, priced: "known", ...bookingOf(report, model) })

const assume = { booking: { _tag: "Assume" } } as const

const exactly = (actual: Grant) => ({ booking: { _tag: "Settle", actual } }) as const

const bookingOf = (report: Report, model: Model): Pick<Booked, "booking"> & Partial<Booked> => {
  switch (report._tag) {
    case "Replied": {
      const usage = plausible(report.usage)
      if (usage === undefined) return assume
      const { actual, priced } = billOf(model, usage, report)
      return { booking: { _tag: "Settle", actual }, priced }
    }
    case "Refused":
      return isUnbilled(report.status, model) ? exactly({ steps: 1, ticks: 1 }) : assume
    case "NotSent":
      return exactly({ ticks: 1 })
    case "Lost":
      return assume
  }
}

const billOf = (model: Model, usage: Complete, replied: Replied): Bill => {
  const known = priceAfter(model, replied)
  const price = known ?? model.ceiling
  const { inputTokens, outputTokens } = usage
  // A tier that was asked for and not denied is the one it was served in.
  const money = price === undefined ? 0 : costOf(price, usage, { serviceTier: replied.tier ?? model.tier })
  const priced = known !== undefined ? "known" : price === undefined ? "unknown" : "ceiling"
  return { actual: { steps: 1, ticks: 1, inputTokens, outputTokens, money }, priced }
}

/** What the model that a reply names costs, in the tier that it names; where it names none, or one nobody knows, as before. */
const priceAfter = (model: Model, { model: served, tier }: Replied): Price | undefined => {
  const isAsAsked = (served === undefined || served === model.name) && (tier === undefined || tier === model.tier)
  const named = isAsAsked && model.price !== undefined ? undefined : model.priceOf?.(served ?? model.name, tier)
  return named ?? priceOf(model)
}

const told = (model: Model, report: Report): Told | undefined => {
  switch (report._tag) {
    case "Replied": {
      const { id, model: servedBy, tier, usage } = report
      const saysNothing = id === undefined && Object.values(usage ?? {}).every((one) => one === undefined)
      if (saysNothing) return undefined
      return { model: model.name, servedBy, tier, response: id, usage }
    }
    case "Lost":
      return report.id === undefined ? undefined : { model: model.name, response: report.id }
    default:
      return undefined
  }
}

const meteredOf = (
  model: Model,
  reply: Reply,
  of: { readonly report: Report; readonly booked: Booked; readonly hold: Hold },
): Metered => {
  const { booking, priced } = of.booked
  const replied = of.report._tag === "Replied" ? of.report : undefined
  return {
    reply,
    model: replied?.model ?? model.name,
    tier: replied?.tier,
    used: booking._tag === "Settle" ? booking.actual : of.hold.amounts,
    certainty: booking._tag === "Settle" && priced !== "ceiling" ? "exact" : "assumed",
    unpriced: priced === "unknown" || (booking._tag === "Assume" && of.hold.unpriced === true),
  }
}
