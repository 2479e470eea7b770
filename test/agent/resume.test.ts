import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Agent, type Event, Policy, Proposal, ToolError, type Budget } from "../../src/index.ts"
import { type Any, driven, kit, lawful, pass, questions, resumed, says, use, completed } from "../support/driven.ts"
import { stopped } from "../support/journalled.ts"
import { ask, bare, calls, plays } from "../support/scripts.ts"

const budget: Budget.Input = { steps: 60, toolCalls: 60, wallClock: "100 days" }

const ran = <A, R>(agent: Agent.Agent<A, R>, events: Array<Event.Recorded>, given: Budget.Input = budget) =>
  driven(agent as unknown as Agent.Agent<A>, { budget: given, events }, (handle) =>
    Effect.andThen(pass(3_600_000), handle.await),
  )

/** The journal as it was when the process died right after the first event that fits. */
const cutAfter = (events: ReadonlyArray<Event.Recorded>, fits: (event: Event.Event) => boolean) => {
  const at = events.findIndex(({ event }) => fits(event))
  assert.isAtLeast(at, 0, "no such event")
  return events.slice(0, at + 1)
}

describe("a process that dies", () => {
  it.effect("after a fatal failure: the calls behind it do not run, and the run stops for it", () => {
    const done: Array<string> = []
    const tools = kit({
      breaks: [
        { effect: "write", idempotency: "natural", retries: 0 },
        () => Effect.fail(ToolError.fatal("EGONE", "gone")),
      ],
      put: [{ effect: "write", idempotency: "natural" }, ({ key }) => Effect.sync(() => (done.push(key), key))],
    })
    const agent = Agent.make("root", {
      ...bare,
      policy: plays(calls(use("breaks"), use("put", "must not")), Proposal.finish("fine")),
      toolkit: tools.toolkit,
    }) as unknown as Any
    return Effect.gen(function* () {
      const events: Array<Event.Recorded> = []
      const whole = stopped(yield* ran(agent, events))
      assert.strictEqual(whole.reason, "tool_error")
      assert.deepStrictEqual(done, [])
      // endTool flushes right after this event: this is what is on disk.
      const left = cutAfter(events, (event) => event._tag === "CallEnded" && event.tool === "breaks")
      const outcome = yield* resumed(agent, left)
      assert.deepStrictEqual([done, outcome._tag === "Stopped" ? outcome.reason : outcome._tag], [[], "tool_error"])
    }).pipe(Effect.provide(tools.handlers))
  })

  it.effect("after a fatal failure of the last call: the run stops for it all the same", () => {
    const tools = kit({
      breaks: [
        { effect: "write", idempotency: "natural", retries: 0 },
        () => Effect.fail(ToolError.fatal("EGONE", "gone")),
      ],
    })
    const agent = Agent.make("root", {
      ...bare,
      policy: plays(calls(use("breaks")), Proposal.finish("fine")),
      toolkit: tools.toolkit,
    }) as unknown as Any
    return Effect.gen(function* () {
      const events: Array<Event.Recorded> = []
      assert.strictEqual(stopped(yield* ran(agent, events)).reason, "tool_error")
      const left = cutAfter(events, (event) => event._tag === "CallEnded")
      const outcome = yield* resumed(agent, left)
      assert.strictEqual(outcome._tag === "Stopped" ? outcome.reason : outcome._tag, "tool_error")
    }).pipe(Effect.provide(tools.handlers))
  })

  it.effect("after a person said no: the run stops as blocked all the same", () => {
    const tools = kit({ pay: [{ effect: "irreversible", approval: true }, ({ key }) => Effect.succeed(key)] })
    const agent = Agent.make("root", {
      ...bare,
      policy: plays(calls(use("pay")), Proposal.finish("fine")),
      toolkit: tools.toolkit,
    }) as unknown as Any
    return Effect.gen(function* () {
      const events: Array<Event.Recorded> = []
      const [question] = questions(yield* ran(agent, events))
      const going = [...events]
      assert.strictEqual(stopped(yield* resumed(agent, going, [says(question!, "denied")])).reason, "blocked")
      const left = cutAfter(going, (event) => event._tag === "CallEnded")
      const outcome = yield* resumed(agent, left)
      assert.strictEqual(outcome._tag === "Stopped" ? outcome.reason : outcome._tag, "blocked")
    }).pipe(Effect.provide(tools.handlers))
  })

  it.effect("between the start of a call and that of its child: the child keeps its task", () => {
    const leaf = Agent.make("leaf", { ...bare, policy: Policy.make((view) => Proposal.finish(view.task)) })
    const agent = Agent.make("root", {
      ...bare,
      policy: plays(calls(ask("leaf", "count the sheep")), (view) =>
        Proposal.finish(JSON.stringify(view.turns[0]!.observations[0]!.data)),
      ),
      children: [Agent.asTool(leaf)],
    })
    return Effect.gen(function* () {
      const events: Array<Event.Recorded> = []
      const { answer } = completed(yield* ran(agent, events))
      const left = cutAfter(events, (event) => event._tag === "CallStarted")
      assert.strictEqual(completed(yield* resumed(agent, left)).answer, answer)
    })
  })

  it.effect("after an answer was accepted: it is accepted still, though nothing is left to check it again", () => {
    const critic = Agent.make("critic", {
      ...bare,
      answer: Agent.Judgement,
      policy: Policy.make(() => Proposal.finish({ accepted: true, reason: "" })),
    })
    const agent = Agent.make("root", {
      reserves: { verify: { steps: 1 } },
      policy: plays(Proposal.finish("right")),
      verify: Agent.judge(critic, { needs: { steps: 1 } }),
    }) as unknown as Any
    return Effect.gen(function* () {
      const events: Array<Event.Recorded> = []
      assert.strictEqual(completed(yield* ran(agent, events)).answer, "right")
      const left = cutAfter(events, (event) => event._tag === "Verified")
      const outcome = yield* resumed(agent, left)
      assert.strictEqual(outcome._tag === "Stopped" ? outcome.reason : outcome._tag, "Completed")
    })
  })
})

describe("cancelling while a resumed run prepares", () => {
  it.effect("a child of an earlier process closes with its parent", () => {
    const tools = kit({
      pay: [{ effect: "irreversible", approval: true }, ({ key }) => Effect.succeed(key)],
      slow: [
        {
          effect: "write",
          approval: true,
          preconditions: [{ name: "slow", check: () => Effect.as(Effect.sleep("10 seconds"), true) }],
        },
        ({ key }) => Effect.succeed(key),
      ],
    })
    const leaf = Agent.make("leaf", {
      ...bare,
      policy: plays(calls(use("pay")), Proposal.finish("paid")),
      toolkit: tools.toolkit,
    })
    const agent = Agent.make("root", {
      ...bare,
      policy: plays(calls(ask("leaf"), use("slow")), Proposal.finish("fine")),
      toolkit: tools.toolkit,
      children: [Agent.asTool(leaf)],
    }) as unknown as Any
    return Effect.gen(function* () {
      const events: Array<Event.Recorded> = []
      yield* ran(agent, events)
      const { Journal } = yield* Effect.promise(() => import("../../src/index.ts"))
      const outcome = yield* Effect.scoped(
        Effect.gen(function* () {
          const handle = yield* Agent.spawnResumed(agent, { run: "run" })
          yield* pass(1000)
          return yield* handle.cancel
        }),
      ).pipe(Effect.provideService(Journal.Journal, Journal.toArray(events)))
      lawful(outcome, events)
    }).pipe(Effect.provide(tools.handlers)) as Effect.Effect<void>
  })
})

describe("an effect of which nobody knows", () => {
  it.effect("is not repeated by another agent while its question is open, in no process", () => {
    const paid: Array<string> = []
    const tools = kit({
      pay: [
        { effect: "irreversible", timeout: "1 second", retries: 0 },
        ({ key }) =>
          Effect.andThen(
            Effect.sync(() => paid.push(key)),
            Effect.never,
          ),
      ],
      look: [{ effect: "read", timeout: "1 minute" }, ({ key }) => Effect.as(Effect.sleep("10 seconds"), key)],
    })
    const first = Agent.make("first", {
      ...bare,
      policy: plays(calls(use("pay")), Proposal.finish("paid")),
      toolkit: tools.toolkit,
    })
    const later = Agent.make("later", {
      ...bare,
      policy: plays(calls(use("look")), calls(use("pay")), Proposal.finish("paid")),
      toolkit: tools.toolkit,
    })
    const agent = Agent.make("root", {
      ...bare,
      policy: plays(calls(ask("later"), ask("first")), Proposal.finish("fine")),
      children: [Agent.asTool(later), Agent.asTool(first)],
    }) as unknown as Any
    return Effect.gen(function* () {
      const events: Array<Event.Recorded> = []
      const waits = questions(yield* ran(agent, events))
      assert.deepStrictEqual([waits.length, paid.length], [1, 1])
      // Nobody answers; the run is only gone on with.
      const again = questions(yield* resumed(agent, events))
      assert.deepStrictEqual([again.map((one) => one.approval), paid.length], [waits.map((one) => one.approval), 1])
    }).pipe(Effect.provide(tools.handlers))
  })
})
