/**
 * Runs scripted cases: `npm run cases -- FILE.jsonl`. One line a case, a closing count, exit 1 when one failed.
 */
import { readFileSync } from "node:fs"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import { Case, missingNeeds } from "./Case.ts"
import { differences } from "./Judge.ts"
import { play } from "./Play.ts"

type Verdict = { readonly verdict: "passed" | "failed" | "skipped"; readonly line: string }

const decode = Schema.decodeUnknownExit(Schema.fromJsonString(Case))

const runLine = async (text: string, number: number): Promise<Verdict> => {
  const decoded = decode(text)
  if (Exit.isFailure(decoded)) {
    return { verdict: "failed", line: `failed   line ${number}: not a case: ${String(Cause.squash(decoded.cause))}` }
  }
  const one = decoded.value
  const name = `${one.id} ${one.title}`
  const missing = missingNeeds(one)
  if (missing.length > 0) return { verdict: "skipped", line: `skipped  ${name} (needs ${missing.join(", ")})` }
  const exit = await Effect.runPromiseExit(play(one))
  if (Exit.isFailure(exit)) return { verdict: "failed", line: `failed   ${name}\n         ${Cause.pretty(exit.cause)}` }
  const found = differences(one, exit.value)
  return found.length === 0
    ? { verdict: "passed", line: `passed   ${name}` }
    : { verdict: "failed", line: [`failed   ${name}`, ...found.map((one) => `         ${one}`)].join("\n") }
}

const main = async (file: string | undefined): Promise<number> => {
  if (file === undefined) {
    console.error("usage: npm run cases -- FILE.jsonl")
    return 2
  }
  let text: string
  try {
    text = readFileSync(file, "utf8")
  } catch {
    console.error(`cannot read ${file}: give a file of cases, one JSON object a line`)
    return 2
  }
  const counts = { passed: 0, failed: 0, skipped: 0 }
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue
    const { verdict, line: shown } = await runLine(line, index + 1)
    counts[verdict]++
    console.log(shown)
  }
  console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`)
  return counts.failed > 0 ? 1 : 0
}

process.exitCode = await main(process.argv[2])
