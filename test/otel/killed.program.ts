/** Run in a process of its own, to be killed: a lead and three children that never come to an end. */
import * as Effect from "effect/Effect"
import { Agent, Policy } from "../../src/index.ts"
import { Otel } from "../../src/otel/index.ts"
import { ask, bare, calls, plays } from "../support/scripts.ts"

const sleeper = Agent.make("sleeper", { policy: Policy.make(() => Effect.never), ...bare })
const lead = Agent.make("lead", {
  policy: plays(calls(ask("sleeper"), ask("sleeper"), ask("sleeper"))),
  children: [Agent.asTool(sleeper)],
  ...bare,
})
setInterval(() => undefined, 1_000)
await Effect.runPromise(
  Agent.run(lead, "task", { budget: { steps: 40, toolCalls: 9 }, runId: "killed" }).pipe(Effect.provide(Otel.layer())),
)
