import { assert, describe, it } from "@effect/vitest"
import type * as Result from "effect/Result"
import {
  add,
  addChecked,
  amounts,
  dimensions,
  type Grant,
  subtract,
  validate,
  zero,
} from "../../src/budget/Dimension.ts"
import { describe as sentence, type Refusal } from "../../src/budget/Refusal.ts"
import { child, max, ok, open, refusal, refusedWithoutTrace, sameRecords, records, tag, tryOpen } from "./tree.ts"

/** What 2.1 rejects, and how a refusal shows it. */
const invalid: ReadonlyArray<readonly [value: unknown, shown: string]> = [
  [Number.NaN, "NaN"],
  [Infinity, "Infinity"],
  [-Infinity, "-Infinity"],
  [0.5, "0.5"],
  [-1, "-1"],
  [-max, "-9007199254740991"],
  [2 ** 53, "9007199254740992"],
  [1e300, "1e+300"],
  ["5", '"5"'],
  [null, "null"],
  [true, "true"],
  [5n, "5"],
  [{ valueOf: () => 5 }, "[object Object]"],
]

const holding = () => {
  const tree = open({ steps: 10, money: 100 })
  ok(child(tree, "root", "a", { steps: 5, money: 50 }))
  ok(tree.ledger.hold({ account: "a", id: "h" }, "explore", { steps: 1, money: 10 }))
  return tree
}

type Tree = ReturnType<typeof holding>
type Operation = (tree: Tree, grant: Grant) => Result.Result<unknown, Refusal>

const opening = { id: "b", name: "b" }
const exactly = (grant: Grant) => ({ _tag: "Exactly" as const, grant })

/** Every operation that takes amounts, with the name it gives to them. */
const operations: ReadonlyArray<readonly [name: string, field: string, run: Operation]> = [
  ["hold", "hold", (tree, grant) => tree.ledger.hold({ account: "a", id: "new" }, "explore", grant)],
  ["settle", "actual", (tree, grant) => tree.ledger.settle({ account: "a", id: "h" }, grant)],
  ["move", "move", (tree, grant) => tree.ledger.move("a", "explore", "output", grant)],
  ["amend", "amend", (tree, grant) => tree.ledger.amend(grant)],
  ["carve exactly", "ask", (tree, grant) => tree.ledger.carve("root", { ...opening, ask: exactly(grant) })],
  [
    "carve at most",
    "ask",
    (tree, grant) => tree.ledger.carve("root", { ...opening, ask: { _tag: "AtMost", grant, floor: {} } }),
  ],
  [
    "the floor of a carve",
    "floor",
    (tree, floor) => tree.ledger.carve("root", { ...opening, ask: { _tag: "AtMost", grant: { steps: 1 }, floor } }),
  ],
  [
    "the charge of a carve",
    "charge",
    (tree, charge) => tree.ledger.carve("root", { ...opening, ask: exactly({ steps: 1 }), charge }),
  ],
  [
    "the explicit reserve of a carve",
    "reserves.output",
    (tree, output) =>
      tree.ledger.carve("root", { ...opening, ask: exactly({ steps: 1 }), reserves: { _tag: "Explicit", output } }),
  ],
  [
    "the floor of a batch",
    "floor",
    (tree, floor) => tree.ledger.carveAll("root", [{ ...opening, floor, charge: {} }])[0]!,
  ],
  [
    "the most of a batch",
    "most",
    (tree, most) => tree.ledger.carveAll("root", [{ ...opening, floor: {}, charge: {}, most }])[0]!,
  ],
  [
    "the charge of a batch",
    "charge",
    (tree, charge) => tree.ledger.carveAll("root", [{ ...opening, floor: {}, charge }])[0]!,
  ],
]

describe.each(operations)("%s", (_, field, run) => {
  it.each(invalid)("refuses %s, named with its field and a remedy, and changes nothing", (value, shown) => {
    const tree = holding()
    const reason = refusedWithoutTrace(tree, () => run(tree, { steps: 1, money: value as number }))
    assert.include(reason, { _tag: "InvalidAmount", field: `${field}.money`, value: shown })
    assert.include(sentence(reason), "give a whole number from 0 to 9007199254740991")
  })

  it("refuses a dimension nobody knows", () => {
    const tree = holding()
    const reason = refusedWithoutTrace(tree, () => run(tree, { setps: 1 } as Grant))
    assert.include(reason, { _tag: "InvalidAmount", field: `${field}.setps` })
  })
})

describe.each(operations.filter(([name]) => !/charge|reserve|most/.test(name)))("%s", (_, field, run) => {
  it.each([[null], ["5"], [[5]], [7]])("refuses %j in place of amounts", (value) => {
    const tree = holding()
    const reason = refusedWithoutTrace(tree, () => run(tree, value as unknown as Grant))
    assert.include(reason, { _tag: "InvalidAmount", field })
  })
})

describe("a root", () => {
  it.each(invalid)("is refused for a grant of %s", (value, shown) => {
    const reason = refusal(tryOpen({ steps: 1, money: value as number }))
    assert.include(reason, { _tag: "InvalidAmount", field: "grant.money", value: shown })
  })

  it.each(["maxDepth", "maxOpenChildren"] as const)("is refused for a %s that is no whole number", (name) => {
    for (const limit of [Number.NaN, -1, 0.5, Infinity]) {
      const limits = { maxDepth: 3, maxOpenChildren: 3, [name]: limit }
      assert.include(refusal(tryOpen({}, { limits })), { _tag: "InvalidAmount", field: `limits.${name}` })
    }
  })
})

describe("-0", () => {
  it("is read as 0 by every operation", () => {
    const tree = open({ steps: -0, money: 100 })
    assert.isTrue(Object.is(tree.ledger.root.funds.explore.allocated.steps, 0))
    ok(tree.ledger.hold({ account: "root", id: "h" }, "explore", { steps: -0, money: 1 }))
    ok(tree.ledger.settle({ account: "root", id: "h" }, { steps: -0, money: 1 }))
    ok(child(tree, "root", "a", { steps: -0, money: -0 }, { charge: { steps: -0 } }))
    ok(tree.ledger.amend({ steps: -0 }))
    for (const account of tree.ledger.accounts)
      for (const fund of Object.values(account.funds))
        for (const part of [fund.allocated, fund.held, fund.carved, fund.used])
          for (const d of dimensions) assert.isFalse(Object.is(part[d], -0), `${account.id} ${d}`)
  })

  it("is validated to 0", () => {
    assert.isTrue(Object.is(ok(validate({ money: -0 }, "x")).money, 0))
  })
})

describe("sums past 2^53 - 1", () => {
  it("are a broken law inside the arithmetic", () => {
    const one = amounts({ steps: 1 })
    assert.throws(() => addChecked(amounts({ steps: max }), one), RangeError)
    assert.deepStrictEqual(addChecked(subtract(amounts({ steps: max }), one), one).steps, max)
    assert.deepStrictEqual(add(zero, zero), zero)
  })

  it("of holds without a cap are refused, not thrown, and the tree still closes", () => {
    const tree = open({})
    ok(child(tree, "root", "a", {}))
    ok(tree.ledger.hold({ account: "a", id: "h" }, "explore", { money: max - 1 }))
    const reason = refusedWithoutTrace(tree, () =>
      tree.ledger.hold({ account: "root", id: "h" }, "output", { money: 2 }),
    )
    assert.include(reason, { _tag: "InvalidAmount", field: "hold.money", value: "2" })
    ok(tree.ledger.hold({ account: "root", id: "i" }, "explore", { money: 1 }))
    ok(tree.ledger.settle({ account: "root", id: "i" }, { money: 1 }))
    ok(tree.ledger.assume({ account: "a", id: "h" }))
    ok(tree.ledger.close("a"))
    assert.strictEqual(ok(tree.ledger.close("root")).funds.explore.used.money, max)
  })

  it("are counted again after a void", () => {
    const tree = open({})
    ok(tree.ledger.hold({ account: "root", id: "h" }, "explore", { money: max }))
    ok(tree.ledger.void({ account: "root", id: "h" }))
    ok(tree.ledger.hold({ account: "root", id: "i" }, "explore", { money: max }))
  })

  it("of bills are refused, and the hold stays to be assumed", () => {
    const tree = open({ steps: 5 })
    for (const id of ["h", "i"]) ok(tree.ledger.hold({ account: "root", id }, "explore", { steps: 1 }))
    ok(tree.ledger.settle({ account: "root", id: "h" }, { steps: max - 3 }))
    const reason = refusedWithoutTrace(tree, () => tree.ledger.settle({ account: "root", id: "i" }, { steps: 4 }))
    assert.include(reason, { _tag: "InvalidAmount", field: "actual.steps", value: "4" })
    ok(tree.ledger.settle({ account: "root", id: "i" }, { steps: 3 }))
    assert.strictEqual(tree.ledger.root.debt.steps, max - 5)
  })

  it("of charges are refused", () => {
    const tree = open({ money: 5 })
    ok(tree.ledger.hold({ account: "root", id: "h" }, "explore", { toolCalls: max }))
    const charge = { toolCalls: 1 }
    const reason = refusedWithoutTrace(tree, () => child(tree, "root", "a", {}, { charge }))
    assert.include(reason, { _tag: "InvalidAmount", field: "charge.toolCalls" })
  })

  it("of children's grants without a cap above them are refused", () => {
    const tree = open({})
    ok(child(tree, "root", "a", { money: max }))
    const reason = refusedWithoutTrace(tree, () => child(tree, "root", "b", { money: 1 }))
    assert.include(reason, { _tag: "InvalidAmount", field: "ask.money", value: "1" })
    ok(child(tree, "root", "c", { money: 0 }))
  })

  it("of covers without a cap above them are refused", () => {
    const tree = open({})
    ok(child(tree, "root", "a", { money: max }))
    ok(child(tree, "a", "b", { money: max }))
    ok(tree.ledger.hold({ account: "a", id: "h" }, "explore", { steps: 1 }))
    const reason = refusedWithoutTrace(tree, () =>
      tree.ledger.settle({ account: "a", id: "h" }, { steps: 1, money: 1 }),
    )
    assert.include(reason, { _tag: "InvalidAmount", field: "actual" })
    ok(tree.ledger.assume({ account: "a", id: "h" }))
  })
})

describe("a hold of nothing", () => {
  it("is refused: every call costs something", () => {
    for (const grant of [{}, { steps: 0 }, { steps: -0, money: 0 }]) {
      const tree = holding()
      const reason = refusedWithoutTrace(tree, () => tree.ledger.hold({ account: "a", id: "new" }, "explore", grant))
      assert.include(reason, { _tag: "InvalidAmount", field: "hold" })
    }
  })
})

describe("an invalid request in a batch", () => {
  it("is refused alone, and the others share what is left as if it were not there", () => {
    const tree = open({ steps: 10 })
    const request = (id: string, charge: Grant) => ({ id, name: id, floor: { steps: 1 }, charge })
    const before = records(tree.ledger)
    const results = tree.ledger.carveAll("root", [request("a", {}), request("b", { steps: -100 }), request("c", {})])
    assert.deepStrictEqual(results.map(tag), ["accepted", "InvalidAmount", "accepted"])
    assert.strictEqual(tree.ledger.root.funds.explore.carved.steps, 10)
    assert.strictEqual(tree.ledger.account("a").funds.explore.allocated.steps, 5)
    assert.throws(() => sameRecords(before, records(tree.ledger)))
  })
})
