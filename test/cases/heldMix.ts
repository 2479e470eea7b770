/**
 * Prints what a mix of requests holds beside what it is billed: `npm run mix`, or `npm run mix -- FILE SEED TRIALS`. What
 * the words mean stands in `Mix.ts`. One line a rule that must hold, a closing count, exit 1 when one does not.
 */
import * as Effect from "effect/Effect"
import { formatMoney } from "../../src/budget/Budget.ts"
import { Random } from "../races/Schedule.ts"
import * as Mix from "./Mix.ts"

const [file = "test/cases/mix.jsonl", seed = "1", each = "100"] = process.argv.slice(2)
const lines = Mix.read(file)

let [passed, failed] = [0, 0]
const rule = (name: string, holds: boolean): void => {
  if (holds) passed += 1
  else failed += 1
  console.log(`  ${holds ? "ok  " : "FAIL"} ${name}`)
}

const show = (name: string, count: Mix.CountInput, most: number) =>
  Effect.gen(function* () {
    const held = Mix.held(lines, count)
    const ratio = held.heldTokens / held.trueTokens
    console.log(`\n${name}`)
    console.log(`  held ${held.heldTokens} input tokens for ${held.trueTokens} billed: ${ratio.toFixed(4)}`)
    console.log(`  worst line ${held.worst.id}: ${held.worst.ratio.toFixed(4)}`)
    console.log(
      `  held and not used: ${held.heldTokens - held.trueTokens} input tokens, ${formatMoney(held.overHeldMoney)}`,
    )
    console.log(`    of that beside the reply as it came: ${formatMoney(held.overHeldInputMoney)}`)
    const tally = yield* Mix.trials(lines, count, { each: Number(each), random: new Random(Number(seed)) })
    console.log(`  ${tally.trials} caps around the bill (seed ${seed}); in ${tally.billFits} the bill fits`)
    console.log(`    replied in full ${tally.whole}, of these shrunk to fit ${tally.shrunk}`)
    console.log(`    by margin: refused ${tally.refusedByMargin}, cut ${tally.cutByMargin}`)
    rule("no line is held at less than it is billed", held.below.length === 0)
    rule(`held is at most ${most} of billed`, ratio <= most)
    rule("no false refusal, no reply cut in vain", tally.falseRefusals + tally.cutInVain === 0)
    rule("the books are the bills, within the caps", tally.wrong.length === 0)
  })

console.log(`${lines.length} requests at ${Mix.price.version}`)
await Effect.runPromise(
  Effect.gen(function* () {
    yield* show("the counter", yield* Mix.counter(lines), 1.02)
    yield* show("the tokeniser", yield* Mix.tokeniser, 1.25)
    yield* show("the estimate in bytes", Mix.bytes, 3)
  }),
)
console.log(`\n${passed} passed, ${failed} failed`)
if (failed > 0) process.exitCode = 1
