import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Agent, type Budget, type Event, Journal, Policy, Proposal, ToolError } from "../../src/index.ts"
import { type Any, driven, kit, pass, says, use } from "../support/driven.ts"
import { all, broken, unbalanced } from "../support/journalled.ts"
import { ask, bare, calls, plays } from "../support/scripts.ts"

const budget: Budget.Input = { steps: 200, toolCalls: 200, wallClock: "1000 days" }

const paid: Array<string> = []
const tools = kit({
  pay: [{ effect: "irreversible", approval: true }, ({ key }) => Effect.sync(() => (paid.push(key), key))],
  send: [
    { effect: "irreversible", timeout: "1 second", retries: 0 },
    ({ key }) =>
      Effect.andThen(
        Effect.sync(() => paid.push(key)),
        Effect.fail(ToolError.lost("ELOST", "lost")),
      ),
  ],
  flaky: [
    { effect: "write", idempotency: "natural", retries: 2, backoff: "1 second" },
    ({ key }) => (flakes++ % 2 === 0 ? Effect.fail(ToolError.transient("EBUSY", "busy")) : Effect.succeed(key)),
  ],
  look: [
    { effect: "read", trust: "untrusted", timeout: "1 minute" },
    ({ key }) => Effect.as(Effect.sleep("2 seconds"), key),
  ],
})
let flakes = 0
const make = (name: string, policy: Policy.Policy, children: ReadonlyArray<Any> = [], more = {}): Any =>
  Agent.make(name, {
    policy,
    toolkit: tools.toolkit,
    children: children.map((child) => Agent.asTool(child, { share: 0.4 })),
    ...more,
  }) as unknown as Any

const critic = () =>
  Agent.make("critic", {
    ...bare,
    answer: Agent.Judgement,
    policy: Policy.make(() => Proposal.finish({ accepted: true, reason: "" })),
  })
const grandA = make("ga", plays(calls(use("look", "l"), use("pay", "A")), Proposal.finish("a")), [], {
  verify: Agent.judge(critic(), { needs: { steps: 1 } }),
})
const grandB = make("gb", plays(calls(use("flaky", "f")), calls(use("send", "B")), Proposal.finish("b")))
const tree = () => {
  const m = make("mid", plays(calls(ask("ga"), ask("gb"), use("look", "m")), Proposal.finish("m")), [grandA, grandB])
  return make("root", plays(calls(ask("mid"), use("pay", "R")), Proposal.finish("r")), [m])
}

const go = (agent: Any, events: Array<Event.Recorded>, answers: ReadonlyArray<Agent.Answer>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const handle = yield* Agent.spawnResumed(agent, { run: "run", answers })
      yield* pass(120_000)
      return yield* handle.await
    }),
  ).pipe(Effect.provideService(Journal.Journal, Journal.toArray(events)))

const used = (events: ReadonlyArray<Event.Recorded>) =>
  all(events, "Settled").reduce((n, { actual }) => n + (actual.steps ?? 0) + (actual.toolCalls ?? 0), 0)

const laws = (outcome: Agent.Outcome<string>, events: ReadonlyArray<Event.Recorded>) =>
  outcome._tag === "Suspended"
    ? []
    : [
        ...broken(events),
        ...unbalanced(outcome.report.accounts),
        ...(outcome._tag === "Completed" ? [] : [`${outcome.reason} ${outcome.detail}`]),
      ]

/** Answers one question at a time, until the end. */
const toEnd = (agent: Any, events: Array<Event.Recorded>, first: ReadonlyArray<Agent.Answer>, pick: number) =>
  Effect.gen(function* () {
    let outcome = yield* go(agent, events, first)
    const complaints = laws(outcome, events)
    for (let n = 0; outcome._tag === "Suspended" && n < 12; n++) {
      const all = outcome.waitsFor
      if (all.length === 0) return [...complaints, "waits for nothing"]
      const one = all[pick % all.length]!
      outcome = yield* go(agent, events, [says(one, one.kind === "uncertain" ? "happened" : "approved", "done")])
      complaints.push(...laws(outcome, events))
    }
    if (outcome._tag === "Suspended") complaints.push("never ends")
    return complaints
  })

describe("a deep tree with questions", () => {
  it.effect(
    "cut anywhere, at each stage, comes to its end",
    () =>
      Effect.gen(function* () {
        const agent = tree()
        const events: Array<Event.Recorded> = []
        yield* driven(agent, { budget, events }, (handle) => Effect.andThen(pass(120_000), handle.await))
        const wholeComplaints = yield* toEnd(agent, events, [], 0)
        assert.deepStrictEqual(wholeComplaints, [])
        const complaints: Array<string> = []
        for (let at = 12; at < events.length - 1; at++) {
          for (const pick of [0, 1]) {
            const left = events.slice(0, at)
            const had = used(left)
            paid.splice(0)
            // What had started has happened.
            for (const { event } of left)
              if (event._tag === "CallStarted" && (event.tool === "pay" || event.tool === "send"))
                paid.push(event.tool === "send" ? "B" : event.agent === "root" ? "R" : "A")
            const found = yield* Effect.exit(toEnd(agent, left, [], pick))
            const where = `after ${at} (${JSON.stringify(events[at - 1]!.event).slice(0, 130)}) pick ${pick}`
            if (found._tag === "Failure") complaints.push(`${where}: ${String(found.cause).slice(0, 300)}`)
            else complaints.push(...found.value.map((one) => `${where}: ${one}`))
            if (paid.toSorted().join("") !== "ABR") complaints.push(`${where}: paid ${paid.join()}`)
            if (used(left) < had) complaints.push(`${where}: spent less`)
          }
        }
        assert.deepStrictEqual(complaints, [])
      }).pipe(Effect.provide(tools.handlers)) as Effect.Effect<void>,
  )

  it.effect(
    "cut anywhere and then cancelled, whole or in part, paused or abandoned, keeps every law",
    () =>
      Effect.gen(function* () {
        const agent = tree()
        const events: Array<Event.Recorded> = []
        yield* driven(agent, { budget, events }, (handle) => Effect.andThen(pass(120_000), handle.await))
        assert.deepStrictEqual(yield* toEnd(agent, events, [], 0), [])
        const complaints: Array<string> = []
        for (let at = 12; at < events.length - 1; at++) {
          for (const way of ["cancel", "mid", "ga", "gb", "pause", "abandon"])
            for (const ms of way === "abandon" ? [0] : [0, 500, 2500]) {
              const left = events.slice(0, at)
              const where = `after ${at} (${JSON.stringify(events[at - 1]!.event).slice(0, 110)}) ${way} ${ms}`
              const found = yield* Effect.exit(
                Effect.scoped(
                  Effect.gen(function* () {
                    if (way === "abandon") {
                      const report = yield* Agent.abandon("run")
                      return [...broken(left), ...unbalanced(report.accounts)]
                    }
                    const handle = yield* Agent.spawnResumed(agent, { run: "run" })
                    yield* pass(ms)
                    if (way === "pause") {
                      const ok = yield* Effect.exit(handle.pause)
                      yield* pass(5000)
                      if (ok._tag === "Success") yield* Effect.exit(handle.resume)
                      yield* pass(120_000)
                      return laws(yield* handle.await, left)
                    }
                    if (way === "cancel") return [...broken2(yield* handle.cancel, left)]
                    const account = way === "mid" ? "root/mid-1" : `root/mid-1/${way}-1`
                    yield* Effect.exit(handle.cancelAgent(account))
                    yield* pass(120_000)
                    const outcome = yield* handle.await
                    return outcome._tag === "Suspended" ? yield* toEnd(agent, left, [], 0) : laws(outcome, left)
                  }),
                ).pipe(Effect.provideService(Journal.Journal, Journal.toArray(left))),
              )
              if (found._tag === "Failure") complaints.push(`${where}: ${String(found.cause).slice(0, 300)}`)
              else complaints.push(...found.value.map((one: string) => `${where}: ${one}`))
            }
        }
        assert.deepStrictEqual(complaints, [])
      }).pipe(Effect.provide(tools.handlers)) as Effect.Effect<void>,
  )
})

const broken2 = (outcome: Agent.Outcome<string>, events: ReadonlyArray<Event.Recorded>) => [
  ...broken(events),
  ...unbalanced(outcome.report.accounts),
]
