/**
 * Where a step ends in the events of a run.
 */
import type { Event } from "../../src/index.ts"

/** The last event of a step of the root: its last result, or its decision where it called nothing. */
export const endsStep = (event: Event.Event, step: number, events: ReadonlyArray<Event.Recorded>): boolean => {
  if (!("agent" in event) || event.agent !== "root" || !("step" in event) || event.step !== step) return false
  if (event._tag === "Decided") return event.kind !== "call"
  if (event._tag !== "CallEnded") return false
  const decided = events
    .map((one) => one.event)
    .find((one) => one._tag === "Decided" && one.agent === "root" && one.step === step)
  const ended = events.filter(
    (one) => one.event._tag === "CallEnded" && one.event.agent === "root" && one.event.step === step,
  )
  return decided?._tag === "Decided" && ended.length === (decided.calls ?? []).length
}
