import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Agent, Proposal, State } from "../../src/index.ts"
import { run } from "../support/journalled.ts"
import { calls, handled, plays, read, toolkit } from "../support/scripts.ts"

const size = (value: unknown): number => JSON.stringify(value).length

describe("a snapshot of a state", () => {
  it.effect("stays small: what is large stands there by hash and size, and how it begins", () =>
    Effect.gen(function* () {
      const large = "a long page ".repeat(50_000)
      const policy = plays(calls(read("x")), calls(read("y")), Proposal.finish(large))
      const agent = Agent.make("a", { policy, toolkit })
      const { events } = yield* run(agent, { steps: 9, toolCalls: 9 }, large).pipe(
        Effect.provide(handled({ read: () => Effect.succeed(large) })),
      )
      const fold = new State.Fold("a")
      for (const { event, atMillis } of events) fold.apply(event, atMillis)
      assert.isAbove(size(fold.state.session.turns), 1_000_000)
      const snapshot = State.snapshot(fold.state)
      assert.isBelow(size(snapshot), 5_000)
      const digest = Agent.digest(JSON.stringify(large))
      assert.include(JSON.stringify(snapshot), JSON.stringify({ hash: digest, bytes: large.length + 2 }).slice(0, -1))
      // What is small stays as it is.
      assert.include(JSON.stringify(snapshot), '"params":{"key":"x"}')
      assert.include(JSON.stringify(State.snapshot(fold.state, 10_000_000)), large)
    }),
  )
})
