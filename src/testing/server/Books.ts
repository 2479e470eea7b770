/**
 * The server's own ledger: totals, and an entry for each request to generate.
 *
 * Its laws: an entry is settled once, before the client can know how its request ended; what was stated to the client
 * is not known here.
 */
import type { Protocol } from "./Request.ts"
import { none, type Tokens } from "./Tokens.ts"

/**
 * What the server counted, on its side of the wire.
 *
 * - `requests`: requests to generate that arrived whole. Each then counts under at most one of the following.
 * - `replies`: whole replies with status 200; their tokens are counted, whether or not the reply stated them.
 * - `cut`: replies whose connection the script destroyed; their tokens are counted too.
 * - `failed`: replies the script let fail while they were generated; they cost nothing unless their turn says so.
 * - `refused`: error statuses, scripted ones and those for a request a provider would not accept.
 * - `pastScript`: requests the script had no turn for.
 * - `aborted`: requests whose client went away before the end of the reply.
 * - `cancelled`: responses in the background that were cancelled.
 * - `counted`, `retrieved`: requests to count input, and to see a stored response; they cost nothing.
 *
 * **Units**: requests, and tokens billed; `cachedTokens` and `cacheWriteTokens` lie inside `inputTokens`,
 * `reasoningTokens` inside `outputTokens`.
 *
 * @category ledger
 * @since 0.1.0
 */
export interface Ledger {
  readonly requests: number
  readonly replies: number
  readonly cut: number
  readonly failed: number
  readonly refused: number
  readonly pastScript: number
  readonly aborted: number
  readonly cancelled: number
  readonly counted: number
  readonly retrieved: number
  readonly inputTokens: number
  readonly cachedTokens: number
  readonly cacheWriteTokens: number
  readonly outputTokens: number
  readonly reasoningTokens: number
}

/**
 * How a request ended, as the totals of `Ledger` count it; `open` until then, and `stopped` when the server stopped
 * first.
 *
 * @category ledger
 * @since 0.1.0
 */
export type Outcome =
  | "open"
  | "replied"
  | "cut"
  | "failed"
  | "refused"
  | "pastScript"
  | "aborted"
  | "cancelled"
  | "stopped"

/**
 * One request to generate, and what it bills.
 *
 * **Units**: tokens; milliseconds since 1970; bytes of the reply's body handed to the connection.
 *
 * @category ledger
 * @since 0.1.0
 */
export interface Entry {
  /** Its place among all requests to generate, from 0. */
  readonly n: number
  /** The id its reply names; `undefined` while there is none. */
  readonly id: string | undefined
  readonly protocol: Protocol
  readonly streamed: boolean
  /** The model that serves it, as its reply names it; the one asked for while there is no reply. */
  readonly model: string
  /** The service tier that serves it. */
  readonly serviceTier: string
  readonly traceparent: string | undefined
  readonly outcome: Outcome
  readonly inputTokens: number
  readonly cachedTokens: number
  readonly cacheWriteTokens: number
  readonly outputTokens: number
  readonly reasoningTokens: number
  readonly sentBytes: number
  readonly arrivedAtMillis: number
  /** When its reply was over or its connection gone, whichever came first. */
  readonly closedAtMillis: number | undefined
}

/** What is known as a request arrives. */
export type Arrival = Pick<Entry, "protocol" | "streamed" | "model" | "serviceTier" | "traceparent">

/** An entry under the server's pen. */
export type OpenEntry = { -readonly [Field in keyof Entry]: Entry[Field] }

/** The ledger and what watches it. */
export interface Books {
  readonly ledger: () => Ledger
  readonly entries: ReadonlyArray<Entry>
  /** Entries that are open or whose connection is. */
  readonly open: () => number
  readonly arrive: (arrival: Arrival) => OpenEntry
  /** Settles an open entry; one that is settled stays as it is. Answers whether it was open. */
  readonly settle: (entry: OpenEntry, outcome: Exclude<Outcome, "open">, tokens: Tokens) => boolean
  readonly close: (entry: OpenEntry) => void
  readonly note: (kind: "counted" | "retrieved") => void
  /** Calls `listener` after every change, until the returned function is called. */
  readonly onChange: (listener: () => void) => () => void
}

const empty: Ledger = {
  requests: 0,
  replies: 0,
  cut: 0,
  failed: 0,
  refused: 0,
  pastScript: 0,
  aborted: 0,
  cancelled: 0,
  counted: 0,
  retrieved: 0,
  inputTokens: 0,
  cachedTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
}

const totalOf = (outcome: Exclude<Outcome, "open">): keyof Ledger | undefined =>
  outcome === "replied" ? "replies" : outcome === "stopped" ? undefined : outcome

const billOf = (tokens: Tokens) => ({
  inputTokens: tokens.input,
  cachedTokens: tokens.cached,
  cacheWriteTokens: tokens.cacheWrite,
  outputTokens: tokens.output,
  reasoningTokens: tokens.reasoning,
})

/** Empty books. */
export const make = (): Books => {
  let ledger = empty
  const entries: Array<OpenEntry> = []
  const unclosed = new Set<OpenEntry>()
  const listeners = new Set<() => void>()
  const add = (changes: Partial<Ledger>): void => {
    const next = { ...ledger }
    for (const [key, change] of Object.entries(changes)) next[key as keyof Ledger] += change
    ledger = next
    for (const listener of listeners) listener()
  }
  return {
    ledger: () => ledger,
    entries,
    open: () => unclosed.size,
    arrive: (arrival) => {
      const n = entries.length
      const times = { sentBytes: 0, arrivedAtMillis: Date.now(), closedAtMillis: undefined }
      const entry: OpenEntry = { n, id: undefined, ...arrival, outcome: "open", ...billOf(none), ...times }
      entries.push(entry)
      unclosed.add(entry)
      add({ requests: 1 })
      return entry
    },
    settle: (entry, outcome, tokens) => {
      if (entry.outcome !== "open") return false
      const bill = billOf(tokens)
      Object.assign(entry, { outcome, ...bill })
      const total = totalOf(outcome)
      add(total === undefined ? bill : { [total]: 1, ...bill })
      return true
    },
    close: (entry) => {
      if (!unclosed.delete(entry)) return
      entry.closedAtMillis = Date.now()
      add({})
    },
    note: (kind) => add({ [kind]: 1 }),
    onChange: (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}
