import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as ChatReply from "../../src/openai/internal/chatReply.ts"
import * as ChatStream from "../../src/openai/internal/chatStream.ts"
import { EventReader } from "../../src/openai/internal/events.ts"
import * as ResponsesReply from "../../src/openai/internal/responsesReply.ts"
import { type Ending, StreamReader } from "../../src/openai/internal/stream.ts"
import { aChatStream, aResponsesStream, responses } from "./streams.ts"

const protocols = [
  { name: "Chat Completions", stream: aChatStream, assembly: ChatStream.assembly, toAnswer: ChatReply.toAnswer },
  {
    name: "Responses",
    stream: aResponsesStream,
    assembly: ResponsesReply.assembly,
    toAnswer: ResponsesReply.toAnswer,
  },
]

/** Reads the pieces to their end; `isCut` for a connection that broke after the last. */
const read = (
  assembly: typeof ChatStream.assembly,
  pieces: ReadonlyArray<Uint8Array>,
): { readonly ending: Ending; readonly heard: string } => {
  const heard: Array<string> = []
  const reader = new StreamReader(assembly(), (delta) => void heard.push(delta))
  for (const piece of pieces) {
    const ending = reader.push(piece)
    if (ending !== undefined) return { ending, heard: heard.join("") }
  }
  return { ending: reader.end(), heard: heard.join("") }
}

/** The bytes, broken at some places. */
const broken = (bytes: Uint8Array, places: ReadonlyArray<number>): ReadonlyArray<Uint8Array> => {
  const cuts = [...new Set(places.map((place) => place % bytes.length))].toSorted((a, b) => a - b)
  return [0, ...cuts].map((from, index) => bytes.subarray(from, cuts[index] ?? bytes.length))
}

const Places = Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 100_000 })))

describe("a stream", () => {
  for (const { assembly, name, stream, toAnswer } of protocols) {
    const bytes = new TextEncoder().encode(stream)
    const whole = read(assembly, [bytes])

    it(`of ${name} is the reply it would have been without streaming`, () => {
      assert.strictEqual(whole.heard, "Grüße, 世界 👋")
      assert.strictEqual(whole.ending._tag, "Whole")
      const body = whole.ending._tag === "Whole" ? whole.ending.body : undefined
      const answer = Result.getOrThrow(toAnswer(body, undefined))
      assert.deepStrictEqual(answer.pieces, [
        { type: "text", text: "Grüße, 世界 👋", isRefusal: false },
        { type: "call", id: "call_a", name: "weather", params: { city: "Zürich" } },
        { type: "call", id: "call_b", name: "weather", params: { city: "Bern" } },
      ])
      assert.strictEqual(answer.end, "tool-calls")
      assert.strictEqual(answer.usage?.inputTokens, 12)
      assert.strictEqual(answer.usage?.outputTokens, 7)
      assert.strictEqual(answer.model, "gpt-test-2026")
    })

    it.prop(`of ${name} is the same however it is broken into pieces`, [Places], ([places]) => {
      assert.deepStrictEqual(read(assembly, broken(bytes, places)), whole)
    })

    it(`of ${name} is the same byte by byte`, () => {
      assert.deepStrictEqual(read(assembly, broken(bytes, [...bytes.keys()])), whole)
    })

    for (const lineEnd of ["\r\n", "\r"]) {
      it(`of ${name} is the same with lines that end in ${JSON.stringify(lineEnd)}, byte by byte`, () => {
        const other = new TextEncoder().encode(stream.replaceAll("\n", lineEnd))
        assert.deepStrictEqual(read(assembly, broken(other, [...other.keys()])), whole)
      })
    }

    it(`of ${name} with comments between its events is the same`, () => {
      const noisy = new TextEncoder().encode(`: hello\n\n${stream.replaceAll("\n\n", "\n\n: keep-alive\n\n")}`)
      assert.deepStrictEqual(read(assembly, [noisy]), whole)
    })
  }

  // After the reason of its end, a chat stream without the end mark lacks only its usage: that is for the next test.
  const certain = aChatStream.slice(0, aChatStream.indexOf('"finish_reason":"tool_calls"'))
  const uncertain = [
    { name: "Chat Completions", stream: certain, assembly: ChatStream.assembly },
    { name: "Responses", stream: aResponsesStream.trimEnd().slice(0, -1), assembly: ResponsesReply.assembly },
  ]
  for (const { assembly, name, stream } of uncertain) {
    it(`of ${name} that ends before its end, at any byte, is no reply`, () => {
      const bytes = new TextEncoder().encode(stream)
      for (let length = 0; length <= bytes.length; length++) {
        const { ending } = read(assembly, [bytes.subarray(0, length)])
        assert.strictEqual(ending._tag, "Cut", `after ${length} bytes`)
      }
    })
  }

  it("of Chat Completions that ends in the middle of an event is no reply, also after the reason of its end", () => {
    const bytes = new TextEncoder().encode(aChatStream)
    const from = aChatStream.indexOf('"finish_reason":"tool_calls"')
    const endings = new Map<string, number>()
    for (let length = from; length < bytes.length; length++) {
      const text = new TextDecoder().decode(bytes.subarray(0, length))
      const [rest = ""] = text.split("\n\n").slice(-1)
      const isBetween = rest.trim() === "" || isWhole(rest)
      const { ending } = read(ChatStream.assembly, [bytes.subarray(0, length)])
      assert.strictEqual(ending._tag, isBetween ? "Whole" : "Cut", text.slice(-40))
      endings.set(ending._tag, (endings.get(ending._tag) ?? 0) + 1)
    }
    assert.isAbove(endings.get("Cut") ?? 0, 100)
    assert.isAbove(endings.get("Whole") ?? 0, 3)
  })
})

const isWhole = (event: string): boolean => {
  const data = event.trim().replace(/^data: /, "")
  return data === "[DONE]" || (data.startsWith("{") && Result.isSuccess(Result.try((): unknown => JSON.parse(data))))
}

describe("the events of a stream", () => {
  const all = (text: string) => {
    const reader = new EventReader()
    return [...reader.push(text), ...reader.end().events]
  }

  it("have a name and the lines of their data", () => {
    assert.deepStrictEqual(all("event: a\ndata: 1\ndata:2\nid: 7\nretry: 3\n\ndata:  {}\n\n"), [
      { name: "a", data: "1\n2" },
      { name: "", data: " {}" },
    ])
  })

  it("are none where there is only a name, a comment or nothing", () => {
    assert.deepStrictEqual(all("event: a\n\n: comment\n\n\n\n:"), [])
  })
})

describe("a stream that goes wrong", () => {
  it("fails with the code of its error, and keeps the id of its reply", () => {
    const stream = responses(
      { type: "response.created", response: { id: "resp_1" } },
      { type: "error", code: "rate_limit_exceeded", message: "a private question" },
    )
    const { ending } = read(ResponsesReply.assembly, [new TextEncoder().encode(stream)])
    assert.deepStrictEqual(ending, { _tag: "Failed", id: "resp_1", code: "rate_limit_exceeded" })
  })

  it("is unreadable where an event is no JSON", () => {
    for (const noise of ["data: <html>\n\n", "data: 7\n\n", 'data: {"a"\n\n']) {
      const { ending } = read(ChatStream.assembly, [new TextEncoder().encode(noise + aChatStream)])
      assert.deepStrictEqual(ending, { _tag: "Cut", id: undefined, why: "unreadable" })
    }
  })

  it("takes the items from its events where the last one leaves them out", () => {
    const stream = aResponsesStream.replace(/"output":\[\{"id":"msg_1".*?\],"usage"/, '"output":[],"usage"')
    assert.notStrictEqual(stream, aResponsesStream)
    const { ending } = read(ResponsesReply.assembly, [new TextEncoder().encode(stream)])
    const body = ending._tag === "Whole" ? ending.body : undefined
    const answer = Result.getOrThrow(ResponsesReply.toAnswer(body, undefined))
    assert.deepStrictEqual(
      answer.pieces.map(({ type }) => type),
      ["text", "call", "call"],
    )
  })
})
