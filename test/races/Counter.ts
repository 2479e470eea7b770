/**
 * The control: one counter for all, as it is often written. It looks whether the worst case would fit, makes the call,
 * and adds its bill once it is over, if it gets that far.
 */
import * as Effect from "effect/Effect"
import { type Dimension, dimensions, type Grant } from "../../src/budget/Budget.ts"
import type { Plan } from "./Plan.ts"
import type { Till } from "./Play.ts"
import { larger, NoRoom, none, type Overshoot, overshoot, type Provider } from "./Provider.ts"

/** How a run with the counter went. */
export interface Counted {
  most: Overshoot
  /** Calls that began and were never added. */
  holdsLeft: number
}

export const counter = (plan: Plan, provider: Provider): { till: Till<void, NoRoom>; counted: Counted } => {
  const spent: { [D in Dimension]?: number } = {}
  const counted: Counted = { most: none, holdsLeft: 0 }
  let frozen = false
  const fits = (amounts: Grant): boolean =>
    !frozen && dimensions.every((d) => plan.cap[d] === undefined || (spent[d] ?? 0) + (amounts[d] ?? 0) <= plan.cap[d])
  const till: Till<void, NoRoom> = {
    root: undefined,
    spend: (_, __, call) =>
      Effect.suspend((): Effect.Effect<unknown, NoRoom> => {
        if (!fits(call.worst)) return Effect.fail(new NoRoom())
        counted.holdsLeft++
        return Effect.map(Effect.exit(provider.answer(call, { billed: false })), () => {
          counted.holdsLeft--
          for (const d of dimensions) if (call.bill[d] !== undefined) spent[d] = (spent[d] ?? 0) + call.bill[d]
          counted.most = larger(counted.most, overshoot(plan.cap, spent))
        })
      }),
    within: (_, __, body) => body(undefined),
    wait: (_, { least }) => Effect.suspend(() => (fits(least) ? Effect.void : Effect.fail(new NoRoom()))),
    close: () => Effect.void,
    freeze: Effect.sync(() => {
      frozen = true
    }),
  }
  return { till, counted }
}
