/**
 * What a reply says it used, whichever protocol and server it comes from, in the one form of Bursar: cached and
 * reasoning tokens inside the totals.
 *
 * Its law: numbers are moved, never made. What is missing, negative, broken or contradicts itself is handed on as it
 * came: whoever books it judges it.
 */
import type * as AiResponse from "effect/ai/Response"
import type * as Provider from "../../model/Provider.ts"
import type { UsageStyle } from "../Options.ts"
import { asCount, asNumber, asRecord, type Json } from "./json.ts"

/** Token counts as the provider stated them; `undefined` where it stated none. */
export const toUsage = (usage: unknown, style: UsageStyle | undefined): Provider.Usage | undefined => {
  if (typeof usage !== "object" || usage === null) return undefined
  const stated = statedIn(asRecord(usage))
  const { cached, written, reasoning } = stated
  const { cache, thought } = style === undefined ? told(stated) : besides[style]
  return {
    inputTokens: cache ? plus(stated.input, [cached, written]) : stated.input,
    cachedInputTokens: cached,
    cacheWriteInputTokens: written,
    outputTokens: thought ? plus(stated.output, [reasoning]) : stated.output,
    reasoningTokens: reasoning,
    ...belied(stated),
  }
}

interface Stated {
  readonly input: number | undefined
  readonly cached: number | undefined
  readonly written: number | undefined
  readonly output: number | undefined
  readonly reasoning: number | undefined
  readonly total: number | undefined
}

/** The names under which servers state the same thing; the first that is there counts. */
const statedIn = (usage: Json): Stated => {
  const input = asRecord(usage["input_tokens_details"] ?? usage["prompt_tokens_details"])
  const output = asRecord(usage["output_tokens_details"] ?? usage["completion_tokens_details"])
  return {
    input: first(usage["input_tokens"], usage["prompt_tokens"]),
    cached: first(
      input["cached_tokens"],
      usage["prompt_cache_hit_tokens"],
      usage["cache_read_input_tokens"],
      usage["cached_tokens"],
    ),
    written: first(input["cache_write_tokens"], usage["cache_creation_input_tokens"], usage["cache_write_tokens"]),
    output: first(usage["output_tokens"], usage["completion_tokens"]),
    reasoning: first(output["reasoning_tokens"], usage["reasoning_tokens"]),
    total: asNumber(usage["total_tokens"]),
  }
}

const first = (...values: ReadonlyArray<unknown>): number | undefined => values.map(asNumber).find(isNumber)

const isNumber = (value: number | undefined): value is number => value !== undefined

interface Beside {
  readonly cache: boolean
  readonly thought: boolean
}

/** What lies on top of the totals. */
const besides: Readonly<Record<UsageStyle, Beside>> = {
  inclusive: { cache: false, thought: false },
  exclusive: { cache: true, thought: true },
  "exclusive-cache": { cache: true, thought: false },
  "exclusive-reasoning": { cache: false, thought: true },
}

/** The style that the total of both tells: it is what adds up. Inclusive, unless only another one does. */
const told = ({ cached, input, output, reasoning, total, written }: Stated): Beside => {
  const [over, cache, thought] = [(total ?? 0) - sum([input, output]), sum([cached, written]), sum([reasoning])]
  if (over <= 0) return besides.inclusive
  if (over === cache + thought && cache > 0 && thought > 0) return besides.exclusive
  if (over === cache) return besides["exclusive-cache"]
  return over === thought ? besides["exclusive-reasoning"] : besides.inclusive
}

/** A total below its parts, which belies them, is handed on with them. */
const belied = ({ input, output, total }: Stated): { readonly totalTokens?: number } =>
  total !== undefined && total < sum([input, output]) ? { totalTokens: total } : {}

const plus = (count: number | undefined, more: ReadonlyArray<number | undefined>): number | undefined =>
  count === undefined ? undefined : count + sum(more)

const sum = (counts: ReadonlyArray<number | undefined>): number =>
  counts.reduce<number>((total, count) => total + (count ?? 0), 0)

/** The same for `effect/ai`, which decodes these as integers and would throw the reply away over anything else. */
export const toEncodedUsage = (usage: Provider.Usage | undefined): typeof AiResponse.Usage.Encoded => {
  const total = asCount(usage?.inputTokens)
  const cacheRead = asCount(usage?.cachedInputTokens)
  const cacheWrite = asCount(usage?.cacheWriteInputTokens)
  const output = asCount(usage?.outputTokens)
  const reasoning = asCount(usage?.reasoningTokens)
  const uncached = total === undefined ? undefined : asCount(total - (cacheRead ?? 0) - (cacheWrite ?? 0))
  const text = output === undefined ? undefined : asCount(output - (reasoning ?? 0))
  return { inputTokens: { total, uncached, cacheRead, cacheWrite }, outputTokens: { total: output, text, reasoning } }
}
