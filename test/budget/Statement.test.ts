import { assert, describe, it } from "@effect/vitest"
import { add, amounts, zero } from "../../src/budget/Dimension.ts"
import { imbalances, statement } from "../../src/budget/Statement.ts"
import { child, ok, open } from "./tree.ts"

/** A closed child that used 3 and whose own child used 2, an open one, and 1 used by the root. */
const books = () => {
  const tree = open({ money: 20 })
  ok(child(tree, "root", "a", { money: 10 }, { charge: { money: 1 } }))
  ok(child(tree, "root", "c", { money: 4 }))
  ok(child(tree, "a", "b", { money: 5 }))
  for (const [account, money] of [
    ["b", 2],
    ["a", 3],
  ] as const) {
    ok(tree.ledger.hold({ account, id: "h" }, "explore", { money }))
    ok(tree.ledger.assume({ account, id: "h" }))
    ok(tree.ledger.close(account))
  }
  return tree
}

describe("a statement", () => {
  it("lists parents before their children, each with what it was given, used itself, used below and left", () => {
    const rows = statement(books().ledger)
    assert.deepStrictEqual(
      rows.map((row) => [row.path, row.state, row.granted.money, row.own.money, row.children.money, row.left.money]),
      [
        ["root", "Open", 20, 1, 5, 10],
        ["root/a", "Closed", 10, 3, 2, 5],
        ["root/a/b", "Closed", 5, 2, 0, 3],
        ["root/c", "Open", 4, 0, 0, 4],
      ],
    )
  })

  it("balances once every account below the root is closed", () => {
    const tree = books()
    ok(tree.ledger.close("c"))
    assert.deepStrictEqual(imbalances(statement(tree.ledger)), [])
    ok(tree.ledger.close("root"))
    assert.deepStrictEqual(imbalances(statement(tree.ledger)), [])
  })

  it("names the row, the dimension and the numbers that do not balance", () => {
    const tree = books()
    ok(tree.ledger.close("c"))
    const rows = statement(tree.ledger).map((row) =>
      row.account === "a" ? { ...row, own: add(row.own, amounts({ money: 1 })) } : row,
    )
    assert.deepStrictEqual(imbalances(rows), [
      "root: money: granted 20 is not own use of all + left = 21",
      "root/a: money: granted 10 is not own + children + returned = 11",
    ])
  })

  it("shows nothing as granted or left where there is no cap, but counts the use", () => {
    const tree = open({})
    ok(tree.ledger.hold({ account: "root", id: "h" }, "explore", { money: 7 }))
    ok(tree.ledger.assume({ account: "root", id: "h" }))
    const row = statement(tree.ledger)[0]!
    assert.deepStrictEqual([row.granted, row.left, row.own], [zero, zero, amounts({ money: 7 })])
    assert.isFalse(row.capped.money)
  })
})
