import { assert, describe, it } from "@effect/vitest"
import { Budget } from "../../src/index.ts"
import { child, ok, open, refusal, tag } from "./tree.ts"

/** Twenty steps, of which exploring may use 60 per cent. */
const capped = () => open({ steps: 20, money: 50 }, { reserves: { _tag: "Explicit", exploreAtMost: { steps: 60 } } })

describe("a cap on explore", () => {
  it("lets exploring use its part and no more, in that dimension alone", () => {
    const { ledger } = capped()
    ok(ledger.hold({ account: "root", id: "1" }, "explore", { steps: 12, money: 50 }))
    const reason = refusal(ledger.hold({ account: "root", id: "2" }, "explore", { steps: 1 }))
    const shortage = {
      dimension: "steps",
      reserve: "explore",
      asked: 1,
      available: 0,
      account: "root",
      whose: "own" as const,
    }
    assert.deepStrictEqual(reason, { _tag: "Insufficient", shortages: [shortage] })
  })

  it("leaves the rest for retries, checks and the answer", () => {
    const { ledger } = capped()
    ok(ledger.hold({ account: "root", id: "1" }, "explore", { steps: 12 }))
    ok(ledger.hold({ account: "root", id: "2" }, "retry", { steps: 5 }))
    ok(ledger.hold({ account: "root", id: "3" }, "output", { steps: 3 }))
    assert.strictEqual(tag(ledger.hold({ account: "root", id: "4" }, "verify", { steps: 1 })), "Insufficient")
    assert.deepStrictEqual(Budget.violations(ledger), [])
  })

  it("counts children and what they are topped up with", () => {
    const tree = capped()
    assert.strictEqual(tag(child(tree, "root", "large", { steps: 13 })), "Insufficient")
    ok(child(tree, "root", "a", { steps: 10 }))
    assert.strictEqual(tag(tree.ledger.topUp("a", { steps: 3 })), "Insufficient")
    ok(tree.ledger.topUp("a", { steps: 2 }))
    assert.strictEqual(tag(child(tree, "root", "b", { steps: 1 })), "Insufficient")
  })

  it("is refused above 100 per cent", () => {
    const reserves = { _tag: "Explicit", exploreAtMost: { steps: 101 } } as const
    const reason = refusal(
      Budget.Ledger.openRoot({
        id: "r",
        name: "r",
        grant: { steps: 5 },
        reserves,
        record: () => {},
        nowMillis: () => 0,
      }),
    )
    assert.strictEqual(reason._tag === "InvalidAmount" ? reason.field : "", "reserves.exploreAtMost.steps")
  })
})
