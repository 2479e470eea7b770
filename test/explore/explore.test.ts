import { assert, describe, it } from "@effect/vitest"
import { operations } from "../../src/budget/Operations.ts"
import { tiny } from "./configurations.ts"
import { defects, withDefect } from "./defects.ts"
import { explore } from "./Search.ts"

describe("the exploration of every interleaving", () => {
  it("finds no broken law in the shipped operations", () => {
    const { states, transitions, found } = explore(tiny, operations)
    assert.strictEqual(found, undefined)
    assert.isAtLeast(states, 1000)
    assert.isAtLeast(transitions, states)
  })

  it.each(["borrow downward", "hold under a freeze"])(
    "finds a seeded defect, with the shortest way to it: %s",
    (name) => {
      const defect = defects.find((one) => one.name === name)!
      const { found } = explore(defect.world, withDefect(defect))
      assert.strictEqual(found?.law, defect.law)
      assert.isAtMost(found!.moves.length, 2)
    },
  )

  it("tells the moves that led there", () => {
    const defect = defects.find((one) => one.name === "adjust twice")!
    assert.deepStrictEqual(explore(defect.world, withDefect(defect)).found?.moves, [
      "hold 1 in explore of root",
      "send h1 on root",
      "assume (bill 0) h1 on root",
      "adjust (0) h1 on root",
      "adjust (0) h1 on root",
    ])
  })
})
