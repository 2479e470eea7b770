/**
 * The books of a run as one table: what each account used itself, out of what it was granted, and what is left of it all.
 */
import { add, type Amounts, type Dimension, dimensions, zero } from "../../budget/Dimension.ts"
import type { Sum } from "../audit/Tally.ts"
import { aligned, amountOf, clipped, inOneLine } from "./Words.ts"

const titles: { readonly [D in Dimension]: string } = {
  steps: "steps",
  ticks: "ticks",
  inputTokens: "tokens in",
  outputTokens: "tokens out",
  money: "money (USD)",
  toolCalls: "tool calls",
}

/** A line for each account, parents before their children, and one for all of them. */
export const accountTable = (sums: ReadonlyArray<Sum>): ReadonlyArray<string> => {
  if (sums.length === 0) return []
  const shown = dimensions.filter((d) => sums.some((sum) => sum.capped[d] || sum.own[d] > 0))
  const root = sums.find(({ parent }) => parent === undefined)
  const all = sums.reduce((sum, one) => add(sum, one.own), zero)
  const rows = inOrder(sums).map((sum) => [nameOf(sum), ...shown.map((d) => cell(sum, d, sum.own[d]))])
  const total =
    root === undefined ? [] : [["all", ...shown.map((d) => cell(root, d, all[d]))], leftOf(root, all, shown)]
  return aligned([["account: used/granted", ...shown.map((d) => titles[d])], ...rows, ...total], "right")
}

/** What nobody has used: once the root is closed it is what is left. */
const leftOf = (root: Sum, used: Amounts, shown: ReadonlyArray<Dimension>): ReadonlyArray<string> => [
  root.isClosed ? "left" : "not used",
  ...shown.map((d) => (root.capped[d] ? amountOf(d, root.granted[d] - used[d]) : "-")),
]

const cell = ({ capped, granted }: Sum, d: Dimension, used: number): string =>
  capped[d] ? `${amountOf(d, used)}/${amountOf(d, granted[d])}` : amountOf(d, used)

const nameOf = ({ account, depth }: Sum): string =>
  clipped("  ".repeat(Math.min(depth, 8)) + inOneLine(account.split("/").at(-1) ?? account), 24)

const inOrder = (sums: ReadonlyArray<Sum>): ReadonlyArray<Sum> => {
  const known = new Set(sums.map(({ account }) => account))
  const below = Map.groupBy(sums, ({ parent }) => (parent !== undefined && known.has(parent) ? parent : undefined))
  const from = (parent: string | undefined): ReadonlyArray<Sum> =>
    (below.get(parent) ?? []).flatMap((sum) => [sum, ...from(sum.account)])
  return from(undefined)
}
