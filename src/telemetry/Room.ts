/**
 * Room for more spans. An exporter that cannot keep up has a queue that fills; a run that waits a little before it starts
 * another part, or ends a span, loses none. Whoever provides it sees to it that nobody waits for an exporter that does not work.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"

/**
 * Whether there is room, and how to wait for it.
 *
 * @category spans
 * @since 0.1.0
 */
export interface Room {
  /** For the end of a span, or else for the start of another part of a run. */
  readonly isFull: (ends: boolean) => boolean
  /** Returns when there is room again, or is not to be expected. */
  readonly wait: (ends: boolean) => Effect.Effect<void>
}

/**
 * The room of the current fiber; without end unless provided.
 *
 * @category spans
 * @since 0.1.0
 */
export const CurrentRoom = Context.Reference<Room | undefined>("bursar/telemetry/Room", {
  defaultValue: () => undefined,
})
