/**
 * Whole runs as a user would have them: mending a file until its tests pass, adding up numbers, replies that are wrong in
 * every way, and what the lines of the journal say about them.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { Agent, Contract, type Event, Policy, Proposal, ToolError, Verifier } from "../../src/index.ts"
import * as Line from "../../src/journal/Line.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { all, results, run, stopped } from "../support/journalled.ts"
import { completed, lawful, rowOf } from "../support/driven.ts"
import { bare, calls, plays } from "../support/scripts.ts"

// --- files in memory

const failure = ToolError.ToolError
const path = Schema.Struct({ path: Schema.String })

const versionOf = (text: string) => Agent.digest(text)

/** A directory with a program, its test, and tools to look at and change them. */
const workshop = (files: Record<string, string>) => {
  const at = (name: string) => ({ path: name, version: versionOf(files[name] ?? "") })
  const Read = Contract.annotate(Tool.make("read_file", { parameters: path, success: Schema.String, failure }), {
    effect: "read",
    resources: (params) => [at(params.path)],
  })
  const Test = Contract.annotate(
    Tool.make("run_tests", {
      parameters: Schema.Struct({}),
      success: Schema.Struct({ exitCode: Schema.Number, output: Schema.String }),
      failure,
    }),
    { effect: "read" },
  )
  const patch = Schema.Struct({ path: Schema.String, find: Schema.String, replace: Schema.String })
  const Patch = Contract.annotate(Tool.make("patch_file", { parameters: patch, success: Schema.String, failure }), {
    effect: "write",
    resources: (params) => [at(params.path)],
  })
  const Write = Contract.annotate(
    Tool.make("write_file", {
      parameters: Schema.Struct({ path: Schema.String, text: Schema.String }),
      success: Schema.String,
      failure,
    }),
    { effect: "write", idempotency: "natural", resources: (params) => [at(params.path)] },
  )
  const toolkit = Toolkit.make(Read, Test, Patch, Write)
  const exitCode = () => (files["sum.js"]?.includes("a + b") === true ? 0 : 1)
  const missing = ToolError.mistake("ENOENT", "there is no such file")
  const handlers = toolkit.toLayer({
    read_file: (params) =>
      Effect.suspend(() =>
        files[params.path] === undefined ? Effect.fail(missing) : Effect.succeed(files[params.path]!),
      ),
    run_tests: () => Effect.sync(() => ({ exitCode: exitCode(), output: exitCode() === 0 ? "ok" : "1 failed" })),
    patch_file: ({ find, replace, ...params }) =>
      Effect.suspend(() => {
        const text = files[params.path]
        if (text?.includes(find) !== true) return Effect.fail(ToolError.mistake("ECONFLICT", "the text was not found"))
        files[params.path] = text.replace(find, replace)
        return Effect.succeed("patched")
      }),
    write_file: ({ text, ...params }) => Effect.sync(() => ((files[params.path] = text), "written")),
  })
  const before = versionOf(files["sum.test.js"] ?? "")
  const verify = Verifier.make<unknown>(
    "checks",
    () =>
      Effect.sync(() => ({
        rules: [
          { name: "tests_passed", passed: exitCode() === 0, detail: `exit code ${exitCode()}` },
          {
            name: "protected_files_unchanged",
            passed: versionOf(files["sum.test.js"] ?? "") === before,
            detail: "sum.test.js",
          },
        ],
        evidence: [{ command: "npm test", exitCode: exitCode(), files: Object.keys(files) }],
      })),
    { world: () => Effect.sync(() => versionOf(JSON.stringify(files))) },
  )
  return { files, toolkit, handlers, verify }
}

const broken = { "sum.js": "export const sum = (a, b) => a - b", "sum.test.js": "assert(sum(1, 2) === 3)" }

const readIt = { tool: "read_file", params: { path: "sum.js" } }
const test = { tool: "run_tests", params: {} }
const mend = { tool: "patch_file", params: { path: "sum.js", find: "a - b", replace: "a + b" } }

describe("mending a file until its tests pass", () => {
  it.effect("takes four calls, of which one changes something, and is accepted by what is there", () =>
    Effect.gen(function* () {
      const { toolkit, handlers, verify, files } = workshop({ ...broken })
      const policy = plays(calls(readIt), calls(test), calls(mend), calls(test), Proposal.finish("mended"))
      const agent = Agent.make("mender", { policy, toolkit, verify, ...bare })
      const { outcome, events } = yield* run(agent, { steps: 9, toolCalls: 9 }).pipe(Effect.provide(handlers))
      lawful(outcome, events)
      const { rules, evidence } = completed(outcome)
      assert.deepStrictEqual(
        rules.map((rule) => [rule.name, rule.passed]),
        [
          ["tests_passed", true],
          ["protected_files_unchanged", true],
        ],
      )
      assert.deepStrictEqual(evidence, [{ command: "npm test", exitCode: 0, files: ["sum.js", "sum.test.js"] }])
      const row = rowOf(outcome)
      assert.deepStrictEqual([row.own.toolCalls, row.own.steps, results(events)], [4, 5, ["ok", "ok", "ok", "ok"]])
      const exits = all(events, "CallEnded")
        .filter((one) => one.tool === "run_tests")
        .map((one) => JSON.parse(one.result!.text!).exitCode)
      assert.deepStrictEqual(exits, [1, 0])
      const changed = all(events, "CallEnded").filter((one) => one.stateChanged)
      assert.deepStrictEqual(
        changed.map((one) => [one.tool, one.resources]),
        [["patch_file", [{ path: "sum.js", version: versionOf(files["sum.js"]!) }]]],
      )
    }),
  )

  it.effect("by changing the test instead is rejected: only the mended program is accepted", () =>
    Effect.gen(function* () {
      const { toolkit, handlers, verify } = workshop({ ...broken })
      const cheat = { tool: "write_file", params: { path: "sum.test.js", text: "" } }
      const restore = { tool: "write_file", params: { path: "sum.test.js", text: broken["sum.test.js"] } }
      const policy = plays(
        calls(cheat),
        Proposal.finish("done"),
        calls(restore),
        Proposal.finish("done"),
        calls(mend),
        Proposal.finish("done"),
      )
      const agent = Agent.make("mender", { policy, toolkit, verify, ...bare })
      const { outcome, events } = yield* run(agent, { steps: 9, toolCalls: 9 }).pipe(Effect.provide(handlers))
      lawful(outcome, events)
      assert.strictEqual(outcome._tag, "Completed")
      assert.deepStrictEqual(
        all(events, "Verified").map((one) => [
          one.step,
          one.rules.filter((rule) => !rule.passed).map((rule) => rule.name),
        ]),
        [
          [2, ["tests_passed", "protected_files_unchanged"]],
          [4, ["tests_passed"]],
          [6, []],
        ],
      )
    }),
  )

  it.effect("with a patch that does not fit is told so, and one that does is then made", () =>
    Effect.gen(function* () {
      const { toolkit, handlers, verify } = workshop({ ...broken })
      const wrong = { tool: "patch_file", params: { path: "sum.js", find: "a * b", replace: "a + b" } }
      const policy = plays(calls(wrong), calls(readIt), calls(mend), Proposal.finish("mended"))
      const agent = Agent.make("mender", { policy, toolkit, verify, ...bare })
      const { outcome, events } = yield* run(agent, { steps: 9, toolCalls: 9 }).pipe(Effect.provide(handlers))
      lawful(outcome, events)
      assert.deepStrictEqual([outcome._tag, results(events)], ["Completed", ["ECONFLICT", "ok", "ok"]])
      assert.deepStrictEqual(all(events, "CallEnded")[0], {
        ...all(events, "CallEnded")[0]!,
        retryable: false,
        ran: true,
        stateChanged: false,
        message: "the text was not found",
      })
    }),
  )
})

const usage = { input: 10, output: 5 }

describe("adding up numbers with a model", () => {
  const Sum = Schema.Struct({ sum: Schema.Number })
  const numbers = { "numbers.txt": "3\n8\n12" }
  const reads = { name: "read_file", params: { path: "numbers.txt" } }
  const writes = { name: "write_file", params: { path: "sum.txt", text: "23" } }

  it.effect("reads, writes and finishes in three steps: two calls of tools, and the answer is 23", () =>
    Effect.gen(function* () {
      const { toolkit, handlers, files } = workshop({ ...numbers })
      const model = ScriptedModel.make([
        { calls: [reads], usage },
        { calls: [writes], usage },
        { calls: [{ name: "finish", params: { sum: 23 } }], usage },
      ])
      const agent = Agent.make("adder", { policy: Policy.fromModel(model.model), toolkit, answer: Sum, ...bare })
      const { outcome, events } = yield* run(agent, { steps: 9, toolCalls: 9 }).pipe(Effect.provide(handlers))
      lawful(outcome, events)
      assert.deepStrictEqual([completed(outcome).answer, files["sum.txt"]], [{ sum: 23 }, "23"])
      const { own } = rowOf(outcome)
      assert.deepStrictEqual([own.steps, own.toolCalls, own.inputTokens, own.outputTokens], [3, 2, 30, 15])
      assert.strictEqual(model.pastScript(), 0)
      // What was read is in the next request, word for word.
      assert.include(JSON.stringify(model.requests[1]!.request.messages), "3\\\\n8\\\\n12".replaceAll("\\\\", "\\"))
    }),
  )

  it.effect("fits a budget of three steps and two calls exactly, and not one less", () =>
    Effect.gen(function* () {
      const ends = (steps: number, toolCalls: number) =>
        Effect.gen(function* () {
          const { toolkit, handlers } = workshop({ ...numbers })
          const policy = plays(
            calls({ tool: reads.name, params: reads.params }),
            calls({ tool: writes.name, params: writes.params }),
            Proposal.finish({ sum: 23 }),
          )
          const agent = Agent.make("adder", { policy, toolkit, answer: Sum, ...bare })
          const { outcome, events } = yield* run(agent, { steps, toolCalls }).pipe(Effect.provide(handlers))
          lawful(outcome, events)
          return outcome._tag === "Stopped" ? outcome.reason : outcome._tag
        })
      assert.strictEqual(yield* ends(3, 2), "Completed")
      assert.strictEqual(yield* ends(2, 2), "budget:steps")
      assert.strictEqual(yield* ends(3, 1), "budget:tool_calls")
    }),
  )
})

describe("replies that are wrong", () => {
  it.effect("with a field too many in the arguments do not run: the field is named, and the next call is right", () =>
    Effect.gen(function* () {
      const { toolkit, handlers, files } = workshop({ ...broken })
      const params = { path: "x", text: "t" }
      const policy = plays(
        calls({ tool: "write_file", params: { ...params, mode: "force" } }),
        calls({ tool: "write_file", params }),
        Proposal.finish("done"),
      )
      const agent = Agent.make("a", { policy, toolkit, ...bare })
      const { outcome, events } = yield* run(agent, { steps: 9, toolCalls: 9 }).pipe(Effect.provide(handlers))
      lawful(outcome, events)
      assert.deepStrictEqual([results(events), files["x"]], [["EINVAL", "ok"], "t"])
      assert.include(all(events, "CallEnded")[0]!.message, "mode")
      assert.strictEqual(rowOf(outcome).own.toolCalls, 1)
    }),
  )

  it.effect("of every kind in one run: each is told to the model, what is right runs, and the run completes", () =>
    Effect.gen(function* () {
      const { toolkit, handlers } = workshop({ ...broken })
      const reading = { name: "read_file", params: { path: "sum.js" } }
      const model = ScriptedModel.make([
        {
          calls: [reading, { name: "delete_all", params: {} }, { name: "read_file", params: '{"path":' }, reading],
          usage,
        },
        { text: "It is done.", usage },
        { usage },
        { calls: [reading, { name: "finish", params: { ok: true } }], usage },
        { calls: [{ name: "finish", params: { ok: "yes" } }], usage },
        { calls: [{ name: "finish", params: { ok: true } }], usage },
      ])
      const agent = Agent.make("a", {
        policy: Policy.fromModel(model.model),
        toolkit,
        answer: Schema.Struct({ ok: Schema.Boolean }),
        ...bare,
      })
      const { outcome, events } = yield* run(agent, { steps: 9, toolCalls: 9 }).pipe(Effect.provide(handlers))
      lawful(outcome, events)
      assert.deepStrictEqual(completed(outcome).answer, { ok: true })
      const ended = new Map(all(events, "CallEnded").map((one) => [one.call, one.code ?? one.outcome]))
      assert.deepStrictEqual(
        [...ended].toSorted(([a], [b]) => (a < b ? -1 : 1)),
        [
          ["step-1/call-1", "ok"],
          ["step-1/call-2", "ENOTOOL"],
          ["step-1/call-3", "EINVAL"],
          ["step-1/call-4", "ok"],
          ["step-4/call-1", "ok"],
          ["step-4/call-2", "ENOTOOL"],
        ],
      )
      assert.deepStrictEqual(
        all(events, "Decided").map((one) => one.kind),
        ["call", "invalid", "invalid", "call", "invalid", "finish"],
      )
      const { own } = rowOf(outcome)
      assert.deepStrictEqual([own.steps, own.toolCalls, model.pastScript()], [6, 3, 0])
      const said = (index: number) => JSON.stringify(model.requests[index]!.request.messages.slice(-3))
      assert.include(said(1), "there is no tool delete_all")
      assert.include(said(1), "the arguments are not valid JSON")
      assert.include(said(2), "call finish")
      assert.include(said(3), "empty")
    }),
  )

  it.effect("five times in a row end the run, and not four", () =>
    Effect.gen(function* () {
      const { toolkit, handlers } = workshop({ ...broken })
      const wrong = [
        calls({ tool: "nowhere", params: {} }),
        calls({ tool: "read_file", params: { wrong: 1 } }),
        Proposal.invalid("empty"),
        calls({ tool: "read_file", params: "{" }),
      ] as const
      const of = (policy: Policy.Policy) =>
        run(Agent.make("a", { policy, toolkit, ...bare }), { steps: 19, toolCalls: 9 }).pipe(Effect.provide(handlers))
      const four = yield* of(plays(...wrong, Proposal.finish("done")))
      assert.strictEqual(four.outcome._tag, "Completed")
      const five = yield* of(plays(...wrong, Proposal.invalid("cut"), Proposal.finish("done")))
      assert.deepStrictEqual([stopped(five.outcome).reason, rowOf(five.outcome).own.steps], ["invalid_decisions", 5])
      assert.strictEqual(rowOf(five.outcome).own.toolCalls, 0)
      lawful(five.outcome, five.events)
    }),
  )
})

describe("the lines of the journal", () => {
  type Json = { readonly [key: string]: unknown }

  const linesOf = (events: ReadonlyArray<Event.Recorded>): ReadonlyArray<Json> =>
    events.map((one) => JSON.parse(Line.encode(one).line) as Json)

  it.effect("say how often each tool was called, what failed in which step and why, and what it cost", () =>
    Effect.gen(function* () {
      const { toolkit, handlers, verify } = workshop({ ...broken })
      const nowhere = { tool: "read_file", params: { path: "none" } }
      const policy = plays(
        calls(readIt, nowhere),
        calls(test),
        calls({ ...mend, params: {} }),
        calls(mend, test),
        Proposal.finish("x"),
      )
      const agent = Agent.make("mender", { policy, toolkit, verify, ...bare })
      const { outcome, events } = yield* run(agent, { steps: 9, toolCalls: 9 }).pipe(Effect.provide(handlers))
      lawful(outcome, events)
      const lines = linesOf(events)
      const tagged = (tag: string) => lines.filter((line) => line["_tag"] === tag)
      // jq 'select(._tag == "CallStarted") | .tool' | sort | uniq -c
      const started = Map.groupBy(tagged("CallStarted"), (line) => line["tool"])
      assert.deepStrictEqual(
        [...started].map(([tool, of]) => [tool, of.length]),
        [
          ["read_file", 2],
          ["run_tests", 2],
          ["patch_file", 1],
        ],
      )
      // jq 'select(._tag == "CallEnded" and .outcome == "error") | [.step, .tool, .code]'
      assert.deepStrictEqual(
        tagged("CallEnded")
          .filter((line) => line["outcome"] === "error")
          .map((line) => [line["step"], line["tool"], line["code"], line["ran"]]),
        [
          [1, "read_file", "ENOENT", true],
          [3, "patch_file", "EINVAL", false],
        ],
      )
      const steps = tagged("Settled").reduce(
        (sum, line) => sum + ((line["actual"] as { steps?: number }).steps ?? 0),
        0,
      )
      assert.deepStrictEqual([steps, tagged("RunEnded")[0]!["reason"]], [5, "completed"])
    }),
  )

  it.effect(
    "hold no word of what was read, written or said; that lies beside them, and both together are the events",
    () =>
      Effect.gen(function* () {
        const { toolkit, handlers } = workshop({ "sum.js": "the secret of the file", "sum.test.js": "" })
        const policy = plays(
          calls(readIt, { tool: "write_file", params: { path: "x", text: "the secret of the arguments" } }),
          Proposal.finish("the secret of the answer"),
        )
        const agent = Agent.make("a", { policy, toolkit, ...bare })
        const { events } = yield* run(agent, { steps: 9 }, "the secret of the task").pipe(Effect.provide(handlers))
        const encoded = events.map(Line.encode)
        assert.notInclude(encoded.map(({ line }) => line).join("\n"), "the secret")
        const store = new Map(encoded.flatMap(({ contents }) => contents.map(({ hash, text }) => [hash, text])))
        for (const secret of ["file", "arguments", "answer", "task"]) {
          assert.isTrue(
            [...store.values()].some((text) => text.includes(`the secret of the ${secret}`)),
            secret,
          )
        }
        const decoded = encoded.map(({ line }) => Line.decode(line, (hash) => store.get(hash)))
        assert.deepStrictEqual(
          decoded.map((one) => (one._tag === "Success" ? one.success : one)),
          [...events],
        )
      }),
  )
})
