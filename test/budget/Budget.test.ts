import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as References from "effect/References"
import { TestClock } from "effect/testing"
import * as Budget from "../../src/budget/Budget.ts"
import { left, ok, open, type Tree } from "./tree.ts"

const place = { id: "h", reserve: "explore" } as const
const purseOf = (tree: Tree): Budget.Purse => ({ ledger: tree.ledger, account: "root" })

/** An attempt that holds 4 of 10 of money and is billed 1. */
const attempt = <A, E = never>(
  use: Effect.Effect<A, E>,
  book: Budget.Attempt<A, E>["book"] = () => ({ _tag: "Settle", actual: { money: 1 } }),
): Budget.Attempt<A, E> => ({ hold: () => ({ money: 4 }), use: () => use, book })

const spend = <A, E>(tree: Tree, one: Budget.Attempt<A, E>) => Budget.spend(purseOf(tree), place, one)

/** How the only hold was resolved: exactly one entry says so, and no hold is left. */
const resolution = (tree: Tree): string => {
  assert.deepStrictEqual(tree.ledger.pendingHolds("root"), [])
  assert.deepStrictEqual(Budget.violations(tree.ledger), [])
  const ends = tree.entries.filter((entry) => ["Settled", "Voided", "Assumed"].includes(entry._tag))
  assert.strictEqual(ends.length, 1)
  return `${ends[0]!._tag}, ${left(tree, "root", "money").explore} left`
}

describe("spending", () => {
  it.effect("is held before it starts, and settled by what it cost", () =>
    Effect.gen(function* () {
      const tree = open({ money: 10 })
      const looked = Effect.sync(() => Budget.available(tree.ledger.root, "explore", "money"))
      const spent = yield* spend(tree, attempt(looked))
      assert.deepStrictEqual(spent.exit, Exit.succeed(6))
      assert.strictEqual(spent.booking, "Settle")
      assert.isTrue(spent.settlement?.covered)
      assert.strictEqual(resolution(tree), "Settled, 9 left")
    }),
  )

  it.effect("does not start when its hold is refused", () =>
    Effect.gen(function* () {
      const tree = open({ money: 3 })
      let started = false
      const start = Effect.sync(() => void (started = true))
      const error = yield* Effect.flip(spend(tree, attempt(start)))
      assert.isFalse(started)
      assert.deepInclude(error, { _tag: "BudgetError", operation: "hold", account: "root" })
      assert.include(error.message, "4 asked, 3 available in the explore reserve of root")
      assert.deepStrictEqual(
        tree.entries.map((entry) => entry._tag),
        ["Opened", "Refused"],
      )
    }),
  )

  it.effect("has its hold for itself: under the same id there is no other one, also once it was extended", () =>
    Effect.gen(function* () {
      const tree = open({ money: 10 })
      const second = Effect.suspend(() => {
        ok(tree.ledger.extendHold({ account: "root", id: place.id }, { money: 1 }))
        return Effect.flip(spend(tree, attempt(Effect.die("a second call"))))
      })
      const { exit } = yield* spend(tree, attempt(second))
      assert.deepStrictEqual((yield* exit).reason, { _tag: "IdConflict", id: place.id })
    }),
  )

  it.effect("is told what it can reach, before it says what it holds", () =>
    Effect.gen(function* () {
      const tree = open({ money: 10, steps: 3 })
      const all = { ...attempt(Effect.void), hold: (reachable: Budget.Grant) => reachable }
      const spent = yield* spend(tree, all)
      assert.deepStrictEqual(spent.hold.amounts, Budget.amounts({ money: 10, steps: 3 }))
    }),
  )

  it.effect("books a typed failure, which is a value", () =>
    Effect.gen(function* () {
      const tree = open({ money: 10 })
      const seen: Array<Exit.Exit<never, string>> = []
      const spent = yield* spend(
        tree,
        attempt(Effect.fail("no"), (exit) => {
          seen.push(exit)
          return { _tag: "Void" }
        }),
      )
      assert.deepStrictEqual(spent.exit, Exit.fail("no"))
      assert.deepStrictEqual(seen, [Exit.fail("no")])
      assert.include(spent, { booking: "Void", settlement: undefined })
      assert.strictEqual(resolution(tree), "Voided, 10 left")
    }),
  )

  it.effect("books a defect, in the call or in what makes the call", () =>
    Effect.gen(function* () {
      const thrown: Budget.Attempt<never> = {
        ...attempt(Effect.never),
        use: () => {
          throw new Error("broken")
        },
      }
      for (const one of [attempt(Effect.die(new Error("broken"))), thrown]) {
        const tree = open({ money: 10 })
        const spent = yield* spend(tree, { ...one, book: () => ({ _tag: "Assume" }) })
        assert.isTrue(Exit.isFailure(spent.exit) && Cause.hasDies(spent.exit.cause))
        assert.strictEqual(resolution(tree), "Assumed, 6 left")
      }
    }),
  )

  it.effect("books a bill above the hold in full", () =>
    Effect.gen(function* () {
      const tree = open({ money: 10 })
      const spent = yield* spend(
        tree,
        attempt(Effect.void, () => ({ _tag: "Settle", actual: { money: 12 } })),
      )
      assert.deepStrictEqual(spent.settlement?.short, ["money"])
      assert.strictEqual(tree.ledger.root.debt.money, 2)
      assert.strictEqual(resolution(tree), "Settled, 0 left")
    }),
  )

  const nonsense: ReadonlyArray<readonly [name: string, booking: unknown]> = [
    ["a negative bill", { _tag: "Settle", actual: { money: -1 } }],
    ["a bill of NaN", { _tag: "Settle", actual: { money: Number.NaN } }],
    ["a bill past 2^53 - 1", { _tag: "Settle", actual: { money: 2 ** 53 } }],
    ["a bill in an unknown dimension", { _tag: "Settle", actual: { euros: 1 } }],
    ["a bill that is missing", { _tag: "Settle" }],
    ["a bill of null", { _tag: "Settle", actual: null }],
    ["an unknown booking", { _tag: "Refund" }],
    ["no booking", undefined],
  ]

  it.effect.each(nonsense)("assumes the hold for %s, and says so", ([, booking]) =>
    Effect.gen(function* () {
      const tree = open({ money: 10 })
      const spent = yield* spend(
        tree,
        attempt(Effect.void, () => booking as Budget.Booking),
      )
      assert.include(spent, { booking: "Assume", settlement: undefined })
      assert.strictEqual(resolution(tree), "Assumed, 6 left")
    }),
  )

  it.effect("assumes the hold when booking itself breaks down, which is a defect", () =>
    Effect.gen(function* () {
      const tree = open({ money: 10 })
      const broken = new Error("no usage in reply")
      const exit = yield* Effect.exit(
        spend(
          tree,
          attempt(Effect.void, () => {
            throw broken
          }),
        ),
      )
      assert.isTrue(Exit.isFailure(exit) && Cause.squash(exit.cause) === broken)
      assert.strictEqual(resolution(tree), "Assumed, 6 left")
    }),
  )

  it.effect("that is interrupted is booked all the same, and the interruption goes on", () =>
    Effect.gen(function* () {
      const tree = open({ money: 10 })
      const interrupted: Array<boolean> = []
      const one = attempt(Effect.never, (exit) => {
        interrupted.push(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
        return { _tag: "Assume" }
      })
      const fiber = yield* Effect.forkChild(spend(tree, one), { startImmediately: true })
      assert.strictEqual(tree.ledger.pendingHolds("root").length, 1)
      yield* Fiber.interrupt(fiber)
      const exit = yield* Fiber.await(fiber)
      assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
      assert.deepStrictEqual(interrupted, [true])
      assert.strictEqual(resolution(tree), "Assumed, 6 left")
    }),
  )

  it.effect("that is interrupted before it starts holds nothing", () =>
    Effect.gen(function* () {
      const tree = open({ money: 10 })
      const fiber = yield* Effect.forkChild(spend(tree, attempt(Effect.void)))
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(tree.ledger.pendingHolds("root"), [])
      assert.strictEqual(left(tree, "root", "money").explore, tree.entries.length === 1 ? 10 : 9)
    }),
  )

  it.effect("is resolved exactly once wherever the interruption comes, at each of its yields", () =>
    Effect.gen(function* () {
      const outcomes = new Set<string>()
      for (let after = 0; after <= 12; after++) {
        const tree = open({ money: 10 })
        const yields = Effect.gen(function* () {
          for (let n = 0; n < 8; n++) yield* Effect.yieldNow
        })
        const one = attempt(yields, (exit) => (Exit.isSuccess(exit) ? { _tag: "Void" } : { _tag: "Assume" }))
        const fiber = yield* Effect.forkChild(spend(tree, one), { startImmediately: true })
        for (let n = 0; n < after; n++) yield* Effect.yieldNow
        yield* Fiber.interrupt(fiber)
        outcomes.add(resolution(tree))
      }
      assert.deepStrictEqual([...outcomes], ["Assumed, 6 left", "Voided, 10 left"])
    }),
  )

  it.effect("is resolved exactly once when the scheduler yields after every few operations", () =>
    Effect.gen(function* () {
      const journals = new Set<string>()
      for (let operations = 3; operations <= 8; operations++) {
        for (let after = 0; after <= 20; after++) {
          const tree = open({ money: 10 })
          const fiber = yield* spend(tree, attempt(Effect.sleep("1 hour"))).pipe(
            Effect.provideService(References.MaxOpsBeforeYield, operations),
            Effect.forkChild({ startImmediately: true }),
          )
          for (let n = 0; n < after; n++) yield* Effect.yieldNow
          yield* Fiber.interrupt(fiber)
          assert.deepStrictEqual(tree.ledger.pendingHolds("root"), [])
          journals.add(tree.entries.map((entry) => entry._tag).join(" "))
        }
      }
      assert.deepStrictEqual([...journals], ["Opened Held Settled"])
    }),
  )

  it.effect("by many at once never goes past the cap", () =>
    Effect.gen(function* () {
      const tree = open({ money: 10 })
      const one = attempt(Effect.sleep("1 second"), () => ({ _tag: "Assume" }))
      const all = Array.from({ length: 20 }, (_, n) =>
        Effect.result(Budget.spend(purseOf(tree), { ...place, id: `h${n}` }, one)),
      )
      const fiber = yield* Effect.forkChild(Effect.all(all, { concurrency: "unbounded" }))
      yield* TestClock.adjust("1 second")
      const results = yield* Fiber.join(fiber)
      assert.strictEqual(results.filter((result) => result._tag === "Success").length, 2)
      assert.strictEqual(Budget.used(tree.ledger.root).money, 8)
    }),
  )
})

describe("the clock of a ledger", () => {
  it.effect("goes by the clock of the run, from its time of day", () =>
    Effect.gen(function* () {
      const now = yield* Budget.monotonicMillis
      const before = now()
      yield* TestClock.adjust("90 seconds")
      assert.strictEqual(now() - before, 90_000)
    }),
  )
})
