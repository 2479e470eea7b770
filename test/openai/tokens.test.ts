import { assert, describe, it, vi } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { imageTokens } from "../../src/openai/internal/imageTokens.ts"
import { type Body, byPieces, type Counter, forModel, growing, make, total } from "../../src/openai/internal/tokens.ts"
import { png } from "../support/images.ts"

/** A token for each letter: what the recipe adds is then plain to see. */
const letters = (text: string) => text.length
const plain = make("gpt-4o", letters)
const count = (body: Body, counter: Counter = plain) => Result.getOrThrow(counter.body(body))
const tenth = (tokens: number) => total({ text: tokens, images: 0 })

const user = { role: "user", content: "hello" } as const
const schema = {
  type: "object",
  properties: { city: { type: "string", description: "Where." }, unit: { type: "string", enum: ["c", "f"] } },
  required: ["city"],
  additionalProperties: false,
}

describe("the tokens of a request", () => {
  it("are those of the published recipe, and a tenth", () => {
    assert.strictEqual(count({ messages: [user] }), tenth(3 + 4 + 5 + 3))
    assert.strictEqual(count({ messages: [{ ...user, name: "ann" }] }), tenth(3 + 4 + 5 + 1 + 3 + 3))
    const line =
      7 + "f:Does it".length + 3 + (3 + "city:string:Where".length) + (3 + "unit:string:".length - 3 + 2 * (3 + 1))
    const parameters = schema
    assert.strictEqual(
      count({
        messages: [user],
        tools: [{ type: "function", function: { name: "f", description: "Does it.", parameters } }],
      }),
      tenth(15 + 12 + line),
    )
  })

  it("are the same in both protocols", () => {
    const call = { name: "f", arguments: '{"city":"x"}' }
    const both: ReadonlyArray<readonly [Body, Body]> = [
      [{ input: "hello" }, { messages: [user] }],
      [{ input: [user], instructions: "be kind" }, { messages: [{ role: "system", content: "be kind" }, user] }],
      [
        { input: [{ role: "user", content: [{ type: "input_text", text: "hello" }] }] },
        { messages: [{ role: "user", content: [{ type: "text", text: "hello" }] }] },
      ],
      [
        { input: [user], tools: [{ type: "function", name: "f", parameters: schema, strict: true }] },
        { messages: [user], tools: [{ type: "function", function: { name: "f", parameters: schema, strict: true } }] },
      ],
      [
        { input: [user], text: { format: { type: "json_schema", name: "a", schema } } },
        { messages: [user], response_format: { type: "json_schema", json_schema: { name: "a", schema } } },
      ],
    ]
    for (const [responses, chat] of both) assert.strictEqual(count(responses), count(chat))
    const responses = count({
      input: [
        { type: "function_call", call_id: "1", ...call },
        { type: "function_call_output", call_id: "1", output: "rain" },
      ],
    })
    const chat = count({
      messages: [
        { role: "assistant", tool_calls: [{ id: "1", type: "function", function: call }] },
        { role: "tool", tool_call_id: "1", content: "rain" },
      ],
    })
    assert.strictEqual(responses, tenth(2 * (3 + 12) + 1 + 12 + 4 + 3))
    assert.strictEqual(chat, tenth(2 * (3 + 12) + "assistant".length + "tool".length + 1 + 12 + 4 + 3))
  })

  it("have whatever the recipe does not know as long as it is written", () => {
    const nested = { type: "object", properties: { a: { type: "array", items: { type: "string" } } } }
    const tool = (parameters: object) => ({
      messages: [user],
      tools: [{ type: "function" as const, function: { name: "f", parameters: { ...parameters } } }],
    })
    const flat = { type: "object", properties: { a: { type: "array" } } }
    const items = JSON.stringify({ items: { type: "string" } }).length
    const raw = (body: Body) => Result.getOrThrow(make("m", (text) => text.length * 10).body(body))
    assert.strictEqual(raw(tool(nested)) - raw(tool(flat)), items * 11)
    const defs = { $defs: { x: { type: "string" } } }
    assert.strictEqual(raw(tool({ ...flat, ...defs })) - raw(tool(flat)), JSON.stringify(defs).length * 11)
    assert.strictEqual(
      raw({ input: [{ type: "reasoning", id: "r", summary: [] }] }) - raw({ input: [] }),
      JSON.stringify({ type: "reasoning", id: "r", summary: [] }).length * 11 + 3,
    )
  })

  it("are refused where they cannot be seen, by the name of what hides them", () => {
    const what = (body: Body) => {
      const counted = plain.body(body)
      return Result.isFailure(counted) ? counted.failure.what : "counted"
    }
    assert.deepStrictEqual(
      [
        what({ input: [{ role: "user", content: [{ type: "input_file", file_data: "secret" }] }] }),
        what({ messages: [{ role: "user", content: [{ type: "file", file: { file_id: "f" } }] }] }),
        what({
          messages: [{ role: "user", content: [{ type: "input_audio", input_audio: { data: "x", format: "mp3" } }] }],
        }),
        what({ input: [{ type: "item_reference", id: "i" }] }),
        what({ input: "x", previous_response_id: "r" }),
        what({ input: "x", conversation: "c" }),
        what({ input: "x", prompt: { id: "p" } }),
        what({ input: "x", previous_response_id: null, instructions: null }),
      ],
      [
        "input_file",
        "file",
        "input_audio",
        "item_reference",
        "previous_response_id",
        "conversation",
        "prompt",
        "counted",
      ],
    )
  })
})

describe("an image", () => {
  const photo = Buffer.alloc(626_104)
  photo.set(png({ width: 1024, height: 1024 }))
  const url = `data:image/png;base64,${photo.toString("base64")}`
  const withImage = (detail: "low" | "high" | "auto", image_url = url): Body => ({
    input: [{ role: "user", content: [{ type: "input_image", detail, image_url }] }],
  })
  const without = count({ input: [{ role: "user", content: [] }] })

  it("costs what its contract says, with no margin, in both protocols", () => {
    assert.strictEqual(count(withImage("auto")) - without, 765)
    assert.strictEqual(count(withImage("low")) - without, 85)
    const chat: Body = { messages: [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }] }
    assert.strictEqual(count(chat) - without, 765)
    const answered: Body = {
      input: [
        {
          type: "function_call_output",
          call_id: "1",
          output: [{ type: "input_image", detail: "high", image_url: url }],
        },
      ],
    }
    assert.strictEqual(count(answered), tenth(3 + 12 + 3) + 765)
  })

  it("costs the most that is possible where its size is unknown", () => {
    assert.strictEqual(count(withImage("auto", "https://example.com/a.png")) - without, 85 + 8 * 170)
    assert.strictEqual(count(withImage("low", "https://example.com/a.png")) - without, 85)
    const byId: Body = { input: [{ role: "user", content: [{ type: "input_image", detail: "auto", file_id: "f" }] }] }
    assert.strictEqual(count(byId) - without, 85 + 8 * 170)
  })

  it("is counted by the published examples of each family of models", () => {
    const at = (width: number, height: number) => ({ width, height })
    assert.strictEqual(imageTokens("gpt-4o", "high", at(1024, 1024)), 765)
    assert.strictEqual(imageTokens("gpt-4o", "high", at(2048, 4096)), 1105)
    assert.strictEqual(imageTokens("gpt-4o", "low", at(4096, 8192)), 85)
    assert.strictEqual(imageTokens("gpt-4o", "auto", at(512, 512)), 255)
    assert.strictEqual(imageTokens("gpt-4o-mini-2024-07-18", "high", at(1024, 1024)), 2833 + 4 * 5667)
    assert.strictEqual(imageTokens("openai/gpt-5", "high", at(1024, 1024)), 630)
    assert.strictEqual(imageTokens("o3", "high", at(1024, 1024)), 675)
    assert.strictEqual(imageTokens("gpt-4.1-mini", "high", at(1024, 1024)), Math.ceil(1024 * 1.62))
    assert.strictEqual(imageTokens("gpt-4.1-mini", "high", at(1800, 2400)), Math.ceil(1536 * 1.62))
    assert.strictEqual(imageTokens("gpt-5.4", "high", at(1600, 1600)), 3000)
    assert.strictEqual(imageTokens("gpt-5.4", "original", at(3200, 3200)), 12_000)
    assert.strictEqual(imageTokens("gpt-5.6-sol", "auto", undefined), 12_000)
    assert.strictEqual(imageTokens("my-deployment", "auto", undefined), 2833 + 8 * 5667)
  })

  it.effect.prop(
    "never costs more than one whose size nobody knows, nor less where it is larger",
    [
      Schema.Literals(["gpt-4o", "gpt-4o-mini", "gpt-5", "gpt-5-nano", "gpt-5.4", "o1", "o4-mini", "elsewhere"]),
      Schema.Literals(["low", "high", "auto", "original"]),
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 9_000 })),
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 9_000 })),
    ],
    ([model, detail, width, height]) =>
      Effect.sync(() => {
        const tokens = imageTokens(model, detail, { width, height })
        assert.isAtMost(tokens, imageTokens(model, detail, undefined))
        assert.strictEqual(tokens, imageTokens(model, detail, { width: height, height: width }))
        assert.isAbove(tokens, 0)
      }),
    { arbitrary: { runs: 500, seed: 2 } },
  )
})

describe("the tokeniser", () => {
  it.effect("is loaded for the models that have it; others are counted in bytes", () =>
    Effect.gen(function* () {
      const bound = (model: string) => Effect.map(forModel(model), (counter) => counter.bound)
      for (const model of ["gpt-5-mini", "openai/gpt-4o", "ft:gpt-4.1:us::1", "o3", "gpt-6-sol", "gpt-oss-20b"]) {
        assert.strictEqual(yield* bound(model), "tokenised", model)
      }
      for (const model of ["gpt-4", "gpt-3.5-turbo", "llama-4", "my-deployment", "claude-opus-4-6"]) {
        assert.strictEqual(yield* bound(model), "bytes", model)
      }
    }),
  )

  it.effect("takes the names of special tokens for the text that they are", () =>
    Effect.gen(function* () {
      const counter = yield* forModel("gpt-5")
      const tokens = count({ input: "<|endoftext|><|im_start|>system" }, counter) - count({ input: "" }, counter)
      assert.isAbove(tokens, 10)
    }),
  )

  it.effect("is not needed: without it the count is in bytes", () =>
    Effect.gen(function* () {
      vi.resetModules()
      vi.doMock("gpt-tokenizer/encoding/o200k_base", () => {
        throw new Error("not installed")
      })
      const alone = yield* Effect.promise(() => import("../../src/openai/internal/tokens.ts"))
      const counter = yield* alone.forModel("gpt-5")
      vi.doUnmock("gpt-tokenizer/encoding/o200k_base")
      assert.strictEqual(counter.bound, "bytes")
      assert.isAbove(count({ input: "hello" }, counter), count({ input: "hello" }, yield* forModel("gpt-5")))
    }),
  )
})

describe("long runs without a space", () => {
  it("are counted in pieces, together with everything around them", () => {
    const seen: Array<string> = []
    const counted = byPieces((text) => {
      seen.push(text)
      return text.length
    })
    const [run, blank] = ["x".repeat(1_200), " ".repeat(600)]
    for (const text of [
      ``,
      `a b`,
      run,
      `a ${run} b`,
      `${blank}a`,
      `a${blank}`,
      `a ${run}${blank}${run}`,
      "y".repeat(512),
    ]) {
      seen.length = 0
      assert.strictEqual(counted(text), text.length)
      assert.strictEqual(seen.join(""), text)
      assert.isAtMost(Math.max(...seen.map((one) => one.length)), 512)
    }
  })

  it.effect("come to as much as they do in one, or a little more", () =>
    Effect.gen(function* () {
      const { countTokens } = yield* Effect.promise(() => import("gpt-tokenizer/encoding/o200k_base"))
      const pieces = byPieces((text) => countTokens(text))
      const bytes = Buffer.from(Array.from({ length: 3_000 }, (_, index) => (index * index * 31 + index * 17) % 251))
      for (const text of [
        bytes.toString("base64"),
        "a".repeat(2_000),
        "我们发现第二个节点".repeat(200),
        bytes.toString("hex"),
      ]) {
        const [whole, cut] = [countTokens(text), pieces(text)]
        assert.isTrue(cut >= whole && cut <= whole * 1.02 + 1, `${cut} of ${whole}`)
      }
    }),
  )
})

describe("a history that only grows", () => {
  const counting = () => {
    const texts: Array<string> = []
    const counter = make("gpt-4o", (text) => {
      texts.push(text)
      return text.length
    })
    return { texts, counter }
  }

  it("is tokenised once, message by message, even in a new array each time", () => {
    const { counter, texts } = counting()
    const messages = Array.from({ length: 50 }, (_, index) => ({ role: "user" as const, content: `message ${index}` }))
    for (let length = 1; length <= messages.length; length++) {
      const tokens = count({ input: messages.slice(0, length) }, counter)
      assert.strictEqual(tokens, count({ input: messages.slice(0, length) }))
    }
    assert.strictEqual(texts.filter((text) => text.startsWith("message")).length, messages.length)
  })

  it("is not even looked at again in the same array, and counted anew where it was cut", () => {
    let looked = 0
    const sum = growing((one: { readonly text: number }) => {
      looked += 1
      return Result.succeed({ text: one.text, images: 0 })
    })
    const list = [{ text: 1 }, { text: 2 }]
    const text = () => Result.getOrThrow(sum(list)).text
    assert.deepStrictEqual([text(), text(), looked], [3, 3, 2])
    list.push({ text: 4 })
    assert.deepStrictEqual([text(), looked], [7, 3])
    list.length = 1
    assert.deepStrictEqual([text(), looked], [1, 4])
    list[0] = { text: 8 }
    assert.deepStrictEqual([text(), looked], [8, 5])
  })
})
