import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { type Reserve, reserves } from "../../src/budget/Reserve.ts"
import { divide, type WindowPlan } from "../../src/budget/Window.ts"
import { child, max, ok, open, refusal, refusedWithoutTrace, tag, type Tree, tryOpen } from "./tree.ts"

const agent: WindowPlan = { _tag: "Agent", verifier: false }
const checked: WindowPlan = { _tag: "Agent", verifier: true }
const at = (account: string, id = "h") => ({ account, id })

/** When exploring ends, verifying ends, and everything ends. */
const ends = (seconds: number, plan: WindowPlan) => {
  const window = divide({ openedAtMillis: 1000, deadlineMillis: 1000 + seconds * 1000 }, plan)
  return [window.exploreEndMillis, window.verifyEndMillis, window.deadlineMillis].map((end) => (end - 1000) / 1000)
}

describe("a window", () => {
  it("of a scope is one", () => {
    assert.deepStrictEqual(ends(100, { _tag: "Scope" }), [100, 100, 100])
  })

  it("of an agent keeps the last 15 %, at most 30 s, for the output", () => {
    assert.deepStrictEqual(ends(100, agent), [85, 85, 100])
    assert.deepStrictEqual(ends(200, agent), [170, 170, 200])
    assert.deepStrictEqual(ends(1000, agent), [970, 970, 1000])
  })

  it("of an agent with a verifier keeps 25 %, at most 60 s, before that for it", () => {
    assert.deepStrictEqual(ends(100, checked), [60, 85, 100])
    assert.deepStrictEqual(ends(240, checked), [150, 210, 240])
    assert.deepStrictEqual(ends(1000, checked), [910, 970, 1000])
  })

  it("keeps explicit times as they are, but never more than there is", () => {
    assert.deepStrictEqual(ends(100, { ...agent, outputMillis: 5000, verifyMillis: 1000 }), [94, 95, 100])
    assert.deepStrictEqual(ends(3, { ...agent, outputMillis: 5000, verifyMillis: 1000 }), [0, 0, 3])
    assert.deepStrictEqual(ends(6, { ...checked, outputMillis: 5000 }), [0, 1, 6])
  })

  const Millis = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 10_000_000 }))
  it.prop("is never out of order", [Millis, Millis, Millis], ([length, outputMillis, verifyMillis]) => {
    for (const plan of [agent, checked, { ...checked, outputMillis, verifyMillis }]) {
      const window = divide({ openedAtMillis: 0, deadlineMillis: length }, plan)
      assert.isAtLeast(window.exploreEndMillis, 0)
      assert.isAtLeast(window.verifyEndMillis, window.exploreEndMillis)
      assert.isAtLeast(window.deadlineMillis, window.verifyEndMillis)
    }
  })
})

/** 100 s, of which the last 15 are for the output and the 25 before for the verifier. */
const timed = (): Tree => open({ money: 100 }, { window: checked, wallClockMillis: 100_000 })

describe("a reserve", () => {
  it.each([
    ["explore", 60_000],
    ["retry", 60_000],
    ["verify", 85_000],
    ["output", 100_000],
  ] as const)("of %s dispatches until its end at %i ms, and not at it", (reserve, end) => {
    const tree = timed()
    tree.clock.millis = end - 1
    assert.strictEqual(tree.ledger.leftMillis("root", reserve), 1)
    ok(tree.ledger.hold(at("root", "in time"), reserve, { money: 1 }))
    tree.clock.millis = end
    assert.strictEqual(tree.ledger.leftMillis("root", reserve), 0)
    const reason = refusedWithoutTrace(tree, () => tree.ledger.hold(at("root"), reserve, { money: 1 }))
    assert.deepStrictEqual(reason, { _tag: "DeadlinePassed", reserve, leftMillis: 0, neededMillis: 1 })
  })

  it("never ends without a deadline", () => {
    const tree = open({ money: 1 })
    tree.clock.millis = max
    assert.strictEqual(tree.ledger.leftMillis("root", "explore"), undefined)
    ok(tree.ledger.hold(at("root"), "explore", { money: 1 }))
  })

  it("takes settlements, voids and assumptions after its end", () => {
    const tree = timed()
    for (const id of ["h", "i", "j"]) ok(tree.ledger.hold(at("root", id), "explore", { money: 1 }))
    tree.clock.millis = 1_000_000
    ok(tree.ledger.settle(at("root", "h"), { money: 1 }))
    ok(tree.ledger.void(at("root", "i")))
    ok(tree.ledger.assume(at("root", "j")))
    ok(tree.ledger.close("root"))
  })
})

describe("a child's deadline", () => {
  const deadline = (reserve: Reserve, wallClockMillis?: number) => {
    const tree = timed()
    tree.clock.millis = 10_000
    return ok(child(tree, "root", "a", { money: 0 }, { reserve, wallClockMillis })).window!.deadlineMillis
  }

  it("is the end of what funds it, or what it asks for where that is earlier", () => {
    assert.strictEqual(deadline("explore"), 60_000)
    assert.strictEqual(deadline("retry"), 60_000)
    assert.strictEqual(deadline("verify"), 85_000)
    assert.strictEqual(deadline("explore", 49_999), 59_999)
    assert.strictEqual(deadline("explore", 50_000), 60_000)
    assert.strictEqual(deadline("explore", 50_001), 60_000)
  })

  it("is the earliest over all its ancestors", () => {
    const tree = timed()
    ok(child(tree, "root", "a", { money: 9 }, { wallClockMillis: 40_000, window: agent }))
    ok(child(tree, "a", "b", { money: 8 }, { wallClockMillis: 90_000, window: agent }))
    assert.strictEqual(tree.ledger.account("b").window!.deadlineMillis, 34_000)
    ok(child(tree, "b", "c", { money: 8 }, { wallClockMillis: 90_000 }))
    assert.strictEqual(tree.ledger.account("c").window!.deadlineMillis, 34_000 - 5_100)
  })

  it("is its own where no ancestor has one, and none where it asks for none", () => {
    const tree = open({})
    ok(child(tree, "root", "a", {}, { wallClockMillis: 5 }))
    assert.strictEqual(tree.ledger.account("a").window!.deadlineMillis, 5)
    ok(child(tree, "root", "b", {}))
    assert.strictEqual(tree.ledger.account("b").window, undefined)
  })

  it("is refused where no time is left, or less than it needs", () => {
    const tree = timed()
    tree.clock.millis = 59_000
    const short = refusedWithoutTrace(tree, () => child(tree, "root", "a", { money: 1 }, { minimumMillis: 1001 }))
    assert.deepStrictEqual(short, { _tag: "DeadlinePassed", reserve: "explore", leftMillis: 1000, neededMillis: 1001 })
    ok(child(tree, "root", "c", { money: 1 }, { minimumMillis: 1000 }))
    tree.clock.millis = 60_000
    const none = refusedWithoutTrace(tree, () => child(tree, "root", "b", { money: 1 }))
    assert.deepStrictEqual(none, { _tag: "DeadlinePassed", reserve: "explore", leftMillis: 0, neededMillis: 1 })
    ok(child(tree, "root", "d", { money: 0 }, { reserve: "verify" }))
  })
})

describe("a root's deadline", () => {
  it("is refused where it has passed, or leaves less than is needed", () => {
    assert.include(refusal(tryOpen({}, { wallClockMillis: 0 })), { _tag: "DeadlinePassed", leftMillis: 0 })
    assert.include(refusal(tryOpen({}, { wallClockMillis: 9, minimumMillis: 10 })), { leftMillis: 9, neededMillis: 10 })
    ok(tryOpen({}, { wallClockMillis: 10, minimumMillis: 10 }))
  })
})

describe("a time that is no natural number of milliseconds", () => {
  const wrong = [Number.NaN, Infinity, -1, 0.5, 2 ** 53, "5", null]
  const options = {
    wallClockMillis: (value: number) => ({ wallClockMillis: value }),
    minimumMillis: (value: number) => ({ minimumMillis: value }),
    "window.outputMillis": (value: number) => ({ window: { ...agent, outputMillis: value } }),
    "window.verifyMillis": (value: number) => ({ window: { ...agent, verifyMillis: value } }),
  }

  it.each(Object.entries(options))("is refused as %s, for a child and for a root", (field, give) => {
    for (const value of wrong) {
      const given = give(value as number)
      const tree = timed()
      assert.include(
        refusedWithoutTrace(tree, () => child(tree, "root", "a", {}, given)),
        { _tag: "InvalidAmount", field },
      )
      assert.include(refusal(tryOpen({}, given)), { _tag: "InvalidAmount", field })
    }
  })

  it("is refused where the clock cannot reach it", () => {
    const late = { nowMillis: () => 10, wallClockMillis: max - 9 }
    assert.include(refusal(tryOpen({}, late)), { _tag: "InvalidAmount", field: "wallClockMillis" })
    ok(tryOpen({}, { ...late, wallClockMillis: max - 10 }))
  })
})

describe("a paused account", () => {
  it("has its clock stopped, and goes on with the time that was left", () => {
    const tree = timed()
    tree.clock.millis = 50_000
    ok(tree.ledger.pause("root", "approval"))
    tree.clock.millis = 1_000_000
    for (const [reserve, left] of [
      ["explore", 10_000],
      ["verify", 35_000],
      ["output", 50_000],
    ] as const)
      assert.strictEqual(tree.ledger.leftMillis("root", reserve), left)
    ok(tree.ledger.resume("root"))
    assert.strictEqual(tree.ledger.leftMillis("root", "explore"), 10_000)
    ok(tree.ledger.hold(at("root"), "explore", { money: 1 }))
    tree.clock.millis += 10_000
    assert.strictEqual(tag(tree.ledger.hold(at("root", "i"), "explore", { money: 1 })), "DeadlinePassed")
  })

  it("takes its children along: their deadlines move by the same time", () => {
    const tree = timed()
    ok(child(tree, "root", "a", { money: 1 }, { wallClockMillis: 20_000 }))
    ok(tree.ledger.pause("root", "approval"))
    tree.clock.millis = 7_000
    ok(tree.ledger.resume("root"))
    assert.strictEqual(tree.ledger.account("a").window!.deadlineMillis, 27_000)
    assert.strictEqual(tree.ledger.root.window!.deadlineMillis, 107_000)
  })

  it("does not gain time beyond the point at which its parent must go on", () => {
    const tree = timed()
    ok(child(tree, "root", "a", { money: 1 }, { window: agent, wallClockMillis: 50_000 }))
    ok(tree.ledger.pause("a", "approval"))
    tree.clock.millis = 30_000
    ok(tree.ledger.resume("a"))
    const window = { exploreEndMillis: 60_000, verifyEndMillis: 60_000, deadlineMillis: 60_000 }
    assert.deepStrictEqual(tree.ledger.account("a").window, window)
  })

  it("paused within a paused one gains all the time it stood still", () => {
    const tree = timed()
    ok(child(tree, "root", "a", { money: 1 }, { wallClockMillis: 20_000 }))
    ok(tree.ledger.pause("a", "approval"))
    tree.clock.millis = 5_000
    ok(tree.ledger.pause("root", "event"))
    tree.clock.millis = 8_000
    ok(tree.ledger.resume("root"))
    tree.clock.millis = 9_000
    ok(tree.ledger.resume("a"))
    assert.strictEqual(tree.ledger.account("a").window!.deadlineMillis, 29_000)
    assert.strictEqual(tree.ledger.root.window!.deadlineMillis, 103_000)
  })

  it("that is frozen for its closing work still has the time that was left for it", () => {
    const tree = timed()
    tree.clock.millis = 90_000
    ok(tree.ledger.pause("root", "approval"))
    tree.clock.millis = 500_000
    tree.ledger.freeze("root", "declined", { closingWork: true })
    assert.strictEqual(tree.ledger.leftMillis("root", "output"), 10_000)
    ok(tree.ledger.hold(at("root"), "output", { money: 1 }))
  })

  it("without a deadline just goes on", () => {
    const tree = open({ money: 1 })
    ok(tree.ledger.pause("root", "approval"))
    tree.clock.millis = 5
    ok(tree.ledger.resume("root"))
    assert.strictEqual(tree.ledger.root.window, undefined)
    for (const reserve of reserves) assert.strictEqual(tree.ledger.leftMillis("root", reserve), undefined)
  })
})
