import { assert, describe, it } from "@effect/vitest"
import { binomialBounds } from "./Runs.ts"

describe("the bounds of a binomial distribution", () => {
  it("are those that can be counted by hand", () => {
    // Of four tosses none or all are heads with a chance of 1/16 each, one or three with 4/16 each.
    assert.deepStrictEqual(binomialBounds(4, 0.5, 2 / 17), { least: 0, most: 4 })
    assert.deepStrictEqual(binomialBounds(4, 0.5, 2 / 15), { least: 1, most: 3 })
    assert.deepStrictEqual(binomialBounds(4, 0.5, 11 / 16), { least: 2, most: 2 })
  })

  it("widen with what must not happen by chance", () => {
    const wide = binomialBounds(1000, 0.1, 1e-9)
    const narrow = binomialBounds(1000, 0.1, 1e-3)
    assert.isBelow(wide.least, narrow.least)
    assert.isAbove(wide.most, narrow.most)
  })
})
