/**
 * The append-only log of a run. Recording is synchronous and keeps the order in which things happened; `flush` makes
 * what was recorded durable and is called before each effect on the outside world, and after it.
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
  /** Appends an event, gives it its number, and answers with the time it stands under, in absolute milliseconds. */
  readonly record: (event: Event) => number
  /** The number that the next event will get. */
  readonly nextSeq: () => number
  /** Returns when everything recorded so far is as durable as this journal makes it. */
  readonly flush: Effect.Effect<void>
  /** Where a person finds it; absent for a journal in memory. */
  readonly location: string | undefined
}

/**
 * The log of a run cannot be opened; nothing has happened.
 *
 * @category errors
 * @since 0.1.0
 */
export class JournalError extends Schema.TaggedError<JournalError>()("JournalError", {
  location: Schema.String,
  reason: Schema.String,
  remedy: Schema.String,
}) {
  override get message(): string {
    return `the journal ${this.location} cannot be opened (${this.reason}): ${this.remedy}`
  }
}

/** A log that goes on, and what it holds already. */
export interface Reopened {
  readonly log: Log
  readonly events: ReadonlyArray<Recorded>
}

/**
 * Where logs are kept. The default keeps nothing once the run has ended.
 *
 * @category journal
 * @since 0.1.0
 */
export interface Journal {
  /** Starts the log of a new run. **Fails with** `JournalError`, also when there is a run of that name already. */
  readonly open: (run: string) => Effect.Effect<Log, JournalError, Scope.Scope>
  /**
   * Reads the log of a run and goes on writing it; absent where nothing is kept. **Fails with** `JournalError` when there is
   * no such run, when it cannot be read, or when another process is writing it.
   */
  readonly reopen?: (run: string) => Effect.Effect<Reopened, JournalError, Scope.Scope>
}

/** Numbers events, from `firstSeq` on, and hands them to a sink. */
export const makeLog = (options: {
  readonly run: string
  readonly sink: (recorded: Recorded) => void
  readonly firstSeq?: number
  readonly flush?: Effect.Effect<void>
  readonly location?: string
}): Effect.Effect<Log> =>
  Clock.clockWith((clock) =>
    Effect.sync(() => {
      let seq = options.firstSeq ?? 0
      const { run, sink } = options
      return {
        run,
        record: (event) => {
          const atMillis = clock.currentTimeMillisUnsafe()
          sink({ seq: seq++, atMillis, run, event })
          return atMillis
        },
        nextSeq: () => seq,
        flush: options.flush ?? Effect.void,
        location: options.location,
      }
    }),
  )

/** Reads the log of a run and goes on writing it. **Fails with** `JournalError` where nothing is kept. */
export const reopen = (journal: Journal, run: string): Effect.Effect<Reopened, JournalError, Scope.Scope> =>
  journal.reopen?.(run) ??
  Effect.fail(
    new JournalError({ location: run, reason: "nothing is kept here", remedy: "provide a journal that keeps runs" }),
  )

const unknownRun = (run: string): JournalError =>
  new JournalError({ location: run, reason: "there is no such run", remedy: "name a run that was recorded here" })

/** There is a run of that name: a second one would be taken for its continuation. */
export const nameTaken = (location: string): JournalError =>
  new JournalError({
    location,
    reason: "there is a run of that name already",
    remedy: "resume it, or give the new run another name",
  })

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
 * A journal that appends the events of every run to an array, for tests and for looking at a run afterwards. Runs can be
 * resumed from it for as long as the array lives.
 *
 * @category journal
 * @since 0.1.0
 */
export const toArray = (events: Array<Recorded>): Journal => {
  const sink = (recorded: Recorded) => void events.push(recorded)
  return {
    open: (run) =>
      Effect.suspend(() =>
        events.some((one) => one.run === run) ? Effect.fail(nameTaken(run)) : makeLog({ run, sink }),
      ),
    reopen: (run) =>
      Effect.suspend(() => {
        const known = events.filter((one) => one.run === run)
        return known.length === 0
          ? Effect.fail(unknownRun(run))
          : Effect.map(makeLog({ run, sink, firstSeq: known.at(-1)!.seq + 1 }), (log) => ({ log, events: known }))
      }),
  }
}

/**
 * Calls `listener` for each event as it is recorded, before or beside another journal.
 *
 * @category journal
 * @since 0.1.0
 */
export const tap = (journal: Journal, listener: (recorded: Recorded) => void): Journal => {
  const listening = (log: Log, firstSeq: number) =>
    Effect.map(makeLog({ run: log.run, sink: listener, firstSeq }), (own): Log => {
      const record = (event: Event) => {
        const atMillis = log.record(event)
        own.record(event)
        return atMillis
      }
      return { ...log, record }
    })
  return {
    open: (run) => Effect.flatMap(journal.open(run), (log) => listening(log, 0)),
    reopen: (run) =>
      Effect.flatMap(reopen(journal, run), ({ log, events }) =>
        Effect.map(listening(log, (events.at(-1)?.seq ?? -1) + 1), (heard) => ({ log: heard, events })),
      ),
  }
}
