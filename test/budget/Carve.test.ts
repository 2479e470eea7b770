import { assert, describe, it } from "@effect/vitest"
import * as Accounts from "../../src/budget/Account.ts"
import { amounts, dimensions } from "../../src/budget/Dimension.ts"
import { forAgent, type Plan } from "../../src/budget/Reserve.ts"
import { violations } from "../../src/budget/Statement.ts"
import { child, kept, left, max, ok, open, records, refusal, refusedWithoutTrace } from "./tree.ts"
import { sameRecords, shortages, tag, tryOpen } from "./tree.ts"

describe.each(dimensions)("a child with a grant of %s", (d) => {
  it("fits when it asks for exactly what there is, or one less, and the parent has the rest", () => {
    for (const asked of [0, 9, 10]) {
      const tree = open({ [d]: 10 })
      ok(child(tree, "root", "a", { [d]: asked }))
      assert.strictEqual(left(tree, "root", d).explore, 10 - asked)
      assert.strictEqual(left(tree, "a", d).explore, asked)
      assert.deepStrictEqual(violations(tree.ledger), [])
    }
  })

  it("is refused when it asks for one more than its parent's explore has", () => {
    const tree = open({ [d]: 10 }, { reserves: kept(d, { output: 2 }) })
    const reason = refusedWithoutTrace(tree, () => child(tree, "root", "a", { [d]: 9 }))
    assert.deepStrictEqual(reason, {
      _tag: "Insufficient",
      shortages: [{ dimension: d, reserve: "explore", asked: 9, available: 8, account: "root", whose: "parent" }],
    })
    ok(child(tree, "root", "b", { [d]: 8 }))
  })

  it("pays its charge out of the same reserve: both must fit", () => {
    const tree = open({ [d]: 10 })
    const charge = { [d]: 1 }
    const short = shortages(child(tree, "root", "a", { [d]: 10 }, { charge }))
    assert.deepInclude(short[0], { asked: 11, available: 10, whose: "parent" })
    ok(child(tree, "root", "b", { [d]: 9 }, { charge }))
    assert.strictEqual(left(tree, "root", d).explore, 0)
    assert.strictEqual(tree.ledger.root.funds.explore.used[d], 1)
  })

  it("given back is available again, all of it or what was not used", () => {
    for (const used of [0, 1, 6]) {
      const tree = open({ [d]: 10 })
      ok(child(tree, "root", "a", { [d]: 6 }))
      if (used > 0) ok(tree.ledger.hold({ account: "a", id: "h" }, "explore", { [d]: used }))
      if (used > 0) ok(tree.ledger.assume({ account: "a", id: "h" }))
      ok(tree.ledger.close("a"))
      assert.strictEqual(left(tree, "root", d).explore, 10 - used)
      assert.strictEqual(Accounts.used(tree.ledger.root)[d], used)
      assert.deepStrictEqual(violations(tree.ledger), [])
    }
  })
})

describe("a child", () => {
  it("is refused in every short dimension at once, its own minimum beside the parent's lack", () => {
    const tree = open({ steps: 5, money: 10, ticks: 9 })
    const reason = refusedWithoutTrace(tree, () =>
      tree.ledger.carve("root", {
        id: "a",
        name: "kid",
        ask: { _tag: "AtMost", grant: { steps: 6, money: 2, ticks: 9 }, floor: { steps: 6, money: 3, ticks: 9 } },
      }),
    )
    assert.deepStrictEqual(reason, {
      _tag: "Insufficient",
      shortages: [
        { dimension: "steps", reserve: "explore", asked: 6, available: 5, account: "root", whose: "parent" },
        { dimension: "money", reserve: "explore", asked: 3, available: 2, account: "root/kid", whose: "minimum" },
      ],
    })
  })

  it("at most gets what there is after the charge, but not under its floor", () => {
    const asking = (floor: number) => {
      const tree = open({ steps: 10 })
      const ask = { _tag: "AtMost" as const, grant: { steps: 50 }, floor: { steps: floor } }
      return { tree, result: tree.ledger.carve("root", { id: "a", name: "a", ask, charge: { steps: 2 } }) }
    }
    assert.strictEqual(Accounts.granted(ok(asking(8).result)).steps, 8)
    assert.strictEqual(left(asking(8).tree, "root", "steps").explore, 0)
    assert.deepInclude(shortages(asking(9).result)[0], { asked: 11, available: 10, whose: "parent" })
  })

  it("has a cap of zero where the parent has a cap and it asks for nothing, and none where the parent has none", () => {
    const tree = open({ steps: 10 })
    const account = ok(child(tree, "root", "a", {}))
    assert.deepStrictEqual(account.caps, { ...account.caps, steps: true, money: false })
    assert.strictEqual(
      refusal(tree.ledger.hold({ account: "a", id: "h" }, "output", { steps: 1 }))._tag,
      "Insufficient",
    )
    ok(tree.ledger.hold({ account: "a", id: "i" }, "explore", { money: max }))
  })

  it("may be capped where its parent is not, even beyond 2^31", () => {
    const tree = open({})
    ok(child(tree, "root", "a", { money: 2 ** 31 }))
    assert.deepInclude(shortages(tree.ledger.hold({ account: "a", id: "h" }, "explore", { money: 2 ** 31 + 1 }))[0], {
      available: 2 ** 31,
    })
  })

  it("below its own minimum is refused, naming it, and the parent pays nothing", () => {
    const tree = open({ steps: 10, ticks: 10, toolCalls: 10 })
    const reason = refusedWithoutTrace(tree, () =>
      child(tree, "root", "a", { steps: 0, ticks: 1 }, { reserves: forAgent({}), charge: { toolCalls: 1 } }),
    )
    assert.deepStrictEqual(reason, {
      _tag: "Insufficient",
      shortages: [
        { dimension: "steps", reserve: "explore", asked: 1, available: 0, account: "root/a", whose: "minimum" },
      ],
    })
  })

  it.each(["explore", "retry", "verify"] as const)("comes out of %s and returns there", (reserve) => {
    const tree = open({ money: 40 }, { reserves: kept("money", { output: 10, verify: 10, retry: 10 }) })
    assert.strictEqual(refusal(child(tree, "root", "more", { money: 11 }, { reserve }))._tag, "Insufficient")
    ok(child(tree, "root", "a", { money: 10 }, { reserve }))
    assert.deepStrictEqual(left(tree, "root", "money"), {
      explore: 10,
      retry: 10,
      verify: 10,
      output: 10,
      [reserve]: 0,
    })
    ok(tree.ledger.close("a"))
    assert.deepStrictEqual(left(tree, "root", "money"), { explore: 10, retry: 10, verify: 10, output: 10 })
  })

  it("never comes out of the output reserve", () => {
    const tree = open({ money: 40 }, { reserves: kept("money", { output: 10 }) })
    const reason = refusedWithoutTrace(tree, () => child(tree, "root", "a", { money: 1 }, { reserve: "output" }))
    assert.include(reason, { _tag: "InvalidAmount", field: "reserve", value: '"output"' })
  })

  it("keeps its id for ever: for the same it is answered, for anything else refused", () => {
    const tree = open({ steps: 10 })
    ok(child(tree, "root", "a", { steps: 1 }))
    for (const close of [false, true]) {
      if (close) ok(tree.ledger.close("a"))
      assert.isTrue(ok(child(tree, "root", "a", { steps: 1 })) === tree.ledger.account("a"))
      const reason = refusedWithoutTrace(tree, () => child(tree, "root", "a", { steps: 2 }))
      assert.deepStrictEqual(reason, { _tag: "IdConflict", id: "a" })
      assert.strictEqual(tag(child(tree, "root", "root", { steps: 1 })), "IdConflict")
    }
  })

  it("is refused one level too deep", () => {
    const tree = open({ steps: 10 }, { limits: { maxDepth: 2, maxOpenChildren: 9 } })
    ok(child(tree, "root", "a", { steps: 5 }))
    ok(child(tree, "a", "b", { steps: 5 }))
    const reason = refusedWithoutTrace(tree, () => child(tree, "b", "c", { steps: 5 }))
    assert.deepStrictEqual(reason, { _tag: "TooDeep", limit: 2 })
  })

  it("is refused as one too many, until another closes", () => {
    const tree = open({ steps: 10 }, { limits: { maxDepth: 2, maxOpenChildren: 2 } })
    for (const id of ["a", "b"]) ok(child(tree, "root", id, { steps: 1 }))
    const reason = refusedWithoutTrace(tree, () => child(tree, "root", "c", { steps: 1 }))
    assert.deepStrictEqual(reason, { _tag: "TooManyChildren", limit: 2 })
    ok(tree.ledger.close("a"))
    ok(child(tree, "root", "d", { steps: 1 }))
  })

  it("is refused by the explicit reserves it cannot keep, and costs nothing", () => {
    const tree = open({ steps: 10, money: 5 })
    const reserves: Plan = { _tag: "Explicit", output: { money: 3 }, retry: { money: 3 } }
    assert.strictEqual(
      refusedWithoutTrace(tree, () => child(tree, "root", "a", { money: 5 }, { reserves, charge: { steps: 1 } }))._tag,
      "InvalidAmount",
    )
  })
})

describe("closing", () => {
  it("is refused while a hold is pending or a child open, and says how many", () => {
    const tree = open({ steps: 10 })
    ok(child(tree, "root", "a", { steps: 5 }))
    for (const id of ["h", "i"]) ok(tree.ledger.hold({ account: "a", id }, "explore", { steps: 1 }))
    ok(child(tree, "a", "b", { steps: 1 }))
    const close = () => tree.ledger.close("a")
    assert.deepStrictEqual(refusedWithoutTrace(tree, close), { _tag: "NotQuiescent", pendingHolds: 2, openChildren: 1 })
    ok(tree.ledger.assume({ account: "a", id: "h" }))
    ok(tree.ledger.void({ account: "a", id: "i" }))
    assert.deepStrictEqual(refusedWithoutTrace(tree, close), { _tag: "NotQuiescent", pendingHolds: 0, openChildren: 1 })
    ok(tree.ledger.close("b"))
    ok(close())
  })

  it("happens once", () => {
    const tree = open({ steps: 10 })
    ok(child(tree, "root", "a", { steps: 5 }))
    const [closed, before, written] = [ok(tree.ledger.close("a")), records(tree.ledger), tree.entries.length]
    assert.isTrue(ok(tree.ledger.close("a")) === closed)
    sameRecords(before, records(tree.ledger))
    assert.strictEqual(tree.entries.length, written)
    assert.strictEqual(left(tree, "root", "steps").explore, 10)
  })

  it("leaves nothing to hold on, to carve from, to move in or to settle", () => {
    const tree = open({ steps: 10 })
    ok(child(tree, "root", "a", { steps: 5 }))
    ok(tree.ledger.hold({ account: "a", id: "h" }, "explore", { steps: 1 }))
    ok(tree.ledger.void({ account: "a", id: "h" }))
    ok(tree.ledger.close("a"))
    for (const id of ["new", "h"]) {
      const ref = { account: "a", id }
      assert.strictEqual(refusedWithoutTrace(tree, () => tree.ledger.hold(ref, "output", { steps: 1 }))._tag, "NotOpen")
      assert.strictEqual(refusedWithoutTrace(tree, () => tree.ledger.settle(ref, {}))._tag, "UnknownId")
    }
    assert.strictEqual(refusedWithoutTrace(tree, () => child(tree, "a", "b", {}))._tag, "NotOpen")
    assert.strictEqual(refusedWithoutTrace(tree, () => tree.ledger.move("a", "explore", "output", {}))._tag, "NotOpen")
  })

  it("of a carve is the identity on what the parent has", () => {
    const tree = open({ steps: 10, money: 7 }, { reserves: kept("money", { verify: 3 }) })
    const before = tree.ledger.root
    ok(child(tree, "root", "a", { steps: 10, money: 3 }, { reserves: kept("money", { output: 3 }) }))
    ok(tree.ledger.close("a"))
    assert.deepStrictEqual(tree.ledger.root, before)
  })
})

describe("opening a root", () => {
  it("is refused below its minimum, with every short dimension", () => {
    const short = shortages(tryOpen({ steps: 0, ticks: 0 }, { reserves: forAgent({}) }))
    assert.deepStrictEqual(
      short.map((one) => [one.dimension, one.asked, one.available, one.whose]),
      [
        ["steps", 1, 0, "minimum"],
        ["ticks", 1, 0, "minimum"],
      ],
    )
    ok(tryOpen({ steps: 1, ticks: 1 }, { reserves: forAgent({}) }))
  })

  it("writes down what it was granted, also where that is 0", () => {
    const tree = open({ steps: 0, money: 5 }, { reserves: kept("money", { output: 2 }) })
    assert.deepInclude(tree.entries[0], { _tag: "Opened", grant: { steps: 0, money: 5 } })
    assert.deepStrictEqual(amounts(tree.ledger.root.opening.output).money, 2)
  })
})
