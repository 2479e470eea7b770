import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import { Budget } from "../../src/index.ts"
import { child, ok, open, type Tree } from "../budget/tree.ts"
import { Random, runShuffled, ticks } from "./Schedule.ts"

const racers = 64

/** Pays one unit; notes how many entries there were when it asked. */
const pay = (tree: Tree, id: string, asked: Map<string, number>) =>
  Budget.spend(
    { ledger: tree.ledger, account: "root" },
    { id, reserve: "explore" },
    {
      hold: () => {
        asked.set(id, tree.entries.length)
        return { money: 1 }
      },
      use: () => Effect.yieldNow,
      book: () => ({ _tag: "Settle", actual: { money: 1 } }),
    },
  )

/** Takes one unit for a child, and pays with it there. */
const delegate = (tree: Tree, id: string, asked: Map<string, number>) => {
  const purse = { ledger: tree.ledger, account: "root" }
  const carve = Effect.suspend(() => {
    asked.set(id, tree.entries.length)
    const carved = child(tree, "root", id, { money: 1 })
    return Result.isSuccess(carved) ? Effect.void : Effect.fail(Budget.errorOf(purse, "carve", carved.failure))
  })
  const work = Budget.spend(
    { ledger: tree.ledger, account: id },
    { id: "call", reserve: "explore" },
    {
      hold: () => ({ money: 1 }),
      use: () => Effect.yieldNow,
      book: () => ({ _tag: "Settle", actual: { money: 1 } }),
    },
  )
  return Effect.acquireUseRelease(
    carve,
    () => work,
    () => Effect.sync(() => ok(tree.ledger.close(id))),
  )
}

const round = async (seed: number, isDelegating: (index: number) => boolean) => {
  const random = new Random(seed)
  const tree = open({ money: 1 })
  const asked = new Map<string, number>()
  const delays = Array.from({ length: racers }, () => random.between(0, 3))
  const one = (id: string, index: number): Effect.Effect<unknown, Budget.BudgetError> =>
    isDelegating(index) ? delegate(tree, id, asked) : pay(tree, id, asked)
  const race = Effect.forEach(
    delays,
    (delay, index) => Effect.exit(Effect.andThen(ticks(delay), one(`racer ${index}`, index))),
    { concurrency: "unbounded" },
  )
  const exit = await runShuffled(race, random)
  if (exit === undefined || Exit.isFailure(exit)) throw new Error(`seed ${seed}: the race did not end`)
  const winners = exit.value.filter(Exit.isSuccess)
  assert.strictEqual(winners.length, 1, `seed ${seed}`)
  assert.strictEqual(Budget.used(tree.ledger.root).money, 1)
  assert.deepStrictEqual(Budget.violations(tree.ledger), [])
  return { tree, asked, exits: exit.value }
}

describe(`${racers} racers for the last unit`, () => {
  it("have exactly one winner in each of 1,000 rounds; the others are refused at once, with the numbers", async () => {
    for (let seed = 1; seed <= 1000; seed++) {
      const { tree, asked } = await round(seed, () => false)
      const refused = tree.entries.filter((entry) => entry._tag === "Refused")
      assert.strictEqual(refused.length, racers - 1)
      const shortage = { dimension: "money", reserve: "explore", asked: 1, available: 0, account: "root", whose: "own" }
      for (const entry of refused) {
        if (entry !== tree.entries[asked.get(entry.id)!])
          assert.fail(`seed ${seed}: ${entry.id} was not refused at once`)
      }
      assert.deepStrictEqual(refused[0]!.reason, { _tag: "Insufficient", shortages: [shortage as never] })
      const said = JSON.stringify(refused[0]!.reason)
      assert.isTrue(refused.every((entry) => JSON.stringify(entry.reason) === said))
    }
  })

  it("have one winner, too, when every other one wants it for a child", async () => {
    // Whether the winner was one that delegates.
    const winners = new Set<boolean>()
    for (let seed = 1; seed <= 200; seed++) {
      const { tree, exits, asked } = await round(seed, (index) => index % 2 === 1)
      winners.add(exits.findIndex(Exit.isSuccess) % 2 === 1)
      assert.strictEqual(tree.ledger.root.openChildren, 0)
      for (const entry of tree.entries) {
        if (entry._tag !== "Refused") continue
        if (entry !== tree.entries[asked.get(entry.id)!])
          assert.fail(`seed ${seed}: ${entry.id} was not refused at once`)
        const { reason } = entry
        const shortages = reason._tag === "Insufficient" ? reason.shortages : []
        const seen = shortages.map((one) => [one.asked, one.available, one.account, one.whose])
        assert.deepStrictEqual(seen, [[1, 0, "root", entry.operation === "hold" ? "own" : "parent"]])
      }
    }
    assert.strictEqual(winners.size, 2)
  })
})
