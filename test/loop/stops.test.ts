import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Agent, Policy, Proposal } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { all, results, run, stopped, whole } from "../support/journalled.ts"
import { bare, calls, explorer, handled, plays, read, toolkit } from "../support/scripts.ts"

const usage = { input: 10, output: 5 }
const price = { inputPicoUsd: 1000, cachedInputPicoUsd: 1000, cacheWriteInputPicoUsd: 1000, outputPicoUsd: 1000 }

describe("completed", () => {
  it.effect("an accepted answer ends the run with a full result", () =>
    Effect.gen(function* () {
      const agent = Agent.make("a", { policy: plays(calls(read("x")), Proposal.finish("done")), toolkit })
      const { outcome, events } = whole(yield* run(agent, { steps: 5 }))
      assert.strictEqual(outcome._tag === "Completed" && outcome.answer, "done")
      assert.deepStrictEqual(outcome.report.ends, [
        { agent: "a", name: "a", reason: "completed", result: "full", steps: 2, detail: "" },
      ])
      assert.strictEqual(all(events, "RunEnded")[0]!.reason, "completed")
    }).pipe(Effect.provide(handled())),
  )
})

describe("budget", () => {
  it.effect("each dimension stops the run under its own name", () =>
    Effect.gen(function* () {
      const turn = { calls: [{ name: "read", params: { key: "x" } }], usage }
      for (const [budget, reason] of [
        [{ steps: 3 }, "budget:steps"],
        [{ ticks: 3 }, "budget:ticks"],
        [{ inputTokens: 35 }, "budget:input_tokens"],
        [{ outputTokens: 19 }, "budget:output_tokens"],
        [{ money: "0.000000050 USD" }, "budget:money"],
        [{ toolCalls: 3 }, "budget:tool_calls"],
      ] as const) {
        const model = ScriptedModel.make(
          Array.from({ length: 6 }, (_, i) => ({ ...turn, calls: [{ name: "read", params: { key: `k${i}` } }] })),
          { price },
        )
        const policy = Policy.fromModel(model.model, { maxOutputTokens: 5 })
        const { outcome } = whole(yield* run(Agent.make("a", { policy, toolkit, ...bare }), budget))
        const { reason: why, result, short } = stopped(outcome)
        assert.deepStrictEqual([why, result, short.length], [reason, "none", 1])
        // A reply is asked for before its calls are refused: one dispatch more for tool calls.
        assert.strictEqual(model.requests.length, reason === "budget:tool_calls" ? 4 : 3)
      }
    }).pipe(Effect.provide(handled())),
  )

  it.effect("one call that still fits keeps the run going when the others are refused", () =>
    Effect.gen(function* () {
      const policy = plays(calls(read("a"), read("b"), read("c")), Proposal.finish("done"))
      const { outcome, events } = whole(yield* run(Agent.make("a", { policy, toolkit, ...bare }), { toolCalls: 1 }))
      assert.strictEqual(outcome._tag, "Completed")
      assert.deepStrictEqual(results(events), ["ok", "EBUDGET", "EBUDGET"])
    }).pipe(Effect.provide(handled())),
  )

  it.effect("a bill above its hold is booked, its calls are refused, and the run stops under that dimension", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([
        { calls: [{ name: "write", params: { key: "x" } }], usage: { input: 50, output: 5 }, countedInput: 10 },
      ])
      const agent = Agent.make("a", {
        policy: Policy.fromModel(model.model, { maxOutputTokens: 5 }),
        toolkit,
        reserves: { retry: { inputTokens: 100 } },
      })
      const { outcome, events } = whole(yield* run(agent, { inputTokens: 110 }))
      assert.strictEqual(stopped(outcome).reason, "budget:input_tokens")
      assert.isTrue(outcome.report.overran)
      assert.deepStrictEqual(results(events), ["EBUDGET"])
      assert.strictEqual(outcome.report.accounts[0]!.own.inputTokens, 50)
    }).pipe(Effect.provide(handled())),
  )
})

describe("deadline", () => {
  const inTime = { wallClock: "10 seconds" } as const

  it.effect("in the middle of a model call, which is cut off and booked at its hold", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([{ text: "late", usage, millis: 60_000 }])
      const policy = Policy.fromModel(model.model, { maxOutputTokens: 5 })
      const ran = whole(yield* run(Agent.make("a", { policy, ...bare }), { ...inTime, outputTokens: 100 }))
      assert.strictEqual(stopped(ran.outcome).reason, "deadline")
      assert.strictEqual(all(ran.events, "RunEnded")[0]!.result, "none")
      assert.strictEqual(ran.events.at(-1)!.atMillis, 10_000)
      assert.strictEqual(ran.outcome.report.accounts[0]!.own.outputTokens, 5)
    }),
  )

  it.effect("in the middle of a tool call, which gets its result", () =>
    Effect.gen(function* () {
      const agent = Agent.make("a", { policy: plays(calls(read("x"))), toolkit, ...bare })
      const ran = whole(yield* run(agent, { wallClock: "4 seconds" }))
      assert.strictEqual(stopped(ran.outcome).reason, "deadline")
      assert.deepStrictEqual(results(ran.events), ["ETIMEDOUT"])
      assert.strictEqual(ran.events.at(-1)!.atMillis, 4_000)
    }).pipe(Effect.provide(handled({ read: () => Effect.never }))),
  )

  it.effect("between two steps", () =>
    Effect.gen(function* () {
      const agent = Agent.make("a", { policy: explorer, toolkit, ...bare })
      const ran = whole(yield* run(agent, { wallClock: "4 seconds" }))
      assert.strictEqual(stopped(ran.outcome).reason, "deadline")
      assert.deepStrictEqual(results(ran.events), ["ok", "ETIMEDOUT"])
    }).pipe(Effect.provide(handled({ read: ({ key }) => Effect.as(Effect.sleep("3 seconds"), key) }))),
  )

  it.effect("while waiting for the next attempt: it does not wait in vain", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([{ fault: { status: 429, retryAfterMillis: 20_000 } }])
      const ran = whole(yield* run(Agent.make("a", { policy: Policy.fromModel(model.model), ...bare }), inTime))
      assert.strictEqual(stopped(ran.outcome).reason, "deadline")
      assert.strictEqual(ran.events.at(-1)!.atMillis, 0)
    }),
  )

  it.effect("the last answer has the output window for itself", () =>
    Effect.gen(function* () {
      const late = Policy.make((view) =>
        view.purpose === "wrap_up"
          ? Effect.as(Effect.sleep("1 second"), Proposal.finish("what I have"))
          : Effect.as(Effect.sleep("1 hour"), Proposal.finish("never")),
      )
      const ran = whole(yield* run(Agent.make("a", { policy: late }), { ...inTime, steps: 10 }))
      const { reason, result, partial } = stopped(ran.outcome)
      assert.deepStrictEqual([reason, result, partial], ["deadline", "partial", "what I have"])
      assert.strictEqual(ran.events.at(-1)!.atMillis, 9_500)
    }),
  )
})

describe("no_progress", () => {
  const agent = (policy: Policy.Policy) => Agent.make("a", { policy, toolkit, ...bare })

  it.effect("the same read with the same result four times, and no fifth", () =>
    Effect.gen(function* () {
      const ran = whole(yield* run(agent(plays(calls(read("x")))), { steps: 20 }))
      assert.strictEqual(stopped(ran.outcome).reason, "no_progress")
      assert.strictEqual(results(ran.events).length, 4)
      assert.strictEqual(ran.outcome.report.ends[0]!.steps, 4)
    }).pipe(Effect.provide(handled())),
  )

  it.effect("a cycle of two, four times round", () =>
    Effect.gen(function* () {
      const policy = Policy.make((view) => calls(read(view.step % 2 === 0 ? "even" : "odd")))
      const ran = whole(yield* run(agent(policy), { steps: 20 }))
      assert.strictEqual(stopped(ran.outcome).reason, "no_progress")
      assert.strictEqual(results(ran.events).length, 8)
    }).pipe(Effect.provide(handled())),
  )

  it.effect("another result of the same call is progress", () =>
    Effect.gen(function* () {
      let count = 0
      const handlers = handled({ read: () => Effect.sync(() => `result ${count++}`) })
      const ran = whole(yield* run(agent(plays(calls(read("x")))), { steps: 9 }).pipe(Effect.provide(handlers)))
      assert.strictEqual(stopped(ran.outcome).reason, "budget:steps")
    }),
  )

  it.effect("a polling tool may say the same for as long as it likes", () =>
    Effect.gen(function* () {
      const policy = plays(calls({ tool: "poll", params: { key: "x" } }))
      const ran = whole(yield* run(agent(policy), { steps: 9 }))
      assert.strictEqual(stopped(ran.outcome).reason, "budget:steps")
    }).pipe(Effect.provide(handled())),
  )

  it.effect("a volatile argument does not make two calls different", () =>
    Effect.gen(function* () {
      const policy = Policy.make((view) => calls({ tool: "seek", params: { key: "x", note: `${view.step}` } }))
      const ran = whole(yield* run(agent(policy), { steps: 9 }))
      assert.strictEqual(stopped(ran.outcome).reason, "no_progress")
      assert.strictEqual(results(ran.events).length, 4)
    }).pipe(Effect.provide(handled())),
  )
})

describe("invalid_decisions", () => {
  it.effect("five in a row, of every kind, and never an exception", () =>
    Effect.gen(function* () {
      const circular: { self?: unknown } = {}
      circular.self = circular
      const policy = plays(
        Proposal.invalid("nothing"),
        () => {
          throw new Error("a mistake of the program")
        },
        Proposal.finish(42),
        calls({ tool: "nowhere", params: {} }, { tool: "read", params: { wrong: 1 } }),
        calls({ tool: "read", params: circular }),
      )
      const ran = whole(yield* run(Agent.make("a", { policy, toolkit, ...bare }), { steps: 20 }))
      assert.strictEqual(stopped(ran.outcome).reason, "invalid_decisions")
      assert.deepStrictEqual(
        all(ran.events, "Decided").map((one) => one.kind),
        ["invalid", "invalid", "invalid", "call", "invalid"],
      )
      assert.strictEqual(ran.outcome.report.accounts[0]!.own.steps, 5)
    }).pipe(Effect.provide(handled())),
  )

  it.effect("the same useless decision over and over is that, and not a lack of progress", () =>
    Effect.gen(function* () {
      const ran = whole(yield* run(Agent.make("a", { policy: plays(Proposal.invalid("no")), ...bare }), { steps: 12 }))
      assert.strictEqual(stopped(ran.outcome).reason, "invalid_decisions")
      assert.strictEqual(ran.outcome.report.ends[0]!.steps, 5)
    }),
  )

  it.effect("a good decision starts the count again", () =>
    Effect.gen(function* () {
      const policy = Policy.make((view) =>
        view.step % 5 === 0 ? calls(read(`${view.step}`)) : Proposal.invalid(`${view.step}`),
      )
      const ran = whole(yield* run(Agent.make("a", { policy, toolkit, ...bare }), { steps: 12 }))
      assert.strictEqual(stopped(ran.outcome).reason, "budget:steps")
    }).pipe(Effect.provide(handled())),
  )

  it.effect("a failing function policy is told in its next view", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const policy = Policy.make((view) => {
        seen.push(...view.turns.flatMap((turn) => turn.feedback))
        return view.turns.length === 0 ? Effect.fail({ _tag: "Oops" }) : Effect.succeed(Proposal.finish("done"))
      })
      const ran = whole(yield* run(Agent.make("a", { policy }), { steps: 5 }))
      assert.strictEqual(ran.outcome._tag, "Completed")
      assert.deepStrictEqual(seen, ["the policy failed: Oops"])
    }),
  )
})
