/**
 * Auditing a run from its events alone: that nothing is missing or there twice, that every call has one result and every
 * hold one resolution, that the numbers add up, and that everything ended the way it has to end. Nothing is executed and
 * no text is needed.
 *
 * **Not found**: a change of what nothing else depends on (messages, names and times; that a result came from outside; under
 * which key a call ran; what an answer had to pass); the lines cut off at the end of a log, since a process that was killed
 * leaves the same; and what `Restore` does not find in the books.
 */
import type { Event, Recorded } from "../event/Event.ts"
import { openAccounts, spend, unmatchedHolds } from "./audit/Bookings.ts"
import {
  duplicateCalls,
  duplicateResults,
  earlyResults,
  effects,
  missingResults,
  orphanResults,
} from "./audit/Calls.ts"
import { completion } from "./audit/Completion.ts"
import { type Defect, Facts, type RunState } from "./audit/Facts.ts"
import { gaps } from "./audit/Numbering.ts"
import { digests, folded } from "./audit/States.ts"

export type { Defect, RunState } from "./audit/Facts.ts"

/**
 * The kinds of defects, and what a run without any of them keeps.
 *
 * @category audits
 * @since 0.1.0
 */
export const kinds = {
  gaps: "events, attempts and epochs are numbered without a gap, in one run",
  duplicateCalls: "each call is decided once, each attempt of it started once",
  duplicateResults: "no call has two results",
  missingResults: "each call of an agent that has ended has a result",
  orphanResults: "nothing starts or ends that no decision asked for",
  earlyResults: "a call is decided, then starts, then has its result",
  unmatchedHolds: "each hold is placed once and resolved once",
  openAccounts: "each account is opened and closed once, after its agent and its children",
  spend: "the books say what the entries add up to",
  digests: "the state at the end of each agent is what its events say",
  completion: "all end as they have to, and people are asked where they must be",
  effects: "no effect happens twice",
} as const

/**
 * The name of a list of defects.
 *
 * @category audits
 * @since 0.1.0
 */
export type Kind = keyof typeof kinds

/**
 * How much happened.
 *
 * @category audits
 * @since 0.1.0
 */
export interface Counts {
  readonly events: number
  readonly agents: number
  /** Agents below another agent. */
  readonly children: number
  /** Steps of all agents. */
  readonly steps: number
  readonly decisions: {
    readonly call: number
    readonly finish: number
    readonly invalid: number
    readonly failed: number
  }
  readonly calls: number
  readonly results: { readonly ok: number; readonly error: number }
  /** Started attempts of calls. */
  readonly attempts: number
  readonly approvals: { readonly requested: number; readonly decided: number }
  readonly verifications: { readonly accepted: number; readonly rejected: number }
  readonly suspensions: number
  readonly resumes: number
}

/**
 * What an audit found. A run that has not ended is audited as far as it is: what would only be wrong at an end is not
 * listed then.
 *
 * @category audits
 * @since 0.1.0
 */
export interface Audit extends Readonly<Record<Kind, ReadonlyArray<Defect>>> {
  /** The name of the run; absent where there is no event. */
  readonly run: string | undefined
  readonly state: RunState
  readonly counts: Counts
  /** True when every list of defects is empty. */
  readonly isSound: boolean
}

/**
 * Audits the events of one run, in the order in which they were recorded.
 *
 * **Example** (A run, and the same with one event less)
 *
 * ```ts
 * import type { Event } from "bursar"
 *
 * const events: Array<Event.Recorded> = []
 * const echo = Agent.make("echo", { policy: Policy.make((view) => Proposal.finish(view.task)) })
 * await Effect.runPromise(
 *   Agent.run(echo, "hello", { budget: { steps: 2 } }).pipe(
 *     Effect.provideService(Journal.Journal, Journal.toArray(events)),
 *   ),
 * )
 * Audit.audit(events).isSound // => true
 * const damaged = Audit.audit(events.filter(({ event }) => event._tag !== "Settled"))
 * Audit.defects(damaged).map(({ kind }) => kind) // => ["gaps", "unmatchedHolds", "spend", "spend", "spend"]
 * ```
 *
 * @category audits
 * @since 0.1.0
 */
export const audit = (events: ReadonlyArray<Recorded>): Audit => {
  const facts = new Facts(events)
  const found: Readonly<Record<Kind, ReadonlyArray<Defect>>> = {
    gaps: gaps(facts),
    duplicateCalls: duplicateCalls(facts),
    duplicateResults: duplicateResults(facts),
    missingResults: missingResults(facts),
    orphanResults: orphanResults(facts),
    earlyResults: earlyResults(facts),
    unmatchedHolds: unmatchedHolds(facts),
    openAccounts: openAccounts(facts),
    spend: spend(facts),
    digests: digests(events),
    completion: completion(facts),
    effects: effects(facts),
  }
  const isSound = Object.values(found).every((list) => list.length === 0)
  return { run: events[0]?.run, state: facts.state, counts: countsOf(facts), isSound, ...found }
}

/** A defect with the name of its list. */
export interface Named extends Defect {
  readonly kind: Kind
}

/**
 * All defects of an audit in one list, in the order of {@link kinds}.
 *
 * @category audits
 * @since 0.1.0
 */
export const defects = (self: Audit): ReadonlyArray<Named> =>
  (Object.keys(kinds) as ReadonlyArray<Kind>).flatMap((kind) => self[kind].map((defect) => ({ kind, ...defect })))

const countsOf = (facts: Facts): Counts => {
  const { agents, calls, events } = facts
  const all = [...calls.values()]
  const count = (test: (event: Event) => boolean) => events.filter(({ event }) => test(event)).length
  const decided = (kind: "call" | "finish" | "invalid") =>
    count((event) => event._tag === "Decided" && event.kind === kind)
  const started = [...agents.values()].filter((one) => one.started.length > 0)
  return {
    events: events.length,
    agents: started.length,
    children: started.filter(({ agent }) => facts.parentOf(agent) !== undefined).length,
    steps: folded(events).reduce((sum, one) => sum + one.steps, 0),
    decisions: {
      call: decided("call"),
      finish: decided("finish"),
      invalid: decided("invalid"),
      failed: count((event) => event._tag === "DecisionFailed"),
    },
    calls: all.filter((one) => one.decided.length > 0).length,
    results: {
      ok: count((event) => event._tag === "CallEnded" && event.outcome === "ok"),
      error: count((event) => event._tag === "CallEnded" && event.outcome === "error"),
    },
    attempts: count((event) => event._tag === "CallStarted"),
    approvals: {
      requested: count((event) => event._tag === "ApprovalRequested"),
      decided: count((event) => event._tag === "ApprovalDecided"),
    },
    verifications: {
      accepted: count((event) => event._tag === "Verified" && event.accepted),
      rejected: count((event) => event._tag === "Verified" && !event.accepted),
    },
    suspensions: facts.runSuspended.length,
    resumes: facts.runResumed.length,
  }
}
