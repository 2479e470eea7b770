import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Agent, type Budget, type Event, Policy, Proposal, ToolError } from "../../src/index.ts"
import { type Any, completed, driven, kit, pass, questions, resumed, says, use } from "../support/driven.ts"
import { ask, bare, calls, plays } from "../support/scripts.ts"

const budget: Budget.Input = { steps: 60, toolCalls: 60, wallClock: "100 days" }

describe("a process that dies", () => {
  it.effect("between a call and its twin: the effect happens once", () => {
    const paid: Array<string> = []
    const tools = kit({
      pay: [{ effect: "write", idempotency: "none" }, ({ key }) => Effect.sync(() => (paid.push(key), key))],
    })
    const agent = Agent.make("root", {
      ...bare,
      policy: plays(calls({ id: "p1", ...use("pay") }, { id: "p1", ...use("pay") }), Proposal.finish("fine")),
      toolkit: tools.toolkit,
    }) as unknown as Any
    return Effect.gen(function* () {
      const events: Array<Event.Recorded> = []
      completed(yield* driven(agent, { budget, events }, (handle) => Effect.andThen(pass(1000), handle.await)))
      assert.deepStrictEqual(paid, ["x"])
      const left = events.slice(0, events.findIndex(({ event }) => event._tag === "CallEnded") + 1)
      completed(yield* resumed(agent, left))
      assert.deepStrictEqual(paid, ["x"])
    }).pipe(Effect.provide(tools.handlers)) as Effect.Effect<void>
  })

  it.effect("after the wrap-up was said: its words are kept", () => {
    const agent = Agent.make("root", {
      answer: Schema.Number,
      policy: Policy.make((view) =>
        view.purpose === "wrap_up" ? Proposal.finish("about seven") : Proposal.invalid("not yet"),
      ),
    } as never) as unknown as Any
    return Effect.gen(function* () {
      const events: Array<Event.Recorded> = []
      const whole = yield* driven(agent, { budget, events }, (handle) => Effect.andThen(pass(1000), handle.await))
      const at = events.findIndex(({ event }) => event._tag === "Decided" && event.purpose === "wrap_up")
      assert.isAtLeast(at, 0)
      const after = yield* resumed(agent, events.slice(0, at + 1))
      assert.deepStrictEqual(
        after._tag === "Stopped" && [after.reason, after.result, after.text],
        whole._tag === "Stopped" && [whole.reason, whole.result, whole.text],
      )
    })
  })
})

describe("a child that comes to a question while the run is paused", () => {
  it.effect("stands still once the run goes on: its time does not pass", () => {
    const tools = kit({
      send: [
        { effect: "irreversible", timeout: "1 minute", retries: 0 },
        () => Effect.andThen(Effect.sleep("10 seconds"), Effect.fail(ToolError.lost("ELOST", "lost"))),
      ],
      look: [{ effect: "read", timeout: "2 hours" }, ({ key }) => Effect.as(Effect.sleep("1 hour"), key)],
    })
    const leaf = Agent.make("leaf", {
      ...bare,
      policy: plays(calls(use("send")), calls(use("look")), Proposal.finish("sent")),
      toolkit: tools.toolkit,
    })
    const slow = Agent.make("slow", {
      ...bare,
      policy: plays(calls(use("look")), Proposal.finish("seen")),
      toolkit: tools.toolkit,
    })
    const agent = Agent.make("root", {
      ...bare,
      policy: plays(calls(ask("leaf"), ask("slow")), (view) =>
        Proposal.finish(JSON.stringify(view.turns[0]!.observations[0]!.data ?? view.turns[0]!.observations[0]!.error)),
      ),
      children: [Agent.asTool(leaf, { wallClockMillis: 5_400_000 }), Agent.asTool(slow)],
    }) as unknown as Any
    const play = (pauses: boolean) =>
      Effect.gen(function* () {
        const events: Array<Event.Recorded> = []
        const [question] = questions(
          yield* driven(agent, { budget, events }, (handle) =>
            Effect.gen(function* () {
              yield* pass(1000)
              if (pauses) yield* handle.pause
              yield* pass(20_000)
              if (pauses) yield* handle.resume
              yield* pass(7_200_000)
              return yield* handle.await
            }),
          ),
        )
        return completed(yield* resumed(agent, events, [says(question!, "happened", "ok")])).answer
      })
    return Effect.gen(function* () {
      assert.strictEqual(yield* play(true), yield* play(false))
    }).pipe(Effect.provide(tools.handlers)) as Effect.Effect<void>
  })
})
