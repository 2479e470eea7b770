import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { Agent, Budget, type Event, Journal, Permission, Policy, Proposal } from "../../src/index.ts"
import { FileJournal } from "../../src/node/index.ts"
import { type Any, completed, driven, kit, pass, questions, resumed, says, use } from "../support/driven.ts"
import { all } from "../support/journalled.ts"
import { ask, bare, calls, plays } from "../support/scripts.ts"

const budget: Budget.Input = { steps: 60, toolCalls: 60, wallClock: "100 days" }

describe("one key in one run", () => {
  it.effect("counts once for agents that run in one opened budget", () => {
    const paid: Array<string> = []
    const tools = kit({
      pay: [
        { effect: "write", idempotency: "key", key: ({ key }) => `invoice ${key}` },
        ({ key }) => Effect.sync(() => (paid.push(key), key)),
      ],
    })
    const clerk = (name: string) =>
      Agent.make(name, { ...bare, policy: plays(calls(use("pay")), Proposal.finish("paid")), toolkit: tools.toolkit })
    return Effect.gen(function* () {
      const events: Array<Event.Recorded> = []
      yield* Effect.all([Agent.run(clerk("a"), "pay"), Agent.run(clerk("b"), "pay")]).pipe(
        Budget.open(budget, { runId: "run" }),
        Effect.provideService(Journal.Journal, Journal.toArray(events)),
      )
      assert.deepStrictEqual(paid, ["x"])
    }).pipe(Effect.provide(tools.handlers)) as Effect.Effect<void>
  })

  it.effect("of an irreversible call of which nobody knows is not used again, whatever else is said", () => {
    const paid: Array<string> = []
    const tools = kit({
      pay: [
        {
          effect: "irreversible",
          idempotency: "key",
          key: ({ key }) => `invoice ${key}`,
          timeout: "1 second",
          whenUncertain: "tell",
        },
        ({ key }) =>
          Effect.andThen(
            Effect.sync(() => paid.push(key)),
            Effect.never,
          ),
      ],
    })
    const agent = Agent.make("root", {
      ...bare,
      policy: plays(
        calls({ tool: "pay", params: { key: "x", note: "please" } }),
        calls({ tool: "pay", params: { key: "x", note: "again, please" } }),
        Proposal.finish("fine"),
      ),
      toolkit: tools.toolkit,
    }) as unknown as Any
    return Effect.gen(function* () {
      yield* driven(agent, { budget }, (handle) => Effect.andThen(pass(3_600_000), handle.await))
      assert.deepStrictEqual(paid, ["x"])
    }).pipe(Effect.provide(tools.handlers)) as Effect.Effect<void>
  })
})

describe("a child that is cancelled right after a crash", () => {
  it.effect("leaves its begun effect uncertain: its parent does not repeat it", () => {
    const paid: Array<string> = []
    let slow = false
    const tools = kit({
      pay: [
        { effect: "irreversible", scope: "pay", whenUncertain: "tell" },
        ({ key }) => Effect.sync(() => (paid.push(key), key)),
      ],
    })
    const permissions: Permission.Permissions = {
      check: () => (slow ? Effect.as(Effect.sleep("10 seconds"), "allow" as const) : Effect.succeed("allow" as const)),
    }
    const leaf = Agent.make("leaf", {
      ...bare,
      policy: plays(calls(use("pay")), Proposal.finish("paid")),
      toolkit: tools.toolkit,
    })
    const agent = Agent.make("root", {
      ...bare,
      policy: plays(calls(ask("leaf")), calls(use("pay")), Proposal.finish("fine")),
      toolkit: tools.toolkit,
      children: [Agent.asTool(leaf)],
    }) as unknown as Any
    return Effect.gen(function* () {
      const events: Array<Event.Recorded> = []
      yield* driven(agent, { budget, events }, (handle) => Effect.andThen(pass(3_600_000), handle.await))
      const at = events.findIndex(({ event }) => event._tag === "CallStarted" && event.tool === "pay")
      const left = events.slice(0, at + 1)
      paid.splice(0)
      paid.push("x") // It had happened when the process died.
      slow = true
      yield* Effect.scoped(
        Effect.gen(function* () {
          const handle = yield* Agent.spawnResumed(agent, { run: "run" })
          yield* pass(1000)
          yield* handle.cancelAgent("root/leaf-1")
          yield* pass(3_600_000)
          return yield* handle.await
        }),
      ).pipe(Effect.provideService(Journal.Journal, Journal.toArray(left)))
      assert.deepStrictEqual(
        [paid, all(left, "CallEnded").map((one) => `${one.agent} ${one.tool} ${one.code ?? one.outcome} ${one.ran}`)],
        [["x"], ["root/leaf-1 pay ECANCELLED true", "root leaf ESTOPPED true", "root pay EUNCERTAIN false"]],
      )
    }).pipe(
      Effect.provideService(Permission.Permissions, permissions),
      Effect.provide(tools.handlers),
    ) as Effect.Effect<void>
  })
})

describe("a child that waits for a person", () => {
  it.effect("ends when it is cancelled: nobody is asked for it any more", () => {
    const tools = kit({
      pay: [{ effect: "irreversible", approval: true }, ({ key }) => Effect.succeed(key)],
      look: [{ effect: "read", timeout: "1 minute" }, ({ key }) => Effect.as(Effect.sleep("10 seconds"), key)],
    })
    const leaf = Agent.make("leaf", {
      ...bare,
      policy: plays(calls(use("pay")), Proposal.finish("paid")),
      toolkit: tools.toolkit,
    })
    const slow = Agent.make("slow", {
      ...bare,
      policy: plays(calls(use("look")), Proposal.finish("seen")),
      toolkit: tools.toolkit,
    })
    const agent = Agent.make("root", {
      ...bare,
      policy: plays(calls(ask("leaf"), ask("slow")), Proposal.finish("fine")),
      children: [Agent.asTool(leaf), Agent.asTool(slow)],
    }) as unknown as Any
    return Effect.gen(function* () {
      const events: Array<Event.Recorded> = []
      const outcome = yield* driven(agent, { budget, events }, (handle) =>
        Effect.gen(function* () {
          yield* pass(1000)
          yield* handle.cancelAgent("root/leaf-1")
          yield* pass(60_000)
          return yield* handle.await
        }),
      )
      assert.strictEqual(outcome._tag, "Completed")
    }).pipe(Effect.provide(tools.handlers)) as Effect.Effect<void>
  })
})

describe("a file journal", () => {
  const directory = () => fs.mkdtempSync(path.join(os.tmpdir(), "bursar-review-"))

  it.effect("of which nothing was written can be started again, as its error says", () =>
    Effect.gen(function* () {
      const at = directory()
      fs.writeFileSync(path.join(at, "run.jsonl"), "") // The process died between open and the first write.
      const agent = Agent.make("root", { ...bare, policy: Policy.make(() => Proposal.finish("fine")) })
      const journal = FileJournal.make({ directory: at })
      const refused = yield* Agent.resume(agent, { run: "run" }).pipe(
        Effect.flip,
        Effect.provideService(Journal.Journal, journal),
      )
      assert.include(refused.message, "start it again")
      const outcome = yield* Agent.run(agent, "go", { budget, runId: "run" }).pipe(
        Effect.provideService(Journal.Journal, journal),
      )
      assert.strictEqual(completed(outcome).answer, "fine")
    }),
  )
})

describe("a call that a person approved", () => {
  it.effect("is still payable, though a child of the same reply took what was left", () => {
    const paid: Array<string> = []
    const tools = kit({
      pay: [{ effect: "irreversible", approval: true }, ({ key }) => Effect.sync(() => (paid.push(key), key))],
    })
    const leaf = Agent.make("leaf", {
      ...bare,
      policy: plays(calls(use("pay", "child")), Proposal.finish("paid")),
      toolkit: tools.toolkit,
    })
    const agent = Agent.make("root", {
      ...bare,
      policy: plays(calls(ask("leaf"), use("pay", "root")), Proposal.finish("fine")),
      toolkit: tools.toolkit,
      children: [Agent.asTool(leaf)],
    }) as unknown as Any
    return Effect.gen(function* () {
      const events: Array<Event.Recorded> = []
      const waits = questions(
        yield* driven(agent, { budget, events }, (handle) => Effect.andThen(pass(1000), handle.await)),
      )
      const outcome = yield* resumed(
        agent,
        events,
        waits.map((one) => says(one, "approved")),
      )
      assert.deepStrictEqual([outcome._tag, paid.toSorted()], ["Completed", ["child", "root"]])
    }).pipe(Effect.provide(tools.handlers)) as Effect.Effect<void>
  })
})
