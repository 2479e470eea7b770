import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import { Agent, Budget, type Event, Journal, Policy, Proposal } from "../../src/index.ts"

/** A call that costs what it says. */
const costs = (steps: number, worst = steps) =>
  Effect.succeed(steps).pipe(Budget.spend({ hold: { steps: worst }, actual: (used) => ({ steps: used }) }))

const usedSteps = Effect.map(Budget.snapshot, (rows) => rows.reduce((sum, row) => sum + row.own.steps, 0))

/** Runs in a root of ten steps and answers with the entries of its journal. */
const recorded = <A, E, R>(self: Effect.Effect<A, E, R>, input: Budget.Input = { steps: 10 }) =>
  Effect.gen(function* () {
    const events: Array<Event.Recorded> = []
    const exit = yield* self.pipe(
      Budget.open(input),
      Effect.provideService(Journal.Journal, Journal.toArray(events)),
      Effect.exit,
    )
    return { exit, tags: events.map(({ event }) => event._tag), events }
  })

const reasonOf = (error: unknown): string =>
  error instanceof Budget.BudgetError ? `${error.operation} ${error.reason._tag}` : String(error)

describe("a budget around any Effect", () => {
  it.effect("holds the worst case and books what was used", () =>
    Effect.gen(function* () {
      const { tags } = yield* recorded(
        Effect.gen(function* () {
          yield* costs(3, 8)
          assert.strictEqual(yield* usedSteps, 3)
          yield* costs(2, 7)
          assert.strictEqual(yield* usedSteps, 5)
        }),
      )
      assert.deepStrictEqual(tags, ["Opened", "Held", "Settled", "Held", "Settled", "Closed"])
    }),
  )

  it.effect("refuses what does not fit, before it starts", () =>
    Effect.gen(function* () {
      let started = 0
      const call = Effect.sync(() => ++started).pipe(
        Budget.spend({ hold: { steps: 11 }, actual: () => ({ steps: 1 }) }),
        Effect.flip,
      )
      const { exit } = yield* recorded(Effect.map(call, reasonOf))
      assert.deepStrictEqual(exit, yield* Effect.exit(Effect.succeed("hold Insufficient")))
      assert.strictEqual(started, 0)
    }),
  )

  it.effect("books a failed call at its hold, unless it is known better", () =>
    Effect.gen(function* () {
      const fails = Effect.fail("no")
      const actual = () => ({ steps: 1 })
      yield* recorded(
        Effect.gen(function* () {
          yield* Effect.ignore(Budget.spend({ hold: { steps: 4 }, actual })(fails))
          assert.strictEqual(yield* usedSteps, 4)
          yield* Effect.ignore(Budget.spend({ hold: { steps: 4 }, actual, failed: () => ({ steps: 1 }) })(fails))
          assert.strictEqual(yield* usedSteps, 5)
        }),
      )
    }),
  )

  it.effect("names the field, the value and the remedy of an amount that cannot be read", () =>
    Effect.gen(function* () {
      const error = yield* Effect.void.pipe(Budget.open({ money: "five" }), Effect.flip)
      assert.include(error.message, 'money is "five": give US dollars such as "0.50 USD"')
    }),
  )

  it.effect("ends at the end of its time", () =>
    Effect.gen(function* () {
      const fiber = yield* recorded(Effect.never, { steps: 1, wallClock: "3 minutes" }).pipe(Effect.forkChild)
      yield* TestClock.adjust("3 minutes")
      const { exit, tags } = yield* Fiber.join(fiber)
      assert.match(String(exit), /run refused for root: 0 ms are left/)
      assert.strictEqual(tags.at(-1), "Closed")
    }),
  )
})

describe("a carved scope", () => {
  it.effect("spends its own slice alone, and returns what it did not use", () =>
    Effect.gen(function* () {
      yield* recorded(
        Effect.gen(function* () {
          const refused = yield* costs(5).pipe(Budget.carve({ steps: 4 }), Effect.flip)
          assert.strictEqual(reasonOf(refused), "hold Insufficient")
          yield* costs(2).pipe(Budget.carve({ steps: 6 }, { name: "side" }))
          const rows = yield* Budget.snapshot
          assert.deepStrictEqual(
            rows.map((row) => [row.account, row.state, row.own.steps, row.left.steps]),
            [
              ["root", "Open", 0, 8],
              ["root/scope-1", "Closed", 0, 4],
              ["root/side-1", "Closed", 2, 4],
            ],
          )
        }),
      )
    }),
  )

  it.effect("gets as much as there is where that is allowed, and is refused below its least", () =>
    Effect.gen(function* () {
      const mine = Effect.map(Budget.current, (account) => Budget.granted(account).steps)
      yield* recorded(
        Effect.gen(function* () {
          yield* costs(7)
          assert.strictEqual(yield* mine.pipe(Budget.carve({ steps: 6 }, { atLeast: { steps: 2 } })), 3)
          const refused = yield* mine.pipe(Budget.carve({ steps: 6 }, { atLeast: { steps: 4 } }), Effect.flip)
          assert.strictEqual(reasonOf(refused), "carve Insufficient")
        }),
      )
    }),
  )

  it.effect("may spend nothing of what it did not ask for and its parent caps", () =>
    Effect.gen(function* () {
      const { exit } = yield* recorded(
        costs(1).pipe(Budget.carve({ toolCalls: 1 }), Effect.flip, Effect.map(reasonOf)),
        {
          steps: 10,
          toolCalls: 5,
        },
      )
      assert.deepStrictEqual(exit, yield* Effect.exit(Effect.succeed("hold Insufficient")))
    }),
  )

  it.effect("closes leaves first when the whole is interrupted, and books a call in flight at its hold", () =>
    Effect.gen(function* () {
      const inFlight = yield* Deferred.make<void>()
      const call = Deferred.succeed(inFlight, undefined).pipe(
        Effect.andThen(Effect.never),
        Budget.spend({ hold: { steps: 2 }, actual: () => ({ steps: 1 }) }),
      )
      const events: Array<Event.Recorded> = []
      const fiber = yield* call.pipe(
        Budget.carve({ steps: 5 }),
        Budget.open({ steps: 10 }),
        Effect.provideService(Journal.Journal, Journal.toArray(events)),
        Effect.forkChild,
      )
      yield* Deferred.await(inFlight)
      yield* Fiber.interrupt(fiber)
      const tags = events.map(({ event }) => event._tag)
      assert.deepStrictEqual(tags, ["Opened", "Carved", "Held", "Frozen", "Assumed", "Closed", "Closed"])
    }),
  )

  it.effect("ends what was forked inside, and books what even a detached fiber had in flight", () =>
    Effect.gen(function* () {
      const inFlight = yield* Deferred.make<void>()
      const call = Deferred.succeed(inFlight, undefined).pipe(
        Effect.andThen(Effect.never),
        Budget.spend({ hold: { steps: 2 }, actual: () => ({ steps: 1 }) }),
      )
      const { tags, events } = yield* recorded(
        Effect.gen(function* () {
          yield* Effect.forkDetach(call)
          yield* Deferred.await(inFlight)
        }),
      )
      assert.deepStrictEqual(tags, ["Opened", "Held", "Frozen", "Assumed", "Closed"])
      const closed = events.at(-1)?.event
      assert.deepStrictEqual(closed?._tag === "Closed" ? closed.own : undefined, { steps: 2 })
    }),
  )
})

describe("agents in a budget", () => {
  const echo = Agent.make("echo", { policy: Policy.make((view) => Proposal.finish(view.task)) })

  it.effect("run one after the other on what is left", () =>
    Effect.gen(function* () {
      const { exit } = yield* recorded(
        Effect.gen(function* () {
          const first = yield* Agent.run(echo, "one")
          const second = yield* Agent.run(echo, "two", { ask: { steps: 4 } })
          const rows = yield* Budget.snapshot
          assert.deepStrictEqual([first._tag, second._tag], ["Completed", "Completed"])
          assert.deepStrictEqual(
            rows.map((row) => [row.account, row.granted.steps, row.own.steps]),
            [
              ["root", 10, 0],
              ["root/echo-1", 10, 1],
              ["root/echo-2", 4, 1],
            ],
          )
        }),
      )
      assert.strictEqual(exit._tag, "Success")
    }),
  )

  it.effect("are refused when nothing is left for them", () =>
    Effect.gen(function* () {
      const { exit } = yield* recorded(
        Effect.andThen(costs(10), Agent.run(echo, "late")).pipe(Effect.flip, Effect.map(reasonOf)),
      )
      assert.deepStrictEqual(exit, yield* Effect.exit(Effect.succeed("carve Insufficient")))
    }),
  )
})
