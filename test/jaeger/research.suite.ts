/** The research job, run as a user runs it, through a collector into Jaeger, and read back from there. */
import { assert, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import { find, follow, search, type StoredTrace } from "../../examples/jaeger/Query.ts"
import type { Budget } from "../../src/index.ts"
import * as Names from "../../src/telemetry/Names.ts"
import { TestingServer } from "../../src/testing/index.ts"
import * as Job from "../examples/Job.ts"
import { script } from "../examples/ResearchModel.ts"
import { live, samples, Standing, standing, sum, until } from "./Standing.ts"

interface Printed {
  readonly reason: string
  readonly run: string
  readonly agents: ReadonlyArray<{ readonly agent: string; readonly reason: string }>
  readonly accounts: ReadonlyArray<Budget.Row>
}

const price = "0.25/2"

/** Runs the job, and answers with what it printed and what its model billed. */
const research = (otlp: string, args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const cwd = yield* Job.folder
    const server = yield* TestingServer.make({ script })
    const model = { OPENAI_API_KEY: "sk-none", OPENAI_BASE_URL: server.url, OPENAI_MODEL: "scripted" }
    const env = { ...model, OTEL_EXPORTER_OTLP_ENDPOINT: otlp }
    const { stderr, stdout } = yield* Job.run(cwd, ["--json", "--price", price, ...args], env)
    assert.strictEqual(stderr, "")
    return { printed: JSON.parse(stdout) as Printed, ledger: server.ledger, events: Job.journalIn(cwd) }
  })

/** The one trace of a run, when as many spans of it are stored as the collector has taken since `before`. */
const whole = ({ query, telemetry }: Standing["Service"], run: string, before: number) =>
  Effect.gen(function* () {
    const accepted = sum(yield* samples(telemetry), "otelcol_receiver_accepted_spans") - before
    const traces = yield* until(
      `all ${accepted} spans of ${run}`,
      search(query, { service: "bursar", tags: { "bursar.run.id": run } }),
      (traces) => traces.reduce((total, { spans }) => total + spans.length, 0) >= accepted,
    )
    assert.deepStrictEqual([traces.length, traces[0]?.spans.length], [1, accepted])
    return { trace: traces[0]!, accepted }
  })

const accepted = ({ telemetry }: Standing["Service"]) =>
  Effect.map(samples(telemetry), (all) => sum(all, "otelcol_receiver_accepted_spans"))

const own = (rows: ReadonlyArray<Budget.Row>, dimension: Budget.Dimension): number =>
  rows.reduce((total, row) => total + row.own[dimension], 0)

const total = ({ spans }: StoredTrace, key: string): number =>
  spans.reduce((total, { attributes }) => total + Number(attributes[key] ?? 0), 0)

/** "child < parent" for every agent, by the spans. */
const agentTree = ({ spans }: StoredTrace): ReadonlyArray<string> => {
  const byId = new Map(spans.map((span) => [span.spanId, span]))
  const isAgent = (name: string) => name.startsWith("invoke_agent ")
  const above = (id: string | undefined): unknown => {
    const span = byId.get(id ?? "")
    if (span === undefined) return undefined
    return isAgent(span.name) ? span.attributes["bursar.node.id"] : above(span.parentSpanId)
  }
  return spans
    .filter(({ name }) => isAgent(name))
    .map(({ attributes, parentSpanId }) => `${String(attributes["bursar.node.id"])} < ${String(above(parentSpanId))}`)
    .toSorted()
}

const orphans = ({ spans }: StoredTrace): number => {
  const ids = new Set(spans.map(({ spanId }) => spanId))
  return spans.filter(({ parentSpanId }) => parentSpanId !== undefined && !ids.has(parentSpanId)).length
}

const links = JSON.parse(fs.readFileSync("examples/jaeger/jaeger-ui.json", "utf8")) as {
  readonly menu: ReadonlyArray<{ readonly items: ReadonlyArray<{ readonly label: string; readonly url: string }> }>
  readonly linkPatterns: ReadonlyArray<{ readonly key: string; readonly url: string }>
}

const saved = (label: string): string =>
  links.menu.flatMap(({ items }) => items).find((one) => one.label === label)!.url

layer(standing(), live)("the research job in Jaeger", (it) => {
  it.effect("is one tree that is the budget tree, and its usage is the ledger", (context) =>
    Effect.gen(function* () {
      const stack = yield* Standing
      const before = yield* accepted(stack)
      const { events, ledger, printed } = yield* research(stack.otlp, ["--money", "0.50 USD"])
      const { trace, accepted: sent } = yield* whole(stack, printed.run, before)
      const { spans } = trace
      const roots = spans.filter(({ parentSpanId }) => parentSpanId === undefined)
      assert.deepStrictEqual(
        roots.map(({ name }) => name),
        ["invoke_agent lead"],
      )
      assert.strictEqual(orphans(trace), 0)
      assert.deepStrictEqual(
        spans.flatMap(({ warnings }) => warnings),
        [],
      )
      const books = printed.accounts.map((row) => `${row.account} < ${String(row.parent)}`).toSorted()
      assert.deepStrictEqual(agentTree(trace), books)
      const journalled = events.filter((event) => event["_tag"] === "AgentStarted").map((event) => event["agent"])
      assert.sameMembers(
        printed.accounts.map((row) => row.account),
        journalled,
      )
      for (const [key, dimension] of [
        ["gen_ai.usage.input_tokens", "inputTokens"],
        ["gen_ai.usage.output_tokens", "outputTokens"],
        ["bursar.cost.nano_usd", "money"],
      ] as const) {
        assert.strictEqual(total(trace, key), own(printed.accounts, dimension), key)
      }
      assert.strictEqual(total(trace, "gen_ai.usage.input_tokens"), ledger.inputTokens)
      assert.isAbove(ledger.inputTokens, 0)
      assert.deepStrictEqual(
        spans.filter(({ attributes, name }) => "gen_ai.usage.input_tokens" in attributes && !name.startsWith("chat ")),
        [],
      )
      assert.notInclude(trace.text, "What happens to a request")
      context.task.meta.figures = { "spans sent": sent, "spans stored": spans.length, orphans: orphans(trace) }
    }).pipe(Effect.scoped),
  )

  it.effect("is found by one query when it was stopped for money, and then alone", (context) =>
    Effect.gen(function* () {
      const stack = yield* Standing
      const before = yield* accepted(stack)
      const done = yield* research(stack.otlp, ["--money", "0.50 USD"])
      assert.strictEqual(done.printed.reason, "completed")
      yield* whole(stack, done.printed.run, before)
      const stopped = yield* Effect.forEach(["0.0006 USD", "0.001 USD"], (money) =>
        Effect.gen(function* () {
          const before = yield* accepted(stack)
          const { printed } = yield* research(stack.otlp, ["--money", money])
          assert.strictEqual(printed.reason, "budget:money", money)
          yield* whole(stack, printed.run, before)
          return printed.run
        }),
      )
      const tags = { [Names.runStopReason]: "budget:money" }
      const found = yield* search(stack.query, { service: "bursar", tags })
      assert.sameMembers(
        found.map(({ spans }) => spans[0]!.attributes["bursar.run.id"]),
        stopped,
      )
      const again = yield* follow(stack.query, saved("Stopped for money"))
      assert.sameMembers(
        again.map(({ traceId }) => traceId),
        found.map(({ traceId }) => traceId),
      )
      context.task.meta.figures = { "runs stopped for money": stopped.length, "found by the tag": found.length }
    }).pipe(Effect.scoped),
  )

  it.effect("has pages that are told the saved searches and the links", () =>
    Effect.gen(function* () {
      const { query } = yield* Standing
      const page = yield* Effect.promise(() => fetch(query).then((response) => response.text()))
      const told = /JAEGER_CONFIG = (.*);/.exec(page)?.[1]
      assert.deepStrictEqual(JSON.parse(told ?? "null"), links)
      assert.strictEqual(yield* find(query, "0123456789abcdef0123456789abcdef"), undefined)
    }),
  )
})
