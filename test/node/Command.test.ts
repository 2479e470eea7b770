import * as fs from "node:fs"
import * as path from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { Contract } from "../../src/index.ts"
import { Command } from "../../src/node/index.ts"
import * as Group from "../../src/node/internal/group.ts"
import { call, codeOf, failure, folder, until } from "./support.ts"

/** Runs a script of `sh`, which is started like any other program. */
const sh = (cwd: string, script: string, more: Partial<Command.Command> = {}) =>
  Command.run({ command: "sh", args: ["-c", script], cwd, timeout: "50 seconds", ...more })

const node = (cwd: string, script: string, more: Partial<Command.Command> = {}) =>
  Command.run({ command: process.execPath, args: ["-e", script], cwd, timeout: "50 seconds", ...more })

/** Whether a process runs; one that only waits to be collected does not. */
const isRunning = (pid: number): boolean => {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, "utf8")
    return !/\) [ZX]/.test(stat)
  } catch {
    return false
  }
}

const isGone = (group: number): boolean => {
  try {
    process.kill(-group, 0)
    return !fs
      .readdirSync("/proc")
      .some((name) => /^\d+$/.test(name) && isRunning(Number(name)) && groupOf(name) === group)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH"
  }
}

const groupOf = (pid: string): number => {
  try {
    return Number(fs.readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ")[2])
  } catch {
    return 0
  }
}

/** The numbers in a file, once there are so many. */
const pidsIn = (file: string, count: number): Effect.Effect<ReadonlyArray<number>> => {
  const read = () => (fs.existsSync(file) ? fs.readFileSync(file, "utf8").split("\n").slice(0, -1).map(Number) : [])
  return Effect.map(
    until(() => read().length >= count),
    read,
  )
}

/** Leader, child and grandchild, of which the last two ignore being asked to end. Each writes its number. */
const family = `
echo $$ >> pids
sh -c 'trap "" TERM; echo $$ >> pids; sh -c "echo \\$\\$ >> pids; while :; do sleep 1; done" & while :; do sleep 1; done' &
echo started
while :; do sleep 1; done
`

describe("running a command", () => {
  it.live("gives what it wrote and how it ended", () =>
    Effect.gen(function* () {
      const cwd = yield* folder
      const ended = yield* sh(cwd, "pwd; echo error >&2; exit 3")
      assert.deepInclude(ended, {
        exitCode: 3,
        signal: null,
        timedOut: false,
        stdout: `${cwd}\n`,
        stderr: "error\n",
        stderrBytes: 6,
        truncated: false,
      })
      assert.isAtLeast(ended.durationMillis, 0)
      assert.deepInclude(yield* sh(cwd, "kill -9 $$"), { exitCode: null, signal: "SIGKILL", timedOut: false })
    }),
  )

  it.live("passes words on as they are", () =>
    Effect.gen(function* () {
      const cwd = yield* folder
      const words = ["$HOME", "a b", "; exit 1", "`id`", "*", "", "é\n"]
      const script = "console.log(JSON.stringify(process.argv.slice(1)))"
      const { stdout } = yield* Command.run({ command: process.execPath, args: ["-e", script, "--", ...words], cwd })
      assert.deepStrictEqual(JSON.parse(stdout), words)
    }),
  )

  it.live("gives it what to read, or nothing", () =>
    Effect.gen(function* () {
      const cwd = yield* folder
      assert.strictEqual((yield* sh(cwd, "cat", { stdin: "héllo\n" })).stdout, "héllo\n")
      assert.strictEqual((yield* sh(cwd, "cat")).stdout, "")
      const unread = yield* sh(cwd, "exec 0<&-; exit 0", { stdin: "x".repeat(1_000_000) })
      assert.strictEqual(unread.exitCode, 0)
    }),
  )

  it.live("keeps the beginning and the end of an output, and says how much there was", () =>
    Effect.gen(function* () {
      const cwd = yield* folder
      const script = "for (let i = 0; i < 100000; i++) console.log('line', i, '€'); console.error('short')"
      const ended = yield* node(cwd, script, { maxOutputBytes: 1000 })
      const whole = Array.from({ length: 100_000 }, (_, index) => `line ${index} €\n`).join("")
      assert.strictEqual(ended.stdoutBytes, Buffer.byteLength(whole))
      assert.isTrue(ended.truncated)
      assert.strictEqual(ended.stderr, "short\n")
      const [head, note, tail] = /^(.*)\n\[(\d+) bytes left out\]\n(.*)$/s.exec(ended.stdout)!.slice(1)
      assert.isTrue(whole.startsWith(head!))
      assert.isTrue(whole.endsWith(tail!))
      assert.isAbove(head!.length, 400)
      assert.isAbove(tail!.length, 400)
      const kept = Buffer.byteLength(head!) + Buffer.byteLength(tail!)
      assert.isAtMost(kept, 1000)
      assert.strictEqual(Number(note), ended.stdoutBytes - kept)
    }),
  )

  it.live("keeps an output of exactly as much as there is room for", () =>
    Effect.gen(function* () {
      const cwd = yield* folder
      const fits = yield* sh(cwd, "printf 1234567890", { maxOutputBytes: 10 })
      assert.deepInclude(fits, { stdout: "1234567890", truncated: false })
      const over = yield* sh(cwd, "printf 12345678901", { maxOutputBytes: 10 })
      assert.deepInclude(over, { stdout: "12345\n[1 bytes left out]\n78901", truncated: true, stdoutBytes: 11 })
    }),
  )

  it.live("passes on a few names of the environment and what is given, nothing else", () =>
    Effect.gen(function* () {
      const cwd = yield* folder
      process.env["BURSAR_TEST_SECRET"] = "secret"
      const { stdout } = yield* node(cwd, "console.log(JSON.stringify(process.env))", {
        env: { GIVEN: "1", LANG: "C" },
      })
      delete process.env["BURSAR_TEST_SECRET"]
      const seen = JSON.parse(stdout) as Record<string, string>
      const passedOn = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "GIVEN"]
      assert.deepStrictEqual(
        Object.keys(seen).filter((name) => !passedOn.includes(name)),
        [],
      )
      assert.deepInclude(seen, { GIVEN: "1", LANG: "C" })
    }),
  )

  it.live("does not look for programs in the folder it runs in", () =>
    Effect.gen(function* () {
      const cwd = yield* folder
      fs.writeFileSync(path.join(cwd, "planted"), "#!/bin/sh\necho planted\n", { mode: 0o755 })
      const before = process.env["PATH"]
      process.env["PATH"] = `.:${before}:`
      const code = yield* codeOf(Command.run({ command: "planted", cwd }))
      process.env["PATH"] = before
      assert.strictEqual(code, "ENOENT mistake")
    }),
  )

  it.live("fails for what cannot be run", () =>
    Effect.gen(function* () {
      const cwd = yield* folder
      fs.writeFileSync(path.join(cwd, "plain.txt"), "text")
      const codes = yield* Effect.all([
        codeOf(Command.run({ command: "bursar-no-such-command", cwd })),
        codeOf(Command.run({ command: "./plain.txt", cwd })),
        codeOf(Command.run({ command: "sh", cwd: path.join(cwd, "none") })),
        codeOf(Command.run({ command: "sh", args: ["a\0b"], cwd })),
        codeOf(Command.run({ command: "sh", args: ["x".repeat(3_000_000)], cwd })),
      ])
      assert.deepStrictEqual(codes, [
        "ENOENT mistake",
        "EPERM permission",
        "ENOTDIR mistake",
        "EINVAL mistake",
        "EINVAL mistake",
      ])
    }),
  )
})

describe("when a command is over, so is its group", () => {
  it.live("its time is over: children and grandchildren that ignore it are gone, its output is kept", () =>
    Effect.gen(function* () {
      const cwd = yield* folder
      const running = sh(cwd, family, { timeout: "2 seconds", grace: "200 millis" })
      const [ended, pids] = yield* Effect.all([running, pidsIn(path.join(cwd, "pids"), 3)], { concurrency: 2 })
      assert.deepInclude(ended, { timedOut: true, exitCode: null, signal: "SIGTERM", stdout: "started\n" })
      assert.deepStrictEqual(pids.filter(isRunning), [])
      assert.isTrue(isGone(pids[0]!))
    }),
  )

  it.live("its caller is interrupted: it ends only when they are gone", () =>
    Effect.gen(function* () {
      const cwd = yield* folder
      const fiber = yield* Effect.forkChild(sh(cwd, family, { grace: "200 millis" }), { startImmediately: true })
      const pids = yield* pidsIn(path.join(cwd, "pids"), 3)
      assert.deepStrictEqual(pids.filter(isRunning), pids)
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(pids.filter(isRunning), [])
      assert.isTrue(isGone(pids[0]!))
    }),
  )

  it.live("it ends by itself: what it left behind is ended", () =>
    Effect.gen(function* () {
      const cwd = yield* folder
      const left = `sh -c 'trap "" TERM; echo $$ > pids; while :; do sleep 1; done' & while [ ! -s pids ]; do sleep 0.01; done; echo $$ >> pids; echo done`
      const ended = yield* sh(cwd, left, { grace: "100 millis" })
      const [child, group] = yield* pidsIn(path.join(cwd, "pids"), 2)
      assert.deepInclude(ended, { exitCode: 0, stdout: "done\n", timedOut: false })
      assert.isFalse(isRunning(child!))
      assert.isTrue(isGone(group!))
    }),
  )

  it.live("one that ends when it is asked to has the time to say so", () =>
    Effect.gen(function* () {
      const cwd = yield* folder
      const polite = "trap 'echo bye; exit 7' TERM; while :; do sleep 1; done"
      const ended = yield* sh(cwd, polite, { timeout: "1 second", grace: "40 seconds" })
      assert.deepInclude(ended, { timedOut: true, exitCode: 7, stdout: "bye\n" })
      assert.isBelow(ended.durationMillis, 30_000)
    }),
  )

  it.live("interrupted at any moment of its start, nothing is left", () =>
    Effect.gen(function* () {
      const cwd = yield* folder
      for (let turns = 0; turns < 20; turns++) {
        const running = sh(cwd, "echo $$ >> pids; while :; do sleep 1; done")
        const fiber = yield* Effect.forkChild(running, { startImmediately: true })
        for (let turn = 0; turn < turns; turn++) yield* Effect.promise(() => new Promise((done) => setImmediate(done)))
        const exit = yield* Effect.andThen(Fiber.interrupt(fiber), Fiber.await(fiber))
        assert.isTrue(Exit.isFailure(exit))
      }
      const pids = yield* pidsIn(path.join(cwd, "pids"), 0)
      assert.deepStrictEqual(pids.filter(isRunning), [])
    }),
  )

  it.live("a process that left the group is not waited for", () =>
    Effect.gen(function* () {
      const cwd = yield* folder
      const escape = `
        const child = require("node:child_process").spawn("sleep", ["40"], { detached: true, stdio: "inherit" })
        require("node:fs").writeFileSync("pids", child.pid + "\\n"); child.unref(); console.log("out")`
      const ended = yield* node(cwd, escape)
      const [escaped] = yield* pidsIn(path.join(cwd, "pids"), 1)
      const wasRunning = isRunning(escaped!)
      process.kill(escaped!, "SIGKILL")
      assert.isTrue(wasRunning)
      assert.deepInclude(ended, { exitCode: 0, stdout: "out\n" })
      assert.isBelow(ended.durationMillis, 30_000)
    }),
  )

  it.live("this process exits: the group goes with it", () =>
    Effect.gen(function* () {
      const cwd = yield* folder
      const source = new URL("../../src/node/Command.ts", import.meta.url).href
      const effect = import.meta.resolve("effect/Effect")
      fs.writeFileSync(
        path.join(cwd, "exits.ts"),
        `import * as Effect from ${JSON.stringify(effect)}
         import { existsSync } from "node:fs"
         import { run } from ${JSON.stringify(source)}
         Effect.runFork(run({ command: "sh", args: ["-c", "trap '' TERM; echo $$ > pids; while :; do sleep 1; done"], cwd: "." }))
         setInterval(() => existsSync("pids") && process.exit(5), 5)`,
      )
      const ended = yield* Command.run({ command: process.execPath, args: ["exits.ts"], cwd })
      const [group] = yield* pidsIn(path.join(cwd, "pids"), 1)
      assert.strictEqual(ended.exitCode, 5, ended.stderr)
      yield* until(() => isGone(group!))
    }),
  )
})

it.live("a group of which only a process is left that nobody collects counts as gone", () =>
  Effect.gen(function* () {
    const cwd = yield* folder
    // With job control a job is a group of its own; the shell becomes a program that never asks what became of it.
    const script = "set -m; sleep 0.2 & echo $! > pids; exec sleep 40"
    const running = Command.run({ command: "bash", args: ["-c", script], cwd })
    yield* Effect.forkScoped(running)
    const [group] = yield* pidsIn(path.join(cwd, "pids"), 1)
    yield* until(() => !isRunning(group!))
    assert.doesNotThrow(() => process.kill(-group!, 0))
    assert.isFalse(Group.isAlive(group!))
  }),
)

describe("the tool", () => {
  const { run_command } = Command.toolkit.tools
  const runs = (command: string, ...args: ReadonlyArray<string>) => call(run_command, { command, args })

  it.live("runs what is allowed, in the root", () =>
    Effect.gen(function* () {
      const root = yield* folder
      const layer = Command.layer({ root, allow: ["sh", "pwd"], env: { GIVEN: "given" } })
      yield* Effect.gen(function* () {
        assert.deepStrictEqual(yield* runs("pwd"), {
          exitCode: 0,
          signal: null,
          timedOut: false,
          stdout: `${root}\n`,
          stderr: "",
          truncated: false,
        })
        assert.strictEqual((yield* runs("sh", "-c", "echo $GIVEN")).stdout, "given\n")
        const refused = yield* failure(runs("rm", "-r", "."))
        assert.deepInclude(refused, { code: "EPERM", class: "permission" })
        assert.include(refused.message, "sh, pwd")
        assert.strictEqual(yield* codeOf(runs("/bin/sh")), "EPERM permission")
      }).pipe(Effect.provide(layer))
    }),
  )

  it.live("may be decided on by its words", () =>
    Effect.gen(function* () {
      const root = yield* folder
      const allow = ({ args, command }: Command.Vector) => command === "echo" && args[0] === "a"
      const codes = yield* Effect.all([codeOf(runs("echo", "a")), codeOf(runs("echo", "b"))]).pipe(
        Effect.provide(Command.layer({ root, allow })),
      )
      assert.deepStrictEqual(codes, ["ok", "EPERM permission"])
    }),
  )

  it.live("has its limits from the layer", () =>
    Effect.gen(function* () {
      const root = yield* folder
      const limits = { timeout: "300 millis", grace: "50 millis", maxOutputBytes: 4 } as const
      const ended = yield* runs("sh", "-c", "echo 123456; trap '' TERM; while :; do sleep 1; done").pipe(
        Effect.provide(Command.layer({ root, allow: ["sh"], ...limits })),
      )
      assert.deepInclude(ended, { timedOut: true, signal: "SIGKILL", truncated: true })
    }),
  )

  it("has a contract that can be replaced", () => {
    const contract = Contract.of(run_command)
    assert.deepInclude(contract, { effect: "write", idempotency: "none", untrusted: true, timeoutMillis: 600_000 })
    assert.deepStrictEqual(contract.scopes?.({ command: "npm", args: [] } as never), ["command:npm"])
    const looking = Command.toolkitWith({ effect: "read", timeout: "5 seconds" })
    assert.deepInclude(Contract.of(looking.tools.run_command), {
      effect: "read",
      idempotency: "natural",
      timeoutMillis: 5000,
    })
  })
})
