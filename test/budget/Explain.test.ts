import { assert, describe, it } from "@effect/vitest"
import { Budget } from "../../src/index.ts"
import { child, ok, open } from "./tree.ts"

describe("an explanation", () => {
  it("says what was given, used, held and carved, and what those above have left", () => {
    const tree = open({ steps: 20 })
    ok(child(tree, "root", "a", { steps: 10 }))
    ok(child(tree, "root", "b", { steps: 4 }))
    ok(child(tree, "a", "deep", { steps: 3 }))
    ok(tree.ledger.settle(ok(tree.ledger.hold({ account: "a", id: "1" }, "explore", { steps: 2 })), { steps: 2 }))
    ok(tree.ledger.hold({ account: "a", id: "2" }, "explore", { steps: 1 }))
    assert.deepStrictEqual(Budget.explain(tree.ledger, "a", { reserve: "explore", wanted: { steps: 5 } }), [
      "root/a cannot hold 5 steps in explore: of 10 allocated 2 are used, 1 held and 3 with children, so 4 are left.",
      "Above it root has 6 steps left in explore; 1 open beside root/a may return some.",
    ])
    assert.deepStrictEqual(Budget.explain(tree.ledger, "a", { reserve: "explore", wanted: { steps: 4 } }), [])
  })

  it("says what a senior reserve may take from explore", () => {
    const tree = open({ money: 10 }, { reserves: { _tag: "Explicit", output: { money: 4 } } })
    assert.deepStrictEqual(Budget.explain(tree.ledger, "root", { reserve: "output", wanted: { money: 11 } }), [
      "root cannot hold 11 money in output: of 4 allocated 0 are used, 0 held and 0 with children, so 4 are left.",
      "It may take 6 more from its explore.",
    ])
  })

  it("says that an account is not open, or out of time", () => {
    const tree = open({ steps: 5 }, { wallClockMillis: 100 })
    tree.ledger.freeze("root", "cancelled")
    tree.clock.millis = 100
    assert.deepStrictEqual(Budget.explain(tree.ledger, "root", { reserve: "explore", wanted: { steps: 1 } }), [
      "root is draining (cancelled): nothing new may start.",
      "The time of root for explore has passed.",
    ])
  })
})
