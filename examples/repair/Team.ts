/**
 * The agents of the repair job: a maintainer that delegates and reports, an investigator that looks for the cause, and a
 * fixer that changes files. Tools, verifiers and budgets are the same whether plain functions or a language model decide.
 *
 * Nobody is believed: an answer counts when the tests really pass and no file that decides about them was touched.
 */
import * as Schema from "effect/Schema"
import * as Toolkit from "effect/ai/Toolkit"
import { Agent, Policy, Verifier } from "../../src/index.ts"
import { Check, Command, Files } from "../../src/node/index.ts"
import * as Plain from "./Plain.ts"

/** What an investigator found out. */
export const Diagnosis = Schema.Struct({
  /** The tests that failed, by their names. */
  failing: Schema.Array(Schema.String),
  cause: Schema.String,
  /** The function to look at; absent where none could be named. */
  suspect: Schema.optionalKey(Schema.Struct({ function: Schema.String, file: Schema.String, line: Schema.Finite })),
  /** What the function was given when it failed. */
  input: Schema.optionalKey(Schema.String),
})

export type Diagnosis = (typeof Diagnosis)["Type"]

/** What a fixer did. */
export const Fix = Schema.Struct({ summary: Schema.String, files: Schema.Array(Schema.String) })

export type Fix = (typeof Fix)["Type"]

/** What the maintainer reports. */
export const Report = Schema.Struct({
  summary: Schema.String,
  cause: Schema.String,
  files: Schema.Array(Schema.String),
})

export type Report = (typeof Report)["Type"]

/** A command as a list of words. */
export interface Vector {
  readonly command: string
  readonly args: ReadonlyArray<string>
}

/** Where they work, and how it is told whether the work is done. */
export interface TeamOptions {
  readonly root: string
  readonly baseline: Check.Baseline
  /** How the tests are run. */
  readonly test: Vector
  readonly env: Readonly<Record<string, string>>
}

/** What decides about the tests: nobody may change it. */
export const protectedGlobs = ["**/{test,tests,__tests__}", "**/*.{test,spec}.*", "**/package.json"]

/** What tests leave behind; it is nobody's change. */
export const leftBehind = ["**/coverage", "**/.nyc_output", "**/.cache", "**/*.log"]

/** **Units**: how long the tests may take. */
export const testTime = "2 minutes" as const

/** Running the tests may be repeated, and leaves no change that counts. */
const running = Command.toolkitWith({
  effect: "write",
  idempotency: "natural",
  stateChanged: () => false,
  timeout: "3 minutes",
})

/** The tools of all of them. */
export const toolkit = Toolkit.merge(Files.toolkit, running)

const lookingOnly = Toolkit.merge(Files.readOnly, running)

const instructions = {
  maintainer:
    "The tests of a project fail. Ask the investigator for the cause, then give the fixer a task that says all it needs: " +
    "the tests that fail, the function and its file, what it is given, the cause. Your report says what was wrong and " +
    "what was changed.",
  investigator:
    "Find out why the tests fail. Run them, read the test that fails, search the function it is about, read that. " +
    "Change nothing. Name the function, its file and line, what it was given, and the cause.",
  fixer:
    "Make the tests pass with the smallest change of the sources. Read the file first, change it with patch_file, and run " +
    "the tests again. Tests and package.json are not to be changed.",
}

/** The team whose decisions are plain functions: no model, no key. */
export const plainTeam = (options: TeamOptions) =>
  teamOf(options, {
    maintainer: Plain.maintainer,
    investigator: Plain.investigator(options.test),
    fixer: Plain.fixer(options.test),
  })

/** The same team, decided by the current language model. */
export const modelTeam = (options: TeamOptions) => {
  const policy = Policy.model({ maxOutputTokens: 4096 })
  return teamOf(options, { maintainer: policy, investigator: policy, fixer: policy })
}

const teamOf = <R>(
  options: TeamOptions,
  policies: { readonly [Name in "maintainer" | "investigator" | "fixer"]: Policy.Policy<R> },
) => {
  const verify = isRepaired(options)
  const howToTest = `The tests are run with run_command: ${JSON.stringify(options.test)}. Nothing else may be run.`
  const investigator = Agent.make("investigator", {
    instructions: `${instructions.investigator} ${howToTest}`,
    policy: policies.investigator,
    toolkit: lookingOnly,
    answer: Diagnosis,
  })
  const fixer = Agent.make("fixer", {
    instructions: `${instructions.fixer} ${howToTest}`,
    policy: policies.fixer,
    toolkit,
    answer: Fix,
    verify,
  })
  return Agent.make("maintainer", {
    instructions: instructions.maintainer,
    policy: policies.maintainer,
    children: [
      Agent.asTool(investigator, {
        description: "Finds out why tests fail; reads and runs the tests, changes nothing.",
        share: 0.4,
        atLeast: { steps: 2, toolCalls: 1 },
      }),
      Agent.asTool(fixer, {
        description: "Changes sources until the tests pass.",
        share: 0.7,
        atLeast: { steps: 3, toolCalls: 2 },
      }),
    ],
    answer: Report,
    verify,
  })
}

/** The cheap rule first: where a test was changed, running it proves nothing. */
const isRepaired = ({ root, baseline, test, env }: TeamOptions): Verifier.Verifier<unknown> =>
  Verifier.all(
    Check.files({ root, baseline, protectedGlobs }),
    Check.command({ ...test, cwd: root, env, timeout: testTime, ignore: leftBehind }),
  )
