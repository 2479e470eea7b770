/**
 * Verifiers that look at the world: whether a command succeeds, and what has become of the files of a folder. They see
 * what is there, whatever an agent says about it.
 *
 * {@link baseline} remembers what the files were; {@link files} and {@link command} are verifiers; {@link diff} and
 * {@link since} are for reports. Comparing texts needs the package `diff`, which is loaded when there is something to
 * compare.
 */
import * as Effect from "effect/Effect"
import * as Content from "../event/Content.ts"
import type { Evidence, Rule } from "../event/Event.ts"
import * as Verifier from "../verify/Verifier.ts"
import { type Command, type Ended, run } from "./Command.ts"
import {
  type Baseline,
  changesOf,
  type CheckError,
  type Compared,
  fewLines,
  filesOf,
  mostLines,
  summed,
  worldOf,
} from "./internal/baseline.ts"
import * as Changes from "./internal/changes.ts"
import { covers } from "./internal/glob.ts"
import { tailOf } from "./internal/text.ts"

export { Baseline, baseline, CheckError, type Compared, diff, type Since, since } from "./internal/baseline.ts"

// --- files

/**
 * What may and must have become of the files of a folder.
 *
 * @category verifiers
 * @since 0.1.0
 */
export interface FilesOptions extends Compared {
  /** Globs of what has to be as it was; a folder stands for everything in it. Rule `protected_files_unchanged`. */
  readonly protectedGlobs?: ReadonlyArray<string>
  /** How many lines may have been removed and added together. Rule `at_most_changed_lines`. */
  readonly maxChangedLines?: number
  /** Globs, each of a file that has to be different. Rule `required_files_changed`. */
  readonly mustChange?: ReadonlyArray<string>
}

/**
 * Accepts an answer if the files of a folder have become what they may. Its evidence is `changedFiles` and `changedLines`;
 * see {@link Since} for how they are counted. It needs the package `diff`.
 *
 * **Example** (Tests are not to be touched)
 *
 * ```ts
 * import { Check } from "bursar/node"
 * import * as Effect from "effect/Effect"
 *
 * const program = Effect.gen(function* () {
 *   const baseline = yield* Check.baseline("test/node")
 *   return Check.files({ root: "test/node", baseline, protectedGlobs: ["**\/*.test.ts"], maxChangedLines: 50 })
 * })
 * const verifier = await Effect.runPromise(program)
 * verifier.name // => "files"
 * ```
 *
 * @category verifiers
 * @since 0.1.0
 */
export const files = (options: FilesOptions): Verifier.Verifier<unknown> =>
  Verifier.make<unknown, CheckError>(
    "files",
    () =>
      Effect.gen(function* () {
        const changes = yield* changesOf(options)
        const most = Math.min(mostLines, Math.max(fewLines, options.maxChangedLines ?? 0))
        const { changedFiles, changedLines } = yield* summed(changes, most)
        const rules = [
          ...protectedRule(changes, options.protectedGlobs),
          ...linesRule(changedLines, options.maxChangedLines),
          ...requiredRule(changedFiles, options.mustChange),
        ]
        return { rules, evidence: [{ changedFiles, changedLines }] }
      }),
    { world: () => worldOf(options.root, options.baseline.ignore) },
  )

const unchangedRule = "protected_files_unchanged"

const protectedRule = (
  changes: ReadonlyArray<Changes.Change>,
  globs: ReadonlyArray<string> | undefined,
): ReadonlyArray<Rule> => {
  if (globs === undefined) return []
  const isProtected = covers(globs)
  const breaches = changes.filter((change) => isProtected(change.path))
  return [{ name: unchangedRule, passed: breaches.length === 0, detail: Changes.inWords(breaches) }]
}

const linesRule = (lines: number, most: number | undefined): ReadonlyArray<Rule> => {
  if (most === undefined) return []
  const detail = `${lines} lines were changed, at most ${most} may be`
  return [{ name: "at_most_changed_lines", passed: lines <= most, detail }]
}

const requiredRule = (
  changed: ReadonlyArray<string>,
  globs: ReadonlyArray<string> | undefined,
): ReadonlyArray<Rule> => {
  if (globs === undefined) return []
  const missing = globs.filter((glob) => !changed.some(covers([glob])))
  const detail = missing.length === 0 ? "" : `nothing was changed in ${missing.join(", ")}`
  return [{ name: "required_files_changed", passed: missing.length === 0, detail }]
}

// --- commands

/**
 * A command that has to succeed.
 *
 * **Units**: as for `Command.run`; `timeout` is 10 minutes unless given.
 *
 * @category verifiers
 * @since 0.1.0
 */
export interface CommandOptions extends Command {
  /** The name of the rule: `tests_passed` unless given. */
  readonly rule?: string
  /** Globs of files that the command itself writes, such as reports; `.git` and `node_modules` are left out anyhow. */
  readonly ignore?: ReadonlyArray<string>
  /** The command is only run if these files are what they were: a test that was rewritten proves nothing. */
  readonly protect?: { readonly baseline: Baseline; readonly globs: ReadonlyArray<string> }
}

/**
 * Accepts an answer if a command, run for real in the folder `cwd`, ends with exit code 0. Its evidence is `command`,
 * `exitCode` (or `signal`), `timedOut`, `durationMillis`, `output` (the end of it) and `wrote`: files that the command
 * itself has changed. What it changes each time has to be ignored, or the answer is never accepted, since the world moves
 * while it is checked.
 *
 * **Example** (The tests pass)
 *
 * ```ts
 * import { Verifier } from "bursar"
 * import { Check } from "bursar/node"
 *
 * const passed = Check.command({ command: "npm", args: ["test"], cwd: ".", timeout: "2 minutes" })
 * const linted = Check.command({ rule: "lint_passed", command: "npm", args: ["run", "lint"], cwd: "." })
 * Verifier.all(linted, passed).name // => "all(lint_passed, tests_passed)"
 * ```
 *
 * @category verifiers
 * @since 0.1.0
 */
export const command = (options: CommandOptions): Verifier.Verifier<unknown> => {
  const { ignore = [], protect, rule = "tests_passed", ...how } = options
  return Verifier.make(
    rule,
    () =>
      Effect.gen(function* () {
        const before = protect === undefined ? [] : yield* changesOf({ root: how.cwd, baseline: protect.baseline })
        const guarded = protectedRule(before, protect?.globs)
        if (guarded.some((one) => !one.passed)) {
          const detail = `it was not run: ${unchangedRule} does not hold`
          return { rules: [...guarded, { name: rule, passed: false, detail }], evidence: [] }
        }
        const old = yield* filesOf(how.cwd, ignore, () => false)
        const ended = yield* run({ timeout: "10 minutes", ...how })
        const wrote = Changes.between(old, yield* filesOf(how.cwd, ignore, () => false))
        return {
          rules: [...guarded, { name: rule, passed: ended.exitCode === 0, detail: detailOf(ended, wrote) }],
          evidence: [evidenceOf(how, ended, wrote)],
        }
      }),
    { world: () => worldOf(how.cwd, ignore) },
  )
}

/** **Units**: bytes of output that a person finds as evidence, and that the model sees of a failure. */
const evidenceBytes = 16 * 1024
const detailBytes = 4 * 1024

const outputOf = ({ stderr, stdout }: Ended, maxBytes: number): string => {
  const both = [stdout, stderr].filter((one) => one !== "").join("\n")
  return tailOf(Buffer.from(both), maxBytes).toString()
}

const detailOf = (ended: Ended, wrote: ReadonlyArray<Changes.Change>): string => {
  if (ended.exitCode === 0) return wrote.length === 0 ? "" : `it has itself ${Changes.inWords(wrote)}`
  const how = ended.timedOut ? "its time was over" : `exit code ${ended.exitCode ?? ended.signal}`
  return `${how}\n${outputOf(ended, detailBytes)}`.trimEnd()
}

const evidenceOf = (how: Command, ended: Ended, wrote: ReadonlyArray<Changes.Change>): Evidence => ({
  command: [how.command, ...(how.args ?? [])].join(" "),
  ...(ended.exitCode === null ? { signal: ended.signal ?? "" } : { exitCode: ended.exitCode }),
  timedOut: ended.timedOut,
  durationMillis: ended.durationMillis,
  output: Content.fromText(outputOf(ended, evidenceBytes)),
  wrote: wrote.map((change) => change.path),
})
