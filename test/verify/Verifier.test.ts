import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Agent, Proposal, Verifier } from "../../src/index.ts"
import { all, broken, run, stopped } from "../support/journalled.ts"
import { plays } from "../support/scripts.ts"

const answers = (...each: ReadonlyArray<unknown>) => plays(...each.map((one) => Proposal.finish(one)))

const checked = <A>(verify: Verifier.Verifier<A>, policy = answers("wrong", "right")) =>
  run(Agent.make("a", { policy, verify: verify as never }), { steps: 12 })

const right = Verifier.predicate<string>("right", ({ answer }) => answer === "right" || `"${answer}" is not right`)
const short = Verifier.predicate<string>("short", ({ answer }) => answer.length < 6)

describe("a rejection", () => {
  it.effect("is fed back, and the loop goes on to an answer that is accepted", () =>
    Effect.gen(function* () {
      const { outcome, events } = yield* checked(right)
      assert.isTrue(outcome._tag === "Completed" && outcome.answer === ("right" as never))
      assert.deepStrictEqual(
        all(events, "Verified").map((one) => one.accepted),
        [false, true],
      )
      assert.deepStrictEqual(outcome._tag === "Completed" && outcome.rules, [
        { name: "right", passed: true, detail: "" },
      ])
      assert.notStrictEqual(all(events, "Verified")[0]!.stateDigest, all(events, "Verified")[1]!.stateDigest)
      assert.deepStrictEqual(broken(events), [])
    }),
  )

  it.effect("is seen by the policy, with the rule and what is wrong", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const policy = plays(Proposal.finish("wrong"), (view) => {
        seen.push(...view.turns.flatMap((turn) => turn.feedback))
        return Proposal.finish("right")
      })
      yield* checked(right, policy)
      assert.deepStrictEqual(seen, ['The answer was not accepted. right: "wrong" is not right'])
    }),
  )

  it.effect("of every answer is a lack of progress in the end, with the last answer kept", () =>
    Effect.gen(function* () {
      const { outcome } = yield* checked(right, answers("wrong"))
      const { reason, partial } = stopped(outcome)
      assert.deepStrictEqual([reason, partial], ["no_progress", "wrong" as never])
    }),
  )
})

describe("a check that fails or dies", () => {
  it.effect("rejects, under its own name, however it was made", () =>
    Effect.gen(function* () {
      const raw: Verifier.Verifier<unknown> = {
        name: "raw",
        needs: {},
        check: () => {
          throw new Error("secret")
        },
      }
      for (const verify of [
        Verifier.make("fails", () => Effect.fail({ _tag: "NoFile", message: "no file" } as const)),
        Verifier.make("dies", () => Effect.die(new Error("no file"))),
        Verifier.predicate("throws", () => {
          throw new Error("no file")
        }),
        raw,
      ]) {
        const { outcome, events } = yield* checked(verify)
        assert.strictEqual(outcome._tag, "Stopped")
        const [first] = all(events, "Verified")
        assert.deepStrictEqual([first!.accepted, first!.rules[0]!.name], [false, verify.name])
        assert.deepStrictEqual(broken(events), [])
      }
    }),
  )
})

describe("combinators", () => {
  const rules = (verify: Verifier.Verifier<string>, answer: string) =>
    Effect.gen(function* () {
      const { events } = yield* checked(verify, answers(answer))
      const [first] = all(events, "Verified")
      return [first!.accepted, first!.rules.map((rule) => `${rule.name}:${rule.passed}`)]
    })

  it.effect("all stops at the first rejection, any at the first acceptance", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* rules(Verifier.all(short, right), "right"), [true, ["short:true", "right:true"]])
      assert.deepStrictEqual(yield* rules(Verifier.all(short, right), "much too long"), [false, ["short:false"]])
      assert.deepStrictEqual(yield* rules(Verifier.any(short, right), "wrong"), [true, ["short:true"]])
      assert.deepStrictEqual(yield* rules(Verifier.any(right, short), "neither one"), [
        false,
        ["right:false", "short:false"],
      ])
    }),
  )

  it.effect("all of nothing accepts, any of nothing does not", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* rules(Verifier.all(), "x"), [true, []])
      assert.deepStrictEqual(yield* rules(Verifier.any(), "x"), [false, []])
    }),
  )

  it.effect("a stricter schema than the answer's own", () =>
    Effect.gen(function* () {
      const Long = Schema.String.check(Schema.isMinLength(3))
      const verify = Verifier.schema("long", Long) as Verifier.Verifier<string>
      assert.deepStrictEqual(yield* rules(verify, "abc"), [true, ["long:true"]])
      assert.deepStrictEqual(yield* rules(verify, "ab"), [false, ["long:false"]])
    }),
  )
})
