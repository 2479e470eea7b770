import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Tracer from "effect/Tracer"
import { Agent, type Budget, type Event, Journal, Policy, Proposal } from "../../src/index.ts"
import { pass } from "../support/driven.ts"
import { ask, bare, calls, plays } from "../support/scripts.ts"
import * as InMemory from "./InMemory.ts"
import { broken, inside, trees } from "./laws.ts"
import { byTrace, type Row } from "./Row.ts"

const traced = (agent: Agent.Agent<string>, budget: Budget.Input, limits?: Budget.Limits) =>
  Effect.gen(function* () {
    const { tracer, rows } = InMemory.make()
    const events: Array<Event.Recorded> = []
    yield* Effect.scoped(
      Effect.gen(function* () {
        const handle = yield* Agent.spawn(agent, "task", { budget, ...(limits === undefined ? {} : { limits }) })
        yield* pass(3 * 3_600_000)
        const outcome = yield* handle.await
        assert.strictEqual(outcome._tag, "Completed")
      }),
    ).pipe(
      Effect.provideService(Tracer.Tracer, tracer),
      Effect.provideService(Journal.Journal, Journal.toArray(events)),
    )
    assert.deepStrictEqual(broken(rows(), events), [])
    return rows()
  })

const rootsOf = (rows: ReadonlyArray<Row>): ReadonlyArray<string> =>
  rows.filter(({ parentId }) => parentId === undefined).map(({ name }) => name)

const leaf = Agent.make("leaf", { policy: plays(Proposal.finish("done")), ...bare })

describe("a large run", () => {
  it.effect("goes on in further traces, each with one root and at most 2,000 spans", () =>
    Effect.gen(function* () {
      const many = Array.from({ length: 1_500 }, () => ask("leaf"))
      const agent = Agent.make("lead", {
        policy: plays(Proposal.callAll(many), Proposal.finish("done")),
        children: [Agent.asTool(leaf)],
        ...bare,
      })
      const rows = yield* traced(agent, { steps: 10_000, toolCalls: 10_000 }, { maxDepth: 8, maxOpenChildren: 2_000 })
      // A call, an agent, the mark of its start and one step for each child.
      const traces = [...byTrace(rows).values()]
      assert.isAtLeast(traces.length, Math.ceil((1_500 * 4) / 2_000))
      assert.deepStrictEqual(rootsOf(rows).toSorted(), [
        ...Array.from({ length: traces.length - 1 }, () => "bursar.continuation"),
        "invoke_agent lead",
      ])
      // One search by run finds all of them.
      for (const root of rows.filter(({ parentId }) => parentId === undefined)) {
        assert.isString(root.attributes["bursar.run.id"])
      }
    }),
  )

  it.effect("whose parts end one after the other, all at work at once, ends no trace before what is in it", () =>
    Effect.gen(function* () {
      let begun = 0
      const sleeper = Agent.make("leaf", {
        policy: Policy.make(() => Effect.suspend(() => Effect.as(Effect.sleep(1 + begun++), Proposal.finish("done")))),
        ...bare,
      })
      const many = Array.from({ length: 1_500 }, () => ask("leaf"))
      const agent = Agent.make("lead", {
        policy: plays(Proposal.callAll(many), Proposal.finish("done")),
        children: [Agent.asTool(sleeper)],
        settings: { concurrency: { calls: many.length, effects: "ordered" } },
        ...bare,
      })
      const rows = yield* traced(agent, { steps: 10_000, toolCalls: 10_000 }, { maxDepth: 8, maxOpenChildren: 2_000 })
      assert.isAbove(byTrace(rows).size, 3)
    }),
  )

  it.effect("below a span of somebody else ends every trace that it goes on in", () =>
    Effect.gen(function* () {
      const { rows, tracer } = InMemory.make()
      const few = Agent.make("lead", {
        policy: Policy.make((view) => (view.step < 1_000 ? Proposal.invalid(`${view.step}`) : Proposal.finish("done"))),
        settings: { invalidDecisions: 10_000 },
        ...bare,
      })
      const run = (runId: string) => Agent.run(few, "task", { budget: { steps: 10_000 }, runId })
      yield* Effect.forEach(["one", "two", "three"], run, { discard: true }).pipe(
        Effect.withSpan("the program"),
        Effect.provideService(Tracer.Tracer, tracer),
      )
      assert.isAbove(byTrace(rows()).size, 1)
      assert.deepStrictEqual([...trees(rows()), ...inside(rows())], [])
    }),
  )

  it.effect("of a single agent with many steps does so too", () =>
    Effect.gen(function* () {
      const policy = Policy.make((view) =>
        view.step < 2_500 ? Proposal.invalid(`${view.step}`) : Proposal.finish("done"),
      )
      const agent = Agent.make("lead", { policy, settings: { invalidDecisions: 10_000 }, ...bare })
      const rows = yield* traced(agent, { steps: 10_000 })
      assert.strictEqual(rows.filter(({ name }) => name === "bursar.step").length, 2_500)
      assert.isAbove(byTrace(rows).size, 1)
    }),
  )

  it.effect("that is deep goes on in a trace that is not", () =>
    Effect.gen(function* () {
      const deepest = Array.from({ length: 30 }).reduce<Agent.Agent<string>>(
        (below, _, index) =>
          Agent.make(`level-${index}`, {
            policy: plays(calls(ask(below.name)), Proposal.finish("done")),
            children: [Agent.asTool(below)],
            ...bare,
          }),
        leaf,
      )
      const rows = yield* traced(deepest, { steps: 10_000, toolCalls: 100 }, { maxDepth: 40, maxOpenChildren: 10 })
      assert.deepStrictEqual(rootsOf(rows), ["invoke_agent level-29", "bursar.continuation"])
    }),
  )

  it.effect("that takes more than an hour goes on in a trace that starts then", () =>
    Effect.gen(function* () {
      const slow = Policy.make((view) =>
        view.step < 4
          ? Effect.as(Effect.sleep("40 minutes"), Proposal.invalid("wait"))
          : Effect.succeed(Proposal.finish("x")),
      )
      const rows = yield* traced(Agent.make("lead", { policy: slow, ...bare }), { steps: 9 })
      const [root, continuation] = rows.filter(({ parentId }) => parentId === undefined)
      assert.deepStrictEqual(
        [root, continuation].map((row) => row?.name),
        ["invoke_agent lead", "bursar.continuation"],
      )
      assert.deepStrictEqual(continuation?.links, [
        { traceId: root!.traceId, spanId: root!.spanId, attributes: { "bursar.link": "continues" } },
      ])
      // Steps 1 and 2 started within the hour.
      assert.deepStrictEqual(
        rows
          .filter(({ name, traceId }) => name === "bursar.step" && traceId === continuation!.traceId)
          .map(({ attributes }) => attributes["bursar.step.index"]),
        [3, 4],
      )
    }),
  )
})
