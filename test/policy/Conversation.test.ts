import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Prompt from "effect/ai/Prompt"
import { Agent, Policy, Proposal, Verifier } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { all, run } from "../support/journalled.ts"
import { calls, handled, plays, read, toolkit } from "../support/scripts.ts"

const usage = { input: 10, output: 5 }

const conversation = (
  turns: ReadonlyArray<ScriptedModel.Turn>,
  options: Pick<Agent.Options<string, never, never, never, (typeof toolkit)["tools"]>, "verify" | "instructions"> = {},
) =>
  Effect.gen(function* () {
    const model = ScriptedModel.make(turns)
    const policy = Policy.fromModel(model.model, { maxOutputTokens: 5 })
    const ran = yield* run(Agent.make("a", { policy, toolkit, ...options }), { steps: 9, toolCalls: 5 }, "the task")
    return { ...ran, requests: model.requests.map((one) => one.request.messages) }
  }).pipe(Effect.provide(handled()))

const textOf = (message: Prompt.Message): string =>
  typeof message.content === "string"
    ? message.content
    : message.content.flatMap((part) => (part.type === "text" ? [part.text] : [part.type])).join("|")

describe("what a model is sent", () => {
  it.effect("opens with the instructions and the task, and ends with what is left", () =>
    Effect.gen(function* () {
      const { requests } = yield* conversation([{ text: "done", usage }], { instructions: "Be brief." })
      assert.deepStrictEqual(requests[0]!.map(textOf), [
        "Be brief.\n\nAnswer in plain text once you are done.",
        "the task",
        "Go on. Left for this task: steps 8, tool_calls 5.",
      ])
    }),
  )

  it.effect("has every call with its one result right after it, and the same prefix in every request", () =>
    Effect.gen(function* () {
      const reply = (key: string): ScriptedModel.Turn => ({
        text: `looking at ${key}`,
        calls: [
          { name: "read", params: { key } },
          { name: "nowhere", params: {} },
        ],
        usage,
      })
      const { requests } = yield* conversation([reply("a"), reply("b"), { text: "done", usage }])
      const last = requests[2]!
      assert.deepStrictEqual(
        last.map((message) => message.role),
        ["system", "user", "assistant", "tool", "assistant", "tool", "user"],
      )
      for (const [index, message] of last.entries()) {
        if (message.role !== "assistant") continue
        const asked = message.content.flatMap((part) => (part.type === "tool-call" ? [part.id] : []))
        const answer = last[index + 1]!
        const given =
          answer.role === "tool" ? answer.content.map((part) => (part.type === "tool-result" ? part.id : "")) : []
        assert.deepStrictEqual(given, asked)
      }
      // A history only grows at its end: the same message objects, so that caches hold.
      requests[1]!.slice(0, -1).forEach((message, index) => assert.strictEqual(last[index], message))
    }),
  )

  it.effect("says why an answer was not accepted, after the answer itself", () =>
    Effect.gen(function* () {
      const verify = Verifier.predicate<string>("good", ({ answer }) => answer === "good" || "be good")
      const { requests } = yield* conversation(
        [
          { text: "bad", usage },
          { text: "good", usage },
        ],
        { verify },
      )
      assert.deepStrictEqual(requests[1]!.slice(2, 4).map(textOf), [
        "bad",
        "The answer was not accepted. good: be good",
      ])
    }),
  )
})

describe("what a reply proposes", () => {
  const kinds = (turns: ReadonlyArray<ScriptedModel.Turn>) =>
    Effect.map(conversation([...turns, { text: "done", usage }]), ({ events }) =>
      all(events, "Decided").map((one) => one.why ?? one.kind),
    )

  it.effect("an empty one and one that was cut off propose nothing; the run goes on", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(
        yield* kinds([
          { text: "", usage },
          { text: "half", usage, finishReason: "length" },
        ]),
        ["The reply was empty.", "The reply was cut off by the limit on its length.", "finish"],
      )
    }),
  )

  it.effect("calls with text propose calls, and keep the text", () =>
    Effect.gen(function* () {
      const { events } = yield* conversation([
        { text: "a thought", calls: [{ name: "read", params: { key: "x" } }], usage },
        { text: "done", usage },
      ])
      const [first] = all(events, "Decided")
      assert.deepStrictEqual([first!.kind, first!.text?.text], ["call", "a thought"])
    }),
  )
})

describe("policies", () => {
  it.effect("a function for a model changes nothing else", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([
        { calls: [{ name: "read", params: { key: "x" } }], usage: { input: 1, output: 1 } },
        { text: "done", usage: { input: 1, output: 1 } },
      ])
      const events = (policy: Policy.Policy) =>
        Effect.map(run(Agent.make("a", { policy, toolkit }), { steps: 9, toolCalls: 5 }), (ran) =>
          ran.events.map(({ event }) => event._tag),
        )
      const plain = yield* events(plays(calls(read("x")), Proposal.finish("done")))
      const asked = yield* events(Policy.fromModel(model.model, { maxOutputTokens: 5 }))
      assert.deepStrictEqual(asked, plain)
    }).pipe(Effect.provide(handled())),
  )

  it.effect("may show a model another view: other instructions are other instructions in every step", () =>
    Effect.gen(function* () {
      const model = ScriptedModel.make([
        { calls: [{ name: "read", params: { key: "x" } }], usage },
        { text: "done", usage },
      ])
      const inner = Policy.fromModel(model.model, { maxOutputTokens: 5 })
      const phased: Policy.Policy = {
        ...inner,
        attempt: (view, terms) =>
          inner.attempt({ ...view, instructions: view.turns.length === 0 ? "Look." : "Conclude." }, terms),
      }
      yield* run(Agent.make("a", { policy: phased, toolkit }), { steps: 9 })
      assert.deepStrictEqual(
        model.requests.map(({ request }) => textOf(request.messages[0]!).split("\n")[0]),
        ["Look.", "Conclude."],
      )
    }).pipe(Effect.provide(handled())),
  )

  it.effect("see what is left, per reserve, and the time", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const policy = Policy.make((view) => {
        seen.push([view.step, view.left.explore.steps, view.left.output.steps, view.leftMillis])
        return view.turns.length < 2 ? calls(read(`${view.step}`)) : Proposal.finish(7)
      })
      const agent = Agent.make("a", { policy, toolkit, answer: Schema.Number })
      yield* run(agent, { steps: 20, wallClock: "100 seconds" })
      assert.deepStrictEqual(seen, [
        [1, 15, 3, 85_000],
        [2, 14, 3, 85_000],
        [3, 13, 3, 85_000],
      ])
    }).pipe(Effect.provide(handled())),
  )
})
