import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { TestClock } from "effect/testing"
import { Agent, type Event, Journal, Model, Policy, Proposal, Verifier } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { all, broken, results, run, stopped, whole } from "../support/journalled.ts"
import { ask, bare, calls, explorer, handled, plays, read, toolkit, write } from "../support/scripts.ts"

const usage = { input: 10, output: 5 }
const price = { inputPicoUsd: 1000, cachedInputPicoUsd: 1000, cacheWriteInputPicoUsd: 1000, outputPicoUsd: 1000 }

describe("unverified", () => {
  const paying = Verifier.make<string>(
    "paying",
    (_, pay) =>
      Effect.map(
        pay({
          hold: () => ({ steps: 1 }),
          use: () => Effect.void,
          book: () => ({ _tag: "Settle", actual: { steps: 1 } }),
        }),
        () => [{ name: "paying", passed: false, detail: "not yet" }],
      ),
    { needs: { steps: 1 } },
  )

  it.effect("nothing is left in verify to check a second answer with: no wrap-up, the answer is kept", () =>
    Effect.gen(function* () {
      const policy = plays(Proposal.finish("first"), Proposal.finish("second"))
      const agent = Agent.make("a", {
        policy,
        verify: paying,
        reserves: { verify: { steps: 1 }, output: { steps: 1 } },
      })
      const ran = whole(yield* run(agent, { steps: 4 }))
      const { reason, result, partial } = stopped(ran.outcome)
      assert.deepStrictEqual([reason, result, partial], ["unverified", "partial", "second"])
      assert.deepStrictEqual(
        all(ran.events, "Decided").map((one) => one.purpose),
        ["explore", "explore"],
      )
    }),
  )

  it.effect("a check that does not end in its time", () =>
    Effect.gen(function* () {
      const verify = Verifier.make<string>("slow", () => Effect.never)
      const agent = Agent.make("a", { policy: plays(Proposal.finish("answer")), verify })
      const ran = whole(yield* run(agent, { steps: 9, wallClock: "10 seconds" }))
      const { reason, result, partial } = stopped(ran.outcome)
      assert.deepStrictEqual([reason, result, partial], ["unverified", "partial", "answer"])
      assert.strictEqual(ran.events.at(-1)!.atMillis, 8_500)
    }),
  )
})

describe("tool_error", () => {
  it.effect("a defect in a handler ends the run, after one last answer", () =>
    Effect.gen(function* () {
      const ran = whole(yield* run(Agent.make("a", { policy: explorer, toolkit }), { steps: 9 }))
      const { reason, result, detail } = stopped(ran.outcome)
      assert.deepStrictEqual([reason, result, detail], ["tool_error", "partial", "read: the tool broke down"])
      assert.deepStrictEqual(results(ran.events), ["EFATAL"])
    }).pipe(Effect.provide(handled({ read: () => Effect.die(new Error("the secret")) }))),
  )

  it.effect("a handler that throws before it makes an Effect is the same", () =>
    Effect.gen(function* () {
      const ran = whole(yield* run(Agent.make("a", { policy: explorer, toolkit }), { steps: 9 }))
      assert.strictEqual(stopped(ran.outcome).reason, "tool_error")
    }).pipe(
      Effect.provide(
        handled({
          read: () => {
            throw new Error("no Effect")
          },
        }),
      ),
    ),
  )

  it.effect("a tool without a handler ends the run of whoever calls it, child or root, and nothing is torn", () =>
    Effect.gen(function* () {
      const child = Agent.make("child", { policy: explorer, toolkit, ...bare })
      const parent = Agent.make("parent", {
        policy: plays(calls(ask("child")), Proposal.finish("done")),
        children: [Agent.asTool(child)],
      })
      const ran = whole(yield* run(parent as unknown as Agent.Agent<string>, { steps: 12, toolCalls: 9 }))
      assert.strictEqual(ran.outcome._tag, "Completed")
      assert.deepStrictEqual(
        ran.outcome.report.ends.map(({ agent, reason }) => [agent, reason]),
        [
          ["parent", "completed"],
          ["parent/child-1", "tool_error"],
        ],
      )
    }),
  )
})

describe("model_error", () => {
  const failing = (fault: NonNullable<ScriptedModel.Turn["fault"]>, count = 3) =>
    ScriptedModel.make(Array.from({ length: count }, () => ({ fault })))

  const once = (model: ScriptedModel.Scripted, settings: Partial<Agent.Settings> = {}) =>
    run(Agent.make("a", { policy: Policy.fromModel(model.model, { maxOutputTokens: 5 }), settings }), { steps: 20 })

  it.effect("two retries on the virtual clock, each wait longer, then the end without a wrap-up", () =>
    Effect.gen(function* () {
      const model = failing({ status: 500 })
      const ran = whole(yield* once(model))
      assert.deepStrictEqual([stopped(ran.outcome).reason, stopped(ran.outcome).result], ["model_error", "none"])
      assert.strictEqual(model.requests.length, 3)
      const [first, second, third] = ran.events.filter(({ event }) => event._tag === "DecisionFailed")
      const waits = [second!.atMillis - first!.atMillis, third!.atMillis - second!.atMillis]
      assert.isTrue(waits[0]! >= 250 && waits[0]! <= 500 && waits[1]! >= 500 && waits[1]! <= 1000, waits.join())
      assert.deepStrictEqual(
        all(ran.events, "Held").map((hold) => hold.reserve),
        ["explore", "retry", "retry", "retry", "retry"],
      )
    }),
  )

  it.effect("what the provider asks to wait is waited", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([{ fault: { status: 429, retryAfterMillis: 30_000 } }, { text: "hi", usage }])
      const ran = whole(yield* once(model))
      assert.strictEqual(ran.outcome._tag, "Completed")
      assert.strictEqual(ran.events.at(-1)!.atMillis, 30_000)
    }),
  )

  it.effect("years that the provider asks to wait are not waited, also where there is no deadline", () =>
    Effect.gen(function* () {
      const asks = { fault: { status: 429, retryAfterMillis: 10 * 365 * 86_400_000 } }
      const alone = whole(yield* once(ScriptedModel.make([asks])))
      assert.strictEqual(stopped(alone.outcome).reason, "model_error")
      assert.include(stopped(alone.outcome).detail, "the model asks to wait 315360000000 ms")
      const second = ScriptedModel.make([{ text: "hi", usage }]).model
      const model = Model.withFallback(ScriptedModel.make([asks]).model, second)
      const policy = Policy.fromModel(model, { maxOutputTokens: 5 })
      const ran = whole(yield* run(Agent.make("a", { policy, ...bare }), { steps: 20 }))
      const took = ran.events.at(-1)!.atMillis - ran.events[0]!.atMillis
      assert.deepStrictEqual([ran.outcome._tag, took], ["Completed", 0])
    }),
  )

  it.effect("a 401 is not tried again", () =>
    Effect.gen(function* () {
      const model = failing({ status: 401 })
      const ran = whole(yield* once(model))
      assert.strictEqual(stopped(ran.outcome).reason, "model_error")
      assert.strictEqual(model.requests.length, 1)
      assert.strictEqual(ran.outcome.report.accounts[0]!.own.steps, 1)
    }),
  )

  it.effect("a model that breaks down, when it is asked or when it counts, does not tear the loop", () =>
    Effect.gen(function* () {
      const { model } = ScriptedModel.make([], { price })
      const broke = () => Effect.die(new Error("broken"))
      const throws = () => {
        throw new Error("cannot count")
      }
      for (const bad of [
        { ...model, call: broke },
        { ...model, countInput: throws },
        { ...model, countInput: () => ({ tokens: 1.5, bound: "counted" as const }) },
        { ...model, price: undefined, countInput: () => ({ tokens: Number.NaN, bound: "counted" as const }) },
      ]) {
        const ran = whole(yield* run(Agent.make("a", { policy: Policy.fromModel(bad) }), { steps: 9 }))
        assert.strictEqual(stopped(ran.outcome).reason, "model_error")
      }
    }),
  )

  it.effect("nor does a policy of one's own that keeps to nothing", () =>
    Effect.gen(function* () {
      const good = plays(Proposal.finish("x"))
      const throws = () => {
        throw new Error("broken")
      }
      const attempt = { hold: () => ({ steps: 1 }), use: () => Effect.succeed(undefined as never) }
      const book = () => ({ _tag: "Settle", actual: { steps: 1 } }) as const
      for (const policy of [
        { ...good, attempt: throws },
        { ...good, wrapUpNeeds: throws },
        { ...good, attempt: () => Effect.succeed({ ...attempt, book }) },
        { ...good, attempt: () => Effect.succeed({ ...attempt, book, use: throws }) },
        { ...good, attempt: () => Effect.succeed({ ...attempt, book, hold: throws }) },
        { ...good, attempt: () => Effect.succeed({ ...attempt, book: throws }) },
      ]) {
        const ran = whole(yield* run(Agent.make("a", { policy }), { steps: 9 }))
        assert.strictEqual(stopped(ran.outcome).reason, "model_error")
      }
    }),
  )
})

describe("unpriced", () => {
  it.effect("no price under a money cap: nothing is sent, no wrap-up", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([{ text: "hi", usage }])
      const ran = whole(yield* run(Agent.make("a", { policy: Policy.fromModel(model.model) }), { money: "1 USD" }))
      assert.deepStrictEqual([stopped(ran.outcome).reason, stopped(ran.outcome).result], ["unpriced", "none"])
      assert.strictEqual(model.requests.length, 0)
    }),
  )
})

describe("cancelled", () => {
  it.effect("from inside a tool: the outcome keeps what was done, and no wrap-up is made", () =>
    Effect.gen(function* () {
      const reached = yield* Deferred.make<void>()
      const hang = handled({
        read: ({ key }) =>
          key === "x" ? Effect.succeed(key) : Effect.andThen(Deferred.succeed(reached, undefined), Effect.never),
      })
      const agent = Agent.make("a", { policy: plays(calls(read("x")), calls(read("y"), write("z"))), toolkit })
      const outcome = yield* Effect.scoped(
        Effect.gen(function* () {
          const handle = yield* Agent.spawn(agent, "task", { budget: { steps: 9, toolCalls: 9 } })
          yield* Deferred.await(reached)
          return yield* handle.cancel
        }),
      ).pipe(Effect.provide(hang))
      const { reason, result } = stopped(outcome)
      assert.deepStrictEqual([reason, result], ["cancelled", "none"])
      const [row] = outcome.report.accounts
      // The read that was running is booked, the write that had not started is given back.
      assert.deepStrictEqual([row!.state, row!.own.steps, row!.own.toolCalls], ["Closed", 2, 2])
    }),
  )

  it.effect("while its answer is checked: the answer is kept as a partial one", () =>
    Effect.gen(function* () {
      const verify = Verifier.make<string>("slow", () => Effect.never)
      const agent = Agent.make("a", { policy: plays(Proposal.finish("answer")), verify })
      const outcome = yield* Effect.scoped(
        Effect.gen(function* () {
          const handle = yield* Agent.spawn(agent, "task", { budget: { steps: 9 } })
          yield* TestClock.adjust("1 second")
          return yield* handle.cancel
        }),
      )
      const { reason, result, partial } = stopped(outcome)
      assert.deepStrictEqual([reason, result, partial], ["cancelled", "partial", "answer"])
    }),
  )

  it.effect("during the wrap-up: the first cause stays, and stands in the journal once", () =>
    Effect.gen(function* () {
      const policy = Policy.make((view) =>
        view.purpose === "wrap_up" ? Effect.never : Effect.succeed(calls(read(`${view.step}`))),
      )
      const agent = Agent.make("a", { policy, toolkit })
      const outcome = yield* Effect.scoped(
        Effect.gen(function* () {
          const handle = yield* Agent.spawn(agent, "task", { budget: { steps: 3 } })
          yield* TestClock.adjust("1 second")
          return yield* handle.cancel
        }),
      ).pipe(Effect.provide(handled()))
      assert.strictEqual(stopped(outcome).reason, "budget:steps")
    }),
  )
})

describe("refused_at_open", () => {
  it.effect("a root fails with the refusal, and its journal says how it ended", () =>
    Effect.gen(function* () {
      const events: Array<Event.Recorded> = []
      const agent = Agent.make("a", { policy: plays(Proposal.finish("done")) })
      const error = yield* Agent.run(agent, "task", { budget: { steps: 0 } }).pipe(
        Effect.flip,
        Effect.provideService(Journal.Journal, Journal.toArray(events)),
      )
      assert.isTrue(error._tag === "BudgetError" && error.reason._tag === "Insufficient")
      assert.deepStrictEqual(broken(events), [])
      assert.strictEqual(all(events, "RunEnded")[0]!.reason, "refused_at_open")
    }),
  )

  it.effect("a child is refused as a result to its parent, which goes on", () =>
    Effect.gen(function* () {
      const child = Agent.make("child", { policy: plays(Proposal.finish("done")) })
      const parent = Agent.make("parent", {
        policy: plays(calls(ask("child")), Proposal.finish("alone")),
        children: [Agent.asTool(child, { atLeast: { steps: 100 } })],
      })
      const ran = whole(yield* run(parent, { steps: 10, toolCalls: 5 }))
      assert.strictEqual(ran.outcome._tag, "Completed")
      assert.deepStrictEqual(results(ran.events), ["EBUDGET"])
      assert.strictEqual(ran.outcome.report.accounts.length, 1)
      assert.strictEqual(ran.outcome.report.accounts[0]!.own.toolCalls, 0)
    }),
  )
})

describe("an agent without a toolkit", () => {
  it("needs no services", () => {
    const agent: Agent.Agent<number> = Agent.make("a", {
      policy: plays(Proposal.finish(1)),
      answer: Schema.Number,
    })
    assert.strictEqual(agent.tools.length, 0)
  })
})
