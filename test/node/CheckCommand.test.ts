import * as fs from "node:fs"
import * as path from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { Event, Verifier } from "../../src/index.ts"
import { Check } from "../../src/node/index.ts"
import { put, rulesOf, says, tree, worldOf } from "./checked.ts"
import { folder, until } from "./support.ts"

describe("a command that has to succeed", () => {
  const sh = (cwd: string, script: string, more: Partial<Check.CommandOptions> = {}) =>
    Check.command({ command: "sh", args: ["-c", script], cwd, timeout: "50 seconds", ...more })

  const evidenceOf = ({ evidence }: Verifier.Verification): Event.Evidence => evidence[0]!

  it.live("accepts exit code 0 and nothing else, with what it wrote as evidence", () =>
    Effect.gen(function* () {
      const cwd = yield* folder
      const passed = yield* says(sh(cwd, "echo fine; echo noise >&2"))
      assert.isTrue(passed.accepted)
      assert.deepStrictEqual(passed.rules, [{ name: "tests_passed", passed: true, detail: "" }])
      const evidence = evidenceOf(passed)
      assert.deepInclude(evidence, {
        command: "sh -c echo fine; echo noise >&2",
        exitCode: 0,
        timedOut: false,
        wrote: [],
      })
      assert.strictEqual((evidence["output"] as Event.Call["params"]).text, "fine\n\nnoise\n")
      assert.isAtLeast(evidence["durationMillis"] as number, 0)
      const failed = yield* says(sh(cwd, "echo 'not ok 1'; exit 1", { rule: "lint_passed" }))
      assert.deepStrictEqual(failed.rules, [{ name: "lint_passed", passed: false, detail: "exit code 1\nnot ok 1" }])
    }),
  )

  it.live("shows the end of a long output", () =>
    Effect.gen(function* () {
      const cwd = yield* folder
      const found = yield* says(sh(cwd, "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; exit 2"))
      assert.isTrue(found.rules[0]!.detail.endsWith("line 19998\nline 19999"))
      assert.isAtMost(Buffer.byteLength(found.rules[0]!.detail), 4200)
      assert.isAtMost((evidenceOf(found)["output"] as Event.Call["params"]).bytes, 16 * 1024)
    }),
  )

  it.live("rejects when its time is over, when it is killed, and when there is no such command", () =>
    Effect.gen(function* () {
      const cwd = yield* folder
      const late = yield* says(sh(cwd, "while :; do sleep 1; done", { timeout: "200 millis" }))
      assert.strictEqual(late.rules[0]!.detail, "its time was over")
      assert.deepInclude(evidenceOf(late), { signal: "SIGTERM", timedOut: true })
      const killed = yield* says(sh(cwd, "kill -9 $$"))
      assert.strictEqual(killed.rules[0]!.detail, "exit code SIGKILL")
      const missing = yield* says(Check.command({ command: "bursar-no-such-command", cwd }))
      assert.deepStrictEqual([missing.accepted, missing.rules[0]!.name], [false, "tests_passed"])
      assert.include(missing.rules[0]!.detail, "there is no command")
    }),
  )

  it.live("is not run when protected files were changed", () =>
    Effect.gen(function* () {
      const { baseline, root } = yield* tree({ "test.sh": "exit 1\n" })
      const verifier = sh(root, "touch ran; sh test.sh", { protect: { baseline, globs: ["*.sh"] }, ignore: ["ran"] })
      assert.deepStrictEqual(rulesOf(yield* says(verifier)), {
        protected_files_unchanged: "passed",
        tests_passed: "exit code 1",
      })
      fs.rmSync(path.join(root, "ran"))
      put(root, "test.sh", "exit 0\n")
      assert.deepStrictEqual(rulesOf(yield* says(verifier)), {
        protected_files_unchanged: "changed test.sh",
        tests_passed: "it was not run: protected_files_unchanged does not hold",
      })
      assert.isFalse(fs.existsSync(path.join(root, "ran")))
    }),
  )

  it.live("tells what it writes itself, which moves its world unless it is ignored", () =>
    Effect.gen(function* () {
      const cwd = yield* folder
      const seen = sh(cwd, "echo $$ > report")
      const before = yield* worldOf(seen)
      const found = yield* says(seen)
      assert.deepStrictEqual(evidenceOf(found)["wrote"], ["report"])
      assert.strictEqual(found.rules[0]!.detail, "it has itself added report")
      assert.notStrictEqual(yield* worldOf(seen), before)
      const ignored = sh(cwd, "echo $$ > report", { ignore: ["report"] })
      const still = yield* worldOf(ignored)
      assert.deepStrictEqual(evidenceOf(yield* says(ignored))["wrote"], [])
      assert.strictEqual(yield* worldOf(ignored), still)
    }),
  )

  it.live("is ended with the check", () =>
    Effect.gen(function* () {
      const cwd = yield* folder
      const running = says(
        sh(cwd, "echo $$ > pid; trap '' TERM; while :; do sleep 1; done", { grace: "100 millis", ignore: ["pid"] }),
      )
      const fiber = yield* Effect.forkChild(running, { startImmediately: true })
      const file = path.join(cwd, "pid")
      yield* until(() => fs.existsSync(file) && fs.readFileSync(file, "utf8") !== "")
      yield* Fiber.interrupt(fiber)
      assert.isFalse(/\) [^ZX]/.test(statOf(fs.readFileSync(file, "utf8").trim())))
    }),
  )
})

const statOf = (pid: string): string => {
  try {
    return fs.readFileSync(`/proc/${pid}/stat`, "utf8")
  } catch {
    return ""
  }
}
