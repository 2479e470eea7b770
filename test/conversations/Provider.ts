/**
 * What the provider of a random conversation does, by seed: what it says, what it states, and what goes wrong on the way.
 *
 * It keeps the assumptions under which a budget is proven (A1 to A3) except where a turn says by `lies` which one it
 * breaks, so that the judge can tell what nobody could have known.
 */
import type { TestingServer } from "../../src/testing/index.ts"
import { Random } from "../races/Schedule.ts"

/** Which assumption a turn breaks: that the cap on output is kept, or that what is stated is what is billed. */
export type Lie = "exceeds the cap" | "states less than it bills"

/** A turn as it was said. */
export interface Said {
  readonly turn: TestingServer.Turn
  readonly lies: ReadonlySet<Lie>
  /** True where the usage that is stated cannot be: it contradicts itself, or is all zero. */
  readonly isImplausible: boolean
}

/** A provider by seed, and what it said under each number. */
export interface Provider {
  readonly script: (request: TestingServer.RequestBody, n: number) => TestingServer.Turn
  readonly said: ReadonlyMap<number, Said>
}

type Usage = TestingServer.TurnUsage

export const provider = (seed: number, of: { readonly faults: number; readonly tempers: number }): Provider => {
  const said = new Map<number, Said>()
  return {
    said,
    script: (request, n) => {
      const random = new Random(seed * 1_000 + n)
      const usage = usageOf(request, random)
      if (request.counting === true) return { countedInput: usage.input }
      const one = random.chance(of.faults) ? fault(random, usage) : reply(random, usage, of.tempers)
      said.set(n, one)
      return one.turn
    },
  }
}

/** The input that is billed depends on the request alone, as the counter of a provider knows it beforehand. */
const usageOf = (request: TestingServer.RequestBody, random: Random): Usage => {
  const { input, tools, instructions, text } = request
  const bytes = Buffer.byteLength(JSON.stringify([input, tools, instructions, text]))
  // Fewer than an estimate of any kind may find: prose and JSON take four bytes a token.
  const billed = Math.floor(bytes / 12) + 1
  const cap = request.max_output_tokens ?? 4_096
  const output = random.between(1, Math.min(cap, 120))
  const cached = random.chance(0.3) ? random.between(0, billed) : 0
  return {
    input: billed,
    output,
    cached,
    cacheWrite: random.chance(0.2) ? random.between(0, billed - cached) : 0,
    reasoning: random.chance(0.3) ? random.between(0, output) : 0,
  }
}

const words = "the budget of a child is carved from what its parent has left and returns when it ends".split(" ")

const prose = (random: Random): string =>
  Array.from({ length: random.between(1, 40) }, () => random.pick(words)).join(" ")

/** Names of the tools of a conversation, and one that there is not. */
const names = ["look", "look", "look", "store", "wreck", "nothing"] as const

const call = (random: Random, index: number): TestingServer.Call => ({
  id: random.chance(0.1) ? "call_again" : `call_${index}_${random.between(0, 9)}`,
  name: random.pick(names),
  arguments: random.chance(0.1)
    ? random.pick(['{"key":', "null", '{"key":1}', '{"key":"a","more":true}', ""])
    : { key: random.pick(words) },
})

const reply = (random: Random, usage: Usage, tempers: number): Said => {
  const what = random.next()
  const turn: TestingServer.Turn = {
    usage,
    ...(what < 0.8
      ? { calls: Array.from({ length: random.pick([1, 1, 1, 2, 3]) }, (_, index) => call(random, index)) }
      : {}),
    ...(what < 0.2 || (what >= 0.8 && what < 0.97) ? { text: prose(random) } : {}),
    ...(what >= 0.97 ? { refusal: "No." } : {}),
    ...(random.chance(0.1) ? { incomplete: random.pick(["max_output_tokens", "content_filter"] as const) } : {}),
    ...(random.chance(0.1) ? { reasoningSummary: prose(random) } : {}),
  }
  return random.chance(tempers) ? tempered(random, turn, usage) : honest(turn)
}

const honest = (turn: TestingServer.Turn): Said => ({ turn, lies: new Set(), isImplausible: false })

const implausible = (usage: Usage): ReadonlyArray<TestingServer.Stated> => [
  { ...usage, cached: usage.input + 1 },
  { ...usage, input: -usage.input },
  { ...usage, output: usage.output + 0.5 },
  { ...usage, reasoning: usage.output + 1 },
  { ...usage, total: usage.input + usage.output - 1 },
]

const tempered = (random: Random, turn: TestingServer.Turn, usage: Usage): Said => {
  if (random.chance(0.2))
    return { ...honest({ ...turn, stated: random.pick(implausible(usage)) }), isImplausible: true }
  const temper = random.pick(tempers)
  const lie = lies[temper]
  return {
    turn: { ...turn, temper },
    lies: new Set(lie === undefined ? [] : [lie]),
    isImplausible: temper === "zero-usage" || temper === "omits-usage",
  }
}

const tempers = [
  "ignores-cap",
  "ignores-tools",
  "eats-cap",
  "omits-usage",
  "zero-usage",
  "under-reports",
  "over-bills",
  "repeats-ids",
  "empties-ids",
  "usage-on-every-chunk",
  "null-content",
  "other-model",
  "other-tier",
] as const satisfies ReadonlyArray<TestingServer.Temper>

const lies: { readonly [T in TestingServer.Temper]?: Lie } = {
  "ignores-cap": "exceeds the cap",
  "over-bills": "exceeds the cap",
  "under-reports": "states less than it bills",
}

const fault = (random: Random, usage: Usage): Said => {
  const turn: TestingServer.Turn = { usage, text: prose(random) }
  switch (random.between(0, 7)) {
    case 0:
      return honest({ status: 429, ...(random.chance(0.5) ? { retryAfterMs: random.between(1, 3) } : {}) })
    case 1:
      return honest({ status: random.pick([500, 502, 503]) })
    case 2:
      return honest({ status: random.pick([400, 401, 403, 404, 408, 409, 413, 422]) })
    case 3:
      return honest({ ...turn, cut: random.pick(["beforeHeaders", true, random.between(0, 400)] as const) })
    case 4:
      return honest({ ...turn, garbage: random.between(0, 300) })
    case 5:
      // What failed while it was generated is not billed.
      return honest({
        text: prose(random),
        fails: { afterEvents: random.between(0, 4), as: random.pick(["error", "failed"] as const) },
      })
    case 6:
      return honest({ ...turn, hang: random.pick([true, random.between(0, 300)] as const) })
    default:
      return honest({ ...turn, delays: [{ atByte: random.between(0, 200), millis: random.between(1, 4) }] })
  }
}
