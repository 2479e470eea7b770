import { assert, describe, it } from "@effect/vitest"
import { breaches, missingDoors } from "./rooms.ts"
import { manifest, paths, read } from "./tree.ts"

const heavy = ["openai", "gpt-tokenizer", "@pydantic/genai-prices", "@opentelemetry/api", "@effect/platform-node"]
const declared = new Set(["effect", ...heavy])
const found = (path: string, text: string): ReadonlyArray<string> => breaches([{ path, text }], declared)

describe("the rooms of src", () => {
  const files = paths("src")
  const peers = new Set(Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }))

  it("lean one way", () => {
    assert.isAbove(files.length, 0)
    assert.deepStrictEqual(breaches(files.map(read), peers), [])
  })

  it("open through every door that package.json names", () => {
    assert.deepStrictEqual(missingDoors(files, Object.keys(manifest.exports)), [])
  })
})

describe("an import is accepted", () => {
  it.each([
    ["within a room", "src/tool/Contract.ts", 'import { x } from "./internal/x.ts"'],
    ["of a room above", "src/agent/Agent.ts", 'import * as Budget from "../budget/Budget.ts"'],
    ["of a room above, from deep inside", "src/loop/internal/step.ts", 'import * as S from "../../state/State.ts"'],
    ["of any room by a door", "src/otel/index.ts", 'import * as Durable from "../durable/Durable.ts"'],
    ["of any room by testing", "src/testing/index.ts", 'import * as Agent from "../agent/Agent.ts"'],
    ["of a room by the main door", "src/index.ts", 'export * as Budget from "./budget/Budget.ts"'],
    ["of one module of effect", "src/tool/Contract.ts", 'import * as Effect from "effect/Effect"'],
    ["of one module of effect/ai", "src/tool/Contract.ts", 'import * as Tool from "effect/ai/Tool"'],
    ["of a heavy package by its door", "src/openai/index.ts", 'import OpenAI from "openai"'],
    [
      "of the table of prices by its door",
      "src/prices/Prices.ts",
      'import { calcPrice } from "@pydantic/genai-prices"',
    ],
    [
      "of a tokeniser by its door",
      "src/openai/internal/tokens.ts",
      'await import("gpt-tokenizer/encoding/o200k_base")',
    ],
    ["of a whole scope by its door", "src/otel/Otel.ts", 'import { trace } from "@opentelemetry/api"'],
    ["of a part of Node", "src/journal/Journal.ts", 'import { join } from "node:path"'],
    ["that is only mentioned", "src/budget/Budget.ts", '// import "../agent/Agent.ts"\nconst x = `import "openai"`'],
  ])("%s", (_, path, text) => {
    assert.deepStrictEqual(found(path, text), [])
  })
})

describe("an import is refused", () => {
  it.each([
    ["of a room below", "src/budget/Budget.ts", 'import { x } from "../event/Event.ts"', "does not stand above"],
    ["of a room beside", "src/journal/Journal.ts", 'import "../telemetry/Names.ts"', "does not stand above"],
    ["of a room beside, the other way", "src/telemetry/Names.ts", 'import "../journal/Journal.ts"', "does not stand"],
    ["of a type of a room below", "src/tool/Tool.ts", 'import type { A } from "../agent/Agent.ts"', "agent"],
    ["passed on from a room below", "src/tool/Tool.ts", 'export * from "../loop/Loop.ts"', "loop"],
    ["passed on by name from a room below", "src/tool/Tool.ts", 'export { a } from "../loop/Loop.ts"', "loop"],
    ["made when it runs", "src/tool/Tool.ts", 'const a = await import("../loop/Loop.ts")', "loop"],
    ["inside a type", "src/tool/Tool.ts", 'let a: import("../loop/Loop.ts").A', "loop"],
    ["with require", "src/tool/Tool.ts", 'import a = require("../loop/Loop.ts")', "loop"],
    ["of a computed name", "src/tool/Tool.ts", "const a = await import(name)", "cannot be checked"],
    ["of a door by a room", "src/agent/Agent.ts", 'import "../openai/index.ts"', "door openai"],
    ["of a door by another", "src/node/index.ts", 'import "../otel/index.ts"', "door otel"],
    ["of testing by a door", "src/otel/index.ts", 'import "../testing/index.ts"', "door testing"],
    ["of a door by testing", "src/testing/index.ts", 'import "../node/index.ts"', "door node"],
    ["of a door by the main door", "src/index.ts", 'export * from "./openai/index.ts"', "door openai"],
    ["of testing by the main door", "src/index.ts", 'export * from "./testing/index.ts"', "door testing"],
    ["of a package by the main door", "src/index.ts", 'export * from "effect/Effect"', "rooms only"],
    ["of the main door by a room", "src/agent/Agent.ts", 'import { Budget } from "../index.ts"', "public door"],
    ["of the package by itself", "src/agent/Agent.ts", 'import { Budget } from "bursar"', "this package itself"],
    ["of something outside src", "src/agent/Agent.ts", 'import "../../test/x.ts"', "out of the rooms"],
    ["of the barrel of effect", "src/tool/Tool.ts", 'import { Effect } from "effect"', "barrel"],
    ["of the barrel of effect/ai", "src/tool/Tool.ts", 'import { Tool } from "effect/ai"', "barrel"],
    ["of openai by a room", "src/model/Model.ts", 'import type OpenAI from "openai"', "behind src/openai"],
    ["of a part of openai by a room", "src/model/Model.ts", 'import "openai/resources"', "behind src/openai"],
    ["of the table of prices by a room", "src/model/Price.ts", 'import "@pydantic/genai-prices"', "behind src/prices"],
    ["of a tokeniser by a room", "src/model/Estimate.ts", 'import "gpt-tokenizer/model/gpt-5"', "behind src/openai"],
    ["of OpenTelemetry by a room", "src/telemetry/Span.ts", 'import "@opentelemetry/api"', "behind src/otel"],
    ["of a heavy package by another door", "src/node/index.ts", 'import "@effect/opentelemetry"', "behind src/otel"],
    ["of the platform by a room", "src/journal/Disk.ts", 'import "@effect/platform-node"', "src/node or src/cli"],
    ["of a package no user has", "src/tool/Tool.ts", 'import "minisearch"', "not among the dependencies"],
  ])("%s", (_, path, text, why) => {
    const [first, ...rest] = found(path, `// one line above\n${text}`)
    assert.deepStrictEqual(rest, [])
    assert.match(String(first), new RegExp(`^${path}:2 .*${why}`))
  })
})

describe("a file is refused", () => {
  it.each(["src/tool/utils.ts", "src/agent/internal/helpers.ts", "src/loop/common/a.ts", "src/budget/shared.ts"])(
    "whose name says nothing: %s",
    (path) => assert.match(String(found(path, "export {}")), /says nothing/),
  )
  it.each(["src/loose.ts", "src/attic/Box.ts"])("that lies in no room: %s", (path) =>
    assert.match(String(found(path, "export {}")), /lies in no room/),
  )
  it("that cannot be read", () => {
    assert.throws(() => found("src/tool/Tool.ts", "const = 1"), /src\/tool\/Tool\.ts/)
  })
})

describe("a door is missing", () => {
  it("when there is something behind it and no index.ts", () => {
    assert.deepStrictEqual(missingDoors(["src/openai/Model.ts"], [".", "./openai"]), ["src/openai/index.ts"])
    assert.deepStrictEqual(missingDoors(["src/agent/Agent.ts"], [".", "./openai"]), ["src/index.ts"])
  })
  it("not when it stands, nor before anything is behind it", () => {
    const files = ["src/index.ts", "src/agent/Agent.ts", "src/openai/index.ts"]
    assert.deepStrictEqual(missingDoors(files, [".", "./openai", "./otel"]), [])
    assert.deepStrictEqual(missingDoors(["src/budget/Budget.ts"], ["."]), [])
  })
})
