/**
 * Ending agents that nobody goes on with: their process is gone, or their parent ended before they could go on.
 */
import * as Content from "../event/Content.ts"
import type { Recorded } from "../event/Event.ts"
import type { StopReason } from "../event/StopReason.ts"
import { Fold } from "../state/State.ts"
import type { Run } from "./Run.ts"

/** The state of an agent as an earlier process left it. */
export const foldOf = (run: Run, account: string): Fold => {
  const fold = new Fold(account)
  for (const { event, atMillis } of run.earlierOf(account)) fold.apply(event, atMillis)
  return fold
}

/** Records the end of agents that nobody goes on with, leaves first: their calls have results, their ends have reasons. */
export const endAgents = (run: Run, account: string, reason: StopReason): void => {
  for (const child of run.ledger.childrenOf(account)) endAgents(run, child.id, reason)
  const fold = foldOf(run, account)
  const { control, session } = fold.state
  const isAgent = run.earlierOf(account).some(({ event }) => event._tag === "AgentStarted")
  if (!isAgent || control.ended !== undefined) return
  const record = (event: Recorded["event"]) => fold.apply(event, run.log.record(event))
  const { steps } = control
  for (const { call, tool } of session.turns.at(-1)?.observations.filter((one) => one.outcome === "pending") ?? []) {
    const ended = { outcome: "error", code: "ECANCELLED", message: "nobody goes on with the run" } as const
    const begun = control.started.get(call)
    const rest = { retryable: false, ran: begun !== undefined, stateChanged: false }
    // Nobody will find out any more whether it had its effect.
    const uncertain = begun?.mark === undefined ? {} : { uncertain: begun.mark }
    record({ _tag: "CallEnded", agent: account, step: steps, call, tool, ...ended, ...rest, ...uncertain })
  }
  if (control.stopping === undefined) {
    record({ _tag: "Stopping", agent: account, step: steps, reason, short: [], detail: "nobody goes on with the run" })
  }
  const answer = session.turns.findLast((turn) => turn.kind === "finish")?.answer
  const result = answer === undefined ? "none" : "partial"
  const { overran, name } = run.ledger.account(account)
  const kept = answer === undefined ? {} : { answer: Content.fromJson(answer) }
  const stateDigest = fold.digest
  const why = control.stopping?.reason ?? reason
  record({ _tag: "AgentEnded", agent: account, reason: why, result, steps, overran, stateDigest, ...kept })
  run.ended(account, { agent: account, name, reason: why, result, steps, detail: "" }, control.untrusted)
}
