import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import * as Effect from "effect/Effect"
import { Agent, type Event, Journal, Policy, Proposal } from "../../src/index.ts"

describe("a journal", () => {
  it.effect("names the version of the package that wrote it", () =>
    Effect.gen(function* () {
      const events: Array<Event.Recorded> = []
      const agent = Agent.make("a", { policy: Policy.make(() => Proposal.finish("done")) })
      yield* Agent.run(agent, "go", { budget: { steps: 2 } }).pipe(
        Effect.provideService(Journal.Journal, Journal.toArray(events)),
      )
      const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { readonly version: string }
      const [first] = events
      assert.strictEqual(first?.event._tag === "RunStarted" ? first.event.bursar : "", version)
    }),
  )
})
