import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { TestClock } from "effect/testing"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Context from "effect/Context"
import { Agent, Contract, Policy, Proposal, type State } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { all, broken, results, run, stopped, unbalanced, whole } from "../support/journalled.ts"
import { bare, calls, handled, plays, read, toolkit, write } from "../support/scripts.ts"

/** Runs one reply with these calls and looks at what the policy sees of them. */
const reply = (
  each: ReadonlyArray<Proposal.ProposedCall>,
  options: { readonly toolCalls?: number; readonly settings?: Partial<Agent.Settings> } = {},
) =>
  Effect.gen(function* () {
    let seen: ReadonlyArray<State.Observation> = []
    const policy = plays(calls(...each), (view) => {
      seen = view.turns.flatMap((turn) => turn.observations)
      return Proposal.finish("done")
    })
    const agent = Agent.make("a", { policy, toolkit, ...bare, settings: options.settings ?? {} })
    const ran = yield* run(agent, { steps: 9, toolCalls: options.toolCalls ?? 9 })
    assert.deepStrictEqual([...broken(ran.events), ...unbalanced(ran.outcome.report.accounts)], [])
    return { ...ran, seen }
  })

/** A tool that says when it starts and ends, and takes a second. */
const logging = (log: Array<string>) => {
  const slow =
    (name: string) =>
    ({ key }: { readonly key: string }) =>
      Effect.gen(function* () {
        log.push(`${name} ${key} starts`)
        yield* Effect.sleep("1 second")
        log.push(`${name} ${key} ends`)
        return key
      })
  return handled({ read: slow("read"), write: slow("write") })
}

describe("what is checked, in this order", () => {
  it.effect("the name, then the arguments, then the budget; and nothing of them runs", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const each = [
        { tool: "nowhere", params: { wrong: 1 } },
        { tool: "read", params: { wrong: 1 } },
        read("fits"),
        read("too many"),
      ]
      const { events, seen } = yield* reply(each, { toolCalls: 1 }).pipe(Effect.provide(logging(log)))
      assert.deepStrictEqual(
        seen.map((one) => one.error?.code),
        ["ENOTOOL", "EINVAL", undefined, "EBUDGET"],
      )
      assert.deepStrictEqual(
        seen.map((one) => one.ran),
        [false, false, true, false],
      )
      assert.deepStrictEqual(log, ["read fits starts", "read fits ends"])
      assert.strictEqual(all(events, "CallStarted").length, 1)
    }),
  )

  it.effect("an argument too many is refused and named", () =>
    Effect.gen(function* () {
      const { seen, outcome } = yield* reply([{ tool: "write", params: { key: "x", force: true } }])
      assert.strictEqual(seen[0]!.error?.code, "EINVAL")
      assert.include(seen[0]!.error?.message, "force")
      assert.strictEqual(outcome.report.accounts[0]!.own.toolCalls, 0)
    }).pipe(Effect.provide(handled({ write: () => Effect.die("it ran") }))),
  )

  it.effect("arguments may be the raw string of the model; what is no JSON is told so", () =>
    Effect.gen(function* () {
      const each = [
        { tool: "read", params: '{"key":"x"}' },
        { tool: "read", params: '{"key":' },
      ]
      const { seen } = yield* reply(each)
      assert.deepStrictEqual(
        seen.map((one) => one.data ?? one.error?.message),
        ["x", "the arguments are not valid JSON"],
      )
    }).pipe(Effect.provide(handled())),
  )
})

describe("what comes back", () => {
  it.effect("is in call order, whichever ends first", () =>
    Effect.gen(function* () {
      const { seen } = yield* reply([read("3"), read("1"), read("2")])
      assert.deepStrictEqual(
        seen.map((one) => [one.call, one.data]),
        [
          ["step-1/call-1", "3"],
          ["step-1/call-2", "1"],
          ["step-1/call-3", "2"],
        ],
      )
    }).pipe(Effect.provide(handled({ read: ({ key }) => Effect.as(Effect.sleep(`${Number(key)} seconds`), key) }))),
  )

  it.effect("is one result for each call, also where the provider repeats or leaves out its ids", () =>
    Effect.gen(function* () {
      const one = { name: "read", params: { key: "x" } }
      const model = ScriptedModel.make([
        { calls: [{ ...one, id: "same" }, { ...one, id: "same" }, one], usage: { input: 1, output: 1 } },
        { calls: [{ ...one, id: "same" }], usage: { input: 1, output: 1 } },
        { text: "done", usage: { input: 1, output: 1 } },
      ])
      const agent = Agent.make("a", { policy: Policy.fromModel(model.model), toolkit, ...bare })
      const { events } = yield* run(agent, { steps: 9 })
      assert.deepStrictEqual(broken(events), [])
      assert.strictEqual(new Set(all(events, "CallEnded").map((ended) => ended.call)).size, 4)
      assert.deepStrictEqual(
        all(events, "Decided").flatMap((decided) => (decided.calls ?? []).map((call) => call.providerId)),
        ["same", "same", "", "same"],
      )
      const sent = model.requests[2]!.request.messages.flatMap((message) =>
        message.role === "tool" ? message.content.map((part) => (part.type === "tool-result" ? part.id : "")) : [],
      )
      assert.strictEqual(new Set(sent).size, 4)
    }).pipe(Effect.provide(handled())),
  )

  it.effect("of a failure is its code and its message, and the run goes on", () =>
    Effect.gen(function* () {
      const { seen, outcome } = yield* reply([read("x")])
      assert.deepStrictEqual(
        [seen[0]!.error?.code, seen[0]!.error?.message, seen[0]!.stateChanged],
        ["EFAILED", "no such key", false],
      )
      assert.strictEqual(outcome._tag, "Completed")
    }).pipe(Effect.provide(handled({ read: () => Effect.fail("no such key") }))),
  )

  it.effect("of a result that is not what the tool declares is a failure, not a crash", () =>
    Effect.gen(function* () {
      const { seen } = yield* reply([read("x")])
      assert.strictEqual(seen[0]!.error?.code, "ERESULT")
    }).pipe(Effect.provide(handled({ read: () => Effect.succeed(42 as never) }))),
  )

  it.effect("of a handler that interrupts itself is a cancelled call, and the run goes on", () =>
    Effect.gen(function* () {
      const { seen, outcome } = yield* reply([read("x")])
      assert.strictEqual(seen[0]!.error?.code, "ECANCELLED")
      assert.strictEqual(outcome._tag, "Completed")
    }).pipe(Effect.provide(handled({ read: () => Effect.interrupt }))),
  )
})

describe("how they run", () => {
  it.effect("reads side by side, writes alone and in order", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const each = [read("1"), read("2"), write("3"), read("4"), write("5")]
      const { events } = yield* reply(each).pipe(Effect.provide(logging(log)))
      assert.deepStrictEqual(log, [
        "read 1 starts",
        "read 2 starts",
        "read 1 ends",
        "read 2 ends",
        "write 3 starts",
        "write 3 ends",
        "read 4 starts",
        "read 4 ends",
        "write 5 starts",
        "write 5 ends",
      ])
      assert.strictEqual(events.at(-1)!.atMillis, 4000)
    }),
  )

  it.effect("all side by side where the caller says so, and never more than its cap", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const settings = { concurrency: { calls: 2, effects: "concurrent" as const } }
      const { events } = yield* reply([write("1"), write("2"), write("3")], { settings }).pipe(
        Effect.provide(logging(log)),
      )
      assert.deepStrictEqual(log.slice(0, 2), ["write 1 starts", "write 2 starts"])
      assert.strictEqual(events.at(-1)!.atMillis, 2000)
    }),
  )

  it.effect("under their own timeout, after which the effect is uncertain and the call is booked", () =>
    Effect.gen(function* () {
      const { seen, events, outcome } = yield* reply([read("x")])
      assert.deepStrictEqual([seen[0]!.error?.code, seen[0]!.error?.retryable], ["ETIMEDOUT", true])
      assert.strictEqual(events.at(-1)!.atMillis, 10_000)
      assert.strictEqual(outcome.report.accounts[0]!.own.toolCalls, 1)
      assert.strictEqual(all(events, "Assumed").length, 1)
    }).pipe(Effect.provide(handled({ read: () => Effect.never }))),
  )

  it.effect("never begun once the time has passed: what was still waiting for its turn is given back", () =>
    Effect.gen(function* () {
      const done: Array<string> = []
      const write2 = ({ key }: { readonly key: string }) =>
        Effect.gen(function* () {
          if (key === "slow") yield* Effect.sleep("9 seconds")
          done.push(key)
          return key
        })
      const agent = Agent.make("a", { policy: plays(calls(write("slow"), write("fast"))), toolkit, ...bare })
      const { outcome, events } = whole(
        yield* run(agent, { wallClock: "4 seconds", toolCalls: 9 }).pipe(Effect.provide(handled({ write: write2 }))),
      )
      assert.deepStrictEqual(
        [stopped(outcome).reason, results(events), done],
        ["deadline", ["ETIMEDOUT", "EBUDGET"], []],
      )
      assert.strictEqual(outcome.report.accounts[0]!.own.toolCalls, 1)
    }),
  )

  it.effect("never begun after a fatal failure in the same reply", () =>
    Effect.gen(function* () {
      const done: Array<string> = []
      const handlers = handled({
        read: () => Effect.die(new Error("broken")),
        write: ({ key }) => Effect.sync(() => (done.push(key), key)),
      })
      const agent = Agent.make("a", { policy: plays(calls(read("x"), write("y"))), toolkit, ...bare })
      const { outcome, events } = whole(yield* run(agent, { toolCalls: 9 }).pipe(Effect.provide(handlers)))
      assert.deepStrictEqual(
        [stopped(outcome).reason, results(events), done],
        ["tool_error", ["EFATAL", "ECANCELLED"], []],
      )
      assert.strictEqual(outcome.report.accounts[0]!.own.toolCalls, 1)
    }),
  )

  it.effect("cancelled in between: what ran, what ran half and what never ran have one result each", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const agent = Agent.make("a", { policy: plays(calls(read("1"), write("2"), write("3"))), toolkit, ...bare })
      const outcome = yield* Effect.scoped(
        Effect.gen(function* () {
          const handle = yield* Agent.spawn(agent, "task", { budget: { toolCalls: 3 } })
          yield* TestClock.adjust("1500 millis")
          return yield* handle.cancel
        }),
      ).pipe(Effect.provide(logging(log)))
      assert.strictEqual(stopped(outcome).reason, "cancelled")
      assert.deepStrictEqual(log, ["read 1 starts", "read 1 ends", "write 2 starts"])
      assert.strictEqual(outcome.report.accounts[0]!.own.toolCalls, 2)
    }),
  )
})

describe("a tool's money", () => {
  it.effect("is held for each call, refused where it does not fit, and booked", () =>
    Effect.gen(function* () {
      const Dear = Contract.annotate(Tool.make("dear", { parameters: Schema.Struct({}), success: Schema.String }), {
        effect: "read",
        costNanoUsd: 400,
      })
      const dear = Toolkit.make(Dear)
      const call = { tool: "dear", params: {} }
      const policy = plays(calls(call, call, call), Proposal.finish("done"))
      const { outcome, events } = yield* run(Agent.make("a", { policy, toolkit: dear, ...bare }), {
        money: "0.000001 USD",
      }).pipe(Effect.provide(dear.toLayer({ dear: () => Effect.succeed("x") })))
      assert.deepStrictEqual(results(events), ["ok", "ok", "EBUDGET"])
      assert.strictEqual(outcome._tag, "Completed")
      assert.strictEqual(outcome.report.accounts[0]!.own.money, 800)
    }),
  )
})

describe("services of a handler", () => {
  class Where extends Context.Service<Where, string>()("test/Where") {}

  it.effect("are those of its layer, also where the agent runs elsewhere", () =>
    Effect.gen(function* () {
      const Ask = Contract.annotate(Tool.make("ask", { success: Schema.String }), { effect: "read" })
      const tools = Toolkit.make(Ask)
      const layer = tools.toLayer(
        Effect.gen(function* () {
          const where = yield* Where
          return { ask: () => Effect.succeed(where) }
        }),
      )
      const policy = plays(calls({ tool: "ask", params: undefined }), (view) =>
        Proposal.finish(view.turns[0]!.observations[0]!.data),
      )
      const { outcome } = yield* run(Agent.make("a", { policy, toolkit: tools }), { steps: 5 }).pipe(
        Effect.provide(layer),
        Effect.provideService(Where, "here"),
      )
      assert.isTrue(outcome._tag === "Completed" && outcome.answer === "here")
    }),
  )
})

describe("a tool without a contract", () => {
  it("is treated as the dangerous kind, and effect/ai's hints are heard", () => {
    const bareTool = Tool.make("x", {})
    assert.strictEqual(Contract.of(bareTool).effect, "irreversible")
    assert.strictEqual(Contract.of(bareTool.annotate(Tool.Readonly, true)).effect, "read")
    assert.strictEqual(Contract.of(bareTool.annotate(Tool.Destructive, false)).effect, "write")
    assert.strictEqual(Contract.of(bareTool).timeoutMillis, 60_000)
  })
})
