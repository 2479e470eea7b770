import { assert, describe, it } from "@effect/vitest"
import * as Accounts from "../../src/budget/Account.ts"
import { amounts, dimensions, type Grant } from "../../src/budget/Dimension.ts"
import type { Reserve } from "../../src/budget/Reserve.ts"
import { imbalances, statement, violations } from "../../src/budget/Statement.ts"
import { answeredAgain, child, kept, left, max, ok, open, refusedWithoutTrace, type Tree } from "./tree.ts"

const at = (account: string, id = "h") => ({ account, id })

/** Holds that much and assumes it. */
const assume = (tree: Tree, account: string, wanted: Grant, id = "h", reserve: Reserve = "explore") => {
  ok(tree.ledger.hold(at(account, id), reserve, wanted))
  return ok(tree.ledger.assume(at(account, id)))
}

const balanced = (tree: Tree) => {
  assert.deepStrictEqual(violations(tree.ledger), [])
  const rows = statement(tree.ledger)
  if (rows.every((row) => row.parent === undefined || row.state === "Closed"))
    assert.deepStrictEqual(imbalances(rows), [])
}

describe.each(dimensions)("an assumption of 4 of 10 %s", (d) => {
  it.each([
    [0, 10, 0],
    [3, 7, 0],
    [4, 6, 0],
    [5, 5, 0],
    [10, 0, 0],
    [11, 0, 1],
  ])("corrected to %i leaves %i and owes %i", (bill, free, debt) => {
    const tree = open({ [d]: 10 })
    assume(tree, "root", { [d]: 4 })
    assert.strictEqual(ok(tree.ledger.adjust(at("root"), { [d]: bill })).state, "Adjusted")
    const { root } = tree.ledger
    assert.strictEqual(left(tree, "root", d).explore, free)
    assert.strictEqual(root.debt[d], debt)
    assert.strictEqual(Accounts.used(root)[d] + debt, bill)
    assert.strictEqual(root.overran, bill > 4)
    balanced(tree)
  })
})

describe("a correction", () => {
  it("gives back to the reserve of the hold", () => {
    const tree = open({ money: 40 }, { reserves: kept("money", { verify: 10, output: 10 }) })
    assume(tree, "root", { money: 8 }, "h", "verify")
    ok(tree.ledger.adjust(at("root"), { money: 3 }))
    assert.deepStrictEqual(left(tree, "root", "money"), { explore: 20, retry: 0, verify: 7, output: 10 })
  })

  it("upward is covered like an over-run: its own reserve, the others junior first, then above", () => {
    const tree = open({ money: 40 }, { reserves: kept("money", { output: 5 }) })
    ok(child(tree, "root", "a", { money: 20 }, { reserves: kept("money", { verify: 6, retry: 2 }) }))
    assume(tree, "a", { money: 4 }, "h", "verify")
    ok(tree.ledger.adjust(at("a"), { money: 4 + 2 + 12 + 1 }))
    assert.deepStrictEqual(left(tree, "a", "money"), { explore: 0, retry: 1, verify: 0, output: 0 })
    assert.strictEqual(left(tree, "root", "money").explore, 15)
    assert.isTrue(tree.ledger.account("a").overran)
    balanced(tree)
  })

  it("goes down in one dimension and up in another at once", () => {
    const tree = open({ money: 10, steps: 5 })
    assume(tree, "root", { money: 6, steps: 1 })
    ok(tree.ledger.adjust(at("root"), { money: 2, steps: 3, toolCalls: 7 }))
    assert.deepStrictEqual([left(tree, "root", "money").explore, left(tree, "root", "steps").explore], [8, 2])
    assert.strictEqual(tree.ledger.root.funds.explore.used.toolCalls, 7)
    balanced(tree)
  })

  it("says what was held, what it was, and where it landed", () => {
    const tree = open({ money: 10 })
    ok(child(tree, "root", "a", { money: 8 }))
    assume(tree, "a", { money: 6 })
    ok(tree.ledger.close("a"))
    ok(tree.ledger.adjust(at("a"), { money: 2 }))
    assert.deepStrictEqual(tree.entries.at(-1), {
      _tag: "Adjusted",
      account: "a",
      hold: "h",
      reserve: "explore",
      held: { money: 6 },
      actual: { money: 2 },
      landedOn: "root",
    })
  })

  it.each(["pause", "freeze"] as const)("is taken after a %s as well", (stop) => {
    const tree = open({ money: 10 })
    assume(tree, "root", { money: 6 })
    tree.ledger[stop]("root", "why")
    ok(tree.ledger.adjust(at("root"), { money: 2 }))
    assert.strictEqual(left(tree, "root", "money").explore, 8)
  })

  it("happens once: the same is answered again, another bill refused", () => {
    const tree = open({ money: 10 })
    assume(tree, "root", { money: 6 })
    const first = tree.ledger.adjust(at("root"), { money: 2 })
    answeredAgain(tree, first, () => tree.ledger.adjust(at("root"), { money: 2 }))
    for (const money of [0, 1, 3, 6]) {
      const reason = refusedWithoutTrace(tree, () => tree.ledger.adjust(at("root"), { money }))
      assert.deepStrictEqual(reason, { _tag: "AlreadyResolved", id: "h", state: "Adjusted" })
    }
    assert.strictEqual(left(tree, "root", "money").explore, 8)
  })

  it("is refused of what is pending, settled, voided or unknown", () => {
    const tree = open({ money: 10 })
    for (const id of ["p", "s", "v"]) ok(tree.ledger.hold(at("root", id), "explore", { money: 1 }))
    ok(tree.ledger.settle(at("root", "s"), { money: 1 }))
    ok(tree.ledger.void(at("root", "v")))
    for (const [id, state] of [
      ["p", "Pending"],
      ["s", "Settled"],
      ["v", "Voided"],
    ] as const) {
      const reason = refusedWithoutTrace(tree, () => tree.ledger.adjust(at("root", id), { money: 1 }))
      assert.deepStrictEqual(reason, { _tag: "AlreadyResolved", id, state })
    }
    for (const account of ["root", "nobody"]) {
      const reason = refusedWithoutTrace(tree, () => tree.ledger.adjust(at(account, "none"), { money: 1 }))
      assert.deepStrictEqual(reason, { _tag: "UnknownId", id: "none" })
    }
  })

  it.each([-1, 0.5, Number.NaN, 2 ** 53])("to %s is refused, and can still be made", (money) => {
    const tree = open({ money: 10 })
    assume(tree, "root", { money: 6 })
    const reason = refusedWithoutTrace(tree, () => tree.ledger.adjust(at("root"), { money }))
    assert.include(reason, { _tag: "InvalidAmount", field: "actual.money", value: String(money) })
    ok(tree.ledger.adjust(at("root"), { money: 2 }))
  })

  it("past what can be counted is refused, in the sum of the run and in a cover", () => {
    const run = open({})
    assume(run, "root", { money: 5 })
    ok(run.ledger.hold(at("root", "i"), "explore", { money: max - 10 }))
    const sum = refusedWithoutTrace(run, () => run.ledger.adjust(at("root"), { money: 11 }))
    assert.include(sum, { _tag: "InvalidAmount", field: "actual.money" })
    ok(run.ledger.adjust(at("root"), { money: 10 }))
    const tree = open({})
    ok(child(tree, "root", "a", { money: max }))
    ok(child(tree, "a", "b", { money: max }))
    assume(tree, "a", { steps: 1 })
    const covering = refusedWithoutTrace(tree, () => tree.ledger.adjust(at("a"), { steps: 1, money: 1 }))
    assert.include(covering, { _tag: "InvalidAmount", field: "actual" })
  })
})

/** A judge carved from root's verify, its helper from the judge's explore; the helper assumed 6 of 8. */
const court = (): Tree => {
  const tree = open({ money: 60 }, { reserves: kept("money", { verify: 20, output: 10 }) })
  ok(child(tree, "root", "judge", { money: 15 }, { reserve: "verify" }))
  ok(child(tree, "judge", "helper", { money: 8 }))
  assume(tree, "helper", { money: 6 })
  ok(tree.ledger.close("helper"))
  return tree
}

const row = (tree: Tree, account: string) => {
  const found = statement(tree.ledger).find((one) => one.account === account)!
  return [found.granted.money, found.own.money, found.children.money, found.left.money]
}

describe("a correction of a closed account", () => {
  it.each([
    [0, 15],
    [5, 10],
    [6, 9],
    [7, 8],
    [15, 0],
  ])("to %i lands on the nearest open one, which then has %i", (bill, free) => {
    const tree = court()
    ok(tree.ledger.adjust(at("helper"), { money: bill }))
    assert.strictEqual(left(tree, "judge", "money").explore, free)
    assert.deepStrictEqual(left(tree, "root", "money"), { explore: 30, retry: 0, verify: 5, output: 10 })
    balanced(tree)
    ok(tree.ledger.close("judge"))
    assert.strictEqual(tree.ledger.root.funds.verify.used.money, bill)
    balanced(tree)
  })

  it.each([
    [0, 20],
    [5, 15],
    [6, 14],
    [7, 13],
    [20, 0],
  ])("and of its closed parent to %i lands in the reserve that funded the way down, with %i free", (bill, free) => {
    const tree = court()
    ok(tree.ledger.close("judge"))
    ok(tree.ledger.adjust(at("helper"), { money: bill }))
    assert.deepStrictEqual(left(tree, "root", "money"), { explore: 30, retry: 0, verify: free, output: 10 })
    assert.strictEqual(tree.ledger.root.funds.verify.used.money, bill)
    balanced(tree)
  })

  it("puts the rows of the closed ones right", () => {
    const tree = court()
    ok(tree.ledger.close("judge"))
    assert.deepStrictEqual([row(tree, "helper"), row(tree, "judge")], [[8, 6, 0, 2] as const, [15, 0, 6, 9]] as never)
    ok(tree.ledger.adjust(at("helper"), { money: 1 }))
    assert.deepStrictEqual(row(tree, "helper"), [8, 1, 0, 7])
    assert.deepStrictEqual(row(tree, "judge"), [15, 0, 1, 14])
    assert.deepStrictEqual(row(tree, "root"), [60, 0, 1, 59])
    balanced(tree)
  })

  it("upward is the own use of the open one", () => {
    const tree = court()
    ok(tree.ledger.close("judge"))
    ok(tree.ledger.adjust(at("helper"), { money: 9 }))
    assert.deepStrictEqual(row(tree, "helper"), [8, 6, 0, 2])
    assert.deepStrictEqual(row(tree, "root"), [60, 3, 6, 51])
    assert.isTrue(tree.ledger.root.overran)
    balanced(tree)
  })

  it("upward is covered there in the usual order, and what is not is its debt", () => {
    const tree = court()
    ok(tree.ledger.close("judge"))
    // 14 of verify, then 30 of explore, then 10 of output
    ok(tree.ledger.adjust(at("helper"), { money: 6 + 14 + 30 + 10 + 5 }))
    assert.deepStrictEqual(left(tree, "root", "money"), { explore: 0, retry: 0, verify: 0, output: 0 })
    assert.strictEqual(tree.ledger.root.debt.money, 5)
    assert.deepStrictEqual(tree.ledger.account("helper").debt, amounts({}))
    balanced(tree)
  })

  it("happens once, before and after the close", () => {
    for (const late of [false, true]) {
      const tree = court()
      if (late) ok(tree.ledger.close("judge"))
      const first = tree.ledger.adjust(at("helper"), { money: 2 })
      if (!late) ok(tree.ledger.close("judge"))
      answeredAgain(tree, first, () => tree.ledger.adjust(at("helper"), { money: 2 }))
      const reason = refusedWithoutTrace(tree, () => tree.ledger.adjust(at("helper"), { money: 3 }))
      assert.deepStrictEqual(reason, { _tag: "AlreadyResolved", id: "h", state: "Adjusted" })
    }
  })

  it("made while it was open is answered the same after it has closed", () => {
    const tree = open({ money: 20 })
    ok(child(tree, "root", "a", { money: 10 }))
    assume(tree, "a", { money: 6 })
    const first = tree.ledger.adjust(at("a"), { money: 2 })
    ok(tree.ledger.close("a"))
    answeredAgain(tree, first, () => tree.ledger.adjust(at("a"), { money: 2 }))
    assert.strictEqual(left(tree, "root", "money").explore, 18)
  })

  it("is refused once the whole run has closed: its books are final", () => {
    const tree = court()
    for (const id of ["judge", "root"]) ok(tree.ledger.close(id))
    const reason = refusedWithoutTrace(tree, () => tree.ledger.adjust(at("helper"), { money: 2 }))
    assert.include(reason, { _tag: "InvalidAmount", field: "adjust" })
    balanced(tree)
  })

  it("knows only what was assumed: what was settled or voided there is gone", () => {
    const tree = open({ money: 20 })
    ok(child(tree, "root", "a", { money: 10 }))
    ok(tree.ledger.hold(at("a"), "explore", { money: 1 }))
    ok(tree.ledger.void(at("a")))
    ok(tree.ledger.close("a"))
    assert.strictEqual(refusedWithoutTrace(tree, () => tree.ledger.adjust(at("a"), { money: 1 }))._tag, "UnknownId")
  })
})

describe("what a correction gives back", () => {
  /** Root 10: it assumed 4; a has 6 and is billed 9, so that 1 is covered and 2 are owed. */
  const owing = () => {
    const tree = open({ money: 11 })
    ok(child(tree, "root", "a", { money: 6 }))
    assume(tree, "root", { money: 4 }, "u")
    ok(tree.ledger.hold(at("a"), "explore", { money: 6 }))
    ok(tree.ledger.settle(at("a"), { money: 9 }))
    assert.strictEqual(tree.ledger.account("a").debt.money, 2)
    return tree
  }

  it.each([
    [4, 2, 0],
    [3, 1, 0],
    [2, 0, 0],
    [1, 0, 1],
    [0, 0, 2],
  ])("pays debt first: corrected to %i, %i is owed and %i free", (bill, debt, free) => {
    const tree = owing()
    ok(tree.ledger.adjust(at("root", "u"), { money: bill }))
    assert.strictEqual(tree.ledger.account("a").debt.money, debt)
    assert.strictEqual(left(tree, "root", "money").explore, free)
    const paid = tree.entries.filter((entry) => entry._tag === "DebtPaid")
    assert.deepStrictEqual(
      paid.map((entry) => entry.paid),
      debt === 2 ? [] : [{ money: 2 - debt }],
    )
    balanced(tree)
    ok(tree.ledger.close("a"))
    balanced(tree)
  })

  it("pays the debt that a closed child left", () => {
    const tree = owing()
    ok(tree.ledger.close("a"))
    assert.strictEqual(tree.ledger.root.debt.money, 2)
    ok(tree.ledger.adjust(at("root", "u"), { money: 1 }))
    assert.strictEqual(tree.ledger.root.debt.money, 0)
    assert.strictEqual(left(tree, "root", "money").explore, 1)
    balanced(tree)
  })
})
