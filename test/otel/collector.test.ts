/** The shape of `otel-collector.yaml`; no collector runs here. */
import { assert, describe, it } from "@effect/vitest"
import { parse } from "yaml"
import { readFileSync } from "node:fs"
import * as Names from "../../src/telemetry/Names.ts"

interface Pipeline {
  readonly receivers: ReadonlyArray<string>
  readonly processors: ReadonlyArray<string>
  readonly exporters: ReadonlyArray<string>
}

type Parts = Readonly<Record<string, unknown>>

interface Collector {
  readonly receivers: Parts
  readonly processors: Parts & {
    readonly "transform/scrub": {
      readonly trace_statements: ReadonlyArray<{ readonly statements: ReadonlyArray<string> }>
    }
    readonly redaction: { readonly blocked_values: ReadonlyArray<string> }
  }
  readonly connectors: { readonly spanmetrics: { readonly dimensions: ReadonlyArray<{ readonly name: string }> } }
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
const statements = processors["transform/scrub"].trace_statements.flatMap(({ statements }) => statements)
const deleted = statements.flatMap((statement) => {
  const pattern = /^delete_matching_keys\(attributes, (".*")\)$/.exec(statement)?.[1]
  return pattern === undefined ? [] : [new RegExp(JSON.parse(pattern) as string)]
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

  it("scrubs whatever reaches a store of traces, and drops no span", () => {
    for (const [name, pipeline] of pipelines.filter(([, { exporters }]) => exporters.includes("otlp_grpc/jaeger"))) {
      assert.includeMembers([...pipeline.processors], ["transform/scrub", "redaction"], name)
    }
    assert.deepStrictEqual(
      Object.keys(processors).filter((name) => /sampl|filter/.test(name)),
      [],
    )
  })

  it("deletes content and keeps every word of a trace", () => {
    const content = ["gen_ai.input.messages", "gen_ai.system_instructions", "gen_ai.tool.call.arguments"]
    for (const key of [...content, "gen_ai.tool.call.result", "exception.stacktrace"]) {
      assert.isTrue(
        deleted.some((pattern) => pattern.test(key)),
        key,
      )
    }
    for (const key of Object.values(Names).filter((name) => typeof name === "string")) {
      assert.isFalse(
        deleted.some((pattern) => pattern.test(key)),
        key,
      )
    }
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
    const dimensions = connectors.spanmetrics.dimensions.map(({ name }) => name)
    assert.includeMembers(
      Object.values(Names).filter((name) => typeof name === "string"),
      dimensions,
    )
    for (const name of dimensions) assert.notMatch(name, /\.id$|path|call/)
  })
})
