/** What is counted and measured, as OpenTelemetry takes it: names, units, buckets. */
import type * as Otel from "@opentelemetry/api"
import { metric } from "../../telemetry/Names.ts"

const doubling = (from: number, times: number): Array<number> =>
  Array.from({ length: times }, (_, index) => from * 2 ** index)

const quadrupling = (from: number, times: number): Array<number> =>
  Array.from({ length: times }, (_, index) => from * 4 ** index)

// Those of the conventions.
const seconds = doubling(0.01, 14)
const tokens = quadrupling(1, 14)

const counts = [0, 1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1_000]
const shares = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1, 1.05, 1.25, 2]
const ratios = [1, 1.25, 1.5, 2, 3, 5, 10, 20]

/** Every instrument of Bursar. */
export const instrumentsOf = (meter: Otel.Meter) => {
  const histogram = (name: string, unit: string, explicitBucketBoundaries: Array<number>, description: string) =>
    meter.createHistogram(name, { unit, description, advice: { explicitBucketBoundaries } })
  const counter = (name: string, unit: string, description: string) => meter.createCounter(name, { unit, description })
  const level = (name: string, unit: string, description: string) =>
    meter.createUpDownCounter(name, { unit, description })
  return {
    operationDuration: histogram(metric.operationDuration, "s", seconds, "Requests to models"),
    tokenUsage: histogram(metric.tokenUsage, "{token}", tokens, "Tokens of a request, as its provider told"),
    agentDuration: histogram(metric.agentDuration, "s", seconds, "Agents, from start to end"),
    agentInferences: histogram(
      metric.agentInferences,
      "{call}",
      counts,
      "Requests to models that an agent made itself",
    ),
    agentToolCalls: histogram(metric.agentToolCalls, "{call}", counts, "Calls of tools that an agent made itself"),
    toolDuration: histogram(metric.toolDuration, "s", seconds, "Calls of tools, with their retries"),
    runCompleted: counter(metric.runCompleted, "{run}", "Runs that ended, by why"),
    utilization: histogram(metric.utilization, "1", shares, "Used of what was granted, at the end"),
    granted: counter(metric.granted, "1", "Granted to runs, in units of the dimension"),
    used: counter(metric.used, "1", "Used, in units of the dimension"),
    refunded: counter(metric.refunded, "1", "Left over by runs, in units of the dimension"),
    assumed: counter(metric.assumed, "1", "Booked without a bill, in units of the dimension"),
    overrun: counter(metric.overrun, "1", "Billed above the hold, in units of the dimension"),
    held: level(metric.held, "1", "Set aside for calls in flight, in units of the dimension"),
    refused: counter(metric.refused, "{refusal}", "Operations of the budget that were refused"),
    nodeOpen: level(metric.nodeOpen, "{node}", "Open accounts"),
    holdPending: level(metric.holdPending, "{hold}", "Calls in flight"),
    holdRatio: histogram(metric.holdRatio, "1", ratios, "Held for a request, to what it came to"),
    cost: counter(metric.cost, "nUSD", "Cost of requests to models"),
    cancelLatency: histogram(metric.cancelLatency, "s", seconds, "From the end of new work to closed books"),
    violation: counter(metric.violation, "{violation}", "Laws of the books that were broken; always 0"),
  }
}

export type Instruments = ReturnType<typeof instrumentsOf>
