import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Agent, type Event, Policy, Proposal } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { type Any, driven, kit, questions, resumed, says, use } from "../support/driven.ts"
import { bare, calls, plays } from "../support/scripts.ts"
import { one, traced } from "./InMemory.ts"
import { broken } from "./laws.ts"

describe("a resumed run", () => {
  const shop = () => {
    const tools = kit({
      pay: [{ effect: "irreversible", approval: true }, ({ key }) => Effect.succeed(key)],
      once: [{ effect: "write", idempotency: "key", key: () => "one" }, ({ key }) => Effect.succeed(key)],
    })
    const agent = (policy: Policy.Policy) =>
      Agent.make("root", { ...bare, policy, toolkit: tools.toolkit }) as unknown as Any
    return { ...tools, agent }
  }
  const budget = { steps: 40, toolCalls: 40 }

  it.effect("is a trace of its own, linked to what was before", () => {
    const { agent, handlers } = shop()
    const clerk = agent(plays(calls(use("pay")), Proposal.finish("fine")))
    return Effect.gen(function* () {
      const events: Array<Event.Recorded> = []
      const first = yield* traced(driven(clerk, { budget, events }, (handle) => handle.await))
      const [question] = questions(first.value)
      const root = one(first.rows, "invoke_agent root")
      assert.deepStrictEqual(
        [root.attributes["bursar.suspended"], root.attributes["bursar.stop.reason"], root.status.code],
        [true, undefined, "unset"],
      )
      const second = yield* traced(resumed(clerk, events, [says(question!, "approved")]))
      const again = one(second.rows, "invoke_agent root")
      assert.notStrictEqual(again.traceId, root.traceId)
      assert.deepStrictEqual(again.links, [
        { traceId: root.traceId, spanId: root.spanId, attributes: { "bursar.link": "resumes" } },
      ])
      assert.strictEqual(second.rows.find(({ name }) => name === "bursar.step")?.attributes["bursar.replayed"], true)
      assert.deepStrictEqual(broken([...first.rows, ...second.rows], events), [])
    }).pipe(Effect.provide(handlers))
  })

  it.effect("is in the same trace as what is around it, without a link into it", () => {
    const { agent, handlers } = shop()
    const clerk = agent(plays(calls(use("pay")), Proposal.finish("fine")))
    return Effect.gen(function* () {
      const events: Array<Event.Recorded> = []
      const { rows } = yield* traced(
        Effect.withSpan(
          Effect.gen(function* () {
            const [question] = questions(yield* driven(clerk, { budget, events }, (handle) => handle.await))
            yield* resumed(clerk, events, [says(question!, "approved")])
          }),
          "the program",
        ),
      )
      const roots = rows.filter(({ name }) => name === "invoke_agent root")
      assert.deepStrictEqual(
        roots.map(({ links, parentId }) => [links, parentId]),
        roots.map(() => [[], one(rows, "the program").spanId]),
      )
      assert.deepStrictEqual(broken(rows, events), [])
    }).pipe(Effect.provide(handlers))
  })

  it.effect("asks no model again, and links a call that is answered from before to where it happened", () => {
    const { agent, handlers } = shop()
    const model = ScriptedModel.make(
      [
        { calls: [{ name: "once", params: { key: "x" } }], usage: { input: 1, output: 1 } },
        { calls: [{ name: "once", params: { key: "x" } }], usage: { input: 1, output: 1 } },
        { text: "done", usage: { input: 1, output: 1 } },
      ],
      { name: "small" },
    )
    const clerk = agent(Policy.fromModel(model.model, { maxOutputTokens: 5 }))
    return Effect.gen(function* () {
      const whole: Array<Event.Recorded> = []
      const first = yield* traced(driven(clerk, { budget, events: whole }, (handle) => handle.await))
      // The second call is answered in the same trace: no link leads into it.
      assert.deepStrictEqual(
        first.rows.filter(({ name }) => name === "execute_tool once").map(({ links }) => links.length),
        [0, 0],
      )
      // Killed right after the first call had its result: two more decisions, and no chat for the first.
      const events = whole.slice(0, 1 + whole.findIndex(({ event }) => event._tag === "CallEnded"))
      const more = ScriptedModel.make(
        [
          { calls: [{ name: "once", params: { key: "x" } }], usage: { input: 1, output: 1 } },
          { text: "done", usage: { input: 1, output: 1 } },
        ],
        { name: "small" },
      )
      const second = yield* traced(resumed(agent(Policy.fromModel(more.model, { maxOutputTokens: 5 })), events))
      assert.strictEqual(second.rows.filter(({ name }) => name === "chat small").length, 2)
      const root = one(first.rows, "invoke_agent root")
      const call = one(second.rows, "execute_tool once")
      assert.strictEqual(call.attributes["bursar.tool.outcome"], "replayed")
      assert.deepStrictEqual(call.links, [
        { traceId: root.traceId, spanId: root.spanId, attributes: { "bursar.link": "replays" } },
      ])
    }).pipe(Effect.provide(handlers))
  })
})
