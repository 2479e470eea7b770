/**
 * Those who want to hear everything that is recorded of a run, such as metrics. Their law: they hear each event once, when
 * it happens; what an earlier process recorded they do not hear again.
 */
import * as Context from "effect/Context"
import type { HoldRef } from "../budget/Books.ts"
import type { Event } from "../event/Event.ts"

/**
 * Who hears the events of one run.
 *
 * **Units**: `atMillis` since 1970.
 *
 * @category listening
 * @since 0.1.0
 */
export interface Listener {
  readonly heard: (event: Event, seq: number, atMillis: number) => void
  /** A request goes to a model, paid from this hold. The attributes are those of its span at its start. */
  readonly asked?: (hold: HoldRef, attributes: Readonly<Record<string, unknown>>) => void
}

/**
 * Makes a listener for each run of the current fiber; none unless provided.
 *
 * @category listening
 * @since 0.1.0
 */
export const Listeners = Context.Reference<ReadonlyArray<() => Listener>>("bursar/telemetry/Listeners", {
  defaultValue: () => [],
})
