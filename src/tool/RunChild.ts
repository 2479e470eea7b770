/**
 * Running one call that is a child agent.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Content from "../event/Content.ts"
import { endIn, inSpan } from "./Batch.ts"
import { type Ending, failed } from "./CallResult.ts"
import type { Admitted, Batch, ChildResult, ChildSuspended } from "./Setting.ts"

type OfChild = Extract<Admitted, { _tag: "Child" }>

/** Runs a child to its end, or until it waits for a person. */
export const runChild = (batch: Batch, one: OfChild): Effect.Effect<void> =>
  Effect.uninterruptibleMask((restore) =>
    inSpan(batch, one.call, { tool: one.call.tool, reserve: "explore" }, (span) =>
      Effect.gen(function* () {
        const { agent, step, record } = batch.setting
        const { account: child } = one.child
        if (!one.started) {
          const of = { call: one.call.call, tool: one.call.tool }
          record({ _tag: "CallStarted", agent, step, ...of, attempt: 1, version: "1", effect: "read", child })
        }
        const exit = yield* Effect.exit(one.child.run(restore))
        if (Exit.isSuccess(exit) && exit.value._tag === "Suspended") {
          batch.waiting.set(one.call.call, exit.value.waitsFor)
          return
        }
        const result = endIn(batch, one.call, childEnding(exit, child))
        if (result.failure?.class === "fatal") span.fail("bursar.tool_error", "The child agent broke down.")
      }),
    ),
  )

/** A child that breaks down has closed its books; for its parent it is a tool that failed fatally. */
const childEnding = (exit: Exit.Exit<ChildResult | ChildSuspended>, child: string): Ending => {
  if (Exit.isFailure(exit) || exit.value._tag === "Suspended") {
    return { ...failed({ code: "EFATAL", class: "fatal", message: "the agent broke down" }), child }
  }
  const { error, data, untrusted } = exit.value
  if (error !== undefined) return { _tag: "Failed", failure: error, child }
  const of = { stateChanged: false, untrusted, resources: [], child }
  return { _tag: "Ok", result: Content.fromJson(data ?? null), of }
}
