/**
 * Every hold is resolved once, every account is closed once and after its children, and the numbers add up: by the rules
 * of the budget, which are run again, and by plain arithmetic, which knows none of them.
 */
import * as Result from "effect/Result"
import { Entry } from "../../budget/Entry.ts"
import { Ledger } from "../../budget/Ledger.ts"
import type { RestoreFailure } from "../../budget/Restore.ts"
import type { Event, Recorded } from "../../event/Event.ts"
import type { Defect, Facts } from "./Facts.ts"
import { difference, Tally } from "./Tally.ts"

/** A budget entry with its number and its time. */
export interface Booked {
  readonly seq: number
  readonly atMillis: number
  readonly entry: Entry
}

const tags: ReadonlySet<string> = new Set(Entry.members.map((member) => member.fields._tag.schema.literal))

/** Whether an event is an entry of the budget. */
export const isEntry = (event: Event): event is Entry => tags.has(event._tag)

/** The budget entries of a run. */
export const entriesOf = (events: ReadonlyArray<Recorded>): ReadonlyArray<Booked> =>
  events.flatMap(({ seq, atMillis, event }) => (isEntry(event) ? [{ seq, atMillis, entry: event }] : []))

/** The books as the entries say they came about; nothing is written and time stands still. */
export const restored = (entries: ReadonlyArray<Booked>): Result.Result<Ledger, RestoreFailure> => {
  const last = entries.at(-1)?.atMillis ?? 0
  return Ledger.restore(entries, { record: () => {}, nowMillis: () => last })
}

type EntryOf<Tag extends Entry["_tag"]> = Extract<Entry, { readonly _tag: Tag }>

interface Held {
  readonly seq: number
  state: string
}

/** Holds that nobody resolved, that were resolved without having been placed, or more than once. */
export const unmatchedHolds = (facts: Facts): ReadonlyArray<Defect> => {
  const holds = new Map<string, Map<string, Held>>()
  const defects: Array<Defect> = []
  const leftIn = (account: string): ReadonlyArray<Defect> =>
    [...(holds.get(account) ?? [])]
      .filter(([, { state }]) => state === "pending")
      .map(([id, { seq }]) => ({ seq, agent: account, what: `the hold ${id} of ${account} is never resolved` }))
  for (const { seq, entry } of entriesOf(facts.events)) {
    if (entry._tag === "Closed") {
      defects.push(...leftIn(entry.account))
      holds.delete(entry.account)
    }
    const what = isOfHold(entry) ? ofHold(holds, entry, seq) : undefined
    if (what !== undefined) defects.push({ seq, agent: entry.account, what })
  }
  if (facts.state === "ended") for (const account of holds.keys()) defects.push(...leftIn(account))
  return defects
}

type OfHold = EntryOf<"Held" | "Extended" | "Settled" | "Voided" | "Assumed" | "Adjusted">

const ofHolds: ReadonlySet<string> = new Set(["Held", "Extended", "Settled", "Voided", "Assumed", "Adjusted"])

const isOfHold = (entry: Entry): entry is OfHold => ofHolds.has(entry._tag)

/** Takes in what happens to a hold, and says what is wrong with that. A bill may correct an assumed hold, also late. */
const ofHold = (holds: Map<string, Map<string, Held>>, entry: OfHold, seq: number): string | undefined => {
  const { account, hold, _tag: tag } = entry
  const known = holds.get(account) ?? new Map<string, Held>()
  const before = known.get(hold)
  const name = `the hold ${hold} of ${account}`
  const does = tag.toLowerCase()
  if (tag === "Held") {
    holds.set(account, known.set(hold, { seq, state: "pending" }))
    return before === undefined ? undefined : `${name} is placed a second time`
  }
  if (tag === "Adjusted" && (before === undefined || before.state === "assumed")) {
    if (before !== undefined) before.state = does
    return undefined
  }
  if (before === undefined) return `${name} is ${does} and was never placed`
  if (before.state !== "pending") return `${name} is ${does} and was ${before.state} before`
  if (tag !== "Extended") before.state = does
  return undefined
}

/**
 * Accounts that are open at the end, closed before their children or their agent, closed twice, or without having been
 * opened; and agents that start without an open account.
 */
export const openAccounts = (facts: Facts): ReadonlyArray<Defect> => {
  const tally = new Tally()
  const opened = new Map<string, number>()
  const running = new Set<string>()
  const defects: Array<Defect> = []
  for (const { seq, event } of facts.events) {
    const say = (agent: string, what: string) => defects.push({ seq, agent, what })
    if (event._tag === "AgentStarted") {
      running.add(event.agent)
      if (tally.of(event.agent)?.isClosed !== false) say(event.agent, `${event.agent} starts without an open account`)
    }
    if (event._tag === "AgentEnded") running.delete(event.agent)
    if (event._tag === "CallStarted" && event.child !== undefined && tally.of(event.child)?.parent !== event.agent) {
      say(event.agent, `${event.call} starts the child ${event.child}, which has no account below ${event.agent}`)
    }
    if (!isEntry(event)) continue
    const { account } = event
    for (const what of wrongWith(event, { tally, running })) say(account, what)
    if (event._tag === "Opened" || event._tag === "Carved") opened.set(account, seq)
    tally.take(event)
  }
  if (facts.state !== "ended") return defects
  const left = tally.sums.filter(({ isClosed }) => !isClosed)
  return [
    ...defects,
    ...left.map(({ account }) => ({
      seq: opened.get(account) ?? 0,
      agent: account,
      what: `the account ${account} is still open at the end`,
    })),
  ]
}

/** What is wrong with opening or closing an account as things stand. */
const wrongWith = (
  entry: Entry,
  { tally, running }: { readonly tally: Tally; readonly running: ReadonlySet<string> },
): ReadonlyArray<string> => {
  const { account } = entry
  const before = tally.of(account)
  switch (entry._tag) {
    case "Opened":
    case "Carved":
      return [
        ...(before === undefined ? [] : [`the account ${account} is opened a second time`]),
        ...(entry._tag === "Opened" && tally.sums.length > 0 ? [`the run has a second root, ${account}`] : []),
      ]
    case "Closed":
      return [
        ...(before === undefined ? [`the account ${account} is closed and was never opened`] : []),
        ...(before?.isClosed === true ? [`the account ${account} is closed a second time`] : []),
        ...tally.openBelow(account).map((child) => `${account} is closed before its child ${child}`),
        ...(running.has(account) ? [`the account ${account} is closed before its agent has ended`] : []),
      ]
    default:
      return []
  }
}

/** Where the entries contradict the rules of the budget, each other's sums, or what an agent says of its over-runs. */
export const spend = (facts: Facts): ReadonlyArray<Defect> => {
  const entries = entriesOf(facts.events)
  return [...againstRules(entries), ...againstSums(facts.events)]
}

const againstRules = (entries: ReadonlyArray<Booked>): ReadonlyArray<Defect> => {
  const books = entries.length === 0 ? undefined : restored(entries)
  if (books === undefined || Result.isSuccess(books)) return []
  const { seq = 0, entry } = entries[books.failure.index] ?? {}
  const agent = entry === undefined ? {} : { agent: entry.account }
  return [{ seq, ...agent, what: contradictionOf(entries, books.failure) }]
}

/** Where the books contradict an entry, in a sentence. */
export const contradictionOf = (entries: ReadonlyArray<Booked>, failure: RestoreFailure): string => {
  const { field, index, journal, books } = failure
  const { entry } = entries[index] ?? {}
  const where = entry === undefined ? "an entry" : `${entry._tag} of ${entry.account}`
  return `${where}: the journal says ${field === "" ? "" : `${field} `}${journal}, the books say ${books}`
}

const againstSums = (events: ReadonlyArray<Recorded>): ReadonlyArray<Defect> => {
  const tally = new Tally()
  return events.flatMap(({ seq, event }): ReadonlyArray<Defect> => {
    if (event._tag === "AgentEnded") {
      const found = tally.of(event.agent)?.overran ?? event.overran
      const what = `${event.agent} says that it ${event.overran ? "overran" : "did not overrun"}, and its entries say otherwise`
      return found === event.overran ? [] : [{ seq, agent: event.agent, what }]
    }
    if (!isEntry(event)) return []
    const wrong = event._tag === "Closed" ? wrongSums(tally, event) : []
    tally.take(event)
    return wrong.map((what) => ({ seq, agent: event.account, what }))
  })
}

/** What an account says of itself at its close, against what its entries add up to. */
const wrongSums = (tally: Tally, closed: EntryOf<"Closed">): ReadonlyArray<string> => {
  const sum = tally.of(closed.account)
  if (sum === undefined) return []
  const found = {
    granted: sum.granted,
    own: sum.own,
    children: sum.children,
    debt: sum.debt,
    returned: Tally.left(sum),
  }
  return (["granted", "own", "children", "returned", "debt"] as const).flatMap((name) => {
    const differs = difference(closed[name], found[name])
    return differs === undefined
      ? []
      : [`${closed.account} closes with another sum than its entries: ${name} ${differs}`]
  })
}
