/**
 * Compares what a case came to with what it expects, and checks what must hold in every case: never above a cap, books
 * that balance, every account closed, no hold open, and totals that can be rebuilt from the trace.
 */
import { Budget, type Event } from "../../src/index.ts"
import type { Case, Expectation } from "./Case.ts"
import type { Played } from "./Play.ts"
import { grantOf, nanoPerMicro } from "./Script.ts"

const axisWords: Readonly<Record<string, string>> = {
  "budget:input_tokens": "budget:in",
  "budget:output_tokens": "budget:out",
  "budget:money": "budget:usd",
}

const stopWord = (reason: string): string => axisWords[reason] ?? reason

/** Every difference, in words; empty when the case is as expected. */
export const differences = (one: Case, played: Played): ReadonlyArray<string> => [
  ...compareOutcome(one.expect, played),
  ...compareTotals(one.expect, played),
  ...compareCalls(one, played),
  ...compareAgents(one.expect, played),
  ...compareRequests(one.expect, played),
  ...compareTrace(one.expect, played),
  ...lawsBroken(one, played),
]

type Value = string | number | boolean | undefined

const differs = (what: string, expected: Value, actual: Value): ReadonlyArray<string> =>
  expected === undefined || expected === actual ? [] : [`${what}: expected ${String(expected)}, got ${String(actual)}`]

const compareOutcome = (expect: Expectation, { outcome }: Played): ReadonlyArray<string> => {
  if (outcome._tag === "Suspended") return ["the run stands still"]
  const completed = outcome._tag === "Completed"
  return [
    ...differs("stop", expect.stop, stopWord(completed ? "completed" : outcome.reason)),
    ...differs("result", expect.result, completed ? "full" : outcome.result),
  ]
}

const rootOf = (rows: ReadonlyArray<Budget.Row>): Budget.Row => rows.find((row) => row.parent === undefined)!

const usedBy = (row: Budget.Row): Budget.Amounts => Budget.add(row.own, row.children)

const owedAndUsed = (row: Budget.Row): Budget.Amounts => Budget.add(usedBy(row), row.debt)

const compareTotals = (expect: Expectation, played: Played): ReadonlyArray<string> => {
  const used = owedAndUsed(rootOf(played.outcome.report.accounts))
  const uusd = Math.ceil(used.money / nanoPerMicro)
  return [
    ...differs("steps", expect.steps, used.steps),
    ...differs("tool_calls", expect.tool_calls, used.toolCalls),
    ...differs("in", expect.in, used.inputTokens),
    ...differs("out", expect.out, used.outputTokens),
    ...differs("ticks", expect.ticks, used.ticks),
    ...differs("side_effects", expect.side_effects, played.sideEffects),
    ...(expect.uusd_max !== undefined && uusd > expect.uusd_max
      ? [`uusd: expected at most ${expect.uusd_max}, got ${uusd}`]
      : []),
    ...(expect.wall_ms_max !== undefined && played.wallMillis > expect.wall_ms_max
      ? [`wall_ms: expected at most ${expect.wall_ms_max}, got ${played.wallMillis}`]
      : []),
  ]
}

interface Ended {
  readonly id: string
  readonly label: string
  readonly name: string
  readonly event: Event.EventOf<"CallEnded">
}

/** Provider ids may repeat within a reply: then the script has a label for each. */
const labelsOf = (one: Case, ids: ReadonlyArray<string>): ReadonlyArray<string> => {
  const turns = [one, ...Object.values(one.children ?? {})].flatMap((agent) => agent.turns)
  const turn = turns.find(({ calls = [] }) => calls.map((call) => call.id).join(" ") === ids.join(" "))
  return ids.map((id, index) => turn?.calls?.[index]?.ref ?? id)
}

const endedCalls = (one: Case, played: Played): ReadonlyArray<Ended> => {
  const names = new Map<string, { readonly id: string; readonly label: string }>()
  const ended: Array<Ended> = []
  for (const { event } of played.events) {
    if (event._tag === "Decided") {
      const calls = event.calls ?? []
      const labels = labelsOf(
        one,
        calls.map((call) => call.providerId),
      )
      calls.forEach((call, index) =>
        names.set(`${event.agent} ${call.call}`, { id: call.providerId, label: labels[index]! }),
      )
    }
    if (event._tag === "CallEnded") {
      const { id, label } = names.get(`${event.agent} ${event.call}`) ?? { id: "?", label: "?" }
      ended.push({ id, label, name: event.tool, event })
    }
  }
  return ended
}

const compareCalls = (one: Case, played: Played): ReadonlyArray<string> => {
  const { expect } = one
  const ended = endedCalls(one, played)
  const kept = ended
    .filter(({ event }) => event.outcome === "ok")
    .map(({ id, name, event }) => (event.child === undefined ? id : `child:${name}`))
  const labelled = (...codes: ReadonlyArray<string>) =>
    ended.filter(({ event }) => codes.includes(event.code ?? "")).map(({ label }) => label)
  const replayed = ended.filter(({ event }) => event.replayed !== undefined).map(({ label }) => label)
  return [
    ...differs("kept", sorted(expect.kept), sorted([...new Set(kept)])),
    ...differs("refused", sorted(expect.refused ?? []), sorted(labelled("EBUDGET", "EWITHDRAWN", "EUNCERTAIN"))),
    ...differs("invalid", sorted(expect.invalid ?? []), sorted(labelled("ENOTOOL", "EINVAL"))),
    ...differs("replayed", sorted(expect.replayed ?? []), sorted(replayed)),
  ]
}

const sorted = (ids: ReadonlyArray<string> | undefined): string | undefined => ids?.toSorted().join(" ")

const compareAgents = (expect: Expectation, played: Played): ReadonlyArray<string> =>
  Object.entries(expect.agents ?? {}).flatMap(([name, agent]) => {
    const row = played.outcome.report.accounts.find((one) => one.name === name)
    const end = played.outcome.report.ends.find((one) => one.name === name)
    if (row === undefined || end === undefined) return [`${name}: expected an agent, there is none`]
    const used = owedAndUsed(row)
    const grant = Budget.amounts({})
    return [
      ...differs(`${name}.stop`, agent.stop, stopWord(end.reason)),
      ...differs(`${name}.result`, agent.result, end.result),
      ...differs(`${name}.steps`, agent.steps, used.steps),
      ...differs(`${name}.tool_calls`, agent.tool_calls, used.toolCalls),
      ...differs(`${name}.in`, agent.in, used.inputTokens),
      ...differs(`${name}.out`, agent.out, used.outputTokens),
      ...differs(`${name}.uusd`, agent.uusd, used.money / nanoPerMicro),
      ...differs(`${name}.overdrawn`, agent.overdrawn, overdrawnBy(played, row, grant)),
    ]
  })

/** What was booked beyond the slice the agent was given at first. */
const overdrawnBy = (played: Played, row: Budget.Row, none: Budget.Amounts): number => {
  const carved = played.events
    .map(({ event }) => event)
    .find((event) => event._tag === "Carved" && event.account === row.account)
  const first = carved?._tag === "Carved" ? Budget.amounts(carved.grant) : none
  return Math.max(0, owedAndUsed(row).money - first.money) / nanoPerMicro
}

const compareRequests = (expect: Expectation, played: Played): ReadonlyArray<string> =>
  (expect.requests ?? []).flatMap((request) => {
    const sent = played.requests[request.n]
    if (sent === undefined) return [`request ${request.n}: expected one, there is none`]
    return [
      ...differs(`request ${request.n} tools`, request.tools, sent.request.tools.length > 0),
      ...differs(`request ${request.n} max_out`, request.max_out, sent.maxOutputTokens),
      ...differs(`request ${request.n} options`, inOrder(request.options), inOrder(sent.options)),
    ]
  })

/** Options as text, by name: in what order they were set does not matter. */
const inOrder = (options: Readonly<Record<string, unknown>> | undefined): string | undefined =>
  options === undefined ? undefined : JSON.stringify(Object.entries(options).toSorted(([a], [b]) => (a < b ? -1 : 1)))

const axes = {
  steps: "steps",
  tool_calls: "toolCalls",
  in: "inputTokens",
  out: "outputTokens",
  uusd: "money",
  ticks: "ticks",
} as const

const compareTrace = (expect: Expectation, played: Played): ReadonlyArray<string> =>
  (expect.trace ?? []).flatMap((wanted) => {
    const amended = played.events.filter(({ event }) => {
      if (wanted.event !== "budget_amended" || event._tag !== "Amended") return false
      const dimension = axes[wanted.axis as keyof typeof axes]
      return event.from[dimension] === wanted.from && event.to[dimension] === wanted.to
    })
    return differs(`trace ${wanted.event}`, wanted.count, amended.length)
  })

const lawsBroken = (one: Case, played: Played): ReadonlyArray<string> => {
  const { accounts } = played.outcome.report
  return [
    ...Budget.imbalances(accounts),
    ...accounts.filter((row) => row.state !== "Closed").map((row) => `${row.path} is still ${row.state}`),
    ...(played.pastScript > 0 ? [`${played.pastScript} dispatches past the end of a script`] : []),
    ...capsBroken(one, played),
    ...replayDiffers(played),
  ]
}

/** Settled + held of the whole tree, summed from the trace at every moment, against the caps. Over-runs are exempt. */
const capsBroken = (one: Case, played: Played): ReadonlyArray<string> => {
  const caps = { ...grantOf(one.budget), ...grantOf(one.amend?.budget ?? {}) }
  let standing = Budget.zero
  const broken: Array<string> = []
  for (const { event, seq } of played.events) {
    standing = Budget.add(standing, effectOf(event))
    if (event._tag === "Overran") return broken
    for (const d of Budget.dimensions) {
      const cap = caps[d]
      if (cap !== undefined && standing[d] > cap) broken.push(`cap of ${d} exceeded at ${seq}: ${standing[d]} > ${cap}`)
    }
  }
  return broken
}

/** What an entry adds to settled + held. */
const effectOf = (event: Event.Event): Budget.Amounts => {
  switch (event._tag) {
    case "Held":
      return Budget.amounts(event.amounts)
    case "Settled":
      return minus(event.actual, event.held)
    case "Voided":
      return minus({}, event.held)
    case "Carved":
      return Budget.amounts(event.charge)
    default:
      return Budget.zero
  }
}

const minus = (a: Budget.Grant, b: Budget.Grant): Budget.Amounts => {
  const [left, right] = [Budget.amounts(a), Budget.amounts(b)]
  return Budget.amounts(Object.fromEntries(Budget.dimensions.map((d) => [d, left[d] - right[d]])))
}

/** Replaying the trace gives the same totals, and leaves no hold open. */
const replayDiffers = (played: Played): ReadonlyArray<string> => {
  const rebuilt = played.events.reduce((sum, { event }) => Budget.add(sum, effectOf(event)), Budget.zero)
  const used = owedAndUsed(rootOf(played.outcome.report.accounts))
  const open = played.events.reduce((count, { event }) => count + holdChange(event), 0)
  return [
    ...Budget.dimensions.flatMap((d) => differs(`replayed ${d}`, used[d], rebuilt[d])),
    ...differs("open holds", 0, open),
  ]
}

const holdChange = (event: Event.Event): number => {
  if (event._tag === "Held") return 1
  return event._tag === "Settled" || event._tag === "Voided" || event._tag === "Assumed" ? -1 : 0
}
