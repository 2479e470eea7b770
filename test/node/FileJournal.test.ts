import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { spawn } from "node:child_process"
import { once } from "node:events"
import * as Effect from "effect/Effect"
import { Agent, type Event, Journal, Proposal } from "../../src/index.ts"
import { FileJournal } from "../../src/node/index.ts"
import { broken, unbalanced } from "../support/journalled.ts"
import { calls, handled, plays, read, toolkit, write } from "../support/scripts.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => fs.mkdtempSync(join(tmpdir(), "bursar-journal-"))),
  (path) => Effect.sync(() => fs.rmSync(path, { recursive: true, force: true })),
)

const agent = Agent.make("a", {
  policy: plays(calls(read("one"), write("two")), calls(read("three")), Proposal.finish("done")),
  toolkit,
})

const run = (directory: string, options: Partial<FileJournal.Options> = {}, runId = "run") =>
  Agent.run(agent, "the task", { budget: { steps: 20, toolCalls: 20 }, runId }).pipe(
    Effect.provide([handled(), FileJournal.layer({ directory, ...options })]),
  )

const resume = (directory: string, runId = "run") =>
  Agent.resume(agent, { run: runId }).pipe(Effect.provide([handled(), FileJournal.layer({ directory })]))

/** Leaves a run as a process leaves it that dies after so many lines. */
const cutAfter = (directory: string, lines: number, torn = ""): ReadonlyArray<string> => {
  const log = join(directory, "run.jsonl")
  const all = fs.readFileSync(log, "utf8").trimEnd().split("\n")
  fs.writeFileSync(log, `${all.slice(0, lines).join("\n")}\n${torn}`)
  return all
}

describe("a journal on disk", () => {
  it.live("is read back as it was written, with its texts", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const heard: Array<Event.Recorded> = []
      const journal = Journal.tap(FileJournal.make({ directory }), (event) => heard.push(event))
      yield* Agent.run(agent, "the task", { budget: { steps: 20, toolCalls: 20 }, runId: "run" }).pipe(
        Effect.provide(handled()),
        Effect.provideService(Journal.Journal, journal),
      )
      const events = yield* FileJournal.read({ directory, run: "run" })
      assert.isAbove(events.length, 20)
      assert.deepStrictEqual(
        events.map(({ event, seq }) => ({ event, seq })),
        heard.map(({ event, seq }) => ({ event, seq })),
      )
      assert.deepStrictEqual(yield* FileJournal.runs(directory), ["run"])
      assert.deepStrictEqual(fs.readdirSync(directory).toSorted(), ["run.content.jsonl", "run.jsonl"])
    }).pipe(Effect.scoped),
  )

  it.live("takes no second run of the same name", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      yield* run(directory)
      const before = fs.readFileSync(join(directory, "run.jsonl"), "utf8")
      const refused = yield* Effect.flip(run(directory))
      assert.deepInclude(refused, { _tag: "JournalError", reason: "there is a run of that name already" })
      assert.strictEqual(fs.readFileSync(join(directory, "run.jsonl"), "utf8"), before)
      // The lock went with the run, and the refusal took none.
      assert.isFalse(fs.existsSync(join(directory, "run.lock")))
    }).pipe(Effect.scoped),
  )

  it.live("goes on after a crash where it was; a line that was cut off in the middle is taken away", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      yield* run(directory)
      const all = fs.readFileSync(join(directory, "run.jsonl"), "utf8").trimEnd().split("\n")
      for (let lines = 2; lines < all.length; lines++) {
        fs.writeFileSync(join(directory, "run.jsonl"), `${all.slice(0, lines).join("\n")}\n${all[lines]!.slice(0, 20)}`)
        const outcome = yield* resume(directory)
        assert.strictEqual(outcome._tag, "Completed", `after line ${lines}`)
        const events = yield* FileJournal.read({ directory, run: "run" })
        assert.deepStrictEqual([...broken(events), ...unbalanced(outcome.report.accounts)], [], `after line ${lines}`)
      }
    }).pipe(Effect.scoped),
  )

  it.live("with dropped content is read without texts, and does not go on", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      yield* run(directory, { content: "drop" })
      cutAfter(directory, 12)
      const refused = yield* Effect.flip(resume(directory))
      assert.deepInclude(refused, { _tag: "ResumeError", reason: "content_dropped" })
      const events = yield* FileJournal.read({ directory, run: "run" })
      assert.strictEqual(events.length, 12)
    }).pipe(Effect.scoped),
  )

  it.live("says what is wrong with a line, and with a run that is not there", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      yield* run(directory)
      const log = join(directory, "run.jsonl")
      fs.writeFileSync(log, fs.readFileSync(log, "utf8").replace('"_tag":"Decided"', '"_tag":"Dreamt"'))
      const unreadable = yield* Effect.flip(FileJournal.read({ directory, run: "run" }))
      assert.match(unreadable.message, /line \d+: it is no event that this version knows \(Dreamt\)/)
      const missing = yield* Effect.flip(resume(directory, "other"))
      assert.match(missing.message, /there is no such run\): name a run whose log is in that folder/)
    }).pipe(Effect.scoped),
  )
})

describe("the lock of a run", () => {
  const lockOf = (directory: string) => join(directory, "run.lock")

  it.live("keeps others out while a process writes, and counts for nothing once that process is gone", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      yield* run(directory)
      cutAfter(directory, 12)
      const owner = spawn(process.execPath, [
        "-e",
        `
          require("node:fs").writeFileSync(${JSON.stringify(lockOf(directory))},
            process.pid + " " + require("node:fs").readFileSync("/proc/self/stat", "utf8").split(") ").at(-1).split(" ")[19])
          console.log("locked")
          setInterval(() => {}, 1000)
        `,
      ])
      yield* Effect.promise(() => once(owner.stdout, "data"))
      const refused = yield* Effect.flip(resume(directory))
      assert.deepInclude(refused, { _tag: "JournalError", reason: `the process ${owner.pid} is writing it` })
      assert.isTrue(fs.existsSync(lockOf(directory)))
      owner.kill("SIGKILL")
      yield* Effect.promise(() => once(owner, "close"))
      assert.strictEqual((yield* resume(directory))._tag, "Completed")
      assert.isFalse(fs.existsSync(lockOf(directory)))
    }).pipe(Effect.scoped),
  )

  it.live("is not that of another process that got the same number", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      yield* run(directory)
      cutAfter(directory, 12)
      fs.writeFileSync(lockOf(directory), `${process.pid} 1\n`)
      assert.strictEqual((yield* resume(directory))._tag, "Completed")
    }).pipe(Effect.scoped),
  )

  it.live("lets one of many in", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      yield* run(directory)
      cutAfter(directory, 12)
      const exits = yield* Effect.all(
        Array.from({ length: 8 }, () => Effect.result(resume(directory))),
        { concurrency: "unbounded" },
      )
      const completed = exits.filter((one) => one._tag === "Success")
      assert.strictEqual(completed.length, 1)
      assert.deepStrictEqual(broken(yield* FileJournal.read({ directory, run: "run" })), [])
    }).pipe(Effect.scoped),
  )
})
