/**
 * A picture of a run from its spans: a tree with a bar for each span in its time, what it cost, and why it stopped. The
 * same spans give the same picture, to the byte.
 */
import { byTrace, type Row } from "../telemetry/Row.ts"

const layout = { width: 1_200, names: 420, bars: 470, line: 18, indent: 14, margin: 16 }

const colours = {
  agent: "#3b6fb6",
  step: "#9aa5b1",
  model: "#8a5fbf",
  tool: "#2f9e6e",
  mark: "#c9820a",
  other: "#6b7785",
  failed: "#c0392b",
}

/** Marks have no length and would hide what they mark: they are drawn as points on their parent's line. */
const isMark = ({ name }: Row): boolean => name === "bursar.start" || name === "bursar.mark"

interface Line {
  readonly row: Row
  readonly depth: number
  readonly marks: ReadonlyArray<Row>
}

/** Draws every trace there is, those that start first above. */
export const draw = (rows: ReadonlyArray<Row>): string => {
  const traces = [...byTrace(rows).values()].toSorted(([a], [b]) => order(a!, b!))
  const drawn: Array<string> = []
  let top = layout.margin
  for (const trace of traces) {
    const lines = linesOf(trace)
    drawn.push(...drawTrace(lines, top))
    top += (lines.length + 2) * layout.line
  }
  const size = `width="${layout.width}" height="${top}" viewBox="0 0 ${layout.width} ${top}"`
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="ui-monospace, monospace" font-size="11">`,
    `<rect width="100%" height="100%" fill="#ffffff"/>`,
    ...drawn,
    "</svg>",
    "",
  ].join("\n")
}

/** By time, then by what they are: a span starts before what is below it. */
const order = (a: Row, b: Row): number => {
  if (a.startNanos !== b.startNanos) return a.startNanos < b.startNanos ? -1 : 1
  if (a.endNanos !== b.endNanos) return a.endNanos > b.endNanos ? -1 : 1
  return a.spanId < b.spanId ? -1 : 1
}

const linesOf = (trace: ReadonlyArray<Row>): ReadonlyArray<Line> => {
  const ids = new Set(trace.map(({ spanId }) => spanId))
  const below = new Map<string | undefined, Array<Row>>()
  for (const row of trace.toSorted(order)) {
    // What has lost its parent is drawn from the left.
    const parent = row.parentId !== undefined && ids.has(row.parentId) ? row.parentId : undefined
    below.set(parent, [...(below.get(parent) ?? []), row])
  }
  const from = (parent: string | undefined, depth: number): ReadonlyArray<Line> =>
    (below.get(parent) ?? [])
      .filter((row) => !isMark(row))
      .flatMap((row) => {
        const marks = (below.get(row.spanId) ?? []).filter((one) => one.name === "bursar.mark")
        return [{ row, depth, marks }, ...from(row.spanId, depth + 1)]
      })
  return from(undefined, 0)
}

const drawTrace = (lines: ReadonlyArray<Line>, top: number): ReadonlyArray<string> => {
  const starts = lines.map(({ row }) => row.startNanos)
  const start = starts.reduce((least, one) => (one < least ? one : least), starts[0] ?? 0n)
  const end = lines.reduce((most, { row }) => (row.endNanos > most ? row.endNanos : most), start)
  const span = Math.max(1, Number(end - start))
  const x = (nanos: bigint): number => layout.margin + layout.names + (Number(nanos - start) / span) * layout.bars
  const run = wordOf(lines[0]?.row.attributes["bursar.run.id"])
  const title = `${run === "" ? "trace" : `run ${run}`}, ${lines.length} spans, ${millis(span)}`
  return [
    text(layout.margin, top, title, { weight: "bold" }),
    ...lines.flatMap((line, index) => drawLine(line, top + (index + 1) * layout.line, x)),
  ]
}

const drawLine = ({ depth, marks, row }: Line, top: number, x: (nanos: bigint) => number): ReadonlyArray<string> => {
  const colour = row.status.code === "error" ? colours.failed : colours[kindOf(row)]
  const [left, right] = [x(row.startNanos), x(row.endNanos)]
  const indent = layout.margin + Math.min(depth, 20) * layout.indent
  const bar = `x="${round(left)}" y="${top - 10}" width="${round(Math.max(1, right - left))}" height="11"`
  return [
    text(indent, top, cut(row.name, Math.floor((layout.names - indent) / 6.8)), { fill: colour }),
    `<rect ${bar} rx="2" fill="${colour}"><title>${escaped(titleOf(row))}</title></rect>`,
    ...marks.map((mark) => `<circle cx="${round(x(mark.startNanos))}" cy="${top - 4}" r="4" fill="${colours.mark}"/>`),
    text(layout.margin + layout.names + layout.bars + 8, top, cut(saidOf(row), 42), { fill: "#333333" }),
  ]
}

const kindOf = ({ name }: Row): Exclude<keyof typeof colours, "failed" | "mark"> => {
  if (name.startsWith("invoke_agent") || name.startsWith("bursar.scope")) return "agent"
  if (name.startsWith("chat ")) return "model"
  if (name.startsWith("execute_tool")) return "tool"
  return name === "bursar.step" || name === "bursar.wrap_up" ? "step" : "other"
}

const saidOf = ({ attributes: at, endNanos, startNanos }: Row): string => {
  const tokens = [at["gen_ai.usage.input_tokens"], at["gen_ai.usage.output_tokens"]]
  const money = at["bursar.cost.nano_usd"] ?? at["bursar.tree.money_nano_usd.used"]
  const outcome = wordOf(at["bursar.tool.outcome"])
  const said: ReadonlyArray<string> = [
    millis(Number(endNanos - startNanos)),
    wordOf(at["bursar.stop.reason"]),
    outcome === "ok" ? "" : outcome,
    typeof money === "number" && money > 0 ? `${(money / 1e9).toFixed(6)} USD` : "",
    tokens.every((one) => one === undefined) ? "" : `${tokens.map((one) => Number(one ?? 0)).join("+")} tokens`,
  ]
  return said.filter((part) => part !== "").join("  ")
}

const wordOf = (value: unknown): string => (typeof value === "string" ? value : "")

const titleOf = (row: Row): string =>
  [`${row.name} ${row.status.message}`.trim(), ...row.events.map(({ name }) => name)].join("\n")

const millis = (nanos: number): string =>
  nanos < 1e9 ? `${(nanos / 1e6).toFixed(1)} ms` : `${(nanos / 1e9).toFixed(2)} s`

const round = (value: number): string => value.toFixed(1)

const cut = (value: string, most: number): string => (value.length <= most ? value : `${value.slice(0, most - 1)}…`)

const text = (x: number, y: number, value: string, style: { readonly fill?: string; readonly weight?: string } = {}) =>
  `<text x="${x}" y="${y}" fill="${style.fill ?? "#111111"}"${style.weight === undefined ? "" : ` font-weight="${style.weight}"`}>${escaped(value)}</text>`

const escaped = (value: string): string =>
  value.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;")
