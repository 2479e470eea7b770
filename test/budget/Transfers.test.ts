import { assert, describe, it } from "@effect/vitest"
import * as Accounts from "../../src/budget/Account.ts"
import { dimensions } from "../../src/budget/Dimension.ts"
import { imbalances, statement, violations } from "../../src/budget/Statement.ts"
import { child, kept, left, max, ok, open, refusedWithoutTrace, shortages, type Tree } from "./tree.ts"

const at = (account: string, id = "h") => ({ account, id })

describe.each(dimensions)("a child topped up in %s", (d) => {
  /** 10 free in root, 2 kept, 1 used, 3 held, 4 with `b` and 5 with `a`. */
  const family = (): Tree => {
    const tree = open({ [d]: 25 }, { reserves: kept(d, { output: 2 }) })
    ok(child(tree, "root", "a", { [d]: 5 }, { charge: { [d]: 1 } }))
    ok(child(tree, "root", "b", { [d]: 4 }))
    ok(tree.ledger.hold(at("root"), "explore", { [d]: 3 }))
    return tree
  }

  it("gets exactly what its parent has free, or one less", () => {
    for (const more of [0, 1, 9, 10]) {
      const tree = family()
      assert.strictEqual(Accounts.granted(ok(tree.ledger.topUp("a", { [d]: more })))[d], 5 + more)
      assert.strictEqual(left(tree, "root", d).explore, 10 - more)
      assert.strictEqual(left(tree, "a", d).explore, 5 + more)
      assert.deepStrictEqual(violations(tree.ledger), [])
    }
  })

  it("is refused one more, though that much is held, kept, or with a sibling", () => {
    const tree = family()
    const reason = refusedWithoutTrace(tree, () => tree.ledger.topUp("a", { [d]: 11 }, "x"))
    assert.deepStrictEqual(reason, {
      _tag: "Insufficient",
      shortages: [{ dimension: d, reserve: "explore", asked: 11, available: 10, account: "root", whose: "parent" }],
    })
    ok(tree.ledger.topUp("a", { [d]: 10 }, "y"))
    assert.deepInclude(shortages(tree.ledger.topUp("b", { [d]: 1 }))[0], { asked: 1, available: 0 })
  })

  it("can then spend it, and gives back what it does not", () => {
    const tree = family()
    ok(tree.ledger.topUp("a", { [d]: 10 }))
    ok(tree.ledger.hold(at("a"), "explore", { [d]: 15 }))
    ok(tree.ledger.settle(at("a"), { [d]: 12 }))
    ok(tree.ledger.close("a"))
    assert.strictEqual(left(tree, "root", d).explore, 3)
    assert.deepStrictEqual(violations(tree.ledger), [])
  })
})

describe.each(dimensions)("a child of which %s is reclaimed", (d) => {
  /** `a` has 20: 2 used, 3 held, 4 carved, 5 kept, 6 free. */
  const parent = (): Tree => {
    const tree = open({ [d]: 30 })
    ok(child(tree, "root", "a", { [d]: 20 }, { reserves: kept(d, { output: 3, verify: 2 }) }))
    ok(tree.ledger.hold(at("a", "used"), "explore", { [d]: 2 }))
    ok(tree.ledger.assume(at("a", "used")))
    ok(tree.ledger.hold(at("a"), "explore", { [d]: 3 }))
    ok(child(tree, "a", "b", { [d]: 4 }))
    return tree
  }

  it("gives exactly what it has free, or one less", () => {
    for (const less of [0, 1, 5, 6]) {
      const tree = parent()
      assert.strictEqual(Accounts.granted(ok(tree.ledger.reclaim("a", { [d]: less })))[d], 20 - less)
      assert.deepStrictEqual(left(tree, "a", d), { explore: 6 - less, retry: 0, verify: 2, output: 3 })
      assert.strictEqual(left(tree, "root", d).explore, 10 + less)
      assert.deepStrictEqual(violations(tree.ledger), [])
    }
  })

  it("keeps what is used, held, carved or kept: one more is refused", () => {
    const tree = parent()
    const reason = refusedWithoutTrace(tree, () => tree.ledger.reclaim("a", { [d]: 7 }, "x"))
    assert.deepStrictEqual(reason, {
      _tag: "Insufficient",
      shortages: [{ dimension: d, reserve: "explore", asked: 7, available: 6, account: "root/a", whose: "own" }],
    })
    ok(tree.ledger.reclaim("a", { [d]: 6 }, "y"))
    assert.deepInclude(shortages(tree.ledger.reclaim("a", { [d]: 1 }))[0], { asked: 1, available: 0 })
    // What it still has is whole: the hold and the child can be spent to the last.
    ok(tree.ledger.settle(at("a"), { [d]: 3 }))
    ok(tree.ledger.hold(at("b"), "explore", { [d]: 4 }))
  })
})

describe("what passes between a parent and its child", () => {
  const funded = (reserve: "explore" | "retry" | "verify") => {
    const tree = open({ money: 40 }, { reserves: kept("money", { output: 10, verify: 10, retry: 10 }) })
    ok(child(tree, "root", "a", { money: 4 }, { reserve }))
    return tree
  }

  it.each(["explore", "retry", "verify"] as const)(
    "comes from the reserve that funds it, and goes back there: %s",
    (reserve) => {
      const tree = funded(reserve)
      const even = { explore: 10, retry: 10, verify: 10, output: 10 }
      ok(tree.ledger.topUp("a", { money: 6 }))
      assert.deepStrictEqual(left(tree, "root", "money"), { ...even, [reserve]: 0 })
      assert.deepInclude(shortages(tree.ledger.topUp("a", { money: 1 }))[0], { reserve, available: 0, whose: "parent" })
      ok(tree.ledger.reclaim("a", { money: 9 }))
      assert.deepStrictEqual(left(tree, "root", "money"), { ...even, [reserve]: 9 })
      ok(tree.ledger.close("a"))
      assert.deepStrictEqual(left(tree, "root", "money"), even)
    },
  )

  it("there and back is the identity", () => {
    const tree = funded("explore")
    const before = structuredClone(tree.ledger.accounts)
    ok(tree.ledger.topUp("a", { money: 5 }))
    ok(tree.ledger.reclaim("a", { money: 5 }))
    assert.deepStrictEqual(tree.ledger.accounts, before)
  })

  it("keeps the table whole", () => {
    const tree = funded("explore")
    ok(tree.ledger.topUp("a", { money: 5 }))
    ok(tree.ledger.hold(at("a"), "explore", { money: 3 }))
    ok(tree.ledger.assume(at("a")))
    ok(tree.ledger.reclaim("a", { money: 4 }))
    ok(tree.ledger.close("a"))
    assert.deepStrictEqual(imbalances(statement(tree.ledger)), [])
    assert.strictEqual(statement(tree.ledger)[1]!.granted.money, 5)
  })

  it("is all or nothing over the dimensions, and every short one is named", () => {
    const tree = open({ money: 10, steps: 10, ticks: 10 })
    ok(child(tree, "root", "a", { money: 4, steps: 4, ticks: 4 }))
    const asked = { money: 7, steps: 6, ticks: 8 }
    const short = [
      ["ticks", 8, 6],
      ["money", 7, 6],
    ]
    const up = refusedWithoutTrace(tree, () => tree.ledger.topUp("a", asked))
    assert.deepStrictEqual(
      up._tag === "Insufficient" && up.shortages.map((one) => [one.dimension, one.asked, one.available]),
      short,
    )
    const down = refusedWithoutTrace(tree, () => tree.ledger.reclaim("a", { money: 5, steps: 4, ticks: 4 }))
    assert.deepStrictEqual(down._tag === "Insufficient" && down.shortages.map((one) => one.dimension), ["money"])
  })

  it("leaves dimensions without a cap alone", () => {
    const tree = open({ money: 10 })
    ok(child(tree, "root", "a", { money: 4 }))
    ok(tree.ledger.topUp("a", { money: 1, steps: 5 }))
    ok(tree.ledger.reclaim("a", { money: 1, steps: 50 }))
    assert.strictEqual(Accounts.granted(tree.ledger.account("a")).steps, 0)
    assert.strictEqual(Accounts.carved(tree.ledger.root).steps, 0)
    assert.deepInclude(tree.entries.at(-1), { _tag: "Reclaimed", account: "a", parent: "root", amounts: { money: 1 } })
  })

  it("goes up without limit where the parent has none, but not past what can be counted", () => {
    const tree = open({})
    ok(child(tree, "root", "a", { money: 4 }))
    ok(child(tree, "root", "b", { money: 4 }))
    const reason = refusedWithoutTrace(tree, () => tree.ledger.topUp("a", { money: max - 7 }, "x"))
    assert.include(reason, { _tag: "InvalidAmount", field: "topUp.money", value: String(max - 7) })
    ok(tree.ledger.topUp("a", { money: max - 8 }, "y"))
    ok(tree.ledger.reclaim("a", { money: max - 4 }))
    assert.deepStrictEqual(violations(tree.ledger), [])
  })

  it("is nothing to a root, which is amended instead", () => {
    const tree = open({ money: 10 })
    for (const operation of ["topUp", "reclaim"] as const) {
      const reason = refusedWithoutTrace(tree, () => tree.ledger[operation]("root", { money: 1 }))
      assert.deepStrictEqual(reason, {
        _tag: "InvalidAmount",
        field: operation,
        value: '"root"',
        remedy: "amend the root instead",
      })
    }
  })

  it("is refused unless both are open", () => {
    for (const operation of ["topUp", "reclaim"] as const) {
      const run = (tree: Tree) => refusedWithoutTrace(tree, () => tree.ledger[operation]("a", { money: 1 }))
      for (const stopped of ["a", "root"]) {
        const [frozen, paused] = [funded("explore"), funded("explore")]
        frozen.ledger.freeze(stopped, "cancelled", { closingWork: true })
        assert.deepStrictEqual(run(frozen), { _tag: "NotOpen", account: "root/a", state: "frozen", cause: "cancelled" })
        ok(paused.ledger.pause(stopped, "approval"))
        assert.deepStrictEqual(run(paused), { _tag: "NotOpen", account: "root/a", state: "paused", cause: "approval" })
      }
      const closed = funded("explore")
      ok(closed.ledger.close("a"))
      assert.deepInclude(run(closed), { _tag: "NotOpen", account: "root/a", state: "closed" })
    }
  })

  it("has nothing to take while the child owes", () => {
    const tree = funded("explore")
    ok(tree.ledger.hold(at("a"), "explore", { money: 4 }))
    ok(tree.ledger.settle(at("a"), { money: 50 }))
    assert.strictEqual(tree.ledger.account("a").debt.money, 10)
    for (const operation of ["topUp", "reclaim"] as const)
      assert.strictEqual(shortages(tree.ledger[operation]("a", { money: 1 }))[0]!.available, 0)
  })
})
