/**
 * Looking at a tree before it runs: how much each level would get, and where a level could not answer.
 *
 * With half of each grant in explore a line of agents has 50, 25, 12.5, 6.3 per cent at depths 1 to 4: a plan shows it in
 * numbers. An agent that only delegates keeps less for itself with {@link coordinator}.
 */
import * as Result from "effect/Result"
import { type Input, parse } from "./Amount.ts"
import { amounts, type Amounts, dimensions, type Dimension, type Grant } from "./Dimension.ts"
import { describe, type Refusal } from "./Refusal.ts"
import { forAgent, type PerReserve, type Plan, type Shares, split } from "./Reserve.ts"

/**
 * Shares for an agent that only delegates: little for checks and retries of its own, so that more reaches its children.
 *
 * @category plans
 * @since 0.1.0
 */
export const coordinator: Shares = { output: 10, verify: 5, retry: 5 }

/**
 * A level of a planned tree: `count` nodes side by side (1 unless stated), all of a parent's children getting equal parts
 * of its explore, once each start has cost one tool call.
 *
 * @category plans
 * @since 0.1.0
 */
export interface PlannedNode {
  readonly name: string
  readonly count?: number
  readonly atLeast?: Grant
  readonly reserves?: Plan
  readonly children?: ReadonlyArray<PlannedNode>
}

/**
 * What one node of a level would get. `warnings` say in sentences what would go wrong; empty when nothing would.
 *
 * @category plans
 * @since 0.1.0
 */
export interface PlannedLevel {
  readonly path: string
  readonly depth: number
  /** How many such nodes there are in the whole tree. */
  readonly count: number
  readonly granted: Grant
  readonly reserves: PerReserve<Amounts> | undefined
  readonly warnings: ReadonlyArray<string>
}

/**
 * How much each level of a tree would get of a budget.
 *
 * **Fails with** the refusal of an amount that cannot be read.
 *
 * **Example** (A lead, four editors, three researchers each)
 *
 * ```ts
 * import { Budget } from "bursar"
 * import * as Result from "effect/Result"
 *
 * const tree = { name: "lead", children: [{ name: "editor", count: 4, children: [{ name: "researcher", count: 3 }] }] }
 * const levels = Result.getOrThrow(Budget.plan({ steps: 60 }, tree))
 * levels.map((level) => [level.path, level.count, level.granted.steps])
 * // => [["lead", 1, 60], ["lead/editor", 4, 11], ["lead/editor/researcher", 12, 2]]
 * Result.getOrThrow(Budget.plan({ steps: 10 }, tree)).at(-1)!.warnings
 * // => ["a researcher would get no steps; it needs at least 1 to answer"]
 * ```
 *
 * @category plans
 * @since 0.1.0
 */
export const plan = (input: Input, root: PlannedNode): Result.Result<ReadonlyArray<PlannedLevel>, Refusal> =>
  Result.map(parse(input), ({ grant }) => levelsOf(root, { path: "", depth: 0, count: 1, grant }))

interface At {
  readonly path: string
  readonly depth: number
  readonly count: number
  readonly grant: Grant
}

const levelsOf = (node: PlannedNode, at: At): ReadonlyArray<PlannedLevel> => {
  const path = at.path === "" ? node.name : `${at.path}/${node.name}`
  const reserves = split(at.grant, node.reserves ?? forAgent({}), path)
  const level: PlannedLevel = {
    path,
    depth: at.depth,
    count: at.count,
    granted: at.grant,
    reserves: Result.isSuccess(reserves) ? reserves.success : undefined,
    warnings: [...shortOf(node, at.grant), ...unanswerable(node, at.grant, reserves)],
  }
  const children = node.children ?? []
  const siblings = children.reduce((sum, child) => sum + (child.count ?? 1), 0)
  const explore = Result.isSuccess(reserves) ? reserves.success.explore : amounts({})
  const below = children.flatMap((child) => {
    const grant = equalPart(at.grant, explore, siblings)
    return levelsOf(child, { path, depth: at.depth + 1, count: at.count * (child.count ?? 1), grant })
  })
  return [level, ...below]
}

/** An equal part of explore for each of `count` children, after one tool call for each start and one step to decide it. */
const equalPart = (grant: Grant, explore: Amounts, count: number): Grant => {
  const part: { [D in Dimension]?: number } = {}
  for (const d of dimensions) {
    if (grant[d] === undefined) continue
    const spent = d === "steps" || d === "ticks" ? 1 : d === "toolCalls" ? count : 0
    part[d] = Math.max(0, Math.floor((explore[d] - spent) / count))
  }
  return part
}

const shortOf = (node: PlannedNode, grant: Grant): ReadonlyArray<string> =>
  dimensions.flatMap((d) => {
    const [given, least] = [grant[d], node.atLeast?.[d] ?? 0]
    return given !== undefined && given < least
      ? [`a ${node.name} would get ${given} ${d} and cannot work with less than ${least}`]
      : []
  })

const unanswerable = (
  node: PlannedNode,
  grant: Grant,
  reserves: Result.Result<PerReserve<Amounts>, Refusal>,
): ReadonlyArray<string> => {
  if (Result.isSuccess(reserves)) return []
  if (reserves.failure._tag !== "Insufficient") return [describe(reserves.failure)]
  return reserves.failure.shortages.map(
    ({ dimension, asked }) =>
      `a ${node.name} would get ${(grant[dimension as Dimension] ?? 0) || "no"} ${dimension}; it needs at least ${asked} to answer`,
  )
}
