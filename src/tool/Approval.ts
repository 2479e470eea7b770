/**
 * Questions to people. A call that needs one stands still, and its run with it, until somebody has answered. A question is
 * bound to the call as it is: run, agent, call, tool, version and arguments. An answer is given under the digest of just
 * that, so that it fits no other call.
 */
import { digest } from "../event/Content.ts"
import type { Call, EventOf, WaitKind } from "../event/Event.ts"
import type { AgentState, Wait } from "../state/State.ts"
import { canonical } from "./EffectLedger.ts"

/** What a question is about. */
export interface Subject {
  readonly run: string
  readonly agent: string
  readonly call: Call
  readonly version: string
  readonly params: unknown
}

/** The digest that a question has and its answer repeats. */
export const digestOf = ({ run, agent, call, version, params }: Subject, kind: WaitKind): string =>
  digest(JSON.stringify([kind, run, agent, call.call, call.tool, version, canonical(params)]))

/** The questions that were asked about a call, the last one last. */
const questionsOf = (state: AgentState, call: string, kind: WaitKind): ReadonlyArray<Wait> =>
  [...state.control.waits.values()].filter((wait) => wait.call === call && wait.kind === kind)

/** What a person said about a call: nothing yet, or a decision that fits the call as it is now. */
export type Standing =
  | { readonly _tag: "NotAsked" }
  | { readonly _tag: "Open"; readonly approval: string }
  | { readonly _tag: "Decided"; readonly decision: EventOf<"ApprovalDecided"> }

/** How a question about a call stands; one that was asked about something else (another version) counts for nothing. */
export const standing = (state: AgentState, subject: Subject, kind: WaitKind): Standing => {
  const wait = questionsOf(state, subject.call.call, kind).at(-1)
  if (wait === undefined || wait.digest !== digestOf(subject, kind)) return { _tag: "NotAsked" }
  return wait.decision === undefined
    ? { _tag: "Open", approval: wait.approval }
    : { _tag: "Decided", decision: wait.decision }
}

/** A new question about a call. */
export const question = (
  state: AgentState,
  subject: Subject,
  of: { readonly kind: WaitKind; readonly reason: string; readonly step: number },
): EventOf<"ApprovalRequested"> => {
  const { agent, call } = subject
  const number = questionsOf(state, call.call, of.kind).length
  return {
    _tag: "ApprovalRequested",
    agent,
    step: of.step,
    call: call.call,
    tool: call.tool,
    approval: `${agent}/${call.call}/${of.kind}${number === 0 ? "" : `-${number + 1}`}`,
    kind: of.kind,
    digest: digestOf(subject, of.kind),
    reason: of.reason,
    params: call.params,
  }
}
