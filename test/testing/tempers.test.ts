/**
 * Every temper, in both protocols, streamed and not: what the client is told, and what the server bills.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as TestingServer from "../../src/testing/TestingServer.ts"
import { ask, billOf, type Got, raw, serving, type Way, ways } from "./asking.ts"

const usage = { input: 101, output: 31, cached: 11, cacheWrite: 7, reasoning: 5 }
const truth = { input: 101, output: 31, cached: 11, written: 7, reasoning: 5, total: 132 }
const call = { id: "call_x", name: "look", arguments: {} }

/** One reply under a temper: what the client got, and the entry. */
const under = (way: Way, temper: TestingServer.Tempers, turn: TestingServer.Turn, asking: Parameters<typeof ask>[2]) =>
  Effect.gen(function* () {
    const server = yield* serving([turn], { temper })
    const got = yield* ask(server, way, asking)
    const entry = server.entries[0]
    assert.isDefined(entry)
    assert.deepStrictEqual(billOf(server.ledger), billOf(entry))
    return { got, entry }
  })

for (const way of ways) {
  describe(way, () => {
    const stating: Array<[TestingServer.Temper, Got["usage"]]> = [
      ["omits-usage", undefined],
      ["zero-usage", { input: 0, output: 0, cached: 0, written: 0, reasoning: 0, total: 0 }],
      ["under-reports", { input: 50, output: 15, cached: 5, written: 3, reasoning: 2, total: 65 }],
      ["usage-on-every-chunk", truth],
      ["repeats-ids", truth],
      ["empties-ids", truth],
      ["null-content", truth],
      ["other-model", truth],
      ["other-tier", truth],
      ["ignores-tools", truth],
      ["obeys", truth],
    ]
    for (const [temper, told] of stating) {
      it.effect(`${temper} changes nothing of the bill`, () =>
        Effect.gen(function* () {
          const { entry, got } = yield* under(way, temper, { text: "x", usage }, {})
          assert.deepStrictEqual(got.usage, told)
          assert.deepStrictEqual(billOf(entry), usage)
        }),
      )
    }

    it.effect("a turn states any numbers whatever it bills", () =>
      Effect.gen(function* () {
        const stated = { input: 3, output: -1, cached: 9, total: 1 }
        const { entry, got } = yield* under(way, [], { text: "x", usage, stated }, {})
        assert.deepStrictEqual(got.usage, { input: 3, output: -1, cached: 9, written: 0, reasoning: 0, total: 1 })
        assert.deepStrictEqual(billOf(entry), usage)
      }),
    )

    it.effect("over-bills half as much again, and more than the cap", () =>
      Effect.gen(function* () {
        const free = yield* under(way, "over-bills", { text: "x", usage }, {})
        assert.deepInclude(billOf(free.entry), { input: 152, output: 47 })
        assert.deepInclude(free.got.usage, { input: 152, output: 47 })
        const capped = yield* under(way, "over-bills", { text: "x", usage }, { cap: 1000 })
        assert.strictEqual(capped.entry.outputTokens, 1001)
        assert.strictEqual(capped.got.usage?.output, 1001)
      }),
    )

    it.effect("obeys the cap also where a turn states more", () =>
      Effect.gen(function* () {
        const text = "x".repeat(120)
        const wild = yield* under(way, [], { text, usage }, { cap: 20 })
        assert.deepInclude(wild.got, { text, finish: "stop" })
        assert.strictEqual(wild.entry.outputTokens, 31)
        const tame = yield* under(way, "obeys", { text, usage }, { cap: 20 })
        assert.deepInclude(tame.got, { text: "x".repeat(60), finish: "length" })
        assert.deepInclude(billOf(tame.entry), { output: 20, reasoning: 5 })
      }),
    )

    it.effect("ignores-cap bills and sends more than the cap, with spaces", () =>
      Effect.gen(function* () {
        for (const text of ['{"a":1}', "x".repeat(4000)]) {
          const { entry, got } = yield* under(way, "ignores-cap", { text }, { cap: 100 })
          assert.isAbove(entry.outputTokens, 100)
          assert.isAbove(got.text.length / 4, 100)
          assert.strictEqual(got.text.trimEnd(), text)
          assert.strictEqual(got.usage?.output, entry.outputTokens)
          assert.strictEqual(got.finish, "stop")
        }
      }),
    )

    it.effect("eats-cap reasons until the cap is gone", () =>
      Effect.gen(function* () {
        const { entry, got } = yield* under(way, "eats-cap", { text: "x", calls: [call], usage }, { cap: 64 })
        assert.deepInclude(got, { text: "", calls: [], finish: "length" })
        assert.deepInclude(billOf(entry), { output: 64, reasoning: 64 })
        assert.deepInclude(got.usage, { output: 64, reasoning: 64 })
      }),
    )

    it.effect("ignores-tools calls a tool though none is offered; obeys calls none", () =>
      Effect.gen(function* () {
        const wild = yield* under(way, "ignores-tools", { text: "x" }, {})
        assert.deepStrictEqual(wild.got.calls, [{ id: "call_withdrawn", name: "withdrawn", arguments: "{}" }])
        assert.deepStrictEqual((yield* under(way, "ignores-tools", { text: "x" }, { tools: true })).got.calls, [])
        assert.deepStrictEqual((yield* under(way, "obeys", { calls: [call] }, {})).got.calls, [])
        assert.lengthOf((yield* under(way, "obeys", { calls: [call] }, { tools: true })).got.calls, 1)
      }),
    )

    it.effect("repeats-ids and empties-ids give calls ids that say nothing", () =>
      Effect.gen(function* () {
        for (const [temper, ids] of [
          ["repeats-ids", ["call_0", "call_1"]] as const,
          ["empties-ids", ["", ""]] as const,
        ]) {
          const server = yield* serving(() => ({ calls: [call, { ...call, id: "call_y" }] }), { temper })
          for (const _ of [1, 2]) {
            const { calls } = yield* ask(server, way, { tools: true })
            assert.deepStrictEqual(
              calls.map(({ id }) => id),
              [...ids],
            )
          }
        }
      }),
    )

    it.effect("null-content sends null in place of the text, which it bills", () =>
      Effect.gen(function* () {
        const server = yield* serving([{ text: "x".repeat(40) }], { temper: "null-content" })
        const { body } = yield* raw(server, way)
        assert.include(body.toString(), way.startsWith("chat") ? '"content":null' : '"text":null')
        assert.notInclude(body.toString(), "xxxx")
        assert.strictEqual(server.ledger.outputTokens, 10)
      }),
    )

    it.effect("other-model and other-tier name what was not asked for, on the ledger too", () =>
      Effect.gen(function* () {
        const { entry, got } = yield* under(way, ["other-model", "other-tier"], { text: "x" }, {})
        assert.deepInclude(got, { model: "m-2026-11-30", tier: "priority" })
        assert.deepInclude(entry, { model: "m-2026-11-30", serviceTier: "priority" })
      }),
    )

    it.effect("a turn's temper replaces the server's", () =>
      Effect.gen(function* () {
        const { got } = yield* under(way, "omits-usage", { text: "x", usage, temper: [] }, {})
        assert.deepStrictEqual(got.usage, truth)
      }),
    )
  })
}

describe("usage-on-every-chunk", () => {
  it.effect("is a running total on each Chat chunk, also where none was asked for, and ends with the truth", () =>
    Effect.gen(function* () {
      const server = yield* serving([{ text: "x".repeat(100), usage }], { temper: "usage-on-every-chunk" })
      const { body } = yield* raw(server, "chat streamed")
      const lines = body.toString().trim().split("\n\n").slice(0, -1)
      const outputs = lines.map((line): number => JSON.parse(line.replace("data: ", "")).usage.completion_tokens)
      assert.isAbove(outputs.length, 3)
      assert.deepStrictEqual(
        outputs,
        outputs.toSorted((a, b) => a - b),
      )
      assert.isBelow(outputs[0] ?? 31, 31)
      assert.strictEqual(outputs.at(-1), 31)
    }),
  )

  it.effect("is on the first events of a Responses stream, which OpenAI leaves null", () =>
    Effect.gen(function* () {
      const first = (temper: TestingServer.Tempers) =>
        Effect.gen(function* () {
          const server = yield* serving([{ text: "x", usage }], { temper })
          const { body } = yield* raw(server, "responses streamed")
          return JSON.parse(/^data: (.*)$/m.exec(body.toString())?.[1] ?? "").response.usage
        })
      assert.isNull(yield* first([]))
      assert.deepInclude(yield* first("usage-on-every-chunk"), { input_tokens: 101, output_tokens: 0 })
    }),
  )
})

describe("ignores-tools", () => {
  it.effect("calls again what was called before", () =>
    Effect.gen(function* () {
      const server = yield* serving([{ text: "x" }], { temper: "ignores-tools" })
      const input = [
        { type: "function_call", call_id: "c", name: "search", arguments: "{}" },
        { type: "function_call_output", call_id: "c", output: "" },
      ]
      const { body } = yield* raw(server, "responses", {
        input,
        tools: [{ type: "function", name: "t" }],
        tool_choice: "none",
      })
      assert.include(body.toString(), '"name":"search"')
    }),
  )

  it.effect("with repeated ids makes conversations that still pair up", () =>
    Effect.gen(function* () {
      const server = yield* serving(() => ({ text: "x" }))
      const exchange = [
        { type: "function_call", call_id: "call_0", name: "t", arguments: "{}" },
        { type: "function_call_output", call_id: "call_0", output: "" },
      ]
      yield* raw(server, "responses", { input: [...exchange, ...exchange] })
      yield* raw(server, "responses", { input: [...exchange, exchange[0]] })
      yield* raw(server, "responses", { input: [...exchange, exchange[1]] })
      assert.deepStrictEqual(
        server.entries.map(({ outcome }) => outcome),
        ["replied", "refused", "refused"],
      )
    }),
  )
})

describe("a temper that is none", () => {
  it.effect("is found in a turn before the first request", () =>
    Effect.gen(function* () {
      const turn: object = { text: "x", temper: "grumpy" }
      const exit = yield* Effect.exit(serving([turn]))
      assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause))
    }),
  )
})
