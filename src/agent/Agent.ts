/**
 * Agents: what users name and run.
 *
 * An agent is defined once ({@link make}), made a tool of another ({@link asTool}), and run with a budget ({@link run}).
 * Its account, fiber, deadline and span open together and close together. How it ended is a value, the `Outcome`.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Budget from "../budget/Budget.ts"
import * as Content from "../event/Content.ts"
import { Journal, type JournalError } from "../journal/Journal.ts"
import * as RunId from "../journal/RunId.ts"
import type { Ending } from "../loop/Loop.ts"
import { CurrentAccount } from "../scope/Scope.ts"
import type { Agent } from "./Definition.ts"
import { drive } from "./Drive.ts"
import type { Outcome } from "./Outcome.ts"
import { Run } from "./Run.ts"
import type { Restore } from "../tool/Executor.ts"

export { asTool, make } from "./Definition.ts"
export type { Agent, Child, ChildOptions, Options, Reserves } from "./Definition.ts"
export type { AgentEnd, Completed, Outcome, Report, Stopped } from "./Outcome.ts"
export type { NoProgress } from "../loop/Guard.ts"
export type { Settings } from "../loop/Machine.ts"
export { digest } from "../event/Content.ts"
export { sentenceOf } from "../event/StopReason.ts"
export type { ResultKind, StopReason } from "../event/StopReason.ts"

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

/**
 * What an agent is run with inside `Budget.open` or `Budget.carve`, on an account carved from the current one.
 *
 * @category running
 * @since 0.1.0
 */
export interface InsideOptions {
  readonly budget?: undefined
  readonly ask?: Budget.Input
  readonly atLeast?: Budget.Input
}

/**
 * A running agent.
 *
 * @category running
 * @since 0.1.0
 */
export interface Handle<out A> {
  readonly run: string
  /** Waits for the end. */
  readonly await: Effect.Effect<Outcome<A>>
  /** Ends the agent and everything below it, and answers with what there is. */
  readonly cancel: Effect.Effect<Outcome<A>>
  /** Ends one agent of the tree, named by its account, and everything below it; its parent goes on. */
  readonly cancelAgent: (account: string) => Effect.Effect<void>
  /** Changes the caps of the run: raises at once, lowers to no less than what is spoken for. */
  readonly amend: (caps: Budget.Input) => Effect.Effect<void, Budget.BudgetError>
  /** The books as they stand now. */
  readonly statement: Effect.Effect<ReadonlyArray<Budget.Row>>
}

/**
 * Runs an agent and answers with how it ended. With a `budget` it is the root of a tree; without, it spends from the
 * current account (see `Budget.open`). A limit that was hit is an outcome, not a failure.
 *
 * Interrupting it (a timeout around it, a race it lost) ends everything below it; then there is no value, but the journal
 * is complete and every account is closed.
 *
 * **Fails with** `BudgetError` when the budget is not valid or does not cover one answer, `JournalError` when the journal
 * cannot be opened; nothing was spent then.
 *
 * @category running
 * @since 0.1.0
 */
export const run: {
  <A, R>(
    agent: Agent<A, R>,
    task: string,
    options: RunOptions,
  ): Effect.Effect<Outcome<A>, Budget.BudgetError | JournalError, R>
  <A, R>(
    agent: Agent<A, R>,
    task: string,
    options?: InsideOptions,
  ): Effect.Effect<Outcome<A>, Budget.BudgetError, R | CurrentAccount>
} = <A, R>(agent: Agent<A, R>, task: string, options?: RunOptions | InsideOptions) =>
  (options?.budget === undefined
    ? inside(agent, task, options ?? {})
    : Effect.uninterruptibleMask((restore) =>
        Effect.scoped(Effect.flatMap(open(agent, task, options), (opened) => opened.toEnd(restore))),
      )) as never

/**
 * Runs an agent on an account carved from the current one: as much of `ask` (of everything, unless given) as explore has
 * left, but not less than `atLeast`.
 */
const inside = <A, R>(
  agent: Agent<A, R>,
  task: string,
  options: InsideOptions,
): Effect.Effect<Outcome<A>, Budget.BudgetError, R | CurrentAccount> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const { ledger, account: parent, log } = yield* CurrentAccount
      const ask = options.ask === undefined ? undefined : yield* read(options.ask, parent)
      const least = options.atLeast === undefined ? undefined : yield* read(options.atLeast, parent)
      const account = ledger.freshId(parent, agent.name)
      const carved = ledger.carve(parent, {
        id: account,
        name: agent.name,
        reserves: agent.reserves,
        window: agent.window,
        wallClockMillis: ask?.wallClockMillis,
        ask: { _tag: "AtMost", grant: ask?.grant ?? ledger.reachable(parent, "explore"), floor: least?.grant ?? {} },
      })
      if (Result.isFailure(carved)) {
        return yield* Budget.errorOf({ ledger, account: parent }, "carve", carved.failure)
      }
      const run = new Run({ log, ledger })
      return outcomeOf(yield* drive(agent, task, { run, account, restore }), run)
    }),
  )

/**
 * Starts an agent as the root of a tree in the background of a scope; closing the scope cancels it.
 *
 * **Fails with** `BudgetError`, like {@link run}.
 *
 * @category running
 * @since 0.1.0
 */
export const spawn = <A, R>(
  agent: Agent<A, R>,
  task: string,
  options: RunOptions,
): Effect.Effect<Handle<A>, Budget.BudgetError | JournalError, R | Scope.Scope> =>
  Effect.gen(function* () {
    const { opened, fiber } = yield* start(agent, task, options)
    const { ledger } = opened.run
    const outcome = Fiber.join(fiber)
    return {
      run: opened.run.id,
      await: outcome,
      cancel: Effect.andThen(opened.run.cancel(agent.name), outcome),
      cancelAgent: (account) => opened.run.cancel(account),
      amend: (caps) => Effect.flatMap(read(caps, agent.name), ({ grant }) => amend(ledger, grant)),
      statement: Effect.sync(() => Budget.statement(ledger)),
    }
  })

/** A run that has ended has written its last entry: nothing is added, not even a refusal. */
const amend = (ledger: Budget.Ledger, caps: Budget.Grant): Effect.Effect<void, Budget.BudgetError> =>
  Effect.suspend(() => {
    const { id, path, state, cause } = ledger.root
    const amended =
      state === "Closed"
        ? Result.fail<Budget.Refusal>({ _tag: "NotOpen", account: path, state: "closed", cause })
        : ledger.amend(caps)
    const failed = (reason: Budget.Refusal) => Effect.fail(Budget.errorOf({ ledger, account: id }, "amend", reason))
    return Result.isFailure(amended) ? failed(amended.failure) : Effect.void
  })

/** Nothing may come between the open account and the fiber that will close it. */
const start = <A, R>(agent: Agent<A, R>, task: string, options: RunOptions) =>
  Effect.uninterruptible(
    Effect.gen(function* () {
      const opened = yield* open(agent, task, options)
      const toEnd = opened.toEnd(Effect.interruptible)
      const fiber = yield* Effect.forkScoped(toEnd, { startImmediately: true, uninterruptible: true })
      return { opened, fiber }
    }),
  )

interface Opened<A, R> {
  readonly run: Run
  /** Runs to the end and closes the account, on every exit; it has to be started before any interruption. */
  readonly toEnd: (restore: Restore) => Effect.Effect<Outcome<A>, never, R>
}

const open = <A, R>(
  agent: Agent<A, R>,
  task: string,
  options: RunOptions,
): Effect.Effect<Opened<A, R>, Budget.BudgetError | JournalError, Scope.Scope> =>
  Effect.gen(function* () {
    const { grant, wallClockMillis } = yield* read(options.budget, agent.name)
    const journal = yield* Journal
    const nowMillis = yield* Budget.monotonicMillis
    const log = yield* journal.open(options.runId ?? (yield* RunId.make))
    const account = agent.name
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
    const run = new Run({ log, ledger: ledger.success })
    const toEnd = (restore: Restore) =>
      drive(agent, task, { run, account, restore }).pipe(
        Effect.ensuring(
          Effect.suspend(() => {
            const { reason, result } = run.endOf(account)
            log.record({ _tag: "RunEnded", agent: account, reason, result })
            return log.flush
          }),
        ),
        Effect.map((ending) => outcomeOf(ending, run)),
      )
    return { run, toEnd }
  })

/** The version that stands in journals. */
const version = "0.1.0"

const read = (input: Budget.Input, account: string): Effect.Effect<Budget.Parsed, Budget.BudgetError> => {
  const parsed = Budget.parse(input)
  return Result.isSuccess(parsed)
    ? Effect.succeed(parsed.success)
    : Effect.fail(new Budget.BudgetError({ operation: "open", account, reason: parsed.failure }))
}

const outcomeOf = <A>(ending: Ending<A>, run: Run): Outcome<A> => {
  const { report } = run
  if (ending.reason === "completed") {
    return { _tag: "Completed", answer: ending.answer as A, rules: ending.verification?.rules ?? [], report }
  }
  return {
    _tag: "Stopped",
    reason: ending.reason,
    detail: ending.detail,
    short: ending.short,
    result: ending.result === "none" ? "none" : "partial",
    partial: ending.answer,
    text: ending.text,
    report,
  }
}
