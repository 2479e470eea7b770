import { assert, describe, it } from "@effect/vitest"
import { plausible } from "../../src/model/Price.ts"
import type { Usage } from "../../src/model/Provider.ts"
import { toUsage } from "../../src/openai/internal/usage.ts"
import type { UsageStyle } from "../../src/openai/Options.ts"

const usage = (
  input: number | undefined,
  output: number | undefined,
  more: {
    readonly cached?: number
    readonly written?: number
    readonly reasoning?: number
    readonly total?: number
  } = {},
): Usage => ({
  inputTokens: input,
  cachedInputTokens: more.cached,
  cacheWriteInputTokens: more.written,
  outputTokens: output,
  reasoningTokens: more.reasoning,
  ...(more.total === undefined ? {} : { totalTokens: more.total }),
})

const cases: ReadonlyArray<{
  readonly name: string
  readonly stated: unknown
  readonly style?: UsageStyle
  readonly is: Usage | undefined
  readonly isPlausible: boolean
}> = [
  {
    name: "Responses",
    stated: {
      input_tokens: 100,
      input_tokens_details: { cached_tokens: 60, cache_write_tokens: 10 },
      output_tokens: 20,
      output_tokens_details: { reasoning_tokens: 15 },
      total_tokens: 120,
    },
    is: usage(100, 20, { cached: 60, written: 10, reasoning: 15 }),
    isPlausible: true,
  },
  {
    name: "Chat Completions",
    stated: {
      prompt_tokens: 100,
      prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 10 },
      completion_tokens: 20,
      completion_tokens_details: { reasoning_tokens: 15, rejected_prediction_tokens: 3 },
      total_tokens: 120,
    },
    is: usage(100, 20, { cached: 60, written: 10, reasoning: 15 }),
    isPlausible: true,
  },
  {
    name: "cached tokens under a name of the server's own",
    stated: { prompt_tokens: 100, completion_tokens: 20, prompt_cache_hit_tokens: 60, prompt_cache_miss_tokens: 40 },
    is: usage(100, 20, { cached: 60 }),
    isPlausible: true,
  },
  {
    name: "details that are null",
    stated: { prompt_tokens: 100, completion_tokens: 20, prompt_tokens_details: null, completion_tokens_details: null },
    is: usage(100, 20),
    isPlausible: true,
  },
  { name: "nothing", stated: null, is: undefined, isPlausible: false },
  { name: "no numbers", stated: {}, is: usage(undefined, undefined), isPlausible: false },
  {
    name: "zero beside a reply",
    stated: { prompt_tokens: 0, completion_tokens: 0 },
    is: usage(0, 0),
    isPlausible: false,
  },
  {
    name: "a text",
    stated: { prompt_tokens: "100", completion_tokens: 20 },
    is: usage(undefined, 20),
    isPlausible: false,
  },
  {
    name: "more cached than there is",
    stated: { input_tokens: 100, output_tokens: 20, input_tokens_details: { cached_tokens: 101 } },
    is: usage(100, 20, { cached: 101 }),
    isPlausible: false,
  },
  { name: "a negative", stated: { input_tokens: -1, output_tokens: 20 }, is: usage(-1, 20), isPlausible: false },
  { name: "a fraction", stated: { input_tokens: 1.5, output_tokens: 20 }, is: usage(1.5, 20), isPlausible: false },
  {
    name: "a total below its parts",
    stated: { input_tokens: 100, output_tokens: 20, total_tokens: 119 },
    is: usage(100, 20, { total: 119 }),
    isPlausible: false,
  },
  {
    name: "a cache on top of the input",
    stated: { prompt_tokens: 30, completion_tokens: 20, cache_read_input_tokens: 60, cache_creation_input_tokens: 10 },
    style: "exclusive-cache",
    is: usage(100, 20, { cached: 60, written: 10 }),
    isPlausible: true,
  },
  {
    name: "a missing input under a cache on top of it",
    stated: { completion_tokens: 20, cache_read_input_tokens: 60 },
    style: "exclusive",
    is: usage(undefined, 20, { cached: 60 }),
    isPlausible: false,
  },
  {
    name: "reasoning on top of the output",
    stated: { prompt_tokens: 100, completion_tokens: 5, completion_tokens_details: { reasoning_tokens: 15 } },
    style: "exclusive-reasoning",
    is: usage(100, 20, { reasoning: 15 }),
    isPlausible: true,
  },
  {
    name: "reasoning on top of the output, told by the total alone",
    stated: {
      prompt_tokens: 100,
      completion_tokens: 5,
      completion_tokens_details: { reasoning_tokens: 15 },
      total_tokens: 120,
    },
    is: usage(100, 20, { reasoning: 15 }),
    isPlausible: true,
  },
  {
    name: "a cache on top of the input, told by the total alone",
    stated: { prompt_tokens: 30, completion_tokens: 20, cache_read_input_tokens: 70, total_tokens: 120 },
    is: usage(100, 20, { cached: 70 }),
    isPlausible: true,
  },
  {
    name: "both on top, told by the total alone",
    stated: {
      prompt_tokens: 30,
      completion_tokens: 5,
      cache_read_input_tokens: 70,
      reasoning_tokens: 15,
      total_tokens: 120,
    },
    is: usage(100, 20, { cached: 70, reasoning: 15 }),
    isPlausible: true,
  },
  {
    name: "inclusive as it was set, whatever the total says",
    stated: { prompt_tokens: 30, completion_tokens: 20, cache_read_input_tokens: 70, total_tokens: 120 },
    style: "inclusive",
    is: usage(30, 20, { cached: 70 }),
    isPlausible: false,
  },
]

describe("usage", () => {
  for (const { is, isPlausible, name, stated, style } of cases) {
    it(`of ${name} is ${isPlausible ? "read" : "handed on as it came, and not believed"}`, () => {
      const read = toUsage(stated, style)
      assert.deepStrictEqual(read, is)
      assert.strictEqual(plausible(read) !== undefined, isPlausible)
    })
  }
})
