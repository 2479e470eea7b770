import { assert, describe, it } from "@effect/vitest"
import type * as Result from "effect/Result"
import type { Refusal } from "../../src/budget/Refusal.ts"
import { violations } from "../../src/budget/Statement.ts"
import {
  answeredAgain,
  child,
  left,
  ok,
  open,
  refusal,
  refusedWithoutTrace,
  shortages,
  tag,
  type Tree,
} from "./tree.ts"

const at = (account: string, id: string) => ({ account, id })

/** root 40, of it a 20, of which 4 are held (h) and 3 assumed (u). */
const ready = (): Tree => {
  const tree = open({ money: 40 })
  ok(child(tree, "root", "a", { money: 20 }))
  ok(tree.ledger.hold(at("a", "h"), "explore", { money: 4 }))
  ok(tree.ledger.hold(at("a", "u"), "explore", { money: 3 }))
  ok(tree.ledger.assume(at("a", "u")))
  return tree
}

type Run = (tree: Tree, money: number, id: string) => Result.Result<unknown, Refusal>

/** Every operation that comes under an id of its own. */
const operations: ReadonlyArray<readonly [name: string, run: Run]> = [
  ["hold", (tree, money, id) => tree.ledger.hold(at("a", id), "explore", { money })],
  ["extendHold", (tree, money, id) => tree.ledger.extendHold(at("a", "h"), { money }, id)],
  ["move", (tree, money, id) => tree.ledger.move("a", "explore", "output", { money }, id)],
  ["topUp", (tree, money, id) => tree.ledger.topUp("a", { money }, id)],
  ["reclaim", (tree, money, id) => tree.ledger.reclaim("a", { money }, id)],
  ["carve", (tree, money, id) => child(tree, "a", id, { money })],
  [
    "carveAll",
    (tree, money, id) =>
      tree.ledger.carveAll("a", [{ id, name: id, floor: { money }, most: { money }, charge: {} }])[0]!,
  ],
]
const amend: Run = (tree, money, id) => tree.ledger.amend({ money: 40 + money }, id)

describe.each([...operations, ["amend", amend] as const])("%s", (_, run) => {
  it("delivered twice is applied once and answered the same, at once and later", () => {
    const tree = ready()
    const first = run(tree, 2, "x")
    ok(first)
    answeredAgain(tree, first, () => run(tree, 2, "x"))
    ok(tree.ledger.hold(at("root", "other"), "explore", { money: 1 }))
    answeredAgain(tree, first, () => run(tree, 2, "x"))
    assert.deepStrictEqual(violations(tree.ledger), [])
  })

  it("with other content under the same id is refused, and the first answer stays", () => {
    const tree = ready()
    const first = run(tree, 2, "x")
    const reason = refusedWithoutTrace(tree, () => run(tree, 1, "x"))
    assert.deepStrictEqual(reason, { _tag: "IdConflict", id: "x" })
    answeredAgain(tree, first, () => run(tree, 2, "x"))
  })

  it("under another id is another one", () => {
    const tree = ready()
    ok(run(tree, 2, "x"))
    const after = tree.entries.length
    ok(run(tree, 1, "y"))
    assert.isAbove(tree.entries.length, after)
  })
})

describe.each(operations)("a refused %s", (_, run) => {
  it("stays refused, also when it would be accepted by now, and is written down once", () => {
    const tree = ready()
    ok(tree.ledger.pause("root", "approval"))
    const first = run(tree, 2, "x")
    assert.include(refusal(first), { _tag: "NotOpen", state: "paused" })
    ok(tree.ledger.resume("root"))
    answeredAgain(tree, first, () => run(tree, 2, "x"))
    assert.strictEqual(refusedWithoutTrace(tree, () => run(tree, 1, "x"))._tag, "IdConflict")
    answeredAgain(tree, first, () => run(tree, 2, "x"))
    ok(run(tree, 2, "y"))
  })
})

describe("an operation on a hold", () => {
  const resolve: ReadonlyArray<readonly [name: string, run: (tree: Tree) => Result.Result<unknown, Refusal>]> = [
    ["settle", (tree) => tree.ledger.settle(at("a", "h"), { money: 1 })],
    ["settle above the hold", (tree) => tree.ledger.settle(at("a", "h"), { money: 50 })],
    ["void", (tree) => tree.ledger.void(at("a", "h"))],
    ["assume", (tree) => tree.ledger.assume(at("a", "h"))],
    ["adjust", (tree) => tree.ledger.adjust(at("a", "u"), { money: 1 })],
    ["adjust above the hold", (tree) => tree.ledger.adjust(at("a", "u"), { money: 50 })],
  ]

  it.each(resolve)("(%s) delivered twice is applied once and answered the same", (_, run) => {
    const tree = ready()
    const first = run(tree)
    ok(first)
    answeredAgain(tree, first, () => run(tree))
    ok(tree.ledger.amend({ money: 50 }))
    answeredAgain(tree, first, () => run(tree))
    assert.deepStrictEqual(violations(tree.ledger), [])
  })

  it("is the same bill when a dimension of 0 is named or left out", () => {
    const tree = ready()
    const first = tree.ledger.settle(at("a", "h"), { money: 1 })
    answeredAgain(tree, first, () => tree.ledger.settle(at("a", "h"), { money: 1, steps: 0, ticks: -0 }))
    const adjusted = tree.ledger.adjust(at("a", "u"), { money: 1 })
    answeredAgain(tree, adjusted, () => tree.ledger.adjust(at("a", "u"), { money: 1, steps: 0 }))
  })

  it("is still known by what it was placed with after it was extended", () => {
    const tree = ready()
    const extended = tree.ledger.extendHold(at("a", "h"), { money: 2 })
    assert.strictEqual(ok(extended).amounts.money, 6)
    answeredAgain(tree, extended, () => tree.ledger.hold(at("a", "h"), "explore", { money: 4 }))
    const reason = refusedWithoutTrace(tree, () => tree.ledger.hold(at("a", "h"), "explore", { money: 6 }))
    assert.strictEqual(reason._tag, "IdConflict")
  })

  it("that assumed it is answered also after the assumption was corrected", () => {
    const tree = ready()
    const adjusted = tree.ledger.adjust(at("a", "u"), { money: 1 })
    answeredAgain(tree, adjusted, () => tree.ledger.assume(at("a", "u")))
  })

  it("is not settled by the bill that corrected it", () => {
    const tree = ready()
    ok(tree.ledger.adjust(at("a", "u"), { money: 1 }))
    const reason = refusedWithoutTrace(tree, () => tree.ledger.settle(at("a", "u"), { money: 1 }))
    assert.deepStrictEqual(reason, { _tag: "AlreadyResolved", id: "u", state: "Adjusted" })
  })

  it("that extends it is answered also after it was settled", () => {
    const tree = ready()
    const extended = tree.ledger.extendHold(at("a", "h"), { money: 2 }, "x")
    ok(tree.ledger.settle(at("a", "h"), { money: 6 }))
    answeredAgain(tree, extended, () => tree.ledger.extendHold(at("a", "h"), { money: 2 }, "x"))
    assert.strictEqual(tag(tree.ledger.extendHold(at("a", "h"), { money: 2 }, "y")), "AlreadyResolved")
  })
})

describe("an id", () => {
  it("belongs to one account: another has its own", () => {
    const tree = ready()
    ok(child(tree, "root", "c", { money: 5 }))
    ok(tree.ledger.topUp("a", { money: 1 }, "x"))
    ok(tree.ledger.topUp("c", { money: 2 }, "x"))
    ok(tree.ledger.move("root", "explore", "output", { money: 1 }, "x"))
  })

  it("used for one operation is refused for another on the same account", () => {
    const tree = ready()
    ok(tree.ledger.topUp("a", { money: 1 }, "x"))
    for (const run of [
      () => tree.ledger.reclaim("a", { money: 1 }, "x"),
      () => tree.ledger.move("a", "explore", "output", { money: 1 }, "x"),
      () => tree.ledger.extendHold(at("a", "h"), { money: 1 }, "x"),
    ])
      assert.deepStrictEqual(refusedWithoutTrace<unknown>(tree, run), { _tag: "IdConflict", id: "x" })
  })

  it("of a hold and that of a child or another operation do not hinder each other", () => {
    const tree = ready()
    const held = tree.ledger.hold(at("a", "x"), "explore", { money: 1 })
    assert.strictEqual(tag(child(tree, "a", "x", { money: 99 })), "Insufficient")
    ok(tree.ledger.move("a", "explore", "output", { money: 1 }, "x"))
    answeredAgain(tree, held, () => tree.ledger.hold(at("a", "x"), "explore", { money: 1 }))
  })

  it("left out makes each delivery a new operation", () => {
    const tree = ready()
    for (const run of [
      () => tree.ledger.topUp("a", { money: 2 }),
      () => tree.ledger.reclaim("a", { money: 1 }),
      () => tree.ledger.move("a", "explore", "output", { money: 1 }),
      () => tree.ledger.extendHold(at("a", "h"), { money: 1 }),
    ])
      for (let n = 0; n < 2; n++) ok<unknown>(run())
    // 13 free; up 4, back 2, moved 2, held 2 more
    assert.deepStrictEqual(left(tree, "a", "money"), { explore: 11, retry: 0, verify: 0, output: 2 })
    assert.strictEqual(left(tree, "root", "money").explore, 18)
  })
})

describe("a batch", () => {
  const one = (id: string, money: number) => ({ id, name: id, floor: { money }, charge: {} })
  const wishes = [one("b", 6), one("c", 6), one("d", 6)]

  it("delivered twice is carved once, and who was refused stays refused though it would fit", () => {
    const tree = ready()
    const deliver = () => tree.ledger.carveAll("a", wishes)
    const first = deliver()
    assert.deepStrictEqual(first.map(tag), ["accepted", "accepted", "Insufficient"])
    const again = () => wishes.map((_, n) => () => deliver()[n]!)
    again().forEach((run, n) => answeredAgain(tree, first[n]!, run))
    ok(tree.ledger.topUp("a", { money: 20 }))
    again().forEach((run, n) => answeredAgain(tree, first[n]!, run))
  })

  it("with one more gives what is left to that one alone", () => {
    const tree = ready()
    for (const result of tree.ledger.carveAll("a", wishes.slice(0, 2))) ok(result)
    ok(tree.ledger.topUp("a", { money: 4 }))
    const all = tree.ledger.carveAll("a", [...wishes.slice(0, 2), one("e", 5)])
    assert.deepStrictEqual(all.map(tag), ["accepted", "accepted", "accepted"])
    // 13 were free: 6 each, and 1 and 4 for the third
    assert.strictEqual(tree.ledger.account("e").funds.explore.allocated.money, 5)
    assert.deepStrictEqual(violations(tree.ledger), [])
  })

  it("may be closed in between: its children are answered as they are", () => {
    const tree = ready()
    for (const result of tree.ledger.carveAll("a", wishes.slice(0, 2))) ok(result)
    const closed = tree.ledger.close("b")
    answeredAgain(tree, closed, () => tree.ledger.carveAll("a", wishes.slice(0, 2))[0]!)
  })

  it("asks for a child that was carved otherwise: that one is refused", () => {
    const tree = ready()
    ok(child(tree, "a", "b", { money: 6 }))
    const results = tree.ledger.carveAll("a", [one("b", 6), one("c", 7)])
    assert.deepStrictEqual(results.map(tag), ["IdConflict", "accepted"])
    assert.strictEqual(tree.ledger.account("c").funds.explore.allocated.money, 7)
    assert.strictEqual(shortages(child(tree, "a", "f", { money: 1 }))[0]!.available, 0)
  })
})
