import { assert, describe, it } from "@effect/vitest"
import * as Audit from "../../src/journal/Audit.ts"
import { finish, run } from "./Written.ts"

describe("a bill that becomes known late", () => {
  it("is added up where it lands, on open accounts and closed ones", () => {
    for (const bill of [{ money: 100 }, { money: 700_000 }, { money: 3_000_000 }, { money: 20_000_000 }]) {
      const events = run((one) => {
        one.start("lead")
        const grant = { steps: 4, toolCalls: 3, money: 1_000_000 }
        one.carve("lead", { id: "lead/a-1", name: "a", ask: { _tag: "Exactly", grant } })
        one.carve("lead/a-1", { id: "lead/a-1/b-1", name: "b", ask: { _tag: "Exactly", grant } })
        const ref = { account: "lead/a-1/b-1", id: "late" }
        one.ledger.hold(ref, "explore", { money: 600_000 })
        one.ledger.assume(ref)
        one.ledger.close("lead/a-1/b-1")
        one.ledger.close("lead/a-1")
        one.ledger.adjust(ref, bill)
        finish(one, 1)
      })
      assert.deepStrictEqual(Audit.defects(Audit.audit(events)), [], JSON.stringify(bill))
    }
  })
})
