import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Agent, Audit, Policy, Proposal, Verifier } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { all, broken, results, run, stopped, unbalanced } from "../support/journalled.ts"
import { calls, explorer, handled, plays, read, toolkit } from "../support/scripts.ts"

const usage = { input: 10, output: 5 }
const looking = (key: string): ScriptedModel.Turn => ({ calls: [{ name: "read", params: { key } }], usage })
const modelled = (turns: ReadonlyArray<ScriptedModel.Turn>) => {
  const model = ScriptedModel.make(turns)
  return { ...model, policy: Policy.fromModel(model.model, { maxOutputTokens: 5 }) }
}

describe("the last answer", () => {
  it.effect("is asked for once, with tools withdrawn, and kept as a partial result", () =>
    Effect.gen(function* () {
      const model = modelled([looking("a"), looking("b"), { text: "a and b", usage }])
      const agent = Agent.make("a", { policy: model.policy, toolkit, reserves: { output: { steps: 1 } } })
      const { outcome, events } = yield* run(agent, { steps: 3 })
      const { reason, result, partial } = stopped(outcome)
      assert.deepStrictEqual([reason, result, partial], ["budget:steps", "partial", "a and b"])
      assert.deepStrictEqual(
        model.requests.map(({ request }) => request.tools.length),
        [4, 4, 0],
      )
      const decided = all(events, "Decided").map((one) => one.purpose)
      assert.deepStrictEqual(decided, ["explore", "explore", "wrap_up"])
      assert.strictEqual(all(events, "Held").at(-1)!.reserve, "output")
      assert.deepStrictEqual([...broken(events), ...unbalanced(outcome.report.accounts)], [])
    }).pipe(Effect.provide(handled())),
  )

  it.effect("is asked for as JSON where the answer has a schema", () =>
    Effect.gen(function* () {
      const Report = Schema.Struct({ title: Schema.String, pages: Schema.Number })
      const model = modelled([looking("a"), { text: '{"title":"T","pages":3}', usage }])
      const agent = Agent.make("a", { policy: model.policy, toolkit, answer: Report })
      const { outcome } = yield* run(agent, { steps: 2 })
      assert.deepStrictEqual(stopped(outcome).partial, { title: "T", pages: 3 })
      const { request } = model.requests[1]!
      assert.deepStrictEqual([request.tools.length, request.answer?.tool.name], [0, "finish"])
    }).pipe(Effect.provide(handled())),
  )

  it.effect("that does not decode is kept as text", () =>
    Effect.gen(function* () {
      const model = modelled([looking("a"), { text: "sorry", usage }])
      const agent = Agent.make("a", { policy: model.policy, toolkit, answer: Schema.Struct({ n: Schema.Number }) })
      const { partial, text, result } = stopped((yield* run(agent, { steps: 2 })).outcome)
      assert.deepStrictEqual([partial, text, result], [undefined, "sorry", "partial"])
    }).pipe(Effect.provide(handled())),
  )

  it.effect("may come as a call of finish; any other call is refused and nothing runs", () =>
    Effect.gen(function* () {
      const ran: Array<string> = []
      const handlers = handled({ read: ({ key }) => Effect.sync(() => (ran.push(key), key)) })
      const answer = Schema.Struct({ n: Schema.Number })
      const finishing = modelled([looking("a"), { calls: [{ name: "finish", params: { n: 1 } }], usage }])
      const first = yield* run(Agent.make("a", { policy: finishing.policy, toolkit, answer }), { steps: 2 }).pipe(
        Effect.provide(handlers),
      )
      assert.deepStrictEqual(stopped(first.outcome).partial, { n: 1 })
      const calling = modelled([looking("b"), { ...looking("c"), text: "so far: b" }])
      const second = yield* run(Agent.make("a", { policy: calling.policy, toolkit, answer }), { steps: 2 }).pipe(
        Effect.provide(handlers),
      )
      assert.deepStrictEqual(results(second.events), ["ok", "EWITHDRAWN"])
      assert.deepStrictEqual(ran, ["a", "b"])
      assert.strictEqual(stopped(second.outcome).text, "so far: b")
      assert.deepStrictEqual(broken(second.events), [])
    }),
  )

  it.effect("may hold calls in a step that had some: they have ids of their own", () =>
    Effect.gen(function* () {
      const above = { input: 10, output: 9 }
      const model = modelled([{ ...looking("a"), usage: above }, looking("b")])
      const reserves = { output: { steps: 1, outputTokens: 9 } }
      const agent = Agent.make("a", { policy: model.policy, toolkit, reserves })
      const { outcome, events } = yield* run(agent, { steps: 3, outputTokens: 14 })
      assert.strictEqual(stopped(outcome).reason, "budget:output_tokens")
      const ended = all(events, "CallEnded").map(({ call, code }) => [call, code])
      assert.deepStrictEqual(ended, [
        ["step-1/call-1", "EBUDGET"],
        ["step-1/wrap_up/call-1", "EWITHDRAWN"],
      ])
      assert.deepStrictEqual(Audit.defects(Audit.audit(events)), [])
    }).pipe(Effect.provide(handled())),
  )

  it.effect("keeps an earlier answer that was not accepted when it brings none itself", () =>
    Effect.gen(function* () {
      const model = modelled([{ text: "the first try", usage }, { fault: "cut" }])
      const verify = Verifier.predicate<string>("never", () => "no")
      const { outcome } = yield* run(Agent.make("a", { policy: model.policy, verify }), { steps: 2 })
      const { reason, partial, result } = stopped(outcome)
      assert.deepStrictEqual([reason, partial, result], ["budget:steps", "the first try", "partial"])
    }),
  )

  it.effect("is never made after a failed model", () =>
    Effect.gen(function* () {
      const model = modelled([{ fault: { status: 400 } }])
      const { outcome } = yield* run(Agent.make("a", { policy: model.policy }), { steps: 9 })
      assert.strictEqual(stopped(outcome).reason, "model_error")
      assert.strictEqual(model.pastScript(), 0)
    }),
  )

  it.effect("always has its step in a run with shares, at every size of the grant", () =>
    Effect.gen(function* () {
      for (let steps = 1; steps <= 24; steps++) {
        const { outcome, events } = yield* run(Agent.make("a", { policy: explorer, toolkit }), { steps })
        const { reason, partial } = stopped(outcome)
        assert.deepStrictEqual([reason, partial], ["budget:steps", "what I have"], `${steps} steps`)
        assert.isAtMost(outcome.report.accounts[0]!.own.steps, steps)
        assert.deepStrictEqual([...broken(events), ...unbalanced(outcome.report.accounts)], [])
      }
    }).pipe(Effect.provide(handled())),
  )

  it.effect("is answered with all that was done: accounts, ends and observations stay", () =>
    Effect.gen(function* () {
      const { outcome, events } = yield* run(Agent.make("a", { policy: explorer, toolkit }), { steps: 6, toolCalls: 9 })
      const { report } = stopped(outcome)
      const [row] = report.accounts
      assert.deepStrictEqual([row!.state, row!.own.steps, row!.own.toolCalls], ["Closed", 6, 5])
      assert.deepStrictEqual(report.ends, [
        { agent: "a", name: "a", reason: "budget:steps", result: "partial", steps: 6, detail: report.ends[0]!.detail },
      ])
      assert.strictEqual(results(events).filter((one) => one === "ok").length, 5)
    }).pipe(Effect.provide(handled())),
  )
})

describe("staying able to answer", () => {
  const growing = (steps: number) =>
    modelled(
      Array.from({ length: steps }, (_, i) => ({
        calls: [{ name: "read", params: { key: `k${i}` } }],
        usage: { input: 100 * (i + 1), output: 5 },
      })),
    )

  it.effect("what the wrap-up will need moves from explore to output before it is too late", () =>
    Effect.gen(function* () {
      const model = growing(30)
      const { outcome, events } = yield* run(Agent.make("a", { policy: model.policy, toolkit }), { inputTokens: 4000 })
      assert.strictEqual(stopped(outcome).reason, "budget:input_tokens")
      assert.isAbove(all(events, "Moved").length, 0)
      assert.deepStrictEqual(all(events, "Moved")[0]!.from, "explore")
      // The wrap-up was asked for and paid, and nothing was overspent.
      assert.strictEqual(all(events, "Decided").at(-1)!.purpose, "wrap_up")
      assert.isFalse(outcome.report.overran)
      assert.isAtMost(outcome.report.accounts[0]!.own.inputTokens, 4000)
      assert.deepStrictEqual([...broken(events), ...unbalanced(outcome.report.accounts)], [])
    }).pipe(Effect.provide(handled())),
  )

  it.effect("a call shrinks before exploring stops for the sake of the answer", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([
        { calls: [{ name: "read", params: { key: "a" } }], usage: { input: 10, output: 40 } },
        { text: "done", usage: { input: 10, output: 30 } },
      ])
      const policy = Policy.fromModel(model.model, { maxOutputTokens: 100, minOutputTokens: 50 })
      const shares = { output: 10, verify: 0, retry: 0 }
      const agent = Agent.make("a", { policy, toolkit, reserves: { shares } })
      // 14 of 140 are output and 50 are needed there; 90 stay to explore with, less than the 100 that are wished for.
      const { outcome } = yield* run(agent, { outputTokens: 140 })
      assert.strictEqual(outcome._tag, "Completed")
      assert.deepStrictEqual(
        model.requests.map((one) => one.maxOutputTokens),
        [90, 50],
      )
    }).pipe(Effect.provide(handled())),
  )
})

describe("the finish tool", () => {
  const Report = Schema.Struct({ title: Schema.String })
  const finish = (params: unknown): ScriptedModel.Turn => ({ calls: [{ name: "finish", params }], usage })

  it.effect("brings an object as it is, and anything else inside one", () =>
    Effect.gen(function* () {
      const whole = modelled([finish({ title: "T" })])
      const object = yield* run(Agent.make("a", { policy: whole.policy, answer: Report }), { steps: 3 })
      assert.deepStrictEqual(object.outcome._tag === "Completed" && object.outcome.answer, { title: "T" })
      const forms: ReadonlyArray<readonly [Schema.Codec<unknown>, unknown]> = [
        [Schema.Array(Schema.Number), [1, 2]],
        [Schema.Number, 7],
        [Schema.Literals(["yes", "no"]), "yes"],
      ]
      for (const [answer, value] of forms) {
        const model = modelled([finish({ answer: value })])
        const agent = Agent.make("a", { policy: model.policy, answer })
        const { outcome } = yield* run(agent, { steps: 3 })
        assert.deepStrictEqual(outcome._tag === "Completed" && outcome.answer, value)
      }
    }),
  )

  it.effect("may send its arguments as a string of JSON", () =>
    Effect.gen(function* () {
      const model = modelled([finish('{"title":"T"}')])
      const { outcome } = yield* run(Agent.make("a", { policy: model.policy, answer: Report }), { steps: 3 })
      assert.strictEqual(outcome._tag, "Completed")
    }),
  )

  it.effect("is not offered to an agent that answers with text, and text finishes that one alone", () =>
    Effect.gen(function* () {
      const text = modelled([{ text: "done", usage }])
      assert.strictEqual((yield* run(Agent.make("a", { policy: text.policy }), { steps: 3 })).outcome._tag, "Completed")
      assert.deepStrictEqual(text.requests[0]!.request.tools, [])
      const schema = modelled([{ text: "done", usage }, finish({ title: "T" })])
      const ran = yield* run(Agent.make("a", { policy: schema.policy, answer: Report }), { steps: 5 })
      assert.strictEqual(ran.outcome._tag, "Completed")
      assert.deepStrictEqual(
        all(ran.events, "Decided").map((one) => one.kind),
        ["invalid", "finish"],
      )
      assert.include(JSON.stringify(schema.requests[1]!.request.messages), "call finish")
    }),
  )

  it.effect("among other calls is answered as a call that does not exist, and the others run", () =>
    Effect.gen(function* () {
      const both = [
        { name: "read", params: { key: "x" } },
        { name: "finish", params: { title: "T" } },
      ]
      const model = modelled([{ calls: both, usage }, finish({ title: "U" })])
      const ran = yield* run(Agent.make("a", { policy: model.policy, toolkit, answer: Report }), { steps: 5 })
      assert.deepStrictEqual(results(ran.events), ["ok", "ENOTOOL"])
      assert.deepStrictEqual(ran.outcome._tag === "Completed" && ran.outcome.answer, { title: "U" })
    }).pipe(Effect.provide(handled())),
  )

  it.effect("with an answer of another form is told what is wrong and what it had said", () =>
    Effect.gen(function* () {
      const model = modelled([{ ...finish({ titel: "mistyped" }), text: "Here it is." }, finish({ title: "T" })])
      const ran = yield* run(Agent.make("a", { policy: model.policy, answer: Report }), { steps: 5 })
      assert.strictEqual(ran.outcome._tag, "Completed")
      const said = JSON.stringify(model.requests[1]!.request.messages)
      assert.include(said, "title")
      assert.include(said, "mistyped")
    }),
  )

  it.effect("an answer that a transformation cannot read is a decision, not a torn loop", () =>
    Effect.gen(function* () {
      const answer = Schema.String.pipe(
        Schema.check(
          Schema.makeFilter(() => {
            throw new Error("broken")
          }),
        ),
      )
      const { outcome, events } = yield* run(Agent.make("a", { policy: plays(Proposal.finish("x")), answer }), {
        steps: 9,
      })
      assert.strictEqual(stopped(outcome).reason, "invalid_decisions")
      assert.deepStrictEqual(broken(events), [])
    }),
  )
})

describe("two tools of one name", () => {
  it("are a mistake that shows when the agent is made", () => {
    const child = Agent.make("read", { policy: explorer, toolkit })
    assert.throws(() => Agent.make("a", { policy: explorer, toolkit, children: [Agent.asTool(child)] }), /two tools/)
    const finish = Agent.make("finish", { policy: plays(calls(read("x"))), toolkit })
    assert.throws(() => Agent.make("a", { policy: explorer, children: [Agent.asTool(finish)] }), /finish/)
  })
})
