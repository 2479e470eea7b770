import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { Budget } from "../../src/index.ts"
import { TestingServer } from "../../src/testing/index.ts"
import { aboutQuestion } from "../../examples/research/Quote.ts"
import * as OtlpReceiver from "../support/OtlpReceiver.ts"
import * as Job from "./Job.ts"
import { script } from "./ResearchModel.ts"

interface Printed {
  readonly question: string
  readonly reason: string
  readonly run: string
  readonly documents: { readonly root: string; readonly files: number; readonly skipped: ReadonlyArray<unknown> }
  readonly report: {
    readonly summary: string
    readonly findings: ReadonlyArray<{ readonly quote: string; readonly file: string; readonly line: number }>
    readonly missing: ReadonlyArray<string>
  }
  readonly agents: ReadonlyArray<{ readonly agent: string; readonly reason: string }>
  readonly accounts: ReadonlyArray<Budget.Row>
  readonly journal: string
}

const parse = (stdout: string): Printed => JSON.parse(stdout) as Printed

/** What `grep` finds of a quote, as "line:text". */
const grep = (quote: string, file: string): string =>
  spawnSync("grep", ["-nF", "--", quote, file], { encoding: "utf8" }).stdout

const own = (rows: ReadonlyArray<Budget.Row>, dimension: Budget.Dimension): number =>
  rows.reduce((sum, row) => sum + row.own[dimension], 0)

const answerable = [
  "What happens to a request when it is aborted?",
  "How do I send a request through a proxy?",
  "How do I mock a request in tests?",
]

describe("the research job, decided by plain functions", () => {
  for (const question of answerable) {
    it.live(`answers with citations that grep finds: ${question}`, () =>
      Effect.gen(function* () {
        const cwd = yield* Job.folder
        const { code, stdout } = yield* Job.run(cwd, [question, "--json"])
        const { agents, accounts, documents, report } = parse(stdout)
        assert.strictEqual(code, 0)
        assert.isAtLeast(report.findings.length, 3)
        assert.isAtLeast(agents.length, 4)
        assert.deepStrictEqual(Budget.imbalances(accounts), [])
        for (const { quote, file, line } of report.findings) {
          const places = grep(quote, join(documents.root, file)).split("\n")
          assert.isTrue(
            places.some((place) => place.startsWith(`${line}:`)),
            `${file}:${line} ${quote}`,
          )
          assert.isTrue(aboutQuestion(quote, question), quote)
        }
      }).pipe(Effect.scoped),
    )
  }

  it.live("says that nothing was found when the documents cannot answer", () =>
    Effect.gen(function* () {
      const cwd = yield* Job.folder
      const { code, stdout } = yield* Job.run(cwd, ["How do I bake sourdough bread?"])
      assert.strictEqual(code, 0)
      assert.include(stdout, "Nothing found")
      assert.notMatch(stdout, /^1\. /m)
    }).pipe(Effect.scoped),
  )

  it.live("stops at six steps with a partial report that says what is missing", () =>
    Effect.gen(function* () {
      const cwd = yield* Job.folder
      const { code, stdout } = yield* Job.run(cwd, ["--steps", "6", "--json"])
      const { accounts, agents, report } = parse(stdout)
      assert.strictEqual(code, 3)
      assert.isTrue(agents.some((agent) => agent.reason === "budget:steps"))
      assert.isAbove(report.findings.length, 0)
      assert.isAbove(report.missing.length, 0)
      assert.strictEqual(own(accounts, "steps"), 6)
      assert.deepStrictEqual(Budget.imbalances(accounts), [])
    }).pipe(Effect.scoped),
  )

  it.live("leaves a complete journal that is JSON lines without texts", () =>
    Effect.gen(function* () {
      const cwd = yield* Job.folder
      yield* Job.run(cwd, ["--researchers", "2"])
      const events = Job.journalIn(cwd)
      assert.deepStrictEqual(
        events.map((event) => event["seq"]),
        events.map((_, index) => index),
      )
      assert.strictEqual(events[0]?.["_tag"], "RunStarted")
      assert.strictEqual(events.at(-1)?.["_tag"], "RunEnded")
      assert.notInclude(JSON.stringify(events), "What happens to a request")
    }).pipe(Effect.scoped),
  )
})

describe("options that cannot be used", () => {
  const wrong: ReadonlyArray<readonly [args: ReadonlyArray<string>, sentence: RegExp]> = [
    [["--money", "-5"], /--money is "-5": give US dollars/],
    [["--money", "0.50"], /--money is "0.50": give US dollars/],
    [["--steps", "-1"], /--steps is "-1": give a whole number/],
    [["--steps", "abc"], /--steps is "abc": give a whole number/],
    [["--steps", "0"], /steps: lead would get 0 but needs at least 1/],
    [["--wall-clock", "soon"], /--wall-clock is "soon": give a time/],
    [["--researchers", "0"], /--researchers is "0": give a whole number from 1/],
    [["--docs", "/nowhere"], /"\/nowhere" does not exist/],
    [["--docs", "."], /holds no usable \.md/],
    [["--price", "cheap"], /--price is "cheap": give US dollars per million/],
    [["--unknown"], /--unknown/],
  ]
  for (const [args, sentence] of wrong) {
    it.live(`says so in a sentence: ${args.join(" ")}`, () =>
      Effect.gen(function* () {
        const cwd = yield* Job.folder
        const { code, stdout, stderr } = yield* Job.run(cwd, args)
        assert.strictEqual(code, 2)
        assert.match(stdout + stderr, sentence)
        assert.notMatch(stdout + stderr, /\n\s+at .*:\d+:\d+/)
        assert.notMatch(stdout, /lead starts/)
      }).pipe(Effect.scoped),
    )
  }

  it.live("money may be capped at zero where no model is asked", () =>
    Effect.gen(function* () {
      const cwd = yield* Job.folder
      const { code, stdout } = yield* Job.run(cwd, ["--money", "0", "--json"])
      assert.strictEqual(code, 0)
      assert.strictEqual(own(parse(stdout).accounts, "money"), 0)
    }).pipe(Effect.scoped),
  )

  it.live("a folder with a huge, a binary, a doubled and a broken file is read as far as it can be", () =>
    Effect.gen(function* () {
      const cwd = yield* Job.folder
      const docs = join(cwd, "docs")
      mkdirSync(docs)
      writeFileSync(join(docs, "huge.md"), "# Huge\n")
      truncateSync(join(docs, "huge.md"), 50 * 1024 * 1024)
      writeFileSync(join(docs, "binary.md"), Buffer.from([35, 32, 0, 1, 2, 3]))
      symlinkSync("/nonexistent", join(docs, "broken.md"))
      for (const name of ["one.md", "two.md"])
        writeFileSync(join(docs, name), "# Aborting\n\nA request that is aborted fails.\n")
      const { code, stdout } = yield* Job.run(cwd, ["--docs", docs, "--json"])
      const { documents, report } = parse(stdout)
      assert.strictEqual(code, 0)
      assert.strictEqual(documents.files, 1)
      assert.strictEqual(documents.skipped.length, 3)
      assert.strictEqual(report.findings.length, 1)
    }).pipe(Effect.scoped),
  )
})

const modelEnv = (url: string) => ({ OPENAI_API_KEY: "sk-none", OPENAI_BASE_URL: url, OPENAI_MODEL: "scripted" })

describe("the research job, decided by a language model over HTTP", () => {
  it.live("the table's tokens are those of the provider's own ledger, to the unit", () =>
    Effect.gen(function* () {
      const cwd = yield* Job.folder
      const server = yield* TestingServer.make({ script })
      const { code, stdout } = yield* Job.run(cwd, ["--json"], modelEnv(server.url))
      const { accounts, agents, report } = parse(stdout)
      assert.strictEqual(code, 0, stdout)
      assert.strictEqual(agents.length, 4)
      assert.strictEqual(report.summary, "Reported by a model.")
      assert.isAtLeast(report.findings.length, 1)
      assert.strictEqual(own(accounts, "inputTokens"), server.ledger.inputTokens)
      assert.strictEqual(own(accounts, "outputTokens"), server.ledger.outputTokens)
      assert.strictEqual(own(accounts, "steps"), server.ledger.requests)
      assert.deepStrictEqual(Budget.imbalances(accounts), [])
    }).pipe(Effect.scoped),
  )

  it.live("money is capped and booked at the price that was given", () =>
    Effect.gen(function* () {
      const cwd = yield* Job.folder
      const server = yield* TestingServer.make({ script })
      const args = ["--json", "--money", "0.50 USD", "--price", "0.25/2"]
      const { code, stdout } = yield* Job.run(cwd, args, modelEnv(server.url))
      const { accounts } = parse(stdout)
      assert.strictEqual(code, 0, stdout)
      const { inputTokens, outputTokens } = server.ledger
      assert.strictEqual(own(accounts, "money"), inputTokens * 250 + outputTokens * 2000)
    }).pipe(Effect.scoped),
  )

  it.live("under a money cap a model without a price is never asked", () =>
    Effect.gen(function* () {
      const cwd = yield* Job.folder
      const server = yield* TestingServer.make({ script })
      const { code, stdout } = yield* Job.run(cwd, ["--json", "--money", "1 USD"], modelEnv(server.url))
      assert.strictEqual(code, 1)
      assert.strictEqual(parse(stdout).reason, "unpriced")
      assert.strictEqual(server.ledger.requests, 0)
      const told = yield* Job.run(cwd, ["--money", "1 USD"], modelEnv(server.url))
      assert.include(told.stdout, "no price is known for the model scripted: give one, or leave money uncapped")
    }).pipe(Effect.scoped),
  )

  it.live("a server that dies in mid-run ends in model_error with everything kept", () =>
    Effect.gen(function* () {
      const cwd = yield* Job.folder
      const server = yield* TestingServer.make({ script, latency: "30 millis" })
      const job = yield* Job.start(cwd, ["--json"], modelEnv(server.url))
      yield* server.until((ledger) => ledger.replies >= 3)
      yield* server.kill
      const { code, stdout } = yield* Effect.promise(() => job.ended)
      const { accounts, agents, reason } = parse(stdout)
      assert.strictEqual(code, 1, stdout)
      assert.strictEqual(reason, "model_error")
      assert.isTrue(agents.every((agent) => agent.reason === "model_error" || agent.reason === "completed"))
      assert.isAtLeast(own(accounts, "inputTokens"), server.ledger.inputTokens)
      assert.deepStrictEqual(Budget.imbalances(accounts), [])
      assert.strictEqual(Job.journalIn(cwd).at(-1)?.["_tag"], "RunEnded")
    }).pipe(Effect.scoped),
  )

  it.live("Ctrl-C cancels, prints the partial report, exits 130 and leaves a complete journal", () =>
    Effect.gen(function* () {
      const cwd = yield* Job.folder
      const server = yield* TestingServer.make({ script, latency: "20 seconds" })
      const job = yield* Job.start(cwd, [], modelEnv(server.url))
      yield* server.until((ledger) => ledger.requests >= 1)
      job.process.kill("SIGINT")
      const { code, stdout } = yield* Effect.promise(() => job.ended)
      assert.strictEqual(code, 130)
      assert.include(stdout, "lead ends: cancelled")
      assert.include(stdout, "No report: the run stopped (cancelled)")
      assert.include(stdout, "steps  ")
      const events = Job.journalIn(cwd)
      assert.strictEqual(events.at(-1)?.["_tag"], "RunEnded")
      assert.strictEqual(events.at(-1)?.["reason"], "cancelled")
      assert.strictEqual(events.filter((event) => event["_tag"] === "Held").length, events.filter(isResolution).length)
      yield* server.until((ledger) => ledger.aborted >= 1)
    }).pipe(Effect.scoped),
  )

  it.live("a second Ctrl-C ends it at once", () =>
    Effect.gen(function* () {
      const cwd = yield* Job.folder
      const server = yield* TestingServer.make({ script, latency: "20 seconds" })
      // A collector that never answers: the end of the process waits for it, long enough for another Ctrl-C.
      const receiver = yield* OtlpReceiver.make({ silent: true })
      const env = { ...modelEnv(server.url), OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url }
      const job = yield* Job.start(cwd, [], env)
      yield* server.until((ledger) => ledger.requests >= 1)
      job.process.kill("SIGINT")
      yield* Effect.promise(() => job.printed("Journal:"))
      job.process.kill("SIGINT")
      const { code, stderr } = yield* Effect.promise(() => job.ended)
      assert.strictEqual(code, 130)
      assert.include(stderr, "ended at once")
    }).pipe(Effect.scoped),
  )
})

const isResolution = (event: Readonly<Record<string, unknown>>): boolean =>
  ["Settled", "Voided", "Assumed"].includes(String(event["_tag"]))

describe("the trace of the research job", () => {
  it.live("is one tree that mirrors the budget tree, with usage on model calls alone", () =>
    Effect.gen(function* () {
      const cwd = yield* Job.folder
      const server = yield* TestingServer.make({ script })
      const receiver = yield* OtlpReceiver.make()
      const env = { ...modelEnv(server.url), OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url }
      const { code, stdout } = yield* Job.run(cwd, ["--json"], env)
      const { accounts, run } = parse(stdout)
      assert.strictEqual(code, 0, stdout)
      const { spans } = receiver
      const byId = new Map(spans.map((span) => [span.spanId, span]))
      const roots = spans.filter((span) => !byId.has(span.parentSpanId ?? ""))
      assert.strictEqual(roots.length, 1)
      assert.strictEqual(roots[0]?.name, "invoke_agent lead")
      assert.strictEqual(new Set(spans.map((span) => span.traceId)).size, 1)
      assert.isTrue(spans.every((span) => span.attributes["bursar.run.id"] === run))
      const agentAbove = (id: string | undefined): string | undefined => {
        const span = id === undefined ? undefined : byId.get(id)
        if (span === undefined) return undefined
        return span.name.startsWith("invoke_agent")
          ? String(span.attributes["bursar.node.id"])
          : agentAbove(span.parentSpanId)
      }
      const agents = spans.filter((span) => span.name.startsWith("invoke_agent"))
      const tree = agents
        .map((span) => [span.attributes["bursar.node.id"], agentAbove(span.parentSpanId)].join(" < "))
        .toSorted()
      assert.deepStrictEqual(tree, accounts.map((row) => [row.account, row.parent].join(" < ")).toSorted())
      const withUsage = spans.filter((span) =>
        Object.keys(span.attributes).some((key) => key.startsWith("gen_ai.usage.")),
      )
      assert.isTrue(withUsage.every((span) => span.name.startsWith("chat ")))
      const sum = (key: string) => withUsage.reduce((total, span) => total + Number(span.attributes[key]), 0)
      assert.strictEqual(sum("gen_ai.usage.input_tokens"), own(accounts, "inputTokens"))
      assert.strictEqual(sum("gen_ai.usage.output_tokens"), own(accounts, "outputTokens"))
      assert.notInclude(receiver.bytes(), "What happens to a request")
    }).pipe(Effect.scoped),
  )

  it.live("is not made without the variable", () =>
    Effect.gen(function* () {
      const cwd = yield* Job.folder
      const receiver = yield* OtlpReceiver.make()
      const { code } = yield* Job.run(cwd, ["--json"])
      assert.strictEqual(code, 0)
      assert.strictEqual(receiver.requests.length, 0)
      assert.isTrue(existsSync(join(cwd, ".bursar/runs")))
    }).pipe(Effect.scoped),
  )
})
