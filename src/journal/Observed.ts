/**
 * A log that others listen to: who runs, who watches and who counts hear of each event right after it was recorded.
 */
import type * as Effect from "effect/Effect"
import type { Event } from "../event/Event.ts"
import type { Log } from "./Journal.ts"

/** Hears an event, its number in the journal and the time it stands under. */
export type Hear = (event: Event, seq: number, atMillis: number) => void

/** A log that others may listen to. */
export class Observed implements Log {
  readonly run: string
  readonly nextSeq: () => number
  readonly flush: Effect.Effect<void>
  readonly location: string | undefined
  readonly #log: Log
  readonly #listeners = new Set<Hear>()

  constructor(log: Log) {
    this.#log = log
    this.run = log.run
    this.nextSeq = log.nextSeq
    this.flush = log.flush
    this.location = log.location
  }

  readonly record = (event: Event): number => {
    const seq = this.#log.nextSeq()
    const atMillis = this.#log.record(event)
    for (const listener of this.#listeners) listener(event, seq, atMillis)
    return atMillis
  }

  /** Calls `listener` for each event from now on, until the function that it answers with is called. */
  readonly listen = (listener: Hear): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}
