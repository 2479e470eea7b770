import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Agent, type Budget, Contract, type Event, type Policy, Proposal, ToolError } from "../../src/index.ts"
import { all, results, run, stopped } from "../support/journalled.ts"
import { attempts, driven, type Handle, kit, lawful, pass, resumed, rowOf, timesOf, use } from "../support/driven.ts"
import { bare, calls, plays } from "../support/scripts.ts"

const busy = ToolError.transient("EBUSY", "try again")

/** Fails so often, then succeeds. */
const failing = (times: number, error: ToolError.ToolError = busy): Handle => {
  let left = times
  return ({ key }) => Effect.suspend(() => (left-- > 0 ? Effect.fail(error) : Effect.succeed(key)))
}

type Options = Partial<Pick<Parameters<typeof Agent.make>[1] & object, "reserves" | "settings">>

const lives = (
  tools: Parameters<typeof kit>[0],
  policy: Policy.Policy,
  budget: Budget.Input,
  options: Options = bare,
) =>
  Effect.gen(function* () {
    const { toolkit, handlers } = kit(tools)
    const ran = yield* run(Agent.make("a", { policy, toolkit, ...options }), budget).pipe(Effect.provide(handlers))
    lawful(ran.outcome, ran.events)
    return ran
  })

/** The waits between the attempts of the only call. */
const waits = (events: ReadonlyArray<Event.Recorded>): ReadonlyArray<number> => {
  const times = timesOf(events, "CallStarted")
  return times.slice(1).map((time, index) => time - times[index]!)
}

const isBetween = (value: number, least: number, most: number) => {
  assert.isAtLeast(value, least)
  assert.isAtMost(value, most)
}

const once = (tool: string) => plays(calls(use(tool)), Proposal.finish("done"))

describe("a transient failure of a read", () => {
  it.effect("is tried again by the host: from the retry reserve, three times, each wait twice as long", () =>
    Effect.gen(function* () {
      const reserves = { retry: { toolCalls: 3, ticks: 3 } }
      const { outcome, events } = yield* lives(
        { look: [{ effect: "read" }, failing(3)] },
        once("look"),
        { steps: 9, toolCalls: 9, ticks: 9 },
        { reserves },
      )
      assert.strictEqual(outcome._tag, "Completed")
      assert.deepStrictEqual(attempts(events), ["look 1", "look 2", "look 3", "look 4"])
      assert.deepStrictEqual(
        all(events, "CallFailed").map((one) => [one.attempt, one.code, one.message]),
        [1, 2, 3].map((attempt) => [attempt, "EBUSY", "try again"]),
      )
      assert.deepStrictEqual(results(events), ["ok"])
      const [first, second, third] = waits(events) as [number, number, number]
      isBetween(first, 100, 200)
      isBetween(second, 200, 400)
      isBetween(third, 400, 800)
      const held = all(events, "Held").filter((one) => one.hold.includes("call-1"))
      assert.deepStrictEqual(
        held.map((one) => [one.hold, one.reserve, one.moved]),
        [
          ["step-1/call-1", "explore", {}],
          ["step-1/call-1/attempt-2", "retry", {}],
          ["step-1/call-1/attempt-3", "retry", {}],
          ["step-1/call-1/attempt-4", "retry", {}],
        ],
      )
      const row = rowOf(outcome)
      assert.deepStrictEqual(
        [row.own.toolCalls, row.reserves.retry.used.toolCalls, row.reserves.retry.used.ticks, row.own.ticks],
        [4, 3, 3, 5],
      )
    }),
  )

  it.effect("is tried four times in all over every call of the tool; another tool has its own three", () =>
    Effect.gen(function* () {
      const { outcome, events } = yield* lives(
        { look: [{ effect: "read" }, failing(Infinity)], seek: [{ effect: "read" }, failing(Infinity)] },
        plays(calls(use("look", "1")), calls(use("look", "2")), calls(use("seek")), Proposal.finish("done")),
        { steps: 9, toolCalls: 99 },
      )
      const each = (tool: string) => [1, 2, 3, 4].map((attempt) => `${tool} ${attempt}`)
      assert.deepStrictEqual(attempts(events), [...each("look"), "look 1", ...each("seek")])
      assert.deepStrictEqual(results(events), ["EBUSY", "EBUSY", "EBUSY"])
      assert.deepStrictEqual(
        all(events, "CallEnded").map((one) => [one.retryable, one.ran, one.message]),
        [1, 2, 3].map(() => [true, true, "try again"]),
      )
      assert.strictEqual(rowOf(outcome).own.toolCalls, 9)
      assert.strictEqual(all(events, "CallFailed").length, 6)
    }),
  )

  it.effect("shares its three tries among calls that run side by side", () =>
    Effect.gen(function* () {
      const { events } = yield* lives(
        { look: [{ effect: "read" }, failing(Infinity)] },
        plays(calls(use("look", "1"), use("look", "2"), use("look", "3")), Proposal.finish("done")),
        { steps: 9, toolCalls: 99 },
      )
      assert.strictEqual(attempts(events).length, 6)
      assert.strictEqual(all(events, "CallFailed").length, 3)
    }),
  )

  it.effect("is tried as often as the contract says: never with retries 0", () =>
    Effect.gen(function* () {
      for (const retries of [0, 1, 5]) {
        const { events } = yield* lives({ look: [{ effect: "read", retries }, failing(Infinity)] }, once("look"), {
          steps: 9,
          toolCalls: 99,
        })
        assert.strictEqual(attempts(events).length, retries + 1, `${retries} retries`)
      }
    }),
  )

  it.effect("waits as long as it asks to, exactly, where that is more than the host would", () =>
    Effect.gen(function* () {
      const later = ToolError.transient("E429", "slow down", { retryAfterMillis: 45_000 })
      const soon = ToolError.transient("E429", "slow down", { retryAfterMillis: 1 })
      const long = yield* lives({ look: [{ effect: "read" }, failing(2, later)] }, once("look"), { toolCalls: 9 })
      assert.deepStrictEqual(waits(long.events), [45_000, 45_000])
      const short = yield* lives({ look: [{ effect: "read" }, failing(1, soon)] }, once("look"), { toolCalls: 9 })
      isBetween(waits(short.events)[0]!, 100, 200)
    }),
  )

  it.effect("is waited for 30 seconds at most, where the tool does not ask for more", () =>
    Effect.gen(function* () {
      const { events } = yield* lives(
        { look: [{ effect: "read", backoff: "20 seconds", retries: 4 }, failing(4)] },
        once("look"),
        { toolCalls: 9 },
      )
      const [first, second, third, fourth] = waits(events) as [number, number, number, number]
      isBetween(first, 10_000, 20_000)
      isBetween(second, 20_000, 30_000)
      assert.deepStrictEqual([third, fourth], [30_000, 30_000])
    }),
  )

  it.effect("counts on from the journal when its run is resumed", () =>
    Effect.gen(function* () {
      const { toolkit, handlers } = kit({ look: [{ effect: "read" }, failing(Infinity)] })
      const agent = Agent.make("a", { policy: once("look"), toolkit, ...bare })
      const before = yield* run(agent, { steps: 9, toolCalls: 99 }).pipe(Effect.provide(handlers))
      const second = before.events.findIndex(({ event }) => event._tag === "CallFailed" && event.attempt === 2)
      const events = before.events.slice(0, second + 1)
      const outcome = yield* resumed(agent, events).pipe(Effect.provide(handlers))
      lawful(outcome, events)
      assert.deepStrictEqual(attempts(events), ["look 1", "look 2", "look 3", "look 4"])
      assert.deepStrictEqual(results(events), ["EBUSY"])
    }),
  )

  it.effect("costs each attempt its money, and ends where the money does", () =>
    Effect.gen(function* () {
      const { outcome, events } = yield* lives(
        { look: [{ effect: "read", costNanoUsd: 400 }, failing(Infinity)] },
        once("look"),
        { money: "0.000001 USD" },
      )
      assert.deepStrictEqual([attempts(events).length, rowOf(outcome).own.money], [2, 800])
      assert.deepStrictEqual(results(events), ["EBUSY"])
    }),
  )

  it.effect("is told to the handler: the number of the attempt, and the same key each time", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const handle: Handle = () =>
        Effect.gen(function* () {
          const { agent, attempt, call, key } = (yield* Contract.CurrentCall)!
          seen.push([agent, call, attempt, key])
          return yield* Effect.fail(busy)
        })
      const contract: Contract.Options = {
        effect: "write",
        idempotency: "key",
        retries: 2,
        key: ({ key }) => `k-${key}`,
      }
      const { events } = yield* lives({ put: [contract, handle] }, once("put"), { toolCalls: 9 })
      assert.deepStrictEqual(
        seen,
        [1, 2, 3].map((attempt) => ["a", "step-1/call-1", attempt, "k-x"]),
      )
      assert.deepStrictEqual(
        all(events, "CallStarted").map((one) => one.key),
        ["k-x", "k-x", "k-x"],
      )
    }),
  )
})

describe("what the host never tries again", () => {
  const attemptsOf = (contract: Contract.Options, error: ToolError.ToolError) =>
    Effect.gen(function* () {
      const { outcome, events } = yield* lives({ act: [contract, failing(Infinity, error)] }, once("act"), {
        steps: 9,
        toolCalls: 9,
      })
      assert.deepStrictEqual(all(events, "CallFailed"), [])
      return [attempts(events).length, ...results(events), outcome._tag === "Stopped" ? outcome.reason : outcome._tag]
    })

  it.effect("is a mistake, a refusal or a fatal failure", () =>
    Effect.gen(function* () {
      const read: Contract.Options = { effect: "read" }
      const of = [ToolError.mistake("EMISS", "m"), ToolError.permission("EDENY", "p"), ToolError.fatal("EGONE", "f")]
      assert.deepStrictEqual(yield* Effect.forEach(of, (error) => attemptsOf(read, error)), [
        [1, "EMISS", "Completed"],
        [1, "EDENY", "Completed"],
        [1, "EGONE", "tool_error"],
      ])
    }),
  )

  it.effect("is an effect that does not count once, and an irreversible one even if it does", () =>
    Effect.gen(function* () {
      const kinds: ReadonlyArray<Contract.Options> = [
        { effect: "write", idempotency: "none" },
        { effect: "write" },
        { effect: "irreversible", idempotency: "none" },
        { effect: "irreversible", idempotency: "natural" },
        { effect: "irreversible", idempotency: "key" },
        {},
      ]
      for (const kind of kinds) {
        assert.deepStrictEqual(yield* attemptsOf(kind, busy), [1, "EBUSY", "Completed"], JSON.stringify(kind))
      }
    }),
  )

  it.effect("and what it does: a write that counts once, by nature or under its key", () =>
    Effect.gen(function* () {
      for (const idempotency of ["natural", "key"] as const) {
        const { events } = yield* lives({ act: [{ effect: "write", idempotency }, failing(3)] }, once("act"), {
          toolCalls: 9,
        })
        assert.deepStrictEqual([attempts(events).length, ...results(events)], [4, "ok"], idempotency)
      }
    }),
  )
})

describe("a retry that cannot be", () => {
  it.effect("paid leaves the failure as it is; only an attempt that another one follows is on record as failed", () =>
    Effect.gen(function* () {
      const { outcome, events } = yield* lives({ look: [{ effect: "read" }, failing(Infinity)] }, once("look"), {
        steps: 9,
        toolCalls: 2,
      })
      assert.deepStrictEqual([attempts(events).length, ...results(events)], [2, "EBUSY"])
      assert.strictEqual(outcome._tag, "Completed")
      assert.strictEqual(rowOf(outcome).own.toolCalls, 2)
      assert.deepStrictEqual(
        all(events, "CallFailed").map((one) => one.attempt),
        [1],
      )
    }),
  )

  it.effect("waited for in the time that is left leaves the failure as it is, at once", () =>
    Effect.gen(function* () {
      const later = (retryAfterMillis: number) => ToolError.transient("E429", "later", { retryAfterMillis })
      const of = (millis: number) =>
        lives({ look: [{ effect: "read" }, failing(1, later(millis))] }, once("look"), { wallClock: "1 minute" })
      const late = yield* of(60_000)
      assert.deepStrictEqual([attempts(late.events).length, ...results(late.events)], [1, "E429"])
      assert.strictEqual(late.events.at(-1)!.atMillis, 0)
      const fits = yield* of(59_999)
      assert.deepStrictEqual([attempts(fits.events).length, ...results(fits.events)], [2, "ok"])
    }),
  )

  it.effect("is run under what is left of the time for exploring", () =>
    Effect.gen(function* () {
      let tries = 0
      const handle: Handle = () => (tries++ === 0 ? Effect.fail(busy) : Effect.never)
      const { outcome, events } = yield* lives(
        { look: [{ effect: "read", timeout: "1 hour" }, handle] },
        once("look"),
        {
          wallClock: "10 seconds",
        },
      )
      assert.deepStrictEqual([stopped(outcome).reason, ...results(events)], ["deadline", "ETIMEDOUT"])
      assert.strictEqual(events.at(-1)!.atMillis, 10_000)
    }),
  )
})

describe("a call that is cancelled between two attempts", () => {
  it.effect("has one result, and nothing of it is still held", () =>
    Effect.gen(function* () {
      const { toolkit, handlers } = kit({ look: [{ effect: "read", backoff: "20 seconds" }, failing(Infinity)] })
      const agent = Agent.make("a", { policy: once("look"), toolkit, ...bare })
      yield* driven(agent, { budget: { toolCalls: 9 } }, (handle, events) =>
        Effect.gen(function* () {
          yield* pass(5_000)
          assert.deepStrictEqual([all(events, "CallFailed").length, results(events)], [1, []])
          const outcome = yield* handle.cancel
          lawful(outcome, events)
          assert.strictEqual(stopped(outcome).reason, "cancelled")
          assert.deepStrictEqual([attempts(events), results(events)], [["look 1"], ["ECANCELLED"]])
          assert.strictEqual(rowOf(outcome).own.toolCalls, 1)
          assert.strictEqual(all(events, "CallEnded")[0]!.ran, true)
        }),
      ).pipe(Effect.provide(handlers))
    }),
  )
})
