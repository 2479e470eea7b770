/**
 * The laws of a conversation, from both ledgers: ours from the journal, the provider's from its own books.
 *
 * - A call that was settled by what the provider stated is booked as the provider billed it.
 * - No call is booked below its bill, except what nobody could know (budget assumptions A1 and A5): a provider that
 *   states less than it bills, or a lost reply that was longer than its cap.
 * - Where every bill was within its hold, nothing is booked above a cap.
 * - Every hold is resolved, every call has its result, every account is closed (the audit is sound).
 * - Whatever was cancelled has closed its connection within a second.
 */
import { Audit, Budget, type Event, Price } from "../../src/index.ts"
import type { TestingServer } from "../../src/testing/index.ts"
import type { Ended } from "./Conversation.ts"
import type { Said } from "./Provider.ts"

/** One request to the model: what was held and booked for it here, and what the provider has of it. */
export interface Pair {
  readonly hold: string
  readonly held: Budget.Amounts
  readonly booked: Budget.Amounts
  readonly how: "settled" | "assumed" | "voided" | "open"
  readonly entry: TestingServer.Entry | undefined
  readonly said: Said | undefined
}

/** What a conversation showed. */
export interface Verdict {
  readonly complaints: ReadonlyArray<string>
  readonly pairs: ReadonlyArray<Pair>
  /** Calls booked by what the provider stated. */
  readonly exact: number
  readonly assumed: number
  readonly overruns: number
  /** Holds that nothing became of. */
  readonly holdsLeft: number
  /** Calls booked below their bill, which nobody could know. */
  readonly unknowable: number
}

export const judge = (ended: Ended): Verdict => {
  const pairs = pairsOf(ended)
  const below = pairs.filter(({ booked, entry }) => entry !== undefined && isBelow(booked, billOf(ended, entry)))
  const excused = below.filter(isUnknowable)
  return {
    complaints: [
      ...pairs.flatMap((pair) => wrongBooking(ended, pair)),
      ...below.filter((pair) => !isUnknowable(pair)).map((pair) => `${nameOf(pair)}: booked below its bill`),
      ...overspent(ended),
      ...Audit.defects(Audit.audit(ended.events)).map(
        ({ kind, ...defect }) => `audit: ${kind} ${JSON.stringify(defect)}`,
      ),
      ...Budget.imbalances(ended.outcome.report.accounts).map((text) => `books: ${text}`),
      ...(ended.leftOpen === 0 ? [] : [`${ended.leftOpen} requests or timers are open at the provider`]),
      ...(ended.closedAfterMillis !== undefined && ended.closedAfterMillis > 1_000
        ? [`the connection closed ${ended.closedAfterMillis.toFixed(0)} ms after the cancel`]
        : []),
    ],
    pairs,
    exact: pairs.filter(isExact).length,
    assumed: pairs.filter(({ how }) => how === "assumed").length,
    overruns: ended.events.filter(({ event }) => event._tag === "Overran").length,
    holdsLeft: pairs.filter(({ how }) => how === "open").length,
    unknowable: excused.length,
  }
}

const isExact = ({ booked, how }: Pair): boolean => how === "settled" && booked.inputTokens + booked.outputTokens > 0

// --- pairing

type Booked = Event.EventOf<"Settled"> | Event.EventOf<"Assumed"> | Event.EventOf<"Voided"> | Event.EventOf<"Adjusted">

/** The holds of an account for a model, and its spans, are in the same order; a span carries the id of its request. */
const pairsOf = ({ entries, events, said, sent }: Ended): ReadonlyArray<Pair> => {
  const bySpan = new Map(entries.map((entry) => [entry.traceparent?.split("-")[2], entry]))
  const spans = new Map<string, Array<string>>()
  for (const { account, spanId } of sent) spans.set(account, [...(spans.get(account) ?? []), spanId])
  const resolved = new Map<string, Array<Booked>>()
  for (const { event } of events) {
    if (event._tag !== "Settled" && event._tag !== "Assumed" && event._tag !== "Voided" && event._tag !== "Adjusted")
      continue
    const id = `${event.account} ${event.hold}`
    resolved.set(id, [...(resolved.get(id) ?? []), event])
  }
  return events.flatMap(({ event }): ReadonlyArray<Pair> => {
    if (event._tag !== "Held" || !/\/(explore|wrap_up)\/attempt-/.test(event.hold)) return []
    const span = spans.get(event.account)?.shift()
    const entry = bySpan.get(span)
    const id = `${event.account} ${event.hold}`
    const [how, booked] = bookedOf(resolved.get(id) ?? [], Budget.amounts(event.amounts))
    return [
      {
        hold: id,
        held: Budget.amounts(event.amounts),
        booked,
        how,
        entry,
        said: entry === undefined ? undefined : said.get(entry.n),
      },
    ]
  })
}

const bookedOf = (events: ReadonlyArray<Booked>, held: Budget.Amounts): readonly [Pair["how"], Budget.Amounts] => {
  const last = events.at(-1)
  switch (last?._tag) {
    case "Settled":
    case "Adjusted":
      return ["settled", Budget.amounts(last.actual)]
    case "Assumed":
      return ["assumed", held]
    case "Voided":
      return ["voided", Budget.zero]
    case undefined:
      return ["open", Budget.zero]
  }
}

// --- laws

const billOf = ({ price }: Ended, entry: TestingServer.Entry): Budget.Amounts =>
  Budget.amounts({
    inputTokens: entry.inputTokens,
    outputTokens: entry.outputTokens,
    money: Price.costOf(price, {
      inputTokens: entry.inputTokens,
      cachedInputTokens: entry.cachedTokens,
      cacheWriteInputTokens: entry.cacheWriteTokens,
      outputTokens: entry.outputTokens,
      reasoningTokens: entry.reasoningTokens,
    }),
  })

const billed = ["inputTokens", "outputTokens", "money"] as const

const isBelow = (booked: Budget.Amounts, bill: Budget.Amounts): boolean => billed.some((d) => booked[d] < bill[d])

const isUnknowable = ({ how, said }: Pair): boolean =>
  said?.lies.has("states less than it bills") === true ||
  (how === "assumed" && said?.lies.has("exceeds the cap") === true)

const nameOf = ({ entry, hold, how, said }: Pair): string =>
  `${hold} (${how}, request ${entry?.n ?? "none"}, ${entry?.outcome ?? "not seen"}, ${JSON.stringify(said?.turn ?? {})})`

/** What was settled by a statement is the bill, to the unit. */
const wrongBooking = (ended: Ended, pair: Pair): ReadonlyArray<string> => {
  if (pair.how === "open") return [`${nameOf(pair)}: the hold is open`]
  if (!isExact(pair)) return []
  if (pair.entry === undefined) return [`${nameOf(pair)}: settled, and the provider never saw it`]
  if (pair.said?.isImplausible === true) return [`${nameOf(pair)}: settled by a statement that cannot be`]
  if (pair.said?.lies.has("states less than it bills") === true) return []
  const bill = billOf(ended, pair.entry)
  const wrong = billed.filter((d) => pair.booked[d] !== bill[d])
  return wrong.map((d) => `${nameOf(pair)}: ${d} booked ${pair.booked[d]}, billed ${bill[d]}`)
}

/** Above a cap is only what bills were above their holds. */
const overspent = ({ events, grant, outcome }: Ended): ReadonlyArray<string> => {
  const [root] = outcome.report.accounts
  const used = Budget.add(Budget.add(root!.own, root!.children), root!.debt)
  const over = events.reduce(
    (sum, { event }) => (event._tag === "Overran" ? Budget.add(sum, Budget.amounts(event.excess)) : sum),
    Budget.zero,
  )
  return Budget.dimensions
    .filter((d) => grant[d] !== undefined && used[d] > grant[d] + over[d])
    .map((d) => `${d}: ${used[d]} used of ${grant[d]}, with ${over[d]} above holds`)
}
