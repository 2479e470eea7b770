import { execFileSync } from "node:child_process"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it, layer } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Answer from "../../../examples/research/Answer.ts"
import * as Quote from "../../../examples/research/Quote.ts"
import type * as Search from "../../../examples/research/Search.ts"
import * as Words from "../../../examples/research/Words.ts"
import { folderWith, indexOf, undici } from "./documents.ts"

class Undici extends Context.Service<Undici, Search.Index>()("test/Undici") {
  static readonly layer = Layer.effect(Undici, indexOf(undici))
}

const ANSWERED = [
  "How do I send a request through a proxy?",
  "What happens to a request when it is aborted?",
  "How do I mock a request in tests?",
  "How are connections kept alive and timed out?",
  "What does the retry agent retry?",
  "How do I follow redirects?",
  "How can I cache responses?",
  "How do I use client certificates?",
  "How do I read cookies?",
]

// All that undici says of these stands on one page.
const ONE_PAGE = ["How do I use client certificates?", "How do I read cookies?"]

const UNANSWERED = [
  "How do I bake sourdough bread?",
  "What is the capital of France?",
  "Which kernel scheduler does the orchestra use?",
  "How do I configure a PostgreSQL replica?",
  "How do I cook a request for dinner?",
  "Which database stores the user passwords?",
  "How does photosynthesis work in plants?",
  // Half of the words are said together, and the half that matters is not.
  "How do I buy a request through a proxy for my kids?",
  "How do I encrypt cached responses with a password?",
  "How does it work?",
  "???",
  "",
]

layer(Undici.layer)("Answer, on the documents of undici", (it) => {
  for (const question of ANSWERED) {
    it.effect(`answers: ${question}`, () =>
      Effect.gen(function* () {
        const index = yield* Undici
        const findings = Answer.findings(index, question)
        assert.isAtLeast(findings.length, 3)
        for (const finding of findings) {
          assert.deepStrictEqual(Quote.verify(index.corpus, question, finding), { _tag: "Stands" })
          assert.isAtLeast(Words.count(finding.quote), 4)
        }
        assert.isAtLeast(new Set(findings.map((finding) => finding.file)).size, ONE_PAGE.includes(question) ? 1 : 2)
        assert.strictEqual(new Set(findings.map((finding) => finding.quote)).size, findings.length)
      }),
    )
  }

  for (const question of UNANSWERED) {
    it.effect(`finds nothing for: ${question}`, () =>
      Effect.gen(function* () {
        const index = yield* Undici
        assert.deepStrictEqual(Answer.findings(index, question), [])
        for (const facet of Answer.subQuestions(index, question)) {
          assert.deepStrictEqual(Answer.findings(index, facet), [])
        }
      }),
    )
  }

  it.effect("says the same every time", () =>
    Effect.gen(function* () {
      const index = yield* Undici
      const again = yield* indexOf(undici)
      for (const question of ANSWERED) {
        assert.deepStrictEqual(Answer.findings(index, question), Answer.findings(again, question))
      }
    }),
  )

  it.effect("cites the page that is about the question", () =>
    Effect.gen(function* () {
      const index = yield* Undici
      const files = (question: string) => Answer.findings(index, question).map((finding) => finding.file)
      assert.include(files("What does the retry agent retry?"), "docs/docs/api/RetryAgent.md")
      assert.include(files("How do I use client certificates?"), "docs/docs/best-practices/client-certificate.md")
      assert.include(files("What happens to a request when it is aborted?"), "docs/docs/api/Errors.md")
    }),
  )

  it.effect("gives each researcher a different question, which the documents answer", () =>
    Effect.gen(function* () {
      const index = yield* Undici
      for (const question of ANSWERED) {
        const facets = Answer.subQuestions(index, question, 3)
        assert.strictEqual(new Set(facets).size, 3, question)
        for (const facet of facets) assert.isAtLeast(Answer.findings(index, facet).length, 1, facet)
      }
    }),
  )

  it.effect("every finding is found by grep at its line", () =>
    Effect.gen(function* () {
      const index = yield* Undici
      for (const question of ANSWERED) {
        for (const { file, line, quote } of Answer.findings(index, question)) {
          const found = execFileSync("grep", ["-nF", quote, `${undici}/${file}`], { encoding: "utf8" })
          assert.include(
            found.split("\n").map((hit) => hit.split(":")[0]),
            String(line),
          )
        }
      }
    }),
  )
})

describe("Answer, on a small folder", () => {
  it.live("answers from any Markdown: CRLF, no headings, other languages, a copy", () =>
    Effect.gen(function* () {
      const valve = "The relief valve opens when the pressure in the boiler rises above nine bar."
      const folder = yield* folderWith({
        "valve.md": `${valve}\r\n\r\nClose the inlet before you open the drain cock.\r\n`,
        "copy.md": `${valve}\n\nClose the inlet before you open the drain cock.\n`,
        "kessel.md": "# Kessel\n\nDas Überdruckventil öffnet sich, wenn der Druck im Kessel über neun Bar steigt.\n",
        "釜.md": "# 釜\n\n圧力が九バールを超えると安全弁が開きます。\n",
      })
      const index = yield* indexOf(folder)
      assert.deepStrictEqual(Answer.findings(index, "When does the relief valve open?"), [
        { claim: valve, quote: valve, file: "copy.md", line: 1 },
      ])
      assert.strictEqual(Answer.findings(index, "Wann öffnet das Überdruckventil?")[0]?.file, "kessel.md")
      assert.strictEqual(Answer.findings(index, "安全弁")[0]?.file, "釜.md")
      assert.deepStrictEqual(Answer.findings(index, "What is the capital of France?"), [])
      assert.deepStrictEqual(Answer.findings(index, "How do I tune a violin?"), [])
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  )
})

describe("Quote", () => {
  it.live("tells a quote that stands from one that is misplaced, invented, too short or off topic", () =>
    Effect.gen(function* () {
      const folder = yield* folderWith({ "a.md": "# A\n\nThe pump stops when the tank is full.\n" })
      const { corpus } = yield* indexOf(folder)
      const quote = "The pump stops when the tank is full."
      const check = (finding: { quote: string; file?: string; line?: number }, question = "When does the pump stop?") =>
        Quote.verify(corpus, question, { file: "a.md", line: 3, ...finding })
      assert.strictEqual(check({ quote })._tag, "Stands")
      assert.deepStrictEqual(check({ quote, line: 1 }), { _tag: "Misplaced", file: "a.md", line: 1, standsAt: [3] })
      assert.deepStrictEqual(check({ quote: "The pump never stops at all." }), {
        _tag: "Misplaced",
        file: "a.md",
        line: 3,
        standsAt: [],
      })
      assert.strictEqual(check({ quote: "The" })._tag, "TooShort")
      assert.strictEqual(check({ quote, file: "../a.md" })._tag, "NoSuchFile")
      assert.strictEqual(check({ quote }, "Who built the bridge?")._tag, "OffTopic")
      assert.strictEqual(check({ quote, line: -1 })._tag, "Misplaced")
      assert.isTrue(Quote.aboutQuestion(quote, "Why are pumps needed?"))
      assert.include(Quote.describe(check({ quote, line: 1 })), "at line 3")
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  )
})
