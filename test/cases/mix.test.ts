import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import * as Effect from "effect/Effect"
import { Random } from "../races/Schedule.ts"
import * as Mix from "./Mix.ts"

const lines = Mix.read("test/cases/mix.jsonl")

/** A count that knows the truth, times something. */
const times =
  (factor: number): Mix.CountInput =>
  ({ true_input }) =>
    Math.ceil(true_input * factor)

describe("what the mix holds", () => {
  it.effect("is never below the bill, and at most a quarter more with the tokeniser", () =>
    Effect.gen(function* () {
      const held = Mix.held(lines, yield* Mix.tokeniser)
      assert.deepStrictEqual(held.below, [])
      assert.isAtMost(held.heldTokens / held.trueTokens, 1.25)
      assert.isAtMost(held.worst.ratio, 1.25)
    }),
  )

  it("is never below the bill with the estimate in bytes, which is meant for others", () => {
    const held = Mix.held(lines, Mix.bytes)
    assert.deepStrictEqual(held.below, [])
    assert.isAtMost(held.heldTokens / held.trueTokens, 3)
  })

  it("is told apart: a count that is too low is found, line by line", () => {
    const held = Mix.held(lines, times(0.99))
    assert.strictEqual(
      held.below.length,
      lines.filter(({ true_input }) => Math.ceil(true_input * 0.99) < true_input).length,
    )
    assert.isAbove(held.below.length, 0)
  })
})

describe("a request of the mix under caps around its bill", () => {
  const tally = (count: Mix.CountInput, seed = 1) => Mix.trials(lines, count, { each: 30, random: new Random(seed) })

  it.live("is sent whole wherever its reply fits beside what is held", () =>
    Effect.gen(function* () {
      for (const count of [yield* Mix.tokeniser, Mix.bytes, times(1), times(1.02)]) {
        const found = yield* tally(count)
        assert.deepStrictEqual([found.falseRefusals, found.cutInVain, found.wrong], [0, 0, []])
        // Of all these only some were sent as they were asked for.
        assert.isAbove(found.shrunk, found.trials / 20)
        assert.isAbove(found.whole, found.shrunk)
        assert.isBelow(found.whole, found.billFits)
      }
    }),
  )

  it.live("is refused by margin more often the more is held beyond the bill", () =>
    Effect.gen(function* () {
      const counts = [times(1), yield* Mix.tokeniser, Mix.bytes]
      const [exact, tokenised, inBytes] = yield* Effect.forEach(counts, (count) => tally(count))
      assert.isBelow(exact!.refusedByMargin, tokenised!.refusedByMargin)
      assert.isBelow(tokenised!.refusedByMargin, inBytes!.refusedByMargin)
    }),
  )

  it.live("is found to be refused in vain when it is not shrunk as far as it may be", () =>
    Effect.gen(function* () {
      // What shrinking would do that stops at the output asked for.
      const stubborn = lines.map((line) => ({ ...line, max_output: Math.max(16, line.true_output - 1) }))
      const found = yield* Mix.trials(stubborn, times(1), { each: 5, random: new Random(1) })
      assert.isAbove(found.cutInVain, 0)
    }),
  )
})

describe("npm run mix", () => {
  const run = (...args: ReadonlyArray<string>) =>
    spawnSync(process.execPath, ["test/cases/heldMix.ts", ...args], { encoding: "utf8" })

  it("prints every ratio and closes with a count", () => {
    const { status, stdout } = run("test/cases/mix.jsonl", "7", "3")
    assert.strictEqual(status, 0)
    assert.match(stdout, /held \d+ input tokens for 116646 billed: 1\.\d{4}/)
    assert.match(stdout, /^12 passed, 0 failed$/m)
  })
})
