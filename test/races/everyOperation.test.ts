import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import { TestClock } from "effect/testing"
import { Agent, Budget, type Event, Journal, Policy, Proposal, Verifier } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { child, ok, open, type Tree } from "../budget/tree.ts"
import { interruptAt } from "../support/Interrupting.ts"
import { all, broken, settled } from "../support/journalled.ts"
import { ask, calls, handled, plays, read, toolkit, write } from "../support/scripts.ts"

/** A call that steps aside before it is billed and after; a bill that was not made is none. */
const pay = (tree: Tree, account: string, bill: { money: number }, id = "call") =>
  Effect.suspend(() => {
    let billed = false
    return Budget.spend(
      { ledger: tree.ledger, account },
      { id, reserve: "explore" },
      {
        hold: () => ({ money: Math.min(20, tree.ledger.reachable(account, "explore").money ?? 0) }),
        use: () =>
          Effect.gen(function* () {
            yield* Effect.yieldNow
            billed = true
            bill.money += 13
            yield* Effect.yieldNow
          }),
        book: () => (billed ? { _tag: "Settle", actual: { money: 13 } } : { _tag: "Void" }),
      },
    )
  })

const inChild = <A, E>(tree: Tree, id: string, body: Effect.Effect<A, E>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => ok(child(tree, "root", id, { money: 25 }))),
    () => body,
    () => Effect.sync(() => ok(tree.ledger.close(id))),
  )

type Program = (tree: Tree, bill: { money: number }) => Effect.Effect<unknown, unknown>

const programs: Readonly<Record<string, Program>> = {
  "a call": (tree, bill) => pay(tree, "root", bill),
  "two calls in a child, which is closed": (tree, bill) =>
    inChild(tree, "a", Effect.andThen(pay(tree, "a", bill), pay(tree, "a", bill, "another"))),
  "children side by side": (tree, bill) =>
    Effect.all(
      ["a", "b"].map((id) => inChild(tree, id, pay(tree, id, bill))),
      { concurrency: "unbounded" },
    ),
  "a wait for what a sibling returns, and the call it was for": (tree, bill) =>
    Effect.gen(function* () {
      const wanted = { need: { money: 35 }, least: { money: 35 } }
      const purse = { ledger: tree.ledger, account: "a" }
      const waiting = inChild(tree, "a", Effect.andThen(Budget.waitFor(purse, wanted), pay(tree, "a", bill)))
      yield* Effect.all([waiting, inChild(tree, "b", pay(tree, "b", bill))], { concurrency: "unbounded" })
    }),
}

const checkBooks = (tree: Tree, billed: number, where: string) => {
  assert.deepStrictEqual(Budget.violations(tree.ledger), [], where)
  const pending = tree.ledger.accounts.flatMap(({ id }) => tree.ledger.pendingHolds(id))
  assert.deepStrictEqual([pending, tree.ledger.root.openChildren], [[], 0], where)
  const waiting = tree.ledger.accounts.filter(({ id }) => tree.ledger.isWaiting(id))
  assert.deepStrictEqual(waiting, [], where)
  ok(tree.ledger.close("root"))
  assert.deepStrictEqual(Budget.imbalances(Budget.statement(tree.ledger)), [], where)
  assert.strictEqual(Budget.used(tree.ledger.root).money, billed, where)
}

describe("an id that paid for a call", () => {
  it.effect("pays for no second one, after it or beside it", () =>
    Effect.gen(function* () {
      for (const concurrency of [1, 2]) {
        const [tree, bill] = [open({ money: 50 }), { money: 0 }]
        const both = yield* Effect.forEach([1, 2], () => Effect.exit(pay(tree, "root", bill)), {
          concurrency,
        })
        const [first, second] = both
        assert.isTrue(Exit.isSuccess(first!) && Exit.isFailure(second!))
        const reason = yield* Effect.flip(second!)
        assert.strictEqual(reason.reason._tag, concurrency === 1 ? "AlreadyResolved" : "IdConflict")
        checkBooks(tree, bill.money, `${concurrency} at a time`)
        assert.strictEqual(bill.money, 13)
      }
    }),
  )
})

describe("an outer timeout, at every operation of", () => {
  for (const [name, program] of Object.entries(programs)) {
    it.effect(`${name}: what was billed is booked, and nothing is left behind`, () =>
      Effect.gen(function* () {
        const once = (at: number) =>
          Effect.gen(function* () {
            const [tree, bill] = [open({ money: 50 }), { money: 0 }]
            const operations = yield* interruptAt(Effect.timeoutOption(program(tree, bill), "1 hour"), at)
            checkBooks(tree, bill.money, `operation ${at}`)
            return { operations, billed: bill.money }
          })
        const whole = yield* once(Infinity)
        const bills = new Set<number>()
        for (let at = 1; at <= whole.operations; at++) bills.add((yield* once(at)).billed)
        // Some were interrupted before the bill, some after it.
        assert.isTrue(bills.has(0) && bills.has(whole.billed))
      }),
    )
  }

  it.effect("a wait that would never end: its line is left when the time is over", () =>
    Effect.gen(function* () {
      const tree = open({ money: 50 })
      ok(child(tree, "root", "b", { money: 25 }))
      const wanted = { need: { money: 40 }, least: { money: 40 } }
      const wait = inChild(tree, "a", Budget.waitFor({ ledger: tree.ledger, account: "a" }, wanted))
      const fiber = yield* Effect.forkChild(Effect.timeoutOption(wait, "1 second"), { startImmediately: true })
      yield* settled
      assert.isTrue(tree.ledger.isWaiting("a"))
      yield* TestClock.adjust("1 second")
      assert.isTrue(Option.isNone(yield* Fiber.join(fiber)))
      ok(tree.ledger.close("b"))
      checkBooks(tree, 0, "at the end")
    }),
  )
})

// --- agents

const usage = { input: 10, output: 5 }

/** A model that steps aside before it answers. */
const slow = (...turns: ReadonlyArray<ScriptedModel.Turn>) => {
  const { model } = ScriptedModel.make(turns)
  const call: typeof model.call = (request, how) => Effect.andThen(Effect.yieldNow, model.call(request, how))
  return Policy.fromModel({ ...model, call }, { maxOutputTokens: 5 })
}

/** A check that costs two steps. */
const paying = Verifier.make<string>(
  "paid",
  (_, pay) =>
    Effect.map(
      pay({
        hold: () => ({ steps: 2 }),
        use: () => Effect.andThen(Effect.yieldNow, Effect.yieldNow),
        book: (exit) => (Exit.isSuccess(exit) ? { _tag: "Settle", actual: { steps: 2 } } : { _tag: "Assume" }),
      }),
      () => [{ name: "paid", passed: true, detail: "" }],
    ),
  { needs: { steps: 2 } },
)

const leaf = () => Agent.make("leaf", { policy: slow({ text: "leaf", usage }), toolkit })

/** Short of its slice, since half of it is kept for the answer: waits until the other one closes. */
const elastic = (name: string) =>
  Agent.asTool(
    Agent.make(name, { policy: slow({ text: name, usage }), reserves: { output: {} }, settings: { elastic: true } }),
  )

const agents = {
  "a model call": () => leaf(),
  "tool calls": () =>
    Agent.make("root", { policy: plays(calls(read("a"), write("b")), Proposal.finish("x")), toolkit }),
  "a spawn": () =>
    Agent.make("root", {
      policy: plays(calls(ask("leaf"), ask("leaf")), Proposal.finish("x")),
      toolkit,
      children: [Agent.asTool(leaf())],
    }),
  "a check that pays": () => Agent.make("root", { policy: plays(Proposal.finish("x")), toolkit, verify: paying }),
  "children that wait for each other": () =>
    Agent.make("root", {
      policy: plays(calls(ask("a"), ask("b")), Proposal.finish("x")),
      toolkit,
      children: [elastic("a"), elastic("b")],
      reserves: { output: {} },
    }),
}

const tools = handled({
  read: ({ key }) => Effect.as(Effect.yieldNow, key),
  write: ({ key }) => Effect.as(Effect.yieldNow, key),
})

/** Every account that was closed with something else than it was granted. */
const lost = (events: ReadonlyArray<Event.Recorded>) =>
  all(events, "Closed").flatMap(({ account, granted, own, children, returned }) =>
    Budget.dimensions
      .filter((d) => granted[d] !== undefined)
      .filter((d) => granted[d] !== (own[d] ?? 0) + (children[d] ?? 0) + (returned[d] ?? 0))
      .map((d) => `${account}: ${granted[d]} ${d} granted`),
  )

describe("an outer timeout, at every operation of an agent with", () => {
  for (const [name, agent] of Object.entries(agents)) {
    it.effect(`${name}: conserved and quiet`, () =>
      Effect.gen(function* () {
        // Too few output tokens for two elastic children to hold side by side.
        const budget = { steps: 20, toolCalls: 12, inputTokens: 60, outputTokens: name.includes("wait") ? 9 : 60 }
        const once = (at: number) =>
          Effect.gen(function* () {
            const events: Array<Event.Recorded> = []
            const run = Effect.timeoutOption(Agent.run(agent(), "task", { budget }), "1 hour")
            const operations = yield* interruptAt(run, at).pipe(
              Effect.provideService(Journal.Journal, Journal.toArray(events)),
              Effect.provide(tools),
            )
            return { operations, events }
          })
        const { operations, events } = yield* once(Infinity)
        assert.deepStrictEqual(broken(events), [])
        assert.strictEqual(all(events, "RunEnded")[0]!.reason, "completed")
        if (name.includes("wait")) assert.isAbove(all(events, "Served").length, 0)
        let cancelled = 0
        for (let at = 1; at <= operations; at++) {
          const { events } = yield* once(at)
          // Before the run began there is nothing to tell.
          if (events.length === 0) continue
          assert.deepStrictEqual([...broken(events), ...lost(events)], [], `operation ${at}`)
          if (all(events, "RunEnded")[0]!.reason === "cancelled") cancelled++
        }
        assert.isAbove(cancelled, 20)
      }),
    )
  }
})
