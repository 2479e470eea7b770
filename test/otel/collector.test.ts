/** The shape of `otel-collector.yaml`; no collector runs here, one does in `npm run test:jaeger`. */
import { assert, describe, it } from "@effect/vitest"
import { parse } from "yaml"
import { readFileSync } from "node:fs"
import { isError, ResultKind, StopReason } from "../../src/event/StopReason.ts"
import * as Names from "../../src/telemetry/Names.ts"

interface Pipeline {
  readonly receivers: ReadonlyArray<string>
  readonly processors: ReadonlyArray<string>
  readonly exporters: ReadonlyArray<string>
}

/** Statements that run in one context. */
interface Group {
  readonly statements: ReadonlyArray<string>
}

/** What `tail_sampling` keeps, as far as it is looked at here. */
interface Policy {
  readonly name: string
  readonly type: string
  readonly status_code?: { readonly status_codes: ReadonlyArray<string> }
  readonly string_attribute?: { readonly key: string; readonly values: ReadonlyArray<string> }
  readonly boolean_attribute?: { readonly key: string; readonly value: boolean }
  readonly probabilistic?: { readonly sampling_percentage: string }
}

type Parts = Readonly<Record<string, unknown>>

interface Collector {
  readonly receivers: Parts
  readonly processors: Parts & {
    readonly "transform/scrub": {
      readonly trace_statements: ReadonlyArray<Group>
      readonly log_statements: ReadonlyArray<Group>
    }
    readonly redaction: { readonly blocked_values: ReadonlyArray<string> }
    readonly tail_sampling: { readonly policies: ReadonlyArray<Policy> }
  }
  readonly connectors: { readonly span_metrics: { readonly dimensions: ReadonlyArray<{ readonly name: string }> } }
  readonly exporters: Parts
  readonly extensions: Parts
  readonly service: {
    readonly extensions: ReadonlyArray<string>
    readonly pipelines: Readonly<Record<string, Pipeline>>
  }
}

const text = readFileSync(new URL("../../otel-collector.yaml", import.meta.url), "utf8")
const collector = parse(text) as Collector
const { connectors, exporters, extensions, processors, receivers, service } = collector
const pipelines = Object.entries(service.pipelines)

// The expressions are Go's, of a part that JavaScript reads alike.
const { log_statements, trace_statements } = processors["transform/scrub"]
const groups = [...trace_statements, ...log_statements]
const deleted = groups
  .flatMap(({ statements }) => statements)
  .flatMap((statement) => {
    const found = /^delete_matching_keys\((\w+)\.attributes, (".*")\)$/.exec(statement)
    return found === null ? [] : [{ of: found[1]!, keys: new RegExp(JSON.parse(found[2]!) as string) }]
  })
const masked = processors.redaction.blocked_values.map((pattern) =>
  pattern.startsWith("(?i)") ? new RegExp(pattern.slice(4), "i") : new RegExp(pattern),
)

describe("otel-collector.yaml", () => {
  it("names in its pipelines what it defines, and defines nothing else", () => {
    const used = (part: keyof Pipeline) => new Set(pipelines.flatMap(([, pipeline]) => pipeline[part]))
    const sorted = (names: Iterable<string>) => [...names].toSorted()
    assert.deepStrictEqual(sorted(used("receivers")), sorted(Object.keys({ ...receivers, ...connectors })))
    assert.deepStrictEqual(sorted(used("exporters")), sorted(Object.keys({ ...exporters, ...connectors })))
    assert.deepStrictEqual(sorted(used("processors")), sorted(Object.keys(processors)))
    assert.deepStrictEqual(sorted(service.extensions), sorted(Object.keys(extensions)))
  })

  it("listens on the loopback interface only", () => {
    const endpoints = text
      .split("\n")
      .filter((line) => !line.trimStart().startsWith("#"))
      .flatMap((line) => /endpoint: ([^\s,}]+)/.exec(line)?.slice(1) ?? [])
    assert.strictEqual(endpoints.length, 5)
    for (const endpoint of endpoints) assert.match(endpoint, /^127\.0\.0\.1:\d+$/)
  })

  it("limits memory first, and batches last where it batches", () => {
    for (const [name, pipeline] of pipelines) {
      assert.strictEqual(pipeline.processors[0], "memory_limiter", name)
      if (pipeline.processors.includes("batch")) assert.strictEqual(pipeline.processors.at(-1), "batch", name)
    }
  })

  it("scrubs whatever leaves it before it waits anywhere, and samples what has been scrubbed and counted", () => {
    const order = ["memory_limiter", "transform/scrub", "redaction", "tail_sampling", "batch"]
    for (const [name, { exporters, processors }] of pipelines) {
      if (exporters.includes("prometheus") || exporters.includes("span_metrics")) continue
      assert.includeMembers([...processors], ["transform/scrub", "redaction"], name)
      assert.deepStrictEqual(
        processors,
        order.filter((part) => processors.includes(part)),
        name,
      )
    }
    const counting = pipelines.filter(([, { exporters }]) => exporters.includes("span_metrics"))
    assert.deepStrictEqual(
      counting.map(([, { processors, receivers }]) => [receivers, processors]),
      [[["otlp"], ["memory_limiter"]]],
    )
  })

  it("takes traces, metrics and logs", () => {
    const taken = pipelines
      .filter(([, { receivers }]) => receivers.includes("otlp"))
      .map(([name]) => name.split("/")[0])
    assert.sameMembers([...new Set(taken)], ["traces", "metrics", "logs"])
  })

  it("never has statements for spans and for events in one group, which would run for events alone", () => {
    const contexts = groups.map(({ statements }) => {
      const named = statements.flatMap((statement) => [...statement.matchAll(/\b(span|spanevent|log)\./g)])
      return [...new Set(named.map(([, context]) => context))]
    })
    assert.deepStrictEqual(contexts, [["span"], ["spanevent"], ["log"]])
  })

  it("deletes the same content from spans, events and logs, and keeps every word of a trace", () => {
    assert.deepStrictEqual(
      deleted.map((one) => one.of),
      ["span", "spanevent", "log"],
    )
    const content = ["gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions"]
    const tools = ["gen_ai.tool.definitions", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"]
    const old = ["gen_ai.prompt", "gen_ai.prompt.0.content", "gen_ai.completion.0.content"]
    for (const { keys, of } of deleted) {
      for (const key of [...content, ...tools, ...old, "exception.message", "exception.stacktrace"]) {
        assert.isTrue(keys.test(key), `${key} of a ${of}`)
      }
      const words = Object.values(Names).filter((name) => typeof name === "string")
      for (const key of [...words, "gen_ai.usage.prompt_tokens", "exception.type"]) {
        assert.isFalse(keys.test(key), `${key} of a ${of}`)
      }
    }
  })

  it("keeps every run that failed or was stopped, by whatever reason, and a share of the rest", () => {
    const { policies } = processors.tail_sampling
    const keeps = (policy: Policy, reason: StopReason, failed: boolean): boolean => {
      if (policy.status_code !== undefined) return failed && policy.status_code.status_codes.includes("ERROR")
      const { key, values = [] } = policy.string_attribute ?? {}
      return key === Names.stopReason && values.some((value) => new RegExp(value).test(reason))
    }
    for (const reason of StopReason.literals) {
      for (const result of ResultKind.literals) {
        const kept = policies.some((policy) => keeps(policy, reason, isError(reason, result)))
        assert.strictEqual(kept, reason !== "completed", `${reason}, ${result}`)
      }
    }
    const flags = policies.flatMap(({ boolean_attribute }) => boolean_attribute ?? [])
    assert.deepInclude(flags, { key: Names.overrun, value: true })
    const rest = policies.filter(({ type }) => type === "probabilistic")
    assert.deepStrictEqual(
      rest.map(({ probabilistic }) => probabilistic?.sampling_percentage),
      ["${env:BURSAR_KEEP_PERCENT:-100}"],
    )
  })

  it("masks keys and addresses, and not the numbers and names of a run", () => {
    for (const value of ["sk-test-0123456789abcdef", "Bearer abcdefghijklmnop1234", "see someone@example.org"]) {
      assert.isTrue(
        masked.some((pattern) => pattern.test(value)),
        value,
      )
    }
    for (const value of ["gpt-5-mini", "root/critic", "4bf92f3577b34da6a3ce929d0e0e4736", "budget:output_tokens"]) {
      assert.isFalse(
        masked.some((pattern) => pattern.test(value)),
        value,
      )
    }
  })

  it("counts by words of few values, each a word of a trace", () => {
    const dimensions = connectors.span_metrics.dimensions.map(({ name }) => name)
    assert.includeMembers(
      Object.values(Names).filter((name) => typeof name === "string"),
      dimensions,
    )
    for (const name of dimensions) assert.notMatch(name, /\.id$|path|call/)
  })
})
