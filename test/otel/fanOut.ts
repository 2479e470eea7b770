/** A run of very many agents: a lead, groups, and children in each, all of which end at the same moment. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { Agent, Policy, Proposal } from "../../src/index.ts"
import { ask, bare, plays } from "../support/scripts.ts"

export interface FanOut {
  readonly groups: number
  /** Children of a group. */
  readonly each: number
  readonly runId?: string
}

export const fanOut = ({ each, groups, runId }: FanOut) =>
  Effect.gen(function* () {
    const children = groups * each
    const [all, together] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
    let running = 0
    const leaf = Agent.make("leaf", {
      ...bare,
      policy: Policy.make(() =>
        Effect.suspend(() => (++running === children ? Deferred.succeed(all, undefined) : Effect.void)).pipe(
          Effect.andThen(Deferred.await(together)),
          Effect.as(Proposal.finish("done")),
        ),
      ),
    })
    const asking = (name: string, below: Agent.Agent<string>, count: number) =>
      Agent.make(name, {
        ...bare,
        policy: plays(Proposal.callAll(Array.from({ length: count }, () => ask(below.name))), Proposal.finish("done")),
        children: [Agent.asTool(below)],
        settings: { concurrency: { calls: count, effects: "ordered" } },
      })
    const lead = asking("lead", asking("group", leaf, each), groups)
    const budget = { steps: 9 * children, toolCalls: 9 * children }
    const run = Agent.run(lead, "task", runId === undefined ? { budget } : { budget, runId })
    const end = Effect.andThen(Deferred.await(all), Deferred.succeed(together, undefined))
    const [outcome] = yield* Effect.all([run, end], { concurrency: 2 })
    return outcome
  })

/** How many spans it makes of each name, the roots of further traces aside. */
export const spansOf = ({ each, groups }: FanOut): Readonly<Record<string, number>> => {
  const children = groups * each
  return {
    "invoke_agent lead": 1,
    "invoke_agent group": groups,
    "invoke_agent leaf": children,
    "execute_tool group": groups,
    "execute_tool leaf": children,
    "bursar.start": 1 + groups + children,
    "bursar.step": 2 * (1 + groups) + children,
  }
}
