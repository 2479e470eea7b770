/**
 * A run for people: its agents as a tree, what each was asked and did, how it ended and what it cost, and the books of the
 * whole. It shows whatever events there are, so also a run that is under way, was killed, or whose log is damaged.
 */
import { add, type Amounts, zero } from "../budget/Dimension.ts"
import type { Recorded } from "../event/Event.ts"
import type { ResultKind, StopReason } from "../event/StopReason.ts"
import { entriesOf } from "./audit/Bookings.ts"
import { Facts, type RunState } from "./audit/Facts.ts"
import { type Sum, tallyOf } from "./audit/Tally.ts"
import { accountTable } from "./show/AccountTable.ts"
import { timelineOf } from "./show/Timeline.ts"
import { clipped, counted, harmless, inOneLine, joined, textOf, timeOf, usedOf, width } from "./show/Words.ts"

/**
 * One agent of a run.
 *
 * **Units**: `startedAtMillis` and `endedAtMillis` in milliseconds of absolute time.
 *
 * @category shows
 * @since 0.1.0
 */
export interface AgentSummary {
  readonly agent: string
  readonly name: string
  /** The agent above it. */
  readonly parent: string | undefined
  /** Absent where texts were dropped. */
  readonly task: string | undefined
  /** Absent while it has not ended. */
  readonly reason: StopReason | undefined
  readonly result: ResultKind | undefined
  readonly steps: number
  readonly calls: number
  /** What its account used itself. */
  readonly own: Amounts
  /** What its account and all below it used. */
  readonly tree: Amounts
  readonly startedAtMillis: number
  readonly endedAtMillis: number | undefined
}

/**
 * A run in numbers.
 *
 * @category shows
 * @since 0.1.0
 */
export interface Summary {
  readonly run: string | undefined
  readonly state: RunState
  readonly reason: StopReason | undefined
  readonly result: ResultKind | undefined
  /** The version that wrote the journal. */
  readonly bursar: string | undefined
  readonly events: number
  /** Of the first and the last event; absent where there is none. */
  readonly startedAtMillis: number | undefined
  readonly lastAtMillis: number | undefined
  /** Parents before their children. */
  readonly agents: ReadonlyArray<AgentSummary>
  readonly accounts: ReadonlyArray<Sum>
}

/**
 * The numbers of a run, from its events alone.
 *
 * @category shows
 * @since 0.1.0
 */
export const summarize = (events: ReadonlyArray<Recorded>): Summary => summaryOf(new Facts(events))

/**
 * A run as text of 100 columns: agents as a tree, each with its steps; then the accounts. The same events give the same
 * text.
 *
 * **Example** (An agent that answers at once)
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
 * Show.show(events).split("\n").includes("echo: completed, full") // => true
 * ```
 *
 * @category shows
 * @since 0.1.0
 */
export const show = (events: ReadonlyArray<Recorded>): string => {
  const facts = new Facts(events)
  const summary = summaryOf(facts)
  const [top, byAgent] = split(facts)
  const lines = [
    ...headOf(summary),
    ...linesOf(facts, { agent: "", depth: 0, start: summary.startedAtMillis ?? 0 }, top),
    ...summary.agents.flatMap((agent) => [
      "",
      ...agentLines(facts, { summary, agent }, byAgent.get(agent.agent) ?? []),
    ]),
  ]
  // Numbers are never cut.
  return [...lines.map((line) => clipped(line, width).trimEnd()), "", ...accountTable(summary.accounts)]
    .map(harmless)
    .join("\n")
    .trimEnd()
}

// --- numbers

const summaryOf = (facts: Facts): Summary => {
  const { events } = facts
  const tally = tallyOf(entriesOf(events).map(({ entry }) => entry))
  const below = Map.groupBy(facts.agents.values(), ({ agent }) => facts.parentOf(agent))
  const trees = treesOf(tally.sums)
  const inOrder = (parent: string | undefined): ReadonlyArray<AgentSummary> =>
    (below.get(parent) ?? []).flatMap(({ agent }) => [
      agentOf(facts, agent, { parent, own: tally.of(agent)?.own ?? zero, tree: trees.get(agent) ?? zero }),
      ...inOrder(agent),
    ])
  const ended = facts.runEnded.at(-1)?.event
  return {
    run: events[0]?.run,
    state: facts.state,
    reason: ended?.reason,
    result: ended?.result,
    bursar: facts.runStarted[0]?.event.bursar,
    events: events.length,
    startedAtMillis: events[0]?.atMillis,
    lastAtMillis: events.at(-1)?.atMillis,
    agents: inOrder(undefined),
    accounts: tally.sums,
  }
}

/** What every account used with all below it, open or closed. */
const treesOf = (sums: ReadonlyArray<Sum>): ReadonlyMap<string, Amounts> => {
  const trees = new Map(sums.map(({ account, own }) => [account, own]))
  for (const { account, parent } of sums.toReversed()) {
    const above = parent === undefined ? undefined : trees.get(parent)
    if (above !== undefined) trees.set(parent!, add(above, trees.get(account)!))
  }
  return trees
}

const agentOf = (facts: Facts, agent: string, of: Pick<AgentSummary, "parent" | "own" | "tree">): AgentSummary => {
  const { calls, decided, ended, failed, started } = facts.agents.get(agent)!
  const [start, end] = [started[0], ended.at(-1)]
  const timeAt = (place: { readonly at: number } | undefined) =>
    place === undefined ? undefined : facts.events[place.at]!.atMillis
  return {
    agent,
    name: start?.event.name ?? agent,
    task: start?.event.task.text,
    reason: end?.event.reason,
    result: end?.event.result,
    steps: [...decided, ...failed].reduce((most, { event }) => Math.max(most, event.step), 0),
    calls: calls.filter((call) => call.decided.length > 0).length,
    startedAtMillis: timeAt(start) ?? facts.events[0]!.atMillis,
    endedAtMillis: timeAt(end),
    ...of,
  }
}

// --- text

const headOf = ({ bursar, events, lastAtMillis, reason, result, run, startedAtMillis, state }: Summary) => {
  if (startedAtMillis === undefined || lastAtMillis === undefined) return ["no events"]
  const end = reason === undefined ? state : `${state} ${reason}, ${result}`
  const wrote = bursar === undefined ? "" : `bursar ${inOneLine(bursar)}`
  return [
    `run ${inOneLine(run ?? "")}: ${end}`,
    joined(
      [
        `${new Date(startedAtMillis).toISOString()} + ${timeOf(lastAtMillis - startedAtMillis)}`,
        counted(events, "event"),
        wrote,
      ],
      ", ",
    ),
  ]
}

const agentLines = (
  facts: Facts,
  of: { readonly summary: Summary; readonly agent: AgentSummary },
  events: ReadonlyArray<Recorded>,
): ReadonlyArray<string> => {
  const { summary, agent } = of
  const depth = depthOf(summary, agent)
  const indent = "  ".repeat(depth)
  const end =
    agent.reason === undefined
      ? summary.state === "ended"
        ? "no end"
        : summary.state
      : `${agent.reason}, ${agent.result}`
  const task = agent.task === undefined ? "" : textOf({ hash: "", bytes: 0, text: agent.task })
  const hasTree = summary.agents.some(({ parent }) => parent === agent.agent)
  return [
    `${indent}${inOneLine(agent.agent)}: ${end}`,
    ...(task === "" ? [] : [`${indent}  task  ${task}`]),
    `${indent}  own   ${usedOf(agent.own)}`,
    ...(hasTree ? [`${indent}  tree  ${usedOf(agent.tree)}`] : []),
    ...linesOf(facts, { agent: agent.agent, depth, start: summary.startedAtMillis ?? 0 }, events),
  ]
}

const depthOf = ({ agents }: Summary, agent: AgentSummary): number => {
  const parent = agents.find((one) => one.agent === agent.parent)
  return parent === undefined ? 0 : Math.min(8, depthOf({ agents } as Summary, parent) + 1)
}

const linesOf = (
  facts: Facts,
  at: { readonly agent: string; readonly depth: number; readonly start: number },
  events: ReadonlyArray<Recorded>,
): ReadonlyArray<string> =>
  timelineOf(facts, at.agent, events).map(({ atMillis, depth, step, what }) => {
    const time = depth === 0 ? timeOf(atMillis - at.start) : ""
    const number = step === undefined ? "" : String(step)
    return `${"  ".repeat(at.depth)}${time.padStart(9)} ${number.padStart(3)}  ${"  ".repeat(depth)}${what}`
  })

/** The events of each agent, budget entries of its account among them; and those of no agent. */
const split = (facts: Facts): readonly [ReadonlyArray<Recorded>, ReadonlyMap<string, ReadonlyArray<Recorded>>] => {
  const ownerOf = ({ event }: Recorded): string => {
    const owner = "agent" in event ? event.agent : event.account
    return facts.agents.has(owner) ? owner : ""
  }
  const groups = Map.groupBy(facts.events, ownerOf)
  return [groups.get("") ?? [], groups]
}
