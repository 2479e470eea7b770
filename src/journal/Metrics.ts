/**
 * Many runs in figures, from their journals alone: how often they succeed, what they cost, where their time and their
 * errors go, all by the reason they stopped for.
 *
 * Its law: a figure that nothing was counted for is absent, not 0; a run that is not over counts as a run and for
 * nothing else.
 */
import type { EventOf, Recorded } from "../event/Event.ts"
import { type Summary, summarize } from "./Show.ts"

/**
 * Figures of some runs.
 *
 * **Units**: shares from 0 to 1; `costNanoUsd` in nano-USD, of whole trees; steps of whole trees; milliseconds from the
 * first event of a run to its last. Percentiles are of the nearest rank.
 *
 * @category metrics
 * @since 0.1.0
 */
export interface Figures {
  readonly runs: number
  readonly meanSteps: number | undefined
  readonly stepsP50: number | undefined
  readonly stepsP95: number | undefined
  readonly latencyMillisP50: number | undefined
  readonly latencyMillisP95: number | undefined
  readonly costNanoUsd: number
  readonly costNanoUsdPerRun: number | undefined
}

/**
 * Figures of a set of runs. `byReason` holds those that ended, by the reason of their root, the most frequent first.
 *
 * - `successRate`: runs that completed, of those that ended.
 * - `costNanoUsdPerSuccess`: what all that ended cost, for each that completed.
 * - `toolErrorRate`: calls that ran and failed, of those that ran.
 * - `recoveryRate`: failed calls after which the same tool brought a result to the same agent, of all that failed.
 * - `noProgress`, `repeatedActions`: agents that were stopped for it, of those that ended.
 * - `humanTakeOvers`: runs in which a person was asked, or that stopped as blocked, of all.
 * - `refusedPermissions`: calls that were refused for want of permission, of all that were decided.
 *
 * @category metrics
 * @since 0.1.0
 */
export interface Metrics extends Figures {
  readonly ended: number
  readonly successRate: number | undefined
  readonly successes: Figures
  readonly failures: Figures
  readonly costNanoUsdPerSuccess: number | undefined
  readonly toolErrorRate: number | undefined
  readonly recoveryRate: number | undefined
  readonly noProgress: number | undefined
  readonly repeatedActions: number | undefined
  readonly humanTakeOvers: number | undefined
  readonly refusedPermissions: number | undefined
  readonly byReason: ReadonlyArray<Figures & { readonly reason: string }>
}

/**
 * Measures runs, each given as the events of its journal.
 *
 * **Example** (Two runs, one of which has nothing to say)
 *
 * ```ts
 * import { Agent, type Event, Journal, Metrics, Policy, Proposal } from "bursar"
 * import * as Effect from "effect/Effect"
 *
 * const journalOf = async (answer: string) => {
 *   const events: Array<Event.Recorded> = []
 *   const policy = Policy.make(() => (answer === "" ? Proposal.invalid("nothing") : Proposal.finish(answer)))
 *   const run = Agent.run(Agent.make("a", { policy }), "go", { budget: { steps: 3 } })
 *   await Effect.runPromise(Effect.provideService(run, Journal.Journal, Journal.toArray(events)))
 *   return events
 * }
 * const metrics = Metrics.measure([await journalOf("done"), await journalOf("")])
 * metrics.successRate // => 0.5
 * metrics.byReason.map(({ reason, runs }) => [reason, runs]) // => [["budget:steps", 1], ["completed", 1]]
 * ```
 *
 * @category metrics
 * @since 0.1.0
 */
export const measure = (runs: ReadonlyArray<ReadonlyArray<Recorded>>): Metrics => {
  const all = runs.map(measured)
  const ended = all.filter(({ reason }) => reason !== undefined)
  const successes = ended.filter(({ reason }) => reason === "completed")
  const sum = (of: (run: Measured) => number) => all.reduce((total, run) => total + of(run), 0)
  const groups = Object.entries(Object.groupBy(ended, ({ reason }) => reason!))
  return {
    ...figures(all, ended),
    ended: ended.length,
    successRate: share(successes.length, ended.length),
    successes: figuresOf(successes),
    failures: figuresOf(ended.filter(({ reason }) => reason !== "completed")),
    costNanoUsdPerSuccess: share(
      ended.reduce((total, { cost }) => total + cost, 0),
      successes.length,
    ),
    toolErrorRate: share(
      sum(({ failed }) => failed),
      sum(({ ran }) => ran),
    ),
    recoveryRate: share(
      sum(({ recovered }) => recovered),
      sum(({ failed }) => failed),
    ),
    noProgress: share(
      sum(({ stopped }) => countIn(stopped, "no_progress")),
      sum(({ stopped }) => stopped.length),
    ),
    repeatedActions: share(
      sum(({ stopped }) => countIn(stopped, "repeated_action")),
      sum(({ stopped }) => stopped.length),
    ),
    humanTakeOvers: share(all.filter(({ tookOver }) => tookOver).length, all.length),
    refusedPermissions: share(
      sum(({ refused }) => refused),
      sum(({ calls }) => calls),
    ),
    byReason: groups
      .map(([reason, group]) => ({ reason, ...figuresOf(group ?? []) }))
      .toSorted((a, b) => b.runs - a.runs || (a.reason < b.reason ? -1 : 1)),
  }
}

// --- one run

interface Measured {
  readonly reason: string | undefined
  readonly steps: number
  readonly millis: number
  readonly cost: number
  readonly calls: number
  readonly ran: number
  readonly failed: number
  readonly recovered: number
  readonly refused: number
  readonly tookOver: boolean
  /** Why each of its agents stopped. */
  readonly stopped: ReadonlyArray<string>
}

const measured = (events: ReadonlyArray<Recorded>): Measured => {
  const summary = summarize(events)
  const ends = eventsOf(events, "CallEnded")
  const ran = ends.filter((end) => end.ran)
  const failed = ran.filter(({ outcome }) => outcome === "error")
  return {
    reason: summary.state === "ended" ? summary.reason : undefined,
    steps: summary.agents.reduce((total, { steps }) => total + steps, 0),
    millis: millisOf(summary),
    cost: summary.accounts.reduce((total, { own }) => total + own.money, 0),
    calls: eventsOf(events, "Decided").reduce((total, { calls }) => total + (calls?.length ?? 0), 0),
    ran: ran.length,
    failed: failed.length,
    recovered: recoveries(ran),
    refused: ends.filter(({ code }) => code === "EPERM").length,
    tookOver: eventsOf(events, "ApprovalRequested").length > 0 || summary.reason === "blocked",
    stopped: eventsOf(events, "AgentEnded").map(({ reason }) => reason),
  }
}

const eventsOf = <Tag extends Recorded["event"]["_tag"]>(
  events: ReadonlyArray<Recorded>,
  tag: Tag,
): ReadonlyArray<EventOf<Tag>> => events.flatMap(({ event }) => (event._tag === tag ? [event as EventOf<Tag>] : []))

const millisOf = ({ lastAtMillis, startedAtMillis }: Summary): number =>
  startedAtMillis === undefined || lastAtMillis === undefined ? 0 : lastAtMillis - startedAtMillis

/** Failed calls after which the same tool brought the same agent a result. */
const recoveries = (ran: ReadonlyArray<EventOf<"CallEnded">>): number => {
  const open = new Map<string, number>()
  let recovered = 0
  for (const { agent, outcome, tool } of ran) {
    const key = JSON.stringify([agent, tool])
    if (outcome === "error") open.set(key, (open.get(key) ?? 0) + 1)
    else {
      recovered += open.get(key) ?? 0
      open.delete(key)
    }
  }
  return recovered
}

// --- many

const figuresOf = (runs: ReadonlyArray<Measured>): Figures => figures(runs, runs)

const figures = (runs: ReadonlyArray<Measured>, ended: ReadonlyArray<Measured>): Figures => {
  const steps = ended.map((run) => run.steps)
  const millis = ended.map((run) => run.millis)
  const cost = runs.reduce((total, run) => total + run.cost, 0)
  return {
    runs: runs.length,
    meanSteps: share(
      steps.reduce((total, one) => total + one, 0),
      ended.length,
    ),
    stepsP50: percentile(steps, 50),
    stepsP95: percentile(steps, 95),
    latencyMillisP50: percentile(millis, 50),
    latencyMillisP95: percentile(millis, 95),
    costNanoUsd: cost,
    costNanoUsdPerRun: share(cost, runs.length),
  }
}

const share = (part: number, whole: number): number | undefined => (whole === 0 ? undefined : part / whole)

const countIn = (values: ReadonlyArray<string>, value: string): number => values.filter((one) => one === value).length

/** The value at the nearest rank. */
const percentile = (values: ReadonlyArray<number>, percent: number): number | undefined =>
  values.toSorted((a, b) => a - b)[Math.max(0, Math.ceil((values.length * percent) / 100) - 1)]
