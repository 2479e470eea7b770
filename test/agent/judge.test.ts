import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Agent, type Event, Policy, Proposal, Verifier } from "../../src/index.ts"
import { all, run, stopped } from "../support/journalled.ts"
import { completed, driven, kit, lawful, pass, resumed, rowOf, use } from "../support/driven.ts"
import { calls, plays } from "../support/scripts.ts"

const judgement = (accepted: boolean, reason = "") => Proposal.finish({ accepted, reason })

/** A critic that looks for a word in its task. */
const critic = (word = "right") =>
  Agent.make("critic", {
    answer: Agent.Judgement,
    policy: Policy.make((view) => {
      const accepted = view.task.includes(word)
      return judgement(accepted, accepted ? "it is there" : `${word} is missing`)
    }),
  })

const thinker = (verify: Verifier.Verifier<string>, policy: Policy.Policy = plays(Proposal.finish("right"))) =>
  Agent.make("thinker", { policy, verify })

const lives = (agent: Agent.Agent<string>, budget = { steps: 30 }) =>
  Effect.tap(run(agent, budget), ({ outcome, events }) => Effect.sync(() => lawful(outcome, events)))

describe("a judge", () => {
  it.effect("accepts: the answer counts, with the judge's reason and its account as evidence", () =>
    Effect.gen(function* () {
      const { outcome } = yield* lives(thinker(Agent.judge(critic())))
      const { answer, rules, evidence } = completed(outcome)
      assert.deepStrictEqual(
        [answer, rules, evidence],
        [
          "right",
          [{ name: "critic", passed: true, detail: "it is there" }],
          [{ judge: "critic", account: "thinker/critic-1" }],
        ],
      )
    }),
  )

  it.effect("is paid from the verify reserve, all of it, and gives back what it did not use", () =>
    Effect.gen(function* () {
      const { outcome, events } = yield* lives(thinker(Agent.judge(critic())))
      // Of 30 steps 4 are for the answer, 7 for checks, 3 for retries.
      const [carved] = all(events, "Carved")
      assert.deepInclude(carved, { account: "thinker/critic-1", parent: "thinker", reserve: "verify", charge: {} })
      const [own, judge] = [rowOf(outcome), rowOf(outcome, "thinker/critic-1")]
      assert.deepStrictEqual([judge.granted.steps, judge.own.steps, judge.left.steps], [7, 1, 6])
      assert.deepStrictEqual([own.own.steps, own.children.steps, own.left.steps], [1, 1, 28])
      const used = (reserve: "explore" | "verify" | "retry" | "output") => own.reserves[reserve].used.steps
      assert.deepStrictEqual([used("explore"), used("verify"), used("retry"), used("output")], [1, 1, 0, 0])
      assert.deepStrictEqual(
        outcome.report.ends.map((end) => [end.agent, end.name, end.reason]),
        [
          ["thinker", "thinker", "completed"],
          ["thinker/critic-1", "critic", "completed"],
        ],
      )
    }),
  )

  it.effect("rejects: its reason is told, the run goes on, and the next judge gets what is left", () =>
    Effect.gen(function* () {
      const told: Array<string> = []
      const policy = plays(Proposal.finish("wrong"), (view) => {
        told.push(...view.turns[0]!.feedback)
        return Proposal.finish("right")
      })
      const { outcome, events } = yield* lives(thinker(Agent.judge(critic()), policy))
      assert.strictEqual(completed(outcome).answer, "right")
      assert.deepStrictEqual(told, ["The answer was not accepted. critic: right is missing"])
      assert.deepStrictEqual(
        all(events, "Carved").map((one) => [one.account, one.grant.steps]),
        [
          ["thinker/critic-1", 7],
          ["thinker/critic-2", 6],
        ],
      )
      assert.strictEqual(rowOf(outcome).reserves.verify.used.steps, 2)
    }),
  )

  it.effect("that is left without budget leaves the answer unverified", () =>
    Effect.gen(function* () {
      const policy = Policy.make((view) => Proposal.finish(`wrong ${view.step}`))
      const { outcome, events } = yield* lives(thinker(Agent.judge(critic()), policy))
      const { reason, partial } = stopped(outcome)
      assert.deepStrictEqual([reason, partial], ["unverified", "wrong 8"])
      assert.strictEqual(all(events, "Verified").length, 7)
      assert.strictEqual(rowOf(outcome).reserves.verify.used.steps, 7)
      // Nobody wraps up what is unverified.
      assert.strictEqual(rowOf(outcome).reserves.output.used.steps, 0)
    }),
  )

  it.effect("that comes to no judgement has accepted nothing, whatever stopped it", () =>
    Effect.gen(function* () {
      const stops: ReadonlyArray<readonly [Policy.Policy, string]> = [
        [Policy.make(() => Proposal.invalid("hm")), "invalid_decisions"],
        [Policy.make(() => Proposal.finish("no judgement")), "invalid_decisions"],
        [Policy.make(() => calls(use("nowhere"))), "invalid_decisions"],
      ]
      for (const [policy, why] of stops) {
        const settings = { invalidDecisions: 2 }
        const lost = Agent.make("critic", { answer: Agent.Judgement, policy, settings })
        const { outcome, events } = yield* lives(thinker(Agent.judge(lost)))
        const [first] = all(events, "Verified")
        assert.strictEqual(first!.accepted, false)
        assert.deepStrictEqual(first!.rules, [{ name: "critic", passed: false, detail: `no judgement: ${why}` }])
        assert.strictEqual(stopped(outcome).partial, "right")
      }
    }),
  )

  it.effect("that would have to ask a person has accepted nothing; nobody waits", () =>
    Effect.gen(function* () {
      const { toolkit, handlers } = kit({
        look: [{ effect: "read", approval: true }, ({ key }) => Effect.succeed(key)],
      })
      const asks = Agent.make("critic", { answer: Agent.Judgement, policy: plays(calls(use("look"))), toolkit })
      const agent = Agent.make("thinker", {
        policy: plays(Proposal.finish("wrong"), calls(use("never"))),
        verify: Agent.judge<string, never>(asks as never),
      })
      const { outcome, events } = yield* run(agent, { steps: 30, toolCalls: 30 }).pipe(Effect.provide(handlers))
      lawful(outcome, events)
      assert.deepStrictEqual(all(events, "Verified")[0]!.rules, [
        { name: "critic", passed: false, detail: "no judgement: it waits for a person" },
      ])
      assert.deepStrictEqual([all(events, "RunSuspended"), outcome._tag], [[], "Stopped"])
    }),
  )

  it.effect("is shown what its user says, else task and answer", () =>
    Effect.gen(function* () {
      const tasks: Array<string> = []
      const policy = Policy.make((view) => {
        tasks.push(view.task)
        return judgement(true)
      })
      const sees = Agent.make("critic", { answer: Agent.Judgement, policy })
      yield* lives(thinker(Agent.judge(sees)))
      yield* lives(thinker(Agent.judge(sees, { ask: ({ answer }) => `Is ${answer} right?` })))
      assert.deepStrictEqual(tasks, ["Task:\nthe task\n\nAnswer:\nright", "Is right right?"])
    }),
  )

  it.effect("stands beside other verifiers: one that rejects before it spares the judge", () =>
    Effect.gen(function* () {
      const short = Verifier.predicate<string>("short", ({ answer }) => answer.length < 6)
      const policy = plays(Proposal.finish("far too long"), Proposal.finish("right"))
      const { outcome } = yield* lives(thinker(Verifier.all(short, Agent.judge(critic())), policy))
      assert.deepStrictEqual(
        completed(outcome).rules.map((rule) => [rule.name, rule.passed]),
        [
          ["short", true],
          ["critic", true],
        ],
      )
      assert.strictEqual(outcome.report.accounts.length, 2)
    }),
  )

  it.effect("works inside a child too, from the child's verify reserve", () =>
    Effect.gen(function* () {
      const lead = Agent.make("lead", {
        policy: plays(calls({ tool: "thinker", params: { task: "think" } }), Proposal.finish("done")),
        children: [Agent.asTool(thinker(Agent.judge(critic())))],
      })
      const { outcome } = yield* lives(lead, { steps: 60 })
      assert.deepStrictEqual(
        outcome.report.accounts.map((row) => row.account),
        ["lead", "lead/thinker-1", "lead/thinker-1/critic-1"],
      )
      assert.strictEqual(rowOf(outcome, "lead/thinker-1").reserves.verify.used.steps, 1)
    }),
  )

  it.effect("ends with the one it judges when that is cancelled", () =>
    Effect.gen(function* () {
      const slow = Agent.make("critic", { answer: Agent.Judgement, policy: Policy.make(() => Effect.never) })
      yield* driven(thinker(Agent.judge(slow)), { budget: { steps: 30 } }, (handle, events) =>
        Effect.gen(function* () {
          yield* pass(1_000)
          const outcome = yield* handle.cancel
          lawful(outcome, events)
          assert.deepStrictEqual([stopped(outcome).reason, stopped(outcome).partial], ["cancelled", "right"])
          assert.deepStrictEqual(
            outcome.report.ends.map((end) => [end.agent, end.reason]),
            [
              ["thinker", "cancelled"],
              ["thinker/critic-1", "cancelled"],
            ],
          )
        }),
      )
    }),
  )

  it.effect("is cancelled alone: there is no judgement, and the run goes on", () =>
    Effect.gen(function* () {
      let judged = 0
      const policy = Policy.make(() => (judged++ === 0 ? Effect.never : Effect.succeed(judgement(true, "good"))))
      const slow = Agent.make("critic", { answer: Agent.Judgement, policy })
      yield* driven(thinker(Agent.judge(slow)), { budget: { steps: 30 } }, (handle, events) =>
        Effect.gen(function* () {
          yield* pass(1_000)
          yield* handle.cancelAgent("thinker/critic-1")
          yield* pass(1_000)
          const outcome = yield* handle.await
          lawful(outcome, events)
          assert.strictEqual(completed(outcome).answer, "right")
          assert.deepStrictEqual(
            all(events, "Verified").map((one) => one.rules[0]!.detail),
            ["no judgement: cancelled", "good"],
          )
        }),
      )
    }),
  )

  it.effect("has its time from the time for checking", () =>
    Effect.gen(function* () {
      const slow = Agent.make("critic", { answer: Agent.Judgement, policy: Policy.make(() => Effect.never) })
      const budget = { steps: 30, wallClock: "100 seconds" } as const
      yield* driven(thinker(Agent.judge(slow)), { budget }, (handle, events) =>
        Effect.gen(function* () {
          yield* pass(200_000)
          const outcome = yield* handle.await
          lawful(outcome, events)
          // The last 15 s are kept for an answer.
          assert.strictEqual(events.at(-1)!.atMillis, 85_000)
          assert.strictEqual(stopped(outcome).partial, "right")
        }),
      )
    }),
  )
})

describe("a judged run whose process dies", () => {
  it.effect("after any event goes on to its answer: nothing stays open, and no judgement is lost", () =>
    Effect.gen(function* () {
      const policy = plays(Proposal.finish("wrong"), Proposal.invalid("hm"), Proposal.finish("right"))
      const two = Agent.make("critic", {
        answer: Agent.Judgement,
        policy: plays(Proposal.invalid("let me see"), (view) => judgement(view.task.includes("right"), "x")),
      })
      const agent = thinker(Agent.judge(two), policy)
      const { events } = yield* lives(agent, { steps: 60 })
      const first = events.findIndex(({ event }) => event._tag === "Opened")
      for (let end = first + 1; end < events.length; end++) {
        const where = `after event ${end - 1} (${events[end - 1]!.event._tag})`
        const journal: Array<Event.Recorded> = events.slice(0, end)
        const outcome = yield* resumed(agent, journal)
        lawful(outcome, journal, where)
        assert.strictEqual(completed(outcome).answer, "right", where)
        assert.strictEqual(all(journal, "Verified").at(-1)!.accepted, true, where)
        const judges = outcome.report.ends.filter((one) => one.name === "critic")
        assert.isAtLeast(judges.length, 2, where)
      }
    }),
  )
})
