import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import { Budget } from "../../src/index.ts"
import { child, ok, open, type Tree } from "./tree.ts"

/** A child that costs 23, held at up to `worst`; it may shrink its hold down to `least`. */
interface Caller {
  readonly tree: Tree
  readonly id: string
  readonly worst: number
  readonly least: number
}

/** Waits if it must, then holds, works, settles 23 and closes; answers with how it ended. */
const call = ({ tree, id, worst, least }: Caller) =>
  Effect.gen(function* () {
    const { ledger } = tree
    const purse = { ledger, account: id }
    const room = () => ledger.reachable(id, "explore").money ?? 0
    if (room() < least) yield* Budget.waitFor(purse, { need: { money: worst }, least: { money: least } })
    const place = { id: "call", reserve: "explore" } as const
    yield* Budget.spend(purse, place, {
      hold: () => ({ money: Math.min(worst, room()) }),
      use: () => Effect.yieldNow,
      book: () => ({ _tag: "Settle", actual: { money: 23 } }),
    })
  }).pipe(
    Effect.ensuring(Effect.sync(() => ok(tree.ledger.close(id)))),
    Effect.match({ onFailure: (error) => error.reason._tag, onSuccess: () => "finished" as const }),
  )

/** Two children in equal slices of `cap`, both calling at once. */
const race = (cap: number, options: { readonly worst: number; readonly least: number }) =>
  Effect.gen(function* () {
    const tree = open({ money: cap })
    const slice = Math.floor(cap / 2)
    for (const id of ["a", "b"]) ok(child(tree, "root", id, { money: slice }))
    const ends = yield* Effect.all(
      ["a", "b"].map((id) => call({ tree, id, ...options })),
      { concurrency: "unbounded" },
    )
    assert.deepStrictEqual(Budget.violations(tree.ledger), [])
    assert.strictEqual(tree.ledger.root.openChildren, 0)
    return { ends, spent: Budget.used(tree.ledger.root).money, entries: tree.entries }
  })

describe("elastic slices: children that cost 23 and hold 40", () => {
  it.effect("cap 63: both finish, one after the other", () =>
    Effect.gen(function* () {
      const { ends, spent, entries } = yield* race(63, { worst: 40, least: 40 })
      assert.deepStrictEqual(ends, ["finished", "finished"])
      assert.strictEqual(spent, 46)
      const order = entries.flatMap((entry) => (entry._tag === "Held" || entry._tag === "Settled" ? [entry._tag] : []))
      assert.deepStrictEqual(order, ["Held", "Settled", "Held", "Settled"])
    }),
  )

  it.effect("cap 62: the second is refused as soon as the first settles", () =>
    Effect.gen(function* () {
      const { ends, spent, entries } = yield* race(62, { worst: 40, least: 40 })
      assert.deepStrictEqual(ends, ["finished", "Insufficient"])
      assert.strictEqual(spent, 23)
      const tags = entries.map((entry) => entry._tag)
      assert.strictEqual(tags.indexOf("Refused"), tags.indexOf("Settled") + 1)
    }),
  )

  it.effect("cap 60 with holds that may shrink to 30: both finish", () =>
    Effect.gen(function* () {
      const { ends, spent } = yield* race(60, { worst: 40, least: 30 })
      assert.deepStrictEqual(ends, ["finished", "finished"])
      assert.strictEqual(spent, 46)
    }),
  )

  it("a fixed slice of 60 in three serves none", () => {
    const tree = open({ money: 60 })
    for (const id of ["a", "b", "c"]) ok(child(tree, "root", id, { money: 20 }))
    const served = ["a", "b", "c"].filter((id) =>
      Result.isSuccess(tree.ledger.hold({ account: id, id: "call" }, "explore", { money: 40 })),
    )
    assert.deepStrictEqual(served, [])
  })
})

describe("a line", () => {
  it("never lets two waiting children block each other: with nobody else they are decided at once", () => {
    const tree = open({ money: 30 })
    for (const id of ["a", "b"]) ok(child(tree, "root", id, { money: 15 }))
    const ends: Array<string> = []
    for (const id of ["a", "b"]) {
      const note = (ended: Result.Result<Budget.Amounts, Budget.Refusal>) => void ends.push(`${id} ${ended._tag}`)
      tree.ledger.wait(id, { need: { money: 40 }, least: { money: 31 } }, note)
    }
    assert.deepStrictEqual(ends, ["a Failure", "b Failure"])
    assert.deepStrictEqual(Budget.violations(tree.ledger), [])
  })

  it("is served first come first, also when a later one would fit", () => {
    const tree = open({ money: 50 })
    for (const id of ["a", "b", "c"]) ok(child(tree, "root", id, { money: 15 }))
    const ends: Array<string> = []
    const wait = (id: string, money: number) =>
      tree.ledger.wait(id, { need: { money }, least: { money } }, (ended) => void ends.push(`${id} ${ended._tag}`))
    wait("a", 40)
    wait("b", 10)
    assert.deepStrictEqual(ends, [])
    ok(tree.ledger.close("c"))
    assert.deepStrictEqual(ends, ["a Success", "b Success"])
    assert.strictEqual(tree.ledger.reachable("a", "explore").money, 40)
    assert.strictEqual(tree.ledger.reachable("b", "explore").money, 10)
  })

  it("stands still while the parent is paused, and is served when it goes on", () => {
    const tree = open({ money: 50 })
    for (const id of ["a", "b"]) ok(child(tree, "root", id, { money: 25 }))
    const ends: Array<string> = []
    tree.ledger.wait("a", { need: { money: 40 }, least: { money: 40 } }, (ended) => void ends.push(ended._tag))
    ok(tree.ledger.pause("root", "an approval"))
    ok(tree.ledger.close("b"))
    assert.deepStrictEqual(ends, [])
    ok(tree.ledger.resume("root"))
    assert.deepStrictEqual(ends, ["Success"])
  })

  it("ends for a child that is frozen, and for one that closes", () => {
    const tree = open({ money: 50 })
    for (const id of ["a", "b", "c"]) ok(child(tree, "root", id, { money: 15 }))
    const ends: Array<string> = []
    const wait = (id: string) =>
      tree.ledger.wait(id, { need: { money: 45 }, least: { money: 45 } }, (ended) => {
        ends.push(Result.isFailure(ended) ? `${id} ${ended.failure._tag}` : id)
      })
    wait("a")
    tree.ledger.freeze("a", "cancelled")
    wait("b")
    ok(tree.ledger.close("b"))
    assert.deepStrictEqual(ends, ["a NotOpen", "b NotOpen"])
  })

  it.effect("is left when the wait is interrupted, and what was given back stays with the parent", () =>
    Effect.gen(function* () {
      const tree = open({ money: 50 })
      for (const id of ["a", "b"]) ok(child(tree, "root", id, { money: 25 }))
      const wanted = { need: { money: 40 }, least: { money: 40 } }
      const fiber = yield* Effect.forkChild(Budget.waitFor({ ledger: tree.ledger, account: "a" }, wanted), {
        startImmediately: true,
      })
      assert.isTrue(tree.ledger.isWaiting("a"))
      yield* Fiber.interrupt(fiber)
      assert.isFalse(tree.ledger.isWaiting("a"))
      assert.strictEqual(tree.ledger.reachable("root", "explore").money, 25)
      assert.deepStrictEqual(Budget.violations(tree.ledger), [])
    }),
  )

  it("is refused at once, with nothing given back, where all others together could not help", () => {
    const tree = open({ money: 50 })
    for (const id of ["a", "b"]) ok(child(tree, "root", id, { money: 25 }))
    const before = tree.ledger.accounts
    let reason = ""
    tree.ledger.wait("a", { need: { money: 60 }, least: { money: 51 } }, (ended) => {
      reason = Result.isFailure(ended) ? ended.failure._tag : ""
    })
    assert.strictEqual(reason, "Insufficient")
    assert.isTrue(tree.ledger.accounts.every((account, index) => account === before[index]))
  })

  it("is refused to a root, which has no one to ask", () => {
    const tree = open({ money: 50 })
    let reason = ""
    tree.ledger.wait("root", { need: { money: 1 }, least: { money: 1 } }, (ended) => {
      reason = Result.isFailure(ended) ? ended.failure._tag : ""
    })
    assert.strictEqual(reason, "InvalidAmount")
  })
})
