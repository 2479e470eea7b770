/**
 * Why a hold is refused, or would be, in sentences with numbers: of the account itself, and up the path.
 */
import * as Accounts from "./Account.ts"
import type { Account } from "./Account.ts"
import { amounts, type Dimension, dimensions, type Grant } from "./Dimension.ts"
import type { Ledger } from "./Ledger.ts"
import type { Reserve } from "./Reserve.ts"

/**
 * Says why `wanted` cannot be held in a reserve of an account: what was given, used, held and carved there, and what each
 * account above could still give. Empty when it can be held.
 *
 * **Example** (Ten of six steps)
 *
 * ```ts
 * import { Budget } from "bursar"
 * import * as Effect from "effect/Effect"
 *
 * const program = Effect.gen(function* () {
 *   const { ledger, account } = yield* Budget.CurrentAccount
 *   return Budget.explain(ledger, account, { reserve: "explore", wanted: { steps: 10 } })
 * }).pipe(Budget.open({ steps: 6 }))
 * await Effect.runPromise(program)
 * // => ["root cannot hold 10 steps in explore: of 6 allocated 0 are used, 0 held and 0 with children, so 6 are left."]
 * ```
 *
 * @category refusals
 * @since 0.1.0
 */
export const explain = (
  ledger: Ledger,
  account: string,
  hold: { readonly reserve: Reserve; readonly wanted: Grant },
): ReadonlyArray<string> => {
  const self = ledger.account(account)
  const state = stateOf(self)
  const time = timeOf(ledger, self, hold.reserve)
  const wanted = amounts(hold.wanted)
  const short = Accounts.shortagesOf(self, hold.reserve, wanted).map((shortage) => shortage.dimension as Dimension)
  return [
    ...state,
    ...time,
    ...dimensions.flatMap((d) =>
      short.includes(d)
        ? [own(self, hold.reserve, d, wanted[d]), ...borrowed(self, hold.reserve, d), ...above(ledger, self, d)]
        : [],
    ),
  ]
}

const stateOf = (self: Account): ReadonlyArray<string> =>
  self.state === "Open"
    ? []
    : [
        `${self.path} is ${self.state.toLowerCase()}${self.cause === "" ? "" : ` (${self.cause})`}: nothing new may start.`,
      ]

const timeOf = (ledger: Ledger, self: Account, reserve: Reserve): ReadonlyArray<string> =>
  ledger.leftMillis(self.id, reserve) === 0 ? [`The time of ${self.path} for ${reserve} has passed.`] : []

const own = (self: Account, reserve: Reserve, d: Dimension, asked: number): string => {
  const { allocated, used, held, carved } = self.funds[reserve]
  const left = Accounts.free(self.funds[reserve], d)
  return (
    `${self.path} cannot hold ${asked} ${d} in ${reserve}: of ${allocated[d]} allocated ${used[d]} are used, ` +
    `${held[d]} held and ${carved[d]} with children, so ${left} are left.`
  )
}

const borrowed = (self: Account, reserve: Reserve, d: Dimension): ReadonlyArray<string> =>
  reserve === "explore" ? [] : [`It may take ${Accounts.free(self.funds.explore, d)} more from its explore.`]

/** What each account above has left where it feeds the one below. */
const above = (ledger: Ledger, self: Account, d: Dimension): ReadonlyArray<string> => {
  if (self.parent === undefined) return []
  const parent = ledger.account(self.parent.id)
  const left = Accounts.available(parent, self.parent.reserve, d)
  const siblings = ledger.childrenOf(parent.id).length - 1
  const open = siblings === 0 ? "" : `; ${siblings} open beside ${self.path} may return some`
  const has = left === undefined ? `no cap on ${d}` : `${left} ${d} left in ${self.parent.reserve}`
  return [`Above it ${parent.path} has ${has}${open}.`, ...above(ledger, parent, d)]
}
