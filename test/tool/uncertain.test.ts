/**
 * Effects without a key whose reply is lost: nobody repeats them until it is known what became of them.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Tool from "effect/ai/Tool"
import * as Schema from "effect/Schema"
import * as Toolkit from "effect/ai/Toolkit"
import { Agent, Contract, type Event, Proposal, ToolError } from "../../src/index.ts"
import { bank, budget, lastData, lives, type Lost, parameters, pay, withBank } from "../support/bank.ts"
import { attempts, completed, driven, lawful, pass, questions, resumed, rowOf, says } from "../support/driven.ts"
import { all, results, stopped } from "../support/journalled.ts"
import { bare, calls, plays } from "../support/scripts.ts"

describe("a payment whose reply is lost, without a key", () => {
  const kinds: ReadonlyArray<readonly [string, Contract.Options]> = [
    ["write", { effect: "write", timeout: "5 seconds" }],
    ["irreversible", { effect: "irreversible", timeout: "5 seconds" }],
    ["irreversible, under a key", { effect: "irreversible", idempotency: "key", timeout: "5 seconds" }],
  ]
  for (const [name, contract] of kinds) {
    for (const fault of ["reply", "time"] as const) {
      it.effect(`(${name}, ${fault}) is not repeated: the run stands still and asks what became of it`, () =>
        Effect.gen(function* () {
          const at = bank(contract, [fault])
          const { outcome, events } = yield* lives(at, plays(calls(pay(500)), Proposal.finish("paid")))
          const [question, ...more] = questions(outcome)
          assert.deepInclude(question, {
            kind: "uncertain",
            agent: "clerk",
            tool: "pay",
            params: { to: "ada", cents: 500 },
            reason: `nobody knows whether it happened (${fault === "time" ? "ETIMEDOUT" : "ELOST"})`,
          })
          assert.deepStrictEqual([more, attempts(events), results(events), at.paid], [[], ["pay 1"], [], ["ada 500"]])
        }),
      )
    }
  }

  const asked = (contract: Contract.Options = { effect: "write" }, toolCalls = 20) =>
    Effect.gen(function* () {
      const at = bank(contract, ["reply"])
      const policy = plays(calls(pay(500)), (view) =>
        Proposal.finish(JSON.stringify(view.turns[0]!.observations[0]!.data)),
      )
      const { outcome, events, answered } = yield* lives(at, policy, { toolCalls })
      return {
        at,
        events,
        question: questions(outcome)[0]!,
        answer: (one: Agent.Answer) => withBank(at, answered([one])),
      }
    })

  it.effect("happened, says a person: the call has that result and nothing runs again", () =>
    Effect.gen(function* () {
      const { at, events, question, answer } = yield* asked()
      const outcome = completed(yield* answer(says(question, "happened", "receipt 7")))
      assert.deepStrictEqual([outcome.answer, attempts(events), at.paid], ['"receipt 7"', ["pay 1"], ["ada 500"]])
      assert.deepInclude(all(events, "CallEnded")[0], { outcome: "ok", stateChanged: true, ran: true })
      assert.strictEqual(rowOf(outcome).own.toolCalls, 1)
    }),
  )

  it.effect("did not happen, says a person: it runs once more", () =>
    Effect.gen(function* () {
      const { at, events, question, answer } = yield* asked()
      const outcome = completed(yield* answer(says(question, "did_not_happen")))
      assert.deepStrictEqual([outcome.answer, attempts(events)], ['"receipt 2"', ["pay 1", "pay 2"]])
      assert.deepStrictEqual(at.paid, ["ada 500", "ada 500"])
      assert.strictEqual(rowOf(outcome).own.toolCalls, 2)
    }),
  )

  it.effect("is settled by an answer also where no tool call is left in the budget: nothing has to run for it", () =>
    Effect.gen(function* () {
      const { at, events, question, answer } = yield* asked({ effect: "write" }, 1)
      const outcome = yield* answer(says(question, "happened", "receipt 7"))
      assert.deepStrictEqual([results(events), at.paid], [["ok"], ["ada 500"]])
      assert.strictEqual(completed(outcome).answer, '"receipt 7"')
    }),
  )

  it.effect("asks again, about the second attempt, when that one is lost too", () =>
    Effect.gen(function* () {
      const at = bank({ effect: "write" }, ["reply", "reply"])
      const { outcome, events, answered } = yield* lives(at, plays(calls(pay(500)), Proposal.finish("paid")))
      const [first] = questions(outcome)
      const [second] = questions(yield* withBank(at, answered([says(first!, "did_not_happen")])))
      assert.notStrictEqual(second!.digest, first!.digest)
      assert.notStrictEqual(second!.approval, first!.approval)
      const stale = yield* Effect.flip(withBank(at, answered([says(first!, "did_not_happen")])))
      assert.deepInclude(stale, { _tag: "ApprovalError", reason: "unknown" })
      completed(yield* withBank(at, answered([says(second!, "happened", "r")])))
      assert.deepStrictEqual([at.paid.length, attempts(events).length, results(events)], [2, 2, ["ok"]])
    }),
  )

  for (const effects of ["ordered", "concurrent"] as const) {
    it.effect(`twice in one reply (${effects}) is not made by the second while nobody knows about the first`, () =>
      Effect.gen(function* () {
        const at = bank({ effect: "irreversible", idempotency: "key" }, ["reply"])
        const settings = { concurrency: { calls: 4, effects } }
        const policy = plays(calls(pay(500), pay(500)), Proposal.finish("paid"))
        const { outcome, events, answered } = yield* lives(at, policy, { settings })
        const [question, ...more] = questions(outcome)
        assert.deepStrictEqual([more, attempts(events), results(events)], [[], ["pay 1"], []])
        completed(yield* withBank(at, answered([says(question!, "happened", "receipt 7")])))
        assert.deepStrictEqual([lastData(events), attempts(events)], [["receipt 7", "receipt 7"], ["pay 1"]])
      }),
    )
  }

  it.effect("that happened counts as the effect of its key: asked for again it is answered with the same receipt", () =>
    Effect.gen(function* () {
      const at = bank({ effect: "irreversible", idempotency: "key" }, ["reply"])
      const policy = plays(calls(pay(500)), calls(pay(500)), Proposal.finish("paid"))
      const { outcome, events, answered } = yield* lives(at, policy)
      const [question] = questions(outcome)
      completed(yield* withBank(at, answered([says(question!, "happened", "receipt 7")])))
      assert.deepStrictEqual([lastData(events), attempts(events)], [["receipt 7", "receipt 7"], ["pay 1"]])
      assert.deepStrictEqual(
        all(events, "CallEnded").map((one) => one.replayed),
        [undefined, "clerk step-1/call-1"],
      )
    }),
  )
})

describe("a tool that tells the model instead of asking a person", () => {
  const tells: Contract.Options = { effect: "write", whenUncertain: "tell", timeout: "5 seconds" }

  it.effect("has the same call refused from then on, and one with other arguments run", () =>
    Effect.gen(function* () {
      const at = bank(tells, ["time"])
      const again = { tool: "pay", params: { cents: 500, to: "ada" } }
      const policy = plays(calls(pay(500)), calls(again), calls(pay(501)), Proposal.finish("done"))
      const { outcome, events } = yield* lives(at, policy)
      assert.deepStrictEqual(results(events), ["ETIMEDOUT", "EUNCERTAIN", "ok"])
      assert.deepStrictEqual(at.paid, ["ada 500", "ada 501"])
      const [lost, refused] = all(events, "CallEnded")
      assert.strictEqual(lost!.suggestedAction, "find_out_before_repeating")
      assert.deepStrictEqual([lost!.uncertain !== undefined, lost!.stateChanged], [true, false])
      assert.deepStrictEqual([refused!.ran, rowOf(outcome).own.toolCalls], [false, 2])
    }),
  )

  it.effect("has it refused also in a later process", () =>
    Effect.gen(function* () {
      const at = bank(tells, ["reply"])
      const policy = plays(calls(pay(500)), calls(pay(500)), Proposal.finish("done"))
      const { events } = yield* lives(at, policy)
      const prefix = events.slice(0, events.findIndex(({ event }) => event._tag === "CallEnded") + 1)
      const outcome = yield* withBank(at, resumed(at.clerk(policy), prefix))
      lawful(outcome, prefix)
      assert.deepStrictEqual([results(prefix), at.paid], [["ELOST", "EUNCERTAIN"], ["ada 500"]])
    }),
  )

  it.effect("has it refused also when it comes twice in one reply", () =>
    Effect.gen(function* () {
      const at = bank(tells, ["reply"])
      const { events } = yield* lives(at, plays(calls(pay(500), pay(500)), Proposal.finish("done")))
      assert.deepStrictEqual([results(events), at.paid], [["ELOST", "EUNCERTAIN"], ["ada 500"]])
    }),
  )

  it.effect("has it refused also when the call was cancelled while it ran", () =>
    Effect.gen(function* () {
      const paid: Array<number> = []
      const Pay = Contract.annotate(
        Tool.make("pay", { parameters, success: Schema.String, failure: ToolError.ToolError }),
        tells,
      )
      const toolkit = Toolkit.make(Pay)
      const handlers = toolkit.toLayer({
        pay: ({ cents }) => Effect.suspend(() => (paid.push(cents) === 1 ? Effect.interrupt : Effect.succeed("r"))),
      })
      const agent = Agent.make("clerk", {
        policy: plays(calls(pay(500)), calls(pay(500)), Proposal.finish("done")),
        toolkit,
        ...bare,
      })
      const events: Array<Event.Recorded> = []
      const outcome = yield* driven(agent, { budget, events }, (handle) => handle.await).pipe(Effect.provide(handlers))
      lawful(outcome, events)
      assert.isDefined(all(events, "CallEnded")[0]!.uncertain)
      assert.deepStrictEqual([results(events), paid], [["ECANCELLED", "EUNCERTAIN"], [500]])
    }),
  )
})

describe("a tool that can find out what became of a call", () => {
  type Finds = NonNullable<Contract.Options["reconcile"]>

  const found = (
    reconcile: Finds,
    contract: Contract.Options = { effect: "write" },
    lost: ReadonlyArray<Lost> = ["reply"],
  ) =>
    Effect.gen(function* () {
      const at = bank({ timeout: "5 seconds", ...contract, reconcile }, lost)
      const { outcome, events } = yield* lives(at, plays(calls(pay(500)), Proposal.finish("done")))
      return { outcome, events, paid: at.paid }
    })

  const says1: Finds = () => Effect.succeed({ _tag: "Happened", result: "receipt found" })

  it.effect("says that it happened: the call has that result", () =>
    Effect.gen(function* () {
      for (const effect of ["write", "irreversible"] as const) {
        const { events, outcome, paid } = yield* found(says1, { effect })
        assert.deepStrictEqual([lastData(events), paid.length, outcome._tag], [["receipt found"], 1, "Completed"])
        assert.deepInclude(all(events, "CallEnded")[0], { outcome: "ok", ran: true, stateChanged: true })
        assert.strictEqual(rowOf(outcome).own.toolCalls, 1)
      }
    }),
  )

  it.effect("is asked with the arguments and the key", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const asks: Finds = (params, key) => {
        seen.push(params, key)
        return Effect.succeed({ _tag: "Happened", result: "r" })
      }
      const key = () => "the key"
      const { events } = yield* found(asks, { effect: "irreversible", idempotency: "key", key })
      assert.deepStrictEqual(seen, [{ to: "ada", cents: 500 }, "the key"])
      assert.strictEqual(all(events, "CallStarted")[0]!.key, "the key")
    }),
  )

  it.effect("says that it did not: a write runs again, what cannot be undone does not", () =>
    Effect.gen(function* () {
      const not: Finds = () => Effect.succeed({ _tag: "DidNotHappen" })
      const write = yield* found(not)
      assert.deepStrictEqual([attempts(write.events), results(write.events)], [["pay 1", "pay 2"], ["ok"]])
      const irreversible = yield* found(not, { effect: "irreversible" })
      assert.deepStrictEqual([attempts(irreversible.events), results(irreversible.events)], [["pay 1"], ["ELOST"]])
      assert.strictEqual(all(irreversible.events, "CallEnded")[0]!.message, "no reply; it did not happen")
      assert.isUndefined(all(irreversible.events, "CallEnded")[0]!.uncertain)
    }),
  )

  it.effect("does not know, fails, breaks down or does not answer in time: a person is asked", () =>
    Effect.gen(function* () {
      const unsure: ReadonlyArray<Finds> = [
        () => Effect.succeed({ _tag: "Unknown" }),
        () => Effect.fail("down"),
        () => Effect.die(new Error("broken")),
        () => {
          throw new Error("broken")
        },
        () => Effect.never,
      ]
      for (const reconcile of unsure) {
        for (const fault of ["reply", "time"] as const) {
          const { outcome, events, paid } = yield* found(reconcile, { effect: "write" }, [fault])
          assert.deepStrictEqual(
            [questions(outcome)[0]!.kind, attempts(events), paid.length],
            ["uncertain", ["pay 1"], 1],
          )
        }
      }
    }),
  )

  it.effect("is interrupted with its run: the call ran, and nobody knows whether it happened", () =>
    Effect.gen(function* () {
      for (const whenUncertain of ["ask", "tell"] as const) {
        const at = bank({ effect: "write", whenUncertain, reconcile: () => Effect.never }, ["reply"])
        const events: Array<Event.Recorded> = []
        const agent = at.clerk(plays(calls(pay(500)), Proposal.finish("done")))
        const outcome = yield* driven(agent, { budget, events }, (handle) =>
          Effect.andThen(pass(1_000), handle.cancel),
        ).pipe(Effect.provide(at.handlers))
        lawful(outcome, events)
        const [ended] = all(events, "CallEnded")
        assert.deepInclude(ended, { outcome: "error", ran: true })
        assert.isDefined(ended!.uncertain)
        assert.deepStrictEqual(all(events, "ApprovalRequested"), [])
      }
    }),
  )

  it.effect("and answers with what is no result of the tool: it is told so, and not believed", () =>
    Effect.gen(function* () {
      const { outcome, events, paid } = yield* found(() => Effect.succeed({ _tag: "Happened", result: 42 }))
      assert.deepStrictEqual([attempts(events), paid.length], [["pay 1"], 1])
      if (outcome._tag !== "Suspended") assert.deepStrictEqual(results(events), ["ERESULT"])
    }),
  )

  it.effect("is asked within the time of the run: where that is over the run stops and the call is uncertain", () =>
    Effect.gen(function* () {
      const at = bank({ effect: "write", timeout: "1 hour", whenUncertain: "tell", reconcile: () => Effect.never }, [
        "time",
      ])
      const events: Array<Event.Recorded> = []
      const agent = at.clerk(plays(calls(pay(500)), Proposal.finish("done")))
      const outcome = yield* driven(agent, { budget: { wallClock: "10 seconds" }, events }, (handle) =>
        Effect.andThen(pass(3_600_000), handle.await),
      ).pipe(Effect.provide(at.handlers))
      lawful(outcome, events)
      assert.deepStrictEqual([stopped(outcome).reason, results(events)], ["deadline", ["ETIMEDOUT"]])
      assert.strictEqual(events.at(-1)!.atMillis, 10_000)
    }),
  )
})
