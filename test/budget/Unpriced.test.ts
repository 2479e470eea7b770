/**
 * Calls whose price nobody knows: their money is missing in the books, and the books say of how many calls.
 */
import { assert, describe, it } from "@effect/vitest"
import type { Grant } from "../../src/budget/Dimension.ts"
import { statement } from "../../src/budget/Statement.ts"
import { child, ok, open, type Tree } from "./tree.ts"
import { checkAlike, fromJson, restored } from "./restoring.ts"

const used: Grant = { steps: 1, inputTokens: 10, outputTokens: 5 }

const hold = (tree: Tree, account: string, id = "h") =>
  ok(tree.ledger.hold({ account, id }, "explore", used, { unpriced: true }))

/** The calls of unknown price by account; the same once the tree is restored from its journal. */
const unknown = (tree: Tree): ReadonlyArray<number> => {
  checkAlike(tree, restored(fromJson(tree.entries)))
  return statement(tree.ledger).map((row) => row.unpricedCalls)
}

const rooted = () => {
  const tree = open({ steps: 10 })
  ok(child(tree, "root", "a", { steps: 5 }))
  return tree
}

describe("a hold of unknown price", () => {
  it("counts once it is settled with tokens and no money", () => {
    const tree = rooted()
    const held = hold(tree, "a")
    assert.deepStrictEqual(unknown(tree), [0, 0])
    ok(tree.ledger.settle(held, used))
    ok(tree.ledger.settle(held, used))
    assert.deepStrictEqual(unknown(tree), [0, 1])
    ok(tree.ledger.settle(hold(tree, "root", "h2"), used))
    ok(tree.ledger.close("a"))
    assert.deepStrictEqual(unknown(tree), [1, 1])
  })

  it("does not once its money is known, or nothing was billed, or it is given back", () => {
    const tree = rooted()
    ok(tree.ledger.settle(hold(tree, "a", "h1"), { ...used, money: 7 }))
    ok(tree.ledger.settle(hold(tree, "a", "h2"), { steps: 1 }))
    ok(tree.ledger.void(hold(tree, "a", "h3")))
    assert.deepStrictEqual(unknown(tree), [0, 0])
  })

  it("counts while it is assumed, until a bill says what it was", () => {
    const tree = rooted()
    for (const id of ["h1", "h2", "h3"]) ok(tree.ledger.assume(hold(tree, "a", id)))
    assert.deepStrictEqual(unknown(tree), [0, 3])
    ok(tree.ledger.adjust({ account: "a", id: "h1" }, { ...used, money: 7 }))
    ok(tree.ledger.adjust({ account: "a", id: "h2" }, { steps: 1, inputTokens: 3 }))
    assert.deepStrictEqual(unknown(tree), [0, 2])
    ok(tree.ledger.close("a"))
    ok(tree.ledger.adjust({ account: "a", id: "h3" }, { ...used, money: 1 }))
    assert.deepStrictEqual(unknown(tree), [0, 1])
  })
})
