/**
 * One tree from its journal at a time: what each kind of entry needs to come back whole.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Entry } from "../../src/budget/Entry.ts"
import { Budget } from "../../src/index.ts"
import { checkAlike, checkNow, fromJson, restored, together } from "./restoring.ts"
import { child, kept, left, ok, open, tag, type Tree } from "./tree.ts"

const at = (account: string, id: string) => ({ account, id })

const agent = { window: { _tag: "Agent", verifier: true }, wallClockMillis: 1000 } as const

const copyOf = (tree: Tree): Tree => restored(fromJson(tree.entries), tree.clock.millis)

describe("a tree from its journal", () => {
  it("stands still where a child and then the root were paused, and goes on with the time that was left", () => {
    const world = together(open({ money: 40 }, agent))
    const wait = (millis: number) => world.each((tree) => (tree.clock.millis += millis))
    world.each((tree) => ok(child(tree, "root", "a", { money: 20 })))
    wait(100)
    world.each((tree) => ok(tree.ledger.pause("a", "approval")))
    wait(50)
    world.each((tree) => ok(tree.ledger.pause("root", "event")))
    wait(30)
    world.split()
    wait(20)
    world.each((tree) => tag(tree.ledger.resume("a")))
    world.each((tree) => ok(tree.ledger.resume("root")))
    world.each((tree) => ok(tree.ledger.resume("a")))
    world.check()
    // 600 for exploring, of which 150 were over when the root stood still for 50
    world.each((tree) => assert.strictEqual(tree.ledger.leftMillis("root", "explore"), 450))
    world.each((tree) => assert.strictEqual(tree.ledger.leftMillis("a", "explore"), 450))
  })

  it("has the times it had, long after they have passed", () => {
    const tree = open({ money: 40 }, agent)
    tree.clock.millis = 300
    ok(child(tree, "root", "a", { money: 20 }, agent))
    tree.clock.millis = 500
    ok(child(tree, "root", "b", { money: 5 }, { wallClockMillis: 60 }))
    tree.clock.millis = 559
    ok(tree.ledger.hold(at("b", "h"), "explore", { money: 1 }))
    ok(tree.ledger.extendHold(at("b", "h"), { money: 1 }))
    tree.clock.millis = 9000
    const copy = copyOf(tree)
    checkAlike(tree, copy)
    assert.deepStrictEqual(copy.ledger.account("b").window?.deadlineMillis, 560)
    assert.strictEqual(tag(copy.ledger.hold(at("b", "i"), "explore", { money: 1 })), "DeadlinePassed")
    ok(copy.ledger.settle(at("b", "h"), { money: 2 }))
  })

  it("has the times it had, on a clock that ticks whenever it is read, and not in whole milliseconds", () => {
    let millis = 0.1
    const entries: Array<Entry> = []
    const nowMillis = () => (millis += 0.3)
    const ledger = ok(
      Budget.Ledger.openRoot({
        id: "root",
        name: "root",
        grant: { money: 40 },
        ...agent,
        nowMillis,
        record: (entry) => void entries.push(entry),
      }),
    )
    const tree: Tree = { ledger, entries, clock: { millis: 0 } }
    for (const [parent, id] of [
      ["root", "a"],
      ["a", "b"],
      ["root", "c"],
    ] as const)
      ok(child(tree, parent, id, { money: 8 }, agent))
    ok(ledger.pause("root", "event"))
    ok(ledger.resume("root"))
    ok(ledger.pause("root", "event"))
    ledger.freeze("a", "deadline", { closingWork: true })
    assert.deepStrictEqual(restored(fromJson(entries)).ledger.accounts, ledger.accounts)
    const [a, b] = ["a", "b"].map((id) => ledger.account(id).window!)
    assert.strictEqual(a!.exploreEndMillis - b!.exploreEndMillis > 0, true)
    ok(ledger.resume("root"))
    assert.deepStrictEqual(restored(fromJson(entries)).ledger.accounts, ledger.accounts)
  })

  it("owes what it owed, and pays it first", () => {
    const world = together(open({ money: 40 }, { reserves: kept("money", { output: 10 }) }))
    world.each((tree) => ok(child(tree, "root", "a", { money: 20 }, { reserves: kept("money", { verify: 5 }) })))
    world.each((tree) => ok(tree.ledger.hold(at("a", "h"), "explore", { money: 15 })))
    world.each((tree) => ok(tree.ledger.hold(at("root", "h"), "explore", { money: 8 })))
    // 5 of verify, 2 of the root's explore, 10 of its output; 3 are owed
    world.each((tree) => ok(tree.ledger.settle(at("a", "h"), { money: 35 })))
    world.split()
    world.each((tree) => assert.strictEqual(tree.ledger.account("a").debt.money, 3))
    world.each((tree) => ok(tree.ledger.settle(at("root", "h"), { money: 6 })))
    world.each((tree) => assert.strictEqual(tree.ledger.account("a").debt.money, 1))
    world.each((tree) => ok(tree.ledger.amend({ money: 45 })))
    world.each((tree) => assert.strictEqual(tree.entries.at(-1)?._tag, "DebtPaid"))
    world.each((tree) => ok(tree.ledger.close("a")))
    world.check()
  })

  it("holds what was pending, with what it was extended by and what that borrowed", () => {
    const world = together(open({ money: 40 }, { reserves: kept("money", { verify: 5 }) }))
    world.each((tree) => ok(tree.ledger.hold(at("root", "h"), "verify", { money: 4 })))
    world.each((tree) => ok(tree.ledger.extendHold(at("root", "h"), { money: 3 }, "x")))
    world.each((tree) =>
      assert.deepInclude(tree.entries.at(-1), { _tag: "Extended", amounts: { money: 3 }, moved: { money: 2 } }),
    )
    world.split()
    world.each((tree) => {
      assert.deepStrictEqual(
        tree.ledger.pendingHolds().map(({ amounts, extended, id }) => [id, amounts.money, extended?.money]),
        [["h", 7, 3]],
      )
      assert.deepStrictEqual(left(tree, "root", "money"), { explore: 33, retry: 0, verify: 0, output: 0 })
    })
    // Delivered again, both are answered as before.
    world.each((tree) => ok(tree.ledger.hold(at("root", "h"), "verify", { money: 4 })))
    world.each((tree) => ok(tree.ledger.extendHold(at("root", "h"), { money: 3 }, "x")))
    world.each((tree) => tag(tree.ledger.extendHold(at("root", "h"), { money: 4 }, "x")))
    world.each((tree) => ok(tree.ledger.settle(at("root", "h"), { money: 7 })))
    world.check()
  })

  it("lists the pending holds of the whole tree, parents first", () => {
    const tree = open({ money: 40 })
    ok(child(tree, "root", "a", { money: 20 }))
    ok(tree.ledger.hold(at("a", "1"), "explore", { money: 1 }))
    ok(tree.ledger.hold(at("root", "2"), "explore", { money: 1 }))
    ok(tree.ledger.hold(at("a", "3"), "explore", { money: 1 }))
    ok(tree.ledger.settle(at("a", "1"), { money: 1 }))
    const ids = ({ ledger }: Tree) => ledger.pendingHolds().map(({ id }) => id)
    assert.deepStrictEqual(
      [ids(tree), ids(copyOf(tree))],
      [
        ["2", "3"],
        ["2", "3"],
      ],
    )
  })

  it("lets exploring use no more than it might", () => {
    const exploreAtMost = { steps: 50, money: 0 }
    const world = together(open({ steps: 20, money: 9 }, { reserves: { _tag: "Explicit", exploreAtMost } }))
    const reserves = { _tag: "Explicit", exploreAtMost: { steps: 40 } } as const
    world.each((tree) => ok(child(tree, "root", "a", { steps: 10, money: 0 }, { reserves })))
    world.split()
    for (const steps of [5, 4]) world.each((tree) => tag(tree.ledger.hold(at("a", `${steps}`), "explore", { steps })))
    world.each((tree) => assert.deepStrictEqual(tree.ledger.reachable("a", "explore"), { steps: 0, money: 0 }))
    world.each((tree) => assert.deepStrictEqual(tree.ledger.reachable("root", "explore"), { steps: 0, money: 0 }))
  })

  it("has no cap where it had none", () => {
    const world = together(open({ steps: 20 }))
    world.each((tree) => ok(child(tree, "root", "a", { steps: 5, money: 0 })))
    world.each((tree) => ok(child(tree, "root", "b", { steps: 5, money: 7 })))
    world.each((tree) => ok(child(tree, "root", "c", { steps: 5 })))
    world.each((tree) => ok(tree.ledger.hold(at("c", "h"), "explore", { money: 100 })))
    world.split()
    world.each((tree) => ["a", "b", "c"].map((id) => tag(tree.ledger.hold(at(id, "i"), "explore", { money: 7 }))))
  })

  it("keeps the limits it was opened with", () => {
    const world = together(open({ money: 40 }, { limits: { maxDepth: 1, maxOpenChildren: 1 } }))
    world.each((tree) => ok(child(tree, "root", "a", { money: 20 })))
    world.split()
    world.each((tree) => assert.strictEqual(tag(child(tree, "root", "b", { money: 1 })), "TooManyChildren"))
    world.each((tree) => assert.strictEqual(tag(child(tree, "a", "c", { money: 1 })), "TooDeep"))
  })

  it("gives out no id again: not of a child, a call, or one that was refused", () => {
    const tree = open({ money: 40 })
    const { ledger } = tree
    const carve = (money: number) => tag(child(tree, "root", ledger.freshId("root", "kid"), { money }))
    assert.deepStrictEqual([carve(10), carve(10), carve(90)], ["accepted", "accepted", "Insufficient"])
    ok(ledger.hold(at("root/kid-1", ledger.freshId("root/kid-1", "call")), "explore", { money: 1 }))
    ok(ledger.topUp("root/kid-1", { money: 1 }, ledger.freshId("root/kid-1", "more")))
    const copy = copyOf(tree).ledger
    assert.strictEqual(copy.freshId("root", "kid"), "root/kid-4")
    assert.strictEqual(copy.freshId("root/kid-1", "call"), "root/kid-1/call-2")
    assert.strictEqual(copy.freshId("root/kid-1", "more"), "root/kid-1/more-2")
    assert.strictEqual(copy.freshId("root/kid-1", "kid"), "root/kid-1/kid-1")
  })

  it("keeps refusing what it refused, and answers a child that was carved, whatever the order of what was asked", () => {
    const world = together(open({ money: 40 }))
    world.each((tree) => tag(child(tree, "root", "large", { money: 41 })))
    world.each((tree) => ok(child(tree, "root", "a", { money: 10 }, { charge: { toolCalls: 1 } })))
    world.split()
    world.each((tree) => ok(tree.ledger.amend({ money: 90 })))
    world.each((tree) => assert.strictEqual(tag(child(tree, "root", "large", { money: 41 })), "Insufficient"))
    world.each((tree) => assert.strictEqual(tag(child(tree, "root", "large", { money: 1 })), "IdConflict"))
    world.each(({ ledger }) => {
      const charge = { toolCalls: 1 }
      const ask = { grant: { money: 10 }, _tag: "Exactly" } as const
      ok(ledger.carve("root", { charge, ask, name: "a", id: "a" }))
      assert.strictEqual(tag(ledger.carve("root", { ask, name: "a", id: "a" })), "IdConflict")
    })
  })
})

describe("a line, after a restore", () => {
  /** Two that wait, and one that could return something. */
  const waiting = () => {
    const tree = open({ money: 50 })
    for (const id of ["a", "b", "c"]) ok(child(tree, "root", id, { money: 15 }))
    const ends: Array<string> = []
    for (const [id, money] of [
      ["a", 40],
      ["b", 10],
    ] as const)
      tree.ledger.wait(id, { need: { money }, least: { money } }, (ended) => void ends.push(`${id} ${ended._tag}`))
    assert.deepStrictEqual(ends, [])
    return tree
  }

  it("is empty: nobody waits any more, which is written down", () => {
    const tree = waiting()
    const copy = copyOf(tree)
    assert.deepStrictEqual(
      copy.entries.slice(tree.entries.length).map((entry) => [entry._tag, "account" in entry && entry.account]),
      [
        ["Refused", "b"],
        ["Refused", "a"],
      ],
    )
    for (const id of ["a", "b"]) assert.isFalse(copy.ledger.isWaiting(id))
    ok(copy.ledger.close("c"))
    assert.strictEqual(copy.entries.at(-1)?._tag, "Closed")
    assert.deepStrictEqual(Budget.violations(copy.ledger), [])
    // What went on is one journal.
    checkNow(copy)
  })

  it.each([
    ["a sibling that closes, and both are served", (tree: Tree) => ok(tree.ledger.close("c"))],
    ["one who closes", (tree: Tree) => ok(tree.ledger.close("a"))],
    ["one who leaves", (tree: Tree) => tree.ledger.leaveLine("a")],
    ["one who is frozen", (tree: Tree) => tree.ledger.freeze("a", "cancelled")],
    ["a freeze of all", (tree: Tree) => tree.ledger.freeze("root", "cancelled")],
    ["the sweep of all", (tree: Tree) => tree.ledger.sweep("root", "gone")],
    [
      "one whose hope ends",
      (tree: Tree) =>
        void (
          ok(tree.ledger.hold(at("c", "h"), "explore", { money: 15 })),
          ok(tree.ledger.settle(at("c", "h"), { money: 15 }))
        ),
    ],
  ])("is what it was after %s", (_, act) => {
    const tree = waiting()
    act(tree)
    assert.isFalse(tree.ledger.isWaiting("a"))
    checkNow(tree)
    checkNow(copyOf(tree))
  })

  it("can go on to wait", () => {
    const copy = copyOf(waiting())
    copy.ledger.wait("a", { need: { money: 40 }, least: { money: 40 } }, () => {})
    assert.isTrue(copy.ledger.isWaiting("a"))
    ok(copy.ledger.close("c"))
    assert.deepInclude(copy.entries.at(-1), { _tag: "Served", account: "a", amounts: { money: 40 } })
    checkNow(copy)
  })
})

describe("a journal that ends in the middle of an operation", () => {
  it("is completed with what follows from its last entry", () => {
    const tree = open({ money: 10 })
    ok(child(tree, "root", "a", { money: 5 }))
    ok(tree.ledger.hold(at("a", "h"), "explore", { money: 5 }))
    ok(tree.ledger.hold(at("root", "h"), "explore", { money: 3 }))
    ok(tree.ledger.settle(at("a", "h"), { money: 9 }))
    ok(tree.ledger.void(at("root", "h")))
    const tags = tree.entries.map(({ _tag }) => _tag)
    assert.deepStrictEqual(tags.slice(4), ["Settled", "Overran", "Voided", "DebtPaid"])
    for (const cut of [5, 7]) {
      const copy = restored(tree.entries.slice(0, cut))
      assert.deepStrictEqual(copy.entries, tree.entries.slice(0, cut + 1))
    }
    assert.deepStrictEqual(restored(tree.entries.slice(0, 7)).ledger.accounts, tree.ledger.accounts)
  })
})

describe("a call and a hold that was pending before a restore", () => {
  const spend = (tree: Tree, id: string) =>
    Budget.spend(
      { ledger: tree.ledger, account: "root" },
      { id, reserve: "explore" },
      { hold: () => ({ money: 4 }), use: () => Effect.void, book: () => ({ _tag: "Settle", actual: { money: 4 } }) },
    )

  it.effect("are two: the hold may have paid for a call already", () =>
    Effect.gen(function* () {
      const tree = open({ money: 40 })
      ok(tree.ledger.hold(at("root", "h"), "explore", { money: 4 }))
      const copy = copyOf(tree)
      const exit = yield* Effect.exit(spend(copy, "h"))
      assert.isTrue(Exit.isFailure(exit))
      for (const hold of copy.ledger.pendingHolds()) ok(copy.ledger.assume(hold))
      yield* spend(copy, "i")
      assert.strictEqual(Budget.used(copy.ledger.root).money, 8)
    }),
  )
})
