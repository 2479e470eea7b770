import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { Budget } from "../../src/index.ts"
import { ok } from "./tree.ts"

const line = (depth: number): Budget.PlannedNode =>
  depth === 0 ? { name: "leaf" } : { name: `n${depth}`, children: [line(depth - 1)] }

const steps = (levels: ReadonlyArray<Budget.PlannedLevel>) => levels.map((level) => level.granted.steps)

describe("a plan", () => {
  it("shows what a line of agents leaves at each depth, and where it could not answer", () => {
    const levels = ok(Budget.plan({ steps: 100 }, line(6)))
    assert.deepStrictEqual(steps(levels), [100, 74, 55, 41, 30, 22, 16])
    assert.deepStrictEqual(
      levels.flatMap((level) => level.warnings),
      [],
    )
    const short = ok(Budget.plan({ steps: 6 }, line(6)))
    assert.deepStrictEqual(
      short.flatMap((level) => level.warnings)[0],
      "a n3 would get no steps; it needs at least 1 to answer",
    )
  })

  it("leaves more to the children of a coordinator", () => {
    const children = [{ name: "worker", count: 4 }]
    const plain = ok(Budget.plan({ steps: 100 }, { name: "lead", children }))
    const reserves = Budget.forAgent({ shares: Budget.coordinator })
    const lean = ok(Budget.plan({ steps: 100 }, { name: "lead", children, reserves }))
    assert.deepStrictEqual([steps(plain)[1], steps(lean)[1]], [18, 21])
  })

  it("warns of a level that would get less than it cannot work without", () => {
    const tree = { name: "lead", children: [{ name: "worker", count: 3, atLeast: { toolCalls: 4 } }] }
    const levels = ok(Budget.plan({ steps: 30, toolCalls: 12 }, tree))
    assert.deepStrictEqual(levels[1]!.warnings, ["a worker would get 2 toolCalls and cannot work with less than 4"])
  })

  it("agrees with what carving really gives", () => {
    const levels = ok(Budget.plan({ steps: 60, toolCalls: 40 }, { name: "root", children: [{ name: "c", count: 4 }] }))
    const ledger = ok(
      Budget.Ledger.openRoot({
        id: "root",
        name: "root",
        grant: { steps: 60, toolCalls: 40 },
        reserves: Budget.forAgent({}),
        record: () => {},
        nowMillis: () => 0,
      }),
    )
    ok(ledger.settle(ok(ledger.hold({ account: "root", id: "decide" }, "explore", { steps: 1 })), { steps: 1 }))
    const batch = [1, 2, 3, 4].map((n) => ({ id: `c${n}`, name: "c", floor: {}, charge: { toolCalls: 1 } }))
    for (const carved of ledger.carveAll("root", batch)) {
      const granted = Budget.granted(ok(carved))
      assert.deepStrictEqual(
        [granted.steps, granted.toolCalls],
        [levels[1]!.granted.steps, levels[1]!.granted.toolCalls],
      )
    }
  })

  it("is refused with the field of an amount that cannot be read", () => {
    const refused = Budget.plan({ money: "much" }, { name: "lead" })
    assert.strictEqual(
      Result.isFailure(refused) && refused.failure._tag === "InvalidAmount" ? refused.failure.field : "",
      "money",
    )
  })
})
