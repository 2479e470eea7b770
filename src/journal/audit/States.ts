/**
 * The state of every agent, folded from the events of a run, and what an agent said of it when it ended. No text is
 * looked at, so a run whose texts were dropped gives the same.
 */
import { type Content, digest } from "../../event/Content.ts"
import type { Event, Recorded } from "../../event/Event.ts"
import { Fold } from "../../state/State.ts"
import type { Defect } from "./Facts.ts"

/** The state of one agent, by its digest: as it was right before its end, or as far as the events go. */
export interface FoldedState {
  readonly agent: string
  readonly name: string
  readonly digest: string
  readonly steps: number
  /** What the agent recorded at its end; absent for one that has not ended. */
  readonly recorded: { readonly seq: number; readonly digest: string; readonly steps: number } | undefined
}

/** Folds the events of every agent, in the order in which agents started. */
export const folded = (events: ReadonlyArray<Recorded>): ReadonlyArray<FoldedState> => {
  const folds = new Map<string, { readonly fold: Fold; name: string; end?: FoldedState }>()
  for (const { seq, atMillis, event } of events) {
    if (!isOfAgent(event)) continue
    const one = folds.get(event.agent) ?? { fold: new Fold(event.agent), name: event.agent }
    folds.set(event.agent, one)
    if (event._tag === "AgentStarted") one.name = event.name
    if (event._tag === "AgentEnded" && one.end === undefined) {
      const recorded = { seq, digest: event.stateDigest, steps: event.steps }
      one.end = { ...now(event.agent, one), recorded }
    }
    one.fold.apply(withoutTexts(event), atMillis)
  }
  return [...folds].map(([agent, one]) => one.end ?? { ...now(agent, one), recorded: undefined })
}

const now = (agent: string, { fold, name }: { readonly fold: Fold; readonly name: string }) => ({
  agent,
  name,
  digest: fold.digest,
  steps: fold.state.control.steps,
})

/** Events of the run as a whole name its root agent and are not part of what that agent has done. */
const isOfAgent = (event: Event): event is Extract<Event, { readonly agent: string }> =>
  "agent" in event && !event._tag.startsWith("Run")

/** Where what an agent said of its state is not what its events say, and where a text is not the one on record. */
export const digests = (events: ReadonlyArray<Recorded>): ReadonlyArray<Defect> => [
  ...folded(events).flatMap(({ agent, digest, recorded, steps }): ReadonlyArray<Defect> => {
    if (recorded === undefined) return []
    const { seq } = recorded
    return [
      ...(recorded.digest === digest
        ? []
        : [{ seq, agent, what: `${agent} ended in another state than its events say` }]),
      ...(recorded.steps === steps
        ? []
        : [{ seq, agent, what: `${agent} ended after ${recorded.steps} steps, and its events say ${steps}` }]),
    ]
  }),
  ...events.flatMap(({ seq, event }) =>
    contentsOf(event).flatMap(({ hash, bytes, text }): ReadonlyArray<Defect> => {
      if (text === undefined || (digest(text) === hash && Buffer.byteLength(text) === bytes)) return []
      const agent = isOfAgent(event) ? { agent: event.agent } : {}
      return [{ seq, ...agent, what: `a text of ${event._tag} is not the one that was recorded (${hash})` }]
    }),
  ),
]

/** Every piece of content of an event. */
const contentsOf = (value: unknown): ReadonlyArray<Content> => {
  if (typeof value !== "object" || value === null) return []
  return isContent(value) ? [value] : Object.values(value).flatMap(contentsOf)
}

const isContent = (value: object): value is Content =>
  "hash" in value && "bytes" in value && typeof value.hash === "string" && typeof value.bytes === "number"

/** A copy of an event with hashes alone. */
const withoutTexts = <E extends Event>(event: E): E => stripped(event) as E

const stripped = (value: unknown): unknown => {
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map(stripped)
  if (isContent(value)) return { hash: value.hash, bytes: value.bytes }
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, stripped(item)]))
}
