import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { Budget } from "../../src/index.ts"
import { child, kept, ok, open, type Tree } from "../budget/tree.ts"

const settle = (money: number) => () => ({ _tag: "Settle" as const, actual: { money } })

const pay = (tree: Tree, account: string, reserve: Budget.Reserve, money: number) =>
  Budget.spend(
    { ledger: tree.ledger, account },
    { id: `pay ${reserve}`, reserve },
    { hold: () => ({ money }), use: () => Effect.yieldNow, book: settle(money) },
  )

const wait = (tree: Tree, account: string, money: number) =>
  Budget.waitFor({ ledger: tree.ledger, account }, { need: { money }, least: { money } })

describe("a waiter that goes on as soon as its wait ends", () => {
  it.effect("does so only after the operation that ended it: its account closes whole", () =>
    Effect.gen(function* () {
      const tree = open({ money: 100 })
      ok(child(tree, "root", "a", { money: 50 }, { reserves: kept("money", { verify: 10 }) }))
      ok(child(tree, "root", "b", { money: 50 }))
      const fiber = yield* wait(tree, "a", 80).pipe(
        Effect.catch(() => pay(tree, "a", "verify", 10)),
        Effect.forkChild({ startImmediately: true }),
      )
      assert.isTrue(tree.ledger.isWaiting("a"))
      ok(tree.ledger.close("a"))
      const exit = yield* Fiber.await(fiber)
      assert.isTrue(Exit.isFailure(exit))
      ok(tree.ledger.close("b"))
      assert.deepStrictEqual(Budget.violations(tree.ledger), [])
      assert.deepStrictEqual(
        tree.entries.map((entry) => entry._tag),
        ["Opened", "Carved", "Carved", "Waited", "Refused", "Closed", "Refused", "Closed"],
      )
    }),
  )

  it.effect("is not served by a parent whose new work has ended", () =>
    Effect.gen(function* () {
      const tree = open({ money: 50 })
      for (const id of ["a", "b", "c"]) ok(child(tree, "root", id, { money: 15 }))
      const waiting = (id: string, money: number) =>
        Effect.forkChild(Effect.exit(wait(tree, id, money)), { startImmediately: true })
      const [first, second] = [yield* waiting("a", 40), yield* waiting("b", 10)]
      tree.ledger.freeze("root", "cancelled")
      const exits = [yield* Fiber.join(first), yield* Fiber.join(second)]
      assert.deepStrictEqual(
        exits.map((exit) => exit._tag),
        ["Failure", "Failure"],
      )
      assert.deepStrictEqual(
        tree.entries.filter((entry) => entry._tag === "Served"),
        [],
      )
    }),
  )
})

type Move = (typeof moves)[number]
const moves = ["a waits", "b waits", "c closes", "a closes", "freeze"] as const

const orders = <A>(items: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> =>
  items.length === 0
    ? [[]]
    : items.flatMap((first) => orders(items.filter((one) => one !== first)).map((rest) => [first, ...rest]))

const someSteps = Effect.forEach(Array.from({ length: 5 }), () => Effect.yieldNow, { discard: true })

/** Three children of 15 under 50; two wait for more, in an order with what else may happen. */
const played = (order: ReadonlyArray<Move>, needs: { readonly a: number; readonly b: number }) =>
  Effect.gen(function* () {
    const tree = open({ money: 50 })
    for (const id of ["a", "b", "c"]) ok(child(tree, "root", id, { money: 15 }))
    const ends: Array<string> = []
    const waiting = (id: "a" | "b") =>
      wait(tree, id, needs[id]).pipe(
        Effect.match({
          onFailure: ({ reason }) => void ends.push(`${id} ${reason._tag}`),
          onSuccess: ({ money }) => {
            assert.strictEqual(money, needs[id])
            ends.push(`${id} served`)
          },
        }),
        Effect.forkChild({ startImmediately: true }),
      )
    const make: Readonly<Record<Move, Effect.Effect<unknown>>> = {
      "a waits": waiting("a"),
      "b waits": waiting("b"),
      "c closes": Effect.sync(() => ok(tree.ledger.close("c"))),
      "a closes": Effect.sync(() => ok(tree.ledger.close("a"))),
      freeze: Effect.sync(() => tree.ledger.freeze("root", "cancelled")),
    }
    for (const move of order) {
      yield* make[move]
      assert.deepStrictEqual(Budget.violations(tree.ledger), [])
    }
    yield* someSteps
    for (const id of ["a", "b", "c", "root"]) ok(tree.ledger.close(id))
    yield* someSteps
    assert.strictEqual(Budget.unused(tree.ledger.root).money, 50)
    assert.deepStrictEqual(Budget.imbalances(Budget.statement(tree.ledger)), [])
    return ends
  })

describe("two waiters and a sibling that closes, in every order", () => {
  const both = orders(moves.slice(0, 3)).filter((order) => order.includes("c closes"))

  it.effect("are both served where there is enough for both, first come first", () =>
    Effect.gen(function* () {
      for (const order of both) {
        const first =
          order.indexOf("a waits") < order.indexOf("b waits") ? ["a served", "b served"] : ["b served", "a served"]
        assert.deepStrictEqual(yield* played(order, { a: 25, b: 25 }), first, order.join(", "))
      }
    }),
  )

  it.effect("are served one and refused one where there is enough for one", () =>
    Effect.gen(function* () {
      for (const order of both) {
        const ends = yield* played(order, { a: 40, b: 40 })
        const first = order.indexOf("a waits") < order.indexOf("b waits") ? "a" : "b"
        // Once the first is served and does nothing, the other could still be helped by it; it is not, in the end.
        assert.include(ends, `${first} served`, order.join(", "))
        assert.strictEqual(ends.length, 2, order.join(", "))
      }
    }),
  )

  it.effect("end exactly once each and leave the books whole, also when one of them closes or all is frozen", () =>
    Effect.gen(function* () {
      let runs = 0
      for (const order of orders(moves)) {
        for (const a of [1, 10, 36, 50, 51]) {
          for (const b of [1, 35, 51]) {
            const ends = yield* played(order, { a, b })
            const ended = ["a", "b"].map((id) => ends.filter((end) => end.startsWith(id)).length)
            assert.deepStrictEqual(ended, [1, 1], `${order.join(", ")}: ${a}, ${b}`)
            const frozenFirst = ["a waits", "b waits"].map(
              (move) => order.indexOf(move as Move) > order.indexOf("freeze"),
            )
            if (frozenFirst.every(Boolean)) assert.isTrue(ends.every((end) => end.endsWith("NotOpen")))
            runs++
          }
        }
      }
      assert.strictEqual(runs, 1800)
    }),
  )
})
