import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import { Agent, type Contract, type Event, Proposal, ToolError } from "../../src/index.ts"
import { all, results, run, stopped } from "../support/journalled.ts"
import { attempts, driven, type Handle, kit, lawful, pass, rowOf, use } from "../support/driven.ts"
import { bare, calls, plays } from "../support/scripts.ts"

const once = plays(calls(use("slow")), Proposal.finish("done"))

const quick: Contract.Options = { effect: "read", timeout: "200 millis", retries: 0 }

/** Runs one call of a tool under 0.2 s. */
const lives = (handle: Handle, contract: Contract.Options = quick) =>
  Effect.gen(function* () {
    const { toolkit, handlers } = kit({ slow: [contract, handle] })
    const agent = Agent.make("a", { policy: once, toolkit, ...bare })
    const ran = yield* run(agent, { steps: 9, toolCalls: 9 }).pipe(Effect.provide(handlers))
    lawful(ran.outcome, ran.events)
    return ran
  })

const endedAt = (events: ReadonlyArray<Event.Recorded>): number =>
  events.find(({ event }) => event._tag === "CallEnded")!.atMillis

describe("a call that is out of time", () => {
  it.effect("has ended after its 0.2 s, though its tool takes 5, and is booked since nobody knows", () =>
    Effect.gen(function* () {
      let done = false
      const { outcome, events } = yield* lives(() =>
        Effect.andThen(
          Effect.sleep("5 seconds"),
          Effect.sync(() => ((done = true), "late")),
        ),
      )
      assert.strictEqual(outcome._tag, "Completed")
      assert.deepStrictEqual([results(events), endedAt(events), done], [["ETIMEDOUT"], 200, false])
      const [ended] = all(events, "CallEnded")
      assert.deepInclude(ended, { retryable: true, ran: true, stateChanged: false, message: "no result within 200 ms" })
      assert.deepStrictEqual([all(events, "Assumed").length, rowOf(outcome).own.toolCalls], [1, 1])
    }),
  )

  it.effect("ends just in time at 199 ms, and not at 200", () =>
    Effect.gen(function* () {
      const after =
        (millis: number): Handle =>
        ({ key }) =>
          Effect.as(Effect.sleep(millis), key)
      assert.deepStrictEqual(results((yield* lives(after(199))).events), ["ok"])
      const { events } = yield* lives(after(201))
      assert.deepStrictEqual(results(events), ["ETIMEDOUT"])
    }),
  )

  it.effect("is tried again as often as a read may be, each time under its own timeout", () =>
    Effect.gen(function* () {
      const { events } = yield* lives(() => Effect.never, { effect: "read", timeout: "1 second", backoff: 0 })
      assert.deepStrictEqual([attempts(events).length, results(events)], [4, ["ETIMEDOUT"]])
      assert.strictEqual(endedAt(events), 4_000)
      assert.strictEqual(all(events, "Assumed").length, 4)
    }),
  )

  it.effect("is told to the finalizer of its callback, which is done before the run goes on", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const { events } = yield* lives(() =>
        Effect.callback<string>(() =>
          Effect.gen(function* () {
            log.push("stopping")
            yield* Effect.sleep("3 seconds")
            log.push("stopped")
          }),
        ),
      )
      assert.deepStrictEqual([results(events), log], [["ETIMEDOUT"], ["stopping", "stopped"]])
      assert.strictEqual(endedAt(events), 3_200)
    }),
  )

  it.effect("is told to a promise by its signal", () =>
    Effect.gen(function* () {
      const aborted: Array<boolean> = []
      const { events } = yield* lives(() =>
        Effect.tryPromise({
          try: (signal) =>
            new Promise<string>((_, reject) =>
              signal.addEventListener("abort", () => {
                aborted.push(signal.aborted)
                reject(new Error("aborted"))
              }),
            ),
          catch: () => ToolError.mistake("EABORTED", "the signal came"),
        }),
      )
      assert.deepStrictEqual([results(events), aborted, endedAt(events)], [["ETIMEDOUT"], [true], 200])
    }),
  )
})

describe("work that ignores its interruption", () => {
  it.effect("of a promise does not keep its call: what it brings later is nowhere", () =>
    Effect.gen(function* () {
      const { promise, resolve } = Promise.withResolvers<string>()
      const { toolkit, handlers } = kit({
        slow: [
          quick,
          () => Effect.tryPromise({ try: () => promise, catch: () => ToolError.mistake("EFAILED", "rejected") }),
        ],
      })
      const agent = Agent.make("a", {
        policy: plays(calls(use("slow")), (view) =>
          Proposal.finish(JSON.stringify(view.turns[0]!.observations[0]!.data ?? null)),
        ),
        toolkit,
        ...bare,
      })
      yield* driven(agent, { budget: { steps: 9, toolCalls: 9 } }, (handle, events) =>
        Effect.gen(function* () {
          yield* pass(60_000)
          const outcome = yield* handle.await
          resolve("the late secret")
          yield* Effect.promise(() => promise)
          yield* pass(60_000)
          lawful(outcome, events)
          assert.deepStrictEqual(results(events), ["ETIMEDOUT"])
          assert.isAtMost(endedAt(events), 10_200)
          assert.notInclude(JSON.stringify([events, outcome]), "the late secret")
        }),
      ).pipe(Effect.provide(handlers))
    }),
  )

  it.effect("because it cannot be interrupted has ten seconds, then it is left behind", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const handle: Handle = () =>
        Effect.uninterruptible(
          Effect.gen(function* () {
            yield* Effect.sleep("1 hour")
            log.push("written")
            return "the late secret"
          }),
        )
      const { toolkit, handlers } = kit({ slow: [{ ...quick, effect: "write", whenUncertain: "tell" }, handle] })
      const agent = Agent.make("a", { policy: once, toolkit, ...bare })
      yield* driven(agent, { budget: { steps: 9, toolCalls: 9 } }, (handle, events) =>
        Effect.gen(function* () {
          yield* pass(20_000)
          const outcome = yield* handle.await
          lawful(outcome, events)
          assert.deepStrictEqual([results(events), endedAt(events), log], [["ETIMEDOUT"], 10_200, []])
          const written = events.length
          yield* pass(7_200_000)
          assert.deepStrictEqual([log, events.length], [["written"], written])
          assert.notInclude(JSON.stringify([events, outcome]), "the late secret")
        }),
      ).pipe(Effect.provide(handlers))
    }),
  )

  it.effect("and ends within the grace brings nothing either: the time was over", () =>
    Effect.gen(function* () {
      const { events } = yield* lives(() => Effect.uninterruptible(Effect.as(Effect.sleep("5 seconds"), "late")))
      assert.deepStrictEqual([results(events), endedAt(events)], [["ETIMEDOUT"], 5_000])
    }),
  )
})

describe("a call that runs while its agent is cancelled", () => {
  it.effect("is interrupted: one result, cancelled, and its finalizer has run", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const { toolkit, handlers } = kit({
        slow: [
          { effect: "read" },
          () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => log.push("stopped"))),
        ],
      })
      const agent = Agent.make("a", { policy: once, toolkit, ...bare })
      yield* driven(agent, { budget: { steps: 9, toolCalls: 9 } }, (handle, events) =>
        Effect.gen(function* () {
          yield* pass(1_000)
          const outcome = yield* handle.cancel
          lawful(outcome, events)
          assert.deepStrictEqual(
            [stopped(outcome).reason, results(events), log],
            ["cancelled", ["ECANCELLED"], ["stopped"]],
          )
          assert.deepStrictEqual([endedAt(events), all(events, "Assumed").length], [1_000, 1])
        }),
      ).pipe(Effect.provide(handlers))
    }),
  )

  it.effect("and cannot be interrupted is left behind after ten seconds; an effect is uncertain then", () =>
    Effect.gen(function* () {
      const { toolkit, handlers } = kit({
        slow: [{ effect: "write" }, () => Effect.uninterruptible(Effect.as(Effect.sleep("1 hour"), "late"))],
      })
      const agent = Agent.make("a", { policy: once, toolkit, ...bare })
      yield* driven(agent, { budget: { steps: 9, toolCalls: 9 } }, (handle, events) =>
        Effect.gen(function* () {
          yield* pass(1_000)
          const over = yield* Deferred.make<Agent.Outcome<string>>()
          yield* Effect.forkChild(Effect.flatMap(handle.cancel, (outcome) => Deferred.succeed(over, outcome)))
          yield* pass(9_999)
          assert.isFalse(yield* Deferred.isDone(over))
          yield* pass(1)
          const outcome = yield* Deferred.await(over)
          lawful(outcome, events)
          assert.deepStrictEqual([results(events), endedAt(events)], [["ECANCELLED"], 11_000])
          assert.isDefined(all(events, "CallEnded")[0]!.uncertain)
          yield* TestClock.adjust("2 hours")
          assert.strictEqual(results(events).length, 1)
        }),
      ).pipe(Effect.provide(handlers))
    }),
  )
})
