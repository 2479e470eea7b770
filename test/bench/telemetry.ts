/**
 * What tracing costs: per step of an agent and per span, beside no tracing and beside the OpenTelemetry SDK alone; and
 * whether a run notices that nobody takes its spans. All within this run.
 */
import type * as Otel from "@opentelemetry/api"
import { core, tracing } from "@opentelemetry/sdk-node"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { spawn } from "node:child_process"
import { Otel as BursarOtel } from "../../src/otel/index.ts"
import { type Candidate, measure, nanosOf, table, type Target, type Timed, verdicts } from "./Measure.ts"
import { memory, memoryUnder, type Workload } from "./Workloads.ts"

const steps = 200

/** A step, the request to the model and the call of the tool. */
const spansPerStep = 3

const rounds = { warmUp: 10, counted: 15 }

const candidate = ({ name, run }: Workload): Candidate => ({
  name,
  prepare: () => async () => {
    await run(steps, () => {})
    return steps
  },
})

// --- the SDK without an exporter that costs anything

const counting = () => {
  const seen = { spans: 0 }
  const exporter: tracing.SpanExporter = {
    export: (spans, done) => {
      seen.spans += spans.length
      done({ code: core.ExportResultCode.SUCCESS })
    },
    shutdown: () => Promise.resolve(),
  }
  return { seen, exporter }
}

const providerOf = (exporter: tracing.SpanExporter, ratio: number): Otel.TracerProvider =>
  new tracing.BasicTracerProvider({
    sampler: new tracing.ParentBasedSampler({ root: new tracing.TraceIdRatioBasedSampler(ratio) }),
    spanProcessors: [new tracing.BatchSpanProcessor(exporter, { maxQueueSize: 65_536, maxExportBatchSize: 2_048 })],
  })

const sampled = (name: string, ratio: number) => {
  const { seen, exporter } = counting()
  const provider = providerOf(exporter, ratio)
  return { seen, workload: memoryUnder(name, () => BursarOtel.layerTracerProvider(provider)) }
}

/** As many spans as a run makes, with four attributes each, below one another as there. */
const sdkAlone: Candidate = {
  name: "the SDK alone, a span",
  prepare: () => {
    const tracer = providerOf(counting().exporter, 1).getTracer("bench")
    return () => {
      const attributes = { "gen_ai.operation.name": "chat", "bursar.run.id": "run", "bursar.attempt": 1, kept: true }
      for (let count = 0; count < steps * spansPerStep; count++) {
        const span = tracer.startSpan("span")
        span.setAttributes(attributes)
        span.end()
      }
      return steps * spansPerStep
    }
  },
}

// --- over the wire, in a process of its own

const taking = `require("node:http").createServer((request, response) => {
  request.resume().on("end", () => response.end())
}).listen(0, "127.0.0.1", function () { console.log(this.address().port) })`

const receiver = async () => {
  const child = spawn(process.execPath, ["-e", taking], { stdio: ["ignore", "pipe", "inherit"] })
  const port = await new Promise<string>((resolve) => {
    child.stdout.once("data", (data: Buffer) => resolve(data.toString().trim()))
  })
  return { url: `http://127.0.0.1:${port}`, close: () => child.kill() }
}

/** The layer as programs use it, open for as long as the measurement. */
const over = async (name: string, url: string) => {
  const variables = { OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_METRICS_EXPORTER: "none", OTEL_LOGS_EXPORTER: "none" }
  const layer = BursarOtel.layer().pipe(Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(variables))))
  const scope = Effect.runSync(Scope.make())
  const context = await Effect.runPromise(Layer.buildWithScope(layer, scope))
  return {
    workload: memoryUnder(name, () => Layer.succeedContext(context)),
    close: () => Effect.runPromise(Scope.close(scope, Exit.void)),
  }
}

/** One after the other: layers that are open together share an exporter. */
const wired = async (): Promise<{ readonly up: Timed; readonly down: Timed }> => {
  const timed = async (name: string, url: string): Promise<Timed> => {
    const { close, workload } = await over(name, url)
    const [one] = await measure([candidate(workload)], rounds)
    await close()
    return one!
  }
  const { close, url } = await receiver()
  const up = await timed("exported over HTTP", url)
  close()
  return { up, down: await timed("exported to nobody", url) }
}

// --- all

const micros = (nanos: number): string => (nanos / 1000).toFixed(1)

const rows = (timed: ReadonlyArray<Timed>, none: number): ReadonlyArray<ReadonlyArray<string>> => [
  [`${steps} steps, ${spansPerStep} spans each`, "µs a step", "more than none", "µs a span"],
  ...timed.map(({ name, nanos }) => [name, micros(nanos), micros(nanos - none), micros((nanos - none) / spansPerStep)]),
]

export const telemetry = async (): Promise<void> => {
  const [few, all] = [sampled("the SDK, 1 % sampled", 0.01), sampled("the SDK, 100 % sampled", 1)]
  const timed = await measure([candidate(memory), candidate(few.workload), candidate(all.workload), sdkAlone], rounds)
  const none = nanosOf(timed, memory.name)
  const alone = nanosOf(timed, sdkAlone.name)
  const { up, down } = await wired()
  console.log(`${table(rows([...timed.filter(({ name }) => name !== sdkAlone.name), up, down], none))}\n`)
  console.log(`${sdkAlone.name}: ${micros(alone)} µs`)
  console.log(`spans exported: ${few.seen.spans} at 1 %, ${all.seen.spans} at 100 %\n`)
  const perSpan = (nanosOf(timed, all.workload.name) - none) / spansPerStep
  const targets: ReadonlyArray<Target> = [
    { name: "a span at 100 %", measured: perSpan / 1000, most: 20, unit: " µs" },
    {
      name: "a step at 1 %, to one untraced",
      measured: nanosOf(timed, few.workload.name) / none,
      most: 1.25,
      unit: "x",
    },
    {
      name: "a step, nobody listening, to one that is exported",
      measured: down.nanos / up.nanos,
      most: 1.1,
      unit: "x",
    },
  ]
  console.log(verdicts(targets))
}
