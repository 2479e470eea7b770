import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Agent, Budget, type Event, Journal, Policy, Proposal, ToolError } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { type Any, driven, kit, pass, use } from "../support/driven.ts"
import { all } from "../support/journalled.ts"
import { ask, bare, calls, plays } from "../support/scripts.ts"
import { one, traced } from "./InMemory.ts"
import { broken } from "./laws.ts"
import type { Row } from "./Row.ts"

const price = { inputPicoUsd: 1000, cachedInputPicoUsd: 1000, cacheWriteInputPicoUsd: 1000, outputPicoUsd: 1000 }

const ran = <R>(agent: Agent.Agent<string, R>, budget: Budget.Input) =>
  Effect.gen(function* () {
    const events: Array<Event.Recorded> = []
    const { rows } = yield* traced(
      driven(agent, { budget, events }, (handle) => Effect.andThen(pass(86_400_000), handle.await)),
    )
    assert.deepStrictEqual(broken(rows, events), [])
    return { events, rows }
  })

const eventsOf = (row: Row) => row.events.map(({ name }) => name)

const seqOf = (events: ReadonlyArray<Event.Recorded>, tag: Event.Event["_tag"]) =>
  events.find(({ event }) => event._tag === tag)!.seq

describe("the span of a request", () => {
  const script = (usage: ScriptedModel.Turn["usage"]) =>
    ScriptedModel.make([{ text: "done", countedInput: 10, ...(usage === undefined ? {} : { usage }) }], {
      price,
      name: "small",
    }).model

  it.effect("tells what was held and what was settled, each with its number in the journal", () =>
    Effect.gen(function* () {
      const policy = Policy.fromModel(script({ input: 10, output: 3 }), { maxOutputTokens: 5 })
      const { events, rows } = yield* ran(Agent.make("a", { policy, ...bare }), { steps: 3, money: "1 USD" })
      const chat = one(rows, "chat small")
      assert.deepStrictEqual(chat.events, [
        {
          name: "bursar.budget.held",
          attributes: {
            "bursar.seq": seqOf(events, "Held"),
            "bursar.reserve": "explore",
            "bursar.budget.steps.amount": 1,
            "bursar.budget.ticks.amount": 1,
            "bursar.budget.input_tokens.amount": 10,
            "bursar.budget.output_tokens.amount": 5,
            "bursar.budget.money_nano_usd.amount": 15,
          },
        },
        {
          name: "bursar.budget.settled",
          attributes: {
            "bursar.seq": seqOf(events, "Settled"),
            "bursar.reserve": "explore",
            "bursar.budget.steps.amount": 1,
            "bursar.budget.ticks.amount": 1,
            "bursar.budget.input_tokens.amount": 10,
            "bursar.budget.output_tokens.amount": 3,
            "bursar.budget.money_nano_usd.amount": 13,
          },
        },
      ])
      assert.strictEqual(one(rows, "bursar.step").attributes["bursar.context.input_tokens_estimate"], 10)
      const agent = one(rows, "invoke_agent a").attributes
      assert.deepStrictEqual(
        [agent["gen_ai.provider.name"], agent["gen_ai.request.model"], agent["bursar.usage.assumed_calls"]],
        ["scripted", "small", 0],
      )
    }),
  )

  it.effect("tells of a bill above its hold, which is an event of the agent and a mark as well", () =>
    Effect.gen(function* () {
      const policy = Policy.fromModel(script({ input: 50, output: 3 }), { maxOutputTokens: 5 })
      const { events, rows } = yield* ran(Agent.make("a", { policy, ...bare }), { steps: 3, money: "1 USD" })
      assert.strictEqual(one(rows, "chat small").attributes["bursar.overrun.nano_usd"], 38)
      const agent = one(rows, "invoke_agent a")
      assert.strictEqual(agent.attributes["bursar.overrun"], true)
      const seq = seqOf(events, "Overran")
      assert.deepInclude(agent.events.find(({ name }) => name === "bursar.budget.overrun")?.attributes, {
        "bursar.seq": seq,
        "bursar.budget.input_tokens.amount": 40,
        "bursar.covered_by": ["a explore: 40 input_tokens", "a explore: 38 money_nano_usd"],
      })
      assert.deepInclude(one(rows, "bursar.mark").attributes, { "bursar.mark": "overrun", "bursar.seq": seq })
    }),
  )

  it.effect("of unknown usage is counted by its agent", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([{ fault: "cut" }, { text: "done", usage: { input: 1, output: 1 } }]).model
      const agent = Agent.make("a", { policy: Policy.fromModel(model, { maxOutputTokens: 5 }) })
      const { rows } = yield* ran(agent, { steps: 20 })
      assert.strictEqual(one(rows, "invoke_agent a").attributes["bursar.usage.assumed_calls"], 1)
      assert.deepStrictEqual(rows.filter(({ name }) => name.startsWith("chat")).map(eventsOf), [
        ["bursar.budget.held", "bursar.budget.assumed"],
        ["bursar.budget.held", "bursar.budget.settled"],
      ])
    }),
  )
})

describe("the span of a call", () => {
  it.effect("tells what became of it, also where it did not run", () =>
    Effect.gen(function* () {
      const fails = (code: string) => () => Effect.fail(ToolError.mistake(code, "text of a tool"))
      const tools = kit({
        ok: [{ effect: "read" }, ({ key }) => Effect.succeed(key)],
        wrong: [{ effect: "read" }, fails("EWRONG")],
        odd: [{ effect: "read" }, fails("text of a tool")],
        busy: [{ effect: "read", retries: 1 }, () => Effect.fail(ToolError.transient("EBUSY", "busy"))],
        late: [{ effect: "read", retries: 0, timeout: "1 second" }, () => Effect.never],
        denied: [{ effect: "read" }, () => Effect.fail(ToolError.permission("EPERM", "no"))],
        lost: [{ effect: "write", whenUncertain: "tell" }, () => Effect.fail(ToolError.lost("ELOST", "no reply"))],
        paid: [{ effect: "write", idempotency: "key", key: () => "one" }, ({ key }) => Effect.succeed(key)],
      })
      const agent = Agent.make("a", {
        policy: plays(
          calls(...["ok", "wrong", "odd", "busy", "late", "denied", "lost", "paid"].map((name) => use(name))),
          calls(use("paid"), use("nowhere"), { tool: "ok", params: { wrong: 1 } }),
          Proposal.finish("done"),
        ),
        toolkit: tools.toolkit,
      }) as unknown as Any
      const { rows } = yield* ran(agent, { steps: 40, toolCalls: 40 }).pipe(Effect.provide(tools.handlers))
      const told = rows
        .filter(({ name }) => name.startsWith("execute_tool"))
        .map(({ attributes, name }) => [name, attributes["bursar.tool.outcome"], attributes["bursar.tool.code"]])
      assert.sameDeepMembers(told, [
        ["execute_tool ok", "ok", undefined],
        ["execute_tool wrong", "model_mistake", "EWRONG"],
        ["execute_tool odd", "model_mistake", "other"],
        ["execute_tool busy", "transient", "EBUSY"],
        ["execute_tool late", "timeout", "ETIMEDOUT"],
        ["execute_tool denied", "permission", "EPERM"],
        ["execute_tool lost", "uncertain", "ELOST"],
        ["execute_tool paid", "ok", undefined],
        ["execute_tool paid", "replayed", undefined],
        // The model's own word, which no tool bears.
        ["execute_tool", "refused", "ENOTOOL"],
        ["execute_tool ok", "refused", "EINVAL"],
      ])
      const ok = rows.find(
        ({ attributes, name }) => name === "execute_tool ok" && attributes["bursar.tool.outcome"] === "ok",
      )
      assert.deepInclude(ok?.attributes, {
        "bursar.tool.version": "1",
        "bursar.tool.effect": "read",
        "bursar.reserve": "explore",
        "bursar.tool.result.bytes": 3,
      })
      const [failed, ...more] = one(rows, "execute_tool busy").events
      assert.deepInclude(failed?.attributes, { "bursar.attempt": 1, "error.type": "EBUSY" })
      assert.deepStrictEqual([failed?.name, more], ["bursar.tool.attempt_failed", []])
    }),
  )
})

describe("the span of an agent", () => {
  it.effect("tells what it carved, what came back, and what was refused and of whom", () =>
    Effect.gen(function* () {
      const child = Agent.make("child", { policy: plays(Proposal.finish("done")), ...bare })
      const big = Agent.make("big", { policy: plays(Proposal.finish("done")), ...bare })
      const agent = Agent.make("a", {
        policy: plays(calls(ask("child"), ask("big")), Proposal.finish("done")),
        children: [
          Agent.asTool(child, { share: 0.5, atLeast: { steps: 2 } }),
          Agent.asTool(big, { ask: { steps: 99 } }),
        ],
        ...bare,
      })
      const { events, rows } = yield* ran(agent, { steps: 20, toolCalls: 9 })
      const { events: told } = one(rows, "invoke_agent a")
      assert.deepStrictEqual(
        told.map(({ name }) => name),
        ["bursar.budget.refused", "bursar.budget.carved", "bursar.budget.refunded", "bursar.budget.refunded"],
      )
      assert.deepStrictEqual(told[0]?.attributes, {
        "bursar.seq": seqOf(events, "Refused"),
        "bursar.operation": "carve",
        "bursar.reason": "Insufficient",
        "bursar.short": ["steps"],
        "bursar.accounts": ["a"],
        "bursar.whose": ["parent"],
        "bursar.budget.steps.asked": 99,
        "bursar.budget.steps.available": 19,
      })
      assert.deepInclude(told[1]?.attributes, { "bursar.child": "a/child", "bursar.budget.steps.amount": 9 })
      assert.deepInclude(told[2]?.attributes, { "bursar.child": "a/child", "bursar.budget.steps.amount": 8 })
      assert.deepInclude(told[3]?.attributes, { "bursar.child": "a", "bursar.budget.steps.amount": 17 })
    }),
  )

  it.effect("says what was asked for where less was given", () =>
    Effect.gen(function* () {
      const { rows } = yield* traced(
        Agent.run(Agent.make("a", { policy: plays(Proposal.finish("x")), ...bare }), "t", { ask: { steps: 50 } }).pipe(
          Budget.open({ steps: 10 }),
        ),
      )
      const { attributes } = one(rows, "invoke_agent a")
      assert.deepStrictEqual(
        [attributes["bursar.budget.steps.asked"], attributes["bursar.budget.steps.limit"]],
        [50, 10],
      )
    }),
  )

  it.effect("keeps 100 events and counts the others, and keeps a place for what matters", () =>
    Effect.gen(function* () {
      const done = { policy: plays(Proposal.finish("done")), ...bare }
      const agent = Agent.make("a", {
        policy: plays(
          calls(...Array.from({ length: 60 }, () => ask("child"))),
          calls(ask("big"), ask("big")),
          Proposal.finish("done"),
        ),
        children: [
          Agent.asTool(Agent.make("child", done)),
          Agent.asTool(Agent.make("big", done), { ask: { steps: 999 } }),
        ],
        ...bare,
      })
      const { rows } = yield* ran(agent, { steps: 200 })
      const { attributes, events } = one(rows, "invoke_agent a")
      // 60 carved, 60 and itself refunded, 80 of them kept.
      const refused = events.filter(({ name }) => name === "bursar.budget.refused").length
      assert.deepStrictEqual([events.length, refused], [82, 2])
      assert.strictEqual(attributes["bursar.events.dropped"], 121 - 80)
    }),
  )

  it.effect("is joined by marks of no length where it starts and where it stops", () =>
    Effect.gen(function* () {
      const { events, rows } = yield* ran(Agent.make("a", { policy: plays(Proposal.invalid("no")), ...bare }), {
        steps: 3,
        wallClock: "1 hour",
      })
      const start = one(rows, "bursar.start")
      assert.strictEqual(start.attributes["bursar.budget.steps.limit"], 3)
      assert.strictEqual(start.attributes["bursar.deadline.remaining_ms"], 3_600_000)
      assert.strictEqual(start.parentId, one(rows, "invoke_agent a").spanId)
      const mark = one(rows, "bursar.mark")
      assert.deepInclude(mark.attributes, {
        "bursar.mark": "stop",
        "bursar.keep": true,
        "bursar.stop.reason": "budget:steps",
        "bursar.seq": seqOf(events, "Stopping"),
        "bursar.node.path": "a",
      })
      const steps = rows.filter(({ name }) => name === "bursar.step").map(({ attributes }) => attributes)
      assert.deepStrictEqual(
        steps.map((attributes) => [
          attributes["bursar.budget.steps.remaining"],
          attributes["bursar.deadline.remaining_ms"],
        ]),
        [2, 1, 0, 0].map((left) => [left, 3_600_000]),
      )
    }),
  )

  it.effect("that is a scope around an Effect tells the same of its account", () =>
    Effect.gen(function* () {
      const events: Array<Event.Recorded> = []
      const { rows } = yield* traced(
        Effect.void.pipe(
          Budget.carve({ steps: 3 }, { name: "side" }),
          Effect.andThen(Effect.ignore(Budget.carve({ steps: 99 })(Effect.void))),
          Budget.open({ steps: 10 }, { name: "root" }),
          Effect.provideService(Journal.Journal, Journal.toArray(events)),
        ),
      )
      assert.deepStrictEqual(broken(rows, events), [])
      assert.deepStrictEqual(eventsOf(one(rows, "bursar.scope root")), [
        "bursar.budget.carved",
        "bursar.budget.refunded",
        "bursar.budget.refused",
        "bursar.budget.refunded",
      ])
    }),
  )

  it.effect("of a scope that cannot be opened is there, and says so", () =>
    Effect.gen(function* () {
      const events: Array<Event.Recorded> = []
      const { rows } = yield* traced(
        Effect.void.pipe(
          Budget.open({ wallClock: "0 seconds" }, { name: "root" }),
          Effect.ignore,
          Effect.provideService(Journal.Journal, Journal.toArray(events)),
        ),
      )
      assert.deepStrictEqual(broken(rows, events), [])
      assert.deepStrictEqual(all(events, "Refused").length, rows.length)
    }),
  )
})
