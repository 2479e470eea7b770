import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Tracer from "effect/Tracer"
import { TestClock } from "effect/testing"
import { Agent, Budget, type Event, Journal, Policy, Proposal, Verifier } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import * as Recording from "../support/Recording.ts"
import { interruptAt } from "../support/Interrupting.ts"
import { all, broken, results, settled, stopped, unbalanced } from "../support/journalled.ts"
import { ask, calls, handled, plays, read, toolkit, write } from "../support/scripts.ts"

const usage = { input: 10, output: 5 }

/** Three levels; on each a model or a function decides, reads run side by side, writes in order, and answers are checked. */
const threeLevels = () => {
  const model = ScriptedModel.make([
    {
      calls: [read("a"), read("b"), write("c"), { tool: "nowhere", params: {} }].map(({ tool, params }) => ({
        name: tool,
        params,
      })),
      usage,
    },
    { text: "leaf", usage },
  ])
  const leaf = Agent.make("leaf", {
    policy: Policy.fromModel(model.model, { maxOutputTokens: 5 }),
    toolkit,
    verify: Verifier.predicate<string>("said", ({ answer }) => answer.length > 0),
  })
  const idle = Agent.make("idle", { policy: plays(calls(read("x"), write("y")), Proposal.finish("idle")), toolkit })
  const middle = Agent.make("middle", {
    policy: plays(calls(ask("leaf"), read("m"), ask("idle")), Proposal.finish("middle")),
    toolkit,
    children: [Agent.asTool(leaf), Agent.asTool(idle)],
  })
  return Agent.make("root", {
    policy: plays(calls(ask("middle"), write("r")), Proposal.finish("root")),
    toolkit,
    children: [Agent.asTool(middle)],
  })
}

const yielding = handled({
  read: ({ key }) => Effect.as(Effect.yieldNow, key),
  write: ({ key }) => Effect.as(Effect.yieldNow, key),
})

const budget = { steps: 200, toolCalls: 60, inputTokens: 4000, outputTokens: 1000 }

/** Runs a program with a journal; what it recorded, whatever became of it. */
const recorded = <A, E, R>(program: (events: Array<Event.Recorded>) => Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const events: Array<Event.Recorded> = []
    return program(events).pipe(
      Effect.provideService(Journal.Journal, Journal.toArray(events)),
      Effect.provide(yielding),
      Effect.map((value) => ({ value, events })),
    )
  })

describe("interruption from outside", () => {
  it.effect(
    "at every single operation of a run of three levels: books closed, journal complete",
    () =>
      Effect.gen(function* () {
        const once = (at: number) =>
          recorded(() => interruptAt(Agent.run(threeLevels(), "task", { budget, runId: "run" }), at))
        const { value: operations, events } = yield* once(Infinity)
        assert.deepStrictEqual(broken(events), [])
        assert.strictEqual(all(events, "RunEnded")[0]!.reason, "completed")
        assert.isAbove(operations, 500)
        const endings = new Set<string>()
        for (let at = 1; at <= operations; at++) {
          const { events } = yield* once(at)
          // Before the run began there is nothing to tell.
          if (events.length === 0) continue
          assert.deepStrictEqual(broken(events), [], `interrupted at operation ${at}`)
          const { reason } = all(events, "RunEnded")[0]!
          endings.add(reason)
          if (reason === "cancelled") assert.isAbove(all(events, "Frozen").length, 0, `operation ${at}`)
        }
        assert.deepStrictEqual([...endings].toSorted(), ["cancelled", "completed"])
      }),
    30_000,
  )

  it.effect("leaves no span open and none without its parent", () =>
    Effect.gen(function* () {
      const once = (at: number) => {
        const { tracer, spans } = Recording.make()
        return recorded(() => interruptAt(Agent.run(threeLevels(), "task", { budget }), at)).pipe(
          Effect.provideService(Tracer.Tracer, tracer),
          Effect.map(({ value }) => ({ operations: value, spans })),
        )
      }
      const { operations } = yield* once(Infinity)
      for (let at = 1; at <= operations; at += 5) {
        const { spans } = yield* once(at)
        const ids = new Set(spans.map((span) => span.spanId))
        const open = spans.filter((span) => Recording.statusOf(span) === "open")
        const roots = spans.filter((span) => span.parent === undefined || !ids.has(span.parent))
        assert.deepStrictEqual([open.length, roots.length <= 1], [0, true], `interrupted at operation ${at}`)
      }
    }),
  )

  it.effect("is possible at every operation of the caller of spawn, too", () =>
    Effect.gen(function* () {
      const once = (at: number) =>
        recorded(() =>
          interruptAt(
            Effect.scoped(Effect.flatMap(Agent.spawn(threeLevels(), "task", { budget }), (handle) => handle.await)),
            at,
          ),
        )
      for (let at = 1; at <= 300; at++) {
        const { events } = yield* once(at)
        if (events.length > 0) assert.deepStrictEqual(broken(events), [], `interrupted at operation ${at}`)
      }
    }),
  )

  it.effect("an outer timeout ends children of children, leaves first", () =>
    Effect.gen(function* () {
      const slow = handled({ read: () => Effect.never })
      const { value, events } = yield* recorded(() =>
        Effect.gen(function* () {
          const fiber = yield* Agent.run(threeLevels(), "task", { budget }).pipe(
            Effect.timeoutOption("3 seconds"),
            Effect.provide(slow),
            Effect.forkChild,
          )
          yield* settled
          yield* TestClock.adjust("1 minute")
          return yield* Fiber.join(fiber)
        }),
      )
      assert.isTrue(value._tag === "None")
      assert.deepStrictEqual(broken(events), [])
      assert.strictEqual(events.at(-1)!.atMillis, 3000)
      assert.deepStrictEqual(
        all(events, "AgentEnded").map(({ agent, reason }) => [agent, reason]),
        [
          ["root/middle-1/leaf-1", "cancelled"],
          ["root/middle-1/idle-1", "cancelled"],
          ["root/middle-1", "cancelled"],
          ["root", "cancelled"],
        ].toSorted(([a], [b]) => b!.length - a!.length),
      )
      assert.deepStrictEqual(
        all(events, "Closed")
          .map((one) => one.account)
          .at(-1),
        "root",
      )
    }),
  )

  it.effect("freezes the tree before it interrupts, so that no retry slips in between", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([{ fault: { status: 500 } }, { text: "never", usage }])
      const agent = Agent.make("root", { policy: Policy.fromModel(model.model, { maxOutputTokens: 5 }) })
      const { events } = yield* recorded(() =>
        Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(Agent.run(agent, "task", { budget }))
          yield* TestClock.adjust("100 millis")
          yield* Fiber.interrupt(fiber)
        }),
      )
      assert.strictEqual(model.requests.length, 1)
      assert.deepStrictEqual(broken(events), [])
      const frozen = events.findIndex(({ event }) => event._tag === "Frozen")
      const ended = events.findIndex(({ event }) => event._tag === "AgentEnded")
      assert.isTrue(frozen > 0 && frozen < ended)
    }),
  )

  it.effect(
    "a handler that does not let itself be interrupted is left behind after a while, and the books are right",
    () =>
      Effect.gen(function* () {
        const stubborn = handled({
          write: ({ key }) => Effect.uninterruptible(Effect.as(Effect.sleep("1 minute"), key)),
        })
        const agent = Agent.make("root", { policy: plays(calls(write("x"))), toolkit })
        const { events } = yield* recorded(() =>
          Effect.gen(function* () {
            const fiber = yield* Effect.forkChild(Agent.run(agent, "task", { budget }).pipe(Effect.provide(stubborn)))
            yield* settled
            yield* TestClock.adjust("1 second")
            const interrupting = yield* Effect.forkChild(Fiber.interrupt(fiber))
            yield* TestClock.adjust("2 minutes")
            yield* Fiber.join(interrupting)
          }),
        )
        assert.deepStrictEqual(broken(events), [])
        // A second, and ten more for it to end in.
        assert.strictEqual(events.at(-1)!.atMillis, 11_000)
        // It ran, whatever came of it: the call is booked.
        assert.deepStrictEqual(results(events), ["ECANCELLED"])
        assert.deepStrictEqual(all(events, "Closed")[0]!.own, { steps: 1, ticks: 1, toolCalls: 1 })
      }),
  )

  it.effect("a run in a region that must not be interrupted is run to its end", () =>
    Effect.gen(function* () {
      const agent = Agent.make("root", { policy: plays(calls(read("x")), Proposal.finish("done")), toolkit })
      const slow = handled({ read: ({ key }) => Effect.as(Effect.sleep("5 seconds"), key) })
      const { events } = yield* recorded(() =>
        Effect.gen(function* () {
          const run = Agent.run(agent, "task", { budget }).pipe(Effect.provide(slow), Effect.uninterruptible)
          const fiber = yield* Effect.forkChild(run, { startImmediately: true })
          const interrupting = yield* Effect.forkChild(Fiber.interrupt(fiber), { startImmediately: true })
          yield* TestClock.adjust("1 minute")
          yield* Fiber.join(interrupting)
        }),
      )
      assert.strictEqual(all(events, "RunEnded")[0]!.reason, "completed")
      assert.deepStrictEqual(broken(events), [])
    }),
  )
})

describe("a handle", () => {
  const hanging = (reached: Deferred.Deferred<void>) =>
    handled({ read: () => Effect.andThen(Deferred.succeed(reached, undefined), Effect.never) })

  it.effect("cancels the whole tree and answers with everything that was kept", () =>
    Effect.gen(function* () {
      const reached = yield* Deferred.make<void>()
      const { value: outcome, events } = yield* recorded(() =>
        Effect.scoped(
          Effect.gen(function* () {
            const handle = yield* Agent.spawn(threeLevels(), "task", { budget })
            yield* Deferred.await(reached)
            yield* settled
            return yield* handle.cancel
          }),
        ).pipe(Effect.provide(hanging(reached))),
      )
      assert.strictEqual(stopped(outcome).reason, "cancelled")
      assert.deepStrictEqual([...broken(events), ...unbalanced(outcome.report.accounts)], [])
      assert.deepStrictEqual(
        outcome.report.ends.map((one) => one.reason),
        ["cancelled", "cancelled", "cancelled", "cancelled"],
      )
      assert.isAbove(outcome.report.accounts.find((row) => row.name === "leaf")!.own.inputTokens, 0)
    }),
  )

  it.effect("cancels one agent of the tree: its parent gets a result and goes on", () =>
    Effect.gen(function* () {
      const reached = yield* Deferred.make<void>()
      const child = Agent.make("child", { policy: plays(calls(read("x"))), toolkit })
      const parent = Agent.make("parent", {
        policy: plays(calls(ask("child"), ask("child")), Proposal.finish("done")),
        children: [Agent.asTool(child)],
      })
      const { value: outcome, events } = yield* recorded(() =>
        Effect.scoped(
          Effect.gen(function* () {
            const handle = yield* Agent.spawn(parent, "task", { budget })
            yield* Deferred.await(reached)
            yield* handle.cancelAgent("parent/child-1")
            yield* TestClock.adjust("1 minute")
            return yield* handle.await
          }),
        ).pipe(Effect.provide(hanging(reached))),
      )
      assert.strictEqual(outcome._tag, "Completed")
      assert.deepStrictEqual(
        outcome.report.ends.map(({ agent, reason }) => [agent, reason]),
        [
          ["parent", "completed"],
          ["parent/child-1", "cancelled"],
          ["parent/child-2", "no_progress"],
        ],
      )
      assert.deepStrictEqual([...broken(events), ...unbalanced(outcome.report.accounts)], [])
      assert.include(results(events), "ESTOPPED")
    }),
  )

  it.effect("is cancelled by the end of its scope, and a child never outlives it", () =>
    Effect.gen(function* () {
      const reached = yield* Deferred.make<void>()
      const { events } = yield* recorded(() =>
        Effect.scoped(Effect.andThen(Agent.spawn(threeLevels(), "task", { budget }), Deferred.await(reached))).pipe(
          Effect.provide(hanging(reached)),
        ),
      )
      assert.deepStrictEqual(broken(events), [])
      assert.strictEqual(all(events, "RunEnded")[0]!.reason, "cancelled")
      const length = events.length
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(events.length, length)
    }),
  )

  it.effect("of a run that has ended adds nothing to its journal", () =>
    Effect.gen(function* () {
      const { value: error, events } = yield* recorded(() =>
        Effect.scoped(
          Effect.gen(function* () {
            const agent = Agent.make("root", { policy: plays(Proposal.finish("done")) })
            const handle = yield* Agent.spawn(agent, "task", { budget: { steps: 10 } })
            yield* handle.await
            assert.strictEqual((yield* handle.cancel)._tag, "Completed")
            yield* handle.cancelAgent("root")
            return yield* Effect.flip(handle.amend({ steps: 20 }))
          }),
        ),
      )
      assert.strictEqual(error._tag === "BudgetError" && error.reason._tag, "NotOpen")
      assert.deepStrictEqual(broken(events), [])
    }),
  )

  it.effect("shows the books while it runs, and changes the caps", () =>
    Effect.gen(function* () {
      const reached = yield* Deferred.make<void>()
      const { value } = yield* recorded(() =>
        Effect.scoped(
          Effect.gen(function* () {
            const agent = Agent.make("root", { policy: plays(calls(read("x"))), toolkit })
            const handle = yield* Agent.spawn(agent, "task", { budget: { steps: 10 } })
            yield* Deferred.await(reached)
            yield* handle.amend({ steps: 20 })
            return yield* handle.statement
          }),
        ).pipe(Effect.provide(hanging(reached))),
      )
      assert.strictEqual(value[0]!.granted.steps, 20)
      assert.deepStrictEqual(Budget.imbalances(value), [])
    }),
  )
})
