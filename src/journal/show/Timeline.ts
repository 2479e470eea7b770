/**
 * What one agent did, line by line: its decisions with the calls they asked for and what became of these, its failed
 * attempts and checks, what was refused and over-run, and its end.
 */
import { amounts } from "../../budget/Dimension.ts"
import { describe } from "../../budget/Refusal.ts"
import type { Event, EventOf, Evidence, Recorded } from "../../event/Event.ts"
import { type CallFacts, callId, type Facts } from "../audit/Facts.ts"
import { billOf, inOneLine, joined, saidIn, textOf, timeOf, usedOf } from "./Words.ts"

/** A line of a timeline: when, in which step, what; `depth` is how far it is set in. */
export interface Moment {
  readonly atMillis: number
  readonly step: number | undefined
  readonly depth: number
  readonly what: string
}

/** What an agent did, in order. */
export const timelineOf = (facts: Facts, agent: string, events: ReadonlyArray<Recorded>): ReadonlyArray<Moment> =>
  events.flatMap(({ atMillis, event }) => {
    const [first, ...below] = linesOf(facts, agent, event)
    if (first === undefined) return []
    const step = event._tag === "Decided" || event._tag === "DecisionFailed" ? event.step : undefined
    return [
      { atMillis, step, depth: 0, what: first },
      ...below.map(({ depth, what }) => ({ atMillis, step: undefined, depth, what })),
    ]
  }) as ReadonlyArray<Moment>

interface Below {
  readonly depth: number
  readonly what: string
}

type Lines = readonly [] | readonly [string, ...ReadonlyArray<Below>]

const linesOf = (facts: Facts, agent: string, event: Event): Lines => {
  switch (event._tag) {
    case "Decided":
      return [decision(event), ...callsOf(facts, agent, event)]
    case "DecisionFailed": {
      const head = `attempt ${event.attempt} failed${event.retryable ? " (retryable)" : ""}: ${inOneLine(event.code)}`
      return [joined([head, saidIn(event.message)], " ")]
    }
    case "FellBack": {
      const passed = event.unpriced.length === 0 ? "" : `, passing over ${event.unpriced.map(inOneLine).join(", ")}`
      return [`${inOneLine(event.from)} has failed for good: ${inOneLine(event.to ?? "nobody else to ask")}${passed}`]
    }
    case "Verified":
      return [verdict(event), ...checks(event)]
    case "Stopping":
      return [joined([`has to stop: ${event.reason}`, shortOf(event.short), saidIn(event.detail)], ", ")]
    case "AgentEnded":
      return [joined([`ends ${event.reason}, ${event.result}`, textOf(event.answer ?? event.text)], ": ")]
    case "RunSuspended":
      return [`waits for ${event.waitsFor.map(inOneLine).join(", ") || "people"}`]
    case "RunResumed":
      return [`goes on after a ${event.after}, for the ${ordinal(event.epoch)} time`]
    default:
      return ofBudget(event)
  }
}

const shortOf = (short: ReadonlyArray<string>): string => (short.length === 0 ? "" : `short of ${short.join(" and ")}`)

const ordinal = (count: number): string => {
  const last = count % 100 > 10 && count % 100 < 14 ? 0 : count % 10
  return `${count}${last === 1 ? "st" : last === 2 ? "nd" : last === 3 ? "rd" : "th"}`
}

/** What of the budget a person wants to see beside the totals. */
const ofBudget = (event: Event): Lines => {
  switch (event._tag) {
    case "Overran": {
      const from = event.covered.map(
        ({ account, amount, dimension, reserve }) =>
          `${usedOf({ [dimension]: amount })} from ${reserve} of ${inOneLine(account)}`,
      )
      const owed = usedOf(event.debt)
      return [
        `over-run: ${usedOf(event.excess)} above the hold ${inOneLine(event.hold)}`,
        ...[...from, ...(owed === "nothing" ? [] : [`${owed} owed`])].map((what) => ({ depth: 1, what })),
      ]
    }
    case "DebtPaid":
      return [`debt paid: ${usedOf(event.paid)}`]
    case "Refused":
      return [
        `refused: ${event.operation} ${inOneLine(event.id)}`,
        ...describe(event.reason)
          .split("; ")
          .map((what) => ({ depth: 1, what: inOneLine(what) })),
      ]
    case "Amended":
      return [`amended: ${usedOf(event.from)} is now ${usedOf(event.to)}`]
    case "ToppedUp":
      return [`topped up: ${usedOf(event.amounts)}`]
    case "Reclaimed":
      return [`reclaimed: ${usedOf(event.amounts)}`]
    case "Waited":
      return [`waits in line for ${usedOf(event.need)}`]
    case "Served":
      return [`served: ${usedOf(event.amounts)}`]
    default:
      return []
  }
}

// --- a decision

const decision = (event: EventOf<"Decided">): string => {
  const { attempt, answer, certainty, kind, model, purpose, text, used, why } = event
  const bill = joined([model, billOf(amounts(used)), certainty === "assumed" && "assumed"], ", ")
  const notes = joined([purpose === "wrap_up" && "wrap-up", attempt > 1 && `attempt ${attempt}`, bill], ", ")
  const said = joined([saidIn(why), textOf(answer), textOf(text)], " | ")
  return joined([notes === "" ? kind : `${kind} (${notes})`, said], ": ")
}

const callsOf = (facts: Facts, agent: string, { calls = [] }: EventOf<"Decided">): ReadonlyArray<Below> => {
  const names = Math.min(20, Math.max(0, ...calls.map(({ tool }) => inOneLine(tool).length)))
  return calls.flatMap(({ call, tool, params }) => {
    const known = facts.calls.get(callId(agent, call))
    const given = textOf(params, 40)
    const head = `${inOneLine(tool).padEnd(names)}  ${resultOf(facts, known, given === "{}" || given === "null" ? "" : given)}`
    return [{ depth: 1, what: head.trimEnd() }, ...(known === undefined ? [] : storyOf(facts, known))]
  })
}

/** Outcome, time it took, and the rest of what its result says. */
const resultOf = (facts: Facts, call: CallFacts | undefined, params: string): string => {
  const [start, result] = [call?.started[0], call?.ended[0]]
  const begun = start === undefined ? undefined : facts.events[start.at]!.atMillis
  const until = result === undefined ? undefined : facts.events[result.at]!.atMillis
  const took = begun === undefined || until === undefined ? "-" : timeOf(until - begun)
  const ended = result?.event
  const outcome =
    ended === undefined ? (start === undefined ? "not started" : "no result") : (ended.code ?? ended.outcome)
  const effect = start?.event.effect === "read" ? undefined : start?.event.effect
  const notes = joined(
    [
      effect,
      ended?.child ?? start?.event.child,
      ended?.replayed !== undefined && `as ${inOneLine(ended.replayed)}`,
      ended?.untrusted === true && "untrusted",
      ended?.uncertain !== undefined && "may have happened",
    ],
    ", ",
  )
  const said = ended?.outcome === "error" ? saidIn(ended.message) : textOf(ended?.result)
  const rest = joined([notes === "" ? "" : `[${notes}]`, params, said && `${params === "" ? "" : "-> "}${said}`], " ")
  return `${inOneLine(outcome).padEnd(11)} ${took.padStart(7)}  ${rest}`
}

/** What happened on the way to the result: attempts that failed, and what people were asked. */
const storyOf = (facts: Facts, { failed, asked, answered }: CallFacts): ReadonlyArray<Below> => {
  const moments = [
    ...failed.map(({ at, event }) => ({
      at,
      what: `attempt ${event.attempt} failed: ${event.code} ${saidIn(event.message)}`,
    })),
    ...asked.map(({ at, event }) => ({
      at,
      what: `${event.kind === "approval" ? "asks for approval" : "asks what became of it"}: ${saidIn(event.reason)}`,
    })),
    ...answered.map(({ at, event }) => {
      const question = asked.find((one) => one.event.approval === event.approval)
      const waited = question === undefined ? 0 : facts.events[at]!.atMillis - facts.events[question.at]!.atMillis
      const head = `${event.decision.replaceAll("_", " ")}, says ${inOneLine(event.by)} after ${timeOf(waited)}`
      return { at, what: joined([head, saidIn(event.note)], ": ") }
    }),
  ]
  return moments.toSorted((one, other) => one.at - other.at).map(({ what }) => ({ depth: 2, what: what.trimEnd() }))
}

// --- a check

const verdict = ({ accepted, rules }: EventOf<"Verified">): string => {
  const passed = rules.filter((rule) => rule.passed).map(({ name }) => inOneLine(name))
  const says = passed.length === 0 ? "" : accepted ? passed.join(", ") : `passed ${passed.join(", ")}`
  return joined([accepted ? "accepted" : "not accepted", says], ": ")
}

const checks = ({ rules, evidence }: EventOf<"Verified">): ReadonlyArray<Below> => [
  ...rules
    .filter((rule) => !rule.passed)
    .map(({ name, detail }) => ({ depth: 1, what: joined([`failed ${inOneLine(name)}`, saidIn(detail)], ": ") })),
  ...evidence.flatMap((one) => {
    const what = evidenceIn(one)
    return what === "" ? [] : [{ depth: 1, what }]
  }),
]

/** "npm test: exit code 1", or whatever numbers and short facts there are. */
const evidenceIn = (evidence: Evidence): string => {
  const { command, exitCode, ...rest } = evidence
  const ran = typeof command === "string" && typeof exitCode === "number"
  const facts = Object.entries(ran ? rest : evidence).flatMap(([name, value]) =>
    typeof value === "object" && !Array.isArray(value) ? [] : [`${inOneLine(name)} ${inOneLine(String(value))}`],
  )
  return [...(ran ? [`${inOneLine(command)}: exit code ${exitCode}`] : []), ...facts].join(", ")
}
