import { assert, describe, it } from "@effect/vitest"
import { race } from "./Race.ts"
import { run } from "./Tally.ts"

describe("random concurrent runs with interruptions", () => {
  it("never break the books, where a counter that checks and then adds overspends", async () => {
    const { tree, counter, interrupted, failed } = await run({ first: 1, end: 501, step: 1 })
    assert.deepStrictEqual(failed, [])
    assert.deepStrictEqual([tree.overspends, tree.holdsLeft], [0, 0])
    assert.isAbove(interrupted, 300)
    assert.isAbove(counter.overspends, 250)
    assert.isAbove(counter.holdsLeft, 50)
  })

  it("are the same again for the same seed, and others for another", async () => {
    const once = []
    const again = []
    for (let seed = 1; seed <= 50; seed++) once.push(await race(seed))
    for (let seed = 1; seed <= 50; seed++) again.push(await race(seed))
    assert.deepStrictEqual(again, once)
    assert.isAbove(new Set(once.map((one) => one.tree.entries)).size, 10)
  })
})
