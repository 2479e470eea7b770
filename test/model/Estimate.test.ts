import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Prompt from "effect/ai/Prompt"
import { countTokens as cl100k } from "gpt-tokenizer/encoding/cl100k_base"
import { countTokens as o200k } from "gpt-tokenizer/encoding/o200k_base"
import { inputTokens, textTokens } from "../../src/model/Estimate.ts"
import { imageTokens } from "../../src/openai/internal/imageTokens.ts"
import { png } from "../support/images.ts"

/** Alphabets that are hard on tokenisers: gibberish in each script, numbers, signs, and what nobody writes. */
const alphabets: ReadonlyArray<readonly [first: number, last: number]> = [
  [0x61, 0x7a],
  [0x41, 0x5a],
  [0x30, 0x39],
  [0x21, 0x7e],
  [0x00, 0x20],
  [0xa1, 0xff],
  [0x370, 0x3ff],
  [0x400, 0x4ff],
  [0x600, 0x6ff],
  [0x900, 0x97f],
  [0x1200, 0x137f],
  [0x4e00, 0x9fff],
  [0xac00, 0xd7a3],
  [0xe000, 0xf8ff],
  [0x1f300, 0x1faff],
  [0x20000, 0x2a6df],
]

const Piece = Schema.Struct({
  alphabet: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: alphabets.length - 1 })),
  letters: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_003 }))).check(
    Schema.isMinLength(100),
    Schema.isMaxLength(400),
  ),
})

const textOf = (pieces: ReadonlyArray<typeof Piece.Type>): string =>
  pieces
    .flatMap(({ alphabet, letters }) => {
      const [first, last] = alphabets[alphabet]!
      return letters.map((letter) => String.fromCodePoint(first + (letter % (last - first + 1))))
    })
    .join("")

const request = (content: ReadonlyArray<Prompt.UserMessagePart>) => ({
  messages: [Prompt.userMessage({ content })],
  tools: [],
})
const file = (mediaType: string, data: string | Uint8Array | URL) => Prompt.filePart({ mediaType, data })
const alone = inputTokens(request([]))
const held = (part: Prompt.UserMessagePart) => inputTokens(request([part])) - alone

describe("the estimate of a text", () => {
  it.effect.prop(
    "is no less than the tokens of gibberish in any script",
    [Schema.Array(Piece).check(Schema.isMinLength(1), Schema.isMaxLength(4))],
    ([pieces]) =>
      Effect.sync(() => {
        const text = textOf(pieces)
        const none = { disallowedSpecial: new Set<string>() }
        assert.isAtLeast(textTokens(text), o200k(text, none))
        assert.isAtLeast(textTokens(text), cl100k(text, none))
      }),
    { arbitrary: { runs: 400, seed: 5 } },
  )

  it("is no less than the tokens of what programs write", () => {
    const random = (letters: string) =>
      Array.from(
        { length: 8_000 },
        (_, index) => letters[((index * index * 7_919 + index * 104_729) % 99_991) % letters.length],
      )
    const lower = "abcdefghijklmnopqrstuvwxyz"
    for (const letters of [
      `${lower}${lower.toUpperCase()}0123456789+/`,
      `${lower}0123456789`,
      "0123456789abcdef",
      "0123456789, ",
    ]) {
      const text = random(letters).join("")
      assert.isAtLeast(textTokens(text), Math.max(o200k(text), cl100k(text)), letters)
    }
  })
})

describe("the estimate of an image", () => {
  const photo = Buffer.alloc(626_104)
  photo.set(png({ width: 1024, height: 1024 }))

  it("is what it costs by its size, not the length of its base64", () => {
    const expected = 4 + 32 * 32 * 2.5
    for (const data of [
      photo,
      photo.toString("base64"),
      `data:image/png;base64,${photo.toString("base64")}`,
      new URL(`data:image/png;base64,${photo.toString("base64")}`),
    ]) {
      assert.strictEqual(held(file("image/png", data)), expected)
    }
  })

  it.effect.prop(
    "is no less than what OpenAI, but for gpt-4o-mini, and Anthropic charge for it",
    [
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 9_000 })),
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 9_000 })),
    ],
    ([width, height]) =>
      Effect.sync(() => {
        const tokens = held(file("image/png", png({ width, height })))
        for (const model of [
          "gpt-4o",
          "gpt-4.1-nano",
          "gpt-5",
          "gpt-5-mini",
          "gpt-5.4",
          "gpt-5.4-nano",
          "o3",
          "o4-mini",
        ]) {
          // Anthropic's patches are of 28 pixels, after scaling down.
          assert.isAtLeast(tokens, Math.min(4_784, Math.ceil(width / 28) * Math.ceil(height / 28)))
          for (const detail of ["low", "high", "auto", "original"]) {
            assert.isAtLeast(tokens, imageTokens(model, detail, { width, height }), `${model} ${detail}`)
          }
        }
      }),
    { arbitrary: { runs: 500, seed: 4 } },
  )

  it("has a least and a most, and the most where nobody can see the size", () => {
    assert.strictEqual(held(file("image/png", png({ width: 1, height: 1 }))), 4 + 2_240)
    assert.strictEqual(held(file("image/png", png({ width: 20_000, height: 20_000 }))), 4 + 24_600)
    assert.strictEqual(held(file("image/avif", new Uint8Array(50))), 4 + 24_600)
    assert.strictEqual(held(file("image/png", new URL("https://example.com/a.png"))), 4 + 24_600)
    assert.strictEqual(held(file("image/png", "https://example.com/a.png")), 4 + 24_600)
  })

  it("is the same where a tool answers with it", () => {
    const answer = (modelOutput: ReadonlyArray<Prompt.FilePart>) =>
      Prompt.toolMessage({
        content: [
          Prompt.toolResultPart({
            id: "",
            name: "",
            isFailure: false,
            result: "",
            providerExecuted: false,
            modelOutput,
          }),
        ],
      })
    const tokens = (modelOutput: ReadonlyArray<Prompt.FilePart>) =>
      inputTokens({ messages: [answer(modelOutput)], tools: [] })
    assert.strictEqual(tokens([file("image/png", photo)]) - tokens([]), 4 + 32 * 32 * 2.5)
  })
})

describe("the estimate of a file", () => {
  it("is its bytes, and the largest window for one behind an address", () => {
    assert.strictEqual(held(file("application/pdf", new Uint8Array(90_000))), 4 + 90_000)
    assert.strictEqual(held(file("application/pdf", Buffer.alloc(90_000).toString("base64"))), 4 + 90_000)
    assert.strictEqual(held(file("application/pdf", new Uint8Array(10))), 4 + 4_096)
    assert.strictEqual(held(file("application/pdf", new URL("https://example.com/a.pdf"))), 4 + 1_050_000)
  })
})

describe("a history that only grows", () => {
  it("is looked at once", () => {
    let read = 0
    const message = (text: string) =>
      Prompt.userMessage({
        content: [
          Object.defineProperty(Prompt.textPart({ text }), "text", {
            get: () => {
              read += 1
              return text
            },
          }),
        ],
      })
    const history = [message("first")]
    const last = message("now")
    const count = () => inputTokens({ messages: [...history, last], parts: { history, last }, tools: [] })
    const before = count()
    history.push(message("second"))
    const after = count()
    const looked = read
    for (let step = 0; step < 10; step++) assert.strictEqual(count(), after)
    assert.strictEqual(read, looked)
    assert.strictEqual(after, inputTokens({ messages: [...history, last], tools: [] }))
    assert.isAbove(after, before)
  })
})
