/**
 * Models that are asked no more often than their rate: waits are inside the deadline, and each is a tick.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
// Loaded beforehand: a rate loads it when it is first asked, which takes real time and none of the test's.
import "effect/persistence/RateLimiter"
import { Agent, type Budget, type Event, Model, Policy, Proposal } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { driven, lawful, pass } from "../support/driven.ts"
import { all, run, stopped, whole } from "../support/journalled.ts"
import { ask, bare, calls, handled, plays, toolkit } from "../support/scripts.ts"

const usage = { input: 10, output: 5 }
const reads = (key: string) => ({ calls: [{ name: "read", params: { key } }], usage })
const says = { text: "hi", usage }

type Rate = Parameters<typeof Model.withRate>[1]

let names = 0

/** A script, and its model under a rate that no other test shares. */
const rated = (turns: ReadonlyArray<ScriptedModel.Turn>, rate: Rate) => {
  const script = ScriptedModel.make(turns)
  return { ...script, model: Model.withRate(script.model, { key: `test-${names++}`, ...rate }) }
}

const agentOf = (model: Model.Model) =>
  Agent.make("a", { policy: Policy.fromModel(model, { maxOutputTokens: 5 }), toolkit, ...bare })

const budget: Budget.Input = { steps: 20, ticks: 40, toolCalls: 9, wallClock: "1 hour" }

const play = (model: Model.Model, given: Budget.Input = budget) =>
  Effect.map(run(agentOf(model), given), whole).pipe(Effect.provide(handled()))

/** When a decision was held, from the start of the run. */
const heldAt = (events: ReadonlyArray<Event.Recorded>) =>
  events.flatMap(({ event, atMillis }) =>
    event._tag === "Held" && /\/attempt-\d+$/.test(event.hold) ? [atMillis - events[0]!.atMillis] : [],
  )

const window = "10 seconds"
const three = [reads("x"), reads("y"), says]

describe("a model with a rate", () => {
  it.effect("of requests waits for its turn, and the wait is a tick", () =>
    Effect.gen(function* () {
      const { events, outcome } = yield* play(rated(three, { requests: 2, window }).model)
      assert.strictEqual(outcome._tag, "Completed")
      assert.deepStrictEqual(heldAt(events), [0, 0, 5_000])
      const { ticks, steps } = outcome.report.accounts[0]!.own
      assert.deepStrictEqual([ticks, steps], [3 + 1, 3])
    }),
  )

  it.effect("of input tokens, or of all tokens that are asked for, as well", () =>
    Effect.gen(function* () {
      const input = yield* play(rated(three, { inputTokens: 20, window }).model)
      assert.deepStrictEqual(heldAt(input.events), [0, 0, 5_000])
      const both = yield* play(rated(three, { tokens: 30, window }).model)
      assert.deepStrictEqual(heldAt(both.events), [0, 0, 5_000])
      const slowest = yield* play(rated(three, { requests: 100, inputTokens: 10, tokens: 30, window }).model)
      assert.deepStrictEqual(heldAt(slowest.events), [0, 10_000, 20_000])
    }),
  )

  it.effect("lets a request through that is larger than all of it, once all of it is free", () =>
    Effect.gen(function* () {
      const { events } = yield* play(rated(three, { tokens: 4, window }).model)
      assert.deepStrictEqual(heldAt(events), [0, 10_000, 20_000])
    }),
  )

  it.effect("waits before it tries again, too", () =>
    Effect.gen(function* () {
      const failing = { fault: { status: 503 }, countedInput: 10 }
      const { events } = yield* play(rated([failing, says], { requests: 1, window: "1 minute" }).model)
      const [first, second] = heldAt(events)
      assert.deepStrictEqual([first, second], [0, 60_000])
      assert.strictEqual(all(events, "Held").find(({ hold }) => hold.endsWith("/turn"))!.reserve, "retry")
    }),
  )

  it.effect("is shared by all agents that ask it", () =>
    Effect.gen(function* () {
      const { model } = rated([says, says], { requests: 1, window })
      const child = Agent.make("child", { policy: Policy.fromModel(model, { maxOutputTokens: 5 }), ...bare })
      const children = [Agent.asTool(child, { atLeast: { steps: 2, ticks: 2 } })]
      const policy = plays(calls(ask("child", "one"), ask("child", "two")), Proposal.finish("done"))
      const { events } = whole(yield* run(Agent.make("a", { policy, children }), budget))
      const told = events.filter(({ event }) => event._tag === "Decided" && event.agent !== "a")
      assert.deepStrictEqual(
        told.map(({ atMillis }) => atMillis),
        [0, 10_000],
      )
    }),
  )
})

describe("a turn that comes too late", () => {
  const soon = { ...budget, wallClock: "5 seconds" }
  const slow = { requests: 1, window: "1 hour" } as const

  it.effect("ends the run for its deadline, at once and unpaid", () =>
    Effect.gen(function* () {
      const script = rated([reads("x"), says], slow)
      const { events, outcome } = yield* play(script.model, soon)
      const { detail, reason } = stopped(outcome)
      assert.strictEqual(reason, "deadline")
      assert.match(detail, /scripted is asked too often: it is free again in \d+ ms, 5000 ms are left/)
      assert.strictEqual(all(events, "DecisionFailed")[0]!.code, "ERATE")
      assert.deepStrictEqual([script.requests.length, outcome.report.accounts[0]!.own.steps], [1, 1])
      assert.strictEqual(events.at(-1)!.atMillis, 0)
    }),
  )

  it.effect("is that of the next model, where there is one", () =>
    Effect.gen(function* () {
      const script = rated([reads("x")], slow)
      const other = ScriptedModel.make([says], { name: "other" })
      const { events, outcome } = yield* play(Model.withFallback(script.model, other.model), soon)
      assert.strictEqual(outcome._tag, "Completed")
      assert.deepStrictEqual([all(events, "FellBack")[0]!.to, other.requests.length], ["other", 1])
    }),
  )

  it.effect("ends it for ticks, where the wait cannot be paid", () =>
    Effect.gen(function* () {
      const { outcome } = yield* play(rated(three, { requests: 1, window }).model, { ...budget, ticks: 1 })
      assert.strictEqual(stopped(outcome).reason, "budget:ticks")
    }),
  )
})

describe("a wait for a turn", () => {
  it.effect("ends with its run, and is booked", () =>
    Effect.gen(function* () {
      const events: Array<Event.Recorded> = []
      const script = rated(three, { requests: 1, window })
      const outcome = yield* driven(agentOf(script.model), { budget, events }, (handle) =>
        Effect.andThen(pass(1_000), handle.cancel),
      )
      lawful(outcome, events)
      assert.deepStrictEqual([stopped(outcome).reason, events.at(-1)!.atMillis], ["cancelled", 1_000])
      assert.deepStrictEqual([script.requests.length, outcome.report.accounts[0]!.own.ticks], [1, 2])
    }).pipe(Effect.provide(handled())),
  )
})

describe("a rate that is none", () => {
  it("is refused with the name of the limit and its value", () => {
    const { model } = ScriptedModel.make([])
    assert.throws(() => Model.withRate(model, { requests: 0, window }), /requests is 0: give a whole number above 0/)
    assert.throws(() => Model.withRate(model, { tokens: 1.5, window }), /tokens is 1.5/)
    assert.throws(() => Model.withRate(model, { requests: 1, window: 0 }), /window is 0 ms: give a time above 0/)
  })
})
