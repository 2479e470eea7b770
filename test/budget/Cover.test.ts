import { assert, describe, it } from "@effect/vitest"
import * as Accounts from "../../src/budget/Account.ts"
import { imbalances, statement, violations } from "../../src/budget/Statement.ts"
import { child, kept, left, ok, open, refusedWithoutTrace, shortages, type Tree } from "./tree.ts"

const at = (account: string, id = "h") => ({ account, id })

/**
 * Three levels, of money (explore/retry/verify/output): root 10/1/2/3 free, a 10/1/2/3 free, b 6/1/2/3 of which 2 are
 * held.
 */
const family = (): Tree => {
  const tree = open({ money: 44, steps: 9 }, { reserves: kept("money", { retry: 1, verify: 2, output: 3 }) })
  const some = { reserves: kept("money", { retry: 1, verify: 2, output: 3 }) }
  ok(child(tree, "root", "a", { money: 28, steps: 6 }, some))
  ok(child(tree, "a", "b", { money: 12, steps: 3 }, some))
  ok(tree.ledger.hold(at("b"), "explore", { money: 2 }))
  return tree
}

const free = (tree: Tree) => ["b", "a", "root"].map((id) => Object.values(left(tree, id, "money")).join("/"))

/** Settles the hold of `b` at its 2 and `over` more. */
const overrunBy = (over: number) => {
  const tree = family()
  const settlement = ok(tree.ledger.settle(at("b"), { money: 2 + over }))
  assert.deepStrictEqual(violations(tree.ledger), [])
  return { tree, settlement }
}

describe("a bill above its hold is covered", () => {
  it.each<readonly [over: number, free: ReadonlyArray<string>, debt: number, why: string]>([
    // over, then what is free in b, a, root (explore/retry/verify/output), and the debt
    [0, ["4/1/2/3", "10/1/2/3", "10/1/2/3"], 0, "its hold"],
    [4, ["0/1/2/3", "10/1/2/3", "10/1/2/3"], 0, "the reserve of the hold"],
    [5, ["0/0/2/3", "10/1/2/3", "10/1/2/3"], 0, "the own retry next"],
    [6, ["0/0/1/3", "10/1/2/3", "10/1/2/3"], 0, "the own verify then"],
    [10, ["0/0/0/0", "10/1/2/3", "10/1/2/3"], 0, "the own output last"],
    [11, ["0/0/0/0", "9/1/2/3", "10/1/2/3"], 0, "the explore of the parent"],
    [21, ["0/0/0/0", "0/1/2/3", "9/1/2/3"], 0, "the explore of the root before any senior reserve above"],
    [31, ["0/0/0/0", "0/0/2/3", "0/1/2/3"], 0, "the parent's senior reserves, junior first"],
    [36, ["0/0/0/0", "0/0/0/0", "0/1/2/3"], 0, "all of the parent before the root's senior reserves"],
    [37, ["0/0/0/0", "0/0/0/0", "0/0/2/3"], 0, "the root's senior reserves"],
    [42, ["0/0/0/0", "0/0/0/0", "0/0/0/0"], 0, "the last unit of the tree"],
    [43, ["0/0/0/0", "0/0/0/0", "0/0/0/0"], 1, "nothing: one is debt"],
    [100, ["0/0/0/0", "0/0/0/0", "0/0/0/0"], 58, "nothing: the rest is debt"],
  ])("when it is %i over: %j free, %i owed (%s)", (over, expected, debt) => {
    const { tree, settlement } = overrunBy(over)
    assert.deepStrictEqual(free(tree), expected)
    assert.strictEqual(tree.ledger.account("b").debt.money, debt)
    assert.strictEqual(settlement.excess.money, over)
    assert.strictEqual(tree.ledger.account("b").overran, over > 0)
    const booked = Accounts.used(tree.ledger.account("b")).money + debt
    assert.strictEqual(booked, 2 + over, "the bill is booked in full")
  })

  it("and says whether the hold's own reserve paid it all", () => {
    assert.deepStrictEqual(overrunBy(4).settlement.short, [])
    assert.isTrue(overrunBy(4).settlement.covered)
    for (const over of [5, 11, 43]) {
      assert.deepStrictEqual(overrunBy(over).settlement.short, ["money"])
      assert.isFalse(overrunBy(over).settlement.covered)
    }
  })

  it("and each source is written down", () => {
    const overran = overrunBy(12).tree.entries.find((entry) => entry._tag === "Overran")
    const source = (account: string, reserve: string, amount: number) => {
      return { account, reserve, dimension: "money", amount }
    }
    assert.deepStrictEqual(overran?._tag === "Overran" ? overran.covered : [], [
      source("root/a/b", "explore", 4),
      source("root/a/b", "retry", 1),
      source("root/a/b", "verify", 2),
      source("root/a/b", "output", 3),
      source("root/a", "explore", 2),
    ] as never)
  })

  it("from its own reserve first, whichever that is, then junior ones first", () => {
    const tree = family()
    ok(tree.ledger.hold(at("b", "v"), "verify", { money: 2 }))
    ok(tree.ledger.settle(at("b", "v"), { money: 7 }))
    // 5 over: verify has none left, so 4 of explore, then 1 of retry
    assert.strictEqual(free(tree)[0], "0/0/0/3")
  })

  it("through a link that is funded from a senior reserve, on whose books it ends up", () => {
    const tree = open({ money: 20 }, { reserves: kept("money", { verify: 5 }) })
    ok(child(tree, "root", "judge", { money: 5 }, { reserve: "verify" }))
    ok(tree.ledger.hold(at("judge"), "explore", { money: 5 }))
    ok(tree.ledger.settle(at("judge"), { money: 8 }))
    assert.deepStrictEqual(left(tree, "root", "money"), { explore: 12, retry: 0, verify: 0, output: 0 })
    assert.strictEqual(tree.ledger.root.funds.verify.carved.money, 8)
    assert.deepStrictEqual(violations(tree.ledger), [])
    ok(tree.ledger.close("judge"))
    assert.strictEqual(tree.ledger.root.funds.verify.used.money, 8)
    assert.deepStrictEqual(violations(tree.ledger), [])
  })

  it("in each dimension for itself", () => {
    const tree = family()
    const settlement = ok(tree.ledger.settle(at("b"), { money: 3, steps: 4, toolCalls: 7 }))
    // steps: 3 own, 1 of the parent; toolCalls have no cap
    assert.deepStrictEqual(settlement.short, ["steps"])
    assert.strictEqual(left(tree, "a", "steps").explore, 2)
    assert.strictEqual(tree.ledger.account("b").funds.explore.used.toolCalls, 7)
    assert.deepStrictEqual(violations(tree.ledger), [])
  })

  it("by an ancestor without a cap in full", () => {
    const tree = open({ steps: 5 })
    ok(child(tree, "root", "a", { steps: 5, money: 10 }))
    ok(tree.ledger.hold(at("a"), "explore", { money: 10 }))
    ok(tree.ledger.settle(at("a"), { money: 1000 }))
    assert.strictEqual(tree.ledger.account("a").debt.money, 0)
    assert.deepStrictEqual(violations(tree.ledger), [])
    ok(tree.ledger.close("a"))
    assert.strictEqual(Accounts.used(tree.ledger.root).money, 1000)
  })

  it("also when the account was frozen or paused meanwhile", () => {
    for (const stop of ["freeze", "pause"] as const) {
      const tree = family()
      tree.ledger[stop]("root", "why")
      ok(tree.ledger.settle(at("b"), { money: 13 }))
      assert.strictEqual(free(tree)[1], "9/1/2/3")
    }
  })
})

describe("debt", () => {
  /** Root 10, of it a 6; a is billed 11 for a hold of 6: 4 of the root's explore, 1 owed. */
  const indebted = () => {
    const tree = open({ money: 10, steps: 4 })
    ok(child(tree, "root", "a", { money: 6, steps: 2 }))
    ok(child(tree, "root", "c", { money: 2, steps: 1 }))
    ok(tree.ledger.hold(at("a"), "explore", { money: 6 }))
    ok(tree.ledger.settle(at("a"), { money: 11 }))
    assert.strictEqual(tree.ledger.account("a").debt.money, 3)
    return tree
  }

  it("lets nothing new start that costs it, on the account or above", () => {
    const tree = indebted()
    for (const account of ["a", "root"]) {
      const reason = refusedWithoutTrace(tree, () => tree.ledger.hold(at(account, "new"), "output", { money: 1 }))
      assert.strictEqual(reason._tag, "Insufficient")
    }
    assert.strictEqual(shortages(child(tree, "root", "d", { money: 1 }))[0]!.available, 0)
  })

  it("is paid first by what a sibling returns, and only the rest is free", () => {
    for (const [spent, owed, free] of [
      [2, 3, 0],
      [1, 2, 0],
      [0, 1, 0],
    ] as const) {
      const tree = indebted()
      if (spent > 0) ok(tree.ledger.hold(at("c"), "explore", { money: spent }))
      if (spent > 0) ok(tree.ledger.assume(at("c")))
      ok(tree.ledger.close("c"))
      assert.strictEqual(tree.ledger.account("a").debt.money, owed)
      assert.strictEqual(left(tree, "root", "money").explore, free)
      assert.deepStrictEqual(violations(tree.ledger), [])
    }
  })

  it("is paid first by an amended cap", () => {
    const tree = indebted()
    ok(tree.ledger.amend({ money: 12 }))
    assert.strictEqual(tree.ledger.account("a").debt.money, 1)
    ok(tree.ledger.amend({ money: 15 }))
    assert.strictEqual(tree.ledger.account("a").debt.money, 0)
    assert.strictEqual(left(tree, "root", "money").explore, 2)
    assert.deepStrictEqual(violations(tree.ledger), [])
  })

  it("is paid first by a hold that comes back, settled below, voided, or of the root", () => {
    const owing = () => {
      const tree = open({ money: 10 })
      for (const id of ["h", "i"]) ok(tree.ledger.hold(at("root", id), "explore", { money: 5 }))
      ok(tree.ledger.settle(at("root", "h"), { money: 8 }))
      assert.strictEqual(tree.ledger.root.debt.money, 3)
      return tree
    }
    const voided = owing()
    ok(voided.ledger.void(at("root", "i")))
    assert.strictEqual(voided.ledger.root.debt.money, 0)
    assert.strictEqual(left(voided, "root", "money").explore, 2)
    const settled = owing()
    ok(settled.ledger.settle(at("root", "i"), { money: 3 }))
    assert.strictEqual(settled.ledger.root.debt.money, 1)
    const assumed = owing()
    ok(assumed.ledger.assume(at("root", "i")))
    assert.strictEqual(assumed.ledger.root.debt.money, 3)
    assert.isTrue(voided.entries.some((entry) => entry._tag === "DebtPaid" && entry.paid.money === 3))
  })

  it("is the parent's when the child closes, and paid from what comes to the parent later", () => {
    const tree = indebted()
    ok(tree.ledger.close("a"))
    assert.strictEqual(tree.ledger.root.debt.money, 3)
    assert.strictEqual(tree.ledger.account("a").debt.money, 3)
    ok(tree.ledger.close("c"))
    assert.strictEqual(tree.ledger.root.debt.money, 1)
    assert.deepStrictEqual(violations(tree.ledger), [])
  })

  it("is the whole overspend of the run", () => {
    const tree = indebted()
    for (const id of ["c", "a", "root"]) ok(tree.ledger.close(id))
    const root = tree.ledger.root
    assert.strictEqual(Accounts.used(root).money, 10)
    assert.strictEqual(root.debt.money, 1)
    assert.strictEqual(Accounts.used(root).money + root.debt.money, 11, "the bill")
    assert.isTrue(root.overran)
    assert.deepStrictEqual(imbalances(statement(tree.ledger)), [])
  })
})
