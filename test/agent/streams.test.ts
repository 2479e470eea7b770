import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import { Agent, type Event, Journal, Policy, Proposal } from "../../src/index.ts"
import { all, broken, results, settled, stopped } from "../support/journalled.ts"
import { completed, driven, type Handle, kit, lawful, pass, rowOf, use } from "../support/driven.ts"
import { ask, bare, calls, plays } from "../support/scripts.ts"

const second: Handle = ({ key }) => Effect.as(Effect.sleep("1 second"), key)

/** Looks so often, a second each, then answers. */
const looking = (times: number) => {
  const { toolkit, handlers } = kit({ look: [{ effect: "read" }, second] })
  const policy = Policy.make((view) =>
    view.turns.length < times ? calls(use("look", `${view.step}`)) : Proposal.finish("done"),
  )
  return { agent: Agent.make("a", { policy, toolkit, ...bare }), handlers, budget: { steps: 99, toolCalls: 99 } }
}

describe("the caps of a run", () => {
  it.effect("are raised while it runs: what would have stopped it does not", () =>
    Effect.gen(function* () {
      const { agent, handlers } = looking(4)
      for (const raised of [false, true]) {
        yield* driven(agent, { budget: { steps: 3, toolCalls: 99 } }, (handle, events) =>
          Effect.gen(function* () {
            yield* pass(500)
            if (raised) yield* handle.amend({ steps: 5 })
            yield* pass(10_000)
            const outcome = yield* handle.await
            lawful(outcome, events)
            assert.strictEqual(
              outcome._tag === "Stopped" ? outcome.reason : outcome._tag,
              raised ? "Completed" : "budget:steps",
            )
            assert.strictEqual(rowOf(outcome).granted.steps, raised ? 5 : 3)
          }),
        ).pipe(Effect.provide(handlers))
      }
    }),
  )

  it.effect("are lowered to no less than what is spoken for", () =>
    Effect.gen(function* () {
      const { agent, handlers } = looking(4)
      yield* driven(agent, { budget: { steps: 9, toolCalls: 9 } }, (handle, events) =>
        Effect.gen(function* () {
          yield* pass(1_500)
          yield* handle.amend({ toolCalls: 0, steps: 3 })
          yield* pass(10_000)
          const outcome = yield* handle.await
          lawful(outcome, events)
          assert.deepStrictEqual([rowOf(outcome).granted.toolCalls, stopped(outcome).reason], [2, "budget:tool_calls"])
        }),
      ).pipe(Effect.provide(handlers))
    }),
  )

  it.effect("that were never set, or make no sense, are refused; so is any change after the end", () =>
    Effect.gen(function* () {
      const { agent, handlers } = looking(1)
      yield* driven(agent, { budget: { steps: 9 } }, (handle, events) =>
        Effect.gen(function* () {
          assert.strictEqual((yield* Effect.flip(handle.amend({ toolCalls: 3 }))).reason._tag, "InvalidAmount")
          assert.strictEqual((yield* Effect.flip(handle.amend({ steps: -1 }))).reason._tag, "InvalidAmount")
          yield* pass(2_000)
          const written = events.length
          const over = yield* Effect.flip(handle.amend({ steps: 20 }))
          assert.deepInclude(over.reason, { _tag: "NotOpen", state: "closed" })
          lawful(yield* handle.await, events)
          assert.strictEqual(events.length, written)
        }),
      ).pipe(Effect.provide(handlers))
    }),
  )
})

describe("a child", () => {
  const family = () => {
    const { agent: kid, handlers } = looking(4)
    const lead = Agent.make("lead", {
      policy: plays(calls(ask("a")), Proposal.finish("done")),
      children: [Agent.asTool(kid, { ask: { steps: 3, toolCalls: 9 } })],
      ...bare,
    })
    return { lead, handlers }
  }

  it.effect("is topped up from what its parent has left, and goes on", () =>
    Effect.gen(function* () {
      const { lead, handlers } = family()
      for (const more of [0, 2]) {
        yield* driven(lead, { budget: { steps: 20, toolCalls: 20 } }, (handle, events) =>
          Effect.gen(function* () {
            yield* pass(1_500)
            if (more > 0) yield* handle.topUp("lead/a-1", { steps: more })
            yield* pass(10_000)
            const outcome = yield* handle.await
            lawful(outcome, events)
            const end = outcome.report.ends.find((one) => one.name === "a")!
            assert.strictEqual(end.reason, more > 0 ? "completed" : "budget:steps")
            assert.strictEqual(rowOf(outcome, "lead/a-1").granted.steps, 3 + more)
            assert.strictEqual(rowOf(outcome).left.steps, 20 - 2 - (3 + more))
          }),
        ).pipe(Effect.provide(handlers))
      }
    }),
  )

  it.effect("is not topped up with more than there is, and not once it has ended", () =>
    Effect.gen(function* () {
      const { lead, handlers } = family()
      yield* driven(lead, { budget: { steps: 20, toolCalls: 20 } }, (handle, events) =>
        Effect.gen(function* () {
          yield* pass(1_500)
          const tooMuch = yield* Effect.flip(handle.topUp("lead/a-1", { steps: 17 }))
          assert.strictEqual(tooMuch.reason._tag, "Insufficient")
          yield* handle.topUp("lead/a-1", { steps: 16 })
          yield* pass(10_000)
          assert.strictEqual((yield* Effect.flip(handle.topUp("lead/a-1", { steps: 1 }))).reason._tag, "NotOpen")
          lawful(yield* handle.await, events)
        }),
      ).pipe(Effect.provide(handlers))
    }),
  )

  it.effect("is cancelled alone: its parent goes on without it", () =>
    Effect.gen(function* () {
      const { lead, handlers } = family()
      yield* driven(lead, { budget: { steps: 20, toolCalls: 20 } }, (handle, events) =>
        Effect.gen(function* () {
          yield* pass(1_500)
          yield* handle.cancelAgent("lead/a-1")
          yield* settled
          const outcome = yield* handle.await
          lawful(outcome, events)
          assert.strictEqual(completed(outcome).answer, "done")
          assert.deepStrictEqual(
            outcome.report.ends.map((one) => [one.agent, one.reason]),
            [
              ["lead", "completed"],
              ["lead/a-1", "cancelled"],
            ],
          )
          assert.deepStrictEqual(results(events), ["ok", "ECANCELLED", "ESTOPPED"])
        }),
      ).pipe(Effect.provide(handlers))
    }),
  )
})

describe("the events of a handle", () => {
  it.effect("are those from now on, every one, in order, until the end", () =>
    Effect.gen(function* () {
      const { agent, handlers, budget } = looking(30)
      yield* driven(agent, { budget }, (handle, events) =>
        Effect.gen(function* () {
          yield* pass(500)
          const from = events.length
          const fiber = yield* Effect.forkChild(Stream.runCollect(handle.events))
          yield* pass(60_000)
          const seen = yield* Fiber.join(fiber)
          lawful(yield* handle.await, events)
          assert.deepStrictEqual(
            seen,
            events.slice(from).map(({ event }) => event),
          )
          assert.strictEqual(seen.at(-1)!._tag, "RunEnded")
        }),
      ).pipe(Effect.provide(handlers))
    }),
  )

  it.effect("are none after the end, and one who stops listening disturbs nobody", () =>
    Effect.gen(function* () {
      const { agent, handlers, budget } = looking(3)
      yield* driven(agent, { budget }, (handle, events) =>
        Effect.gen(function* () {
          const few = yield* Effect.forkChild(Stream.runCollect(Stream.take(handle.events, 2)))
          yield* pass(10_000)
          assert.lengthOf(yield* Fiber.join(few), 2)
          const outcome = yield* handle.await
          lawful(outcome, events)
          assert.strictEqual(outcome._tag, "Completed")
          assert.deepStrictEqual(yield* Stream.runCollect(handle.events), [])
        }),
      ).pipe(Effect.provide(handlers))
    }),
  )
})

describe("Agent.stream", () => {
  it.effect("yields every event from RunStarted to RunEnded in order, however slow its reader is", () =>
    Effect.gen(function* () {
      for (const millis of [0, 700]) {
        const { agent, handlers, budget } = looking(20)
        const kept: Array<Event.Recorded> = []
        const reading = Agent.stream(agent, "task", { budget, runId: "run" }).pipe(
          Stream.tap(() => (millis === 0 ? Effect.void : Effect.sleep(millis))),
          Stream.runCollect,
          Effect.provideService(Journal.Journal, Journal.toArray(kept)),
          Effect.provide(handlers),
        )
        const fiber = yield* Effect.forkChild(reading)
        yield* settled
        yield* TestClock.adjust("1 day")
        const seen = yield* Fiber.join(fiber)
        assert.deepStrictEqual(broken(seen), [])
        assert.deepStrictEqual(
          seen.map(({ seq, event }) => [seq, event]),
          kept.map(({ seq, event }) => [seq, event]),
        )
        assert.strictEqual(results(seen).length, 20)
      }
    }),
  )

  it.effect("yields them as they happen", () =>
    Effect.gen(function* () {
      const { agent, handlers, budget } = looking(3)
      const seen: Array<string> = []
      const fiber = yield* Agent.stream(agent, "task", { budget }).pipe(
        Stream.runForEach(({ event }) => Effect.sync(() => void seen.push(event._tag))),
        Effect.provide(handlers),
        Effect.forkChild,
      )
      yield* pass(1_500)
      assert.deepStrictEqual(
        seen.filter((one) => one === "CallEnded" || one === "RunEnded"),
        ["CallEnded"],
      )
      yield* pass(10_000)
      yield* Fiber.join(fiber)
      assert.strictEqual(seen.at(-1), "RunEnded")
    }),
  )

  it.effect("that is ended early cancels the run, whose journal is complete all the same", () =>
    Effect.gen(function* () {
      const { agent, handlers, budget } = looking(20)
      const kept: Array<Event.Recorded> = []
      const fiber = yield* Agent.stream(agent, "task", { budget }).pipe(
        Stream.takeUntil(({ event }) => event._tag === "CallEnded"),
        Stream.runCollect,
        Effect.provideService(Journal.Journal, Journal.toArray(kept)),
        Effect.provide(handlers),
        Effect.forkChild,
      )
      yield* pass(60_000)
      assert.strictEqual((yield* Fiber.join(fiber)).at(-1)!.event._tag, "CallEnded")
      assert.deepStrictEqual(broken(kept), [])
      assert.strictEqual(all(kept, "RunEnded")[0]!.reason, "cancelled")
    }),
  )

  it.effect("fails like a run that cannot be opened", () =>
    Effect.gen(function* () {
      const { agent, handlers } = looking(1)
      const failure = yield* Agent.stream(agent, "task", { budget: { steps: -1 } }).pipe(
        Stream.runDrain,
        Effect.provide(handlers),
        Effect.flip,
      )
      assert.strictEqual(failure._tag, "BudgetError")
    }),
  )

  it.effect("ends where the run waits for a person", () =>
    Effect.gen(function* () {
      const { toolkit, handlers } = kit({ look: [{ effect: "read", approval: true }, second] })
      const agent = Agent.make("a", { policy: plays(calls(use("look"))), toolkit, ...bare })
      const seen = yield* Agent.stream(agent, "task", { budget: { steps: 9 } }).pipe(
        Stream.runCollect,
        Effect.provide(handlers),
      )
      assert.strictEqual(seen.at(-1)!.event._tag, "RunSuspended")
    }),
  )
})

describe("Agent.answer", () => {
  it.effect("is the answer, or fails with NoAnswer and why there is none", () =>
    Effect.gen(function* () {
      const of = (policy: Policy.Policy) => {
        const { toolkit, handlers } = kit({ look: [{ effect: "read" }, ({ key }) => Effect.succeed(key)] })
        const agent = Agent.make("a", { policy, toolkit, ...bare })
        return Agent.answer(agent, "task", { budget: { steps: 3 }, runId: "r" }).pipe(Effect.provide(handlers))
      }
      assert.strictEqual(yield* of(plays(Proposal.finish("42"))), "42")
      const stop = yield* Effect.flip(of(plays(calls(use("look")))))
      assert.deepInclude(stop, { _tag: "NoAnswer", run: "r", reason: "budget:steps" })
    }),
  )

  it.effect("names the question where the run waits for a person", () =>
    Effect.gen(function* () {
      const { toolkit, handlers } = kit({
        look: [{ effect: "read", approval: true }, ({ key }) => Effect.succeed(key)],
      })
      const agent = Agent.make("a", { policy: plays(calls(use("look"))), toolkit, ...bare })
      const waits = yield* Effect.flip(Agent.answer(agent, "task", { budget: { steps: 3 }, runId: "r" })).pipe(
        Effect.provide(handlers),
      )
      assert.deepInclude(waits, { _tag: "NoAnswer", run: "r", reason: "suspended" })
      assert.include(waits.message, "look: its contract asks for approval")
    }),
  )
})
