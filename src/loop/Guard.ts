/**
 * Noticing that a run goes round in circles: the same actions with the same results, over and over.
 */
import type { Observation, Turn } from "../state/State.ts"
import type { ToolSet } from "../tool/ToolSet.ts"

/**
 * When to call it no progress: the last `repeat` cycles of some length up to `period` steps are equal.
 *
 * @category guards
 * @since 0.1.0
 */
export interface NoProgress {
  readonly repeat: number
  readonly period: number
}

/** Four times: one more than the most reasonable retries. Cycles of up to three steps are seen. */
export const defaultNoProgress: NoProgress = { repeat: 4, period: 3 }

/**
 * Whether the last turns are the same cycle, `repeat` times. A turn that polls is progress by declaration; decisions that
 * could not be used, and nothing else, are counted by {@link unusableInARow} instead.
 */
export const isStuck = (turns: ReadonlyArray<Turn>, tools: ToolSet, guard: NoProgress): boolean => {
  const recent = turns.slice(-guard.repeat * guard.period)
  if (recent.length < guard.repeat || recent.slice(-guard.repeat).every(isUnusable)) return false
  const prints = recent.map((turn) => fingerprint(turn, tools))
  for (let period = 1; period <= guard.period; period++) {
    const window = prints.slice(-guard.repeat * period)
    if (window.length < guard.repeat * period) return false
    if (window.every((print, index) => print !== undefined && print === window[index % period])) return true
  }
  return false
}

/** What a turn did and saw, less the arguments that mean nothing; absent for a turn that is exempt. */
const fingerprint = (turn: Turn, tools: ToolSet): string | undefined => {
  if (turn.observations.some((one) => tools.get(one.tool)?.contract.polling === true)) return undefined
  return JSON.stringify([turn.kind, turn.answer, turn.feedback, turn.observations.map((one) => print(one, tools))])
}

const print = (one: Observation, tools: ToolSet): unknown => {
  const volatile = tools.get(one.tool)?.contract.volatile ?? []
  return [
    one.tool,
    without(one.params, volatile),
    one.outcome,
    one.data,
    one.error?.code,
    one.error?.message,
    one.stateChanged,
  ]
}

const without = (params: unknown, names: ReadonlyArray<string>): unknown =>
  typeof params === "object" && params !== null && names.length > 0
    ? Object.fromEntries(Object.entries(params).filter(([name]) => !names.includes(name)))
    : params

/** How many turns at the end brought nothing the host could use: invalid ones, and ones of wrong calls alone. */
export const unusableInARow = (turns: ReadonlyArray<Turn>, most: number): number => {
  let count = 0
  while (count < most && count < turns.length && isUnusable(turns[turns.length - 1 - count]!)) count++
  return count
}

const isUnusable = (turn: Turn): boolean =>
  turn.kind === "invalid" ||
  (turn.kind === "call" &&
    turn.observations.every((one) => !one.ran && (one.error?.code === "ENOTOOL" || one.error?.code === "EINVAL")))
