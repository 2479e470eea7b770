/**
 * The calls of one decision while they run: their results, recorded once, and their spans.
 */
import type * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Hold, Refusal } from "../budget/Budget.ts"
import type { Call } from "../event/Event.ts"
import * as Names from "../telemetry/Names.ts"
import * as Trace from "../telemetry/Trace.ts"
import { type CallResult, end, type Ending, type Refused } from "./CallResult.ts"
import type { Batch } from "./Setting.ts"

/** Records the one result of a call, in one go with the note that it has one. */
export const endIn = ({ setting, results }: Batch, call: Call, ended: Refused | Ending): CallResult => {
  const result = end(setting, call, ended)
  results.set(call.call, result)
  return result
}

/** Gives back the hold of a call that was admitted and not started. */
export const giveBack = (batch: Batch, one: { readonly hold: Hold }): void => {
  Result.getOrThrowWith(batch.setting.purse.ledger.void(one.hold), lawBroken)
}

const lawBroken = (refusal: Refusal): Error => new Error(`the hold of a call could not be resolved: ${refusal._tag}`)

/** What the span of a call says before it runs. */
export interface Told {
  /** Absent for one that is no tool of the agent. */
  readonly tool: string | undefined
  readonly effect?: string
  readonly version?: string
  /** Where the call is paid from; absent for one that is not. */
  readonly reserve?: string
}

/** Runs a call in its span. What becomes of it the span takes from the journal. */
export const inSpan = <A>(
  { setting }: Batch,
  call: Call,
  told: Told,
  use: (span: Trace.TraceSpan) => Effect.Effect<A>,
): Effect.Effect<A> =>
  Trace.span(
    told.tool === undefined ? "execute_tool" : `execute_tool ${told.tool}`,
    {
      attributes: () => ({
        [Names.operation]: "execute_tool",
        [Names.toolName]: told.tool,
        [Names.toolCallId]: call.call,
        [Names.toolType]: "function",
        [Names.toolEffect]: told.effect,
        [Names.toolVersion]: told.version,
        [Names.reserve]: told.reserve,
      }),
      of: { _tag: "Call", agent: setting.agent, call: call.call },
      part: { spans: 1 },
    },
    (span) => {
      span.content(Names.content.toolArguments, () => call.params.text)
      return use(span)
    },
  )
