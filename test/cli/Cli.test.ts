import { afterAll, assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import type { Recorded } from "../../src/event/Event.ts"
import { Agent, Policy, Proposal } from "../../src/index.ts"
import * as Line from "../../src/journal/Line.ts"
import * as Show from "../../src/journal/Show.ts"
import { FileJournal } from "../../src/node/index.ts"
import { changed, everything, placeOf } from "../journal/Written.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "bursar-cli-"))
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }))

interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs the command in the folder. */
const bursar = (...args: ReadonlyArray<string>): Promise<Ended> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [path.join(root, "src/cli/main.ts"), ...args], {
      cwd: folder,
      env: { ...process.env, NO_COLOR: "1" },
    })
    const [out, error]: [Array<Buffer>, Array<Buffer>] = [[], []]
    child.stdout.on("data", (chunk: Buffer) => out.push(chunk))
    child.stderr.on("data", (chunk: Buffer) => error.push(chunk))
    child.on("error", reject)
    child.on("close", (code) => {
      resolve({ code, stdout: Buffer.concat(out).toString(), stderr: Buffer.concat(error).toString() })
    })
  })

const sound = everything()

/** Writes the two files of a run, as a journal on disk does. */
const keep = (
  directory: string,
  run: string,
  events: ReadonlyArray<Recorded>,
  edit: (lines: ReadonlyArray<string>) => ReadonlyArray<string> = (lines) => lines,
): string => {
  const encoded = events.map((event) => Line.encode({ ...event, run }))
  const contents = encoded.flatMap((one) => one.contents.map((content) => JSON.stringify(content)))
  const file = path.join(folder, directory, `${run}.jsonl`)
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, `${edit(encoded.map(({ line }) => line)).join("\n")}\n`)
  fs.writeFileSync(file.replace(".jsonl", ".content.jsonl"), `${contents.join("\n")}\n`)
  return file
}

const decided = placeOf(sound, "Decided", ({ agent, step }) => agent === "lead" && step === 2)

keep(".bursar/runs", "sound", sound)
keep(".bursar/runs", "open", sound.slice(0, 30))
keep("runs", "removed", sound, (lines) => lines.toSpliced(decided, 1))
keep("runs", "edited", changed<"Settled">(sound, placeOf(sound, "Settled"), { actual: { steps: 1 } }))
keep("runs", "oops", sound, (lines) => lines.with(5, "oops"))
const cut = keep("runs", "cut", sound)
fs.truncateSync(cut, fs.statSync(cut).size - 5)
fs.writeFileSync(path.join(folder, "runs", "foreign.jsonl"), "hello\nworld\n")
fs.writeFileSync(path.join(folder, "runs", "empty.jsonl"), "")
fs.mkdirSync(path.join(folder, "none"))

/** One sentence, and no stack. */
const sentence = (text: string): string => {
  assert.notMatch(text, /\n.|\bat .*:\d+|node:/)
  return text.trimEnd()
}

describe("bursar audit", { concurrent: true }, () => {
  it("says that a run is sound", async () => {
    const { code, stdout, stderr } = await bursar("audit", "sound")
    assert.deepStrictEqual([code, stderr], [0, ""])
    assert.match(stdout, /^run sound: ended, sound\n/)
    assert.match(stdout, /calls +7 decided, 6 attempts, 6 ok, 1 error\n/)
    assert.strictEqual(stdout.match(/^ok /gm)?.length, 12)
    for (const line of stdout.split("\n")) assert.isAtMost(line.length, 100)
  })

  it("audits a run that has not ended as far as it is", async () => {
    const { code, stdout } = await bursar("audit", "open", "--json")
    assert.strictEqual(code, 0)
    assert.deepInclude(JSON.parse(stdout), { state: "open", isSound: true })
  })

  it("reports a line that was taken out, and what it leaves behind", async () => {
    const { code, stdout, stderr } = await bursar("audit", "removed", "--dir", "runs")
    assert.deepStrictEqual([code, stderr], [1, ""])
    assert.match(stdout, /^run removed: ended, NOT SOUND\n/)
    assert.include(stdout, `WRONG   gaps`)
    assert.include(stdout, `event ${decided + 1}: event ${decided} is missing\n`)
    assert.include(stdout, "the result of step-2/call-2 (nowhere), which no decision asked for\n")
  })

  it("reports a line that was edited", async () => {
    const { code, stdout } = await bursar("audit", "--dir", "runs", "edited", "--json")
    const audit = JSON.parse(stdout) as { readonly spend: ReadonlyArray<{ readonly what: string }>; readonly gaps: [] }
    assert.strictEqual(code, 1)
    assert.deepStrictEqual(audit.gaps, [])
    assert.match(audit.spend[0]!.what, /own/)
  })

  it("audits the rest of a log with a line that cannot be read, and says so", async () => {
    const text = await bursar("audit", "oops", "--dir", "runs")
    assert.strictEqual(text.code, 1)
    assert.include(text.stdout, "WRONG   line 6 of the log cannot be read: it is not JSON\n")
    assert.include(text.stdout, "event 5 is missing")
    const json = await bursar("audit", "oops", "--dir", "runs", "--json")
    assert.deepInclude(JSON.parse(json.stdout), {
      isSound: false,
      unreadable: [{ file: "log", line: 6, what: "it is not JSON" }],
    })
  })

  it("takes a last line that was cut off for what a killed process leaves", async () => {
    const { code, stdout } = await bursar("audit", "runs/cut.jsonl")
    assert.strictEqual(code, 0)
    assert.match(stdout, /^run cut: open, sound\n/)
    assert.include(stdout, "the last line was cut off")
  })
})

describe("bursar, given what a journal on disk has written,", { concurrent: true }, () => {
  it.each(["keep", "drop"] as const)("finds it sound and equal, with contents as they are: %s", async (content) => {
    const directory = path.join(folder, `disk-${content}`)
    const child = Agent.make("child", { policy: Policy.make(({ task }) => Proposal.finish(task)) })
    const lead = Agent.make("lead", {
      children: [Agent.asTool(child)],
      policy: Policy.make(({ turns }) =>
        turns.length === 0 ? Proposal.call("child", { task: "CANARY" }) : Proposal.finish(turns.length),
      ),
      answer: Schema.Finite,
    })
    await Agent.run(lead, "CANARY", { budget: { steps: 9, toolCalls: 3 }, runId: "real" }).pipe(
      Effect.provide(FileJournal.layer({ directory, content })),
      Effect.runPromise,
    )
    const [audit, replay, show] = [
      await bursar("audit", "real", "--dir", directory),
      await bursar("replay", "real", "--dir", directory),
      await bursar("show", "real", "--dir", directory),
    ]
    assert.deepStrictEqual([audit.code, replay.code, show.code], [0, 0, 0], audit.stdout)
    assert.include(show.stdout, "lead/child-1: completed, full\n")
    assert.strictEqual(show.stdout.includes("CANARY"), content === "keep")
  })
})

describe("bursar replay", { concurrent: true }, () => {
  it("says that books and states are as they were recorded", async () => {
    const { code, stdout } = await bursar("replay", "sound")
    assert.strictEqual(code, 0)
    assert.match(stdout, /^run sound: as it was recorded\n/)
    assert.match(stdout, /lead\/scout-2 +sha256:\w{16} +as recorded\n/)
    assert.match(stdout, /all +11\/20 +0.001601\/0.01 +6\/20\n/)
  })

  it("says where they differ", async () => {
    const { code, stdout } = await bursar("replay", "edited", "--dir", "runs")
    assert.strictEqual(code, 1)
    assert.match(stdout, /^run edited: NOT as it was recorded\n/)
    assert.match(stdout, /the books cannot be rebuilt: Closed of lead/)
    const json = await bursar("replay", "edited", "--dir", "runs", "--json")
    assert.strictEqual(json.code, 1)
    assert.deepInclude(JSON.parse(json.stdout), { equal: false, accounts: [] })
  })

  it("is not equal where a part of the log cannot be read", async () => {
    const { code, stdout } = await bursar("replay", "oops", "--dir", "runs", "--json")
    assert.deepStrictEqual([code, (JSON.parse(stdout) as { equal: boolean }).equal], [1, false])
  })
})

describe("bursar show", { concurrent: true }, () => {
  it("prints the run with its texts", async () => {
    const { code, stdout, stderr } = await bursar("show", "sound")
    assert.deepStrictEqual([code, stderr], [0, ""])
    assert.strictEqual(stdout, `${Show.show(sound.map((one) => ({ ...one, run: "sound" })))}\n`)
  })

  it("prints its numbers as JSON", async () => {
    const { stdout } = await bursar("show", "sound", "--json")
    const { agents } = JSON.parse(stdout) as { readonly agents: ReadonlyArray<{ readonly task: string }> }
    assert.strictEqual(agents[0]!.task, "the task of lead")
  })

  it("prints what can be read of it", async () => {
    const { code, stdout } = await bursar("show", "oops", "--dir", "runs")
    assert.strictEqual(code, 1)
    assert.include(stdout, "lead: completed, full\n")
    assert.include(stdout, "line 6 of the log cannot be read")
  })
})

describe("bursar runs", { concurrent: true }, () => {
  it("lists the runs of a folder, also those that cannot be read", async () => {
    const { code, stdout } = await bursar("runs")
    assert.strictEqual(code, 0)
    assert.deepStrictEqual(
      stdout.split("\n").map((line) => line.split(/ {2,}/)[0]),
      ["run", "open", "sound", ""],
    )
    assert.match(stdout, /sound +2026-11-30T10:15:00 +completed, full +61.21s +3 +11 +0.001601 USD\n/)
    const other = await bursar("runs", "--dir", "runs")
    assert.match(other.stdout, /foreign +unreadable: /)
    assert.match(other.stdout, /empty +- +open /)
  })

  it("prints them as JSON", async () => {
    const { stdout } = await bursar("runs", "--json")
    const runs = JSON.parse(stdout) as ReadonlyArray<{ readonly run: string; readonly state: string }>
    assert.deepStrictEqual(
      runs.map(({ run, state }) => [run, state]),
      [
        ["open", "open"],
        ["sound", "ended"],
      ],
    )
  })

  it("has nothing to list in an empty folder", async () => {
    assert.deepStrictEqual(await bursar("runs", "--dir", "none"), {
      code: 0,
      stdout: "no runs in none\n",
      stderr: "",
    })
  })
})

describe("bursar metrics", { concurrent: true }, () => {
  it("prints the figures of some runs, or of all in the folder", async () => {
    const one = await bursar("metrics", "sound")
    assert.strictEqual(one.code, 0)
    assert.match(one.stdout, /^runs +1, of which 1 ended and 1 completed\nsuccess rate +100\.0 %\n/)
    assert.match(one.stdout, /\ncompleted +1 +\d/)
    const all = await bursar("metrics")
    assert.match(all.stdout, /^runs +2, of which 1 ended and 1 completed\n/)
  })

  it("prints them as JSON, and says which log has lines that cannot be read", async () => {
    const file = keep("metrics", "damaged", sound, (lines) => lines.with(5, "{"))
    const { code, stdout } = await bursar("metrics", "damaged", "--dir", "metrics", "--json")
    assert.strictEqual(code, 1)
    const { damaged, runs } = JSON.parse(stdout) as { damaged: unknown; runs: number }
    assert.strictEqual(runs, 1)
    assert.deepStrictEqual(damaged, [{ file: path.relative(folder, file), unreadable: 1 }])
    assert.match((await bursar("metrics", "damaged", "--dir", "metrics")).stdout, /WRONG +1 lines of .* cannot be read/)
  })
})

describe(
  "bursar, used wrongly, exits with 2 and says in a sentence what is wrong and what to do",
  { concurrent: true },
  () => {
    it.each<readonly [ReadonlyArray<string>, RegExp]>([
      [
        ["audit", "nothing"],
        /^bursar: there is no log \.bursar\/runs\/nothing\.jsonl: "bursar runs --dir \.bursar\/runs" lists/,
      ],
      [["show", "no/such.jsonl"], /^bursar: there is no log no\/such\.jsonl: give the path of a log$/],
      [
        ["replay", "foreign", "--dir", "runs"],
        /^bursar: runs\/foreign\.jsonl is not the log of a run \(line 1: it is not JSON\): /,
      ],
      [["audit", ".bursar/runs/sound.content.jsonl"], /holds the texts of a log: name the log itself/],
      [["audit", "none", "--dir", "sound.jsonl/x"], /^bursar: there is no log|cannot be read/],
      [["runs", "--dir", "nowhere"], /^bursar: there are no runs in nowhere \(not found\): name the folder/],
      [["audit"], /^bursar audit: Missing required argument: run: see "bursar audit --help"$/],
      [["audit", "a", "b"], /^bursar audit: Unexpected .*: see "bursar audit --help"$/],
      [["dance"], /^bursar: Unknown subcommand "dance".*: see "bursar --help"$/],
      [["show", "sound", "--loud"], /^bursar show: Unrecognized flag: --loud .*: see "bursar show --help"$/],
    ])("%s", async (args, says) => {
      const { code, stdout, stderr } = await bursar(...args)
      assert.deepStrictEqual([code, stdout], [2, ""])
      assert.match(sentence(stderr), says)
    })

    it("or prints its help where nothing was asked", async () => {
      const { code, stdout } = await bursar()
      assert.strictEqual(code, 2)
      assert.include(stdout, "audit")
    })
  },
)

describe("bursar", () => {
  it("says which version it is, and helps", async () => {
    const { version } = JSON.parse(fs.readFileSync(path.join(root, "package.json"), "utf8")) as { version: string }
    assert.strictEqual((await bursar("--version")).stdout, `bursar v${version}\n`)
    const help = await bursar("audit", "--help")
    assert.strictEqual(help.code, 0)
    for (const word of ["--dir DIR", "--json", "EXAMPLES", "Check a run from its log"])
      assert.include(help.stdout, word)
  })

  it("ends quietly when nobody reads on", async () => {
    const child = spawn("sh", ["-c", '"$0" "$1" show sound | head -n 1', process.execPath, `${root}src/cli/main.ts`], {
      cwd: folder,
    })
    const error: Array<Buffer> = []
    child.stderr.on("data", (chunk: Buffer) => error.push(chunk))
    const code = await new Promise((resolve) => child.on("close", resolve))
    assert.deepStrictEqual([code, Buffer.concat(error).toString()], [0, ""])
  })

  it("writes nothing", () => {
    assert.deepStrictEqual(fs.readdirSync(path.join(folder, ".bursar/runs")).toSorted(), [
      "open.content.jsonl",
      "open.jsonl",
      "sound.content.jsonl",
      "sound.jsonl",
    ])
  })
})
