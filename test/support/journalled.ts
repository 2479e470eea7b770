/**
 * Running agents in tests with everything they record, and the laws that a complete journal keeps whatever happened.
 */
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import { Agent, Budget, type Event, Journal } from "../../src/index.ts"

/** An outcome and every event of its run. */
export interface Ran<A> {
  readonly outcome: Agent.Outcome<A>
  readonly events: ReadonlyArray<Event.Recorded>
}

/** Lets every fiber that can run go on until it waits for the clock: time would pass over it otherwise. */
export const settled: Effect.Effect<void> = Effect.forEach(Array.from({ length: 100 }), () => Effect.yieldNow, {
  discard: true,
})

/** Runs an agent on the virtual clock, which jumps a day ahead. */
export const run = <A, R>(agent: Agent.Agent<A, R>, budget: Budget.Input, task = "the task") =>
  Effect.gen(function* () {
    const events: Array<Event.Recorded> = []
    const outcome = yield* Effect.scoped(
      Effect.gen(function* () {
        const handle = yield* Agent.spawn(agent, task, { budget, runId: "run" })
        yield* settled
        yield* TestClock.adjust("1 day")
        return yield* handle.await
      }),
    ).pipe(Effect.provideService(Journal.Journal, Journal.toArray(events)))
    return { outcome, events } satisfies Ran<A>
  })

/** Events of one kind. */
export const all = <Tag extends Event.Event["_tag"]>(
  events: ReadonlyArray<Event.Recorded>,
  tag: Tag,
): ReadonlyArray<Event.EventOf<Tag>> =>
  events.flatMap(({ event }) => (event._tag === tag ? [event as Event.EventOf<Tag>] : []))

/** How the calls ended: `ok` or the code, in the order of the results. */
export const results = (events: ReadonlyArray<Event.Recorded>): ReadonlyArray<string> =>
  all(events, "CallEnded").map((one) => one.code ?? one.outcome)

/** What a stopped run says; a completed one is a failure of the test. */
export const stopped = <A>(outcome: Agent.Outcome<A>): Agent.Stopped<A> => {
  if (outcome._tag !== "Stopped") throw new Error("the run completed")
  return outcome
}

/** Every law that the journal of an ended run breaks; empty when it is complete. */
export const broken = (events: ReadonlyArray<Event.Recorded>): ReadonlyArray<string> => [
  ...gaps(events),
  ...frame(events),
  ...agents(events),
  ...accounts(events),
  ...holds(events),
  ...calls(events),
  ...afterFreeze(events),
]

const gaps = (events: ReadonlyArray<Event.Recorded>) =>
  events.flatMap(({ seq }, index) => (seq === index ? [] : [`event ${index} has the number ${seq}`]))

const frame = (events: ReadonlyArray<Event.Recorded>) => [
  ...(events[0]?.event._tag === "RunStarted" ? [] : ["the journal does not start with RunStarted"]),
  ...(events.at(-1)?.event._tag === "RunEnded" ? [] : ["the journal does not end with RunEnded"]),
  ...(all(events, "RunEnded").length === 1 ? [] : ["there is not one RunEnded"]),
]

const once = (what: string, started: ReadonlyArray<string>, ended: ReadonlyArray<string>) => [
  ...started
    .filter((id) => ended.filter((other) => other === id).length !== 1)
    .map((id) => `${what} ${id} ends not once`),
  ...ended.filter((id) => !started.includes(id)).map((id) => `${what} ${id} ends without a start`),
]

const agents = (events: ReadonlyArray<Event.Recorded>) => [
  ...once(
    "agent",
    all(events, "AgentStarted").map((one) => one.agent),
    all(events, "AgentEnded").map((one) => one.agent),
  ),
  ...leavesFirst(
    "agent",
    all(events, "AgentEnded").map((one) => one.agent),
  ),
]

const accounts = (events: ReadonlyArray<Event.Recorded>) => {
  const opened = [...all(events, "Opened"), ...all(events, "Carved")].map((one) => one.account)
  const closed = all(events, "Closed").map((one) => one.account)
  return [...once("account", opened, closed), ...leavesFirst("account", closed)]
}

const leavesFirst = (what: string, ended: ReadonlyArray<string>) =>
  ended.flatMap((id, index) =>
    ended
      .slice(index + 1)
      .flatMap((later) => (later.startsWith(`${id}/`) ? [`${what} ${id} ends before ${later}`] : [])),
  )

const holds = (events: ReadonlyArray<Event.Recorded>) => {
  const id = (one: { readonly account: string; readonly hold: string }) => `${one.account} ${one.hold}`
  const resolved = [...all(events, "Settled"), ...all(events, "Voided"), ...all(events, "Assumed")]
  return once("hold", all(events, "Held").map(id), resolved.map(id))
}

const calls = (events: ReadonlyArray<Event.Recorded>) => {
  const id = (one: { readonly agent: string; readonly call: string }) => `${one.agent} ${one.call}`
  const decided = all(events, "Decided").flatMap(({ agent, calls }) =>
    (calls ?? []).map(({ call }) => id({ agent, call })),
  )
  const started = all(events, "CallStarted").map((one) => ({ id: id(one), attempt: one.attempt }))
  return [
    ...once("call", decided, all(events, "CallEnded").map(id)),
    ...started
      .filter((one, index) => {
        const before = started.slice(0, index).filter((other) => other.id === one.id)
        return !decided.includes(one.id) || one.attempt !== before.length + 1
      })
      .map((one) => `call ${one.id} starts twice or undecided`),
  ]
}

/** I12: no hold for work, carve or move below an account whose new work has ended. */
const afterFreeze = (events: ReadonlyArray<Event.Recorded>) => {
  const frozen: Array<string> = []
  return events.flatMap(({ event }) => {
    if (event._tag === "Frozen") frozen.push(event.account)
    const at =
      event._tag === "Held" || event._tag === "Moved" ? event.account : event._tag === "Carved" ? event.parent : ""
    const under = frozen.some((id) => at === id || at.startsWith(`${id}/`))
    return under ? [`${event._tag} on ${at} after its freeze`] : []
  })
}

/** What is wrong with the books of a run that has ended. */
export const unbalanced = (rows: ReadonlyArray<Budget.Row>): ReadonlyArray<string> => [
  ...Budget.imbalances(rows),
  ...rows.filter((row) => row.state !== "Closed").map((row) => `${row.account} is ${row.state}`),
]

/** The run as it is, once its books balance and its journal is complete. */
export const whole = <A>(ran: Ran<A>): Ran<A> => {
  const complaints = [...broken(ran.events), ...unbalanced(ran.outcome.report.accounts)]
  if (complaints.length > 0) throw new Error(complaints.join("\n"))
  return ran
}
