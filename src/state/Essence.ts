/**
 * What of an event belongs to the state of its agent, in hashes: the part that a digest of the state stands for.
 */
import type { Event } from "../event/Event.ts"

/** The same text for the same happening, whether or not the texts behind the hashes were kept. */
export const essenceOf = (event: Event): string | undefined => {
  switch (event._tag) {
    case "AgentStarted":
      return JSON.stringify(["task", event.task.hash, event.constraints, event.acceptance, event.untrusted])
    case "Decided":
      return JSON.stringify([
        event.kind,
        event.purpose,
        event.step,
        event.text?.hash,
        event.answer?.hash,
        event.calls?.map((call) => [call.call, call.tool, call.params.hash]),
      ])
    case "CallEnded":
      return JSON.stringify([
        event.call,
        event.outcome,
        event.code,
        event.ran,
        event.stateChanged,
        event.child,
        event.result?.hash,
        event.resources?.map(({ path, version, range }) => [path, version, range]),
        event.untrusted,
        event.uncertain,
      ])
    case "ApprovalDecided":
      return JSON.stringify([event.approval, event.decision, event.result?.hash])
    case "Verified":
      return JSON.stringify([event.accepted, event.rules.map((rule) => [rule.name, rule.passed])])
    case "Stopping":
      return JSON.stringify(["stopping", event.reason])
    default:
      return undefined
  }
}
