/**
 * What needs a person: a question is asked once and answered once, what is denied or still open does not start, and who
 * has read something from outside does nothing irreversible without being allowed to.
 */
import { type AgentFacts, type CallFacts, type Defect, type Facts, repeats, type Seen } from "./Facts.ts"

/** Every breach of what has to be agreed to by a person. */
export const approvals = (facts: Facts): ReadonlyArray<Defect> => [
  ...questions(facts),
  ...waits(facts),
  ...[...facts.calls.values()].flatMap(startedAnyway),
  ...[...facts.agents.values()].flatMap(afterUntrusted),
]

/** Questions by their id. */
const questions = (facts: Facts): ReadonlyArray<Defect> => {
  const calls = [...facts.calls.values()]
  const asked = Map.groupBy(
    calls.flatMap((call) => call.asked),
    ({ event }) => event.approval,
  )
  const answered = Map.groupBy(
    calls.flatMap((call) => call.answered),
    ({ event }) => event.approval,
  )
  return [
    ...[...asked].flatMap(([approval, all]) =>
      repeats(inOrder(all)).map((one) => defect(one, `${approval} is asked for a second time`)),
    ),
    ...[...answered].flatMap(([approval, all]) => [
      ...repeats(inOrder(all)).map((one) => defect(one, `${approval} is decided a second time`)),
      ...all.flatMap((one) => misplaced(one, inOrder(asked.get(approval) ?? [])[0])),
    ]),
  ]
}

/** A run waits for questions that are open. */
const waits = (facts: Facts): ReadonlyArray<Defect> => {
  const calls = [...facts.calls.values()]
  const placesOf = (all: ReadonlyArray<Seen<"ApprovalRequested"> | Seen<"ApprovalDecided">>) =>
    new Map(all.map(({ at, event }) => [event.approval, at]))
  const asked = placesOf(calls.flatMap((call) => call.asked))
  const answered = placesOf(calls.flatMap((call) => call.answered))
  return facts.runSuspended.flatMap(({ at, seq, event }) => [
    ...(event.waitsFor.length > 0 ? [] : [{ seq, agent: event.agent, what: "the run waits for nothing" }]),
    ...event.waitsFor
      .filter((approval) => !((asked.get(approval) ?? at) < at && (answered.get(approval) ?? at) >= at))
      .map((approval) => ({
        seq,
        agent: event.agent,
        what: `the run waits for ${approval}, which is no open question`,
      })),
  ])
}

const inOrder = <A extends { readonly at: number }>(all: ReadonlyArray<A>): ReadonlyArray<A> =>
  all.toSorted((one, other) => one.at - other.at)

const defect = ({ seq, event }: Seen<"ApprovalRequested"> | Seen<"ApprovalDecided">, what: string): Defect => ({
  seq,
  agent: event.agent,
  call: event.call,
  what,
})

/** An answer belongs to the question that was asked before it, about the same call. */
const misplaced = (
  answer: Seen<"ApprovalDecided">,
  question: Seen<"ApprovalRequested"> | undefined,
): ReadonlyArray<Defect> => {
  const { approval, agent, call, tool, kind, decision } = answer.event
  if (question === undefined || question.at > answer.at)
    return [defect(answer, `${approval} is decided, and nobody asked`)]
  const about = question.event
  if (about.agent !== agent || about.call !== call || about.tool !== tool || about.kind !== kind) {
    return [
      defect(
        answer,
        `${approval} was asked for ${about.agent} ${about.call} (${about.tool}), and is decided for another call`,
      ),
    ]
  }
  const fits = kind === "approval" ? !/happen/.test(decision) : decision !== "approved"
  return fits ? [] : [defect(answer, `${approval} is about ${kind}, and the answer is ${decision}`)]
}

/** A call that waits, or that was denied, does not start. */
const startedAnyway = ({ agent, call, started, asked, answered }: CallFacts): ReadonlyArray<Defect> =>
  started.flatMap(({ at, seq }) => {
    const question = asked.findLast((one) => one.at < at)
    if (question === undefined) return []
    const { approval } = question.event
    const answer = answered.findLast((one) => one.at < at && one.event.approval === approval)
    const { decision } = answer?.event ?? {}
    if (decision === "approved" || decision === "did_not_happen") return []
    const why = decision === undefined ? "is still open" : `was answered with ${decision}`
    return [{ seq, agent, call, what: `${call} starts although ${approval} ${why}` }]
  })

/** A decision that was made after something from outside had been read may be that of the one who wrote it. */
const afterUntrusted = ({ agent, calls, started }: AgentFacts): ReadonlyArray<Defect> => {
  const seen = calls.flatMap((call) => call.ended).filter(({ event }) => event.untrusted === true)
  const first = seen.reduce((least, { at }) => Math.min(least, at), Infinity)
  const from = started[0]?.event.untrusted === true ? -1 : first
  return calls.flatMap(({ call, decided, started, answered }) => {
    const start = started.find(({ event }) => event.effect === "irreversible")
    if (start === undefined || (decided[0] ?? start).at < from) return []
    const approved = answered.some(({ at, event }) => event.decision === "approved" && at < start.at)
    const what = `${call} (${start.event.tool}) is irreversible, and starts unapproved after an untrusted result`
    return approved ? [] : [{ seq: start.seq, agent, call, what }]
  })
}
