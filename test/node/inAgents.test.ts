/**
 * The given tools in the hands of agents: what the host makes of them.
 */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Toolkit from "effect/ai/Toolkit"
import { Agent, Audit, type Event, Journal, type Policy, Proposal, Replay, Verifier } from "../../src/index.ts"
import { Check, Command, FileJournal, Files } from "../../src/node/index.ts"
import * as Group from "../../src/node/internal/group.ts"
import { all, broken, results, unbalanced } from "../support/journalled.ts"
import { calls, plays } from "../support/scripts.ts"
import { until } from "./support.ts"

const folder = (files: Readonly<Record<string, string>> = {}) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const root = fs.mkdtempSync(join(tmpdir(), "bursar-agents-"))
      for (const [name, text] of Object.entries(files)) fs.writeFileSync(join(root, name), text)
      return root
    }),
    (root) => Effect.sync(() => fs.rmSync(root, { recursive: true, force: true })),
  )

const budget = { steps: 30, toolCalls: 30 }

const lawful = (outcome: Agent.Outcome<string>, events: ReadonlyArray<Event.Recorded>) =>
  assert.deepStrictEqual([...broken(events), ...unbalanced(outcome.report.accounts)], [])

/** Whether no process runs any more of the group that wrote down its number. */
const isGone = (root: string): boolean => !Group.isAlive(Number(fs.readFileSync(join(root, "group"), "utf8")))

/** Takes five seconds, with a child of its own that ignores being asked to end. */
const slow = {
  tool: "run_command",
  params: { command: "sh", args: ["-c", "echo $$ > group; (trap '' TERM; sleep 5) & sleep 5; echo late > late"] },
}

const hasWritten = (file: string) => until(() => fs.existsSync(file) && fs.readFileSync(file, "utf8").trim() !== "")

describe("a command of five seconds", () => {
  const toolkit = Command.toolkitWith({ timeout: "200 millis", whenUncertain: "tell" })
  const patient = Command.toolkitWith({ timeout: "1 minute" })
  const handlers = (root: string) => Command.layer({ root, allow: ["sh"], grace: "50 millis" })

  it.live("under a limit of 0.2 seconds is ETIMEDOUT, its process group is gone, and nothing comes of it later", () =>
    Effect.gen(function* () {
      const root = yield* folder()
      const events: Array<Event.Recorded> = []
      const agent = Agent.make("a", { policy: plays(calls(slow), Proposal.finish("done")), toolkit })
      const outcome = yield* Agent.run(agent, "go", { budget }).pipe(
        Effect.provide(handlers(root)),
        Effect.provideService(Journal.Journal, Journal.toArray(events)),
      )
      assert.deepStrictEqual([outcome._tag, results(events), isGone(root)], ["Completed", ["ETIMEDOUT"], true])
      assert.isFalse(fs.existsSync(join(root, "late")))
      lawful(outcome, events)
    }).pipe(Effect.scoped),
  )

  it.live("that the user cancels ends the run as cancelled, and its process group is gone", () =>
    Effect.gen(function* () {
      const root = yield* folder()
      const events: Array<Event.Recorded> = []
      const agent = Agent.make("a", { policy: plays(calls(slow)), toolkit: patient })
      const outcome = yield* Effect.gen(function* () {
        const handle = yield* Agent.spawn(agent, "go", { budget })
        yield* hasWritten(join(root, "group"))
        return yield* handle.cancel
      }).pipe(Effect.provide(handlers(root)), Effect.provideService(Journal.Journal, Journal.toArray(events)))
      assert.strictEqual(outcome._tag === "Stopped" && outcome.reason, "cancelled")
      assert.deepStrictEqual([results(events), isGone(root)], [["ECANCELLED"], true])
      lawful(outcome, events)
    }).pipe(Effect.scoped),
  )
})

const reading = (path: string) => ({ tool: "read_file", params: { path } })
const patching = (old: string, text: string) => ({
  tool: "patch_file",
  params: { path: "sum.mjs", edits: [{ old, new: text }] },
})
describe("files below a root", () => {
  it.live("are all there is: what leads out is EPERM, and the run goes on", () =>
    Effect.gen(function* () {
      const outside = yield* folder({ "secret.txt": "secret" })
      const root = yield* folder({ "a.txt": "here" })
      fs.symlinkSync(join(outside, "secret.txt"), join(root, "link.txt"))
      const events: Array<Event.Recorded> = []
      const each = ["../secret.txt", join(outside, "secret.txt"), "link.txt", "a.txt"].map(reading)
      const agent = Agent.make("a", { policy: plays(calls(...each), Proposal.finish("done")), toolkit: Files.toolkit })
      const outcome = yield* Agent.run(agent, "go", { budget }).pipe(
        Effect.provide(Files.layer({ root })),
        Effect.provideService(Journal.Journal, Journal.toArray(events)),
      )
      assert.deepStrictEqual([outcome._tag, results(events)], ["Completed", ["EPERM", "EPERM", "EPERM", "ok"]])
      assert.notInclude(JSON.stringify(events), "secret\\n")
    }).pipe(Effect.scoped),
  )
})

const broke = "export const sum = (a, b) => a - b\n"
const test = `import { test } from "node:test"
import assert from "node:assert"
import { sum } from "./sum.mjs"
test("adds", () => assert.strictEqual(sum(1, 2), 3))
`

const looking = Command.toolkitWith({ effect: "read", timeout: "1 minute" })
const testing = { tool: "run_command", params: { command: process.execPath, args: ["--test", "sum.test.mjs"] } }

/** Mends a sum with the given tools, and keeps its journal on disk. */
const mended = (policy: Policy.Policy, journals: string) =>
  Effect.gen(function* () {
    const root = yield* folder({ "sum.mjs": broke, "sum.test.mjs": test })
    const baseline = yield* Check.baseline(root)
    const agent = Agent.make("mender", {
      policy,
      toolkit: Toolkit.merge(Files.toolkit, looking),
      verify: Verifier.all(
        Check.files({ root, baseline, protectedGlobs: ["*.test.mjs"] }),
        Check.command({ command: process.execPath, args: ["--test", "sum.test.mjs"], cwd: root }),
      ),
    })
    const outcome = yield* Agent.run(agent, "Mend the sum", { budget, runId: "mend" }).pipe(
      Effect.provide([Files.layer({ root }), Command.layer({ root, allow: [process.execPath] })]),
      Effect.provide(FileJournal.layer({ directory: journals })),
    )
    return { outcome, text: fs.readFileSync(join(root, "sum.mjs"), "utf8") }
  })

describe("mending a project", () => {
  it.live("reads, tests, patches and tests: four calls, one change, accepted; and its journal can be audited", () =>
    Effect.gen(function* () {
      const journals = yield* folder()
      const policy = plays(
        calls(reading("sum.mjs")),
        calls(testing),
        calls(patching("a - b", "a + b")),
        calls(testing),
        Proposal.finish("mended"),
      )
      const { outcome } = yield* mended(policy, journals)
      assert.strictEqual(outcome._tag, "Completed")
      const events = yield* FileJournal.read({ directory: journals, run: "mend" })
      const ended = all(events, "CallEnded")
      const exitCodes = ended
        .filter((one) => one.tool === "run_command")
        .map((one) => (JSON.parse(one.result!.text!) as { readonly exitCode: number }).exitCode)
      assert.deepStrictEqual([ended.length, exitCodes], [4, [1, 0]])
      assert.strictEqual(ended.filter((one) => one.stateChanged).length, 1)
      const audit = Audit.audit(events)
      assert.deepStrictEqual(
        [audit.counts.calls, audit.counts.results, Audit.defects(audit)],
        [4, { ok: 4, error: 0 }, []],
      )
      const [agent] = Replay.replay(events).agents
      assert.deepStrictEqual([agent?.equal, agent?.digest], [true, all(events, "AgentEnded")[0]!.stateDigest])
      // A line less: the result of the call has nobody any more who asked for it.
      const patched = events.findIndex(
        ({ event }) => event._tag === "Decided" && event.calls?.[0]?.tool === "patch_file",
      )
      const damaged = Audit.audit(events.toSpliced(patched, 1))
      assert.isAbove(damaged.orphanResults.length, 0)
      assert.isFalse(damaged.isSound)
    }).pipe(Effect.scoped),
  )
})

describe("a patch that does not fit", () => {
  it.live("is told so, the file is read again, and a new patch is made; the test process itself accepts it", () =>
    Effect.gen(function* () {
      const journals = yield* folder()
      const policy = plays(
        calls(patching("a * b", "a + b")),
        calls(reading("sum.mjs")),
        Proposal.finish("done already"),
        calls(patching("a - b", "a + b")),
        Proposal.finish("mended"),
      )
      const { outcome, text } = yield* mended(policy, journals)
      assert.strictEqual(outcome._tag === "Completed" && outcome.answer, "mended")
      assert.deepStrictEqual(outcome._tag === "Completed" && outcome.rules.map((rule) => [rule.name, rule.passed]), [
        ["protected_files_unchanged", true],
        ["tests_passed", true],
      ])
      assert.strictEqual(text, "export const sum = (a, b) => a + b\n")
      const events = yield* FileJournal.read({ directory: journals, run: "mend" })
      assert.deepStrictEqual(results(events), ["ECONFLICT", "ok", "ok"])
      assert.deepStrictEqual(
        all(events, "Verified").map((one) => one.accepted),
        [false, true],
      )
      assert.strictEqual(all(events, "CallEnded").filter((one) => one.stateChanged).length, 1)
      assert.isTrue(Audit.audit(events).isSound)
      assert.isTrue(Replay.replay(events).equal)
    }).pipe(Effect.scoped),
  )
})

describe("a journal on disk", () => {
  it.live.skipIf(spawnSync("jq", ["--version"]).status !== 0)("answers questions with jq alone", () =>
    Effect.gen(function* () {
      const journals = yield* folder()
      const policy = plays(calls(patching("a * b", "a + b")), calls(reading("sum.mjs")), calls(reading("nothing.mjs")))
      yield* mended(policy, journals)
      const jq = (filter: string): string => {
        const { stdout, stderr } = spawnSync("jq", ["-r", filter, join(journals, "mend.jsonl")], { encoding: "utf8" })
        assert.strictEqual(stderr, "")
        return stdout.trim()
      }
      assert.strictEqual(
        jq('[., inputs] | map(select(._tag == "CallEnded")) | group_by(.tool)[] | "\\(.[0].tool) \\(length)"'),
        "patch_file 1\nread_file 6",
      )
      assert.strictEqual(
        jq('select(._tag == "CallEnded" and .outcome == "error") | "\\(.step) \\(.tool) \\(.code)"').split("\n")[0],
        "1 patch_file ECONFLICT",
      )
      assert.strictEqual(jq('select(._tag == "Stopping") | "\\(.reason) in step \\(.step)"'), "no_progress in step 7")
      assert.match(jq('select(._tag == "Closed") | "\\(.own.steps) of \\(.granted.steps)"'), /^7 of 30$/)
    }).pipe(Effect.scoped),
  )
})
