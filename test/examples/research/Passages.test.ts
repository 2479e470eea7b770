import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Markdown from "../../../examples/research/Markdown.ts"
import * as Passages from "../../../examples/research/Passages.ts"
import { indexOf, undici } from "./documents.ts"

const passagesOf = (...lines: ReadonlyArray<string>) => Passages.ofFile({ path: "x.md", lines })
const quotesOf = (...lines: ReadonlyArray<string>) =>
  passagesOf(...lines).flatMap((passage) => passage.pieces.map((piece) => `${piece.line} ${piece.text}`))

describe("Passages", () => {
  it("cuts a wrapped paragraph into sentences whose pieces each stand on one line", () => {
    const [first, second] = passagesOf(
      "# Title",
      "",
      "The first sentence ends",
      "here. The *second* one, e.g. this,",
      "ends here.",
    )
    assert.strictEqual(first?.text, "The first sentence ends here.")
    assert.deepStrictEqual(
      first?.pieces.map((piece) => [piece.line, piece.text]),
      [
        [3, "The first sentence ends"],
        [4, "here."],
      ],
    )
    assert.strictEqual(second?.text, "The second one, e.g. this, ends here.")
    assert.deepStrictEqual(second?.headings, ["Title"])
  })

  it("keeps its place over many lines", () => {
    assert.deepStrictEqual(
      quotesOf("One sentence that goes", "on over line two", "and three, and ends. Another", "one ends here too."),
      ["1 One sentence that goes", "2 on over line two", "3 and three, and ends.", "3 Another", "4 one ends here too."],
    )
  })

  it("leaves out the marks of lists, quotes and tables by choosing a smaller part of the line", () => {
    assert.deepStrictEqual(quotesOf("- [x] The **first** item of three", "  > 2. quoted item with four words"), [
      "1 The **first** item of three",
      "2 quoted item with four words",
    ])
    const [row] = passagesOf("| Option | Meaning |", "| --- | --- |", "| `depth` | How deep the search goes |")
    assert.strictEqual(row?.text, "depth; Meaning: How deep the search goes")
    assert.strictEqual(row?.pieces[0]?.text, "`depth` | How deep the search goes")
  })

  it("takes no prose from front matter, code, comments, HTML, link definitions and headings", () => {
    const lines = [
      "---",
      "title: not prose at all here",
      "---",
      "Heading made by underlining it",
      "===",
      "```js",
      "const code = 'is not prose either'",
      "```",
      "<!-- a comment that goes on",
      "over two lines -->",
      "<p align='center'>HTML is not prose either</p>",
      "",
      "[ref]: https://example.com/some/long/path",
      "",
      "    const indented = 'code is code as well'",
      "",
      "[![Build status of the main branch](https://x/y.svg)](https://x)",
      "",
      "Only this sentence is prose.",
    ]
    assert.deepStrictEqual(quotesOf(...lines), ["19 Only this sentence is prose."])
    assert.deepStrictEqual(passagesOf(...lines)[0]?.headings, ["Heading made by underlining it"])
  })

  it("reads a fence inside a list item and goes on after it", () => {
    assert.deepStrictEqual(
      quotesOf(
        "1. Install the package first",
        "   ```sh",
        "   npm i the package",
        "   ```",
        "   then start the server again",
      ),
      ["1 Install the package first", "5 then start the server again"],
    )
  })

  it("cuts a very long line into quotable pieces", () => {
    const line = "word and more words, ".repeat(200)
    for (const passage of passagesOf(line)) {
      for (const piece of passage.pieces) {
        assert.isAtMost(piece.text.length, 400)
        assert.include(line, piece.text)
      }
    }
  })

  it("quotes no text that a decoder or a terminal would change", () => {
    assert.deepStrictEqual(quotesOf("A line with a \uFFFD in it here", "", "A line with \u001b[31m red in it"), [])
  })

  it("shows a text as a reader of the page would see it", () => {
    const source =
      "See [`Agent`][] and [the *guide*](x.md), a `Promise<void>` or Promise<void>, snake_case_name, `a[0]`."
    assert.strictEqual(
      Markdown.plain(source),
      "See Agent and the guide, a Promise<void> or Promise<void>, snake_case_name, a[0].",
    )
  })

  it.live("every piece of every passage stands verbatim on its line", () =>
    Effect.gen(function* () {
      const { corpus, passages } = yield* indexOf(undici)
      const lines = new Map(corpus.files.map((file) => [file.path, file.lines]))
      assert.isAtLeast(passages.length, 1000)
      for (const { file, pieces } of passages) {
        for (const piece of pieces) assert.include(lines.get(file)?.[piece.line - 1], piece.text)
      }
    }),
  )
})
