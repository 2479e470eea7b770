/**
 * The append-only log of a run. Recording is synchronous and keeps the order in which things happened; `flush` makes
 * what was recorded durable and is called before each effect on the outside world.
 *
 * A journal in memory is always there; `bursar/node` adds one on disk.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { Event, Recorded } from "../event/Event.ts"

/**
 * The log of one run.
 *
 * @category journal
 * @since 0.1.0
 */
export interface Log {
  readonly run: string
  /** Appends an event and gives it its number. */
  readonly record: (event: Event) => void
  /** Returns when everything recorded so far is as durable as this journal makes it. */
  readonly flush: Effect.Effect<void>
  /** Where a person finds it; absent for a journal in memory. */
  readonly location: string | undefined
}

/**
 * The log of a run cannot be opened; the run has not started.
 *
 * @category errors
 * @since 0.1.0
 */
export class JournalError extends Schema.TaggedError<JournalError>()("JournalError", {
  location: Schema.String,
  reason: Schema.String,
}) {
  override get message(): string {
    return `the journal ${this.location} cannot be written (${this.reason}): give a folder that can be`
  }
}

/**
 * Opens the log of a run. The default keeps nothing once the run has ended.
 *
 * @category journal
 * @since 0.1.0
 */
export interface Journal {
  readonly open: (run: string) => Effect.Effect<Log, JournalError, Scope.Scope>
}

/** Numbers events and hands them to a sink. */
export const makeLog = (options: {
  readonly run: string
  readonly sink: (recorded: Recorded) => void
  readonly flush?: Effect.Effect<void>
  readonly location?: string
}): Effect.Effect<Log> =>
  Clock.clockWith((clock) =>
    Effect.sync(() => {
      let seq = 0
      const { run, sink } = options
      return {
        run,
        record: (event) => sink({ seq: seq++, atMillis: clock.currentTimeMillisUnsafe(), run, event }),
        flush: options.flush ?? Effect.void,
        location: options.location,
      }
    }),
  )

/**
 * The journal of the current fiber; in memory and forgotten unless one is provided.
 *
 * @category journal
 * @since 0.1.0
 */
export const Journal = Context.Reference<Journal>("bursar/Journal", {
  defaultValue: () => ({ open: (run) => makeLog({ run, sink: () => {} }) }),
})

/**
 * A journal that appends every event to an array, for tests and for looking at a run afterwards.
 *
 * @category journal
 * @since 0.1.0
 */
export const toArray = (events: Array<Recorded>): Journal => ({
  open: (run) => makeLog({ run, sink: (recorded) => events.push(recorded) }),
})

/**
 * Calls `listener` for each event as it is recorded, before or beside another journal.
 *
 * @category journal
 * @since 0.1.0
 */
export const tap = (journal: Journal, listener: (recorded: Recorded) => void): Journal => ({
  open: (run) =>
    Effect.gen(function* () {
      const log = yield* journal.open(run)
      const listening = yield* makeLog({ run, sink: listener })
      return {
        ...log,
        record: (event) => {
          log.record(event)
          listening.record(event)
        },
      }
    }),
})
