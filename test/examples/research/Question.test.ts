import { assert, describe, it } from "@effect/vitest"
import * as Question from "../../../examples/research/Question.ts"
import * as Words from "../../../examples/research/Words.ts"

const termsOf = (text: string) => Question.make(text).terms.map((term) => term.word)

describe("Words", () => {
  it("gives the forms of a word one stem", () => {
    for (const forms of [
      ["abort", "aborts", "aborted", "aborting", "Aborted"],
      ["retry", "retries", "retried", "retrying"],
      ["connect", "connection", "connections", "connected", "connector"],
      ["proxy", "proxies", "proxied", "proxying"],
      ["keep", "kept", "keeping"],
      ["configure", "configuration", "configurable"],
      ["cache", "caches", "cached", "caching"],
      ["timeout", "timeouts"],
      ["stop", "stopped", "stopping"],
    ]) {
      assert.strictEqual(new Set(forms.map(Words.stem)).size, 1, forms.map(Words.stem).join(" "))
    }
  })

  it("keeps words of different meaning apart", () => {
    for (const [a, b] of [
      ["header", "head"],
      ["bread", "break"],
      ["process", "protocol"],
      ["bus", "bu"],
    ] as const) {
      assert.notStrictEqual(Words.stem(a), Words.stem(b))
    }
  })

  it("takes names apart and phrasal verbs together", () => {
    assert.includeMembers([...Words.stems("keepAliveTimeout")], ["keep", "aliv", "keepaliv"])
    assert.include(Words.stems("the request timed out"), Words.stem("timeout"))
    assert.include(Words.stems("HTTP/2 is used"), "http2")
    assert.notInclude(Words.outsideNames("an AbortSignal"), "abort")
  })

  it("survives words that are also properties of every object", () => {
    assert.includeMembers([...Words.stems("constructor toString")], ["construct", "string"])
  })
})

describe("Question.make", () => {
  it("keeps the content words only", () => {
    assert.deepStrictEqual(termsOf("What happens to a request when it is aborted?"), ["request", "aborted"])
    assert.deepStrictEqual(termsOf("What does the retry agent retry?"), ["retry", "agent"])
    assert.deepStrictEqual(termsOf("How does it work?"), [])
    assert.deepStrictEqual(termsOf(""), [])
  })

  it("takes a weak word as the subject only where there is no other", () => {
    assert.deepStrictEqual(termsOf("What are topics?"), ["topics"])
    assert.deepStrictEqual(termsOf("Which topics does a broker hold?"), ["broker", "hold"])
  })

  it("reads back the place that a facet names", () => {
    const facet = Question.inPlace("How are files read?", 'api/fs.md › The "read" call')
    assert.strictEqual(facet, "How are files read, according to \"api/fs.md › The 'read' call\"?")
    assert.deepStrictEqual(termsOf(facet), ["files", "read"])
    assert.strictEqual(Question.make(facet).place, "api/fs.md › The 'read' call")
  })
})

describe("Question.facets", () => {
  it("divides by sides and words where the documents give no place", () => {
    const question = Question.make("How are connections kept alive and timed out?")
    assert.deepStrictEqual(Question.facets(question, [], 3), [
      'How are connections kept alive and timed out, especially about "connections, kept, alive"?',
      'How are connections kept alive and timed out, especially about "timed"?',
      'How are connections kept alive and timed out, especially about "connections"?',
    ])
  })

  it("finds the several questions of one text", () => {
    const leaning = "How do I read cookies? And how do I set them?"
    assert.deepStrictEqual(Question.parts(leaning), [leaning])
    assert.deepStrictEqual(Question.parts("What is a pool? And what is an agent?"), [
      "What is a pool?",
      "What is an agent?",
    ])
  })
})
