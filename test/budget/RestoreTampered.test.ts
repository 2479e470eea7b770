/**
 * A journal that was changed: which entry is named, and what is said of it.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import type { Entry } from "../../src/budget/Entry.ts"
import { broken, tryRestore } from "./restoring.ts"
import { child, ok, open, refusal } from "./tree.ts"

const at = (account: string, id: string) => ({ account, id })

const agent = { window: { _tag: "Agent", verifier: true }, wallClockMillis: 1000 } as const

describe("a journal that was changed", () => {
  const journal = (): ReadonlyArray<Entry> => {
    const tree = open({ money: 40, steps: 9 }, agent)
    ok(child(tree, "root", "a", { money: 20, steps: 4 }))
    ok(tree.ledger.hold(at("a", "h"), "explore", { money: 4 }))
    ok(tree.ledger.settle(at("a", "h"), { money: 30 }))
    ok(tree.ledger.pause("a", "approval"))
    tree.clock.millis = 30
    ok(tree.ledger.resume("a"))
    ok(tree.ledger.close("a"))
    return tree.entries
  }
  const [opened, carved, held, settled, overran, paused, resumed, closed] = [0, 1, 2, 3, 4, 5, 6, 7]

  const said = (entries: ReadonlyArray<Entry>): string => {
    const result = tryRestore(entries)
    if (Result.isSuccess(result)) return "nothing"
    assert.strictEqual(result.failure._tag, "RestoreFailure")
    return result.failure.message
  }
  const changed = (at: number, fields: object): string =>
    said(broken(journal(), at, (entry) => [{ ...entry, ...fields }]))

  it("is not one that is as it was written", () => {
    assert.strictEqual(said(journal()), "nothing")
  })

  it("is told which entry says what, and what the books say", () => {
    assert.strictEqual(
      changed(settled, { held: { money: 5 } }),
      "entries[3]: held.money is 5 in the journal and 4 in the books",
    )
    assert.strictEqual(
      changed(settled, { actual: { money: 31 } }),
      "entries[4]: excess.money is 26 in the journal and 27 in the books",
    )
    assert.strictEqual(
      changed(closed, { own: { money: 3, steps: 1 } }),
      "entries[7]: own.money is 3 in the journal and 30 in the books",
    )
    assert.strictEqual(
      changed(resumed, { pausedMillis: 20 }),
      "entries[6]: pausedMillis is 20 in the journal and 30 in the books",
    )
    assert.include(changed(carved, { grant: { money: 30, steps: 4 } }), "entries[1]: grant.money is 30 in the journal")
    assert.strictEqual(
      changed(carved, { path: "root/other" }),
      `entries[4]: covered.0.account is "root/a" in the journal and "root/other" in the books`,
    )
    assert.include(changed(carved, { path: "a" }), `entries[1]: path is "a" in the journal and "root/" in the books`)
    assert.include(changed(held, { amounts: { money: 21 } }), "entries[2]: the journal says {")
    assert.include(changed(held, { amounts: { money: 21 } }), "that it is refused: money: 21 asked, 20 available")
    assert.include(changed(held, { amounts: { money: -4 } }), "that it is refused: hold.money is -4")
    assert.include(changed(held, { reserve: "verify" }), "moved.money is nothing in the journal and 4 in the books")
    assert.include(changed(held, { account: "z" }), "the books say that there is no account z")
    assert.include(changed(overran, { covered: [] }), "entries[4]: covered.0 is nothing in the journal and {")
    assert.include(changed(overran, { more: 1 }), "entries[4]: more is 1 in the journal and nothing in the books")
  })

  it("does not let a child live longer than its parent works", () => {
    const window = { exploreEndMillis: 700, verifyEndMillis: 800, deadlineMillis: 900 }
    assert.strictEqual(
      changed(carved, { window }),
      "entries[1]: window.exploreEndMillis is 700 in the journal and 600 in the books",
    )
    assert.include(changed(carved, { window: undefined }), "entries[1]: window is nothing in the journal and {")
  })

  it("misses an entry", () => {
    const without = (at: number) => said(broken(journal(), at, () => []))
    assert.include(without(opened), `entries[0]: the journal says {"_tag":"Carved"`)
    assert.include(without(opened), "the books say that a root is opened")
    assert.include(without(carved), "entries[1]: the journal says {")
    assert.include(without(held), "entries[2]: the journal says {")
    assert.include(without(held), "that it is refused: nothing has the id h")
    assert.include(without(settled), `"_tag":"Overran"`)
    assert.include(without(settled), "the books say nothing")
    assert.include(without(overran), `entries[4]: the journal says {"_tag":"Paused"`)
    assert.include(without(overran), `the books say {"_tag":"Overran"`)
    assert.include(without(paused), "entries[5]: the journal says {")
    assert.include(without(paused), "account root/a is open")
    assert.strictEqual(without(closed), "nothing")
  })

  it("has an entry twice", () => {
    for (let at = 0; at < journal().length; at++)
      assert.include(said(broken(journal(), at, (entry) => [entry, entry])), `entries[${at + 1}]: `)
  })

  it("has a refusal twice under an id that stays refused", () => {
    const tree = open({ money: 4 })
    refusal(tree.ledger.hold(at("root", "h"), "explore", { money: 5 }))
    refusal(tree.ledger.settle(at("root", "h"), { money: 5 }))
    assert.strictEqual(said(broken(tree.entries, 2, (entry) => [entry, entry])), "nothing")
    assert.include(said(broken(tree.entries, 1, (entry) => [entry, entry])), "entries[2]: ")
  })

  it("is empty", () => {
    assert.strictEqual(said([]), "entries[0]: the journal says nothing, the books say that a root is opened")
  })

  it("has no form at all", () => {
    assert.include(said([journal()[0]!, {} as Entry]), "entries[1]: ")
    assert.include(changed(settled, { actual: undefined }), "entries[3]: ")
    assert.include(changed(held, { _tag: "Unknown" }), "entries[2]: ")
    assert.include(changed(opened, { grant: { money: 1.5 } }), "entries[0]: ")
    assert.include(changed(opened, { reserves: {} }), "entries[0]: ")
  })
})
