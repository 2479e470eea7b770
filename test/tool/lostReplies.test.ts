/**
 * Payments that are made under a key and whose reply is lost: the effect happens once.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Agent, type Contract, type Event, Proposal } from "../../src/index.ts"
import { bank, budget, lastData, lives, pay, withBank } from "../support/bank.ts"
import { attempts, driven, lawful, pass, questions, rowOf, says } from "../support/driven.ts"
import { all, results } from "../support/journalled.ts"
import { ask, bare, calls, plays } from "../support/scripts.ts"

describe("a payment whose reply is lost, with a key", () => {
  const keyed: Contract.Options = { effect: "write", idempotency: "key", timeout: "5 seconds" }

  for (const fault of ["reply", "time"] as const) {
    it.effect(`(${fault}) is tried again under its key: two attempts, one payment, one receipt`, () =>
      Effect.gen(function* () {
        const at = bank(keyed, [fault])
        const { outcome, events } = yield* lives(at, plays(calls(pay(500)), Proposal.finish("paid")))
        assert.strictEqual(outcome._tag, "Completed")
        assert.deepStrictEqual([attempts(events), results(events), at.paid], [["pay 1", "pay 2"], ["ok"], ["ada 500"]])
        assert.deepStrictEqual(lastData(events), ["receipt 1"])
        assert.strictEqual(new Set(all(events, "CallStarted").map((one) => one.key)).size, 1)
        assert.strictEqual(all(events, "CallFailed")[0]!.code, fault === "time" ? "ETIMEDOUT" : "ELOST")
        assert.strictEqual(rowOf(outcome).own.toolCalls, 2)
      }),
    )
  }

  it.effect("is answered with the first receipt when it is asked for again, and that is free", () =>
    Effect.gen(function* () {
      const at = bank(keyed)
      const other = { tool: "pay", params: { cents: 500, to: "ada" } }
      const policy = plays(calls(pay(500)), calls(other), calls(pay(501)), Proposal.finish("paid"))
      const { outcome, events } = yield* lives(at, policy)
      assert.deepStrictEqual(at.paid, ["ada 500", "ada 501"])
      assert.deepStrictEqual(lastData(events), ["receipt 1", "receipt 1", "receipt 2"])
      assert.deepStrictEqual(
        all(events, "CallEnded").map((one) => [one.replayed, one.ran, one.stateChanged]),
        [
          [undefined, true, true],
          ["clerk step-1/call-1", false, false],
          [undefined, true, true],
        ],
      )
      // Two attempts and one: the receipt was not paid for.
      assert.strictEqual(rowOf(outcome).own.toolCalls, 3)
      assert.strictEqual(all(events, "CallStarted").length, 3)
    }),
  )

  it.effect("of a negative amount is refused before anything runs", () =>
    Effect.gen(function* () {
      const at = bank(keyed)
      const { outcome, events } = yield* lives(at, plays(calls(pay(-500)), Proposal.finish("no")))
      assert.deepStrictEqual([attempts(events), results(events), at.paid], [[], ["EINVAL"], []])
      assert.deepStrictEqual([rowOf(outcome).own.toolCalls, all(events, "CallEnded")[0]!.ran], [0, false])
    }),
  )

  for (const effects of ["ordered", "concurrent"] as const) {
    it.effect(`twice in one reply (${effects}) is one payment with one receipt`, () =>
      Effect.gen(function* () {
        for (const fault of ["nothing", "reply", "time"] as const) {
          const at = bank(keyed, [fault])
          const policy = plays(calls(pay(500), pay(500)), Proposal.finish("paid"))
          const { outcome, events } = yield* lives(at, policy, { settings: { concurrency: { calls: 4, effects } } })
          assert.deepStrictEqual([at.paid, lastData(events)], [["ada 500"], ["receipt 1", "receipt 1"]], fault)
          const replayed = new Map(all(events, "CallEnded").map((one) => [one.call, one.replayed]))
          assert.deepStrictEqual(
            [replayed.get("step-1/call-1"), replayed.get("step-1/call-2")],
            [undefined, "clerk step-1/call-1"],
          )
          assert.strictEqual(rowOf(outcome).own.toolCalls, fault === "nothing" ? 1 : 2)
        }
      }),
    )
  }

  it.effect("is on record before its receipt is given out", () =>
    Effect.gen(function* () {
      const settings = { concurrency: { calls: 4, effects: "concurrent" } } as const
      const policy = plays(calls(pay(500), pay(500)), Proposal.finish("paid"))
      const { events } = yield* lives(bank(keyed, ["reply"]), policy, { settings })
      assert.deepStrictEqual(
        all(events, "CallEnded").map((one) => one.call),
        ["step-1/call-1", "step-1/call-2"],
      )
    }),
  )

  it.effect("by two children side by side is one payment: the effects are those of the whole run", () =>
    Effect.gen(function* () {
      const at = bank(keyed, ["reply"])
      const one = at.clerk(plays(calls(pay(500)), Proposal.finish("paid")))
      const lead = Agent.make("lead", {
        policy: plays(calls(ask("clerk"), ask("clerk")), Proposal.finish("done")),
        children: [Agent.asTool(one)],
        ...bare,
      })
      const events: Array<Event.Recorded> = []
      const outcome = yield* driven(lead, { budget, events }, (handle) =>
        Effect.andThen(pass(3_600_000), handle.await),
      ).pipe(Effect.provide(at.handlers))
      lawful(outcome, events)
      assert.deepStrictEqual(
        [at.paid, attempts(events).filter((of) => of.startsWith("pay"))],
        [["ada 500"], ["pay 1", "pay 2"]],
      )
      const replayed = all(events, "CallEnded")
        .filter((of) => of.tool === "pay")
        .flatMap((of) => of.replayed ?? [])
      assert.deepStrictEqual(replayed, ["lead/clerk-1 step-1/call-1"])
    }),
  )

  it.effect("under one id of the provider is one call, with two results; with other arguments it is none", () =>
    Effect.gen(function* () {
      const at = bank({ effect: "write" }, [])
      const twin = { ...pay(500), id: "t1" }
      const policy = plays(calls(twin, twin, { ...pay(9), id: "t1" }), Proposal.finish("paid"))
      const { outcome, events } = yield* lives(at, policy)
      assert.deepStrictEqual([at.paid, results(events).toSorted()], [["ada 500"], ["EINVAL", "ok", "ok"]])
      assert.deepStrictEqual(
        all(events, "CallEnded")
          .map((one) => [one.call, one.replayed] as const)
          .toSorted(([a], [b]) => (a < b ? -1 : 1)),
        [
          ["step-1/call-1", undefined],
          ["step-1/call-2", "clerk step-1/call-1"],
          ["step-1/call-3", undefined],
        ],
      )
      assert.strictEqual(rowOf(outcome).own.toolCalls, 1)
    }),
  )

  it.effect("again and again, more often than it may be tried, asks a person, whose answer then counts", () =>
    Effect.gen(function* () {
      const at = bank({ ...keyed, retries: 1 }, ["reply", "reply"])
      const policy = plays(calls(pay(500)), Proposal.finish("paid"))
      const { outcome, events, answered } = yield* lives(at, policy)
      const [question] = questions(outcome)
      assert.deepInclude(question, { kind: "uncertain", tool: "pay", params: { to: "ada", cents: 500 } })
      assert.deepStrictEqual([attempts(events).length, at.paid], [2, ["ada 500"]])
      yield* withBank(at, answered([says(question!, "happened", "receipt by hand")]))
      assert.deepStrictEqual([lastData(events), attempts(events).length], [["receipt by hand"], 2])
      assert.deepStrictEqual(at.paid, ["ada 500"])
    }),
  )
})
