/**
 * Which usage can be believed. What cannot is booked at the hold of its call, never at zero.
 */
import type { Usage } from "./Provider.ts"

/**
 * Usage that can be booked: present, whole, consistent, and not zero beside a reply.
 *
 * **Units**: tokens; cached and cache-written ones lie inside the input, reasoning inside the output.
 */
export interface Complete {
  readonly inputTokens: number
  readonly cachedInputTokens: number
  readonly cacheWriteInputTokens: number
  readonly outputTokens: number
  readonly reasoningTokens: number
}

/**
 * Usage as it can be booked, or `undefined` when it is missing, all zero, negative, not whole, or contradicts itself.
 * Such a call is booked at its hold.
 */
export const plausible = (usage: Usage | undefined): Complete | undefined => {
  if (usage?.inputTokens === undefined || usage.outputTokens === undefined) return undefined
  const complete: Complete = {
    inputTokens: usage.inputTokens,
    cachedInputTokens: usage.cachedInputTokens ?? 0,
    cacheWriteInputTokens: usage.cacheWriteInputTokens ?? 0,
    outputTokens: usage.outputTokens,
    reasoningTokens: usage.reasoningTokens ?? 0,
  }
  const natural =
    isNatural(complete.inputTokens) &&
    isNatural(complete.cachedInputTokens) &&
    isNatural(complete.cacheWriteInputTokens) &&
    isNatural(complete.outputTokens) &&
    isNatural(complete.reasoningTokens)
  const consistent =
    complete.cachedInputTokens + complete.cacheWriteInputTokens <= complete.inputTokens &&
    complete.reasoningTokens <= complete.outputTokens
  const { totalTokens: total } = usage
  const isWhole = total === undefined || (isNatural(total) && total >= complete.inputTokens + complete.outputTokens)
  return natural && consistent && isWhole && complete.inputTokens + complete.outputTokens > 0 ? complete : undefined
}

/** A whole number from 0 on that a float holds exactly. */
export const isNatural = (count: number): boolean => Number.isSafeInteger(count) && count >= 0
