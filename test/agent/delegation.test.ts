import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import { Agent, type Budget, type Event, Journal, Policy, Proposal, type State } from "../../src/index.ts"
import { all, run, stopped, whole } from "../support/journalled.ts"
import { ask, bare, calls, explorer, handled, plays, read, toolkit } from "../support/scripts.ts"

const times = (count: number, tool: string) => calls(...Array.from({ length: count }, () => ask(tool)))

/** A parent without reserves that asks once and then finishes with what it saw. */
const parentOf = <R>(
  asked: Proposal.Proposal,
  children: ReadonlyArray<Agent.Child<R>>,
  seen: Array<State.Observation> = [],
) =>
  Agent.make("parent", {
    policy: plays(asked, (view) => {
      seen.push(...view.turns.flatMap((turn) => turn.observations))
      return Proposal.finish("done")
    }),
    children,
    ...bare,
  })

const quick = Agent.make("quick", { policy: plays(Proposal.finish("found")), ...bare })

const grants = (events: ReadonlyArray<Event.Recorded>, dimension: Budget.Dimension) =>
  all(events, "Carved").map((carved) => carved.grant[dimension])

describe("fan-out", () => {
  it.effect("flagship: eight children asked for in one reply under nine tool calls never make sixteen", () =>
    Effect.gen(function* () {
      const greedy = Agent.make("greedy", {
        policy: Policy.make((view) => calls(read(`a ${view.step}`), read(`b ${view.step}`))),
        toolkit,
        ...bare,
      })
      const parent = parentOf(times(8, "greedy"), [Agent.asTool(greedy)])
      const { outcome, events } = whole(yield* run(parent, { toolCalls: 9, steps: 100 }))
      const started = all(events, "CallStarted").length
      assert.isAtMost(started, 9)
      const used = outcome.report.accounts.reduce((sum, row) => sum + row.own.toolCalls, 0)
      assert.strictEqual(used, started)
      assert.strictEqual(outcome._tag, "Completed")
      // Eight starts and nothing to start with: every child is open, and none of them can call a tool.
      assert.deepStrictEqual(grants(events, "toolCalls"), [0, 0, 0, 0, 0, 0, 0, 0])
    }).pipe(Effect.provide(handled())),
  )

  it.effect("calls are admitted in order: a child asked for before a tool keeps its place", () =>
    Effect.gen(function* () {
      const parent = Agent.make("parent", {
        policy: plays(calls(ask("quick"), ask("quick"), read("a"), read("b")), Proposal.finish("done")),
        toolkit,
        children: [Agent.asTool(quick)],
        ...bare,
      })
      const { events } = whole(yield* run(parent, { toolCalls: 3, steps: 50 }))
      const ended = new Map(all(events, "CallEnded").map((one) => [one.call, one.code ?? one.outcome]))
      assert.deepStrictEqual(
        [1, 2, 3, 4].map((index) => ended.get(`step-1/call-${index}`)),
        ["ok", "ok", "ok", "EBUDGET"],
      )
    }).pipe(Effect.provide(handled())),
  )

  it.effect("children of one reply get equal parts, not a shrinking series", () =>
    Effect.gen(function* () {
      const { events } = whole(
        yield* run(parentOf(times(4, "quick"), [Agent.asTool(quick)]), { steps: 41, toolCalls: 44 }),
      )
      assert.deepStrictEqual(grants(events, "steps"), [10, 10, 10, 10])
      assert.deepStrictEqual(grants(events, "toolCalls"), [10, 10, 10, 10])
    }),
  )

  it.effect("those whose least does not fit any more are refused before anything is spent", () =>
    Effect.gen(function* () {
      const seen: Array<State.Observation> = []
      const parent = parentOf(times(5, "quick"), [Agent.asTool(quick, { atLeast: { steps: 3 } })], seen)
      const { events } = whole(yield* run(parent, { steps: 11, toolCalls: 20 }))
      assert.deepStrictEqual(
        seen.map((one) => one.error?.code ?? "ok"),
        ["ok", "ok", "ok", "EBUDGET", "EBUDGET"],
      )
      assert.deepStrictEqual(grants(events, "steps"), [3, 3, 3])
      const refused = events.findIndex(({ event }) => event._tag === "Refused")
      const started = events.findIndex(({ event }) => event._tag === "CallStarted")
      assert.isTrue(refused > 0 && refused < started)
    }),
  )

  it.effect("never run more side by side than the cap says", () =>
    Effect.gen(function* () {
      let [running, most] = [0, 0]
      const slow = Agent.make("slow", {
        policy: Policy.make(() =>
          Effect.gen(function* () {
            most = Math.max(most, ++running)
            yield* Effect.sleep("1 second")
            running--
            return Proposal.finish("done")
          }),
        ),
        ...bare,
      })
      const parent = Agent.make("parent", {
        policy: plays(times(7, "slow"), Proposal.finish("done")),
        children: [Agent.asTool(slow)],
        ...bare,
        settings: { concurrency: { calls: 3, effects: "ordered" } },
      })
      const { events } = whole(yield* run(parent, { steps: 100, toolCalls: 100 }))
      assert.strictEqual(most, 3)
      assert.strictEqual(events.at(-1)!.atMillis, 3000)
    }),
  )
})

describe("what a child gets", () => {
  const given = (options: Agent.ChildOptions, asked = times(1, "quick"), budget: Budget.Input = { steps: 101 }) =>
    Effect.map(run(parentOf(asked, [Agent.asTool(quick, options)]), { toolCalls: 100, ...budget }), (ran) =>
      grants(whole(ran).events, "steps"),
    )

  it.effect("share: that part of the parent's explore as it stood when the batch was admitted, for each of them", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* given({ share: 0.2 }), [20])
      assert.deepStrictEqual(yield* given({ share: 0.2 }, times(3, "quick")), [20, 20, 20])
      assert.deepStrictEqual(yield* given({ share: 0.6 }, times(2, "quick")), [50, 50])
      assert.deepStrictEqual(yield* given({ share: 1 }), [100])
    }),
  )

  it.effect("share: exact where floats are not", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* given({ share: 0.29 }), [29])
      assert.deepStrictEqual(yield* given({ share: 0.57 }), [57])
      assert.deepStrictEqual(yield* given({ share: 0.005 }, times(1, "quick"), { steps: 1001 }), [5])
    }),
  )

  it("share: nothing but a part", () => {
    for (const share of [0, -0.1, 1.1, Number.NaN, 1e-9]) assert.throws(() => Agent.asTool(quick, { share }), /share/)
  })

  it.effect("ask: those amounts, or a refusal; what it leaves out is an equal part", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* given({ ask: { steps: 7 } }, times(2, "quick")), [7, 7])
      assert.deepStrictEqual(yield* given({ ask: { steps: 60 } }, times(2, "quick")), [60])
      assert.deepStrictEqual(yield* given({ ask: { toolCalls: 1 } }, times(2, "quick")), [50, 50])
    }),
  )

  it.effect("ask: an equal part also beside children that ask for nothing, in whatever order", () =>
    Effect.gen(function* () {
      const other = Agent.make("other", { policy: plays(Proposal.finish("found")), ...bare })
      const children = [Agent.asTool(quick), Agent.asTool(other, { ask: { toolCalls: 1 } })]
      for (const asked of [calls(ask("quick"), ask("other")), calls(ask("other"), ask("quick"))]) {
        const { events } = whole(yield* run(parentOf(asked, children), { steps: 101, toolCalls: 100 }))
        assert.deepStrictEqual(grants(events, "steps"), [50, 50])
      }
    }),
  )

  it.effect("never a part of the parent's other reserves", () =>
    Effect.gen(function* () {
      const parent = Agent.make("parent", {
        policy: plays(times(1, "quick"), Proposal.finish("done")),
        children: [Agent.asTool(quick)],
      })
      const { events } = whole(yield* run(parent, { steps: 100, toolCalls: 10 }))
      // 15 output, 10 retry, 75 explore, of which one was for the decision.
      assert.deepStrictEqual(grants(events, "steps"), [74])
    }),
  )

  it.effect("what it does not use is there for the next one", () =>
    Effect.gen(function* () {
      const parent = Agent.make("parent", {
        policy: plays(times(1, "quick"), times(1, "quick"), Proposal.finish("done")),
        children: [Agent.asTool(quick)],
        ...bare,
      })
      const { events } = whole(yield* run(parent, { steps: 50, toolCalls: 10 }))
      assert.deepStrictEqual(grants(events, "steps"), [49, 47])
    }),
  )
})

describe("what a child brings back", () => {
  it.effect("its decoded answer, encoded again for the parent", () =>
    Effect.gen(function* () {
      const seen: Array<State.Observation> = []
      const child = Agent.make("child", {
        policy: plays(Proposal.finish({ at: "2026-01-01T00:00:00.000Z" })),
        answer: Schema.Struct({ at: Schema.DateFromString }),
        ...bare,
      })
      whole(yield* run(parentOf(calls(ask("child")), [Agent.asTool(child)], seen), { steps: 9, toolCalls: 9 }))
      assert.deepStrictEqual(seen[0]!.data, { status: "completed", answer: { at: "2026-01-01T00:00:00.000Z" } })
      assert.strictEqual(seen[0]!.child, "parent/child-1")
    }),
  )

  it.effect("its partial answer, and why it stopped", () =>
    Effect.gen(function* () {
      const seen: Array<State.Observation> = []
      const child = Agent.make("child", { policy: explorer, toolkit })
      const parent = parentOf(calls(ask("child")), [Agent.asTool(child, { ask: { steps: 4 } })], seen)
      whole(yield* run(parent, { steps: 20, toolCalls: 50 }))
      assert.deepStrictEqual(seen[0]!.data, { status: "stopped", reason: "budget:steps", answer: "what I have" })
    }).pipe(Effect.provide(handled())),
  )

  it.effect("nothing but the reason where there is nothing, and the parent goes on", () =>
    Effect.gen(function* () {
      const seen: Array<State.Observation> = []
      const child = Agent.make("child", { policy: plays(Proposal.invalid("no")), ...bare })
      const parent = parentOf(calls(ask("child")), [Agent.asTool(child)], seen)
      const { outcome } = whole(yield* run(parent, { steps: 20, toolCalls: 5 }))
      assert.strictEqual(outcome._tag, "Completed")
      assert.strictEqual(seen[0]!.error?.code, "ESTOPPED")
      assert.include(seen[0]!.error?.message, "invalid_decisions")
    }),
  )

  it.effect("its answer without a form where its schema can only be read", () =>
    Effect.gen(function* () {
      const seen: Array<State.Observation> = []
      const answer = Schema.String.pipe(
        Schema.decodeTo(Schema.String, {
          decode: SchemaGetter.transform((text: string) => text),
          encode: SchemaGetter.forbidden(() => "one way only"),
        }),
      )
      const child = Agent.make("child", { policy: plays(Proposal.finish("x")), answer, ...bare })
      const { outcome } = whole(
        yield* run(parentOf(calls(ask("child")), [Agent.asTool(child)], seen), { steps: 9, toolCalls: 9 }),
      )
      assert.strictEqual(outcome._tag, "Completed")
      assert.deepStrictEqual(seen[0]!.data, { status: "completed" })
    }),
  )

  it.effect("a fatal failure where it breaks down itself: its books are closed, its parent stops and answers", () =>
    Effect.gen(function* () {
      // The disk is full for a moment, right when the child has decided to ask.
      const events: Array<Event.Recorded> = []
      let full = false
      const journal: Journal.Journal = {
        open: (run) =>
          Journal.makeLog({
            run,
            sink: (recorded) => {
              events.push(recorded)
              full = recorded.event._tag === "Held" && recorded.event.account === "parent/child-1"
            },
            flush: Effect.suspend(() => (full ? Effect.die(new Error("disk full")) : Effect.void)),
          }),
      }
      const child = Agent.make("child", { policy: plays(calls(read("x"))), toolkit, ...bare })
      const parent = Agent.make("parent", {
        policy: Policy.make((view) => (view.purpose === "wrap_up" ? Proposal.finish("so far") : calls(ask("child")))),
        children: [Agent.asTool(child)],
      })
      const outcome = yield* Agent.run(parent, "task", { budget: { steps: 20, toolCalls: 5 } }).pipe(
        Effect.provideService(Journal.Journal, journal),
      )
      const { reason, partial } = stopped(whole({ outcome, events }).outcome)
      assert.deepStrictEqual([reason, partial], ["tool_error", "so far"])
      assert.strictEqual(all(events, "CallEnded").at(-1)!.code, "EFATAL")
      const [, childEnd] = outcome.report.ends
      assert.deepStrictEqual([childEnd!.reason, childEnd!.detail], ["tool_error", "the loop broke down: disk full"])
    }).pipe(Effect.provide(handled())),
  )
})

describe("time", () => {
  it.effect("a child ends before its parent must answer, and both answer", () =>
    Effect.gen(function* () {
      const slow = Policy.make((view) =>
        view.purpose === "wrap_up" ? Effect.succeed(Proposal.finish("partly")) : Effect.never,
      )
      const child = Agent.make("child", { policy: slow })
      const parent = Agent.make("parent", {
        policy: Policy.make((view) => {
          if (view.purpose === "wrap_up") return Effect.succeed(Proposal.finish("in time"))
          return view.turns.length === 0 ? Effect.succeed(calls(ask("child"))) : Effect.never
        }),
        children: [Agent.asTool(child)],
      })
      const { outcome, events } = whole(yield* run(parent, { wallClock: "100 seconds", steps: 20, toolCalls: 5 }))
      const { reason, partial } = stopped(outcome)
      assert.deepStrictEqual([reason, partial], ["deadline", "in time"])
      const childEnd = events.find(({ event }) => event._tag === "AgentEnded")!
      // The parent explores for 85 seconds, its child for 85 % of those.
      assert.strictEqual(childEnd.atMillis, 72_250)
      assert.strictEqual(events.at(-1)!.atMillis, 85_000)
    }),
  )
})

// --- random trees

const Shape = Schema.Struct({
  width: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 4 })),
  depth: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3 })),
  steps: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 40 })),
  toolCalls: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 30 })),
  finishes: Schema.Boolean,
  reserves: Schema.Boolean,
})

const grown = (shape: typeof Shape.Type, depth: number): Agent.Agent<string> => {
  const name = `level${depth}`
  const below =
    depth < shape.depth ? [Agent.asTool(grown(shape, depth + 1), depth % 2 === 0 ? {} : { share: 0.3 })] : []
  const policy = Policy.make((view) => {
    if (view.purpose === "wrap_up" || (shape.finishes && view.step > 2)) return Proposal.finish(`from ${name}`)
    const reads = [read(`${view.step}`), { tool: "nowhere", params: {} }, read(`${view.step} again`)]
    const children = Array.from({ length: below.length * shape.width }, () => ask(`level${depth + 1}`))
    return calls(...reads.slice(0, 1 + (view.step % 3)), ...children)
  })
  return Agent.make(name, {
    policy,
    toolkit,
    children: below,
    ...(shape.reserves ? {} : bare),
  }) as unknown as Agent.Agent<string>
}

describe("the law of the table", () => {
  it.effect.prop(
    "on any tree: own and children's and returned make up the grant, nothing is overspent, the journal is complete",
    [Shape],
    ([shape]) =>
      Effect.gen(function* () {
        const { outcome, events } = whole(
          yield* run(grown(shape, 0), { steps: shape.steps, toolCalls: shape.toolCalls }).pipe(
            Effect.provide(handled()),
          ),
        )
        const { accounts } = outcome.report
        const sum = (d: Budget.Dimension) => accounts.reduce((total, row) => total + row.own[d], 0)
        assert.isAtMost(sum("steps"), shape.steps)
        assert.isAtMost(sum("toolCalls"), shape.toolCalls)
        assert.strictEqual(sum("toolCalls"), all(events, "CallStarted").length)
        assert.strictEqual(sum("steps"), all(events, "Decided").length)
        assert.isFalse(outcome.report.overran)
      }),
    { arbitrary: { runs: 60, seed: 7 } },
  )
})
