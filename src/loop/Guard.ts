/**
 * Noticing that a run goes round in circles: the same actions with the same results against the same world, over and over,
 * or no step ahead by the user's own measure.
 */
import type { ProposedCall } from "../policy/Proposal.ts"
import type { AgentState, Observation, Turn } from "../state/State.ts"
import { canonical, meant } from "../tool/EffectLedger.ts"
import type { ToolSet } from "../tool/ToolSet.ts"

/**
 * When to call it no progress: the last `repeat` cycles of some length up to `period` steps are equal, in what was done,
 * what was seen and the version of the world. With a `measure`, a step after which it differs is progress whatever else is
 * equal; and after `patience` steps in which it has not changed the run is stuck.
 *
 * @category guards
 * @since 0.1.0
 */
export interface NoProgress {
  readonly repeat: number
  readonly period: number
  readonly measure?: (state: AgentState) => string | number
  readonly patience?: number
}

/** Four times: one more than the most reasonable retries. Cycles of up to three steps are seen. */
export const defaultNoProgress: NoProgress = { repeat: 4, period: 3 }

/** What the guards of one run remember. */
export class Guards {
  readonly #tools: ToolSet
  readonly #noProgress: NoProgress | undefined
  readonly #repeatedAction: number | undefined
  #prints: WeakMap<Turn, string> | undefined
  /** What the measure was after a turn. */
  #measured: WeakMap<Turn, string | number> | undefined
  #looked: Turn | undefined
  #proposed: Map<string, number> | undefined
  #measure: string | number | undefined
  #unchangedFor = 0

  constructor(options: {
    readonly tools: ToolSet
    readonly noProgress: NoProgress | undefined
    readonly repeatedAction: number | undefined
  }) {
    this.#tools = options.tools
    this.#noProgress = options.noProgress
    this.#repeatedAction = options.repeatedAction
  }

  /** Takes up the turns of an earlier process. What they measured is not known any more: they count as progress. */
  resume(turns: ReadonlyArray<Turn>): void {
    let world = 0
    for (const turn of turns) {
      const calls = turn.observations.map(({ tool, params }) => ({ tool, params }))
      if (turn.kind === "call") this.isRepeated(calls, world)
      if (this.#noProgress?.measure !== undefined)
        (this.#prints ??= new WeakMap()).set(turn, `before the resume, step ${turn.step}`)
      world = turn.world
    }
  }

  /**
   * Whether a proposal comes once too often against a world that has not changed; each time it does not is counted.
   * Polling is exempt.
   */
  isRepeated(calls: ReadonlyArray<ProposedCall>, world: number): boolean {
    if (this.#repeatedAction === undefined || calls.some((call) => this.#polls(call.tool))) return false
    const print = JSON.stringify([world, calls.map(({ tool, params }) => [tool, this.#meant(tool, params)])])
    this.#proposed ??= new Map()
    const count = (this.#proposed.get(print) ?? 0) + 1
    if (count >= this.#repeatedAction) return true
    this.#proposed.set(print, count)
    return false
  }

  /** Looks at the state after a step, and says why it is stuck if it is. */
  stuck(state: AgentState): string | undefined {
    const guard = this.#noProgress
    if (guard === undefined) return undefined
    const { turns } = state.session
    const last = turns.at(-1)
    if (last === undefined) return undefined
    if (guard.measure !== undefined && last !== this.#looked) this.#count(last, guard.measure(state))
    this.#looked = last
    if (guard.patience !== undefined && this.#unchangedFor >= guard.patience) {
      return `the measure of progress has not changed for ${this.#unchangedFor} steps`
    }
    return this.#isCycle(turns, guard) ? `the last ${guard.repeat} rounds were the same` : undefined
  }

  #count(turn: Turn, measure: string | number): void {
    this.#measured ??= new WeakMap()
    this.#measured.set(turn, measure)
    this.#unchangedFor = measure === this.#measure ? this.#unchangedFor + 1 : 0
    this.#measure = measure
  }

  #isCycle(turns: ReadonlyArray<Turn>, guard: NoProgress): boolean {
    if (turns.length < guard.repeat || !mayRepeat(turns, guard.period)) return false
    const recent = turns.slice(-guard.repeat * guard.period)
    if (recent.slice(-guard.repeat).every(isUnusable)) return false
    const prints = recent.map((turn) => this.#printOf(turn))
    for (let period = 1; period <= guard.period; period++) {
      const length = guard.repeat * period
      if (prints.length < length) return false
      const from = prints.length - length
      if (prints.every((print, index) => index < from || print === prints[from + ((index - from) % period)]))
        return true
    }
    return false
  }

  /** What a turn did and saw, less the arguments that mean nothing; one that polls is like no other. */
  #printOf(turn: Turn): string {
    this.#prints ??= new WeakMap()
    const known = this.#prints.get(turn)
    if (known !== undefined) return known
    const print = turn.observations.some((one) => this.#polls(one.tool))
      ? `polls in step ${turn.step}`
      : JSON.stringify([
          turn.kind,
          turn.answer,
          turn.feedback,
          turn.observations.map((one) => this.#seen(one)),
          turn.world,
          this.#measured?.get(turn),
        ])
    this.#prints.set(turn, print)
    return print
  }

  #seen(one: Observation): unknown {
    const params = this.#meant(one.tool, one.params)
    return [one.tool, params, one.outcome, one.result?.hash, one.error?.code, one.error?.message, one.stateChanged]
  }

  #polls(tool: string): boolean {
    return this.#tools.get(tool)?.contract.polling === true
  }

  #meant(tool: string, params: unknown): unknown {
    return canonical(meant(params, this.#tools.get(tool)?.contract.volatile ?? []))
  }
}

/** Most turns are like none of those before them, as a look at their results shows. */
const mayRepeat = (turns: ReadonlyArray<Turn>, period: number): boolean => {
  const last = turns.length - 1
  for (let back = 1; back <= period && back <= last; back++) {
    if (isSimilar(turns[last - back]!, turns[last]!)) return true
  }
  return false
}

/** Whether two turns may be the same; it is quick, and wrong only on the safe side. */
const isSimilar = (one: Turn, other: Turn): boolean =>
  one.kind === other.kind &&
  one.world === other.world &&
  one.observations.length === other.observations.length &&
  one.observations.every((seen, index) => {
    const also = other.observations[index]!
    return seen.tool === also.tool && seen.result?.hash === also.result?.hash && seen.error?.code === also.error?.code
  })

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
