/**
 * How much more is held than is billed, over a fixed mix of realistic requests whose true counts are known.
 *
 * Three facts of a request: what its estimate holds, what it is billed, and what some caps let through. With them:
 *
 * - a refusal is **false** when the request was refused although the true bill fits, and so does the held input with
 *   some output that it may be shrunk to and that is as large as the true reply. There must be none: the request could
 *   have been sent, whole, within what is left;
 * - a reply is **cut in vain** when the same holds and the request was sent with less output than the true reply takes;
 * - a refusal, or a cut, is **by margin** when the true bill would have fitted and the true reply would not have beside
 *   the held input, at the dearest rate: the caps lie between the bill and the smallest hold that covers it. Whoever
 *   holds before knowing has some of these, an estimate more than an exact count; they are counted, not forbidden.
 *
 * Every request goes through the real meter and a real ledger, alone, and is billed at its true counts.
 */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import type { ChatCompletionCreateParams } from "openai/resources/chat/completions/completions"
import { readFileSync } from "node:fs"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Budget from "../../src/budget/Budget.ts"
import { inputTokens } from "../../src/model/Estimate.ts"
import * as Meter from "../../src/model/Meter.ts"
import type { Model, Request } from "../../src/model/Model.ts"
import { costOf, type Price, worstCase } from "../../src/model/Price.ts"
import { OpenAi } from "../../src/openai/index.ts"
import { forModel } from "../../src/openai/internal/tokens.ts"
import { Prices } from "../../src/prices/index.ts"
import { TestingServer } from "../../src/testing/index.ts"
import type { Random } from "../races/Schedule.ts"

const Count = Schema.Int.check(Schema.isGreaterThan(0))
const Line = Schema.Struct({
  id: Schema.String,
  messages: Schema.Array(
    Schema.Struct({ role: Schema.Literals(["system", "user", "assistant"]), content: Schema.String }),
  ),
  tools: Schema.Array(
    Schema.Struct({
      name: Schema.String,
      description: Schema.String,
      parameters: Schema.Record(Schema.String, Schema.Unknown),
    }),
  ),
  max_output: Count,
  true_input: Count,
  true_output: Count,
})

/** A request of the mix. */
export type Line = typeof Line.Type

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Line))

/** The requests of a file, one a line. */
export const read = (file: string): ReadonlyArray<Line> =>
  readFileSync(file, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => decode(line))

const model = "gpt-5.6-sol"

/** The price of a model with a dearer cache write and a dearer size, on a fixed day. */
export const price: Price = Result.getOrThrow(Prices.findAt({ model }, new Date("2026-09-30")))

/** Counts the input of a request before it is sent. */
export type CountInput = (line: Line) => number

/** With the tokeniser, as the OpenAI provider counts the body it sends. */
export const tokeniser: Effect.Effect<CountInput> = Effect.map(forModel(model), ({ body }) => (line) => {
  const tools = line.tools.map((tool) => ({
    type: "function" as const,
    function: { ...tool, parameters: { ...tool.parameters } },
  }))
  const messages: ChatCompletionCreateParams["messages"] = line.messages.map((message) => ({ ...message }))
  return Result.getOrThrow(body({ messages, ...(tools.length === 0 ? {} : { tools }) }))
})

/** By the estimate in bytes, as a foreign model is counted. */
export const bytes: CountInput = (line) => inputTokens(requestOf(line))

const requestOf = ({ messages, tools }: Line): Request => ({
  messages: messages.map(({ content, role }) => {
    if (role === "system") return Prompt.systemMessage({ content })
    const parts = { content: [Prompt.textPart({ text: content })] }
    return role === "user" ? Prompt.userMessage(parts) : Prompt.assistantMessage(parts)
  }),
  tools: tools.map(({ description, name, parameters }) =>
    Tool.dynamic(name, { description, parameters: { ...parameters } }),
  ),
})

/** By the counter of the provider, asked over HTTP before each request; it knows the true count. */
export const counter = (lines: ReadonlyArray<Line>): Effect.Effect<CountInput> =>
  Effect.scoped(
    Effect.gen(function* () {
      let asked = lines[0]!
      const server = yield* TestingServer.make({ script: () => ({ countedInput: asked.true_input }) })
      const { count } = yield* OpenAi.model({
        model,
        apiKey: Redacted.make("none"),
        baseUrl: server.url,
        counter: true,
      }).pipe(Effect.orDie)
      const counted = new Map<string, number>()
      for (const line of lines) {
        asked = line
        const { bound, tokens } = yield* count!(requestOf(line))
        if (bound !== "counted") return yield* Effect.die(new Error(`${line.id} was not counted`))
        counted.set(line.id, tokens)
      }
      return (line: Line) => counted.get(line.id)!
    }),
  )

/** What all lines together hold, and the worst of them. */
export interface Held {
  readonly trueTokens: number
  readonly heldTokens: number
  readonly worst: { readonly id: string; readonly ratio: number }
  /** Lines that hold less than they are billed. */
  readonly below: ReadonlyArray<string>
  /** What was held and not used, in nano-USD, for the output asked for and for input alone. */
  readonly overHeldMoney: number
  readonly overHeldInputMoney: number
}

export const held = (lines: ReadonlyArray<Line>, count: CountInput): Held => {
  const all = lines.map((line) => ({ line, tokens: count(line), bill: billOf(line) }))
  const ratios = all.map(({ line, tokens }) => ({ id: line.id, ratio: tokens / line.true_input }))
  const money = (output: (line: Line) => number) =>
    total(
      all.map(
        ({ bill, line, tokens }) => worstCase(price, { inputTokens: tokens, outputTokens: output(line) }) - bill.money,
      ),
    )
  return {
    trueTokens: total(lines.map((line) => line.true_input)),
    heldTokens: total(all.map(({ tokens }) => tokens)),
    worst: ratios.reduce((worst, one) => (one.ratio > worst.ratio ? one : worst)),
    below: ratios.flatMap(({ id, ratio }) => (ratio < 1 ? [id] : [])),
    overHeldMoney: money((line) => line.max_output),
    overHeldInputMoney: money((line) => line.true_output),
  }
}

const total = (numbers: ReadonlyArray<number>): number => numbers.reduce((sum, one) => sum + one, 0)

/** What a request is billed when all of its reply fits. */
export const billOf = ({ true_input, true_output }: Line) => ({
  inputTokens: true_input,
  outputTokens: true_output,
  money: costOf(price, usageOf(true_input, true_output)),
})

const usageOf = (inputTokens: number, outputTokens: number) => ({
  inputTokens,
  cachedInputTokens: 0,
  cacheWriteInputTokens: 0,
  outputTokens,
  reasoningTokens: 0,
})

/** Caps on a request. */
export interface Caps {
  readonly inputTokens?: number
  readonly outputTokens?: number
  readonly money?: number
}

const capped = ["inputTokens", "outputTokens", "money"] as const

/** Caps around the true bill: some absent, some exact, some a unit beside it, most within a fifth under or double. */
export const capsAround = (line: Line, random: Random): Caps => {
  const bill = billOf(line)
  return Object.fromEntries(
    capped.flatMap((dimension) => {
      const amount = bill[dimension]
      const cap = random.pick([
        () => undefined,
        () => amount + random.between(-1, 1),
        () => Math.floor(amount * (0.8 + random.next() * 0.4)),
        () => Math.floor(amount * (0.8 + random.next() * 1.2)),
        () => amount * random.between(1, 40),
      ])()
      return cap === undefined ? [] : [[dimension, cap]]
    }),
  )
}

/** The least output a request may be shrunk to; what OpenAI takes. */
const leastOutput = 16

/** The smallest hold that lets the true reply through. */
const replyOf = (line: Line, tokens: number) => ({
  inputTokens: tokens,
  outputTokens: Math.max(line.true_output, leastOutput),
})

/** What became of one request under its caps. */
export type Fate = "whole" | "cut" | "refused"

export interface Trial {
  readonly fate: Fate
  /** The true bill is within the caps. */
  readonly billFits: boolean
  /** Some output to shrink to, as large as the true reply, fits beside the held input. */
  readonly replyFits: boolean
  /** The output asked for was less than the caller wanted. */
  readonly shrunk: boolean
  /** What is wrong with the books afterwards. */
  readonly wrong: ReadonlyArray<string>
}

/** Sends one request under caps. */
export const attempt = (line: Line, caps: Caps, tokens: number): Effect.Effect<Trial> =>
  Effect.gen(function* () {
    const grant = { steps: 1, ticks: 1, ...caps }
    const at = { id: "root", name: "root", grant, record: () => {}, nowMillis: () => 0 }
    const purse = { ledger: Result.getOrThrow(Budget.Ledger.openRoot(at)), account: "root" }
    let asked = -1
    const used = () => usageOf(line.true_input, Math.min(line.true_output, asked))
    const scripted: Model = {
      name: model,
      provider: "openai",
      price,
      countInput: () => ({ tokens, bound: "estimated" }),
      call: (_, { maxOutputTokens, report }) =>
        Effect.sync(() => {
          asked = maxOutputTokens
          report({ _tag: "Replied", usage: used(), model })
          return { text: "x", calls: [], cut: asked < line.true_output, finishReason: "stop" }
        }),
    }
    const metered = Meter.attempt(
      scripted,
      { messages: [], tools: [] },
      {
        output: { max: line.max_output, min: leastOutput },
        reserve: "explore",
        attempt: 1,
        as: ({ certainty, reply }) => ({ certainty, cut: reply.cut }),
      },
    )
    const sent = yield* Effect.result(Budget.spend(purse, { id: "call", reserve: "explore" }, metered))
    const fits = (amounts: Caps): boolean => capped.every((d) => (amounts[d] ?? 0) <= (caps[d] ?? Infinity))
    const reply = replyOf(line, tokens)
    return {
      fate: Result.isFailure(sent) ? "refused" : asked < line.true_output ? "cut" : "whole",
      billFits: fits(billOf(line)),
      replyFits: fits({ ...reply, money: worstCase(price, reply) }),
      shrunk: asked >= 0 && asked < line.max_output,
      wrong: wrongBooks(purse.ledger, asked < 0 ? undefined : used(), caps),
    }
  })

/** Booked is what was billed, or nothing; and nothing is above a cap or still held. */
const wrongBooks = (ledger: Budget.Ledger, usage: ReturnType<typeof usageOf> | undefined, caps: Caps) => {
  const account = ledger.account("root")
  const booked = Budget.used(account)
  const bill =
    usage === undefined ? { inputTokens: 0, outputTokens: 0, money: 0 } : { ...usage, money: costOf(price, usage) }
  return [
    ...capped.flatMap((d) => (booked[d] === bill[d] ? [] : [`${d}: booked ${booked[d]}, billed ${bill[d]}`])),
    ...capped.flatMap((d) => (booked[d] <= (caps[d] ?? Infinity) ? [] : [`${d}: ${booked[d]} above the cap`])),
    ...ledger.pendingHolds().map((hold) => `${hold.id} is still held`),
  ]
}

/** The sum of many trials. */
export interface Tally {
  trials: number
  billFits: number
  whole: number
  shrunk: number
  falseRefusals: number
  cutInVain: number
  refusedByMargin: number
  cutByMargin: number
  readonly wrong: Array<string>
}

/** Sends every line under `each` random caps, and under caps that the reply fits exactly, and by one not. */
export const trials = (
  lines: ReadonlyArray<Line>,
  count: CountInput,
  { each, random }: { readonly each: number; readonly random: Random },
): Effect.Effect<Tally> =>
  Effect.gen(function* () {
    const tally: Tally = {
      trials: 0,
      billFits: 0,
      whole: 0,
      shrunk: 0,
      falseRefusals: 0,
      cutInVain: 0,
      refusedByMargin: 0,
      cutByMargin: 0,
      wrong: [],
    }
    for (const line of lines) {
      const tokens = count(line)
      const reply = replyOf(line, tokens)
      const exact = { ...reply, money: worstCase(price, reply) }
      const short = capped.map((d) => ({ ...exact, [d]: exact[d] - 1 }))
      const drawn = Array.from({ length: each }, () => capsAround(line, random))
      for (const caps of [exact, ...short, ...drawn]) add(tally, yield* attempt(line, caps, tokens))
    }
    return tally
  })

const add = (tally: Tally, trial: Trial): void => {
  const is = (flag: boolean): number => (flag ? 1 : 0)
  const byMargin = trial.billFits && !trial.replyFits
  tally.trials += 1
  tally.billFits += is(trial.billFits)
  tally.whole += is(trial.fate === "whole")
  tally.shrunk += is(trial.fate === "whole" && trial.shrunk)
  tally.falseRefusals += is(trial.fate === "refused" && trial.replyFits)
  tally.cutInVain += is(trial.fate === "cut" && trial.replyFits)
  tally.refusedByMargin += is(trial.fate === "refused" && byMargin)
  tally.cutByMargin += is(trial.fate === "cut" && byMargin)
  tally.wrong.push(...trial.wrong)
}
