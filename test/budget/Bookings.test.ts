/** What becomes of a call in each case that can arise: the rows that concern the ledger. */
import { assert, describe, it } from "@effect/vitest"
import type * as Result from "effect/Result"
import * as Accounts from "../../src/budget/Account.ts"
import type { Grant } from "../../src/budget/Dimension.ts"
import { nonZero } from "../../src/budget/Dimension.ts"
import type { Refusal } from "../../src/budget/Refusal.ts"
import { violations } from "../../src/budget/Statement.ts"
import { ok, open, refusedWithoutTrace, type Tree } from "./tree.ts"

const ref = { account: "root", id: "call" }
const bound = { steps: 1, ticks: 1, inputTokens: 1000, outputTokens: 500, money: 90 }
const reply = { steps: 1, ticks: 1, inputTokens: 800, outputTokens: 120, money: 41 }
const dearer = { steps: 1, ticks: 1, inputTokens: 800, outputTokens: 120, money: 140 }
const caps = { steps: 5, ticks: 5, inputTokens: 9000, outputTokens: 900, money: 150 }

const calling = (grant: Grant = caps): Tree => {
  const tree = open(grant)
  ok(tree.ledger.hold(ref, "explore", bound))
  return tree
}

const used = (tree: Tree): Grant => nonZero(Accounts.used(tree.ledger.root))

type Book = (tree: Tree) => ReadonlyArray<Result.Result<unknown, Refusal>>
const settle =
  (actual: Grant): Book =>
  ({ ledger }) => [ledger.settle(ref, actual)]
const assume: Book = ({ ledger }) => [ledger.assume(ref)]
const assumeThenAdjust =
  (actual: Grant): Book =>
  ({ ledger }) => [ledger.assume(ref), ledger.adjust(ref, actual)]

describe("a call", () => {
  it.each<readonly [situation: string, book: Book, booked: Grant]>([
    ["answered with plausible usage is booked as it was", settle(reply), reply],
    ["whose usage is missing, or that was cut off, is booked whole", assume, bound],
    ["whose bill becomes known later is corrected downward", assumeThenAdjust(reply), reply],
    ["whose bill becomes known later is corrected upward", assumeThenAdjust(dearer), dearer],
    ["whose bill turns out to be what was assumed stays so", assumeThenAdjust(bound), bound],
    [
      "that turns out not to have been billed keeps its step and tick",
      assumeThenAdjust({ steps: 1, ticks: 1 }),
      { steps: 1, ticks: 1 },
    ],
    ["never sent costs one tick", settle({ ticks: 1 }), { ticks: 1 }],
    ["for which not even a tick was spent costs nothing", ({ ledger }) => [ledger.void(ref)], {}],
    [
      "refused before generation, or failed at the provider, costs its step and tick",
      settle({ steps: 1, ticks: 1 }),
      { steps: 1, ticks: 1 },
    ],
    ["answered by a dearer model than it was priced by is booked in full", settle(dearer), dearer],
  ])("%s", (_, book, booked) => {
    const tree = calling()
    for (const result of book(tree)) ok(result)
    assert.deepStrictEqual(used(tree), booked)
    assert.deepStrictEqual(tree.ledger.pendingHolds("root"), [])
    assert.strictEqual(tree.ledger.root.overran, booked === dearer)
    assert.deepStrictEqual(violations(tree.ledger), [])
  })

  it.each<readonly [situation: string, usage: Grant]>([
    ["is negative", { ...reply, inputTokens: -1 }],
    ["is no number", { ...reply, outputTokens: Number.NaN }],
    ["is a fraction", { ...reply, money: 0.5 }],
    ["is past 2^53 - 1", { ...reply, inputTokens: 2 ** 53 }],
  ])("whose usage %s is refused as a bill, and booked whole", (_, usage) => {
    const tree = calling()
    assert.strictEqual(refusedWithoutTrace(tree, () => tree.ledger.settle(ref, usage))._tag, "InvalidAmount")
    ok(tree.ledger.assume(ref))
    assert.deepStrictEqual(used(tree), bound)
  })

  it("without a known price runs where money has no cap, and is counted", () => {
    const { money: _, ...uncapped } = caps
    const tree = open(uncapped)
    ok(tree.ledger.hold(ref, "explore", { steps: 1, ticks: 1 }))
    assert.isTrue(ok(tree.ledger.settle(ref, { steps: 1, ticks: 1, money: 12 })).covered)
    assert.deepStrictEqual(used(tree), { steps: 1, ticks: 1, money: 12 })
  })

  it("leaves free what its hold had beyond its bill", () => {
    const tree = calling()
    ok(tree.ledger.settle(ref, reply))
    assert.deepStrictEqual(tree.ledger.reachable("root", "explore"), {
      steps: 4,
      ticks: 4,
      inputTokens: 8200,
      outputTokens: 780,
      money: 109,
    })
  })
})
