import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import { dimensions, type Grant, zero } from "../../src/budget/Dimension.ts"
import {
  defaultShares,
  forAgent,
  type Plan,
  reserves,
  split,
  splitCounter,
  undivided,
} from "../../src/budget/Reserve.ts"
import { max, ok, refusal, shortages } from "./tree.ts"

const checked = { shares: defaultShares, verifier: true, answer: 1, check: 1 }
const unchecked = { shares: defaultShares, verifier: false, answer: 1, check: 0 }

describe("a counter", () => {
  it.each([
    [0, 0, 0, 0, 0],
    [1, 1, 0, 0, 0],
    [2, 1, 1, 0, 0],
    [3, 1, 1, 0, 1],
    [4, 1, 1, 0, 2],
    [5, 1, 1, 0, 3],
    [10, 1, 2, 1, 6],
    [19, 2, 4, 1, 12],
    [20, 3, 5, 2, 10],
    [100, 15, 25, 10, 50],
  ])("of %i gives output %i, verify %i, retry %i, explore %i", (grant, output, verify, retry, explore) => {
    assert.deepStrictEqual(splitCounter(grant, checked), { explore, retry, verify, output })
  })

  it("gives output its smallest answer before anything else, then verify its check", () => {
    const plan = { ...checked, answer: 7, check: 4 }
    assert.deepStrictEqual(splitCounter(6, plan), { explore: 0, retry: 0, verify: 0, output: 6 })
    assert.deepStrictEqual(splitCounter(7, plan), { explore: 0, retry: 0, verify: 0, output: 7 })
    assert.deepStrictEqual(splitCounter(9, plan), { explore: 0, retry: 0, verify: 2, output: 7 })
    assert.deepStrictEqual(splitCounter(12, plan), { explore: 0, retry: 1, verify: 4, output: 7 })
  })

  it("leaves the verify share in explore without a verifier", () => {
    assert.deepStrictEqual(splitCounter(100, unchecked), { explore: 75, retry: 10, verify: 0, output: 15 })
    assert.deepStrictEqual(splitCounter(3, unchecked), { explore: 2, retry: 0, verify: 0, output: 1 })
  })

  const addsUp = (grant: number) => {
    for (const plan of [checked, unchecked]) {
      const parts = splitCounter(grant, plan)
      assert.strictEqual(parts.explore + parts.retry + parts.verify + parts.output, grant)
      for (const reserve of reserves) assert.isAtLeast(parts[reserve], 0)
    }
  }

  it("adds up for every grant from 0 to 200 and at the edges of exact numbers", () => {
    for (let grant = 0; grant <= 200; grant++) addsUp(grant)
    for (const edge of [2 ** 31, 2 ** 32, 2 ** 52, max]) for (let by = -120; by <= 0; by++) addsUp(edge + by)
  })

  it("keeps the exact floors of the shares at 2^53 - 1", () => {
    const share = (percent: bigint) => Number((BigInt(max) * percent) / 100n)
    const parts = splitCounter(max, checked)
    assert.strictEqual(parts.output, share(15n))
    assert.strictEqual(parts.verify, share(25n))
    assert.strictEqual(parts.retry, share(10n))
  })

  const Grant = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: max - 1 }))

  it.prop("keeps no less in a senior reserve when the grant is one larger", [Arbitrary.schema(Grant)], ([grant]) => {
    const [less, more] = [splitCounter(grant, checked), splitCounter(grant + 1, checked)]
    for (const reserve of ["output", "verify", "retry"] as const) assert.isAtLeast(more[reserve], less[reserve])
  })
})

describe("a grant", () => {
  const agent = forAgent({ check: { steps: 1, ticks: 1 } })

  it("keeps no tool call for the output: the wrap-up withdraws the tools", () => {
    const parts = ok(split({ steps: 100, toolCalls: 100 }, agent, "root"))
    assert.strictEqual(parts.output.toolCalls, 0)
    assert.strictEqual(parts.explore.toolCalls, 65)
    assert.strictEqual(parts.output.steps, 15)
  })

  it("is not split where it has no cap", () => {
    const parts = ok(split({ steps: 100 }, agent, "root"))
    for (const reserve of reserves) assert.strictEqual(parts[reserve].money, 0)
  })

  it("is refused below one answer and one check, naming every dimension that is short", () => {
    assert.deepStrictEqual(shortages(split({ steps: 1, ticks: 0, money: 0 }, agent, "root/a")), [
      { dimension: "steps", reserve: "explore", asked: 2, available: 1, account: "root/a", whose: "minimum" },
      { dimension: "ticks", reserve: "explore", asked: 2, available: 0, account: "root/a", whose: "minimum" },
    ])
    ok(split({ steps: 2, ticks: 2 }, agent, "root"))
  })

  it("needs nothing for a check that nobody makes", () => {
    const idle: Plan = { ...checked, _tag: "Shares", verifier: false, answer: { steps: 1 }, check: { steps: 5 } }
    assert.strictEqual(ok(split({ steps: 1 }, idle, "root")).output.steps, 1)
  })

  it("is split into explicit amounts as they are, the rest is explore", () => {
    const plan: Plan = { _tag: "Explicit", output: { money: 30 }, verify: { money: 20 }, retry: { money: 50 } }
    const parts = ok(split({ money: 100, steps: 4 }, plan, "root"))
    assert.deepStrictEqual(parts.explore, { ...zero, steps: 4 })
    assert.deepStrictEqual(parts.output, { ...zero, money: 30 })
    assert.deepStrictEqual(parts.verify, { ...zero, money: 20 })
    assert.deepStrictEqual(parts.retry, { ...zero, money: 50 })
  })

  it("refuses explicit amounts that add up to one more, and does not scale them", () => {
    const plan: Plan = { _tag: "Explicit", output: { money: 30 }, verify: { money: 20 }, retry: { money: 51 } }
    const reason = refusal(split({ money: 100 }, plan, "root"))
    assert.deepStrictEqual(reason, {
      _tag: "InvalidAmount",
      field: "reserves.*.money",
      value: "101",
      remedy: "keep at most the grant of 100",
    })
  })

  it("refuses an explicit amount in a dimension without a cap, and sums past 2^53 - 1", () => {
    assert.strictEqual(refusal(split({}, { _tag: "Explicit", output: { money: 1 } }, "root"))._tag, "InvalidAmount")
    const huge: Plan = { _tag: "Explicit", output: { money: max }, verify: { money: max }, retry: { money: 2 } }
    assert.strictEqual(refusal(split({ money: max }, huge, "root"))._tag, "InvalidAmount")
  })

  it("reads -0 in explicit amounts as 0", () => {
    const parts = ok(split({ money: 5 }, { _tag: "Explicit", output: { money: -0 } }, "root"))
    assert.isTrue(Object.is(parts.output.money, 0))
    assert.isTrue(Object.is(parts.explore.money, 5))
  })

  it("stays whole in explore without a plan", () => {
    const grant: Grant = Object.fromEntries(dimensions.map((d) => [d, 7]))
    assert.deepStrictEqual(ok(split(grant, undivided, "root")).explore, { ...zero, ...grant })
  })
})

describe("a plan is refused", () => {
  const shares = (over: object): Plan => forAgent({ shares: { ...defaultShares, ...over } })
  it.each<readonly [name: string, plan: Plan, field: string, value: string]>([
    ["a negative share", shares({ retry: -10 }), "reserves.shares.retry", "-10"],
    ["a share that is not a number", shares({ output: Number.NaN }), "reserves.shares.output", "NaN"],
    ["half a percent", shares({ verify: 12.5 }), "reserves.shares.verify", "12.5"],
    ["shares above 100 together", shares({ output: 66 }), "reserves.shares", "101"],
    ["an answer of NaN", forAgent({ answer: { money: Number.NaN } }), "reserves.answer.money", "NaN"],
    ["a negative answer", forAgent({ answer: { steps: -1 } }), "reserves.answer.steps", "-1"],
    ["a check of NaN", forAgent({ check: { steps: Number.NaN } }), "reserves.check.steps", "NaN"],
    ["an explicit fraction", { _tag: "Explicit", retry: { money: 0.5 } }, "reserves.retry.money", "0.5"],
  ])("for %s", (_, plan, field, value) => {
    const reason = refusal(split({ steps: 100, ticks: 100, money: 1000 }, plan, "root"))
    assert.include(reason, { _tag: "InvalidAmount", field, value })
  })
})
