import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Agent, type Contract, Policy, Proposal, ToolError, Verifier } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { all, results, stopped } from "../support/journalled.ts"
import {
  attempts,
  completed,
  driven,
  type Handle,
  kit,
  lawful,
  pass,
  questions,
  rowOf,
  use,
} from "../support/driven.ts"
import { ask, bare, calls, plays } from "../support/scripts.ts"

const slow =
  (millis: number): Handle =>
  ({ key }) =>
    Effect.as(Effect.sleep(millis), key)

const read = (handle: Handle, contract: Contract.Options = {}) =>
  kit({ look: [{ effect: "read", ...contract }, handle] })

const second = slow(1_000)

/** Looks three times, a second each, then answers. */
const looking = (wallClock = "10 seconds" as const) => {
  const { toolkit, handlers } = read(second)
  const policy = plays(
    calls(use("look", "1")),
    calls(use("look", "2")),
    calls(use("look", "3")),
    Proposal.finish("done"),
  )
  const agent = Agent.make("a", { policy, toolkit, ...bare })
  return { agent, handlers, budget: { steps: 9, toolCalls: 9, wallClock } }
}

const deciding = (millis: number, turn: Partial<ScriptedModel.Turn> = {}) =>
  ScriptedModel.make([
    { text: "done", usage: { input: 10, output: 5 }, millis, ...turn },
    { text: "done again", usage: { input: 10, output: 5 }, millis },
  ])

describe("pause", () => {
  it.effect("lets what is under way end and be booked, and nothing new begin; resume goes on", () =>
    Effect.gen(function* () {
      const { agent, handlers, budget } = looking()
      yield* driven(agent, { budget }, (handle, events) =>
        Effect.gen(function* () {
          yield* pass(500)
          yield* handle.pause
          yield* pass(3_600_000)
          assert.deepStrictEqual(
            [results(events), all(events, "Held").length, all(events, "Settled").length],
            [["ok"], 2, 2],
          )
          yield* handle.resume
          yield* pass(3_000)
          const outcome = yield* handle.await
          lawful(outcome, events)
          assert.deepStrictEqual([completed(outcome).answer, results(events).length], ["done", 3])
          // Its ten seconds did not pass while it stood still: two more calls, a second each.
          assert.strictEqual(events.at(-1)!.atMillis, 3_602_500)
        }),
      ).pipe(Effect.provide(handlers))
    }),
  )

  it.effect("moves the deadline by as long as it lasts, and no longer", () =>
    Effect.gen(function* () {
      const { toolkit, handlers } = read(() => Effect.never, { timeout: "1 hour", retries: 0 })
      const policy = Policy.make(() => Effect.as(Effect.sleep(1), calls(use("look"))))
      const agent = Agent.make("a", { policy, toolkit, ...bare })
      yield* driven(agent, { budget: { toolCalls: 9, wallClock: "10 seconds" } }, (handle, events) =>
        Effect.gen(function* () {
          yield* handle.pause
          yield* pass(60_000)
          yield* handle.resume
          yield* pass(60_000)
          const outcome = yield* handle.await
          lawful(outcome, events)
          assert.deepStrictEqual([stopped(outcome).reason, events.at(-1)!.atMillis], ["deadline", 70_000])
        }),
      ).pipe(Effect.provide(handlers))
    }),
  )

  it.effect("keeps a tool that runs: its time stands still, also where the deadline would have come", () =>
    Effect.gen(function* () {
      const { toolkit, handlers } = read(slow(60_000), { timeout: "1 hour", retries: 0 })
      const agent = Agent.make("a", { policy: plays(calls(use("look")), Proposal.finish("done")), toolkit, ...bare })
      yield* driven(agent, { budget: { toolCalls: 9, wallClock: "10 seconds" } }, (handle, events) =>
        Effect.gen(function* () {
          yield* pass(1_000)
          yield* handle.pause
          yield* pass(60_000)
          yield* handle.resume
          yield* pass(1_000)
          const outcome = yield* handle.await
          lawful(outcome, events)
          assert.deepStrictEqual([results(events), outcome._tag], [["ok"], "Completed"])
        }),
      ).pipe(Effect.provide(handlers))
    }),
  )

  it.effect("has the decision booked that is under way, though it takes longer than the time that was left", () =>
    Effect.gen(function* () {
      const model = deciding(60_000)
      const agent = Agent.make("a", { policy: Policy.fromModel(model.model), ...bare })
      yield* driven(agent, { budget: { steps: 9, wallClock: "10 seconds" } }, (handle, events) =>
        Effect.gen(function* () {
          yield* pass(1_000)
          yield* handle.pause
          yield* pass(60_000)
          assert.deepStrictEqual([all(events, "Settled").length, model.requests.length], [1, 1])
          // It may have come to its end meanwhile.
          yield* Effect.ignore(handle.resume)
          yield* pass(1_000)
          const outcome = yield* handle.await
          lawful(outcome, events)
          assert.strictEqual(completed(outcome).answer, "done")
          assert.strictEqual(rowOf(outcome).own.inputTokens, 10)
        }),
      )
    }),
  )

  it.effect("keeps a decision that fails meanwhile waiting for its next attempt", () =>
    Effect.gen(function* () {
      const model = deciding(2_000, { fault: { status: 500 } })
      const agent = Agent.make("a", { policy: Policy.fromModel(model.model), ...bare })
      yield* driven(agent, { budget: { steps: 9, wallClock: "1 hour" } }, (handle, events) =>
        Effect.gen(function* () {
          yield* pass(1_000)
          yield* handle.pause
          yield* pass(60_000)
          assert.deepStrictEqual([all(events, "DecisionFailed").length, model.requests.length], [1, 1])
          yield* handle.resume
          yield* pass(60_000)
          const outcome = yield* handle.await
          lawful(outcome, events)
          assert.deepStrictEqual([completed(outcome).answer, model.requests.length], ["done again", 2])
        }),
      )
    }),
  )

  it.effect("during a precondition keeps the call waiting, and refuses it nothing", () =>
    Effect.gen(function* () {
      const preconditions = [{ name: "ready", check: () => Effect.as(Effect.sleep("2 seconds"), true as const) }]
      const { toolkit, handlers } = read(second, { preconditions })
      const agent = Agent.make("a", { policy: plays(calls(use("look")), Proposal.finish("done")), toolkit, ...bare })
      yield* driven(agent, { budget: { toolCalls: 9, wallClock: "1 hour" } }, (handle, events) =>
        Effect.gen(function* () {
          yield* pass(1_000)
          yield* handle.pause
          yield* pass(60_000)
          assert.deepStrictEqual(results(events), [])
          yield* handle.resume
          yield* pass(60_000)
          const outcome = yield* handle.await
          lawful(outcome, events)
          assert.deepStrictEqual([results(events), outcome._tag], [["ok"], "Completed"])
        }),
      ).pipe(Effect.provide(handlers))
    }),
  )

  it.effect("during a child holds that one too, and both go on", () =>
    Effect.gen(function* () {
      const { toolkit, handlers } = read(second)
      const kid = Agent.make("kid", {
        policy: plays(calls(use("look", "1")), calls(use("look", "2")), Proposal.finish("kid")),
        toolkit,
        ...bare,
      })
      const lead = Agent.make("lead", {
        policy: plays(calls(ask("kid")), Proposal.finish("done")),
        children: [Agent.asTool(kid)],
        ...bare,
      })
      yield* driven(lead, { budget: { steps: 20, toolCalls: 20, wallClock: "10 seconds" } }, (handle, events) =>
        Effect.gen(function* () {
          yield* pass(500)
          yield* handle.pause
          yield* pass(3_600_000)
          assert.deepStrictEqual(results(events), ["ok"])
          assert.deepStrictEqual(
            (yield* handle.statement).map((row) => [row.account, row.state]),
            [
              ["lead", "Paused"],
              ["lead/kid-1", "Paused"],
            ],
          )
          yield* handle.resume
          yield* pass(2_000)
          const outcome = yield* handle.await
          lawful(outcome, events)
          assert.deepStrictEqual([completed(outcome).answer, results(events)], ["done", ["ok", "ok", "ok"]])
        }),
      ).pipe(Effect.provide(handlers))
    }),
  )

  it.effect("during a backoff keeps the next attempt waiting", () =>
    Effect.gen(function* () {
      let tries = 0
      const { toolkit, handlers } = read(
        ({ key }) => (tries++ === 0 ? Effect.fail(ToolError.transient("EBUSY", "busy")) : Effect.succeed(key)),
        { backoff: "20 seconds" },
      )
      const agent = Agent.make("a", { policy: plays(calls(use("look")), Proposal.finish("done")), toolkit, ...bare })
      yield* driven(agent, { budget: { toolCalls: 9, wallClock: "1 minute" } }, (handle, events) =>
        Effect.gen(function* () {
          yield* pass(1_000)
          yield* handle.pause
          yield* pass(3_600_000)
          assert.deepStrictEqual([attempts(events), tries], [["look 1"], 1])
          yield* handle.resume
          yield* pass(1_000)
          const outcome = yield* handle.await
          lawful(outcome, events)
          assert.deepStrictEqual(
            [results(events), attempts(events), outcome._tag],
            [["ok"], ["look 1", "look 2"], "Completed"],
          )
        }),
      ).pipe(Effect.provide(handlers))
    }),
  )

  it.effect("during a verification lets it come to its end, however long it takes", () =>
    Effect.gen(function* () {
      const verify = Verifier.make<string>("v", () =>
        Effect.as(Effect.sleep("1 minute"), [{ name: "v", passed: true, detail: "" }]),
      )
      const agent = Agent.make("a", { policy: plays(Proposal.finish("x")), verify, ...bare })
      yield* driven(agent, { budget: { steps: 9, wallClock: "10 seconds" } }, (handle, events) =>
        Effect.gen(function* () {
          yield* pass(1_000)
          yield* handle.pause
          yield* pass(120_000)
          // It may have come to its end meanwhile.
          yield* Effect.ignore(handle.resume)
          yield* pass(1_000)
          const outcome = yield* handle.await
          lawful(outcome, events)
          assert.strictEqual(outcome._tag === "Stopped" ? outcome.reason : outcome._tag, "Completed")
        }),
      )
    }),
  )

  it.effect("while an answer is on its way to its judge keeps the judge waiting", () =>
    Effect.gen(function* () {
      const critic = Agent.make("critic", {
        answer: Agent.Judgement,
        policy: plays(Proposal.finish({ accepted: true, reason: "good" })),
      })
      const policy = Policy.make(() => Effect.as(Effect.sleep("2 seconds"), Proposal.finish("x")))
      const agent = Agent.make("a", { policy, verify: Agent.judge<string, never>(critic) })
      yield* driven(agent, { budget: { steps: 30, wallClock: "1 hour" } }, (handle, events) =>
        Effect.gen(function* () {
          yield* pass(1_000)
          yield* handle.pause
          yield* pass(60_000)
          yield* handle.resume
          yield* pass(60_000)
          const outcome = yield* handle.await
          lawful(outcome, events)
          assert.strictEqual(outcome._tag === "Stopped" ? outcome.reason : outcome._tag, "Completed")
        }),
      )
    }),
  )

  it.effect("a second time is refused, and so is resume without it; afterwards each works again", () =>
    Effect.gen(function* () {
      const { agent, handlers, budget } = looking()
      yield* driven(agent, { budget }, (handle, events) =>
        Effect.gen(function* () {
          assert.strictEqual((yield* Effect.flip(handle.resume)).reason._tag, "NotOpen")
          yield* handle.pause
          const twice = yield* Effect.flip(handle.pause)
          assert.deepInclude(twice.reason, { _tag: "NotOpen", state: "paused" })
          yield* handle.resume
          yield* handle.pause
          yield* handle.resume
          yield* pass(3_000)
          const outcome = yield* handle.await
          lawful(outcome, events)
          assert.strictEqual(outcome._tag, "Completed")
          const over = yield* Effect.all([Effect.flip(handle.pause), Effect.flip(handle.resume)])
          for (const { reason } of over) assert.deepInclude(reason, { _tag: "NotOpen", state: "closed" })
          assert.strictEqual(events.at(-1)!.event._tag, "RunEnded")
        }),
      ).pipe(Effect.provide(handlers))
    }),
  )
})

describe("cancel", () => {
  it.effect("ends a paused run, with everything it had", () =>
    Effect.gen(function* () {
      const { agent, handlers, budget } = looking()
      yield* driven(agent, { budget }, (handle, events) =>
        Effect.gen(function* () {
          yield* pass(500)
          yield* handle.pause
          yield* pass(60_000)
          const outcome = yield* handle.cancel
          lawful(outcome, events)
          assert.deepStrictEqual([stopped(outcome).reason, results(events)], ["cancelled", ["ok"]])
        }),
      ).pipe(Effect.provide(handlers))
    }),
  )

  it.effect("ends a run that waits for a person: its accounts close and its journal says so", () =>
    Effect.gen(function* () {
      const { toolkit, handlers } = read(second, { approval: true })
      const agent = Agent.make("a", { policy: plays(calls(use("look"))), toolkit, ...bare })
      yield* driven(agent, { budget: { toolCalls: 9 } }, (handle, events) =>
        Effect.gen(function* () {
          yield* pass(1_000)
          assert.lengthOf(questions(yield* handle.await), 1)
          const outcome = yield* handle.cancel
          lawful(outcome, events)
          assert.deepStrictEqual([stopped(outcome).reason, results(events)], ["cancelled", ["ECANCELLED"]])
        }),
      ).pipe(Effect.provide(handlers))
    }),
  )

  it.effect("is the same the second time, and after the end", () =>
    Effect.gen(function* () {
      const { agent, handlers, budget } = looking()
      yield* driven(agent, { budget }, (handle, events) =>
        Effect.gen(function* () {
          yield* pass(500)
          const outcome = yield* handle.cancel
          assert.strictEqual(yield* handle.cancel, outcome)
          assert.strictEqual(yield* handle.await, outcome)
          lawful(outcome, events)
          assert.strictEqual(events.at(-1)!.event._tag, "RunEnded")
        }),
      ).pipe(Effect.provide(handlers))
    }),
  )
})

describe("a run that waits for a person", () => {
  it.effect("is not paused by the caller, so it cannot be resumed by the handle", () =>
    Effect.gen(function* () {
      const { toolkit, handlers } = read(second, { approval: true })
      const agent = Agent.make("a", { policy: plays(calls(use("look"))), toolkit, ...bare })
      yield* driven(agent, { budget: { toolCalls: 9 } }, (handle, events) =>
        Effect.gen(function* () {
          yield* pass(1_000)
          const written = events.length
          assert.strictEqual((yield* Effect.flip(handle.pause))._tag, "BudgetError")
          assert.strictEqual((yield* Effect.flip(handle.resume))._tag, "BudgetError")
          const still = events.slice(written).filter(({ event }) => event._tag !== "Refused")
          assert.deepStrictEqual([still, (yield* handle.statement)[0]!.state], [[], "Paused"])
        }),
      ).pipe(Effect.provide(handlers))
    }),
  )
})
