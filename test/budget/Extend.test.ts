import { assert, describe, it } from "@effect/vitest"
import { dimensions } from "../../src/budget/Dimension.ts"
import { violations } from "../../src/budget/Statement.ts"
import { kept, left, max, ok, open, refusedWithoutTrace, type Tree } from "./tree.ts"

const at = (id = "h") => ({ account: "root", id })

describe.each(dimensions)("a hold of 4 of 10 %s", (d) => {
  const holding = (): Tree => {
    const tree = open({ [d]: 20 }, { reserves: kept(d, { output: 10 }) })
    ok(tree.ledger.hold(at(), "explore", { [d]: 4 }))
    return tree
  }

  it("is extended by exactly what is left, or one less", () => {
    for (const extra of [1, 5, 6]) {
      const tree = holding()
      assert.strictEqual(ok(tree.ledger.extendHold(at(), { [d]: extra })).amounts[d], 4 + extra)
      assert.deepStrictEqual(left(tree, "root", d), { explore: 6 - extra, retry: 0, verify: 0, output: 10 })
      assert.strictEqual(tree.ledger.root.funds.explore.held[d], 4 + extra)
      assert.strictEqual(tree.ledger.root.pendingHolds, 1)
      assert.deepStrictEqual(violations(tree.ledger), [])
    }
  })

  it("is refused one more and stays as it was", () => {
    const tree = holding()
    const [hold] = tree.ledger.pendingHolds("root")
    const reason = refusedWithoutTrace(tree, () => tree.ledger.extendHold(at(), { [d]: 7 }))
    assert.deepStrictEqual(reason, {
      _tag: "Insufficient",
      shortages: [{ dimension: d, reserve: "explore", asked: 7, available: 6, account: "root", whose: "own" }],
    })
    assert.deepStrictEqual(tree.ledger.pendingHolds("root"), [hold!])
    ok(tree.ledger.settle(at(), { [d]: 4 }))
    assert.strictEqual(left(tree, "root", d).explore, 6)
  })

  it.each(["settle", "void", "assume"] as const)("is resolved whole once it was extended: %s", (way) => {
    const tree = holding()
    ok(tree.ledger.extendHold(at(), { [d]: 3 }, "x"))
    ok(tree.ledger.extendHold(at(), { [d]: 2 }, "y"))
    if (way === "settle") assert.isTrue(ok(tree.ledger.settle(at(), { [d]: 9 })).covered)
    else ok(tree.ledger[way](at()))
    assert.strictEqual(left(tree, "root", d).explore, way === "void" ? 10 : 1)
    assert.isFalse(tree.ledger.root.overran)
    assert.strictEqual(tree.ledger.root.pendingHolds, 0)
    assert.deepStrictEqual(violations(tree.ledger), [])
  })

  it("in a senior reserve takes what is missing from explore, and no more", () => {
    const tree = open({ [d]: 20 }, { reserves: kept(d, { output: 10 }) })
    ok(tree.ledger.hold(at(), "output", { [d]: 8 }))
    const reason = refusedWithoutTrace(tree, () => tree.ledger.extendHold(at(), { [d]: 13 }))
    assert.deepInclude(reason._tag === "Insufficient" ? reason.shortages[0] : {}, { reserve: "output", available: 12 })
    ok(tree.ledger.extendHold(at(), { [d]: 12 }))
    assert.deepStrictEqual(left(tree, "root", d), { explore: 0, retry: 0, verify: 0, output: 0 })
    assert.deepStrictEqual(violations(tree.ledger), [])
  })
})

describe("extending a hold", () => {
  it("is refused once it is resolved, and of what is unknown", () => {
    const tree = open({ money: 10 })
    for (const id of ["s", "v", "a"]) ok(tree.ledger.hold(at(id), "explore", { money: 1 }))
    ok(tree.ledger.settle(at("s"), { money: 1 }))
    ok(tree.ledger.void(at("v")))
    ok(tree.ledger.assume(at("a")))
    for (const [id, state] of [
      ["s", "Settled"],
      ["v", "Voided"],
      ["a", "Assumed"],
    ] as const) {
      const reason = refusedWithoutTrace(tree, () => tree.ledger.extendHold(at(id), { money: 1 }))
      assert.deepStrictEqual(reason, { _tag: "AlreadyResolved", id, state })
    }
    const unknown = refusedWithoutTrace(tree, () =>
      tree.ledger.extendHold({ account: "nobody", id: "x" }, { money: 1 }),
    )
    assert.deepStrictEqual(unknown, { _tag: "UnknownId", id: "x" })
  })

  it.each([-1, 0.5, Number.NaN, 2 ** 53])("by %s is refused", (money) => {
    const tree = open({ money: 10 })
    ok(tree.ledger.hold(at(), "explore", { money: 1 }))
    const reason = refusedWithoutTrace(tree, () => tree.ledger.extendHold(at(), { money }))
    assert.include(reason, { _tag: "InvalidAmount", field: "extra.money", value: String(money) })
  })

  it("is work: refused where none may start, but for closing work on a frozen account", () => {
    const tree = open({ money: 20 }, { reserves: kept("money", { output: 10 }) })
    for (const reserve of ["explore", "output"] as const) ok(tree.ledger.hold(at(reserve), reserve, { money: 1 }))
    const refused = (id: string) => refusedWithoutTrace(tree, () => tree.ledger.extendHold(at(id), { money: 1 }))
    ok(tree.ledger.pause("root", "approval"))
    for (const id of ["explore", "output"]) assert.include(refused(id), { _tag: "NotOpen", state: "paused" })
    tree.ledger.freeze("root", "deadline", { closingWork: true })
    assert.include(refused("explore"), { _tag: "NotOpen", state: "frozen", cause: "deadline" })
    ok(tree.ledger.extendHold(at("output"), { money: 1 }))
    tree.ledger.freeze("root", "cancelled")
    for (const id of ["explore", "output"]) assert.include(refused(id), { _tag: "NotOpen", state: "draining" })
  })

  it("is refused at the end of its reserve's time, and not before", () => {
    const tree = open({ money: 10 }, { wallClockMillis: 100 })
    ok(tree.ledger.hold(at(), "explore", { money: 1 }))
    tree.clock.millis = 99
    ok(tree.ledger.extendHold(at(), { money: 1 }))
    tree.clock.millis = 100
    const reason = refusedWithoutTrace(tree, () => tree.ledger.extendHold(at(), { money: 1 }))
    assert.deepStrictEqual(reason, { _tag: "DeadlinePassed", reserve: "explore", leftMillis: 0, neededMillis: 1 })
  })

  it("past what can be counted is refused", () => {
    const tree = open({})
    ok(tree.ledger.hold(at(), "explore", { money: max - 1 }))
    const reason = refusedWithoutTrace(tree, () => tree.ledger.extendHold(at(), { money: 2 }))
    assert.include(reason, { _tag: "InvalidAmount", field: "extra.money", value: "2" })
    ok(tree.ledger.extendHold(at(), { money: 1 }))
    ok(tree.ledger.settle(at(), { money: max }))
  })
})
