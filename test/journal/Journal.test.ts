import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Agent, Budget, Event, Journal, Line, Policy, Proposal, Verifier } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { all, broken, run } from "../support/journalled.ts"
import { ask, calls, explorer, handled, plays, read, toolkit, write } from "../support/scripts.ts"

const canary = "CANARY"

/** A run in which everything that quotes something quotes the canary. */
const talkative = Effect.suspend(() => {
  const usage = { input: 20, output: 5 }
  const model = ScriptedModel.make([
    { text: canary, calls: [{ name: "read", params: { key: canary } }], usage },
    { calls: [{ name: "read", params: { [canary]: 1 } }], usage },
    { calls: [{ name: "finish", params: { said: [canary] } }], usage },
    { calls: [{ name: "finish", params: { said: canary } }], usage },
    { calls: [{ name: "finish", params: { said: `${canary}!` } }], usage },
  ])
  const child = Agent.make("child", { policy: explorer, toolkit })
  const asker = Policy.make((view) =>
    view.turns.length === 0 ? calls(ask("child", canary), write(canary)) : Effect.fail(canary),
  )
  const lead = Agent.make("lead", { policy: asker, toolkit, children: [Agent.asTool(child, { ask: { steps: 4 } })] })
  const agent = Agent.make("top", {
    policy: Policy.fromModel(model.model, { maxOutputTokens: 10 }),
    toolkit,
    children: [Agent.asTool(lead)],
    answer: Schema.Struct({ said: Schema.String }),
    verify: Verifier.predicate<{ readonly said: string }>("loud", ({ answer }) => answer.said.endsWith("!") || canary),
  })
  const handlers = handled({ write: ({ key }) => Effect.fail(`cannot write ${key}`) })
  return Effect.all([
    run(agent, { steps: 40, toolCalls: 40 }, canary).pipe(Effect.provide(handlers)),
    run(lead, { steps: 40, toolCalls: 40 }, canary).pipe(Effect.provide(handlers)),
  ])
})

/** What accounts used and have left, from the entries alone. */
const replayed = (events: ReadonlyArray<Event.Recorded>) => {
  const own = new Map<string, Budget.Amounts>()
  const add = (account: string, amounts: Budget.Grant) =>
    own.set(account, Budget.add(own.get(account) ?? Budget.zero, Budget.amounts(amounts)))
  for (const { event } of events) {
    if (event._tag === "Opened") add(event.account, {})
    if (event._tag === "Carved") {
      add(event.account, {})
      add(event.parent, event.charge)
    }
    if (event._tag === "Settled") add(event.account, event.actual)
    if (event._tag === "Assumed") add(event.account, event.held)
  }
  return own
}

describe("a line", () => {
  it.effect("is one JSON object, with hashes and sizes where the events hold text", () =>
    Effect.gen(function* () {
      for (const { events, outcome } of yield* talkative) {
        assert.isAbove(JSON.stringify([events, outcome]).split(canary).length, 5)
        for (const event of events) {
          const { line, contents } = Line.encode(event)
          assert.notInclude(line, canary)
          assert.notInclude(line, "\n")
          const parsed = JSON.parse(line) as Record<string, unknown>
          assert.deepStrictEqual([parsed["seq"], parsed["run"], parsed["_tag"]], [event.seq, "run", event.event._tag])
          assert.strictEqual(Date.parse(String(parsed["at"])), event.atMillis)
          for (const { hash, text } of contents) {
            assert.include(line, hash)
            assert.strictEqual(Agent.digest(text), hash)
          }
        }
      }
    }),
  )

  it.effect("with its texts back in place is the event again", () =>
    Effect.gen(function* () {
      for (const { events } of yield* talkative) {
        for (const recorded of events) {
          const { line, contents } = Line.encode(recorded)
          const texts = new Map(contents.map(({ hash, text }) => [hash, text]))
          const quoting = new Set(["why", "message", "detail"])
          const joined = JSON.parse(line, (key, value: unknown) => {
            if (typeof value !== "object" || value === null || !("hash" in value)) return value
            const text = texts.get(String(value.hash))
            return quoting.has(key) ? text : { ...value, text }
          }) as Record<string, unknown>
          const { seq: _seq, at: _at, run: _run, ...event } = joined
          assert.deepStrictEqual<unknown>(event, recorded.event)
          assert.deepStrictEqual(Schema.decodeUnknownSync(Event.Event)(event), recorded.event)
        }
      }
    }),
  )

  it.effect("does not change when the texts are dropped, whatever they said", () =>
    Effect.gen(function* () {
      const once = (text: string) =>
        Effect.map(run(Agent.make("a", { policy: plays(Proposal.finish(text)) }), { steps: 3 }, text), ({ events }) =>
          events.map((event) => Line.encode(event).line.replaceAll(/sha256:\w+|"at":"[^"]+"/g, "")),
        )
      assert.deepStrictEqual(yield* once("aaaa"), yield* once("bbbb"))
    }),
  )
})

describe("a journal", () => {
  it.effect("has numbers without a gap, and is complete", () =>
    Effect.gen(function* () {
      for (const { events } of yield* talkative) assert.deepStrictEqual(broken(events), [])
    }),
  )

  it.effect("replayed gives the same totals as the ledger", () =>
    Effect.gen(function* () {
      for (const { events, outcome } of yield* talkative) {
        const own = replayed(events)
        for (const row of outcome.report.accounts) assert.deepStrictEqual(own.get(row.account), row.own, row.path)
        for (const closed of all(events, "Closed")) {
          const row = outcome.report.accounts.find((one) => one.account === closed.account)!
          assert.deepStrictEqual(Budget.amounts(closed.own), row.own)
          assert.deepStrictEqual(Budget.amounts(closed.children), row.children)
          assert.deepStrictEqual(Budget.amounts(closed.returned), row.left)
        }
      }
    }),
  )

  it.effect("has each hold before the effect it pays for, and is flushed in between", () =>
    Effect.gen(function* () {
      const order: Array<string> = []
      const journal: Journal.Journal = {
        open: (run) =>
          Journal.makeLog({
            run,
            sink: ({ event }) => {
              if (event._tag === "Held") order.push(`held ${event.hold}`)
            },
            flush: Effect.sync(() => order.push("flush")),
          }),
      }
      const policy = plays(calls(read("x")), Proposal.finish("done"))
      yield* Agent.run(Agent.make("a", { policy, toolkit }), "task", { budget: { steps: 5 } }).pipe(
        Effect.provide(handled({ read: ({ key }) => Effect.sync(() => (order.push("effect"), key)) })),
        Effect.provideService(Journal.Journal, journal),
      )
      const effect = order.indexOf("effect")
      assert.isAbove(order.indexOf("held step-1/call-1"), 0)
      assert.strictEqual(order[effect - 1], "flush")
      assert.isBelow(order.indexOf("held step-1/call-1"), effect)
    }),
  )

  it.effect("that cannot be written any more ends the run as a defect, with nothing spent that is not on record", () =>
    Effect.gen(function* () {
      for (let good = 0; good < 12; good++) {
        const events: Array<Event.Recorded> = []
        let flushes = 0
        const effects: Array<string> = []
        const journal: Journal.Journal = {
          open: (run) =>
            Journal.makeLog({
              run,
              sink: (event) => events.push(event),
              flush: Effect.suspend(() => (flushes++ < good ? Effect.void : Effect.die(new Error("disk full")))),
            }),
        }
        const child = Agent.make("child", { policy: plays(calls(write("c")), Proposal.finish("done")), toolkit })
        const policy = plays(calls(write("x"), ask("child")), Proposal.finish("done"))
        const agent = Agent.make("a", { policy, toolkit, children: [Agent.asTool(child)] })
        const exit = yield* Agent.run(agent, "task", { budget: { steps: 20, toolCalls: 9 } }).pipe(
          Effect.provide(handled({ write: ({ key }) => Effect.sync(() => (effects.push(key), key)) })),
          Effect.provideService(Journal.Journal, journal),
          Effect.exit,
        )
        assert.deepStrictEqual(broken(events), [], `${good} good writes`)
        if (good < 2) assert.deepStrictEqual([exit._tag, effects], ["Failure", []])
      }
    }),
  )

  it.effect("can be listened to beside another one, in the same order and with the same numbers", () =>
    Effect.gen(function* () {
      const [kept, heard]: [Array<Event.Recorded>, Array<Event.Recorded>] = [[], []]
      const journal = Journal.tap(Journal.toArray(kept), (recorded) => heard.push(recorded))
      yield* Agent.run(Agent.make("a", { policy: plays(Proposal.finish("x")) }), "task", { budget: { steps: 3 } }).pipe(
        Effect.provideService(Journal.Journal, journal),
      )
      assert.isAbove(kept.length, 5)
      assert.deepStrictEqual(heard, kept)
    }),
  )

  it.effect("names the run, and two runs never alike", () =>
    Effect.gen(function* () {
      const agent = Agent.make("a", { policy: plays(Proposal.finish("x")) })
      const named = yield* Agent.run(agent, "task", { budget: { steps: 3 }, runId: "mine" })
      assert.strictEqual(named.report.run, "mine")
      const ids = yield* Effect.forEach(Array.from({ length: 50 }), () =>
        Effect.map(Agent.run(agent, "task", { budget: { steps: 3 } }), (outcome) => outcome.report.run),
      )
      assert.strictEqual(new Set(ids).size, 50)
      assert.match(ids[0]!, /^19700101-000000-[0-9a-z]{6}$/)
    }),
  )
})
