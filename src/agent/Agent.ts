/**
 * Agents: what users name and run.
 *
 * An agent is defined once ({@link make}), made a tool of another ({@link asTool}), and run with a budget ({@link run}).
 * Its account, fiber, deadline and span open together and close together. How it ended is a value, the `Outcome`.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Budget from "../budget/Budget.ts"
import type { Event, Recorded } from "../event/Event.ts"
import { Journal, type JournalError, tap } from "../journal/Journal.ts"
import { Observed } from "../journal/Observed.ts"
import type { Ending } from "../loop/Loop.ts"
import { CurrentAccount } from "../scope/Scope.ts"
import { CurrentNode } from "../telemetry/Trace.ts"
import type { Agent } from "./Definition.ts"
import { drive } from "./Drive.ts"
import { endRun, open, type Opened, outcomeOf, read, type RunOptions } from "./Open.ts"
import { NoAnswer, type Outcome, type Report } from "./Outcome.ts"
import * as Resume from "./Resume.ts"
import { needsPerson, Run } from "./Run.ts"

export { asTool, make } from "./Definition.ts"
export type { Agent, Child, ChildOptions, Options, Reserves } from "./Definition.ts"
export { judge, Judgement } from "./Judge.ts"
export type { RunOptions } from "./Open.ts"
export { NoAnswer } from "./Outcome.ts"
export type { AgentEnd, Completed, Outcome, Question, Report, Stopped, Suspended } from "./Outcome.ts"
export { ApprovalError, ResumeError } from "./Resume.ts"
export type { Answer } from "./Resume.ts"
export type { NoProgress } from "../loop/Guard.ts"
export type { Settings } from "../loop/Machine.ts"
export { digest } from "../event/Content.ts"
export { sentenceOf } from "../event/StopReason.ts"
export type { ResultKind, StopReason } from "../event/StopReason.ts"

/**
 * What an agent is run with inside `Budget.open` or `Budget.carve`, on an account carved from the current one. Where it
 * would wait for a person it stops as `blocked`: what is around it could not be gone on with.
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
  /** Waits for the end, or for the run to stand still. */
  readonly await: Effect.Effect<Outcome<A>>
  /** Ends the agent and everything below it, and answers with what there is. */
  readonly cancel: Effect.Effect<Outcome<A>>
  /** Ends one agent of the tree, named by its account, and everything below it; its parent goes on. */
  readonly cancelAgent: (account: string) => Effect.Effect<void>
  /**
   * Lets nothing new start in the whole tree, and its time stand still; what is under way comes to its end and is booked.
   *
   * **Fails with** `BudgetError` when the run is over or paused already.
   */
  readonly pause: Effect.Effect<void, Budget.BudgetError>
  /** Goes on after {@link pause}. **Fails with** `BudgetError` when the run is not paused. */
  readonly resume: Effect.Effect<void, Budget.BudgetError>
  /** Changes the caps of the run: raises at once, lowers to no less than what is spoken for. Its time stays as it is. */
  readonly amend: (caps: Omit<Budget.Input, "wallClock">) => Effect.Effect<void, Budget.BudgetError>
  /** Gives an open child, named by its account, more of what its parent has left. */
  readonly topUp: (account: string, amounts: Omit<Budget.Input, "wallClock">) => Effect.Effect<void, Budget.BudgetError>
  /** The books as they stand now. */
  readonly statement: Effect.Effect<ReadonlyArray<Budget.Row>>
  /** What happens from now on, until the run has ended or stands still. */
  readonly events: Stream.Stream<Event>
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
      // Whoever opened the budget listens to the log itself.
      const { watch } = yield* CurrentNode
      const run = new Run({ log: new Observed(log), ledger, watch })
      const ending = yield* drive(agent, task, { run, account, restore })
      const ended = ending._tag === "Suspended" ? (run.endSuspended(account, needsPerson) as Ending<A>) : ending
      return outcomeOf(ended, run)
    }),
  )

/**
 * Runs an agent and answers with its answer.
 *
 * **Fails with** `NoAnswer` when the run stops or stands still, and like {@link run}.
 *
 * @category running
 * @since 0.1.0
 */
export const answer = <A, R>(
  agent: Agent<A, R>,
  task: string,
  options: RunOptions,
): Effect.Effect<A, NoAnswer | Budget.BudgetError | JournalError, R> =>
  Effect.flatMap(run(agent, task, options), (outcome) => {
    switch (outcome._tag) {
      case "Completed":
        return Effect.succeed(outcome.answer)
      case "Stopped": {
        const { reason, detail } = outcome
        return Effect.fail(new NoAnswer({ run: outcome.report.run, reason, detail }))
      }
      case "Suspended": {
        const detail = outcome.waitsFor.map((one) => `${one.tool}: ${one.reason}`).join("; ")
        return Effect.fail(new NoAnswer({ run: outcome.report.run, reason: "suspended", detail }))
      }
    }
  })

/**
 * Runs an agent and yields what happens, as it happens. Ending the stream early cancels the run.
 *
 * **Fails with** the same as {@link run}.
 *
 * @category running
 * @since 0.1.0
 */
export const stream = <A, R>(
  agent: Agent<A, R>,
  task: string,
  options: RunOptions,
): Stream.Stream<Recorded, Budget.BudgetError | JournalError, R> =>
  Stream.callback<Recorded, Budget.BudgetError | JournalError, R>((queue) =>
    Effect.gen(function* () {
      const journal = yield* Journal
      const heard = tap(journal, (recorded) => void Queue.offerUnsafe(queue, recorded))
      const handle = yield* Effect.provideService(spawn(agent, task, options), Journal, heard)
      yield* handle.await
      yield* Queue.end(queue)
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
): Effect.Effect<Handle<A>, Budget.BudgetError | JournalError, R | Scope.Scope> => start(open(agent, task, options))

/**
 * What a run is resumed with. `answers` are for the questions it waits for; those without one it asks again.
 *
 * @category resuming
 * @since 0.1.0
 */
export interface ResumeOptions {
  readonly run: string
  readonly answers?: ReadonlyArray<Resume.Answer>
}

/**
 * Goes on with a run from its journal, in this process or another: after a suspension, or after its process is gone.
 *
 * What was spent stays spent, and what had a result keeps it. A decision that was under way is booked at its hold. An
 * effect that was under way is repeated only if it counts once, by nature or under its key; else its tool is asked what
 * became of it, then a person.
 *
 * **Fails with** `JournalError` (no such run, or somebody is writing it), `ResumeError` (it has ended, belongs to another
 * agent, or its content was dropped), `ApprovalError` (an answer that is forged, unfit or comes twice); nothing has
 * happened then.
 *
 * **Example** (A payment that a person has to agree to)
 *
 * ```ts
 * import { Agent, Contract, Journal, Policy, Proposal } from "bursar"
 * import * as Effect from "effect/Effect"
 * import * as Schema from "effect/Schema"
 * import * as Tool from "effect/ai/Tool"
 * import * as Toolkit from "effect/ai/Toolkit"
 *
 * const Pay = Contract.annotate(
 *   Tool.make("pay", { parameters: Schema.Struct({ cents: Schema.Number }), success: Schema.String }),
 *   { effect: "irreversible", approval: ({ cents }) => cents > 1000 },
 * )
 * const toolkit = Toolkit.make(Pay)
 * const clerk = Agent.make("clerk", {
 *   toolkit,
 *   policy: Policy.make((view) =>
 *     view.turns.length === 0 ? Proposal.call("pay", { cents: 5000 }) : Proposal.finish("paid"),
 *   ),
 * })
 * const program = Effect.gen(function* () {
 *   const first = yield* Agent.run(clerk, "pay the invoice", { budget: { steps: 9, toolCalls: 9 }, runId: "r1" })
 *   const waits = first._tag === "Suspended" ? first.waitsFor : []
 *   const answers = waits.map(({ approval, digest }) => ({ approval, digest, decision: "approved", by: "ada" }) as const)
 *   const last = yield* Agent.resume(clerk, { run: "r1", answers })
 *   return [first._tag, waits[0]?.tool, last._tag]
 * }).pipe(
 *   Effect.provide(toolkit.toLayer({ pay: () => Effect.succeed("receipt 1") })),
 *   Effect.provideService(Journal.Journal, Journal.toArray([])),
 * )
 * await Effect.runPromise(program) // => ["Suspended", "pay", "Completed"]
 * ```
 *
 * @category resuming
 * @since 0.1.0
 */
export const resume = <A, R>(agent: Agent<A, R>, options: ResumeOptions): Effect.Effect<Outcome<A>, ResumeFailure, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.scoped(Effect.flatMap(reopen(agent, options), (opened) => opened.toEnd(restore))),
  )

/** Why a run does not go on. */
export type ResumeFailure = JournalError | Resume.ResumeError | Resume.ApprovalError

/**
 * Like {@link resume}, in the background of a scope.
 *
 * @category resuming
 * @since 0.1.0
 */
export const spawnResumed = <A, R>(
  agent: Agent<A, R>,
  options: ResumeOptions,
): Effect.Effect<Handle<A>, ResumeFailure, R | Scope.Scope> => start(reopen(agent, options))

const reopen = <A, R>(agent: Agent<A, R>, { run: runId, answers = [] }: ResumeOptions) =>
  Resume.reopen(agent, runId, answers)

/**
 * Ends a run that nobody goes on with, from its journal: what was under way is booked, the accounts close, and the journal
 * says `cancelled`, or `owner_lost` where its process is gone.
 *
 * **Fails with** `JournalError`, `ResumeError` when it has ended already.
 *
 * @category resuming
 * @since 0.1.0
 */
export const abandon = (
  runId: string,
  reason: "cancelled" | "owner_lost" = "owner_lost",
): Effect.Effect<Report, JournalError | Resume.ResumeError> =>
  Effect.uninterruptible(Effect.scoped(Effect.map(Resume.abandon(runId, reason), ({ report }) => report)))

// --- handles

/** Nothing may come between the open account and the fiber that will close it. */
const start = <A, R, E>(opening: Effect.Effect<Opened<A, R>, E, Scope.Scope>) =>
  Effect.uninterruptible(
    Effect.gen(function* () {
      const opened = yield* opening
      const toEnd = opened.toEnd(Effect.interruptible)
      const fiber = yield* Effect.forkScoped(toEnd, { startImmediately: true, uninterruptible: true })
      return handleOf(opened, fiber)
    }),
  )

const handleOf = <A, R>({ run, log }: Opened<A, R>, fiber: Fiber.Fiber<Outcome<A>>): Handle<A> => {
  const { ledger } = run
  const root = ledger.root.id
  const outcome = Fiber.join(fiber)
  return {
    run: run.id,
    await: outcome,
    cancel: Effect.andThen(
      run.cancel(root),
      Effect.flatMap(outcome, (ended) => (run.isSuspended(root) ? endStill<A>(run) : Effect.succeed(ended))),
    ),
    cancelAgent: (account) => run.cancel(account),
    pause: asked(run, { operation: "pause", account: root }, () => ledger.pause(root, "paused by the caller")),
    resume: Effect.andThen(
      asked(run, { operation: "resume", account: root }, () => ledger.resume(root)),
      Effect.sync(() => {
        run.standStill()
        run.wake()
      }),
    ),
    amend: (caps) =>
      Effect.flatMap(read(caps, root), ({ grant }) =>
        asked(run, { operation: "amend", account: root }, () => ledger.amend(grant)),
      ),
    topUp: (account, amounts) =>
      Effect.flatMap(read(amounts, account), ({ grant }) =>
        asked(run, { operation: "topUp", account }, () => ledger.topUp(account, grant)),
      ),
    statement: Effect.sync(() => Budget.statement(ledger)),
    events: Stream.callback<Event>((queue) =>
      Effect.gen(function* () {
        const listen = () => log.listen((event) => void Queue.offerUnsafe(queue, event))
        yield* Effect.acquireRelease(Effect.sync(listen), (stop) => Effect.sync(stop))
        yield* Fiber.await(fiber)
        yield* Queue.end(queue)
      }),
    ),
  }
}

/** Ends a run that waits for people and will not go on. */
const endStill = <A>(run: Run): Effect.Effect<Outcome<A>> =>
  Effect.suspend(() => {
    const ending = run.endSuspended(run.ledger.root.id) as Ending<A>
    return Effect.as(endRun(run), outcomeOf(ending, run))
  })

/**
 * An operation of the books from outside. A run that has ended has written its last entry, and one that waits for people
 * is gone on with from its journal: nothing is added to either.
 */
const asked = (
  run: Run,
  at: { readonly operation: string; readonly account: string },
  apply: () => Result.Result<unknown, Budget.Refusal>,
): Effect.Effect<void, Budget.BudgetError> =>
  Effect.suspend(() => {
    const { ledger } = run
    const { id, path, state, cause } = ledger.root
    const over = state === "Closed" ? "closed" : run.isSuspended(id) ? "suspended" : undefined
    const applied = over === undefined ? apply() : Result.fail<Budget.Refusal>(notOpen(path, over, cause))
    if (Result.isSuccess(applied)) return Effect.void
    return Effect.fail(Budget.errorOf({ ledger, account: at.account }, at.operation, applied.failure))
  })

const notOpen = (account: string, state: string, cause: string): Budget.Refusal => ({
  _tag: "NotOpen",
  account,
  state,
  cause,
})
