/**
 * The words and units of a case in those of Bursar.
 */
import type { Agent, Price } from "../../src/index.ts"
import { Budget } from "../../src/index.ts"
import type { ScriptedModel } from "../../src/testing/index.ts"
import type { Axes, Case, Reserves, Turn, Usage } from "./Case.ts"

export const nanoPerMicro = 1_000
const picoPerMicro = 1_000_000

export const grantOf = (axes: Axes): Budget.Grant => ({
  ...(axes.steps === undefined ? {} : { steps: axes.steps }),
  ...(axes.ticks === undefined ? {} : { ticks: axes.ticks }),
  ...(axes.in === undefined ? {} : { inputTokens: axes.in }),
  ...(axes.out === undefined ? {} : { outputTokens: axes.out }),
  ...(axes.uusd === undefined ? {} : { money: axes.uusd * nanoPerMicro }),
  ...(axes.tool_calls === undefined ? {} : { toolCalls: axes.tool_calls }),
})

export const inputOf = (axes: Axes): Budget.Input => {
  const { money, ...counters } = grantOf(axes)
  return {
    ...counters,
    money: money === undefined ? undefined : Budget.formatMoney(money),
    wallClock: axes.wall_ms,
  }
}

export const reservesOf = (reserves: Reserves | undefined): Agent.Reserves => ({
  output: grantOf(reserves?.output ?? {}),
  verify: grantOf(reserves?.verify ?? {}),
  retry: grantOf(reserves?.retry ?? {}),
  outputMillis: reserves?.output?.wall_ms ?? 0,
  verifyMillis: reserves?.verify?.wall_ms ?? 0,
})

export const priceOf = (one: Case): Price.Price | undefined => {
  const price = one.prices[one.model]
  if (price === null || price === undefined) return undefined
  return {
    inputPicoUsd: price.in * picoPerMicro,
    cachedInputPicoUsd: (price.cached ?? price.in) * picoPerMicro,
    cacheWriteInputPicoUsd: (price.written ?? price.in) * picoPerMicro,
    outputPicoUsd: price.out * picoPerMicro,
  }
}

/** Usage as a provider of the exclusive style reports it, brought to Bursar's inclusive one. */
const normalised = (usage: Usage) => {
  const exclusive = usage.style === "exclusive"
  const [cached, written] = [usage.cached ?? 0, usage.written ?? 0]
  return {
    input: usage.in + (exclusive ? cached + written : 0),
    output: usage.out + (exclusive ? (usage.reasoning ?? 0) : 0),
    cached,
    written,
  }
}

const faults: Readonly<Record<string, (turn: Turn) => NonNullable<ScriptedModel.Turn["fault"]>>> = {
  http_429: (turn) => ({
    status: 429,
    ...(turn.retry_after_ms === undefined ? {} : { retryAfterMillis: turn.retry_after_ms }),
  }),
  http_500: () => ({ status: 500 }),
  timeout: () => "timeout",
  truncated_stream: () => "cut",
}

export const turnOf = (turn: Turn): ScriptedModel.Turn => {
  const fault = turn.fault === undefined ? undefined : faults[turn.fault]?.(turn)
  const usage = turn.usage === undefined || turn.usage === null ? null : normalised(turn.usage)
  return {
    ...(turn.text === undefined ? {} : { text: turn.text }),
    ...(turn.calls === undefined
      ? {}
      : {
          calls: turn.calls.map((call) => ({
            id: call.id,
            name: call.tool,
            params: call.bad_args ?? call.args ?? {},
          })),
        }),
    ...(fault === undefined ? {} : { fault }),
    ...(turn.finish === undefined ? {} : { finishReason: turn.finish }),
    usage: turn.fault === "usage_missing" ? null : usage,
    countedInput: turn.est_in ?? usage?.input ?? 0,
    millis: turn.ms ?? 0,
  }
}
