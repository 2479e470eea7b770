import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import { join, resolve } from "node:path"
import * as Effect from "effect/Effect"
import { Budget } from "../../src/index.ts"
import { TestingServer } from "../../src/testing/index.ts"
import { contents } from "../node/support.ts"
import * as Job from "./Job.ts"
import { cheating, honest } from "./RepairModel.ts"

interface Printed {
  readonly reason: string
  readonly run: string
  readonly root: string
  readonly report: { readonly summary: string; readonly cause: string; readonly files: ReadonlyArray<string> }
  readonly tests: { readonly command: ReadonlyArray<string>; readonly before: number; readonly after: number }
  readonly rules: ReadonlyArray<{ readonly name: string; readonly passed: boolean }>
  readonly changedFiles: ReadonlyArray<string>
  readonly diff: string
  readonly agents: ReadonlyArray<{ readonly agent: string; readonly reason: string }>
  readonly accounts: ReadonlyArray<Budget.Row>
  readonly journal: string
}

const parse = (stdout: string): Printed => JSON.parse(stdout) as Printed

const project = resolve("examples/repair/project")

/** Started as `npm run example -- repair` does. */
const run = (cwd: string, args: ReadonlyArray<string>, env?: Readonly<Record<string, string>>) =>
  Job.run(cwd, ["repair", ...args], env, "run")

const start = (cwd: string, args: ReadonlyArray<string>, env?: Readonly<Record<string, string>>) =>
  Job.start(cwd, ["repair", ...args], env, "run")

const own = (rows: ReadonlyArray<Budget.Row>, dimension: Budget.Dimension): number =>
  rows.reduce((sum, row) => sum + row.own[dimension], 0)

const changesIn = (cwd: string) => Job.journalIn(cwd).filter((event) => event["stateChanged"] === true)

/** What has to be true of a repaired copy, whoever decided. */
const isRepaired = (printed: Printed, before: Record<string, string>): void => {
  assert.strictEqual(printed.reason, "completed")
  assert.deepStrictEqual(printed.changedFiles, ["src/price.js"])
  assert.deepStrictEqual([printed.tests.before, printed.tests.after], [1, 0])
  assert.deepStrictEqual(
    printed.rules.map(({ name, passed }) => [name, passed]),
    [
      ["protected_files_unchanged", true],
      ["tests_passed", true],
    ],
  )
  assert.include(printed.diff, "--- a/src/price.js\n+++ b/src/price.js\n")
  assert.include(printed.diff, '\n+  const match = written.exec(text.normalize("NFKC").trim())\n')
  const after = contents(printed.root)
  assert.deepStrictEqual({ ...after, "src/price.js": "" }, { ...before, "src/price.js": "" })
  assert.deepStrictEqual(contents(project), before)
  assert.deepStrictEqual(Budget.imbalances(printed.accounts), [])
}

describe("the repair job, decided by plain functions", () => {
  it.live("repairs a copy of the project with one change, and says what it did", () =>
    Effect.gen(function* () {
      const [cwd, before] = [yield* Job.folder, contents(project)]
      const { code, stdout } = yield* run(cwd, ["--json"])
      const printed = parse(stdout)
      assert.strictEqual(code, 0, stdout)
      isRepaired(printed, before)
      assert.strictEqual(changesIn(cwd).length, 1)
      assert.strictEqual(printed.root, join(fs.realpathSync(cwd), ".bursar/repair", printed.run))
      assert.match(printed.report.cause, /"￥19.90" is full-width; in ordinary characters it is "¥19.90"/)
      assert.deepStrictEqual(
        printed.agents.map(({ agent }) => agent),
        ["maintainer", "maintainer/investigator-1", "maintainer/fixer-1"],
      )
    }).pipe(Effect.scoped),
  )

  it.live("prints events, outcome, diff, exit codes, rules, books, and where to look", () =>
    Effect.gen(function* () {
      const cwd = yield* Job.folder
      const { code, stdout } = yield* run(cwd, [])
      assert.strictEqual(code, 0, stdout)
      const inOrder = [
        "maintainer starts: Repair the project",
        "maintainer/investigator-1 sees the tests end with exit code 1",
        "maintainer/fixer-1 sees the tests end with exit code 1",
        "maintainer/fixer-1 has changed src/price.js",
        "maintainer/fixer-1 sees the tests end with exit code 0",
        "maintainer: checked, protected_files_unchanged and tests_passed",
        "Outcome: completed",
        "+++ b/src/price.js",
        "Tests (node --test): exit code 1 before, 0 after",
        "Rule tests_passed: passed",
        "own use of all 13 + left 47 = granted 60",
        "npm run bursar -- audit repair-",
      ]
      const places = inOrder.map((text) => stdout.indexOf(text))
      assert.deepStrictEqual(
        places,
        places.toSorted((a, b) => a - b),
        stdout,
      )
      assert.isAtLeast(places[0]!, 0)
    }).pipe(Effect.scoped),
  )

  it.live("stops at too few steps with nothing broken, and says so", () =>
    Effect.gen(function* () {
      const cwd = yield* Job.folder
      const { code, stdout } = yield* run(cwd, ["--steps", "12", "--json"])
      const printed = parse(stdout)
      assert.strictEqual(code, 3, stdout)
      assert.notStrictEqual(printed.reason, "completed")
      assert.isAtMost(own(printed.accounts, "steps"), 12)
      assert.deepStrictEqual(Budget.imbalances(printed.accounts), [])
      assert.deepStrictEqual(contents(printed.root)["test/price.test.js"], contents(project)["test/price.test.js"])
    }).pipe(Effect.scoped),
  )

  it.live("Ctrl-C cancels it; a run that was cancelled has ended and is not resumed", () =>
    Effect.gen(function* () {
      const cwd = yield* Job.folder
      const job = yield* start(cwd, [])
      yield* Effect.promise(() => job.printed("calls run_command"))
      job.process.kill("SIGINT")
      const { code, stdout } = yield* Effect.promise(() => job.ended)
      assert.strictEqual(code, 130, stdout)
      assert.include(stdout, "maintainer ends: cancelled")
      assert.include(stdout, "Outcome: cancelled")
      const ended = Job.journalIn(cwd).at(-1)
      assert.deepStrictEqual([ended?.["_tag"], ended?.["reason"]], ["RunEnded", "cancelled"])
      const again = yield* run(cwd, ["--resume", String(ended?.["run"])])
      assert.strictEqual(again.code, 2)
      assert.match(again.stderr, /^the run repair-\S+ cannot go on \(ended\): start a new run$/m)
    }).pipe(Effect.scoped),
  )
})

describe("options that cannot be used", () => {
  const wrong: ReadonlyArray<readonly [args: ReadonlyArray<string>, sentence: RegExp]> = [
    [["--steps", "abc"], /--steps is "abc": give a whole number/],
    [["--steps", "0"], /steps: maintainer would get 0 but needs at least 1/],
    [["--tool-calls", "-1"], /--tool-calls is "-1": give a whole number/],
    [["--money", "0.50"], /--money is "0.50": give US dollars/],
    [["--wall-clock", "soon"], /--wall-clock is "soon": give a time/],
    [["--price", "cheap"], /--price is "cheap": give US dollars per million/],
    [["--project", "."], /--project is "\.": plain functions know the built-in project alone: set OPENAI_API_KEY/],
    [["--test", "npm test"], /--test is "npm test": plain functions know/],
    [["--in-place"], /--in-place: the built-in project stays as it is/],
    [["--resume", "nobody"], /--resume is "nobody": name a run of this example in \.bursar\/runs/],
    [["--resume", "../x"], /--resume is "\.\.\/x": name a run/],
    [["--resume", "x", "--steps", "3"], /--steps: leave it out: a run that is resumed keeps what/],
    [["--unknown"], /--unknown/],
  ]
  for (const [args, sentence] of wrong) {
    it.live(`says so in a sentence: ${args.join(" ")}`, () =>
      Effect.gen(function* () {
        const cwd = yield* Job.folder
        const { code, stdout, stderr } = yield* run(cwd, args)
        assert.strictEqual(code, 2, stdout + stderr)
        assert.match(stdout + stderr, sentence)
        assert.notMatch(stdout + stderr, /\n\s+at .*:\d+:\d+/)
        assert.notMatch(stdout, /maintainer starts/)
        const made = fs.existsSync(join(cwd, ".bursar/repair")) ? fs.readdirSync(join(cwd, ".bursar/repair")) : []
        assert.deepStrictEqual(made, [])
      }).pipe(Effect.scoped),
    )
  }

  const withKey: ReadonlyArray<readonly [args: ReadonlyArray<string>, sentence: RegExp]> = [
    [["--test", "npm test && rm x"], /--test is "npm test && rm x": "&" is for a shell, and there is none/],
    [["--test", "CI=1 npm test"], /"CI=" is for a shell/],
    [["--test", " "], /--test is " ": give a command, such as "npm test"/],
    [["--test", "no-such-program"], /--test is "no-such-program": there is no command no-such-program/],
    [["--test", "node -v"], /--test is "node -v": these tests pass: there is nothing to repair/],
    [["--project", "/nowhere"], /--project is "\/nowhere": there is no such folder/],
    [["--project", ".", "--in-place"], /--in-place: the journal would lie in the project/],
  ]
  for (const [args, sentence] of withKey) {
    it.live(`says so in a sentence, with a key: ${args.join(" ")}`, () =>
      Effect.gen(function* () {
        const cwd = yield* Job.folder
        const { code, stdout, stderr } = yield* run(cwd, args, { OPENAI_API_KEY: "sk-none" })
        assert.strictEqual(code, 2, stdout + stderr)
        assert.match(stdout + stderr, sentence)
        assert.notMatch(stdout, /maintainer starts/)
        const made = fs.existsSync(join(cwd, ".bursar/repair")) ? fs.readdirSync(join(cwd, ".bursar/repair")) : []
        assert.deepStrictEqual(made, [])
      }).pipe(Effect.scoped),
    )
  }
})

const modelEnv = (url: string) => ({ OPENAI_API_KEY: "sk-none", OPENAI_BASE_URL: url, OPENAI_MODEL: "scripted" })

/** A project of one's own, beside the folder that the job is started in. */
const ownProject = Effect.gen(function* () {
  const folder = yield* Job.folder
  fs.cpSync(project, folder, { recursive: true })
  return folder
})

describe("the repair job, decided by a language model over HTTP", () => {
  it.live("repairs the same project with the same tools and checks", () =>
    Effect.gen(function* () {
      const [cwd, before] = [yield* Job.folder, contents(project)]
      const server = yield* TestingServer.make({ script: honest })
      const { code, stdout } = yield* run(cwd, ["--json"], modelEnv(server.url))
      const printed = parse(stdout)
      assert.strictEqual(code, 0, stdout)
      isRepaired(printed, before)
      assert.strictEqual(changesIn(cwd).length, 1)
      assert.strictEqual(printed.report.summary, "Repaired by a model.")
      assert.strictEqual(own(printed.accounts, "steps"), server.ledger.requests)
      assert.strictEqual(own(printed.accounts, "inputTokens"), server.ledger.inputTokens)
    }).pipe(Effect.scoped),
  )

  it.live("refuses a test that was edited to pass, names the rule, and accepts a proper repair", () =>
    Effect.gen(function* () {
      const [cwd, before] = [yield* Job.folder, contents(project)]
      const server = yield* TestingServer.make({ script: cheating })
      const { code, stdout } = yield* run(cwd, ["--json"], modelEnv(server.url))
      assert.strictEqual(code, 0, stdout)
      isRepaired(parse(stdout), before)
      const rejected = Job.journalIn(cwd).filter((event) => event["_tag"] === "Verified" && event["accepted"] === false)
      assert.strictEqual(rejected.length, 1)
      const [rule] = rejected[0]!["rules"] as ReadonlyArray<{ readonly name: string; readonly passed: boolean }>
      assert.deepStrictEqual([rule?.name, rule?.passed], ["protected_files_unchanged", false])
      const told = server.requests.map(({ body }) => JSON.stringify(body))
      assert.isTrue(told.some((text) => text.includes("protected_files_unchanged: changed test/price.test.js")))
    }).pipe(Effect.scoped),
  )

  it.live("repairs a project of one's own in place, with npm", () =>
    Effect.gen(function* () {
      const [cwd, mine] = [yield* Job.folder, yield* ownProject]
      const script = npmOf(honest)
      const server = yield* TestingServer.make({ script })
      const args = ["--project", mine, "--test", "npm test", "--in-place", "--json"]
      const { code, stdout } = yield* run(cwd, args, modelEnv(server.url))
      const printed = parse(stdout)
      assert.strictEqual(code, 0, stdout)
      assert.strictEqual(printed.root, fs.realpathSync(mine))
      assert.deepStrictEqual(printed.tests, { command: ["npm", "test"], before: 1, after: 0 })
      assert.include(fs.readFileSync(join(mine, "src/price.js"), "utf8"), "NFKC")
      assert.isFalse(fs.existsSync(join(cwd, ".bursar/repair")))
    }).pipe(Effect.scoped),
  )

  it.live("a run of a model goes on with a model alone, after its process was killed", () =>
    Effect.gen(function* () {
      const [cwd, before] = [yield* Job.folder, contents(project)]
      let isSlow = true
      const script: TestingServer.Script = (body, n) => {
        const turn = honest(body)
        return turn === undefined || n < 5 || !isSlow ? turn : { ...turn, latencyMs: 20_000 }
      }
      const server = yield* TestingServer.make({ script })
      const job = yield* start(cwd, [], modelEnv(server.url))
      yield* server.until((ledger) => ledger.requests >= 6)
      job.process.kill("SIGKILL")
      yield* Effect.promise(() => job.ended)
      isSlow = false
      const name = String(Job.journalIn(cwd)[0]?.["run"])
      const keyless = yield* run(cwd, ["--resume", name])
      assert.strictEqual(keyless.code, 2)
      assert.include(keyless.stderr, `--resume is "${name}": a language model decides in this run: set OPENAI_API_KEY`)
      const { code, stdout } = yield* run(cwd, ["--resume", name, "--json"], modelEnv(server.url))
      assert.strictEqual(code, 0, stdout)
      const printed = parse(stdout)
      isRepaired(printed, before)
      assert.isAtLeast(own(printed.accounts, "inputTokens"), server.ledger.inputTokens)
      assert.strictEqual(own(printed.accounts, "steps"), server.ledger.requests)
    }).pipe(Effect.scoped),
  )

  it.live("Ctrl-C before the agents start takes everything away again", () =>
    Effect.gen(function* () {
      const [cwd, mine] = [yield* Job.folder, yield* Job.folder]
      const script = 'require("node:fs").writeFileSync("started", ""); setTimeout(() => {}, 60_000)\n'
      fs.writeFileSync(join(mine, "slow.cjs"), script)
      const args = ["--project", mine, "--test", "node slow.cjs"]
      const job = yield* start(cwd, args, { OPENAI_API_KEY: "sk-none" })
      const copies = join(cwd, ".bursar/repair")
      const isStarted = () =>
        fs.existsSync(copies) && fs.readdirSync(copies).some((run) => fs.existsSync(join(copies, run, "started")))
      while (!isStarted()) yield* Effect.sleep("20 millis")
      job.process.kill("SIGINT")
      const { code, stderr } = yield* Effect.promise(() => job.ended)
      assert.strictEqual(code, 130)
      assert.include(stderr, "cancelled before anything was spent")
      assert.deepStrictEqual(fs.readdirSync(copies), [])
      assert.deepStrictEqual(fs.readdirSync(join(cwd, ".bursar/runs")), [])
    }).pipe(Effect.scoped),
  )
})

/** A script that runs the tests with npm. */
const npmOf =
  (script: (body: TestingServer.RequestBody) => TestingServer.Turn | undefined) =>
  (body: TestingServer.RequestBody): TestingServer.Turn | undefined => {
    const turn = script(body)
    if (turn?.calls?.[0]?.name !== "run_command") return turn
    return { ...turn, calls: [{ ...turn.calls[0], arguments: { command: "npm", args: ["test"] } }] }
  }
