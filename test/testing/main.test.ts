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
import * as Schema from "effect/Schema"

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
        child.kill("SIGTERM")
        const [code] = yield* Effect.promise(() => once(child, "exit"))
        assert.strictEqual(code, 0)
      }),
    )
  }

  it.effect("says what is wrong with its script and ends with 1", () =>
    Effect.gen(function* () {
      const file = path.join(yield* folder, "turns.json")
      writeFileSync(file, '[{ "txt": "misspelt" }]')
      const child = yield* run("--script", file)
      const [said, [code]] = yield* Effect.promise(() =>
        Promise.all([child.stderr === null ? "" : text(child.stderr), once(child, "exit")]),
      )
      assert.include(said, "txt")
      assert.strictEqual(code, 1)
    }),
  )
})
