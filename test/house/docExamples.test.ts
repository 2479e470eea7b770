import { afterAll, assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import * as path from "node:path"
import { type Example, examples, examplesIn, fileName, runnable, typed } from "./docs.ts"
import { type Scope, scopeOf } from "./docImports.ts"
import { paths, read, root } from "./tree.ts"

// Inside the repository, so that the aliases of the package doors apply.
const parent = path.join(root, "test/.tmp")
fs.mkdirSync(parent, { recursive: true })
const folder = fs.mkdtempSync(path.join(parent, "docs-"))
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }))

const run = async (example: Example, scope: Scope): Promise<void> => {
  const file = path.join(folder, fileName(example))
  fs.writeFileSync(file, runnable(example, scope))
  await import(/* @vite-ignore */ file)
}

const failureOf = (promise: Promise<void>): Promise<string> => promise.then(() => "", String)

const sources = paths("src").map(read)
const all = examples(sources)

describe("examples", () => {
  it("have places of their own", () => {
    assert.strictEqual(new Set(all.map(fileName)).size, all.length)
  })
  for (const example of all.filter(({ run }) => run)) {
    it(`${example.path}:${example.line}`, () => run(example, scopeOf(example.path, sources)))
  }
})

const none: Scope = () => undefined
const scope: Scope = (name) => `import * as ${name} from "somewhere/${name}"`
const comment = (...lines: ReadonlyArray<string>): string =>
  ["const before = 1", "/**", ...lines.map((line) => ` * ${line}`), " */", "export const after = 2"].join("\n")
const inSource = (...lines: ReadonlyArray<string>) => examplesIn({ path: "src/x/X.ts", text: comment(...lines) })

describe("finding examples", () => {
  it("takes each ts fence of a doc comment with its line", () => {
    assert.deepStrictEqual(inSource("Text.", "", "```ts", "const a = 1", "", "a", "```", "```ts no-run", "b", "```"), [
      { path: "src/x/X.ts", line: 5, code: "const a = 1\n\na", run: true },
      { path: "src/x/X.ts", line: 10, code: "b", run: false },
    ])
  })
  it("takes those of Markdown, indented ones too", () => {
    const text = "# Title\n\n- item\n\n  ```ts\n  const a = {\n    b: 1,\n  }\n  ```\n"
    assert.deepStrictEqual(examplesIn({ path: "README.md", text }), [
      { path: "README.md", line: 5, code: "const a = {\n  b: 1,\n}", run: true },
    ])
  })
  it("leaves other languages, other comments and strings alone", () => {
    assert.deepStrictEqual(inSource("```sh", "ls", "```", "```", "text", "```"), [])
    const text = "/* \n```ts\na\n```\n*/\nexport const s = `/**\n\\`\\`\\`ts\na\n\\`\\`\\`\n*/`"
    assert.deepStrictEqual(examplesIn({ path: "src/x/X.ts", text }), [])
  })
  it("refuses a word it does not know and a fence that stays open", () => {
    assert.throws(() => inSource("```ts norun", "a", "```"), 'src/x/X.ts:3 "ts norun"')
    assert.throws(() => inSource("```ts", "a"), "src/x/X.ts:3 the example is not closed")
  })
})

let line = 0
const example = (...code: ReadonlyArray<string>): Example => ({
  path: "src/x/Seeded.ts",
  line: (line += 10),
  code: code.join("\n"),
  run: true,
})

describe("running an example", () => {
  it.each([
    ["an expression", ["1 + 1 // => 2"]],
    ["the line below", ["[1, 2].map((n) => n * 2)", "// => [2, 4]"]],
    ["a constant", ["const a = [1]; // => [1]", "a.length // => 1"]],
    ["several lines before", ["[", "  1,", "].concat(2) // => [1, 2]"]],
    ["what is printed", ['console.log({ a: "b" }) // => { a: "b" }']],
    [
      "inside a generator",
      ["const f = function* () {", "  yield* [1] // => undefined", "}", "for (const _ of f()) {}"],
    ],
    ["a promise", ["await Promise.resolve(3) // => 3"]],
    ["an instance by its fields", ["class A { a = [1] }", "new A() // => { a: [1] }"]],
    ["values of effect", ['import * as Option from "effect/Option"', "Option.some([1]) // => Option.some([1])"]],
    ["inside one that is compared", ["[1].map((n) => {", "  n + 1 // => 2", "  return n", "}) // => [1]"]],
    ["two on neighbouring lines", ["let n = 0", "++n // => 1", "++n // => 2"]],
  ])("accepts a right value: %s", async (_, code) => {
    assert.strictEqual(await failureOf(run(example(...code), none)), "")
  })

  it.each([
    ["an expression", ["1 + 1 // => 3"], "is 2, not 3"],
    ["the line below", ["[1, 2]", "// => [2, 1]"], "is [ 1, 2 ], not [ 2, 1 ]"],
    ["a constant", ["const a = [1] // => [2]"], "is [ 1 ], not [ 2 ]"],
    ["what is printed", ["console.log(1) // => 2"], "is 1, not 2"],
    ["deep inside", ["for (const _ of [1]) {", "  if (true) Math.max(1, 2) // => 1", "}"], "is 2, not 1"],
    ["a field more", ["({ a: 1, b: undefined }) // => { a: 1 }"], "is { a: 1, b: undefined }"],
    ["a field less", ["({ a: 1 }) // => { a: 1, b: undefined }"], "is { a: 1 }, not"],
    ["another type", ['"1" // => 1'], "is '1', not 1"],
    ["values of effect", ['import * as Option from "effect/Option"', "Option.some(1) // => Option.none()"], "not"],
    ["inside one that is right", ["[1].map((n) => {", "  n + 1 // => 3", "  return n", "}) // => [1]"], "is 2, not 3"],
    [
      "around one that is right",
      ["[1].map((n) => {", "  n + 1 // => 2", "  return n", "}) // => [2]"],
      "is [ 1 ], not",
    ],
    ["the second of two", ["let n = 0", "++n // => 1", "++n // => 3"], "is 2, not 3"],
  ])("refuses a wrong value: %s", async (_, code, message) => {
    assert.include(await failureOf(run(example(...code), none)), message)
  })

  it("names the line that is wrong", async () => {
    const seeded = example("const a = 1", "", "a // => 2")
    assert.include(await failureOf(run(seeded, none)), `src/x/Seeded.ts:${seeded.line + 3} is 1, not 2`)
  })

  it("fails when the example throws", async () => {
    assert.include(await failureOf(run(example('throw new Error("boom")'), none)), "boom")
  })

  it.each([
    ["1", "// note", "// => 1"],
    ["const a = {", "  b: 1, // => 1", "}"],
    ["const { a } = { a: 1 } // => 1"],
    ["1 // =>"],
  ])("refuses an arrow that compares nothing: %s", async (...code) => {
    assert.include(await failureOf(run(example(...code), none)), "stands between no two values")
  })
})

describe("the imports an example leaves out", () => {
  const head = (...code: ReadonlyArray<string>): string => typed(example(...code), scope).split("\n")[0] ?? ""

  it("are added for unknown names with a capital, once", () => {
    assert.strictEqual(head("Tokens.make(Tokens.zero)"), 'import * as Tokens from "somewhere/Tokens"')
    assert.strictEqual(head("let a: Tokens.Tokens"), 'import * as Tokens from "somewhere/Tokens"')
    assert.strictEqual(head("f({ Tokens })"), 'import * as Tokens from "somewhere/Tokens"')
  })
  it("are not added for what is imported, declared, global or only a field", () => {
    assert.strictEqual(head('import * as Tokens from "x"', "Tokens.make(1)"), "")
    assert.strictEqual(
      head("class Tokens {}", "interface A {}", "type B = A", "const { C } = new Tokens() as B", "C"),
      "",
    )
    assert.strictEqual(head("new Map<Record<string, 1>, Array<1>>(Object.entries({}))"), "")
    assert.strictEqual(head("a.Tokens({ Tokens: 1 })"), "")
  })
  it("are added for what only the expected value names", () => {
    const [first] = runnable(example("1 // => Tokens.one"), scope).split("\n")
    assert.include(first, 'import * as Tokens from "somewhere/Tokens"')
  })
  it("keep every line where it was", () => {
    const seeded = example("const a = 1", "Tokens.make(a)")
    assert.strictEqual(typed(seeded, scope).split("\n")[seeded.line + 1], "Tokens.make(a)")
  })
  it("come from the source, then from effect", () => {
    const own = {
      path: "src/budget/Amount.ts",
      text: "export const Amount = 1, Tokens = 2\nexport class Unit {}\nconst Hidden = 3",
    }
    const beside = { path: "src/budget/Ledger.ts", text: "" }
    const apart = { path: "src/agent/Ledger.ts", text: "" }
    const door = { path: "src/index.ts", text: 'export * as Agent from "./agent/Agent.ts"' }
    const seeded = scopeOf(own.path, [apart, own, beside, door])
    assert.strictEqual(seeded("Agent"), 'import { Agent } from "bursar"')
    assert.match(String(seeded("Amount")), /^import \* as Amount from ".*src\/budget\/Amount\.ts"$/)
    assert.match(String(seeded("Ledger")), /^import \* as Ledger from ".*src\/budget\/Ledger\.ts"$/)
    assert.match(String(seeded("Tokens")), /^import \{ Tokens \} from ".*src\/budget\/Amount\.ts"$/)
    assert.match(String(seeded("Unit")), /^import \{ Unit \} from /)
    assert.isUndefined(seeded("Hidden"))
    assert.strictEqual(seeded("Effect"), 'import * as Effect from "effect/Effect"')
    assert.strictEqual(seeded("LanguageModel"), 'import * as LanguageModel from "effect/ai/LanguageModel"')
    assert.strictEqual(seeded("TestClock"), 'import * as TestClock from "effect/testing/TestClock"')
  })
  it("come from nowhere in Markdown", () => {
    assert.isUndefined(scopeOf("README.md", sources)("Effect"))
  })
})
