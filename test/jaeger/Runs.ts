/**
 * Runs written by hand, as sparse as they can be and still be runs: a lead, a child, a model call and a tool call, with
 * the words of a trace and with a status by the table of stop reasons. Ids follow from the name of a run, so that a
 * sampler that goes by them comes to the same verdict each time.
 */
import { isError, type ResultKind, sentenceOf, type StopReason } from "../../src/event/StopReason.ts"
import * as Names from "../../src/telemetry/Names.ts"
import { type Attributes, idOf, type SentSpan } from "./Sending.ts"

export interface Run {
  readonly id: string
  readonly traceId: string
  readonly reason: StopReason
  /** What is exported while the run still goes on. */
  readonly early: ReadonlyArray<SentSpan>
  /** What is exported at its end, the root last. */
  readonly late: ReadonlyArray<SentSpan>
}

export interface Options {
  /** Whether a span that says so is exported as soon as the run has to stop. */
  readonly isMarked?: boolean
  readonly durationMillis?: number
  readonly root?: Attributes
  readonly chat?: Attributes
}

const resultOf = (reason: StopReason): ResultKind => {
  if (reason === "completed") return "full"
  return isError(reason, "partial") || reason === "refused_at_open" ? "none" : "partial"
}

export const runOf = (id: string, reason: StopReason, options: Options = {}): Run => {
  const { durationMillis = 2000, isMarked = false } = options
  const traceId = idOf(16, id)
  const endMillis = Date.now()
  const startMillis = endMillis - durationMillis
  const result = resultOf(reason)
  const span = (name: string, parent: string | undefined, attributes: Attributes): SentSpan => ({
    traceId,
    spanId: idOf(8, id, name),
    ...(parent === undefined ? {} : { parentSpanId: idOf(8, id, parent) }),
    name,
    startMillis,
    endMillis,
    attributes: { [Names.runId]: id, [Names.schema]: Names.schemaVersion, ...attributes },
  })
  const chat = { [Names.operation]: "chat", [Names.requestModel]: "scripted", [Names.usageInputTokens]: 7 }
  const root = span("invoke_agent lead", undefined, {
    [Names.operation]: "invoke_agent",
    [Names.agentName]: "lead",
    [Names.stopReason]: reason,
    [Names.result]: result,
    ...options.root,
  })
  const child = { [Names.operation]: "invoke_agent", [Names.agentName]: "scout", [Names.stopReason]: "completed" }
  const mark = span("bursar.mark", "invoke_agent lead", { "bursar.keep": true, [Names.stopReason]: reason })
  return {
    id,
    traceId,
    reason,
    early: [
      span("chat scripted", "invoke_agent scout", { ...chat, ...options.chat }),
      span("execute_tool search", "invoke_agent scout", { [Names.operation]: "execute_tool" }),
      ...(isMarked ? [mark] : []),
    ],
    late: [
      span("invoke_agent scout", "invoke_agent lead", child),
      isError(reason, result) ? { ...root, error: sentenceOf(reason) } : root,
    ],
  }
}

/** Many of a kind, named `kind/0`, `kind/1`, ... */
export const runsOf = (count: number, kind: string, reason: StopReason, options?: Options): ReadonlyArray<Run> =>
  Array.from({ length: count }, (_, n) => runOf(`${kind}/${n}`, reason, options))

/**
 * Between which numbers of successes in `n` independent tries, each with chance `p`, the outcome lies but for a chance of
 * less than `risk`: the exact tails of the binomial distribution, half of the risk on either side.
 */
export const binomialBounds = (
  n: number,
  p: number,
  risk: number,
): { readonly least: number; readonly most: number } => {
  const logs = [0]
  for (let k = 1; k <= n; k++) logs.push(logs[k - 1]! + Math.log(k))
  const chance = (k: number) =>
    Math.exp(logs[n]! - logs[k]! - logs[n - k]! + k * Math.log(p) + (n - k) * Math.log1p(-p))
  let [least, most] = [0, n]
  for (let below = chance(least); below < risk / 2; below += chance(least)) least += 1
  for (let above = chance(most); above < risk / 2; above += chance(most)) most -= 1
  return { least, most }
}
