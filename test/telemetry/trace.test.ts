import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Random from "effect/Random"
import { TestClock } from "effect/testing"
import * as Tracer from "effect/Tracer"
import { Agent, type Budget, type Event, Line, Policy, Proposal, Verifier } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { all, run, stopped } from "../support/journalled.ts"
import * as Recording from "../support/Recording.ts"
import { ask, bare, calls, explorer, handled, plays, read, toolkit, write } from "../support/scripts.ts"

const price = { inputPicoUsd: 1000, cachedInputPicoUsd: 100, cacheWriteInputPicoUsd: 1000, outputPicoUsd: 4000 }

const assumed = { _tag: "Assume" } as const

/** A word that stands in every text of a user, a tool or a provider, and must stand nowhere in a trace. */
const canary = "CANARY"

/** Two levels, with retries, a rejected answer, failing tools, a child that stops and a wrap-up. */
const family = () => {
  const usage = { input: 20, output: 5, cached: 4 }
  const model = ScriptedModel.make(
    [
      {
        text: `${canary} plan`,
        calls: [
          { name: "read", params: { key: canary } },
          { name: canary, params: {} },
        ],
        usage,
      },
      { fault: { status: 429 } },
      { text: `${canary} draft`, usage },
      { text: `${canary} final`, usage: null, countedInput: 30 },
    ],
    { price, name: "small" },
  )
  const child = Agent.make("child", {
    instructions: canary,
    policy: Policy.fromModel(model.model, { maxOutputTokens: 10 }),
    toolkit,
    verify: Verifier.predicate<string>("final", ({ answer }) => answer.includes("final") || canary),
  })
  const idle = Agent.make("idle", { policy: plays(Proposal.invalid(canary)), ...bare })
  return Agent.make("lead", {
    instructions: canary,
    policy: plays(
      calls(ask("child", canary), ask("idle", canary), write(canary)),
      calls(read(`${canary} again`)),
      () => {
        throw new Error(canary)
      },
      Proposal.finish(`${canary} done`),
    ),
    toolkit,
    children: [Agent.asTool(child), Agent.asTool(idle)],
  })
}

const failing = handled({
  write: () => Effect.fail(`${canary} failed`),
  read: ({ key }) => (key.includes("again") ? Effect.die(new Error(canary)) : Effect.succeed(`${canary} ${key}`)),
})

const budget = { steps: 200, toolCalls: 50, inputTokens: 40_000, outputTokens: 10_000, money: "1 USD" } as const

const traced = <A, R>(agent: Agent.Agent<A, R>, budget: Budget.Input) =>
  Effect.gen(function* () {
    const { tracer, spans } = Recording.make()
    const ran = yield* run(agent, budget, canary).pipe(
      Effect.provide(failing),
      Effect.provideService(Tracer.Tracer, tracer),
    )
    return { ...ran, spans }
  })

const named = (spans: ReadonlyArray<Recording.Recorded>, start: string) =>
  spans.filter((span) => span.name.startsWith(start))

describe("a trace", () => {
  it.effect("is one, without orphans, and every span has ended", () =>
    Effect.gen(function* () {
      const { spans } = yield* traced(family(), budget)
      assert.strictEqual(new Set(spans.map((span) => span.traceId)).size, 1)
      const ids = new Set(spans.map((span) => span.spanId))
      const roots = spans.filter((span) => span.parent === undefined || !ids.has(span.parent))
      assert.deepStrictEqual(
        roots.map((span) => span.name),
        ["invoke_agent lead"],
      )
      assert.deepStrictEqual(
        spans.filter((span) => Recording.statusOf(span) === "open").map((span) => span.name),
        [],
      )
    }),
  )

  it.effect("mirrors the budget tree", () =>
    Effect.gen(function* () {
      const { spans, outcome } = yield* traced(family(), budget)
      const byId = new Map(spans.map((span) => [span.spanId, span]))
      const agents = named(spans, "invoke_agent")
      const above = (span: Recording.Recorded): Recording.Recorded | undefined => {
        const parent = span.parent === undefined ? undefined : byId.get(span.parent)
        return parent === undefined || parent.name.startsWith("invoke_agent") ? parent : above(parent)
      }
      assert.deepStrictEqual(
        agents.map((span) => [span.attributes.get("bursar.node.id"), above(span)?.attributes.get("bursar.node.id")]),
        outcome.report.accounts.map((row) => [row.account, row.parent]),
      )
      // Each child lies in the span of the call that started it, and that one in a step of its parent.
      for (const child of agents.slice(1)) {
        const call = byId.get(child.parent!)!
        assert.strictEqual(call.name, `execute_tool ${child.attributes.get("gen_ai.agent.name") as string}`)
        assert.strictEqual(byId.get(call.parent!)!.name, "bursar.step")
      }
      const paths = outcome.report.accounts.map((row) => row.path)
      assert.deepStrictEqual(
        agents.map((span) => span.attributes.get("bursar.node.path")),
        paths,
      )
    }),
  )

  it.effect("has every span of an agent under the name of that agent and of the run", () =>
    Effect.gen(function* () {
      const { spans } = yield* traced(family(), budget)
      for (const span of spans) {
        for (const key of ["bursar.run.id", "bursar.node.id", "bursar.node.path", "bursar.node.depth", "bursar.schema"])
          assert.isTrue(span.attributes.has(key), `${span.name} ${key}`)
      }
    }),
  )

  it.effect("has usage on spans of model calls and nowhere else, and it adds up to the ledger", () =>
    Effect.gen(function* () {
      const { spans, events, outcome } = yield* traced(family(), budget)
      const withUsage = spans.filter((span) =>
        [...span.attributes.keys()].some((key) => key.startsWith("gen_ai.usage")),
      )
      assert.deepStrictEqual([...new Set(withUsage.map((span) => span.name))], ["chat small"])
      const sum = (key: string) =>
        spans.reduce((total, span) => total + ((span.attributes.get(key) as number | undefined) ?? 0), 0)
      // What was only assumed is no usage: the ledger has it besides.
      const assumed = all(events, "Assumed").filter((one) => one.held.inputTokens !== undefined)
      assert.strictEqual(assumed.length, 1)
      const booked = (d: Budget.Dimension) =>
        outcome.report.accounts.reduce((total, row) => total + row.own[d], 0) - (assumed[0]!.held[d] ?? 0)
      assert.strictEqual(sum("gen_ai.usage.input_tokens"), booked("inputTokens"))
      assert.strictEqual(sum("gen_ai.usage.output_tokens"), booked("outputTokens"))
      assert.strictEqual(
        sum("bursar.cost.nano_usd"),
        outcome.report.accounts.reduce((all, row) => all + row.own.money, 0),
      )
      assert.deepStrictEqual(
        named(spans, "chat").map((span) => [span.attributes.get("bursar.attempt"), Recording.statusOf(span)]),
        [
          [1, "ok"],
          [1, "error: The model did not reply."],
          [2, "ok"],
          [1, "ok"],
        ],
      )
    }),
  )

  it.effect("holds no text of a user, a tool or a provider: not in attributes, events or statuses", () =>
    Effect.gen(function* () {
      const { spans, events } = yield* traced(family(), budget)
      // The run did say it, all over.
      assert.isAbove(JSON.stringify(events).split(canary).length, 10)
      const seen = JSON.stringify(
        spans.map((span) => [span.name, [...span.attributes], span.events, Recording.statusOf(span), span.exit]),
      )
      assert.notInclude(seen, canary)
    }),
  )

  it.effect("holds no text of what broke down, either: a model, a check or a whole loop", () =>
    Effect.gen(function* () {
      const { model } = ScriptedModel.make([])
      const dying = { ...model, call: () => Effect.die(new Error(canary)) }
      const torn: Policy.Policy = {
        name: "torn",
        attempt: () =>
          Effect.succeed({
            hold: () => ({ steps: 1 }),
            use: () => Effect.succeed(undefined as never),
            book: () => assumed,
          }),
        wrapUpNeeds: () => Effect.succeed({}),
      }
      const verify: Verifier.Verifier<string> = { name: "dies", needs: {}, check: () => Effect.die(new Error(canary)) }
      for (const policy of [Policy.fromModel(dying), torn, plays(Proposal.finish(canary))]) {
        const { tracer, spans } = Recording.make()
        yield* Agent.run(Agent.make("a", { policy, verify }), canary, { budget: { steps: 3 } }).pipe(
          Effect.exit,
          Effect.provideService(Tracer.Tracer, tracer),
        )
        assert.isAbove(spans.length, 1)
        assert.notInclude(
          JSON.stringify(spans.map((span) => [[...span.attributes], span.events, Recording.statusOf(span), span.exit])),
          canary,
        )
      }
    }),
  )

  it.effect("tells the provider and the handler of a tool where they belong", () =>
    Effect.gen(function* () {
      const { tracer, spans } = Recording.make()
      const inside = handled({ read: ({ key }) => Effect.as(Effect.withSpan(Effect.void, "inside"), key) })
      yield* run(Agent.make("a", { policy: plays(calls(read("x")), Proposal.finish("done")), toolkit }), {
        steps: 4,
      }).pipe(
        // Where the handlers are made, another span is open: it is not theirs.
        Effect.provide(inside),
        Effect.withSpan("elsewhere"),
        Effect.provideService(Tracer.Tracer, tracer),
      )
      const [call] = named(spans, "execute_tool")
      assert.strictEqual(named(spans, "inside")[0]!.parent, call!.spanId)
      assert.strictEqual(named(spans, "invoke_agent")[0]!.parent, named(spans, "elsewhere")[0]!.spanId)
    }),
  )
})

describe("a status", () => {
  const rootOf = (agent: Agent.Agent<string>, budget: Budget.Input) =>
    Effect.gen(function* () {
      const { tracer, spans } = Recording.make()
      const { outcome } = yield* run(agent, budget).pipe(Effect.provideService(Tracer.Tracer, tracer))
      const root = spans[0]!
      if (outcome._tag === "Suspended") return assert.fail("the run stands still")
      const expected = outcome._tag === "Completed" ? "completed" : outcome.reason
      assert.strictEqual(root.attributes.get("bursar.stop.reason"), expected)
      assert.strictEqual(root.attributes.get("bursar.result"), outcome._tag === "Completed" ? "full" : outcome.result)
      const status = Recording.statusOf(root)
      assert.strictEqual(
        root.attributes.get("error.type"),
        status.startsWith("error") ? `bursar.${expected}` : undefined,
      )
      return [expected, status]
    })

  it.effect("is that of the table of stop reasons, with its fixed sentence", () =>
    Effect.gen(function* () {
      const without = (
        policy: Policy.Policy,
        more: Pick<Agent.Options<string, never, never, never, {}>, "verify" | "reserves"> = {},
      ) => Agent.make("a", { policy, ...bare, ...more })
      const withAnswer = Agent.make("a", { policy: explorer, toolkit }) as unknown as Agent.Agent<string>
      const silent = Agent.make("a", { policy: explorer, toolkit, ...bare }) as unknown as Agent.Agent<string>
      const slow = Policy.make(() => Effect.never)
      const model = (turns: ReadonlyArray<ScriptedModel.Turn>) => Policy.fromModel(ScriptedModel.make(turns).model)
      const said = "error: The budget for steps does not cover another decision."
      const table = [
        [without(plays(Proposal.finish("x"))), { steps: 3 }, "completed", "ok"],
        [withAnswer, { steps: 3 }, "budget:steps", "ok"],
        [silent, { steps: 3 }, "budget:steps", said],
        [without(slow), { wallClock: "1 second" }, "deadline", "error: The time for this agent has passed."],
        [
          without(plays(Proposal.invalid("no"))),
          { steps: 9 },
          "invalid_decisions",
          "error: Too many decisions in a row could not be used.",
        ],
        [
          without(plays(Proposal.finish("x")), {
            verify: Verifier.make("slow", () => Effect.never),
            reserves: { verifyMillis: 500 },
          }),
          { steps: 9, wallClock: "1 second" },
          "unverified",
          "ok",
        ],
        [
          without(model([{ fault: { status: 400 } }])),
          { steps: 9 },
          "model_error",
          "error: The model failed for good.",
        ],
        [
          without(model([])),
          { money: "1 USD" },
          "unpriced",
          "error: No price is known for the model, and money is capped.",
        ],
      ] as const
      for (const [agent, budget, reason, status] of table) {
        assert.deepStrictEqual(yield* rootOf(agent, budget), [reason, status])
      }
      const broken = yield* rootOf(withAnswer, { steps: 9 }).pipe(
        Effect.provide(handled({ read: () => Effect.die("x") })),
      )
      assert.deepStrictEqual(broken, ["tool_error", "error: A tool failed fatally."])
      const still = yield* rootOf(
        Agent.make("a", { policy: plays(calls(read("x"))), toolkit, ...bare }) as unknown as Agent.Agent<string>,
        { steps: 9 },
      )
      assert.deepStrictEqual(still, ["no_progress", "error: The same actions brought the same results."])
    }).pipe(Effect.provide(handled())),
  )

  it.effect("of a cancelled run is no error, and says so on every agent", () =>
    Effect.gen(function* () {
      const { tracer, spans } = Recording.make()
      const child = Agent.make("child", { policy: Policy.make(() => Effect.never), ...bare })
      const agent = Agent.make("a", { policy: plays(calls(ask("child"))), children: [Agent.asTool(child)] })
      yield* Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(Agent.run(agent, "task", { budget: { steps: 20, toolCalls: 9 } }))
        yield* Effect.forEach(Array.from({ length: 50 }), () => Effect.yieldNow)
        yield* Fiber.interrupt(fiber)
      }).pipe(Effect.provideService(Tracer.Tracer, tracer))
      const agents = named(spans, "invoke_agent")
      assert.strictEqual(agents.length, 2)
      for (const span of agents) {
        assert.strictEqual(span.attributes.get("bursar.stop.reason"), "cancelled")
        assert.isTrue(["ok", "unset"].includes(Recording.statusOf(span)))
      }
      assert.deepStrictEqual(
        spans.filter((span) => Recording.statusOf(span).startsWith("error")),
        [],
      )
    }),
  )

  it.effect("of a parent is not that of its child", () =>
    Effect.gen(function* () {
      const child = Agent.make("child", { policy: plays(Proposal.invalid("no")), ...bare })
      const parent = Agent.make("a", {
        policy: plays(calls(ask("child")), Proposal.finish("done")),
        children: [Agent.asTool(child)],
      })
      const { spans } = yield* traced(parent, { steps: 20, toolCalls: 5 })
      assert.deepStrictEqual(
        named(spans, "invoke_agent").map((span) => Recording.statusOf(span)),
        ["ok", "error: Too many decisions in a row could not be used."],
      )
    }),
  )
})

describe("without a tracer", () => {
  it.effect("no span object is made at all", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const looking = handled({
        read: ({ key }) => Effect.withFiber((fiber) => Effect.sync(() => (seen.push(fiber.cache.span), key))),
      })
      const policy = Policy.make((view) =>
        Effect.withFiber((fiber) =>
          Effect.sync(() => {
            seen.push(fiber.cache.span)
            return view.turns.length === 0 ? calls(read("x")) : Proposal.finish("done")
          }),
        ),
      )
      const { outcome } = yield* run(Agent.make("a", { policy, toolkit }), { steps: 5 }).pipe(Effect.provide(looking))
      assert.strictEqual(stoppedOr(outcome), "completed")
      assert.deepStrictEqual(seen, [undefined, undefined, undefined])
    }),
  )

  it.effect("and with one that is switched off, none either", () =>
    Effect.gen(function* () {
      const { tracer, spans } = Recording.make()
      yield* run(family(), budget).pipe(
        Effect.provide(failing),
        Effect.withTracerEnabled(false),
        Effect.provideService(Tracer.Tracer, tracer),
      )
      assert.strictEqual(spans.length, 0)
    }),
  )

  it.effect("the journal is the same, line for line", () =>
    Effect.gen(function* () {
      // But for the place in the trace, which a resumed run links to.
      const journalOf = (events: ReadonlyArray<Event.Recorded>) =>
        events.map((one) => Line.encode(one).line.replace(/,"trace":\{[^}]*\}/, ""))
      // The same clock and the same dice for both.
      const anew = <A, E, R>(self: Effect.Effect<A, E, R>) =>
        self.pipe(Effect.provide(TestClock.layer()), Random.withSeed("a seed"))
      const plain = yield* anew(run(family(), budget, canary).pipe(Effect.provide(failing)))
      const { events } = yield* anew(traced(family(), budget))
      assert.isAbove(events.length, 50)
      assert.deepStrictEqual(journalOf(events), journalOf(plain.events))
    }),
  )
})

const stoppedOr = <A>(outcome: Agent.Outcome<A>) =>
  outcome._tag === "Completed" ? "completed" : stopped(outcome).reason
