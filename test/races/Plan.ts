/**
 * What a run is to do, drawn from a seed as plain data, so that the same can be done with Bursar and without.
 */
import type { Dimension, Grant, Reserve } from "../../src/budget/Budget.ts"
import type { Random } from "./Schedule.ts"

/** How the books learn of a call that ended: from its bill, not at all, by something that is no bill, or by a throw. */
export type Report = "bill" | "none" | "nonsense" | "throws"

/** A call: its worst case, its bill, how often it steps aside before and after it is billed, and how it ends. */
export interface Call {
  readonly _tag: "Call"
  readonly reserve: Reserve
  readonly worst: Grant
  readonly bill: Grant
  readonly before: number
  readonly after: number
  readonly end: "succeeds" | "fails" | "dies"
  readonly report: Report
}

/** A child that is carved, does some things, one after the other or in two strands side by side, and is closed. */
export interface Delegation {
  readonly _tag: "Delegation"
  readonly ask: Grant
  readonly floor: Grant | undefined
  readonly reserve: "explore" | "verify"
  readonly charge: Grant
  readonly divided: boolean
  readonly abreast: boolean
  readonly actions: ReadonlyArray<Action>
}

/** Waits for more of what the parent has; nothing at the root. */
export interface Wait {
  readonly _tag: "Wait"
  readonly need: Grant
  readonly least: Grant
}

/** Closes its own account before its time, if it can be closed: whoever still works in it is in for a refusal. */
export interface Close {
  readonly _tag: "Close"
}

export type Action = Call | Delegation | Wait | Close

/** One of the fibers: what it does, whether it goes on after a refusal, and what ends it before its time. */
export interface Actor {
  readonly actions: ReadonlyArray<Action>
  readonly persistent: boolean
  readonly interruptedAfter: number | undefined
  readonly timeoutAfter: number | undefined
}

export interface Plan {
  readonly cap: Grant
  readonly divided: boolean
  readonly actors: ReadonlyArray<Actor>
  /** After how many steps the whole run is interrupted, and whether its new work is ended before that. */
  readonly cancelledAfter: number | undefined
  readonly frozenFirst: boolean
}

const all: ReadonlyArray<Dimension> = ["money", "outputTokens", "steps", "toolCalls", "inputTokens"]

const largest: Readonly<Record<Dimension, number>> = {
  money: 60,
  outputTokens: 20,
  inputTokens: 20,
  steps: 2,
  toolCalls: 2,
  ticks: 2,
}

/** A run of 2 to 8 fibers over 1 to 3 dimensions, under caps from a quarter of what it could need to a little more. */
export const draw = (random: Random): Plan => {
  const first = random.between(0, all.length - 1)
  const some = Array.from({ length: random.between(1, 3) }, (_, index) => all[(first + index) % all.length]!)
  const actors = Array.from({ length: random.between(2, 8) }, () => drawActor(random, some))
  const need = sum(actors.flatMap(({ actions }) => actions.map(needOf)))
  const share = 0.15 + random.next() * 0.7
  return {
    cap: amounts(some, (d) => Math.max(1, Math.round((need[d] ?? 0) * share))),
    divided: random.chance(0.3),
    actors,
    cancelledAfter: random.chance(0.25) ? random.between(0, 80) : undefined,
    frozenFirst: random.chance(0.5),
  }
}

const drawActor = (random: Random, some: ReadonlyArray<Dimension>): Actor => ({
  actions: drawActions(random, some, 0),
  persistent: random.chance(0.7),
  interruptedAfter: random.chance(0.2) ? random.between(0, 40) : undefined,
  timeoutAfter: random.chance(0.15) ? random.between(0, 40) : undefined,
})

const drawActions = (random: Random, some: ReadonlyArray<Dimension>, depth: number): ReadonlyArray<Action> =>
  Array.from({ length: random.between(1, depth === 0 ? 2 : 3) }, () => {
    if (depth > 0 && random.chance(0.3)) return random.chance(0.9) ? drawWait(random, some) : { _tag: "Close" }
    return depth < 2 && random.chance(depth === 0 ? 0.4 : 0.15)
      ? drawDelegation(random, some, depth)
      : drawCall(random, some)
  })

const drawCall = (random: Random, some: ReadonlyArray<Dimension>): Call => {
  const worst = amounts(some, (d) => random.between(1, largest[d]))
  const whole = random.chance(0.6)
  return {
    _tag: "Call",
    reserve: random.pick(["explore", "explore", "explore", "retry", "verify", "output"]),
    worst,
    bill: amounts(some, (d) => (whole ? worst[d]! : random.between(0, worst[d]!))),
    before: random.between(0, 3),
    after: random.between(0, 2),
    end: random.chance(0.92) ? "succeeds" : random.pick(["fails", "dies"]),
    report: random.chance(0.8) ? "bill" : random.pick(["none", "none", "nonsense", "throws"]),
  }
}

const drawWait = (random: Random, some: ReadonlyArray<Dimension>): Wait => {
  const need = amounts(some, (d) => random.between(1, 2 * largest[d]))
  return { _tag: "Wait", need, least: amounts(some, (d) => random.between(0, need[d]!)) }
}

const drawDelegation = (random: Random, some: ReadonlyArray<Dimension>, depth: number): Delegation => {
  const actions = drawActions(random, some, depth + 1)
  const [need, share] = [sum(actions.map(needOf)), 0.4 + random.next() * 0.8]
  const ask = amounts(some, (d) => Math.max(1, Math.round((need[d] ?? 0) * share)))
  const charge: Grant = some.includes("toolCalls") ? { toolCalls: 1 } : {}
  return {
    _tag: "Delegation",
    ask,
    floor: random.chance(0.6) ? amounts(some, (d) => random.between(0, ask[d]!)) : undefined,
    reserve: random.chance(0.85) ? "explore" : "verify",
    charge,
    divided: random.chance(0.3),
    abreast: random.chance(0.5),
    actions,
  }
}

const needOf = (action: Action): Grant => {
  switch (action._tag) {
    case "Call":
      return action.worst
    case "Delegation":
      return sum([action.charge, ...action.actions.map(needOf)])
    case "Wait":
    case "Close":
      return {}
  }
}

type Sums = { [D in Dimension]?: number }

const amounts = (some: ReadonlyArray<Dimension>, of: (dimension: Dimension) => number): Grant => {
  const made: Sums = {}
  for (const d of some) made[d] = of(d)
  return made
}

const sum = (grants: ReadonlyArray<Grant>): Grant => {
  const total: Sums = {}
  for (const grant of grants) for (const d of all) if (grant[d] !== undefined) total[d] = (total[d] ?? 0) + grant[d]
  return total
}
