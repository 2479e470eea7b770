/**
 * The words and units of a case in those of Bursar.
 */
import type { Agent, Model, Price } from "../../src/index.ts"
import { Budget } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
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

/** What a model of a case costs, if anybody knows. */
export const priceOf = (one: Case, model: string): Price.Price | undefined => {
  const price = one.prices[model]
  if (price === null || price === undefined) return undefined
  return {
    inputPicoUsd: price.in * picoPerMicro,
    cachedInputPicoUsd: (price.cached ?? price.in) * picoPerMicro,
    cacheWriteInputPicoUsd: (price.written ?? price.in) * picoPerMicro,
    outputPicoUsd: price.out * picoPerMicro,
  }
}

/** A conversation that follows a script: the model to ask, with those it falls back on, and what it was asked. */
export interface Conversation {
  readonly model: Model.Model
  readonly requests: ReadonlyArray<ScriptedModel.Sent>
  readonly pastScript: () => number
}

/** Makes the models of one conversation of a case: what a stage is given to play it on. */
export type Converse = (one: Case, turns: ReadonlyArray<Turn>) => Conversation

/** A conversation in this process: no network, and the clock of the test. */
export const scripted: Converse = (one, turns) => {
  const named = (name: string): ScriptedModel.Named => {
    const price = priceOf(one, name)
    return { name, options: one.options?.[name] ?? {}, ...(price === undefined ? {} : { price }) }
  }
  const fallback = (one.fallback ?? []).map(named)
  return ScriptedModel.make(turns.map(turnOf), { ...named(one.model), fallback })
}

/** Usage as a provider of the exclusive style reports it, brought to Bursar's inclusive one. */
export const normalised = (usage: Usage) => {
  const exclusive = usage.style === "exclusive"
  const [cached, written] = [usage.cached ?? 0, usage.written ?? 0]
  return {
    input: usage.in + (exclusive ? cached + written : 0),
    output: usage.out + (exclusive ? (usage.reasoning ?? 0) : 0),
    cached,
    written,
  }
}

/** The fault of a turn that brings no reply; `usage_missing` comes with one. */
const faultOf = ({ fault, retry_after_ms: retryAfterMillis }: Turn): ScriptedModel.Turn["fault"] => {
  if (fault === undefined || fault === "usage_missing") return undefined
  if (fault === "timeout") return "timeout"
  if (fault === "truncated_stream") return "cut"
  const status = statusOf(fault)
  return { status: status!, ...(retryAfterMillis === undefined ? {} : { retryAfterMillis }) }
}

/** The status of a fault that is one. */
export const statusOf = (fault: Turn["fault"]): number | undefined => {
  if (fault === undefined || ["usage_missing", "timeout", "truncated_stream"].includes(fault)) return undefined
  const status = Number(/^http_(\d{3})$/.exec(fault)?.[1])
  if (!Number.isNaN(status)) return status
  throw new Error(`fault is ${fault}: give http_STATUS, timeout, truncated_stream or usage_missing`)
}

export const turnOf = (turn: Turn): ScriptedModel.Turn => {
  const fault = faultOf(turn)
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
    ...(turn.frames === undefined ? {} : { frames: turn.frames.map(normalised) }),
    usage: turn.fault === "usage_missing" ? null : usage,
    countedInput: turn.est_in ?? usage?.input ?? 0,
    millis: turn.ms ?? 0,
  }
}
