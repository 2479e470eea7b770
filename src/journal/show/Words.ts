/**
 * How times, amounts and texts of a run are written for people: in one line, in a fixed width, and without anything that
 * a terminal could take for a command.
 */
import { formatMoney } from "../../budget/Amount.ts"
import { type Amounts, amounts, type Dimension, type Grant } from "../../budget/Dimension.ts"
import { type Content } from "../../event/Content.ts"

/** Columns of a line. */
export const width = 100

/** A text in one line: whatever steers a terminal, or turns the direction of a text, is a space. */
export const inOneLine = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, " ").trim()

/** A line as it is, but for what steers a terminal: names and codes may come from anywhere. */
export const harmless = (line: string): string => line.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, " ")

/** At most that many characters, the last of them an ellipsis where something is left out. */
export const clipped = (text: string, most: number): string => {
  const characters = [...text]
  return characters.length <= most ? text : `${characters.slice(0, Math.max(0, most - 1)).join("")}…`
}

/** The text of a piece of content in one line; nothing where it was dropped. */
export const textOf = (content: Content | undefined, most = width): string =>
  content?.text === undefined ? "" : clipped(inOneLine(content.text), most)

/** What somebody said, in one line; nothing where it was dropped. */
export const saidIn = (said: string | undefined): string =>
  said === undefined || said.startsWith("(dropped, sha256:") ? "" : inOneLine(said)

/** The parts that say something, one after the other. */
export const joined = (parts: ReadonlyArray<string | false | undefined>, between: string): string =>
  parts.filter((part) => part !== undefined && part !== false && part !== "").join(between)

/** "0.52s", "12m 03s", "1h 05m". */
export const timeOf = (millis: number): string => {
  const seconds = Math.round(millis / 10) / 100
  if (seconds < 600) return `${seconds.toFixed(2)}s`
  const whole = Math.round(millis / 1000)
  const [minutes, hours] = [Math.floor(whole / 60), Math.floor(whole / 3600)]
  const two = (count: number) => String(count % 60).padStart(2, "0")
  return hours === 0 ? `${minutes}m ${two(whole)}s` : `${hours}h ${two(minutes)}m`
}

/** "1 step", "2 steps". */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`

/** Tokens and money. */
export const billOf = ({ inputTokens, outputTokens, money }: Amounts): string =>
  joined(
    [inputTokens + outputTokens > 0 && `${inputTokens} + ${outputTokens} tokens`, money > 0 && formatMoney(money)],
    ", ",
  )

/** Everything that was used: "4 steps, 2 tool calls, 1200 + 300 tokens, 0.01 USD". */
export const usedOf = (grant: Grant): string => {
  const used = amounts(grant)
  const { steps, toolCalls, ticks } = used
  const parts = [
    steps > 0 && counted(steps, "step"),
    toolCalls > 0 && counted(toolCalls, "tool call"),
    billOf(used),
    ticks > 0 && counted(ticks, "tick"),
  ]
  return joined(parts, ", ") || "nothing"
}

/** One dimension without its unit. */
export const amountOf = (dimension: Dimension, amount: number): string =>
  dimension === "money" ? moneyOf(amount) : String(amount)

const moneyOf = (nanoUsd: number): string => {
  const text = formatMoney(Math.abs(nanoUsd)).replace(" USD", "")
  return nanoUsd < 0 ? `-${text}` : text
}

/** Columns of equal width, the first to the left, the others to the given side. */
export const aligned = (lines: ReadonlyArray<ReadonlyArray<string>>, side: "left" | "right"): ReadonlyArray<string> => {
  const widths: Array<number> = []
  for (const line of lines) {
    for (const [column, text] of line.entries()) {
      // The last cell of a line may be as long as it likes.
      const long = side === "left" && column === line.length - 1 ? 0 : text.length
      widths[column] = Math.max(widths[column] ?? 0, long)
    }
  }
  return lines.map((line) =>
    line
      .map((text, column) =>
        column === 0 || side === "left" ? text.padEnd(widths[column]!) : text.padStart(widths[column]!),
      )
      .join("  ")
      .trimEnd(),
  )
}
