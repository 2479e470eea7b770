/**
 * The contract of ending: an agent is completed only with an answer that was accepted, stops only for a cause that is on
 * record, ends once and after its children, and does nothing afterwards; the run ends once, last, as its root did.
 */
import type { Event, EventOf } from "../../event/Event.ts"
import { approvals } from "./Approvals.ts"
import { type AgentFacts, type Defect, type Facts, repeats, type Seen } from "./Facts.ts"

/** Every breach of the contract of ending, and of what has to be agreed to by a person. */
export const completion = (facts: Facts): ReadonlyArray<Defect> => [
  ...frame(facts),
  ...[...facts.agents.values()].flatMap((agent) => [
    ...life(facts, agent),
    ...ending(agent),
    ...afterStopping(agent),
    ...checks(agent),
    ...children(facts, agent),
  ]),
  ...standstill(facts),
  ...approvals(facts),
]

// --- the run

const frame = (facts: Facts): ReadonlyArray<Defect> => {
  const { runStarted, runEnded, events } = facts
  const [start, end] = [runStarted[0], runEnded[0]]
  const last = events.at(-1)
  return [
    ...repeats(runStarted).map(({ seq }) => ({ seq, what: "the run starts a second time" })),
    ...repeats(runEnded).map(({ seq }) => ({ seq, what: "the run ends a second time" })),
    ...(start !== undefined && start.at > 0
      ? [{ seq: start.seq, what: "something happened before the run started" }]
      : []),
    ...(end !== undefined && start === undefined ? [{ seq: end.seq, what: "the run ends and never started" }] : []),
    ...(end !== undefined && last?.event._tag !== "RunEnded"
      ? [{ seq: end.seq, what: `the run ends and goes on up to event ${last?.seq}` }]
      : []),
    ...[...facts.runSuspended, ...facts.runResumed].flatMap(({ seq, event }) =>
      start === undefined || event.agent === start.event.agent
        ? []
        : [{ seq, what: `${event._tag} of ${event.agent}, and the run is that of ${start.event.agent}` }],
    ),
    ...(end === undefined ? [] : endOfRoot(facts, end)),
  ]
}

/** A run ends as its root did. One whose root never started was refused, cancelled or left alone before it could. */
const endOfRoot = (facts: Facts, { seq, event }: Seen<"RunEnded">): ReadonlyArray<Defect> => {
  const { agent, reason, result } = event
  const started = facts.runStarted[0]?.event.agent ?? agent
  const wrongAgent = started === agent ? [] : [{ seq, agent, what: `the run of ${started} ends as that of ${agent}` }]
  const root = facts.agents.get(agent)
  const ended = root?.ended.at(-1)?.event
  if (ended !== undefined) {
    return ended.reason === reason && ended.result === result
      ? wrongAgent
      : [...wrongAgent, { seq, agent, what: `${agent} ended ${said(ended)}, and the run ${said(event)}` }]
  }
  const neverCame = root === undefined && ["refused_at_open", "cancelled", "owner_lost"].includes(reason)
  return neverCame
    ? wrongAgent
    : [...wrongAgent, { seq, agent, what: `the run ends ${said(event)} without an end of ${agent}` }]
}

const said = ({ reason, result }: Pick<EventOf<"RunEnded">, "reason" | "result">): string => `${reason} (${result})`

/** While a run waits for people nothing is decided and nothing is started; and only one that stood still goes on after it. */
const standstill = (facts: Facts): ReadonlyArray<Defect> => [
  ...facts.runSuspended.flatMap(({ at }) => {
    const resumed = facts.runResumed.find((one) => one.at > at)?.at ?? Infinity
    return facts.events
      .slice(at + 1, Math.min(resumed, facts.events.length))
      .flatMap(({ seq, event }) =>
        event._tag === "Decided" || event._tag === "CallStarted" || event._tag === "RunSuspended"
          ? [{ seq, agent: event.agent, what: `${event._tag} while the run is suspended` }]
          : [],
      )
  }),
  ...facts.runResumed.flatMap(({ at, seq, event }, index) => {
    const before = facts.runResumed[index - 1]?.at ?? -1
    const waited = facts.runSuspended.some((one) => one.at > before && one.at < at)
    const still = facts.events.slice(0, at).findLast((one) => isPauseOf(one.event, event.agent))
    const paused = still?.event._tag === "Paused"
    return waited || paused || event.after === "crash"
      ? []
      : [{ seq, what: "the run goes on after a suspension that never was" }]
  }),
]

const isPauseOf = (event: Event, account: string): boolean =>
  (event._tag === "Paused" || event._tag === "Resumed") && event.account === account

// --- an agent

/** It starts once, ends once, and does everything in between. */
const life = (facts: Facts, self: AgentFacts): ReadonlyArray<Defect> => {
  const { agent, calls, started, ended, decided, failed, verified, stopping } = self
  const acts = [...decided, ...failed, ...verified, ...stopping, ...ended, ...calls.flatMap((call) => call.started)]
  const [start, end] = [started[0], ended[0]]
  const early = acts.filter(({ at }) => start !== undefined && at < start.at)
  const late = acts.filter(({ at, event }) => end !== undefined && event._tag !== "AgentEnded" && at > end.at)
  const [first] = acts
  const frameless = start !== undefined && facts.runStarted.length === 0 && facts.isRoot(agent)
  return [
    ...repeats(started).map(({ seq }) => ({ seq, agent, what: `${agent} starts a second time` })),
    ...repeats(ended).map(({ seq }) => ({ seq, agent, what: `${agent} ends a second time` })),
    ...(start === undefined && first !== undefined
      ? [{ seq: first.seq, agent, what: `${agent} acts and never started` }]
      : []),
    ...(frameless ? [{ seq: start.seq, agent, what: `${agent} is the root of a run that never started` }] : []),
    ...early.map(({ seq, event }) => ({ seq, agent, what: `${event._tag} before ${agent} has started` })),
    ...late.map(({ seq, event }) => ({ seq, agent, what: `${event._tag} after ${agent} has ended` })),
    ...(facts.state === "ended" && start !== undefined && end === undefined
      ? [{ seq: start.seq, agent, what: `${agent} started and never ended` }]
      : []),
  ]
}

const ending = (self: AgentFacts): ReadonlyArray<Defect> => {
  const { agent, stopping, ended } = self
  const [end, cause] = [ended[0], stopping[0]]
  if (end === undefined) return []
  const { reason, result } = end.event
  const wrong = (what: string): Defect => ({ seq: end.seq, agent, what })
  if (reason === "completed") {
    return [
      ...(result === "full" ? [] : [wrong(`${agent} is completed with a result that is ${result}`)]),
      ...(cause === undefined ? [] : [wrong(`${agent} is completed although it had to stop: ${cause.event.reason}`)]),
      ...notAccepted(self).map(wrong),
    ]
  }
  return [
    ...(result === "full" ? [wrong(`${agent} ended ${reason} with a full result`)] : []),
    ...(cause === undefined ? [wrong(`${agent} ended ${reason}, and no cause was recorded`)] : []),
    ...(cause !== undefined && cause.event.reason !== reason
      ? [wrong(`${agent} ended ${reason}, and its first cause was ${cause.event.reason}`)]
      : []),
  ]
}

/** Why the answer of a completed agent does not count as accepted. */
const notAccepted = (self: AgentFacts): ReadonlyArray<string> => {
  const { agent, decided, verified, started } = self
  const last = decided.at(-1)
  if (last === undefined) return [`${agent} is completed without any decision`]
  const { kind, purpose, step } = last.event
  if (kind !== "finish" || purpose !== "explore") {
    return [`${agent} is completed, and its last decision was no answer (${purpose === "explore" ? kind : purpose})`]
  }
  const check = verified.findLast((one) => one.event.step === step && one.at > last.at)?.event
  const acceptance = started[0]?.event.acceptance
  if (check === undefined) {
    return acceptance === undefined ? [] : [`${agent} is completed, and its answer was never checked (${acceptance})`]
  }
  if (!check.accepted) return [`${agent} is completed with an answer that was not accepted`]
  const failed = check.rules.filter(({ passed }) => !passed).map(({ name }) => name)
  return failed.length === 0 || isAlternative(acceptance)
    ? []
    : [`${agent} is completed with an answer that did not pass ${failed.join(", ")}`]
}

/** What is checked is the answer that was given last. */
const checks = ({ agent, decided, verified }: AgentFacts): ReadonlyArray<Defect> =>
  verified.flatMap(({ at, seq, event: { step } }) => {
    const last = decided.findLast((one) => one.at < at)?.event
    return last?.kind === "finish" && last.step === step
      ? []
      : [{ seq, agent, what: `${agent} checks an answer of step ${step}, and there is none` }]
  })

/** Of alternatives one is enough: then rules may fail and the answer stands. */
const isAlternative = (acceptance: string | undefined): boolean => acceptance?.includes("any(") ?? false

/** Once it has to stop an agent makes one last answer, and nothing else. */
const afterStopping = ({ agent, calls, decided, stopping }: AgentFacts): ReadonlyArray<Defect> => {
  const from = stopping[0]?.at ?? Infinity
  const started = calls.flatMap((call) => call.started)
  return [
    ...repeats(stopping).map(({ seq }) => ({ seq, agent, what: `${agent} has to stop a second time` })),
    ...started
      .filter(({ at }) => at > from)
      .map(({ seq, event }) => ({
        seq,
        agent,
        call: event.call,
        what: `${event.call} starts after ${agent} had to stop`,
      })),
    ...decided
      .filter(({ at, event }) => (event.purpose === "explore" ? at > from : at < from))
      .map(({ seq, event }) => ({
        seq,
        agent,
        what:
          event.purpose === "explore"
            ? `${agent} explores although it had to stop`
            : `${agent} wraps up without a cause`,
      })),
  ]
}

/** Children end before their parent does. */
const children = (facts: Facts, self: AgentFacts): ReadonlyArray<Defect> => {
  const { agent, started, ended } = self
  const parent = facts.parentOf(agent)
  const end = parent === undefined ? undefined : facts.agents.get(parent)?.ended[0]
  if (parent === undefined || end === undefined || started.length === 0) return []
  const last = ended.at(-1)
  return last !== undefined && last.at < end.at
    ? []
    : [{ seq: end.seq, agent: parent, what: `${parent} ends before its child ${agent}` }]
}
