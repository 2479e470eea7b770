/**
 * The laws of a budget over your own agent, one line each: the agent runs many times, each time under other caps or
 * interrupted somewhere else, and the first run that breaks the law fails with its number, by which it is run again alone.
 *
 * Nothing is random but what a seed says: the same agent, options and seed are the same runs, as far as the agent and its
 * services are the same. Provide its model, handlers and clock as in any other test.
 */
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { type Agent, type Outcome, type RunOptions, spawn } from "../agent/Agent.ts"
import * as Budget from "../budget/Budget.ts"
import type { Recorded } from "../event/Event.ts"
import * as Audit from "../journal/Audit.ts"
import * as Journal from "../journal/Journal.ts"

/**
 * What the agent is given, and how often it runs.
 *
 * `budget` is the most that a run gets: each run gets a random part of every cap in it. `seed` (`"law"`) and the number of
 * a run decide which; `runs` (25) are counted from `first` (0).
 *
 * @category options
 * @since 0.1.0
 */
export interface Options {
  readonly task: string
  readonly budget: RunOptions["budget"]
  readonly runs?: number
  readonly first?: number
  readonly seed?: string
}

/**
 * A run that broke a law. Run it again alone with `first: run, runs: 1`.
 *
 * @category errors
 * @since 0.1.0
 */
export class LawBroken extends Schema.TaggedError<LawBroken>()("LawBroken", {
  law: Schema.String,
  run: Schema.Finite,
  complaints: Schema.Array(Schema.String),
}) {
  override get message(): string {
    return `${this.law}, run ${this.run}: ${this.complaints.join("; ")}`
  }
}

/**
 * Nothing is spent above a cap, and the books of every run are sound: each hold resolved, each call with one result, each
 * account closed.
 *
 * **Fails with** `LawBroken`, and with `InvalidBudget` what of the budget is no budget.
 *
 * **Example** (An agent of two steps)
 *
 * ```ts
 * import { Agent, Policy, Proposal } from "bursar"
 * import { Law } from "bursar/testing"
 * import * as Effect from "effect/Effect"
 *
 * const agent = Agent.make("two", {
 *   policy: Policy.make((view) => (view.step < 2 ? Proposal.invalid("not yet") : Proposal.finish("done"))),
 * })
 * const options = { task: "go", budget: { steps: 5, toolCalls: 5 } }
 * await Effect.runPromise(Law.neverExceeds(agent, options)) // => undefined
 * ```
 *
 * @category laws
 * @since 0.1.0
 */
export const neverExceeds = <A, R>(agent: Agent<A, R>, options: Options): Effect.Effect<void, Broken, R> =>
  forAll("never exceeds its budget", options, (budget, name) =>
    Effect.map(run(agent, { ...options, budget, name }), spent),
  )

/**
 * Every run that could be opened ends with an answer, whole or partial, however little it had.
 *
 * **Fails with** `LawBroken`, naming the reason of a run that ended with nothing.
 *
 * @category laws
 * @since 0.1.0
 */
export const alwaysAnswers = <A, R>(agent: Agent<A, R>, options: Options): Effect.Effect<void, Broken, R> =>
  forAll("always answers", options, (budget, name) =>
    Effect.map(run(agent, { ...options, budget, name }), ({ outcome }) =>
      outcome._tag === "Stopped" && outcome.result === "none"
        ? [`it ended without an answer: ${outcome.reason} (${outcome.detail})`]
        : [],
    ),
  )

/**
 * Cancelled after any of its events, a run ends with a reason, nothing is left open, and nothing is above a cap.
 *
 * **Fails with** `LawBroken`.
 *
 * @category laws
 * @since 0.1.0
 */
export const survivesInterruption = <A, R>(agent: Agent<A, R>, options: Options): Effect.Effect<void, Broken, R> =>
  Effect.gen(function* () {
    const whole = yield* run(agent, { ...options, name: "law-whole" })
    yield* forAll("survives interruption", options, (budget, name) =>
      Effect.gen(function* () {
        const after = yield* Random.nextIntBetween(1, Math.max(2, whole.events.length))
        return spent(yield* run(agent, { ...options, budget, name, cancelAfter: after }))
      }),
    )
  })

/** How a law fails: by a run that broke it, or because there is no such budget or journal. */
export type Broken = LawBroken | Budget.BudgetError | Journal.JournalError

// --- running

/** A run, with what it was given and everything that happened. */
interface Ran {
  readonly outcome: Outcome<unknown>
  readonly events: ReadonlyArray<Recorded>
}

const run = <A, R>(
  agent: Agent<A, R>,
  of: {
    readonly task: string
    readonly budget: RunOptions["budget"]
    readonly name: string
    readonly cancelAfter?: number
  },
): Effect.Effect<Ran, Budget.BudgetError | Journal.JournalError, R> =>
  Effect.scoped(
    Effect.gen(function* () {
      const events: Array<Recorded> = []
      let cancel = () => {}
      const journal = Journal.tap(Journal.toArray(events), () => {
        if (events.length === of.cancelAfter) cancel()
      })
      const handle = yield* Effect.provideService(
        spawn(agent, of.task, { budget: of.budget, runId: of.name }),
        Journal.Journal,
        journal,
      )
      cancel = () => void Effect.runFork(handle.cancel)
      return { outcome: yield* handle.await, events }
    }),
  )

const forAll = <R>(
  law: string,
  { budget, first = 0, runs = 25, seed = "law" }: Options,
  check: (
    budget: RunOptions["budget"],
    name: string,
  ) => Effect.Effect<ReadonlyArray<string>, Budget.BudgetError | Journal.JournalError, R>,
): Effect.Effect<void, Broken, R> =>
  Effect.gen(function* () {
    for (let number = first; number < first + runs; number++) {
      const once = Effect.flatMap(partOf(budget), (part) => check(part, `law-${number}`))
      // A budget too small for one answer is refused before anything is spent: that keeps every law.
      const checked = yield* Effect.result(Random.withSeed(once, `${seed}/${number}`))
      if (Result.isFailure(checked) && !isRefusal(checked.failure)) return yield* checked.failure
      const complaints = Result.isSuccess(checked) ? checked.success : []
      if (complaints.length > 0) return yield* new LawBroken({ law, run: number, complaints })
    }
  })

const isRefusal = (error: Budget.BudgetError | Journal.JournalError): boolean =>
  error._tag === "BudgetError" && error.reason._tag === "Insufficient"

/** A random part of every cap. */
const partOf = (budget: RunOptions["budget"]): Effect.Effect<RunOptions["budget"], Budget.BudgetError> =>
  Effect.gen(function* () {
    const parsed = Budget.parse(budget)
    if (Result.isFailure(parsed)) {
      return yield* new Budget.BudgetError({ operation: "open", account: "root", reason: parsed.failure })
    }
    const { money, ...counters } = parsed.success.grant
    const parts: { [D in Budget.Dimension]?: number } = {}
    for (const d of Budget.dimensions) {
      const cap = d === "money" ? money : counters[d]
      if (cap !== undefined) parts[d] = Math.floor(cap * (yield* Random.next))
    }
    const { money: part, ...rest } = parts
    const time = budget.wallClock === undefined ? {} : { wallClock: budget.wallClock }
    return { ...rest, ...(part === undefined ? {} : { money: Budget.formatMoney(part) }), ...time }
  })

// --- judging

/** What is wrong with the books of a run. Bills that nothing covers are debt, and spent all the same. */
const spent = ({ events, outcome }: Ran): ReadonlyArray<string> => {
  const root = outcome.report.accounts[0]!
  const all = Budget.add(Budget.add(root.own, root.children), root.debt)
  const above = Budget.dimensions.filter((d) => root.capped[d] && all[d] > root.granted[d])
  const unsound = outcome._tag === "Suspended" ? [] : Audit.defects(Audit.audit(events))
  return [
    ...above.map((d) => `${d}: ${all[d]} spent of ${root.granted[d]}`),
    ...Budget.imbalances(outcome.report.accounts),
    ...unsound.map(({ kind, what }) => `${kind}: ${what}`),
  ]
}
