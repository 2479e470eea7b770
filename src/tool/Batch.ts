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

export const inSpan = <A>(
  call: Call,
  effect: string | undefined,
  use: (span: Trace.TraceSpan) => Effect.Effect<A>,
): Effect.Effect<A> =>
  Trace.span(
    `execute_tool ${call.tool}`,
    {
      attributes: () => ({
        [Names.operation]: "execute_tool",
        [Names.toolName]: call.tool,
        [Names.toolCallId]: call.call,
        [Names.toolType]: "function",
        ...(effect === undefined ? {} : { [Names.toolEffect]: effect }),
      }),
    },
    use,
  )
