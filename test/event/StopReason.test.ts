import { assert, describe, it } from "@effect/vitest"
import { Budget } from "../../src/index.ts"
import * as StopReason from "../../src/event/StopReason.ts"

/** The table of the design, as it is written there. */
const table: ReadonlyArray<
  readonly [reason: StopReason.StopReason, wrapUp: boolean, error: (result: string) => boolean]
> = [
  ["completed", false, () => false],
  ["budget:steps", true, (result) => result === "none"],
  ["budget:ticks", true, (result) => result === "none"],
  ["budget:input_tokens", true, (result) => result === "none"],
  ["budget:output_tokens", true, (result) => result === "none"],
  ["budget:money", true, (result) => result === "none"],
  ["budget:tool_calls", true, (result) => result === "none"],
  ["deadline", true, (result) => result === "none"],
  ["no_progress", true, (result) => result === "none"],
  ["repeated_action", true, (result) => result === "none"],
  ["invalid_decisions", true, (result) => result === "none"],
  ["unverified", false, () => false],
  ["blocked", true, (result) => result === "none"],
  ["tool_error", true, () => true],
  ["model_error", false, () => true],
  ["unpriced", false, () => true],
  ["cancelled", false, () => false],
  ["owner_lost", false, () => true],
]

describe("the table of stop reasons", () => {
  it("says after which a last answer is asked for, and which are errors", () => {
    for (const [reason, wrapUp, error] of table) {
      assert.strictEqual(StopReason.allowsWrapUp(reason), wrapUp, reason)
      for (const result of ["partial", "none"] as const)
        assert.strictEqual(StopReason.isError(reason, result), error(result), `${reason} ${result}`)
    }
  })

  it("has a sentence of its own for each", () => {
    const sentences = StopReason.StopReason.literals.map((reason) => StopReason.sentenceOf(reason))
    assert.strictEqual(new Set(sentences).size, sentences.length)
    for (const sentence of sentences) assert.match(sentence, /^[A-Z].*\.$/)
    assert.deepStrictEqual(
      StopReason.StopReason.literals.toSorted(),
      [...table.map(([reason]) => reason), "refused_at_open"].toSorted() as never,
    )
  })

  it("names the first short dimension in the documented order", () => {
    assert.strictEqual(StopReason.firstShort(["toolCalls", "money", "inputTokens"]), "budget:input_tokens")
    for (const dimension of Budget.dimensions) {
      const reason = StopReason.outOf(dimension)
      assert.strictEqual(StopReason.firstShort([dimension]), reason)
      assert.strictEqual(StopReason.dimensionOf(reason), dimension)
    }
    assert.strictEqual(StopReason.dimensionOf("deadline"), undefined)
  })
})
