/**
 * What is counted must have no gap: events in the log, attempts at a decision, attempts of a call, and those who took
 * the run up again.
 */
import type { Recorded } from "../../event/Event.ts"
import type { AgentFacts, CallFacts, Defect, Facts } from "./Facts.ts"

/** Every number that does not follow the one before it, and every event of another run. */
export const gaps = (facts: Facts): ReadonlyArray<Defect> => [
  ...gapsInLog(facts.events),
  ...[...facts.agents.values()].flatMap((agent) => gapsInDecisions(facts, agent)),
  ...[...facts.calls.values()].flatMap((call) => gapsInAttempts(facts, call)),
  ...gapsInEpochs(facts),
]

const gapsInLog = (events: ReadonlyArray<Recorded>): ReadonlyArray<Defect> => {
  const run = events[0]?.run
  let before = -1
  return events.flatMap((recorded) => {
    const { seq } = recorded
    const gap = gapBetween(before, seq)
    before = seq
    const stranger = recorded.run === run ? [] : [{ seq, what: `it belongs to the run ${recorded.run}, not to ${run}` }]
    return gap === undefined ? stranger : [{ seq, what: gap }, ...stranger]
  })
}

const gapBetween = (before: number, seq: number): string | undefined => {
  if (seq === before + 1) return undefined
  if (seq === before) return `the number ${seq} is there twice`
  if (seq < before) return `the number ${seq} comes after ${before}`
  return seq === before + 2 ? `event ${before + 1} is missing` : `events ${before + 1} to ${seq - 1} are missing`
}

/** Within a step, attempt n follows n - 1 failed ones; who takes a run up in the middle of a step may begin again. */
const gapsInDecisions = (facts: Facts, { agent, decided, failed }: AgentFacts): ReadonlyArray<Defect> => {
  const attempts = [...decided, ...failed].toSorted((one, other) => one.at - other.at)
  const last = new Map<string, { readonly at: number; readonly next: number | undefined }>()
  return attempts.flatMap(({ at, seq, event }) => {
    const { attempt, step, purpose } = event
    const key = `${purpose} ${step}`
    const before = last.get(key)
    const expected = before === undefined ? 1 : before.next
    last.set(key, { at, next: event._tag === "Decided" ? undefined : attempt + 1 })
    const beganAgain = before !== undefined && facts.resumedBetween(before.at, at)
    if (attempt === expected || beganAgain) return []
    const follows = before === undefined ? "is the first on record" : "comes after a decision or another number"
    return [{ seq, agent, what: `attempt ${attempt} at the ${purpose} decision of step ${step} ${follows}` }]
  })
}

/** Attempt n of a call follows attempt n - 1, which failed, or whose process was gone. */
const gapsInAttempts = (facts: Facts, { agent, call, started, failed }: CallFacts): ReadonlyArray<Defect> =>
  started.flatMap(({ at, seq, event: { attempt } }, index) => {
    const before = started[index - 1]
    const number = before?.event.attempt ?? 0
    // The same attempt once more is a call that was started twice.
    if (before !== undefined && attempt === number) return []
    if (attempt !== number + 1) {
      return [{ seq, agent, call, what: `attempt ${attempt} of ${call} starts after attempt ${number}` }]
    }
    if (before === undefined || facts.resumedBetween(before.at, at)) return []
    const hasFailed = failed.some((one) => one.event.attempt === number && one.at > before.at && one.at < at)
    const what = `attempt ${attempt} of ${call} starts, and attempt ${number} has not failed`
    return hasFailed ? [] : [{ seq, agent, call, what }]
  })

const gapsInEpochs = ({ runResumed }: Facts): ReadonlyArray<Defect> =>
  runResumed.flatMap(({ seq, event }, index) => {
    const before = runResumed[index - 1]?.event.epoch ?? 0
    if (event.epoch === before + 1) return []
    return [{ seq, what: `the run is taken up for epoch ${event.epoch} after epoch ${before}` }]
  })
