/**
 * Replaying a run: its books and the state of each of its agents, rebuilt from the events alone and compared with what
 * was recorded. Nothing is executed: no model is asked, no tool runs.
 */
import * as Result from "effect/Result"
import { type Row, statement } from "../budget/Statement.ts"
import type { Recorded } from "../event/Event.ts"
import { type Booked, contradictionOf, entriesOf, restored } from "./audit/Bookings.ts"
import { folded } from "./audit/States.ts"

/**
 * The state of one agent, rebuilt.
 *
 * @category replays
 * @since 0.1.0
 */
export interface AgentReplay {
  readonly agent: string
  readonly name: string
  /** The digest of the rebuilt state, right before the end of the agent or as far as the events go. */
  readonly digest: string
  /** The digest that the agent recorded at its end; absent for one that has not ended. */
  readonly recorded: string | undefined
  /** False where the two differ. */
  readonly equal: boolean
}

/**
 * A run, rebuilt.
 *
 * @category replays
 * @since 0.1.0
 */
export interface Replay {
  readonly run: string | undefined
  /** In the order in which agents started. */
  readonly agents: ReadonlyArray<AgentReplay>
  /** The statement of the rebuilt books, parents before their children; empty where they cannot be rebuilt. */
  readonly accounts: ReadonlyArray<Row>
  /** Where the books contradict an entry, in a sentence; absent where they were rebuilt. */
  readonly contradiction: string | undefined
  /** True when the books were rebuilt and every state is as it was recorded. */
  readonly equal: boolean
}

/**
 * Replays the events of one run, in the order in which they were recorded.
 *
 * **Example** (The same state and the same books as in the run itself)
 *
 * ```ts
 * import type { Event } from "bursar"
 *
 * const events: Array<Event.Recorded> = []
 * const echo = Agent.make("echo", { policy: Policy.make((view) => Proposal.finish(view.task)) })
 * const outcome = await Effect.runPromise(
 *   Agent.run(echo, "hello", { budget: { steps: 2 } }).pipe(
 *     Effect.provideService(Journal.Journal, Journal.toArray(events)),
 *   ),
 * )
 * const replay = Replay.replay(events)
 * replay.equal // => true
 * replay.accounts // => outcome.report.accounts
 * ```
 *
 * @category replays
 * @since 0.1.0
 */
export const replay = (events: ReadonlyArray<Recorded>): Replay => {
  const agents = folded(events).map(({ agent, name, digest, recorded }): AgentReplay => {
    const equal = recorded === undefined || recorded.digest === digest
    return { agent, name, digest, recorded: recorded?.digest, equal }
  })
  const { accounts, contradiction } = rebuilt(entriesOf(events))
  const equal = contradiction === undefined && agents.every((agent) => agent.equal)
  return { run: events[0]?.run, agents, accounts, contradiction, equal }
}

const rebuilt = (entries: ReadonlyArray<Booked>): Pick<Replay, "accounts" | "contradiction"> => {
  if (entries.length === 0) return { accounts: [], contradiction: undefined }
  const books = restored(entries)
  if (Result.isSuccess(books)) return { accounts: statement(books.success), contradiction: undefined }
  return { accounts: [], contradiction: contradictionOf(entries, books.failure) }
}
