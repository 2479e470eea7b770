/**
 * A budget around any Effect. {@link open} opens the root of a tree, {@link carve} a child of whatever account is current,
 * {@link spend} holds, runs and settles one call. Each is a scope: it ends with the Effect inside it, on every exit, and
 * what was not used returns.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Budget from "../budget/Budget.ts"
import { Journal, type JournalError, type Log } from "../journal/Journal.ts"
import { Observed } from "../journal/Observed.ts"
import * as RunId from "../journal/RunId.ts"
import * as Names from "../telemetry/Names.ts"
import * as Trace from "../telemetry/Trace.ts"
import * as Watch from "../telemetry/Watch.ts"

/**
 * The account that the current Effect spends from.
 *
 * @category scopes
 * @since 0.1.0
 */
export class CurrentAccount extends Context.Service<
  CurrentAccount,
  Budget.Purse & {
    /** The journal of the run. */
    readonly log: Log
  }
>()("bursar/CurrentAccount") {}

/** Options of {@link open}. `name` stands in paths and traces; `runId` names the journal. */
export interface OpenOptions {
  readonly name?: string
  readonly runId?: string
  readonly limits?: Budget.Limits
}

/**
 * Opens a budget around an Effect: the root of a tree. When the Effect ends, everything below has ended and the account
 * is closed; at the end of its time the Effect is interrupted.
 *
 * **Fails with** `BudgetError` when the budget is not valid, or its time is over; `JournalError` when the journal cannot
 * be opened.
 *
 * **Example** (A cap on any Effect)
 *
 * ```ts
 * import { Budget } from "bursar"
 * import * as Effect from "effect/Effect"
 *
 * const fetchPage = Effect.succeed({ body: "hello", tokens: 12 }).pipe(
 *   Budget.spend({ hold: { inputTokens: 100 }, actual: ({ tokens }) => ({ inputTokens: tokens }) }),
 * )
 * const program = Effect.gen(function* () {
 *   yield* fetchPage
 *   yield* fetchPage.pipe(Budget.carve({ inputTokens: 500 }, { name: "side" }))
 *   const [root] = yield* Budget.snapshot
 *   return root!.left.inputTokens
 * }).pipe(Budget.open({ inputTokens: "1k" }))
 * await Effect.runPromise(program) // => 976
 * ```
 *
 * @category scopes
 * @since 0.1.0
 */
export const open =
  (input: Budget.Input, options: OpenOptions = {}) =>
  <A, E, R>(
    self: Effect.Effect<A, E, R>,
  ): Effect.Effect<A, E | Budget.BudgetError | JournalError, Exclude<R, CurrentAccount>> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.scoped(
        Effect.gen(function* () {
          const name = options.name ?? "root"
          const { grant, wallClockMillis } = yield* read(input, "open", name)
          const journal = yield* Journal
          const nowMillis = yield* Budget.monotonicMillis
          const log = new Observed(yield* journal.open(options.runId ?? (yield* RunId.make)))
          const watch = yield* Watch.make(log)
          const ledger = Budget.Ledger.openRoot({
            id: name,
            name,
            grant,
            wallClockMillis,
            record: log.record,
            nowMillis,
            ...(options.limits === undefined ? {} : { limits: options.limits }),
          })
          if (Result.isFailure(ledger)) {
            yield* log.flush
            return yield* new Budget.BudgetError({ operation: "open", account: name, reason: ledger.failure })
          }
          return yield* within({ ledger: ledger.success, account: name, log, watch }, self, restore)
        }),
      ),
    )

/**
 * How a scope is carved: exactly what is asked or a refusal; with `atLeast`, as much of it as there is.
 *
 * @category scopes
 * @since 0.1.0
 */
export interface CarveOptions {
  readonly name?: string
  readonly atLeast?: Budget.Input
  /** The reserve of the current account that funds it; explore unless stated. */
  readonly reserve?: Budget.Reserve
}

/**
 * Carves a budget for an Effect out of what the current account has left. A dimension that the current account caps and
 * `input` leaves out is a cap of zero.
 *
 * **Fails with** `BudgetError` when it does not fit (every short dimension, and whose account was short), or when its time
 * is over.
 *
 * @category scopes
 * @since 0.1.0
 */
export const carve =
  (input: Budget.Input, options: CarveOptions = {}) =>
  <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E | Budget.BudgetError, R | CurrentAccount> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const current = yield* CurrentAccount
        const name = options.name ?? "scope"
        const { grant, wallClockMillis } = yield* read(input, "carve", current.account)
        const least = options.atLeast === undefined ? undefined : yield* read(options.atLeast, "carve", current.account)
        const id = current.ledger.freshId(current.account, name)
        const carved = current.ledger.carve(current.account, {
          id,
          name,
          ask: least === undefined ? { _tag: "Exactly", grant } : { _tag: "AtMost", grant, floor: least.grant },
          wallClockMillis,
          ...(options.reserve === undefined ? {} : { reserve: options.reserve }),
        })
        if (Result.isFailure(carved)) return yield* Budget.errorOf(current, "carve", carved.failure)
        const { watch } = yield* Trace.CurrentNode
        return yield* within({ ...current, account: id, watch }, self, restore)
      }),
    )

/**
 * What one call costs: the worst case beforehand, and what it really used, from its result.
 *
 * A call that fails or is interrupted is booked at its hold, since nobody knows what it used; `failed` may say better.
 *
 * @category spending
 * @since 0.1.0
 */
export interface SpendOptions<A, E> {
  readonly hold: Budget.Input
  readonly actual: (value: A) => Budget.Input
  readonly failed?: (error: E) => Budget.Input
  readonly reserve?: Budget.Reserve
}

/** Holds, runs and settles; see {@link SpendOptions}. */
const spendCurrent =
  <A, E>(options: SpendOptions<A, E>) =>
  <R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E | Budget.BudgetError, R | CurrentAccount> =>
    Effect.gen(function* () {
      const current = yield* CurrentAccount
      const { grant } = yield* read(options.hold, "hold", current.account)
      const id = current.ledger.freshId(current.account, "spend")
      const spent = yield* Budget.spend(
        current,
        { id, reserve: options.reserve ?? "explore" },
        // What is held is on record before it is spent.
        {
          hold: () => grant,
          use: () => Effect.andThen(current.log.flush, self),
          book: (exit) => bookingOf(exit, options),
        },
      )
      return yield* spent.exit
    })

const bookingOf = <A, E>(exit: Exit.Exit<A, E>, options: SpendOptions<A, E>): Budget.Booking => {
  const error = Exit.isSuccess(exit) ? undefined : exit.cause.reasons.find((reason) => reason._tag === "Fail")
  const told = Exit.isSuccess(exit)
    ? options.actual(exit.value)
    : error === undefined
      ? undefined
      : options.failed?.(error.error)
  const bill = told === undefined ? undefined : Budget.parse(told)
  return bill !== undefined && Result.isSuccess(bill)
    ? { _tag: "Settle", actual: bill.success.grant }
    : { _tag: "Assume" }
}

/**
 * Spends from the current account around an Effect (`spend({ hold, actual })`), or from a given one
 * (`spend(purse, place, attempt)`): holds the worst case before it starts, settles what it used on every exit.
 *
 * **Fails with** `BudgetError` when the hold is refused; the Effect has not started then.
 *
 * @category spending
 * @since 0.1.0
 */
export const spend: {
  <A, E>(
    options: SpendOptions<A, E>,
  ): <R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E | Budget.BudgetError, R | CurrentAccount>
  <A, E, R>(
    purse: Budget.Purse,
    place: { readonly id: string; readonly reserve: Budget.Reserve },
    attempt: Budget.Attempt<A, E, R>,
  ): Effect.Effect<Budget.Spent<A, E>, Budget.BudgetError, R>
} = ((...args: ReadonlyArray<unknown>) =>
  args.length === 1
    ? spendCurrent(args[0] as SpendOptions<unknown, unknown>)
    : Budget.spend(...(args as Parameters<typeof Budget.spend>))) as never

/**
 * The current account as it stands.
 *
 * @category queries
 * @since 0.1.0
 */
export const current: Effect.Effect<Budget.Account, never, CurrentAccount> = Effect.map(
  CurrentAccount,
  ({ ledger, account }) => ledger.account(account),
)

/**
 * The books of the whole tree as they stand, parents before their children.
 *
 * @category queries
 * @since 0.1.0
 */
export const snapshot: Effect.Effect<ReadonlyArray<Budget.Row>, never, CurrentAccount> = Effect.map(
  CurrentAccount,
  ({ ledger }) => Budget.statement(ledger),
)

/** Runs an Effect in an open account and closes it, whatever happens: first what is inside ends, then the account. */
const within = <A, E, R>(
  at: Budget.Purse & { readonly log: Log; readonly watch: Watch.Watch | undefined },
  self: Effect.Effect<A, E, R>,
  restore: <B, E2, R2>(effect: Effect.Effect<B, E2, R2>) => Effect.Effect<B, E2, R2>,
): Effect.Effect<A, E | Budget.BudgetError, Exclude<R, CurrentAccount>> => {
  const account = at.ledger.account(at.account)
  const ended = Effect.gen(function* () {
    const body = inTime(at, Effect.provideService(self, CurrentAccount, at))
    const fiber = yield* Effect.forkChild(Effect.interruptible(body), { startImmediately: true })
    const stop = Effect.suspend(() => {
      at.ledger.freeze(at.account, "cancelled")
      return Fiber.interrupt(fiber)
    })
    const exit = yield* restore(Fiber.await(fiber)).pipe(
      Effect.onInterrupt(() => stop),
      Effect.exit,
    )
    const outcome = Exit.isSuccess(exit) ? exit.value : yield* Fiber.await(fiber)
    at.ledger.sweep(at.account, "the scope has ended")
    yield* at.log.flush
    return yield* outcome
  })
  const subject = { _tag: "Account", account: account.id } as const
  return Trace.span(`bursar.scope ${account.name}`, { of: subject, part: { spans: 1, deep: true } }, () => ended).pipe(
    Effect.provideService(Trace.CurrentNode, { facts: factsOf(at.log.run, account), watch: at.watch }),
  )
}

const factsOf = (run: string, account: Budget.Account): Readonly<Record<string, unknown>> => ({
  [Names.runId]: run,
  [Names.nodeId]: account.id,
  [Names.nodePath]: account.path,
  [Names.nodeDepth]: account.depth,
  [Names.schema]: Names.schemaVersion,
})

/** Interrupts an Effect where the time of its account ends. */
const inTime = <A, E, R>(
  at: Budget.Purse,
  self: Effect.Effect<A, E, R>,
): Effect.Effect<A, E | Budget.BudgetError, R> => {
  const duration = at.ledger.leftMillis(at.account, "explore")
  const late: Budget.Refusal = { _tag: "DeadlinePassed", reserve: "explore", leftMillis: 0, neededMillis: 1 }
  return duration === undefined
    ? self
    : Effect.timeoutOrElse(self, { duration, orElse: () => Effect.fail(Budget.errorOf(at, "run", late)) })
}

const read = (
  input: Budget.Input,
  operation: string,
  account: string,
): Effect.Effect<Budget.Parsed, Budget.BudgetError> => {
  const parsed = Budget.parse(input)
  return Result.isSuccess(parsed)
    ? Effect.succeed(parsed.success)
    : Effect.fail(new Budget.BudgetError({ operation, account, reason: parsed.failure }))
}
