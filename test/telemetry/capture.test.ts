import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Agent, Capture, Policy } from "../../src/index.ts"
import * as Names from "../../src/telemetry/Names.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { canary, play, stops } from "./everyStop.ts"
import { traced } from "./InMemory.ts"
import type { Row } from "./Row.ts"

const completed = stops.find(({ reason }) => reason === "completed")!
const keys: ReadonlyArray<string> = Object.values(Names.content)

const shown = (options: Capture.Options | undefined) =>
  Effect.map(Effect.provideService(traced(play(completed)), Capture.Content, options), ({ rows }) => rows)

const contentOf = (rows: ReadonlyArray<Row>) =>
  rows.flatMap(({ attributes, name }) =>
    Object.entries(attributes).flatMap(([key, value]) =>
      keys.includes(key) ? [[name, key, String(value)] as const] : [],
    ),
  )

describe("content", () => {
  it.effect("is not there unless it is asked for", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(contentOf(yield* shown(undefined)), [])
    }),
  )

  it.effect("that is asked for stands on agents and calls, as JSON that a viewer reads", () =>
    Effect.gen(function* () {
      const content = contentOf(yield* shown({}))
      const lead = content.filter(([name]) => name === "invoke_agent lead")
      const of = (content: string) => [{ type: "text", content }]
      assert.deepStrictEqual(
        lead.map(([, key, text]) => [key, JSON.parse(text)]),
        [
          ["gen_ai.system_instructions", of(canary)],
          ["gen_ai.input.messages", [{ role: "user", parts: of(canary) }]],
          ["gen_ai.output.messages", [{ role: "assistant", parts: of(`${canary} final`) }]],
        ],
      )
      assert.deepStrictEqual(
        content.filter(([name]) => name === "execute_tool read").map(([, key, text]) => [key, JSON.parse(text)]),
        [
          ["gen_ai.tool.call.arguments", { key: `${canary} x` }],
          ["gen_ai.tool.call.result", `${canary} ${canary} x`],
        ],
      )
    }),
  )

  it.effect("stands on requests to models as well: what was asked, offered and replied", () =>
    Effect.gen(function* () {
      const usage = { input: 10, output: 5 }
      const { model } = ScriptedModel.make([{ text: `${canary} reply`, usage, id: "resp_1" }])
      const agent = Agent.make("a", { instructions: canary, policy: Policy.fromModel(model, { maxOutputTokens: 20 }) })
      const run = Agent.run(agent, canary, { budget: { steps: 3 } })
      const { rows } = yield* Effect.provideService(traced(run), Capture.Content, {})
      const chat = rows.find(({ name }) => name === "chat scripted")!
      const read = (key: string) => JSON.parse(String(chat.attributes[key])) as unknown
      const [first] = read("gen_ai.input.messages") as ReadonlyArray<unknown>
      assert.deepStrictEqual(first, { role: "user", parts: [{ type: "text", content: canary }] })
      assert.match(JSON.stringify(read("gen_ai.system_instructions")), new RegExp(canary))
      assert.deepStrictEqual(read("gen_ai.tool.definitions"), [])
      const parts = [{ type: "text", content: `${canary} reply` }]
      assert.deepStrictEqual(read("gen_ai.output.messages"), [{ role: "assistant", parts, finish_reason: "stop" }])
      assert.strictEqual(chat.attributes["gen_ai.response.id"], "resp_1")
      assert.match(String(chat.attributes["bursar.prompt.hash"]), /^sha256:/)
    }),
  )

  it.effect("goes through the redactor first, which is told what it is and whose", () =>
    Effect.gen(function* () {
      const seen: Array<Capture.Piece> = []
      const redact = (piece: Capture.Piece) => {
        seen.push(piece)
        return piece.text.replaceAll(canary, "***")
      }
      const content = contentOf(yield* shown({ redact }))
      assert.isAbove(content.length, 5)
      assert.notInclude(JSON.stringify(content), canary)
      assert.deepInclude(seen, {
        key: "gen_ai.tool.call.arguments",
        text: JSON.stringify({ key: `${canary} x` }),
        agent: "lead",
      })
      assert.sameMembers([...new Set(seen.map(({ agent }) => agent))], ["lead", "idle"])
    }),
  )

  const nothing: ReadonlyArray<readonly [string, Capture.Options["redact"]]> = [
    ["fails", () => assert.fail("no")],
    ["gives nothing", () => undefined],
    ["gives no text", () => 5 as never],
  ]
  for (const [name, redact] of nothing) {
    it.effect(`is dropped where the redactor ${name}`, () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(contentOf(yield* shown({ redact })), [])
      }),
    )
  }
})

describe("a value that is written", () => {
  const of = { key: "k", agent: undefined }
  const bytes = (text: string | undefined) => Buffer.byteLength(text ?? "")

  it("has at most 4 KiB, between two characters", () => {
    const text = Capture.write({}, of, "ä".repeat(5_000))
    assert.strictEqual(bytes(text), 4_095)
    assert.strictEqual(text, `${"ä".repeat(2_046)}...`)
    assert.strictEqual(Capture.write({ mostBytes: 5 }, of, "abcdef"), "ab...")
    assert.strictEqual(Capture.write({ mostBytes: 6 }, of, "abcdef"), "abcdef")
  })

  it("loses its middle, as an array, and is JSON still", () => {
    const messages = Array.from({ length: 200 }, (_, index) => ({ role: "user", content: `message ${index}` }))
    const text = Capture.write({}, of, messages)!
    assert.isAtMost(bytes(text), 4_096)
    const read = JSON.parse(text) as ReadonlyArray<{ readonly content?: string; readonly omitted?: number }>
    const omitted = read.findIndex((one) => one.omitted !== undefined)
    assert.strictEqual(read[0]?.content, "message 0")
    assert.strictEqual(read.at(-1)?.content, "message 199")
    assert.strictEqual(read.length - 1 + read[omitted]!.omitted!, 200)
    assert.closeTo(omitted, read.length / 2, 1)
  })

  it("keeps the beginning of one long message", () => {
    const text = Capture.write({}, of, [{ content: "x".repeat(9_000) }, { content: "y" }])!
    assert.isAtMost(bytes(text), 4_096)
    const [first, second] = JSON.parse(text) as [string, { content: string }]
    assert.match(first, /^\{"content":"x+\.\.\.$/)
    assert.deepStrictEqual(second, { content: "y" })
  })

  it("is nothing where it cannot be written", () => {
    const circular: { self?: unknown } = {}
    circular.self = circular
    assert.strictEqual(Capture.write({}, of, circular), undefined)
    assert.strictEqual(Capture.write({}, of, [circular]), undefined)
  })
})
