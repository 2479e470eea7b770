import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { TestClock } from "effect/testing"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { Agent, Budget, Contract, type Event, Journal, Policy, Proposal, ToolError, Verifier } from "../../src/index.ts"
import * as Audit from "../../src/journal/Audit.ts"
import * as Line from "../../src/journal/Line.ts"
import * as Reading from "../../src/journal/Reading.ts"
import * as Replay from "../../src/journal/Replay.ts"
import * as Show from "../../src/journal/Show.ts"
import { settled } from "../support/journalled.ts"
import { ask, calls, plays } from "../support/scripts.ts"

const parameters = Schema.Struct({ key: Schema.String })

const tool = <Name extends string>(name: Name, contract: Contract.Options) =>
  Contract.annotate(Tool.make(name, { parameters, success: Schema.String, failure: ToolError.ToolError }), contract)

const toolkit = Toolkit.make(
  tool("search", {
    effect: "read",
    trust: "untrusted",
    resources: ({ key }: { readonly key: string }) => [{ path: `${key}.md`, version: "1" }],
  }),
  tool("flaky", { effect: "read", retries: 2, backoff: "1 second" }),
  tool("put", { effect: "write", idempotency: "key" }),
  tool("send", { effect: "irreversible" }),
)

const handlers = Effect.sync(() => {
  let failures = 0
  return toolkit.toLayer({
    search: ({ key }) => Effect.delay(Effect.succeed(`found ${key}`), "2 seconds"),
    flaky: ({ key }) =>
      Effect.suspend(() =>
        failures++ < 2 ? Effect.fail(ToolError.transient("EBUSY", "come back later")) : Effect.succeed(key),
      ),
    put: ({ key }) => Effect.succeed(key),
    send: ({ key }) => Effect.succeed(key),
  })
})

const one = (name: string, key: string) => ({ tool: name, params: { key } })

const diligent = Agent.make("diligent", {
  policy: plays(calls(one("search", "a"), one("put", "same")), Proposal.finish("from the child")),
  toolkit,
})

const endless = Agent.make("endless", {
  toolkit,
  policy: Policy.make((view) =>
    view.purpose === "wrap_up" ? Proposal.finish("what I have") : calls(one("search", `key ${view.step}`)),
  ),
})

const lead = Agent.make("lead", {
  toolkit,
  children: [Agent.asTool(diligent), Agent.asTool(endless, { ask: { steps: 4 } })],
  policy: plays(
    calls(one("flaky", "x"), one("put", "same"), { tool: "nowhere", params: {} }),
    calls(ask("diligent"), ask("endless")),
    Proposal.invalid("cannot decide"),
    Proposal.finish("wrong"),
    calls(one("send", "letter")),
    Proposal.finish("right"),
  ),
  verify: Verifier.predicate<string>("right", ({ answer }) => answer === "right"),
})

const budget: Budget.Input = { steps: 60, toolCalls: 40, wallClock: "1000 hours" }

type Outcome = Agent.Outcome<string>

const inTime = <A, E, R>(self: Effect.Effect<Agent.Handle<A>, E, R>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const handle = yield* self
      for (let minute = 0; minute < 10; minute++) {
        yield* settled
        yield* TestClock.adjust("1 minute")
      }
      return yield* handle.await
    }),
  )

/** Runs the lead until it ends or waits for a person. */
const start = Effect.gen(function* () {
  const events: Array<Event.Recorded> = []
  const outcome: Outcome = yield* inTime(Agent.spawn(lead, "the task", { budget, runId: "run" })).pipe(
    Effect.provideService(Journal.Journal, Journal.toArray(events)),
    Effect.provide(yield* handlers),
  )
  return { events, outcome }
})

/** Goes on with a run from its events. To whatever it asks the answer is yes, or what is said of an uncertain call. */
const goOn = (
  events: Array<Event.Recorded>,
  uncertain: "happened" | "did_not_happen" = "happened",
): Effect.Effect<Outcome, unknown> =>
  Effect.gen(function* () {
    const waits = Audit.audit(events).state === "suspended" ? questionsIn(events) : []
    const answers = waits.map(({ kind, ...wait }): Agent.Answer => {
      return { ...wait, decision: kind === "approval" ? "approved" : uncertain, by: "ann" }
    })
    const outcome: Outcome = yield* inTime(Agent.spawnResumed(lead, { run: "run", answers })).pipe(
      Effect.provideService(Journal.Journal, Journal.toArray(events)),
      Effect.provide(yield* handlers),
    )
    return outcome._tag === "Suspended" ? yield* goOn(events, uncertain) : outcome
  })

const questionsIn = (events: ReadonlyArray<Event.Recorded>) => {
  const open = new Map<string, Event.EventOf<"ApprovalRequested">>()
  for (const { event } of events) {
    if (event._tag === "ApprovalRequested") open.set(event.approval, event)
    if (event._tag === "ApprovalDecided") open.delete(event.approval)
  }
  return [...open.values()].map(({ approval, digest, kind }) => ({ approval, digest, kind }))
}

/** As it is read back from disk, with its texts or without. */
const stored = (events: ReadonlyArray<Event.Recorded>, keep: boolean): ReadonlyArray<Event.Recorded> => {
  const lines = events.map(Line.encode)
  const contents = keep ? lines.flatMap((one) => one.contents) : []
  const read = Reading.read({
    log: lines.map(({ line }) => `${line}\n`).join(""),
    content: contents.map((content) => `${JSON.stringify(content)}\n`).join(""),
  })
  assert.deepStrictEqual(read.unreadable, [])
  return read.events
}

/** Everything that is wrong with a run, as it is in memory and as it is read back. */
const wrong = (events: ReadonlyArray<Event.Recorded>): ReadonlyArray<unknown> =>
  [events, stored(events, true), stored(events, false)].flatMap((each) => {
    const replay = Replay.replay(each)
    return [...Audit.defects(Audit.audit(each)), ...(replay.equal ? [] : [replay.contradiction ?? replay.agents])]
  })

describe("the journal of a real run", () => {
  it.effect("with children, retries, a wrap-up, a rejected answer and an approval is sound, and its replay equal", () =>
    Effect.gen(function* () {
      const { events, outcome } = yield* start
      assert.strictEqual(outcome._tag, "Suspended")
      assert.deepStrictEqual(wrong(events), [])
      assert.strictEqual(Audit.audit(events).state, "suspended")

      const last = yield* goOn(events)
      assert.strictEqual(last._tag, "Completed")
      assert.deepStrictEqual(wrong(events), [])
      const audit = Audit.audit(events)
      assert.strictEqual(audit.state, "ended")
      assert.deepStrictEqual(audit.counts.approvals, { requested: 1, decided: 1 })
      assert.deepStrictEqual(audit.counts.verifications, { accepted: 1, rejected: 1 })
      assert.deepStrictEqual([audit.counts.agents, audit.counts.children, audit.counts.resumes], [3, 2, 1])
      // Three attempts of one call, and one that is answered with the result of another.
      assert.strictEqual(events.filter(({ event }) => event._tag === "CallFailed").length, 2)
      assert.isTrue(events.some(({ event }) => event._tag === "CallEnded" && event.replayed !== undefined))
      assert.isTrue(events.some(({ event }) => event._tag === "Decided" && event.purpose === "wrap_up"))

      const replay = Replay.replay(events)
      assert.deepStrictEqual(replay.accounts, last._tag === "Completed" ? last.report.accounts : [])
      assert.deepStrictEqual(Budget.imbalances(replay.accounts), [])
      for (const { account, own, children } of Show.summarize(events).accounts) {
        const row = replay.accounts.find((row) => row.account === account)!
        assert.deepStrictEqual([own, children], [row.own, row.children])
      }
      const text = Show.show(events)
      for (const part of ["lead: completed, full", "lead/endless-1: budget:steps, partial", "says ann", "EBUSY"]) {
        assert.include(text, part)
      }
    }),
  )

  it.effect("is sound wherever it is cut off, and whoever goes on from there", () =>
    Effect.gen(function* () {
      const { events } = yield* start
      yield* goOn(events)
      const first = events.findIndex(({ event }) => event._tag === "Opened") + 1
      for (let length = first; length < events.length; length++) {
        assert.deepStrictEqual(Audit.defects(Audit.audit(events.slice(0, length))), [], `${length} events`)
        assert.isTrue(Replay.replay(events.slice(0, length)).equal, `${length} events`)
        for (const uncertain of ["happened", "did_not_happen"] as const) {
          const cut = events.slice(0, length)
          const last = yield* goOn(cut, uncertain)
          assert.strictEqual(last._tag, "Completed", `${length} events`)
          assert.deepStrictEqual(wrong(cut), [], `${length} events, ${uncertain}`)
        }
      }
    }),
  )

  it.effect("shows what was taken out of it or put in twice", () =>
    Effect.gen(function* () {
      const { events } = yield* start
      yield* goOn(events)
      events.forEach((one, index) => {
        const removed = Audit.audit(events.toSpliced(index, 1))
        assert.isFalse(removed.isSound && removed.state === "ended", `without event ${index}`)
        assert.isFalse(Audit.audit(events.toSpliced(index, 0, one)).isSound, `event ${index} twice`)
      })
    }),
  )
})
