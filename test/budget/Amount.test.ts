import { assert, describe, it } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Schema from "effect/Schema"
import { formatMoney, type Input, parse } from "../../src/budget/Amount.ts"
import { max, ok, refusal } from "./tree.ts"

const grantOf = (input: Input) => ok(parse(input)).grant

describe("a budget as people write it", () => {
  it.each([
    ["0.50 USD", 500_000_000],
    ["$0.50", 500_000_000],
    ["  3 usd ", 3_000_000_000],
    ["0.000000001 USD", 1],
    ["9007199.254740991 USD", max],
    ["0 USD", 0],
    ["0", 0],
    ["0.10 USD", 100_000_000],
  ])("reads %j as money, digit by digit", (money, nano) => {
    assert.deepStrictEqual(grantOf({ money }), { money: nano })
  })

  it.each([
    [60, 60],
    [0, 0],
    [max, max],
    ["60", 60],
    ["200k", 200_000],
    ["200K tokens", 200_000],
    ["1.5M tokens", 1_500_000],
    ["0.001k", 1],
    ["9007199254740991", max],
    ["1 step", 1],
  ])("reads %j as a count", (inputTokens, count) => {
    assert.deepStrictEqual(grantOf({ inputTokens }), { inputTokens: count })
  })

  it.each([
    ["3 minutes", 180_000],
    ["90 seconds", 90_000],
    ["90s", 90_000],
    ["2m", 120_000],
    ["250ms", 250],
    ["1.5h", 5_400_000],
    [Duration.seconds(4), 4_000],
    [1500, 1500],
  ])("reads %s as a time", (wallClock, millis) => {
    assert.strictEqual(ok(parse({ wallClock })).wallClockMillis, millis)
  })

  it("leaves uncapped what is left out, and caps at zero what is 0", () => {
    assert.deepStrictEqual(grantOf({ steps: 0, ticks: undefined }), { steps: 0 })
    assert.strictEqual(ok(parse({})).wallClockMillis, undefined)
  })

  it("reads -0 as 0", () => {
    assert.isTrue(Object.is(grantOf({ steps: -0 }).steps, 0))
  })
})

describe("a budget is refused, naming field, value and remedy, for", () => {
  it.each([
    ["money that is no amount", { money: "soon" }, "money", '"soon"'],
    ["money below zero", { money: "-5 USD" }, "money", '"-5 USD"'],
    ["money without its unit", { money: "0.50" }, "money", '"0.50"'],
    ["money in another unit", { money: "5 EUR" }, "money", '"5 EUR"'],
    ["too many decimals", { money: "0.0000000001 USD" }, "money", '"0.0000000001 USD"'],
    ["one nano-dollar too much", { money: "9007199.254740992 USD" }, "money", '"9007199.254740992 USD"'],
    ["money as a number", { money: 5 }, "money", "5"],
    ["money of null", { money: null }, "money", "null"],
    ["a negative count", { steps: -5 }, "steps", "-5"],
    ["a negative count in words", { steps: "-5" }, "steps", '"-5"'],
    ["a count in words", { steps: "soon" }, "steps", '"soon"'],
    ["no text", { steps: "" }, "steps", '""'],
    ["a fraction", { steps: 0.5 }, "steps", "0.5"],
    ["a fraction in words", { steps: "0.5" }, "steps", '"0.5"'],
    ["a fraction of its multiplier", { inputTokens: "0.0005k" }, "inputTokens", '"0.0005k"'],
    ["NaN", { ticks: Number.NaN }, "ticks", "NaN"],
    ["Infinity", { ticks: Infinity }, "ticks", "Infinity"],
    ["2^53", { ticks: 2 ** 53 }, "ticks", "9007199254740992"],
    ["2^53 in words", { ticks: "9007199254740992" }, "ticks", '"9007199254740992"'],
    ["null", { ticks: null }, "ticks", "null"],
    ["an exponent", { ticks: "1e3" }, "ticks", '"1e3"'],
    ["a bigint", { ticks: 5n }, "ticks", "5"],
    ["no time at all", { wallClock: 0 }, "wallClock", "0"],
    ["a time below zero", { wallClock: "-5 minutes" }, "wallClock", '"-5 minutes"'],
    ["a time in words", { wallClock: "soon" }, "wallClock", '"soon"'],
    ["a time without end", { wallClock: Infinity }, "wallClock", "Infinity"],
    ["a time of null", { wallClock: null }, "wallClock", "null"],
    ["a time of another type", { wallClock: true }, "wallClock", "true"],
    ["a cap nobody knows", { setps: 5 }, "setps", "5"],
  ])("%s", (_, input, field, value) => {
    const reason = refusal(parse(input as Input))
    assert.include(reason, { _tag: "InvalidAmount", field, value })
    assert.isAbove(reason._tag === "InvalidAmount" ? reason.remedy.length : 0, 0)
  })
})

const Nano = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: max }))

it.prop("money is read back exactly as it is shown", [Nano], ([nano]) => {
  assert.strictEqual(grantOf({ money: formatMoney(nano) }).money, nano)
})
