import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Agent, Policy, Proposal, Verifier } from "../../src/index.ts"
import { all, run, stopped } from "../support/journalled.ts"
import { completed, driven, kit, lawful, pass, resumed, rowOf, use } from "../support/driven.ts"
import { bare, calls, plays } from "../support/scripts.ts"

type Check = Verifier.Verifier<string>

const lives = (
  verify: Check,
  policy: Policy.Policy = plays(Proposal.finish("the answer")),
  options: { readonly steps?: number; readonly wallClock?: "10 seconds"; readonly explicit?: boolean } = {},
) =>
  Effect.gen(function* () {
    const agent = Agent.make("a", { policy, verify, ...(options.explicit === false ? {} : bare) })
    const { steps = 9, wallClock } = options
    const ran = yield* run(agent, { steps, ...(wallClock === undefined ? {} : { wallClock }) })
    lawful(ran.outcome, ran.events)
    return ran
  })

/** A verifier of a world that moves during the first checks. */
const watching = (moves: number, passes: () => boolean = () => true) => {
  const at = { world: 0, checks: 0 }
  const verify: Check = Verifier.make<string>(
    "tests_passed",
    () =>
      Effect.sync(() => {
        at.checks++
        if (at.checks <= moves) at.world++
        return {
          rules: [{ name: "tests_passed", passed: passes(), detail: `world ${at.world}` }],
          evidence: [{ command: "npm test", exitCode: passes() ? 0 : 1, check: at.checks }],
        }
      }),
    { world: () => Effect.sync(() => `world ${at.world}`) },
  )
  return { at, verify }
}

describe("a world that moves", () => {
  it.effect("between the check and the acceptance is checked again; then the answer stands", () =>
    Effect.gen(function* () {
      for (const moves of [0, 1, 2]) {
        const { at, verify } = watching(moves)
        const { outcome, events } = yield* lives(verify)
        assert.deepStrictEqual([outcome._tag, at.checks], ["Completed", moves + 1])
        const [verified, ...more] = all(events, "Verified")
        assert.deepStrictEqual([verified!.accepted, more], [true, []])
        // The evidence is that of the check that counted.
        assert.deepStrictEqual(verified!.evidence, [{ command: "npm test", exitCode: 0, check: moves + 1 }])
      }
    }),
  )

  it.effect("for ever has the answer rejected, under a rule that says so, and the run goes on", () =>
    Effect.gen(function* () {
      const { at, verify } = watching(3)
      const feedback: Array<string> = []
      const policy = plays(Proposal.finish("the answer"), (view) => {
        feedback.push(...view.turns[0]!.feedback)
        return Proposal.finish("again")
      })
      const { outcome, events } = yield* lives(verify, policy)
      assert.deepStrictEqual([completed(outcome).answer, at.checks], ["again", 4])
      assert.deepStrictEqual(
        all(events, "Verified").map((one) => [one.accepted, one.rules.map((rule) => [rule.name, rule.passed])]),
        [
          [
            false,
            [
              ["tests_passed", true],
              ["world_unchanged", false],
            ],
          ],
          [true, [["tests_passed", true]]],
        ],
      )
      assert.lengthOf(feedback, 1)
      assert.include(feedback[0], "world_unchanged")
    }),
  )

  it.effect("is checked once where the answer is rejected anyway", () =>
    Effect.gen(function* () {
      let good = false
      const { at, verify } = watching(1, () => good)
      const policy = plays(Proposal.finish("bad"), () => ((good = true), Proposal.finish("good")))
      const { outcome } = yield* lives(verify, policy)
      assert.deepStrictEqual([completed(outcome).answer, at.checks], ["good", 2])
    }),
  )

  it.effect("that cannot be looked at has nothing accepted", () =>
    Effect.gen(function* () {
      for (const world of [() => Effect.fail("no"), () => Effect.die("no")]) {
        const verify: Check = Verifier.make<string>(
          "v",
          () => Effect.succeed([{ name: "v", passed: true, detail: "" }]),
          {
            world,
          },
        )
        const { outcome, events } = yield* lives(verify, plays(Proposal.finish("x")), { steps: 2 })
        assert.strictEqual(stopped(outcome).partial, "x")
        assert.isTrue(all(events, "Verified").every((one) => !one.accepted))
      }
    }),
  )

  it.effect("has another digest than one that is otherwise the same", () =>
    Effect.gen(function* () {
      const digestOf = (world: string | undefined, answer = "x") =>
        Effect.gen(function* () {
          const found = Effect.succeed([{ name: "v", passed: true, detail: "" }])
          const looks = world === undefined ? {} : { world: () => Effect.succeed(world) }
          const verify: Check = Verifier.make<string>("v", () => found, looks)
          const { events } = yield* lives(verify, plays(Proposal.finish(answer)))
          return all(events, "Verified")[0]!.stateDigest
        })
      const digests = yield* Effect.all([digestOf(undefined), digestOf("one"), digestOf("two"), digestOf("one", "y")])
      assert.strictEqual(new Set(digests).size, 4)
      assert.deepStrictEqual(digests.slice(0, 2), yield* Effect.all([digestOf(undefined), digestOf("one")]))
    }),
  )
})

describe("evidence", () => {
  it.effect("is kept in the journal, in the outcome and in the state", () =>
    Effect.gen(function* () {
      const { verify } = watching(0)
      const { outcome, events } = yield* lives(verify)
      const evidence = [{ command: "npm test", exitCode: 0, check: 1 }]
      const rules = [{ name: "tests_passed", passed: true, detail: "world 0" }]
      const { rules: passed, evidence: kept } = completed(outcome)
      assert.deepStrictEqual([passed, kept], [rules, evidence])
      assert.deepInclude(all(events, "Verified")[0], { accepted: true, rules, evidence })
    }),
  )

  it.effect("of several verifiers is that of all that looked", () =>
    Effect.gen(function* () {
      const [first, second] = [watching(0), watching(0)]
      const { outcome } = yield* lives(Verifier.all(first.verify, second.verify))
      assert.lengthOf(completed(outcome).evidence, 2)
      const any = yield* lives(Verifier.any(first.verify, second.verify))
      assert.lengthOf(completed(any.outcome).evidence, 1)
    }),
  )
})

describe("a confident wrong finish", () => {
  it.effect("is refused, told why, and the second one is accepted", () =>
    Effect.gen(function* () {
      const verify = Verifier.predicate<string>("sum", ({ answer }) => answer === "23" || "the sum is not right")
      const policy = plays(Proposal.finish("42"), (view) =>
        Proposal.finish(view.turns[0]!.feedback.join(" ").includes("the sum is not right") ? "23" : "42"),
      )
      const { outcome, events } = yield* lives(verify, policy)
      assert.deepStrictEqual([completed(outcome).answer, rowOf(outcome).own.steps], ["23", 2])
      assert.deepStrictEqual(
        all(events, "Verified").map((one) => [one.step, one.accepted]),
        [
          [1, false],
          [2, true],
        ],
      )
    }),
  )
})

describe("a verifier that breaks", () => {
  it.effect("rejects the answer, whether it fails, dies or throws; the run goes on until its budget ends", () =>
    Effect.gen(function* () {
      const broken: ReadonlyArray<Check> = [
        Verifier.make<string, string>("v", () => Effect.fail("down")),
        Verifier.make<string>("v", () => Effect.die(new Error("broken"))),
        Verifier.make<string>("v", () => {
          throw new Error("broken")
        }),
        {
          name: "v",
          needs: {},
          check: () => {
            throw new Error("broken")
          },
        },
      ]
      for (const verify of broken) {
        const { outcome, events } = yield* lives(verify, plays(Proposal.finish("x")), { steps: 2 })
        assert.deepStrictEqual([stopped(outcome).reason, stopped(outcome).partial], ["budget:steps", "x"])
        assert.deepStrictEqual(
          all(events, "Verified").map((one) => [one.accepted, one.rules.map((rule) => rule.name)]),
          [
            [false, ["v"]],
            [false, ["v"]],
          ],
        )
      }
    }),
  )

  it.effect("by interrupting itself has accepted nothing, and nobody was cancelled: the run goes on", () =>
    Effect.gen(function* () {
      let times = 0
      const verify: Check = Verifier.make<string>("v", () =>
        times++ === 0 ? Effect.interrupt : Effect.succeed([{ name: "v", passed: true, detail: "" }]),
      )
      const { outcome } = yield* lives(verify)
      assert.deepStrictEqual([outcome._tag === "Stopped" ? outcome.reason : outcome._tag, times], ["Completed", 2])
    }),
  )

  it.effect("is cut off where the time for checking ends; then the answer is unverified", () =>
    Effect.gen(function* () {
      const verify: Check = Verifier.make<string>("v", () => Effect.never)
      const { outcome, events } = yield* lives(verify, plays(Proposal.finish("x")), { wallClock: "10 seconds" })
      assert.deepStrictEqual([stopped(outcome).reason, stopped(outcome).partial], ["unverified", "x"])
      assert.strictEqual(events.at(-1)!.atMillis, 10_000)
      const slow: Check = Verifier.make<string>("v", () => Effect.never)
      const kept = yield* lives(slow, plays(Proposal.finish("x")), { wallClock: "10 seconds", explicit: false })
      // The last 1.5 s are kept for an answer.
      const took = kept.events.at(-1)!.atMillis - kept.events[0]!.atMillis
      assert.deepStrictEqual([stopped(kept.outcome).reason, took], ["unverified", 8_500])
    }),
  )

  it.effect("is cut off there also when it looks again because the world moved", () =>
    Effect.gen(function* () {
      let world = 0
      const verify: Check = Verifier.make<string>(
        "v",
        () => Effect.sync(() => (world++, [{ name: "v", passed: true, detail: "" }])).pipe(Effect.delay("6 seconds")),
        { world: () => Effect.sync(() => `${world}`) },
      )
      const { outcome, events } = yield* lives(verify, plays(Proposal.finish("x")), { wallClock: "10 seconds" })
      assert.strictEqual(stopped(outcome).reason, "unverified")
      assert.strictEqual(events.at(-1)!.atMillis, 10_000)
    }),
  )

  it.effect("has nothing to pay with leaves the answer unverified", () =>
    Effect.gen(function* () {
      const verify: Check = Verifier.make<string>("v", (_, pay) =>
        pay({
          hold: () => ({ steps: 1 }),
          use: () => Effect.void,
          book: () => ({ _tag: "Settle", actual: { steps: 1 } }),
        }).pipe(Effect.as([{ name: "v", passed: true, detail: "" }])),
      )
      const enough = yield* lives(verify, plays(Proposal.finish("x")), { steps: 2 })
      assert.deepStrictEqual([enough.outcome._tag, rowOf(enough.outcome).own.steps], ["Completed", 2])
      const short = yield* lives(verify, plays(Proposal.finish("x")), { steps: 1 })
      assert.deepStrictEqual([stopped(short.outcome).reason, stopped(short.outcome).partial], ["unverified", "x"])
    }),
  )

  it.effect("is interrupted when its run is cancelled: the answer is kept, unverified", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const verify: Check = Verifier.make<string>("v", () =>
        Effect.onInterrupt(Effect.never, () => Effect.sync(() => log.push("stopped"))),
      )
      const agent = Agent.make("a", { policy: plays(Proposal.finish("x")), verify, ...bare })
      yield* driven(agent, { budget: { steps: 9 } }, (handle, events) =>
        Effect.gen(function* () {
          yield* pass(1_000)
          const outcome = yield* handle.cancel
          lawful(outcome, events)
          assert.deepStrictEqual(
            [stopped(outcome).reason, stopped(outcome).partial, log],
            ["cancelled", "x", ["stopped"]],
          )
          assert.deepStrictEqual(all(events, "Verified"), [])
        }),
      )
    }),
  )
})

describe("a run that is resumed", () => {
  it.effect("checks an answer that was not judged, and does not ask again for one that was", () =>
    Effect.gen(function* () {
      let asked = 0
      let checks = 0
      const policy = Policy.make((view) => {
        asked++
        return view.turns.length === 0 ? calls(use("look")) : Proposal.finish("x")
      })
      const verify = Verifier.predicate<string>("v", () => ++checks > 0)
      const { toolkit, handlers } = kit({ look: [{ effect: "read" }, ({ key }) => Effect.succeed(key)] })
      const agent = Agent.make("a", { policy, verify, toolkit, ...bare })
      const { events } = yield* run(agent, { steps: 9 }).pipe(Effect.provide(handlers))
      const answered = events.findIndex(({ event }) => event._tag === "Decided" && event.kind === "finish")
      const journal = events.slice(0, answered + 1)
      asked = checks = 0
      const outcome = yield* resumed(agent, journal).pipe(Effect.provide(handlers))
      lawful(outcome, journal)
      assert.deepStrictEqual([completed(outcome).answer, asked, checks], ["x", 0, 1])
    }),
  )
})
