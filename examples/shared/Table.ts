/**
 * What a person reads of a run, whatever it was about: its events as they happen, how each agent ended, and the books of
 * the tree.
 */
import { type Agent, Budget, type Event } from "../../src/index.ts"

const words: { readonly [D in Budget.Dimension]: string } = {
  steps: "steps",
  ticks: "ticks",
  inputTokens: "input tokens",
  outputTokens: "output tokens",
  money: "money (USD)",
  toolCalls: "tool calls",
}

const amount = (dimension: Budget.Dimension, value: number): string =>
  dimension === "money" ? Budget.formatMoney(value).replace(" USD", "") : String(value)

const shown = (dimension: Budget.Dimension, rows: ReadonlyArray<Budget.Row>): boolean =>
  dimension !== "ticks" && rows.some((row) => row.capped[dimension] || row.own[dimension] > 0)

/** The budget tree, a block for each dimension that is capped or was used, each with its law. */
export const budgetTables = (rows: ReadonlyArray<Budget.Row>): string =>
  Budget.dimensions
    .filter((dimension) => shown(dimension, rows))
    .map((dimension) => budgetTable(dimension, rows))
    .join("\n\n")

const columns = ["granted", "own", "children", "returned", "explore", "retry", "verify", "output"] as const

const budgetTable = (dimension: Budget.Dimension, rows: ReadonlyArray<Budget.Row>): string => {
  const lines = rows.map((row) => [indented(row), ...cells(dimension, row)])
  const title = [words[dimension], ...columns]
  return [...aligned([title, ...lines]), lawOf(dimension, rows)].join("\n")
}

const indented = (row: Budget.Row): string => "  ".repeat(row.depth) + (row.account.split("/").at(-1) ?? row.account)

const cells = (dimension: Budget.Dimension, row: Budget.Row): ReadonlyArray<string> => {
  const of = (value: number) => amount(dimension, value)
  const limited = (value: number) => (row.capped[dimension] ? of(value) : "–")
  return [
    limited(row.granted[dimension]),
    of(row.own[dimension]),
    of(row.children[dimension]),
    limited(row.left[dimension]),
    ...Budget.reserves.map((reserve) => {
      const { used, allocated } = row.reserves[reserve]
      return row.capped[dimension] ? `${of(used[dimension])}/${of(allocated[dimension])}` : of(used[dimension])
    }),
  ]
}

const lawOf = (dimension: Budget.Dimension, rows: ReadonlyArray<Budget.Row>): string => {
  const root = rows.find((row) => row.parent === undefined)
  const own = rows.reduce((sum, row) => sum + row.own[dimension], 0)
  if (root === undefined || !root.capped[dimension]) return `own use of all: ${amount(dimension, own)}, no cap`
  const [left, granted] = [root.left[dimension], root.granted[dimension]]
  const sign = own + left === granted ? "=" : "≠"
  return `own use of all ${amount(dimension, own)} + left ${amount(dimension, left)} ${sign} granted ${amount(dimension, granted)}`
}

/** Columns of equal width, the first to the left, the others to the right. */
const aligned = (lines: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<string> => {
  const widths = lines[0]!.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)))
  return lines.map((line) =>
    line.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!))).join("  "),
  )
}

/** How each agent ended. */
export const endings = (ends: ReadonlyArray<Agent.AgentEnd>): string =>
  aligned([
    ["agent", "stop reason", "result", "steps"],
    ...ends.map((end) => [end.agent, end.reason, end.result, String(end.steps)]),
  ]).join("\n")

/** "1 file", "2 files". */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`

/** One line for an event worth seeing, or none; `wordsOf` says what it says. */
export const eventLine = (
  { event, atMillis }: Event.Recorded,
  startMillis: number,
  wordsOf: (event: Event.Event) => string | undefined = eventWords,
): string | undefined => {
  const what = wordsOf(event)
  return what === undefined ? undefined : `${((atMillis - startMillis) / 1000).toFixed(2).padStart(7)}s  ${what}`
}

/** What an event says to somebody who watches; nothing where it says little. */
export const eventWords = (event: Event.Event): string | undefined => {
  switch (event._tag) {
    case "AgentStarted":
      return `${event.agent} starts: ${clipped((event.task.text ?? "").replaceAll(/\s+/g, " "), 90)}`
    case "CallStarted":
      return event.child !== undefined ? undefined : `${event.agent} calls ${event.tool}`
    case "CallEnded":
      return event.outcome === "ok"
        ? undefined
        : `${event.agent} ${event.tool}: ${event.code ?? "failed"}: ${clipped(event.message ?? "", 100)}`
    case "DecisionFailed":
      return `${event.agent} could not decide: ${event.message}`
    case "Verified":
      return event.accepted ? undefined : `${event.agent}: the answer was not accepted`
    case "Stopping":
      return `${event.agent} has to stop: ${event.reason}`
    case "Overran":
      return `${event.account}: a bill was above its hold`
    case "AgentEnded":
      return `${event.agent} ends: ${event.reason} (${event.result}, ${event.steps} steps)`
    default:
      return undefined
  }
}

/** The text, or as much of it as fits. */
export const clipped = (text: string, most: number): string =>
  text.length > most ? `${text.slice(0, most - 1)}…` : text
