import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import * as path from "node:path"
import { createInterface } from "node:readline"
import { text } from "node:stream/consumers"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as TestingServer from "../../src/testing/TestingServer.ts"
import { ask } from "./asking.ts"

const main = fileURLToPath(new URL("../../src/testing/server/main.ts", import.meta.url))

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(path.join(tmpdir(), "bursar-server-"))),
  (made) => Effect.sync(() => rmSync(made, { recursive: true })),
)

const run = (...args: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.sync(() => spawn(process.execPath, [main, ...args], { stdio: ["ignore", "pipe", "pipe"] })),
    (child) => Effect.sync(() => child.kill("SIGKILL")),
  )

const decodeLine = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({ url: Schema.String })))

const url = (child: ChildProcess) =>
  Effect.promise(async () => {
    if (child.stdout === null) throw new Error("no stdout")
    const [line] = await once(createInterface(child.stdout), "line")
    return decodeLine(line).url
  })

const post = (base: string) =>
  Effect.promise(async () => {
    const body = JSON.stringify({ model: "m", input: [{ role: "user", content: "hi" }] })
    const response = await fetch(`${base}/responses`, { method: "POST", body })
    return response.text()
  })

describe("the server as a process", () => {
  const scripts = {
    "turns.json": '[{ "text": "from a list", "usage": { "input": 4, "output": 2 } }]',
    "turns.mjs": 'export default [{ text: "from a list", usage: { input: 4, output: 2 } }]',
    "model.mjs": "export default (request) => ({ text: `from a ${request.model}`, usage: { input: 4, output: 2 } })",
  }
  for (const [name, script] of Object.entries(scripts)) {
    it.effect(`runs ${name}, keeps its ledger in a file and stops on SIGTERM`, () =>
      Effect.gen(function* () {
        const made = yield* folder
        const file = path.join(made, name)
        const ledger = path.join(made, "ledger.json")
        writeFileSync(file, script)
        const child = yield* run("--script", file, "--ledger", ledger)
        const base = yield* url(child)
        assert.include(readFileSync(ledger, "utf8"), '"requests":0')
        assert.include(yield* post(base), "from a")
        const counted: unknown = JSON.parse(readFileSync(ledger, "utf8"))
        assert.deepInclude(counted, { requests: 1, replies: 1, inputTokens: 4, outputTokens: 2 })
        assert.include(readFileSync(ledger, "utf8"), '"entries":[{"n":0,"id":"resp_0","protocol":"responses"')
        child.kill("SIGTERM")
        const [code] = yield* Effect.promise(() => once(child, "exit"))
        assert.strictEqual(code, 0)
      }),
    )
  }

  const ended = (...args: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      const child = yield* run(...args)
      const [printed, said, [code]] = yield* Effect.promise(() =>
        Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]),
      )
      return { printed, said, code: Number(code) }
    })

  const wrongScripts = { "turns.json": '[{ "txt": "misspelt" }]', "text.json": '"text"' }
  for (const [name, script] of Object.entries(wrongScripts)) {
    it.effect(`says what is wrong with its script ${name} and ends with 1`, () =>
      Effect.gen(function* () {
        const file = path.join(yield* folder, name)
        writeFileSync(file, script)
        const { code, said } = yield* ended("--script", file)
        assert.include(said, name === "turns.json" ? "txt" : "neither a list of turns nor a function")
        assert.strictEqual(code, 1)
      }),
    )
  }

  const wrong: Array<[ReadonlyArray<string>, string]> = [
    [[], "--script FILE is missing"],
    [["--script", "/nowhere/turns.json"], "there is no such file"],
    [["--script", "x", "--colour", "red"], "'--colour'"],
    [["x"], "'x'"],
    [["--script", "x", "--port", "70000"], '--port is "70000"; a whole number from 0 to 65535 is expected'],
    [["--script", "x", "--latency", "1.5"], '--latency is "1.5"'],
    [["--script", "x", "--chunk-latency", "soon"], '--chunk-latency is "soon"'],
    [["--script", "x", "--temper", "grumpy"], '--temper is "grumpy"; expected is one of obeys,'],
  ]
  it.effect("says what is wrong with its arguments and ends with 2", () =>
    Effect.gen(function* () {
      for (const [args, message] of wrong) {
        const { code, printed, said } = yield* ended(...args)
        assert.include(said, message)
        assert.include(said, "--help")
        assert.strictEqual(said.trim().split("\n").length, 1)
        assert.strictEqual(printed, "")
        assert.strictEqual(code, 2)
      }
    }),
  )

  it.effect("says that it cannot write its ledger and ends with 2", () =>
    Effect.gen(function* () {
      const made = yield* folder
      const file = path.join(made, "turns.json")
      writeFileSync(file, "[]")
      const { code, said } = yield* ended("--script", file, "--ledger", path.join(made, "none", "ledger.json"))
      assert.include(said, "cannot be written")
      assert.strictEqual(code, 2)
    }),
  )

  it.effect("has help, which names every option and every temper", () =>
    Effect.gen(function* () {
      const { code, printed } = yield* ended("--help")
      const options = ["script", "port", "ledger", "latency", "chunk-latency", "temper", "bills-aborted", "no-counter"]
      for (const option of options) assert.include(printed, `--${option}`)
      for (const temper of TestingServer.Temper.literals) assert.include(printed, temper)
      assert.strictEqual(code, 0)
    }),
  )

  it.effect("has the tempers and latencies it is told, and ends with replies under way", () =>
    Effect.gen(function* () {
      const made = yield* folder
      const file = path.join(made, "model.mjs")
      const ledger = path.join(made, "ledger.json")
      const turn = '{ text: "x".repeat(40), ...(n === 1 ? { latencyMs: 600000 } : {}) }'
      writeFileSync(file, `export default (_, n) => (${turn})`)
      const tempers = ["--temper", "omits-usage", "--temper", "other-tier"]
      const more = ["--latency", "1", "--chunk-latency", "1", "--no-counter", "--bills-aborted"]
      const child = yield* run("--script", file, "--ledger", ledger, ...tempers, ...more)
      const base = yield* url(child)
      const got = yield* ask({ url: base }, "responses streamed")
      assert.deepInclude(got, { text: "x".repeat(40), tier: "priority", usage: undefined })
      const counting = yield* Effect.promise(() =>
        fetch(`${base}/responses/input_tokens`, { method: "POST", body: "{}" }),
      )
      assert.strictEqual(counting.status, 404)
      const hanging = yield* Effect.forkChild(Effect.exit(ask({ url: base }, "chat")))
      yield* Effect.promise(() => until(() => readFileSync(ledger, "utf8").includes('"requests":2')))
      child.kill("SIGTERM")
      const [code] = yield* Effect.promise(() => once(child, "exit"))
      assert.strictEqual(code, 0)
      yield* Fiber.join(hanging)
      const entries: ReadonlyArray<TestingServer.Entry> = JSON.parse(readFileSync(ledger, "utf8")).entries
      assert.deepStrictEqual(
        entries.map(({ outcome }) => outcome),
        ["replied", "stopped"],
      )
    }),
  )
})

const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve))
}
