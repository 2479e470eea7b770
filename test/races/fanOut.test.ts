import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Agent, Policy, Proposal } from "../../src/index.ts"
import { all, run, whole } from "../support/journalled.ts"
import { ask, bare, calls, handled, plays, read, toolkit } from "../support/scripts.ts"
import { Random } from "./Schedule.ts"

const limit = 9

/** Reads as long as it can, two at a time. */
const greedy = Agent.make("greedy", {
  policy: Policy.make((view) => calls(read(`a ${view.step}`), read(`b ${view.step}`))),
  toolkit,
  ...bare,
})

/** Asks for so many children in one reply, and reads beside them. */
const parent = (children: number, concurrency: number, effects: "ordered" | "concurrent") =>
  Agent.make("parent", {
    policy: plays(
      calls(...Array.from({ length: children }, () => ask("greedy")), read("x"), read("y")),
      calls(read("z"), ask("greedy")),
      Proposal.finish("done"),
    ),
    toolkit,
    children: [Agent.asTool(greedy)],
    settings: { concurrency: { calls: concurrency, effects } },
    ...bare,
  })

/** Tools that take so many steps as a seed says. */
const uneven = (seed: number) => {
  const random = new Random(seed)
  return handled({
    read: ({ key }) =>
      Effect.suspend(() =>
        Effect.as(
          Effect.forEach(Array.from({ length: random.between(0, 4) }), () => Effect.yieldNow),
          key,
        ),
      ),
  })
}

describe(`fan-out under ${limit} tool calls`, () => {
  for (const concurrency of [1, 2, 3, 4, 5, 6, 7, 8]) {
    it.effect(`never makes more, with ${concurrency} at a time`, () =>
      Effect.gen(function* () {
        for (const children of [2, 3, 5, 8]) {
          for (const effects of ["ordered", "concurrent"] as const) {
            const agent = parent(children, concurrency, effects)
            const { outcome, events } = whole(
              yield* run(agent, { toolCalls: limit, steps: 60 }).pipe(
                Effect.provide(uneven(10 * concurrency + children)),
              ),
            )
            const started = all(events, "CallStarted").length
            const booked = outcome.report.accounts.reduce((sum, row) => sum + row.own.toolCalls, 0)
            assert.strictEqual(booked, started)
            assert.isAtMost(started, limit)
            assert.isAtLeast(started, Math.min(limit, children))
          }
        }
      }),
    )
  }
})
