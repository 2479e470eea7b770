import { assert, describe, it } from "@effect/vitest"
import { dimensions, type Dimension } from "../../src/budget/Dimension.ts"
import type { Shortage } from "../../src/budget/Refusal.ts"
import { type Plan, type Reserve, reserves } from "../../src/budget/Reserve.ts"
import { violations } from "../../src/budget/Statement.ts"
import { child, kept, left, max, ok, open, refusal, refusedWithoutTrace, shortages, type Tree } from "./tree.ts"

const at = (id: string, account = "root") => ({ account, id })

/** 10 in each reserve, of one dimension. */
const tens = (dimension: Dimension): Tree =>
  open({ [dimension]: 40 }, { reserves: kept(dimension, { output: 10, verify: 10, retry: 10 }) })

describe.each(dimensions)("a hold of %s", (d) => {
  it("fits when it asks for exactly what there is, or one less", () => {
    for (const asked of [9, 10]) {
      const tree = tens(d)
      ok(tree.ledger.hold(at("h"), "explore", { [d]: asked }))
      assert.strictEqual(left(tree, "root", d).explore, 10 - asked)
      assert.strictEqual(tree.ledger.root.funds.explore.held[d], asked)
    }
  })

  it("is refused when it asks for one more, and says what there was and whose", () => {
    const tree = tens(d)
    const reason = refusedWithoutTrace(tree, () => tree.ledger.hold(at("h"), "explore", { [d]: 11 }))
    assert.deepStrictEqual(reason, {
      _tag: "Insufficient",
      shortages: [{ dimension: d, reserve: "explore", asked: 11, available: 10, account: "root", whose: "own" }],
    })
    ok(tree.ledger.hold(at("i"), "explore", { [d]: 10 }))
  })

  it("fits exactly at the edges of exact numbers", () => {
    for (const grant of [2 ** 31 - 1, 2 ** 31, max]) {
      const tree = open({ [d]: grant })
      if (grant < max)
        assert.strictEqual(refusal(tree.ledger.hold(at("more"), "explore", { [d]: grant + 1 }))._tag, "Insufficient")
      ok(tree.ledger.hold(at("h"), "explore", { [d]: grant }))
      assert.strictEqual(refusal(tree.ledger.hold(at("i"), "explore", { [d]: 1 }))._tag, "Insufficient")
    }
  })

  it("is refused under a cap of zero and never where there is no cap", () => {
    assert.strictEqual(refusal(open({ [d]: 0 }).ledger.hold(at("h"), "explore", { [d]: 1 }))._tag, "Insufficient")
    const tree = open({})
    ok(tree.ledger.hold(at("h"), "explore", { [d]: max }))
    ok(tree.ledger.settle(at("h"), { [d]: max }))
    assert.strictEqual(tree.ledger.root.funds.explore.used[d], max)
  })

  it.each(["retry", "verify", "output"] as const)(
    "in %s takes what is missing from explore, and no more",
    (reserve) => {
      const tree = tens(d)
      ok(tree.ledger.hold(at("h"), reserve, { [d]: 20 }))
      assert.deepStrictEqual(left(tree, "root", d), { explore: 0, retry: 10, verify: 10, output: 10, [reserve]: 0 })
      const again = tens(d)
      assert.deepStrictEqual(shortages(again.ledger.hold(at("h"), reserve, { [d]: 21 })), [
        { dimension: d, reserve, asked: 21, available: 20, account: "root", whose: "own" },
      ])
    },
  )

  it("that borrowed leaves what it did not use in its reserve", () => {
    const tree = tens(d)
    ok(tree.ledger.hold(at("h"), "output", { [d]: 15 }))
    ok(tree.ledger.void(at("h")))
    assert.deepStrictEqual(left(tree, "root", d), { explore: 5, retry: 10, verify: 10, output: 15 })
  })
})

describe("a hold", () => {
  it("lists every short dimension and only those, with what explore could add", () => {
    const grant = Object.fromEntries(dimensions.map((d) => [d, 10]))
    const plan: Plan = { _tag: "Explicit", output: { steps: 4, money: 4, ticks: 4 } }
    const tree = open(grant, { reserves: plan })
    ok(tree.ledger.hold(at("used"), "explore", { money: 6, steps: 1 }))
    const asked = { steps: 10, ticks: 11, inputTokens: 10, outputTokens: 11, money: 5, toolCalls: 0 }
    const reason = refusedWithoutTrace(tree, () => tree.ledger.hold(at("h"), "output", asked))
    const short = (dimension: Dimension, asked: number, available: number): Shortage => {
      return { dimension, reserve: "output", asked, available, account: "root", whose: "own" }
    }
    assert.deepStrictEqual(reason, {
      _tag: "Insufficient",
      shortages: [short("steps", 10, 9), short("ticks", 11, 10), short("outputTokens", 11, 10), short("money", 5, 4)],
    })
  })

  it("fits in all dimensions or takes from none", () => {
    const tree = open({ steps: 5, money: 5 }, { reserves: kept("money", { output: 2 }) })
    refusedWithoutTrace(tree, () => tree.ledger.hold(at("h"), "explore", { steps: 5, money: 4 }))
    refusedWithoutTrace(tree, () => tree.ledger.hold(at("i"), "output", { steps: 6, money: 5 }))
    ok(tree.ledger.hold(at("j"), "output", { steps: 5, money: 5 }))
  })

  it("never borrows downward or from a reserve between", () => {
    const from = (reserve: Reserve) => tens("money").ledger.hold(at("h"), reserve, { money: 21 })
    for (const reserve of reserves) assert.strictEqual(refusal(from(reserve))._tag, "Insufficient")
    assert.strictEqual(shortages(tens("money").ledger.hold(at("h"), "explore", { money: 11 }))[0]!.available, 10)
  })

  it("keeps its id for itself, also after it is resolved", () => {
    const tree = open({ steps: 9 })
    ok(tree.ledger.hold(at("h"), "explore", { steps: 1 }))
    const again = () => tree.ledger.hold(at("h"), "explore", { steps: 2 })
    assert.deepStrictEqual(refusedWithoutTrace(tree, again), { _tag: "IdConflict", id: "h" })
    ok(tree.ledger.void(at("h")))
    // A refused id is taken as well: by what was refused.
    assert.deepStrictEqual(refusal(again()), { _tag: "IdConflict", id: "h" })
    assert.strictEqual(ok(tree.ledger.hold(at("h"), "explore", { steps: 1 })).state, "Voided")
    assert.strictEqual(left(tree, "root", "steps").explore, 9)
  })

  it("may have the id of a hold of another account", () => {
    const tree = open({ steps: 9 })
    ok(child(tree, "root", "a", { steps: 3 }))
    ok(tree.ledger.hold(at("h"), "explore", { steps: 1 }))
    ok(tree.ledger.hold(at("h", "a"), "explore", { steps: 3 }))
    assert.deepStrictEqual(
      tree.ledger.pendingHolds("a").map((hold) => hold.amounts.steps),
      [3],
    )
  })

  it("is won by one of many that race for the last unit", () => {
    const tree = open({ toolCalls: 1 })
    const results = Array.from({ length: 64 }, (_, n) => tree.ledger.hold(at(`h${n}`), "explore", { toolCalls: 1 }))
    assert.strictEqual(results.filter((result) => result._tag === "Success").length, 1)
  })
})

describe("a hold is resolved", () => {
  const holding = () => {
    const tree = open({ steps: 10, money: 10 })
    ok(tree.ledger.hold(at("h"), "explore", { steps: 4, money: 4 }))
    return tree
  }

  it("by a bill below it: the rest is free again", () => {
    const tree = holding()
    const settlement = ok(tree.ledger.settle(at("h"), { steps: 1 }))
    assert.isTrue(settlement.covered)
    assert.deepStrictEqual(left(tree, "root", "steps").explore, 9)
    assert.deepStrictEqual(left(tree, "root", "money").explore, 10)
    assert.isFalse(tree.ledger.root.overran)
  })

  it("by a bill of exactly that, without an over-run", () => {
    const tree = holding()
    assert.isTrue(ok(tree.ledger.settle(at("h"), { steps: 4, money: 4 })).covered)
    assert.strictEqual(left(tree, "root", "steps").explore, 6)
    assert.isFalse(tree.ledger.root.overran)
  })

  it("by a void: all of it is free again", () => {
    const tree = holding()
    assert.strictEqual(ok(tree.ledger.void(at("h"))).state, "Voided")
    assert.strictEqual(left(tree, "root", "money").explore, 10)
  })

  it("by an assumption: all of it is used", () => {
    const tree = holding()
    assert.strictEqual(ok(tree.ledger.assume(at("h"))).state, "Assumed")
    assert.strictEqual(left(tree, "root", "money").explore, 6)
    assert.strictEqual(tree.ledger.root.funds.explore.used.money, 4)
  })

  const ways = {
    settled: (tree: Tree) => tree.ledger.settle(at("h"), { steps: 1 }),
    voided: (tree: Tree) => tree.ledger.void(at("h")),
    assumed: (tree: Tree) => tree.ledger.assume(at("h")),
  }
  const dearer = (tree: Tree) => tree.ledger.settle(at("h"), { steps: 2 })

  it("once: anything else that comes second is refused with how it was resolved", () => {
    for (const [first, resolve] of Object.entries(ways)) {
      for (const [second, again] of Object.entries({ ...ways, dearer })) {
        if (second === first) continue
        const tree = holding()
        ok<unknown>(resolve(tree))
        const reason = refusedWithoutTrace<unknown>(tree, () => again(tree))
        assert.include(reason, { _tag: "AlreadyResolved", id: "h" })
        assert.strictEqual(reason._tag === "AlreadyResolved" ? reason.state.toLowerCase() : "", first)
      }
    }
  })

  it("only if there is one: an unknown id is refused, on any account", () => {
    for (const account of ["root", "nobody"]) {
      const tree = holding()
      const ref = { account, id: "other" }
      assert.strictEqual(refusedWithoutTrace(tree, () => tree.ledger.settle(ref, { steps: 1 }))._tag, "UnknownId")
      assert.strictEqual(refusedWithoutTrace(tree, () => tree.ledger.void(ref))._tag, "UnknownId")
      assert.strictEqual(refusedWithoutTrace(tree, () => tree.ledger.assume(ref))._tag, "UnknownId")
    }
  })

  it("in any order with the same result", () => {
    const settled = (order: ReadonlyArray<number>) => {
      const tree = open({ money: 100 })
      for (const n of [1, 2, 3]) ok(tree.ledger.hold(at(`h${n}`), "explore", { money: n * 10 }))
      for (const n of order) ok(tree.ledger.settle(at(`h${n}`), { money: n * 7 }))
      return tree.ledger.root
    }
    const orders = [
      [1, 2, 3],
      [3, 2, 1],
      [2, 3, 1],
      [3, 1, 2],
    ]
    for (const order of orders) assert.deepStrictEqual(settled(order), settled([1, 2, 3]))
  })

  it("and leaves the books whole each time", () => {
    for (const resolve of Object.values(ways)) {
      const tree = holding()
      resolve(tree)
      assert.deepStrictEqual(violations(tree.ledger), [])
    }
  })
})
