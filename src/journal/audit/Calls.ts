/**
 * Every call that a decision asks for has one result, and no other call has any; no effect happens twice.
 */
import { type CallFacts, callId, type Defect, type Facts, repeats, type Seen } from "./Facts.ts"

type OfCalls = (facts: Facts) => ReadonlyArray<Defect>

/** Applies a check to each call. */
const forEach =
  (check: (call: CallFacts, facts: Facts) => ReadonlyArray<readonly [seq: number, what: string]>): OfCalls =>
  (facts) =>
    [...facts.calls.values()].flatMap((one) =>
      check(one, facts).map(([seq, what]) => ({ seq, agent: one.agent, call: one.call, what })),
    )

/** Calls that were decided twice, or whose attempt was started twice. */
export const duplicateCalls = forEach(({ call, decided, started }) => [
  ...repeats(decided).map(({ seq }) => [seq, `${call} was decided before`] as const),
  ...started
    .filter(({ event }, index) => started.findIndex((one) => one.event.attempt === event.attempt) < index)
    .map(({ seq, event }) => [seq, `attempt ${event.attempt} of ${call} was started before`] as const),
])

/** Calls with a second result, and attempts that failed twice. */
export const duplicateResults = forEach(({ call, failed, ended }) => [
  ...repeats(ended).map(({ seq }) => [seq, `${call} has its result already`] as const),
  ...failed
    .filter(({ event }, index) => failed.findIndex((one) => one.event.attempt === event.attempt) < index)
    .map(({ seq, event }) => [seq, `attempt ${event.attempt} of ${call} has failed already`] as const),
])

/** Calls of an agent that is over, without a result. */
export const missingResults = forEach(({ agent, call, decided, ended }, facts) => {
  const isOver = facts.state === "ended" || (facts.agents.get(agent)?.ended.length ?? 0) > 0
  const [first] = decided
  return isOver && ended.length === 0 && first !== undefined
    ? [[first.seq, `${call} (${first.tool}) was decided and never had a result`]]
    : []
})

/** Starts, results and questions of a call that no decision asked for, or not as it was asked for. */
export const orphanResults = forEach(({ call, decided, started, failed, ended, asked, answered }) => {
  const [first] = decided
  const named: ReadonlyArray<readonly [string, OfCall]> = [
    ...started.map((one) => ["the start", one] as const),
    ...failed.map((one) => ["a failed attempt", one] as const),
    ...ended.map((one) => ["the result", one] as const),
    ...asked.map((one) => ["a question to people", one] as const),
    ...answered.map((one) => ["an answer of a person", one] as const),
  ]
  const strangers = ended.filter(({ event }) => event.child !== undefined && event.child !== started[0]?.event.child)
  const children = strangers.map(({ seq, event }) => {
    return [seq, `the result of ${call} is of the child ${event.child}, and ${call} started another or none`] as const
  })
  const calls = named.flatMap(([name, { seq, event }]): ReadonlyArray<readonly [number, string]> => {
    if (first === undefined) return [[seq, `${name} of ${call} (${event.tool}), which no decision asked for`]]
    if (event.tool !== first.tool)
      return [[seq, `${name} of ${call} is of ${event.tool}, and ${first.tool} was decided`]]
    return event.step === first.event.step
      ? []
      : [[seq, `${name} of ${call} is of step ${event.step}, and it was decided in step ${first.event.step}`]]
  })
  return first === undefined ? calls : [...calls, ...children]
})

type OfCall =
  | Seen<"CallStarted">
  | Seen<"CallFailed">
  | Seen<"CallEnded">
  | Seen<"ApprovalRequested">
  | Seen<"ApprovalDecided">

/** What comes before what it is the result of. */
export const earlyResults = forEach(({ call, decided, started, failed, ended }) => {
  const [first, result] = [decided[0], ended[0]]
  const undecided = [...started, ...ended].filter(({ at }) => first !== undefined && at < first.at)
  const late = started.filter(({ at }) => result !== undefined && at > result.at)
  const unstarted = failed.filter(
    ({ at, event }) => !started.some((one) => one.event.attempt === event.attempt && one.at < at),
  )
  const last = started.findLast(({ at }) => result !== undefined && at < result.at)
  const hasFailed = failed.find(({ event }) => event.attempt === last?.event.attempt)
  const brought = hasFailed !== undefined && result?.event.ran === true && result.event.outcome === "ok"
  const idle = ended.filter(({ event }) => event.outcome === "ok" && !event.ran && event.replayed === undefined)
  const ran = result !== undefined && result.event.ran && !started.some(({ at }) => at < result.at) ? [result] : []
  return [
    ...undecided.map(({ seq }) => [seq, `${call} starts or ends before it is decided`] as const),
    ...late.map(({ seq }) => [seq, `${call} starts after it has its result`] as const),
    ...unstarted.map(({ seq, event }) => [seq, `attempt ${event.attempt} of ${call} fails and never started`] as const),
    ...(brought ? [[result.seq, `${call} brought a result, and its last attempt on record failed`] as const] : []),
    ...idle.map(({ seq }) => [seq, `${call} brought a result without having run`] as const),
    ...ran.map(({ seq }) => [seq, `${call} says that it ran and never started`] as const),
  ]
})

/** Effects that happened twice under one key, irreversible calls that were started again, results of nothing. */
export const effects: OfCalls = (facts) => [...sameKeys(facts), ...irreversibleTwice(facts), ...replays(facts)]

const sameKeys: OfCalls = (facts) => {
  const first = new Map<string, string>()
  const had = [...facts.calls.values()].flatMap((call) => effectOf(call) ?? [])
  return had
    .toSorted((one, other) => one.at - other.at)
    .flatMap(({ key, seq, agent, call }) => {
      const before = first.get(key)
      if (before === undefined) first.set(key, callId(agent, call))
      return before === undefined
        ? []
        : [{ seq, agent, call, what: `${call} had the effect that ${before} had before it, under the same key` }]
    })
}

/** The effect that a call had, where it has a key to count it by. */
const effectOf = ({ agent, call, started, ended }: CallFacts) => {
  const result = ended[0]?.event
  if (result === undefined || !result.ran || !result.stateChanged) return undefined
  const start = started.find(({ event }) => event.effect !== "read" && event.key !== undefined)
  return start === undefined ? undefined : { key: start.event.key!, at: start.at, seq: start.seq, agent, call }
}

/** It may start again only where a person said that it did not happen. */
const irreversibleTwice = forEach(({ call, started, answered }) =>
  started.flatMap(({ at, seq, event }, index) => {
    const before = started[index - 1]
    if (event.effect !== "irreversible" || before === undefined) return []
    const cleared = answered.some((one) => one.event.decision === "did_not_happen" && one.at > before.at && one.at < at)
    return cleared ? [] : [[seq, `${call} (${event.tool}) is irreversible and was started before`] as const]
  }),
)

/** A result that is taken from an earlier call needs that call, with a result of its own. */
const replays = forEach(({ call, ended }, facts) =>
  ended.flatMap(({ at, seq, event }): ReadonlyArray<readonly [number, string]> => {
    if (event.replayed === undefined) return []
    const source = facts.calls.get(event.replayed)?.ended.find((one) => one.at < at)
    if (source === undefined) return [[seq, `${call} has the result of ${event.replayed}, which has none`]]
    return source.event.result?.hash === event.result?.hash
      ? []
      : [[seq, `${call} has another result than ${event.replayed}, whose result it is said to have`]]
  }),
)
