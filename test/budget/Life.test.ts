import { assert, describe, it } from "@effect/vitest"
import * as Accounts from "../../src/budget/Account.ts"
import { reserves } from "../../src/budget/Reserve.ts"
import { violations } from "../../src/budget/Statement.ts"
import { child, kept, left, ok, open, refusedWithoutTrace, shortages, tag, type Tree } from "./tree.ts"

const at = (account: string, id = "h") => ({ account, id })
const tens = { reserves: kept("money", { output: 10, verify: 10, retry: 10 }) }
const even = { explore: 10, retry: 10, verify: 10, output: 10 }

/** root, in it a, in it b, with 10 of money in every reserve. */
const line = (): Tree => {
  const tree = open({ money: 110 }, { reserves: kept("money", { output: 10, verify: 10, retry: 10 }) })
  ok(child(tree, "root", "a", { money: 70 }, { reserves: kept("money", { output: 10, verify: 10, retry: 10 }) }))
  ok(child(tree, "a", "b", { money: 30 }, { reserves: kept("money", { output: 10, verify: 10 }) }))
  return tree
}

describe("a move", () => {
  const pairs = reserves.flatMap((from) => reserves.map((to) => [from, to] as const))
  const senior = (from: string, to: string) => reserves.indexOf(to as never) > reserves.indexOf(from as never)

  it.each(pairs.filter(([from, to]) => senior(from, to)))("from %s to %s gives exactly what is free", (from, to) => {
    const tree = open({ money: 40 }, tens)
    ok(tree.ledger.move("root", from, to, { money: 4 }))
    assert.deepStrictEqual(left(tree, "root", "money"), { ...even, [from]: 6, [to]: 14 })
    const reason = refusedWithoutTrace(tree, () => tree.ledger.move("root", from, to, { money: 7 }))
    assert.deepStrictEqual(reason, {
      _tag: "Insufficient",
      shortages: [{ dimension: "money", reserve: from, asked: 7, available: 6, account: "root", whose: "own" }],
    })
    ok(tree.ledger.move("root", from, to, { money: 6 }))
    assert.deepStrictEqual(violations(tree.ledger), [])
  })

  it.each(pairs.filter(([from, to]) => !senior(from, to)))("from %s to %s is refused: never downward", (from, to) => {
    const tree = open({ money: 40 }, tens)
    const reason = refusedWithoutTrace(tree, () => tree.ledger.move("root", from, to, { money: 1 }))
    assert.include(reason, { _tag: "InvalidAmount", field: "move.to", value: `"${to}"` })
  })

  it("leaves dimensions without a cap alone", () => {
    const tree = open({ money: 40 }, tens)
    ok(tree.ledger.move("root", "explore", "output", { money: 1, steps: 5 }))
    assert.strictEqual(tree.ledger.root.funds.output.allocated.steps, 0)
  })
})

describe("an amended cap", () => {
  it("is raised at once, into explore", () => {
    const tree = open({ money: 40 }, tens)
    ok(tree.ledger.amend({ money: 45 }))
    assert.deepStrictEqual(left(tree, "root", "money"), { ...even, explore: 15 })
  })

  it("is lowered to no less than what is used, held, carved or kept, and what was wanted is written down", () => {
    const tree = open({ money: 40 }, tens)
    ok(child(tree, "root", "a", { money: 3 }))
    ok(tree.ledger.hold(at("root"), "explore", { money: 2 }))
    ok(tree.ledger.hold(at("root", "i"), "explore", { money: 1 }))
    ok(tree.ledger.assume(at("root", "i")))
    ok(tree.ledger.amend({ money: 38 }))
    assert.strictEqual(left(tree, "root", "money").explore, 2)
    ok(tree.ledger.amend({ money: 0 }))
    assert.deepStrictEqual(left(tree, "root", "money"), { ...even, explore: 0 })
    assert.strictEqual(Accounts.granted(tree.ledger.root).money, 36)
    assert.deepInclude(tree.entries.at(-1), { _tag: "Amended", to: { money: 36 }, wanted: { money: 0 } })
    assert.deepStrictEqual(violations(tree.ledger), [])
  })

  it("leaves a dimension that is not named as it is", () => {
    const tree = open({ money: 40, steps: 5 })
    ok(tree.ledger.amend({ steps: 6 }))
    assert.strictEqual(Accounts.granted(tree.ledger.root).money, 40)
  })

  it("is refused where there was none: a cap that is not kept would be a lie", () => {
    const tree = open({ money: 40 })
    const reason = refusedWithoutTrace(tree, () => tree.ledger.amend({ money: 50, steps: 5 }))
    assert.include(reason, { _tag: "InvalidAmount", field: "amend.steps", value: "5" })
  })

  it("is refused after the end", () => {
    const tree = open({ money: 40 })
    ok(tree.ledger.close("root"))
    assert.strictEqual(refusedWithoutTrace(tree, () => tree.ledger.amend({ money: 50 }))._tag, "NotOpen")
  })
})

describe("a freeze", () => {
  it("ends all new work in an account and below, and nowhere else", () => {
    const tree = line()
    ok(child(tree, "root", "c", { money: 5 }))
    tree.ledger.freeze("a", "cancelled")
    for (const account of ["a", "b"]) {
      for (const reserve of reserves) {
        const reason = refusedWithoutTrace(tree, () => tree.ledger.hold(at(account, reserve), reserve, { money: 1 }))
        assert.include(reason, { _tag: "NotOpen", state: "draining", cause: "cancelled" })
      }
      for (const reserve of ["explore", "retry", "verify"] as const) {
        const id = `new ${reserve}`
        const reason = refusedWithoutTrace(tree, () => child(tree, account, id, { money: 1 }, { reserve }))
        assert.include(reason, { _tag: "NotOpen", cause: "cancelled" })
      }
      const move = () => tree.ledger.move(account, "explore", "output", { money: 1 })
      assert.include(refusedWithoutTrace(tree, move), { _tag: "NotOpen" })
    }
    ok(tree.ledger.hold(at("root"), "explore", { money: 1 }))
    ok(tree.ledger.hold(at("c"), "explore", { money: 1 }))
  })

  it("with closing work allows the verification and the wrap-up, but no work, child or move", () => {
    const tree = line()
    tree.ledger.freeze("a", "deadline", { closingWork: true })
    for (const account of ["a", "b"]) {
      for (const reserve of ["explore", "retry"] as const) {
        const reason = refusedWithoutTrace(tree, () => tree.ledger.hold(at(account, reserve), reserve, { money: 1 }))
        assert.include(reason, { _tag: "NotOpen", state: "frozen", cause: "deadline" })
      }
      ok(tree.ledger.hold(at(account, "v"), "verify", { money: 1 }))
      ok(tree.ledger.hold(at(account, "o"), "output", { money: 1 }))
      for (const reserve of ["explore", "retry", "verify"] as const) {
        const id = `new ${reserve}`
        const reason = refusedWithoutTrace(tree, () => child(tree, account, id, { money: 1 }, { reserve }))
        assert.include(reason, { _tag: "NotOpen", state: "frozen" })
      }
      const move = () => tree.ledger.move(account, "explore", "output", { money: 1 })
      assert.include(refusedWithoutTrace(tree, move), { _tag: "NotOpen" })
    }
  })

  it("lets what is in flight be resolved and the accounts close, leaves first", () => {
    const tree = line()
    for (const account of ["a", "b"]) ok(tree.ledger.hold(at(account), "explore", { money: 2 }))
    tree.ledger.freeze("root", "cancelled")
    ok(tree.ledger.settle(at("a"), { money: 1 }))
    ok(tree.ledger.assume(at("b")))
    for (const account of ["b", "a", "root"]) ok(tree.ledger.close(account))
    assert.strictEqual(Accounts.used(tree.ledger.root).money, 3)
  })

  it("keeps the first cause of each account, and writes a later one down", () => {
    const tree = line()
    tree.ledger.freeze("b", "own")
    tree.ledger.freeze("a", "deadline", { closingWork: true })
    tree.ledger.freeze("root", "cancelled")
    tree.ledger.freeze("root", "too late")
    const causes = ["root", "a", "b"].map((id) => tree.ledger.account(id).cause)
    assert.deepStrictEqual(causes, ["cancelled", "deadline", "own"])
    for (const id of ["root", "a", "b"]) assert.strictEqual(tree.ledger.account(id).state, "Draining")
    const written = tree.entries.flatMap((entry) => (entry._tag === "Frozen" ? [entry.cause] : []))
    assert.deepStrictEqual(written, ["own", "deadline", "cancelled", "too late"])
  })

  it("is not undone by one that allows closing work", () => {
    const tree = line()
    tree.ledger.freeze("a", "cancelled")
    tree.ledger.freeze("a", "deadline", { closingWork: true })
    assert.strictEqual(tree.ledger.account("a").state, "Draining")
    assert.strictEqual(tag(tree.ledger.hold(at("a"), "output", { money: 1 })), "NotOpen")
  })

  it("leaves a closed account alone", () => {
    const tree = line()
    ok(tree.ledger.close("b"))
    tree.ledger.freeze("b", "cancelled")
    assert.strictEqual(tree.ledger.account("b").state, "Closed")
  })
})

describe("a pause", () => {
  it("stops every hold, carve and move in an account and below, and says why", () => {
    const tree = line()
    ok(tree.ledger.pause("a", "approval"))
    for (const account of ["a", "b"]) {
      for (const reserve of reserves) {
        const reason = refusedWithoutTrace(tree, () => tree.ledger.hold(at(account, reserve), reserve, { money: 1 }))
        assert.include(reason, { _tag: "NotOpen", state: "paused", cause: "approval" })
      }
      assert.strictEqual(refusedWithoutTrace(tree, () => child(tree, account, "n", {}))._tag, "NotOpen")
      const move = () => tree.ledger.move(account, "explore", "output", { money: 1 })
      assert.strictEqual(refusedWithoutTrace(tree, move)._tag, "NotOpen")
    }
    ok(tree.ledger.hold(at("root"), "explore", { money: 1 }))
    ok(tree.ledger.resume("a"))
    for (const account of ["a", "b"]) ok(tree.ledger.hold(at(account), "explore", { money: 1 }))
  })

  it("lets what is in flight be resolved", () => {
    const tree = line()
    ok(tree.ledger.hold(at("b"), "explore", { money: 3 }))
    ok(tree.ledger.pause("root", "event"))
    ok(tree.ledger.settle(at("b"), { money: 1 }))
    ok(tree.ledger.close("b"))
  })

  it("of a part ends only with its own resume, not with that of the whole", () => {
    const tree = line()
    ok(tree.ledger.pause("b", "approval"))
    ok(tree.ledger.pause("root", "event"))
    ok(tree.ledger.resume("root"))
    assert.strictEqual(tree.ledger.account("a").state, "Open")
    assert.include(
      refusedWithoutTrace(tree, () => tree.ledger.hold(at("b"), "explore", { money: 1 })),
      {
        cause: "approval",
      },
    )
    ok(tree.ledger.resume("b"))
    ok(tree.ledger.hold(at("b", "i"), "explore", { money: 1 }))
  })

  it("of the whole holds back the resume of a part", () => {
    const tree = line()
    ok(tree.ledger.pause("b", "approval"))
    ok(tree.ledger.pause("root", "event"))
    const reason = refusedWithoutTrace(tree, () => tree.ledger.resume("b"))
    assert.include(reason, { _tag: "NotOpen", account: "root/a", state: "paused", cause: "event" })
    assert.strictEqual(tag(tree.ledger.hold(at("b"), "explore", { money: 1 })), "NotOpen")
  })

  it("is refused where work has ended, and a resume where nothing paused", () => {
    const tree = line()
    assert.strictEqual(refusedWithoutTrace(tree, () => tree.ledger.resume("a"))._tag, "NotOpen")
    ok(tree.ledger.pause("root", "event"))
    assert.strictEqual(refusedWithoutTrace(tree, () => tree.ledger.pause("root", "event"))._tag, "NotOpen")
    assert.strictEqual(refusedWithoutTrace(tree, () => tree.ledger.resume("a"))._tag, "NotOpen")
    tree.ledger.freeze("root", "cancelled")
    assert.strictEqual(refusedWithoutTrace(tree, () => tree.ledger.resume("root"))._tag, "NotOpen")
    assert.strictEqual(refusedWithoutTrace(tree, () => tree.ledger.pause("a", "event"))._tag, "NotOpen")
  })

  it("gives way to a freeze, whose cause it then has", () => {
    const tree = line()
    ok(tree.ledger.pause("a", "approval"))
    tree.ledger.freeze("root", "cancelled")
    assert.include(tree.ledger.account("b"), { state: "Draining", cause: "cancelled" })
  })
})

describe("what a hold could take at most", () => {
  it("is exactly what is accepted", () => {
    for (const reserve of reserves) {
      const most = line().ledger.reachable("a", reserve)
      assert.deepStrictEqual(most, { money: reserve === "explore" ? 10 : 20 })
      ok(line().ledger.hold(at("a"), reserve, most))
      const more = { money: most.money! + 1 }
      assert.strictEqual(shortages(line().ledger.hold(at("a"), reserve, more))[0]!.available, most.money)
    }
  })
})
