/**
 * Scrubbing and redaction of `otel-collector.yaml` in a real collector: what a program writes that it should not have
 * written, in every place of a span where an attribute can stand, does not reach Jaeger; numbers and names do.
 */
import { assert, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { find, type StoredTrace } from "../../examples/jaeger/Query.ts"
import * as Names from "../../src/telemetry/Names.ts"
import { type Attributes, idOf, send, type Sender, type SentSpan } from "./Sending.ts"
import { live, Standing, standing, until } from "./Standing.ts"

/** Content under the keys that exist for it. */
const content = [
  "gen_ai.system_instructions",
  "gen_ai.input.messages",
  "gen_ai.output.messages",
  "gen_ai.tool.definitions",
  "gen_ai.tool.call.arguments",
  "gen_ai.tool.call.result",
  "gen_ai.prompt.0.content",
  "gen_ai.completion.0.content",
  "exception.message",
  "exception.stacktrace",
]

/** Secrets under keys that are not for them. */
const secrets = {
  key: (canary: string) => `the key is sk-proj-${canary}, keep it`,
  bearer: (canary: string) => `Authorization: Bearer ${canary}`,
  address: (canary: string) => `${canary}@example.org`,
} as const

/** What is sent, and what must not arrive of it. */
const canaries: Array<string> = []

const canary = (where: string): string => {
  const text = `canary${idOf(16, where)}`
  canaries.push(text)
  return text
}

const contentIn = (where: string): Attributes =>
  Object.fromEntries(content.map((key) => [key, `somebody wrote ${canary(`${where}/${key}`)}`]))

const secretsIn = (where: string): Attributes =>
  Object.fromEntries(
    Object.entries(secrets).flatMap(([kind, secretOf]) => [
      [`note.${kind}`, secretOf(canary(`${where}/${kind}`))],
      [`notes.${kind}`, ["harmless", secretOf(canary(`${where}/list/${kind}`))]],
    ]),
  )

/** Facts that have to come through as they are. */
const facts: Attributes = {
  [Names.runId]: "20261201-120000-abcdef",
  [Names.stopReason]: "budget:output_tokens",
  [Names.requestModel]: "gpt-5-mini",
  [Names.usageInputTokens]: 1234,
  [Names.overrun]: true,
  [Names.responseFinishReasons]: ["stop", "length"],
  "exception.type": "TypeError",
}

const spanOf = (name: string, more: Partial<SentSpan> = {}): SentSpan => ({
  traceId: idOf(16, name),
  spanId: idOf(8, name),
  name,
  startMillis: Date.now() - 10,
  endMillis: Date.now(),
  attributes: facts,
  ...more,
})

const service = { "service.name": "bursar" }

const sentence = "The model failed for good."

/** A span each, with what it carries and who sends it. */
const cases: ReadonlyArray<readonly [what: string, span: SentSpan, sender?: Partial<Sender>]> = [
  ["content of a span", spanOf("content of a span", { attributes: { ...facts, ...contentIn("span") } })],
  ["secrets of a span", spanOf("secrets of a span", { attributes: { ...facts, ...secretsIn("span") } })],
  [
    "an event",
    spanOf("an event", {
      events: [{ name: "exception", attributes: { ...facts, ...contentIn("event"), ...secretsIn("event") } }],
    }),
  ],
  ["a resource", spanOf("a resource"), { resource: { ...service, ...secretsIn("resource") } }],
  ["a scope", spanOf("a scope"), { scopeAttributes: secretsIn("scope") }],
  [
    "the status of a foreign span",
    spanOf("the status of a foreign span", { error: `provider said ${canary("status")}` }),
    { scope: "somebody else" },
  ],
  [
    "a text too long to keep",
    spanOf("a text too long to keep", { attributes: { ...facts, long: "x".repeat(5000) + canary("long") } }),
  ],
]

const factsOf = (attributes: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(
    Object.keys(facts).map((key) => {
      const value = attributes[key]
      return [key, Array.isArray(facts[key]) ? JSON.parse(String(value)) : value]
    }),
  )

layer(standing(), live)("what a program should not have written", (it) => {
  it.effect("does not reach Jaeger, and what it should have written does", (context) =>
    Effect.gen(function* () {
      const { otlp, query } = yield* Standing
      for (const [, span, sender] of cases) yield* send(otlp, [span], { resource: service, ...sender })
      const traces = yield* Effect.forEach(cases, ([what, span]) =>
        until(what, find(query, span.traceId), (trace) => trace !== undefined),
      )
      const stored = traces as ReadonlyArray<StoredTrace>
      const hits = stored.flatMap(({ text }, n) =>
        canaries.filter((canary) => text.includes(canary)).map((canary) => `${canary} in ${cases[n]![0]}`),
      )
      assert.deepStrictEqual(hits, [])
      for (const { spans } of stored) {
        const [span] = spans
        assert.deepStrictEqual(factsOf(span!.attributes), facts)
        for (const event of span!.events) assert.deepStrictEqual(factsOf(event.attributes), facts)
      }
      // Three kinds of secret, in a text and in a list each.
      const masked = stored[1]!.spans[0]!.attributes["redaction.masked.count"]
      assert.strictEqual(masked, 2 * Object.keys(secrets).length)
      assert.isAbove(canaries.length, 0)
      context.task.meta.figures = { "canaries sent": canaries.length, "canary hits": hits.length }
    }),
  )

  it.effect("but a failure of Bursar's own keeps its sentence", () =>
    Effect.gen(function* () {
      const { otlp, query } = yield* Standing
      const span = spanOf("a failed run", { error: sentence })
      yield* send(otlp, [span], { resource: service })
      const trace = yield* until("the failed run", find(query, span.traceId), (trace) => trace !== undefined)
      assert.strictEqual(trace?.spans[0]?.attributes["otel.status_description"], sentence)
      assert.strictEqual(trace?.spans[0]?.attributes["error"], true)
    }),
  )
})
