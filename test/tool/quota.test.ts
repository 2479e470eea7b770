import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
// Loaded beforehand: a quota loads it when it is first asked, which takes real time and none of the test's.
import "effect/persistence/RateLimiter"
import { Agent, type Contract, Proposal } from "../../src/index.ts"
import { all, results, run, stopped } from "../support/journalled.ts"
import { attempts, driven, kit, lawful, pass, rowOf, timesOf, use } from "../support/driven.ts"
import { ask, bare, calls, plays } from "../support/scripts.ts"

/** The limiter is shared by the whole process: each test has tools of its own names. */
const echo = ({ key }: { readonly key: string }) => Effect.succeed(key)

const many = (tool: string, count: number) => Array.from({ length: count }, (_, index) => use(tool, `${index}`))

const lives = (name: string, count: number, contract: Contract.Options, wallClock?: "15 seconds") =>
  Effect.gen(function* () {
    const { toolkit, handlers } = kit({ [name]: [{ effect: "read", ...contract }, echo] })
    const policy = plays(calls(...many(name, count)), Proposal.finish("done"))
    const agent = Agent.make("a", { policy, toolkit, ...bare })
    const budget = { steps: 99, toolCalls: 99, ...(wallClock === undefined ? {} : { wallClock }) }
    const ran = yield* run(agent, budget).pipe(Effect.provide(handlers))
    lawful(ran.outcome, ran.events)
    return ran
  })

describe("a quota of two calls in ten seconds", () => {
  const quota = { limit: 2, window: "10 seconds" } as const

  it.effect("lets two go at once, and the third wait", () =>
    Effect.gen(function* () {
      const { outcome, events } = yield* lives("quota_wait", 3, { quota, timeout: "1 minute" })
      const times = timesOf(events, "CallStarted")
      assert.deepStrictEqual(
        [results(events), times.slice(0, 2)],
        [
          ["ok", "ok", "ok"],
          [0, 0],
        ],
      )
      assert.isAbove(times[2]!, 0)
      assert.isAtMost(times[2]!, 10_000)
      assert.strictEqual(rowOf(outcome).own.toolCalls, 3)
    }),
  )

  it.effect("lets two calls through at once, and then one more for each five seconds", () =>
    Effect.gen(function* () {
      const { events } = yield* lives("quota_most", 7, { quota, timeout: "5 minutes" })
      const times = timesOf(events, "CallStarted")
      assert.strictEqual(times.length, 7)
      assert.deepStrictEqual(times, [0, 0, 5_000, 10_000, 15_000, 20_000, 25_000])
    }),
  )

  it.effect("refuses at once a call that would wait longer than its timeout: nothing ran, nothing is booked", () =>
    Effect.gen(function* () {
      const { outcome, events } = yield* lives("quota_late", 3, { quota, timeout: "1 second" })
      assert.deepStrictEqual([results(events).toSorted(), events.at(-1)!.atMillis], [["EQUOTA", "ok", "ok"], 0])
      const refused = all(events, "CallEnded").find((one) => one.code === "EQUOTA")!
      assert.deepStrictEqual([refused.retryable, refused.ran], [true, false])
      assert.deepStrictEqual([attempts(events).length, rowOf(outcome).own.toolCalls], [2, 2])
      assert.strictEqual(all(events, "Voided").length, 1)
    }),
  )

  it.effect("refuses a call that would wait past the deadline", () =>
    Effect.gen(function* () {
      const { outcome, events } = yield* lives("quota_deadline", 9, { quota, timeout: "1 hour" }, "15 seconds")
      assert.isAtMost(events.at(-1)!.atMillis, 15_000)
      assert.isAtMost(Math.max(...timesOf(events, "CallStarted")), 14_999)
      assert.include(results(events), "EQUOTA")
      assert.strictEqual(rowOf(outcome).own.toolCalls, attempts(events).length)
    }),
  )

  it.effect("counts the wait: a call ends by the deadline however long it waited for its turn", () =>
    Effect.gen(function* () {
      const name = "quota_hangs"
      const { toolkit, handlers } = kit({
        [name]: [
          { effect: "read", quota: { limit: 1, window: "8 seconds" }, timeout: "1 hour", retries: 0 },
          ({ key }) => (key === "0" ? Effect.succeed(key) : Effect.never),
        ],
      })
      const policy = plays(calls(use(name, "0")), calls(use(name, "1")))
      const agent = Agent.make("a", { policy, toolkit, ...bare })
      const { outcome, events } = yield* run(agent, { wallClock: "10 seconds" }).pipe(Effect.provide(handlers))
      lawful(outcome, events)
      assert.deepStrictEqual([results(events), stopped(outcome).reason], [["ok", "ETIMEDOUT"], "deadline"])
      assert.strictEqual(events.at(-1)!.atMillis, 10_000)
    }),
  )

  it.effect("is shared by agents that run side by side", () =>
    Effect.gen(function* () {
      const name = "quota_shared"
      const { toolkit, handlers } = kit({ [name]: [{ effect: "read", quota, timeout: "1 minute" }, echo] })
      const child = (who: string) =>
        Agent.asTool(
          Agent.make(who, { policy: plays(calls(...many(name, 2)), Proposal.finish(who)), toolkit, ...bare }),
        )
      const lead = Agent.make("lead", {
        policy: plays(calls(ask("one"), ask("two")), Proposal.finish("done")),
        children: [child("one"), child("two")],
        ...bare,
      })
      const { outcome, events } = yield* run(lead, { steps: 99, toolCalls: 99 }).pipe(Effect.provide(handlers))
      lawful(outcome, events)
      assert.strictEqual(results(events).filter((one) => one === "ok").length, 6)
      const started = events.flatMap(({ event, atMillis }) =>
        event._tag === "CallStarted" && event.tool === name ? [atMillis] : [],
      )
      assert.deepStrictEqual([started.length, started.filter((time) => time === 0).length], [4, 2])
    }),
  )

  it.effect("of one tool is none of another", () =>
    Effect.gen(function* () {
      const tools = { quota_a: [{ effect: "read", quota }, echo], quota_b: [{ effect: "read", quota }, echo] } as const
      const { toolkit, handlers } = kit(tools)
      const policy = plays(calls(...many("quota_a", 2), ...many("quota_b", 2)), Proposal.finish("done"))
      const { events } = yield* run(Agent.make("a", { policy, toolkit, ...bare }), { toolCalls: 9 }).pipe(
        Effect.provide(handlers),
      )
      assert.deepStrictEqual(timesOf(events, "CallStarted"), [0, 0, 0, 0])
    }),
  )

  it.effect("is waited for without a result until the run is cancelled: then the call has one, and is given back", () =>
    Effect.gen(function* () {
      const name = "quota_cancel"
      const { toolkit, handlers } = kit({
        [name]: [{ effect: "read", quota: { limit: 1, window: "1 minute" }, timeout: "1 hour" }, echo],
      })
      const policy = plays(calls(...many(name, 2)), Proposal.finish("done"))
      const agent = Agent.make("a", { policy, toolkit, ...bare })
      yield* driven(agent, { budget: { toolCalls: 9 } }, (handle, events) =>
        Effect.gen(function* () {
          yield* pass(10_000)
          assert.deepStrictEqual(results(events), ["ok"])
          const outcome = yield* handle.cancel
          lawful(outcome, events)
          assert.deepStrictEqual([results(events), rowOf(outcome).own.toolCalls], [["ok", "ECANCELLED"], 1])
          assert.deepStrictEqual(
            all(events, "CallEnded").map((one) => one.ran),
            [true, false],
          )
        }),
      ).pipe(Effect.provide(handlers))
    }),
  )
})
