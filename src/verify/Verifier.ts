/**
 * Checking an answer before it counts. A verifier looks at the answer and at what its agent has seen, and names the rules
 * it applied; the host accepts the answer only if all passed. A rejection is an observation and the run goes on.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import {
  add,
  amounts,
  type Attempt,
  type BudgetError,
  type Grant,
  nonZero,
  type Spent,
  zero,
} from "../budget/Budget.ts"
import type { Evidence, Rule } from "../event/Event.ts"
import type { AgentState } from "../state/State.ts"
import { messageOf } from "../tool/ToolSet.ts"

/**
 * What is to be checked: the decoded answer, the task, and the state of the agent that gave it.
 *
 * @category verifiers
 * @since 0.1.0
 */
export interface Candidate<out A> {
  readonly answer: A
  readonly task: string
  readonly state: AgentState
}

/**
 * Pays for a check from the verify reserve.
 *
 * **Fails with** `BudgetError` when nothing is left to check with; the run then ends `unverified`.
 */
export type Pay = <B, E, R>(attempt: Attempt<B, E, R>) => Effect.Effect<Spent<B, E>, BudgetError, R>

/**
 * The outcome of a check: accepted if every rule passed. The evidence is what the rules were decided from.
 *
 * @category verifiers
 * @since 0.1.0
 */
export interface Verification {
  readonly accepted: boolean
  readonly rules: ReadonlyArray<Rule>
  readonly evidence: ReadonlyArray<Evidence>
}

/** What a check found: the rules alone, or with the evidence for them. */
export type Found = ReadonlyArray<Rule> | Pick<Verification, "rules" | "evidence">

/**
 * Checks answers of type `A` with services `R`.
 *
 * @category verifiers
 * @since 0.1.0
 */
export interface Verifier<in A, out R = never> {
  readonly name: string
  /** What one check costs at least; kept for it in the verify reserve. Nothing for a check that only computes. */
  readonly needs: Grant
  /**
   * A digest of the part of the world that it checks, taken before a check and again right before the answer is accepted:
   * if the world moved in between, the answer is checked again. Absent for one that looks at the answer alone.
   */
  readonly world?: ((candidate: Candidate<A>) => Effect.Effect<string, unknown, R>) | undefined
  readonly check: (candidate: Candidate<A>, pay: Pay) => Effect.Effect<Verification, BudgetError, R>
}

/**
 * A verifier from an Effect that yields rules, alone or with evidence. One that pays for its checks says in `needs` what
 * one takes at least; one that looks at something that may move says in `world` what it sees there. A check that fails or
 * dies rejects the answer under its own name: an answer is never accepted by accident.
 *
 * @category verifiers
 * @since 0.1.0
 */
export const make = <A, E = never, R = never>(
  name: string,
  check: (candidate: Candidate<A>, pay: Pay) => Effect.Effect<Found, E | BudgetError, R>,
  options: {
    readonly needs?: Grant
    readonly world?: (candidate: Candidate<A>) => Effect.Effect<string, unknown, R>
  } = {},
): Verifier<A, R> => ({
  name,
  needs: options.needs ?? {},
  world: options.world,
  check: (candidate, pay) =>
    Effect.suspend(() => check(candidate, pay)).pipe(
      Effect.map(verificationOf),
      Effect.catchCause((cause) => rejectedBy(name, cause)),
    ),
})

const verificationOf = (found: Found): Verification => {
  const { rules, evidence } = "rules" in found ? found : { rules: found, evidence: [] }
  return { accepted: rules.every((rule) => rule.passed), rules, evidence }
}

const rejectedBy = (name: string, cause: Cause.Cause<unknown>): Effect.Effect<Verification, BudgetError> => {
  const error = Cause.squash(cause)
  if (Cause.hasInterrupts(cause)) return Effect.failCause(cause as Cause.Cause<never>)
  if (isBudgetError(error)) return Effect.fail(error)
  const detail = `the check itself failed: ${messageOf(error)}`
  return Effect.succeed(verificationOf([{ name, passed: false, detail }]))
}

const isBudgetError = (error: unknown): error is BudgetError =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag === "BudgetError"

/**
 * Accepts an answer for which `test` gives `true`; a string says what is wrong with it.
 *
 * **Example** (An answer of at least three words)
 *
 * ```ts
 * import { Verifier } from "bursar"
 *
 * const wordy = Verifier.predicate("three_words", ({ answer }: { answer: string }) =>
 *   answer.split(" ").length >= 3 || "give at least three words",
 * )
 * wordy.name // => "three_words"
 * ```
 *
 * @category verifiers
 * @since 0.1.0
 */
export const predicate = <A>(name: string, test: (candidate: Candidate<A>) => boolean | string): Verifier<A> =>
  make<A>(name, (candidate) =>
    Effect.sync(() => {
      const verdict = test(candidate)
      const detail = typeof verdict === "string" ? verdict : verdict ? "" : "not fulfilled"
      return [{ name, passed: verdict === true, detail }]
    }),
  )

/**
 * Accepts an answer that a stricter schema than the agent's own can decode.
 *
 * @category verifiers
 * @since 0.1.0
 */
export const schema = <A>(name: string, strict: Schema.Codec<A, unknown>): Verifier<unknown> =>
  make<unknown>(name, ({ answer }) =>
    Schema.decodeUnknownEffect(strict)(answer).pipe(
      Effect.match({
        onFailure: (error) => [{ name, passed: false, detail: error.message }],
        onSuccess: () => [{ name, passed: true, detail: "" }],
      }),
    ),
  )

const sumOfNeeds = (verifiers: ReadonlyArray<{ readonly needs: Grant }>): Grant =>
  nonZero(verifiers.reduce((sum, one) => add(sum, amounts(one.needs)), zero))

/** Runs verifiers in order until one decides: for `all` the first that rejects, for `any` the first that accepts. */
const inOrder = <A, R>(name: string, verifiers: ReadonlyArray<Verifier<A, R>>, decisive: boolean): Verifier<A, R> => ({
  name: `${name}(${verifiers.map((one) => one.name).join(", ")})`,
  needs: sumOfNeeds(verifiers),
  world: worldOf(verifiers),
  check: (candidate, pay) =>
    Effect.gen(function* () {
      const rules: Array<Rule> = []
      const evidence: Array<Evidence> = []
      for (const verifier of verifiers) {
        const verification = yield* verifier.check(candidate, pay)
        rules.push(...verification.rules)
        evidence.push(...verification.evidence)
        if (verification.accepted === decisive) return { accepted: decisive, rules, evidence }
      }
      return { accepted: !decisive, rules, evidence }
    }),
})

/** What several verifiers see together. */
const worldOf = <A, R>(verifiers: ReadonlyArray<Verifier<A, R>>): Verifier<A, R>["world"] => {
  const worlds = verifiers.flatMap(({ world }) => world ?? [])
  return worlds.length === 0
    ? undefined
    : (candidate) =>
        Effect.map(
          Effect.forEach(worlds, (world) => world(candidate)),
          (digests) => digests.join(" "),
        )
}

/**
 * Accepts what every verifier accepts. They run in order and stop at the first rejection, so put the cheap ones first.
 *
 * @category combinators
 * @since 0.1.0
 */
export const all = <A, R = never>(...verifiers: ReadonlyArray<Verifier<A, R>>): Verifier<A, R> =>
  inOrder("all", verifiers, false)

/**
 * Accepts what at least one verifier accepts. They run in order and stop at the first acceptance. With none there is
 * nothing that could accept.
 *
 * @category combinators
 * @since 0.1.0
 */
export const any = <A, R = never>(...verifiers: ReadonlyArray<Verifier<A, R>>): Verifier<A, R> =>
  inOrder("any", verifiers, true)
