import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Agent, type Event, Policy, Proposal, State, Verifier } from "../../src/index.ts"
import { run } from "../support/journalled.ts"
import { ask, calls, handled, plays, read, toolkit, write } from "../support/scripts.ts"

const fold = (agent: string, events: ReadonlyArray<Event.Recorded>) => {
  const folded = new State.Fold(agent)
  for (const { event } of events) folded.apply(event, 0)
  return folded.state
}

const family = () => {
  const child = Agent.make("child", { policy: plays(calls(read("c")), Proposal.finish("from the child")), toolkit })
  return Agent.make("lead", {
    policy: plays(
      calls(ask("child"), write("w"), { tool: "nowhere", params: {} }),
      Proposal.invalid("cannot decide"),
      Proposal.finish("wrong"),
      Proposal.finish("right"),
    ),
    toolkit,
    children: [Agent.asTool(child)],
    verify: Verifier.predicate<string>("right", ({ answer }) => answer === "right"),
  })
}

describe("the state of an agent", () => {
  it.effect("is a fold of its own events, and of those alone", () =>
    Effect.gen(function* () {
      const { events } = yield* run(family(), { steps: 40, toolCalls: 20 }, "the goal")
      const state = fold("lead", events)
      assert.strictEqual(state.task.text, "the goal")
      assert.deepStrictEqual(
        state.session.turns.map((turn) => [turn.kind, turn.feedback.length]),
        [
          ["call", 0],
          ["invalid", 1],
          ["finish", 1],
          ["finish", 0],
        ],
      )
      assert.deepStrictEqual(
        state.session.turns[0]!.observations.map((one) => [
          one.tool,
          one.outcome,
          one.ran,
          one.stateChanged,
          one.child,
        ]),
        [
          ["child", "ok", true, false, "lead/child-1"],
          ["write", "ok", true, true, undefined],
          ["nowhere", "error", false, false, undefined],
        ],
      )
      // One write changed the world once; nothing a model said did.
      assert.strictEqual(state.world.version, 1)
      assert.deepStrictEqual(state.control.ended, { reason: "completed", result: "full" })
      assert.strictEqual(state.control.steps, 4)
      const child = fold("lead/child-1", events)
      assert.deepStrictEqual([child.task.text, child.session.turns.length], ["a part", 2])
    }).pipe(Effect.provide(handled())),
  )

  it.effect("is the same at each step for the policy as for someone who replays the journal", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const policy = Policy.make((view) => {
        seen.push(JSON.parse(JSON.stringify(view.turns)))
        return view.step < 4 ? calls(read(`${view.step}`), write("w")) : Proposal.finish("done")
      })
      const { events } = yield* run(Agent.make("a", { policy, toolkit }), { steps: 12 })
      const decisions = events.flatMap(({ event }, index) => (event._tag === "Decided" ? [index] : []))
      assert.strictEqual(seen.length, decisions.length)
      decisions.forEach((index, step) => {
        const before = fold("a", events.slice(0, index))
        assert.deepStrictEqual(JSON.parse(JSON.stringify(before.session.turns)), seen[step])
      })
    }).pipe(Effect.provide(handled())),
  )

  it.effect("keeps the first cause of the end", () =>
    Effect.sync(() => {
      const folded = new State.Fold("a")
      const stopping = { _tag: "Stopping", agent: "a", step: 1, short: [], detail: "" } as const
      folded.apply({ ...stopping, reason: "deadline" }, 0)
      folded.apply({ ...stopping, reason: "cancelled" }, 0)
      assert.strictEqual(folded.state.control.stopping?.reason, "deadline")
    }),
  )
})
