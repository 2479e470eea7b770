/**
 * Opening a run: its log, its ledger, and what runs it to its end.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Budget from "../budget/Budget.ts"
import * as Content from "../event/Content.ts"
import type { StopReason } from "../event/StopReason.ts"
import { Journal, type JournalError } from "../journal/Journal.ts"
import { Observed } from "../journal/Observed.ts"
import * as RunId from "../journal/RunId.ts"
import type { Ending, Suspended } from "../loop/Loop.ts"
import * as Watch from "../telemetry/Watch.ts"
import type { Restore } from "../tool/Setting.ts"
import type { Agent } from "./Definition.ts"
import { drive } from "./Drive.ts"
import type { Outcome } from "./Outcome.ts"
import { Run } from "./Run.ts"

/**
 * What a run is started with. `runId` names it in journal and traces; one is made without it.
 *
 * @category running
 * @since 0.1.0
 */
export interface RunOptions {
  readonly budget: Budget.Input
  readonly runId?: string
  readonly limits?: Budget.Limits
}

/** The version that stands in journals. */
export const version = "0.1.0"

/** A run whose account is open. */
export interface Opened<A, R> {
  readonly run: Run
  readonly log: Observed
  /** Runs to the end and closes the account, on every exit; it has to be started before any interruption. */
  readonly toEnd: (restore: Restore) => Effect.Effect<Outcome<A>, never, R>
}

/** Opens a new run. **Fails with** `BudgetError` or `JournalError`; nothing was spent then. */
export const open = <A, R>(
  agent: Agent<A, R>,
  task: string,
  options: RunOptions,
): Effect.Effect<Opened<A, R>, Budget.BudgetError | JournalError, Scope.Scope> =>
  Effect.gen(function* () {
    const { grant, wallClockMillis } = yield* read(options.budget, agent.name)
    const journal = yield* Journal
    const nowMillis = yield* Budget.monotonicMillis
    const log = new Observed(yield* journal.open(options.runId ?? (yield* RunId.make)))
    const account = agent.name
    const watch = yield* Watch.make(log)
    log.record({ _tag: "RunStarted", agent: account, task: Content.fromText(task), bursar: version })
    const ledger = Budget.Ledger.openRoot({
      id: account,
      name: agent.name,
      grant,
      reserves: agent.reserves,
      window: agent.window,
      wallClockMillis,
      record: log.record,
      nowMillis,
      ...(options.limits === undefined ? {} : { limits: options.limits }),
    })
    if (Result.isFailure(ledger)) {
      log.record({ _tag: "RunEnded", agent: account, reason: "refused_at_open", result: "none" })
      yield* log.flush
      return yield* new Budget.BudgetError({ operation: "open", account, reason: ledger.failure })
    }
    return opened(agent, task, { run: new Run({ log, ledger: ledger.success, watch }), log })
  })

/** A run that is ready to start, or to go on. */
export const opened = <A, R>(
  agent: Agent<A, R>,
  task: string,
  at: { readonly run: Run; readonly log: Observed },
): Opened<A, R> => {
  const { run, log } = at
  const account = agent.name
  return {
    run,
    log,
    toEnd: (restore) =>
      drive(agent, task, { run, account, restore }).pipe(
        Effect.tap((ending) => Effect.sync(() => ending._tag === "Suspended" && standStill(run, account, ending))),
        Effect.ensuring(Effect.suspend(() => (run.ledger.root.state === "Closed" ? endRun(run) : log.flush))),
        Effect.map((ending) => outcomeOf(ending, run)),
      ),
  }
}

/** Writes the last entry of a run whose books are closed; `reason` is that of one whose agent never came to start. */
export const endRun = (run: Run, reason: StopReason = "cancelled"): Effect.Effect<void> =>
  Effect.suspend(() => {
    const agent = run.ledger.root.id
    run.log.record({ _tag: "RunEnded", agent, ...(run.endOf(agent) ?? { reason, result: "none" }) })
    return run.log.flush
  })

const standStill = ({ log, watch }: Run, agent: string, { waitsFor }: Suspended): void => {
  const trace = watch?.trace === undefined ? {} : { trace: watch.trace }
  log.record({ _tag: "RunSuspended", agent, waitsFor, ...trace })
}

/** An outcome from how the loop ended. */
export const outcomeOf = <A>(ending: Ending<A> | Suspended, run: Run): Outcome<A> => {
  const { report } = run
  if (ending._tag === "Suspended") {
    return { _tag: "Suspended", waitsFor: run.questions(ending.waitsFor), report }
  }
  const { reason, detail, short, verification } = ending
  if (reason === "completed") {
    const { rules = [], evidence = [] } = verification ?? {}
    return { _tag: "Completed", answer: ending.answer as A, rules, evidence, report }
  }
  const result = ending.result === "none" ? "none" : "partial"
  return { _tag: "Stopped", reason, detail, short, result, partial: ending.answer, text: ending.text, report }
}

export const read = (input: Budget.Input, account: string): Effect.Effect<Budget.Parsed, Budget.BudgetError> => {
  const parsed = Budget.parse(input)
  return Result.isSuccess(parsed)
    ? Effect.succeed(parsed.success)
    : Effect.fail(new Budget.BudgetError({ operation: "open", account, reason: parsed.failure }))
}
