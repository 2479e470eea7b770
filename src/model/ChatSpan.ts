/**
 * What the span of one request to a model says. Its law: usage stands on it only where the provider told it, and nowhere
 * else in a trace; an assumption is no usage. What people and models wrote stands on it only where it was asked for.
 */
import type { Hold } from "../budget/Budget.ts"
import * as Names from "../telemetry/Names.ts"
import type { TraceSpan } from "../telemetry/Trace.ts"
import type { Metered } from "./Meter.ts"
import type { Model, Request } from "./Model.ts"
import { plausible } from "./Price.ts"
import type { Report } from "./Provider.ts"
import * as Written from "./Written.ts"

type Attributes = Readonly<Record<string, unknown>>

/** Only the W3C header: it is what providers and gateways read. */
export const traceparent = ({ headers }: TraceSpan): Readonly<Record<string, string>> =>
  headers["traceparent"] === undefined ? {} : { traceparent: headers["traceparent"] }

export const atStart = (
  model: Model,
  hold: Hold,
  of: {
    readonly reserve: string
    readonly attempt: number
    readonly count: { readonly bound: string }
    readonly request: Request
    readonly onText?: unknown
  },
): Attributes => ({
  [Names.operation]: "chat",
  [Names.providerName]: model.provider,
  [Names.requestModel]: model.name,
  [Names.requestMaxTokens]: hold.amounts.outputTokens,
  [Names.requestStream]: of.onText === undefined ? undefined : true,
  [Names.promptHash]: of.request.hash,
  [Names.reserve]: of.reserve,
  [Names.attempt]: of.attempt,
  [Names.holdBound]: of.count.bound,
  [Names.holdInputTokens]: hold.amounts.inputTokens,
  [Names.holdOutputTokens]: hold.amounts.outputTokens,
  [Names.holdMoney]: hold.unpriced === true ? undefined : hold.amounts.money,
})

/** What was asked. */
export const asked = (span: TraceSpan, request: Request): void => {
  span.content(Names.content.systemInstructions, () => Written.instructions(request.messages))
  span.content(Names.content.inputMessages, () => Written.messages(request.messages))
  span.content(Names.content.toolDefinitions, () => Written.tools(request.tools))
}

/** What came back, and what it cost. */
export const replied = (span: TraceSpan, metered: Metered, report: Report): void => {
  span.attributes(atEnd(metered, report))
  span.content(Names.content.outputMessages, () => [Written.reply(metered.reply)])
}

/** No reply came; what it cost is known, or assumed. */
export const failed = (span: TraceSpan, code: string, assumed: boolean): void => {
  if (span.isOn) span.attributes({ [Names.certainty]: assumed ? "assumed" : "exact" })
  span.fail(code, "The model did not reply.")
}

const atEnd = (metered: Metered, report: Report): Attributes => {
  const replied = report._tag === "Replied" ? report : undefined
  const usage = plausible(replied?.usage)
  return {
    [Names.responseId]: replied?.id,
    [Names.responseModel]: metered.model,
    [Names.responseFinishReasons]: [metered.reply.finishReason],
    [Names.serviceTier]: metered.tier,
    [Names.certainty]: metered.certainty,
    // Money that nobody knows is not money.
    [Names.cost]: metered.unpriced ? undefined : metered.used.money,
    [Names.usageInputTokens]: usage?.inputTokens,
    [Names.usageOutputTokens]: usage?.outputTokens,
    [Names.usageCacheReadTokens]: usage?.cachedInputTokens,
    [Names.usageCacheCreationTokens]: usage?.cacheWriteInputTokens,
    [Names.usageReasoningTokens]: usage?.reasoningTokens,
  }
}
