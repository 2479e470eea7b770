/**
 * A ledger to test: its clock is a number and its journal an array.
 */
import { assert } from "@effect/vitest"
import * as Result from "effect/Result"
import * as Accounts from "../../src/budget/Account.ts"
import type { Carving } from "../../src/budget/Carve.ts"
import type { Dimension, Grant } from "../../src/budget/Dimension.ts"
import type { Entry } from "../../src/budget/Entry.ts"
import { Ledger } from "../../src/budget/Ledger.ts"
import { describe as sentence, type Refusal, type Shortage } from "../../src/budget/Refusal.ts"
import { type PerReserve, type Plan, type Reserve, reserves } from "../../src/budget/Reserve.ts"

export const max = Number.MAX_SAFE_INTEGER

export interface Tree {
  readonly ledger: Ledger
  readonly entries: Array<Entry>
  readonly clock: { millis: number }
}

type RootOptions = Partial<Parameters<typeof Ledger.openRoot>[0]>

/** What opening a root answers. */
export const tryOpen = (grant: Grant, options: RootOptions = {}) =>
  Ledger.openRoot({ id: "root", name: "root", grant, record: () => {}, nowMillis: () => 0, ...options })

export const open = (grant: Grant, options: RootOptions = {}): Tree => {
  const entries: Array<Entry> = []
  const clock = { millis: 0 }
  const record = (entry: Entry) => void entries.push(entry)
  return { ledger: ok(tryOpen(grant, { record, nowMillis: () => clock.millis, ...options })), entries, clock }
}

export const ok = <A>(result: Result.Result<A, Refusal>): A =>
  Result.getOrThrowWith(result, (refusal) => new Error(`refused: ${sentence(refusal)}`))

export const refusal = <A>(result: Result.Result<A, Refusal>): Refusal => {
  if (Result.isSuccess(result)) throw new Error("accepted, although it should be refused")
  return result.failure
}

export const tag = <A>(result: Result.Result<A, Refusal>): string =>
  Result.isSuccess(result) ? "accepted" : result.failure._tag

export const shortages = <A>(result: Result.Result<A, Refusal>): ReadonlyArray<Shortage> => {
  const reason = refusal(result)
  assert.strictEqual(reason._tag, "Insufficient")
  return reason._tag === "Insufficient" ? reason.shortages : []
}

/** Reserves in amounts, of one dimension. */
export const kept = (dimension: Dimension, amounts: Partial<Record<Exclude<Reserve, "explore">, number>>): Plan => ({
  _tag: "Explicit",
  ...Object.fromEntries(Object.entries(amounts).map(([reserve, amount]) => [reserve, { [dimension]: amount }])),
})

/** What is free in each reserve, of one dimension. */
export const left = (tree: Tree, id: string, dimension: Dimension): PerReserve<number> => {
  const account = tree.ledger.account(id)
  const of = (reserve: Reserve) => Accounts.free(account.funds[reserve], dimension)
  return { explore: of("explore"), retry: of("retry"), verify: of("verify"), output: of("output") }
}

/** A child with exactly that, named after its id. */
export const child = (tree: Tree, parent: string, id: string, grant: Grant, options: Partial<Carving> = {}) =>
  tree.ledger.carve(parent, { id, name: id, ask: { _tag: "Exactly", grant }, ...options })

/** Every record there is, by identity. */
export const records = (ledger: Ledger): ReadonlyArray<unknown> => [
  ...ledger.accounts,
  ...ledger.accounts.flatMap((account) => ledger.pendingHolds(account.id)),
  ...ledger.accounts.flatMap((account) => ledger.childrenOf(account.id)),
]

/** Runs what must be refused and checks that no record was replaced. */
export const refusedWithoutTrace = <A>(tree: Tree, run: () => Result.Result<A, Refusal>): Refusal => {
  const [before, written] = [records(tree.ledger), tree.entries.length]
  const reason = refusal(run())
  sameRecords(before, records(tree.ledger))
  assert.deepStrictEqual(
    tree.entries.slice(written).map((entry) => entry._tag),
    ["Refused"],
  )
  return reason
}

/** Runs the same again and checks that it is answered the same, that no record was replaced and nothing written down. */
export const answeredAgain = <A>(
  tree: Tree,
  first: Result.Result<A, Refusal>,
  run: () => Result.Result<A, Refusal>,
) => {
  const [before, written] = [records(tree.ledger), tree.entries.length]
  assert.deepStrictEqual(run(), first)
  sameRecords(before, records(tree.ledger))
  assert.strictEqual(tree.entries.length, written, "nothing is written down")
}

export const sameRecords = (before: ReadonlyArray<unknown>, after: ReadonlyArray<unknown>): void => {
  assert.strictEqual(after.length, before.length)
  const replaced = after.findIndex((one, index) => one !== before[index])
  if (replaced >= 0) assert.fail(`record ${replaced} was replaced`)
}

export { reserves }
