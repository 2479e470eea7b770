import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { TestClock } from "effect/testing"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { Agent, type Budget, Contract, type Event, Journal, Policy, Proposal, Verifier } from "../../src/index.ts"
import { all, broken, settled, unbalanced } from "../support/journalled.ts"
import { ask, calls, plays } from "../support/scripts.ts"

const parameters = Schema.Struct({ key: Schema.String })

const tool = <Name extends string>(name: Name, contract: Contract.Options) =>
  Contract.annotate(Tool.make(name, { parameters, success: Schema.String }), contract)

const toolkit = Toolkit.make(
  tool("look", { effect: "read" }),
  tool("put", { effect: "write", idempotency: "natural" }),
  tool("pay", { effect: "write", idempotency: "key" }),
  tool("send", {
    effect: "write",
    idempotency: "none",
    reconcile: (params: { key: string }) =>
      Effect.sync((): Contract.Reconciled<string> =>
        world.sent.has(params.key) ? { _tag: "Happened", result: params.key } : { _tag: "DidNotHappen" },
      ),
  }),
)

/** What is outside: it outlives every process. */
const world = { paid: new Map<string, number>(), sent: new Map<string, number>(), puts: new Set<string>() }

const count = (map: Map<string, number>, key: string) => map.set(key, (map.get(key) ?? 0) + 1)

const handlers = toolkit.toLayer({
  look: ({ key }) => Effect.as(Effect.yieldNow, key),
  put: ({ key }) => Effect.sync(() => (world.puts.add(key), key)),
  pay: ({ key }) =>
    Effect.gen(function* () {
      const current = yield* Contract.CurrentCall
      // The one who is paid knows the keys of what was paid before.
      if (!world.paid.has(current!.key)) count(world.paid, current!.key)
      return key
    }),
  send: ({ key }) => Effect.sync(() => (count(world.sent, key), key)),
})

const each = (name: string, ...keys: ReadonlyArray<string>) => keys.map((key) => ({ tool: name, params: { key } }))

const leaf = Agent.make("leaf", {
  policy: plays(calls(...each("look", "l1", "l2"), ...each("pay", "leaf")), Proposal.finish("leaf")),
  toolkit,
  verify: Verifier.predicate<string>("said", ({ answer }) => answer === "leaf"),
})

const idle = Agent.make("idle", { policy: plays(calls(...each("put", "idle")), Proposal.finish("idle")), toolkit })

const root = Agent.make("root", {
  policy: plays(
    calls(...each("look", "a"), ...each("pay", "rent"), ...each("look", "b")),
    calls(ask("leaf"), ask("idle")),
    Proposal.invalid("not yet"),
    Proposal.finish("wrong"),
    calls(...each("send", "letter"), ...each("put", "x")),
    Proposal.finish("right"),
  ),
  toolkit,
  children: [Agent.asTool(leaf), Agent.asTool(idle)],
  verify: Verifier.predicate<string>("right", ({ answer }) => answer === "right"),
})

const budget: Budget.Input = { steps: 200, toolCalls: 100, money: "1 USD", wallClock: "10 hours" }

const clear = () => {
  world.paid.clear()
  world.sent.clear()
  world.puts.clear()
}

/** The world as it is when a process dies after these events: what had started has happened, or what had ended. */
const worldAfter = (events: ReadonlyArray<Event.Recorded>, started: boolean): void => {
  clear()
  const keys = new Map<string, string>()
  for (const { event } of events) {
    if (event._tag === "CallStarted" && event.key !== undefined) keys.set(`${event.agent} ${event.call}`, event.key)
    if (event._tag !== (started ? "CallStarted" : "CallEnded")) continue
    const key = keys.get(`${event.agent} ${event.call}`)
    if (event.tool === "pay" && key !== undefined && !world.paid.has(key)) count(world.paid, key)
    if (event.tool === "send") count(world.sent, "letter")
    if (event.tool === "put") world.puts.add(event.agent === "root" ? "x" : "idle")
  }
}

const usedOf = (events: ReadonlyArray<Event.Recorded>): number =>
  all(events, "Settled").reduce((sum, { actual }) => sum + (actual.steps ?? 0) + (actual.toolCalls ?? 0), 0)

const resumed = (events: Array<Event.Recorded>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const handle = yield* Agent.spawnResumed(root, { run: "run" })
      yield* settled
      yield* TestClock.adjust("1 minute")
      return yield* handle.await
    }),
  ).pipe(Effect.provideService(Journal.Journal, Journal.toArray(events)), Effect.provide(handlers))

/** Every law of a run that came to its answer, however many processes it took. */
const lawful = (outcome: Agent.Outcome<string>, events: ReadonlyArray<Event.Recorded>, where: string) => {
  assert.strictEqual(outcome._tag === "Completed" ? outcome.answer : outcome, "right", where)
  assert.deepStrictEqual([...broken(events), ...unbalanced(outcome.report.accounts)], [], where)
  assert.deepStrictEqual([...world.paid.values()], [1, 1], `${where}: paid twice`)
  assert.deepStrictEqual([...world.sent.values()], [1], `${where}: sent twice`)
  assert.deepStrictEqual([...world.puts].toSorted(), ["idle", "x"], where)
}

const whole = Effect.gen(function* () {
  clear()
  const events: Array<Event.Recorded> = []
  const outcome = yield* Agent.run(root, "the task", { budget, runId: "run" }).pipe(
    Effect.provideService(Journal.Journal, Journal.toArray(events)),
    Effect.provide(handlers),
  )
  lawful(outcome, events, "without a crash")
  return events
})

describe("a run whose process dies", () => {
  for (const started of [false, true]) {
    it.effect(`after any event goes on to its answer; what had ${started ? "started" : "ended"} has happened`, () =>
      Effect.gen(function* () {
        const events = yield* whole
        const first = events.findIndex(({ event }) => event._tag === "Opened")
        for (let end = first + 1; end < events.length; end++) {
          const where = `after event ${end - 1} (${events[end - 1]!.event._tag})`
          const before = events.slice(0, end)
          worldAfter(before, started)
          const journal = [...before]
          const outcome = yield* resumed(journal)
          lawful(outcome, journal, where)
          assert.isAtLeast(usedOf(journal), usedOf(before), where)
        }
      }),
    )
  }

  it.effect("again and again, every few events, comes to its answer all the same", () =>
    Effect.gen(function* () {
      yield* whole
      for (const stride of [7, 13, 29]) {
        const before = yield* whole
        let journal: Array<Event.Recorded> = before.slice(0, stride)
        for (let crash = 0; crash < 12; crash++) {
          worldAfter(journal, true)
          const going = [...journal]
          const outcome = yield* resumed(going)
          lawful(outcome, going, `stride ${stride}, crash ${crash}`)
          journal = going.slice(0, Math.min(journal.length + stride, going.length - 1))
        }
      }
    }),
  )
})

describe("a run that cannot go on", () => {
  const failureOf = <A, E>(effect: Effect.Effect<A, E>) => Effect.flip(effect)

  it.effect("says why: it has ended, belongs to another agent, was never there, or its texts were dropped", () =>
    Effect.gen(function* () {
      const events = yield* whole
      const ended = yield* failureOf(resumed([...events]))
      assert.deepInclude(ended, { _tag: "ResumeError", reason: "ended" })
      const half = events.slice(0, 30)
      const other = Agent.make("other", { policy: Policy.make(() => Proposal.finish("x")) })
      const kept = (journal: Array<Event.Recorded>) => Effect.provideService(Journal.Journal, Journal.toArray(journal))
      const wrong = yield* failureOf(Agent.resume(other, { run: "run" }).pipe(kept([...half])))
      assert.deepInclude(wrong, { _tag: "ResumeError", reason: "another_agent" })
      const nowhere = yield* failureOf(Agent.resume(other, { run: "nowhere" }).pipe(kept([...half])))
      assert.strictEqual(nowhere._tag, "JournalError")
      const dropped = JSON.parse(JSON.stringify(half), (key, value: unknown) => (key === "text" ? undefined : value))
      const lacking = yield* failureOf(resumed(dropped as Array<Event.Recorded>))
      assert.deepInclude(lacking, { _tag: "ResumeError", reason: "content_dropped" })
    }),
  )

  it.effect("is refused before anything has changed", () =>
    Effect.gen(function* () {
      const half = (yield* whole).slice(0, 30)
      const journal = [...half]
      const answers = [{ approval: "nothing", digest: "x", decision: "approved", by: "nobody" }] as const
      const refused = yield* Agent.resume(root, { run: "run", answers }).pipe(
        Effect.provide(handlers),
        Effect.provideService(Journal.Journal, Journal.toArray(journal)),
        Effect.flip,
      )
      assert.deepInclude(refused, { _tag: "ApprovalError", reason: "unknown" })
      assert.deepStrictEqual(journal, half)
    }),
  )

  it.effect("is abandoned: its books close and the journal says owner_lost", () =>
    Effect.gen(function* () {
      const events = yield* whole
      for (let end = events.findIndex(({ event }) => event._tag === "Opened") + 1; end < events.length; end++) {
        const journal = events.slice(0, end)
        const report = yield* Agent.abandon("run").pipe(
          Effect.provideService(Journal.Journal, Journal.toArray(journal)),
        )
        assert.deepStrictEqual([...broken(journal), ...unbalanced(report.accounts)], [], `after event ${end - 1}`)
        const last = journal.at(-1)!.event
        // An end that was on record before stays what it was.
        const before = events.slice(0, end).find(({ event }) => event._tag === "AgentEnded" && event.agent === "root")
        assert.isTrue(last._tag === "RunEnded" && last.reason === (before === undefined ? "owner_lost" : "completed"))
      }
    }),
  )
})
