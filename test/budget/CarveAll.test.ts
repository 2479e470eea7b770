import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import * as Accounts from "../../src/budget/Account.ts"
import type { EvenCarving } from "../../src/budget/Carve.ts"
import type { Dimension, Grant } from "../../src/budget/Dimension.ts"
import { forAgent } from "../../src/budget/Reserve.ts"
import { imbalances, statement, violations } from "../../src/budget/Statement.ts"
import { left, ok, open, shortages, tag, type Tree } from "./tree.ts"

const asking = (id: string, floor: Grant = {}, more: Partial<EvenCarving> = {}): EvenCarving => {
  return { id, name: id, floor, charge: { toolCalls: 1 }, ...more }
}

const batch = (count: number, floor: Grant = {}): ReadonlyArray<EvenCarving> =>
  Array.from({ length: count }, (_, n) => asking(`c${n + 1}`, floor))

const grantsOf = (tree: Tree, d: Dimension) =>
  tree.ledger.childrenOf("root").map((account) => Accounts.granted(account)[d])

describe("a batch of children", () => {
  it("gets equal parts, rounded down, of what is left after the charges", () => {
    const tree = open({ toolCalls: 9, money: 100 })
    for (const result of tree.ledger.carveAll("root", batch(3))) ok(result)
    assert.deepStrictEqual(grantsOf(tree, "toolCalls"), [2, 2, 2])
    assert.deepStrictEqual(grantsOf(tree, "money"), [33, 33, 33])
    assert.deepStrictEqual(left(tree, "root", "money").explore, 1)
    assert.deepStrictEqual(violations(tree.ledger), [])
  })

  it("is cut to the longest prefix whose minima fit, and the rest spends nothing", () => {
    const tree = open({ toolCalls: 9, money: 100 })
    const results = tree.ledger.carveAll("root", batch(5, { money: 30 }))
    assert.deepStrictEqual(results.map(tag), ["accepted", "accepted", "accepted", "Insufficient", "Insufficient"])
    assert.deepStrictEqual(grantsOf(tree, "money"), [33, 33, 33])
    assert.strictEqual(tree.ledger.root.funds.explore.used.toolCalls, 3)
    assert.deepStrictEqual(shortages(results[4]!), [
      { dimension: "money", reserve: "explore", asked: 30, available: 25, account: "root/c5", whose: "minimum" },
    ])
    assert.strictEqual(tree.ledger.accounts.length, 4)
  })

  it("fits exactly at its minimum and not with one more", () => {
    const cut = (money: number) => {
      return open({ money })
        .ledger.carveAll("root", batch(3, { money: 30 }))
        .filter((one) => tag(one) === "accepted").length
    }
    assert.deepStrictEqual([cut(91), cut(90), cut(89), cut(60), cut(59), cut(30), cut(29)], [3, 3, 2, 2, 1, 1, 0])
  })

  it("names whose minimum stood in the way when it was another's", () => {
    const tree = open({ money: 6 })
    const results = tree.ledger.carveAll("root", [asking("big", { money: 5 }), asking("small", { money: 1 })])
    assert.deepStrictEqual(results.map(tag), ["accepted", "Insufficient"])
    assert.deepStrictEqual(shortages(results[1]!), [
      { dimension: "money", reserve: "explore", asked: 5, available: 3, account: "root/big", whose: "minimum" },
    ])
    const none = open({ money: 6 })
    const after = none.ledger.carveAll("root", [asking("huge", { money: 7 }), asking("small", { money: 1 })])
    assert.deepStrictEqual(
      shortages(after[1]!).map((short) => [short.account, short.asked, short.available]),
      [["root/huge", 7, 6]],
    )
  })

  it("counts the charge into what a minimum needs", () => {
    const tree = open({ toolCalls: 3 })
    const results = tree.ledger.carveAll("root", batch(2, { toolCalls: 1 }))
    assert.deepStrictEqual(results.map(tag), ["accepted", "Insufficient"])
    assert.deepInclude(shortages(results[1]!)[0], { dimension: "toolCalls", asked: 2, available: 1 })
    assert.deepStrictEqual(grantsOf(tree, "toolCalls"), [2])
  })

  it("gets no more than the most that each asks for", () => {
    const tree = open({ money: 90 })
    for (const one of tree.ledger.carveAll("root", [asking("a", {}, { most: { money: 10, steps: 4 } }), asking("b")]))
      ok(one)
    assert.deepStrictEqual(grantsOf(tree, "money"), [10, 45])
    assert.isTrue(tree.ledger.account("a").caps.steps)
  })

  it("is not open to a parent that is not: each is refused for that", () => {
    const tree = open({ money: 10 })
    ok(tree.ledger.pause("root", "approval"))
    const results = tree.ledger.carveAll("root", batch(4, { money: 5 }))
    assert.deepStrictEqual(results.map(tag), ["NotOpen", "NotOpen", "NotOpen", "NotOpen"])
  })

  it("of none changes nothing", () => {
    const tree = open({ money: 10 })
    const before = tree.ledger.root
    assert.deepStrictEqual(tree.ledger.carveAll("root", []), [])
    assert.strictEqual(tree.ledger.root, before)
  })

  it("of a thousand is cut without going through every length", () => {
    const tree = open({ toolCalls: 3000 })
    const results = tree.ledger.carveAll("root", batch(1000, { toolCalls: 4 }))
    assert.strictEqual(results.filter((one) => tag(one) === "accepted").length, 600)
    assert.strictEqual(left(tree, "root", "toolCalls").explore, 0)
  })
})

describe("a limit of 9 tool calls", () => {
  const total = (tree: Tree) =>
    tree.ledger.accounts
      .filter((account) => account.state !== "Closed")
      .reduce((sum, one) => sum + Accounts.used(one).toolCalls + Accounts.held(one).toolCalls, 0)

  /** Every account takes all it can get, leaves first or root first, then all close. */
  const spendAll = (tree: Tree, order: ReadonlyArray<string>) => {
    for (const account of order)
      for (let n = 0; tag(tree.ledger.hold({ account, id: `end${n}` }, "output", { toolCalls: 1 })) === "accepted"; n++)
        if (n % 2 === 0) ok(tree.ledger.assume({ account, id: `end${n}` }))
    assert.isAtMost(total(tree), 9)
    for (const { id, state } of tree.ledger.accounts.toReversed()) {
      if (state === "Closed") continue
      for (const hold of tree.ledger.pendingHolds(id)) ok(tree.ledger.settle(hold, hold.amounts))
      ok(tree.ledger.close(id))
    }
    return Accounts.used(tree.ledger.root).toolCalls
  }

  it("never becomes 16 when 8 children are asked for at once", () => {
    for (const floor of [{}, { toolCalls: 1 }, { toolCalls: 2 }]) {
      for (const reversed of [false, true]) {
        const tree = open({ toolCalls: 9 }, { reserves: forAgent({}) })
        tree.ledger.carveAll("root", batch(8, floor))
        const ids = tree.ledger.accounts.map((account) => account.id)
        assert.isAtMost(total(tree), 9)
        assert.strictEqual(spendAll(tree, reversed ? ids.toReversed() : ids), 9)
        assert.deepStrictEqual(imbalances(statement(tree.ledger)), [])
      }
    }
  })

  it("admits as many as can start and call once: four with their charge and one call each", () => {
    const tree = open({ toolCalls: 9 })
    const results = tree.ledger.carveAll("root", batch(8, { toolCalls: 1 }))
    assert.deepStrictEqual(results.map(tag).lastIndexOf("accepted"), 3)
    assert.deepStrictEqual(grantsOf(tree, "toolCalls"), [1, 1, 1, 1])
    assert.strictEqual(left(tree, "root", "toolCalls").explore, 1)
  })

  const Small = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 12 }))
  const Step = Schema.Struct({ who: Small, floor: Small, count: Small, call: Schema.Boolean, close: Schema.Boolean })

  it.prop(
    "holds in any mix of batches, single children, calls and closes",
    [Schema.Array(Step)],
    ([steps]) => {
      const tree = open({ toolCalls: 9 })
      steps.forEach(({ who, floor, count, call, close }, n) => {
        const alive = tree.ledger.accounts.filter((account) => account.state !== "Closed")
        const { id } = alive[who % alive.length]!
        const asked = Array.from({ length: count }, (_, k) => asking(`${n}-${k}`, { toolCalls: floor % 3 }))
        tree.ledger.carveAll(id, asked)
        if (call) tree.ledger.hold({ account: id, id: `h${n}` }, "explore", { toolCalls: 1 })
        if (close && id !== "root") tree.ledger.close(id)
        assert.isAtMost(total(tree), 9)
      })
      const alive = tree.ledger.accounts.filter((account) => account.state !== "Closed").map((account) => account.id)
      assert.strictEqual(spendAll(tree, alive), 9)
    },
    { arbitrary: { runs: 100 } },
  )
})
