/**
 * Runs scripted cases: `npm run cases -- FILE.jsonl`. One line a case, a closing count, exit 1 when one failed. With
 * `--http` each is played over real HTTP instead, in every protocol, streamed and not.
 */
import { readFileSync } from "node:fs"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import { Case, missingNeeds } from "./Case.ts"
import { differences } from "./Judge.ts"
import { parseArgs } from "node:util"
import { ways, wire } from "./Http.ts"
import { play, type Played } from "./Play.ts"

type Verdict = { readonly verdict: "passed" | "failed" | "skipped"; readonly line: string }

const decode = Schema.decodeUnknownExit(Schema.fromJsonString(Case))

/** One way to play a case. */
interface Showing {
  readonly name: string
  readonly played: Effect.Effect<Played, unknown>
}

const showingsOf = (one: Case, overHttp: boolean): ReadonlyArray<Showing> =>
  overHttp
    ? ways(one).map((way) => ({
        name: `${one.id} ${way.protocol}${way.stream ? ", streamed" : ""}: ${one.title}`,
        played: Effect.scoped(Effect.flatMap(wire(way), (theatre) => play(one, theatre))),
      }))
    : [{ name: `${one.id} ${one.title}`, played: play(one) }]

const show = async (one: Case, { name, played }: Showing): Promise<Verdict> => {
  const exit = await Effect.runPromiseExit(played)
  if (Exit.isFailure(exit)) return { verdict: "failed", line: `failed   ${name}\n         ${Cause.pretty(exit.cause)}` }
  const found = differences(one, exit.value)
  return found.length === 0
    ? { verdict: "passed", line: `passed   ${name}` }
    : { verdict: "failed", line: [`failed   ${name}`, ...found.map((one) => `         ${one}`)].join("\n") }
}

async function* runLine(text: string, number: number, overHttp: boolean): AsyncGenerator<Verdict> {
  const decoded = decode(text)
  if (Exit.isFailure(decoded)) {
    yield { verdict: "failed", line: `failed   line ${number}: not a case: ${String(Cause.squash(decoded.cause))}` }
    return
  }
  const one = decoded.value
  const missing = missingNeeds(one)
  if (missing.length > 0) {
    yield { verdict: "skipped", line: `skipped  ${one.id} ${one.title} (needs ${missing.join(", ")})` }
    return
  }
  for (const showing of showingsOf(one, overHttp)) yield await show(one, showing)
}

const main = async (): Promise<number> => {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { http: { type: "boolean", default: false } },
  })
  const [file] = positionals
  if (file === undefined) {
    console.error("usage: npm run cases -- FILE.jsonl [--http]")
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
    for await (const { verdict, line: shown } of runLine(line, index + 1, values.http)) {
      counts[verdict]++
      console.log(shown)
    }
  }
  console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`)
  return counts.failed > 0 ? 1 : 0
}

process.exitCode = await main()
