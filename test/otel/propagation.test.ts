import { assert, describe, it } from "@effect/vitest"
import * as Api from "@opentelemetry/api"
import * as diagnostics from "node:diagnostics_channel"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { Command } from "../../src/node/index.ts"
import { Tracer } from "../../src/otel/index.ts"
import * as Propagation from "../../src/telemetry/Propagation.ts"
import { exported } from "./exporting.ts"

/** A server that answers with the header it was sent. */
const echoing = Effect.acquireRelease(
  Effect.callback<http.Server>((resume) => {
    const server = http.createServer((request, response) => {
      response.end(String(request.headers["traceparent"]))
    })
    server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
  }),
  (server) =>
    Effect.callback<void>((resume) => {
      server.close(() => resume(Effect.void))
      server.closeAllConnections()
    }),
)

const fetched = (url: string) => async () => (await fetch(url)).text()

/** Does as the instrumentation of `undici` does: a span for each request, below whatever span is active. */
const instrumented = Effect.acquireRelease(
  Effect.sync(() => {
    const onCreate = (message: unknown): void => {
      const { request } = message as { readonly request: { addHeader: (name: string, value: string) => void } }
      const span = Api.trace.getTracer("undici").startSpan("GET", { kind: Api.SpanKind.CLIENT })
      const headers: Record<string, string> = {}
      Api.propagation.inject(Api.trace.setSpan(Api.context.active(), span), headers)
      for (const [name, value] of Object.entries(headers)) request.addHeader(name, value)
      span.end()
    }
    diagnostics.subscribe("undici:request:create", onCreate)
    return onCreate
  }),
  (onCreate) => Effect.sync(() => diagnostics.unsubscribe("undici:request:create", onCreate)),
)

describe("a trace goes on", () => {
  for (const [name, way] of [
    ["withOtelContext", (run: () => Promise<string>) => Tracer.withOtelContext({ try: run, catch: String })],
    [
      "enter",
      (run: () => Promise<string>) => Effect.flatMap(Tracer.enter, (enter) => Effect.promise(() => enter(run))),
    ],
    [
      "the way of the rooms, which know no OpenTelemetry",
      (run: () => Promise<string>) => Effect.flatMap(Propagation.enter, (enter) => Effect.promise(() => enter(run))),
    ],
  ] as const) {
    it.live(`in the spans of a foreign instrumentation, and in what it sends: ${name}`, () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { port } = (yield* echoing).address() as AddressInfo
          yield* instrumented
          const request = way(fetched(`http://127.0.0.1:${port}/`))
          const variables = { OTEL_METRICS_EXPORTER: "none", OTEL_LOGS_EXPORTER: "none" }
          const { exit, spans } = yield* exported(Effect.withSpan(request, "work"), { variables })
          // Requests of the exporter itself make no spans.
          const [foreign, ...more] = spans.filter((span) => span.name === "GET")
          const work = spans.find((span) => span.name === "work")
          assert.deepStrictEqual(more, [])
          assert.deepStrictEqual([foreign?.traceId, foreign?.parentSpanId], [work?.traceId, work?.spanId])
          assert.deepStrictEqual(exit, Exit.succeed(`00-${work!.traceId}-${foreign!.spanId}-01`))
        }),
      ),
    )
  }

  it.live("in a child process, whatever else its environment holds", () =>
    Effect.gen(function* () {
      const printed = (env: Readonly<Record<string, string>> = {}) =>
        Command.run({ command: process.execPath, args: ["-p", "process.env.TRACEPARENT"], cwd: ".", env })
      const { exit, named } = yield* exported(
        Effect.all([printed(), printed({ TRACEPARENT: "mine" })]).pipe(Effect.withSpan("work")),
      )
      const work = named("work")
      assert.deepStrictEqual(Exit.isSuccess(exit) ? exit.value.map(({ stdout }) => stdout.trim()) : exit, [
        `00-${work.traceId}-${work.spanId}-01`,
        "mine",
      ])
      assert.strictEqual((yield* printed()).stdout.trim(), "undefined")
    }),
  )

  it.live("from an incoming request, and to an outgoing one", () =>
    Effect.gen(function* () {
      const [traceId, spanId] = ["0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"]
      const program = Effect.withSpan(Tracer.outgoing, "work").pipe(
        Tracer.incoming({ traceparent: `00-${traceId}-${spanId}-01`, accept: undefined }),
      )
      const { exit, named } = yield* exported(program)
      const work = named("work")
      assert.deepStrictEqual([work.traceId, work.parentSpanId], [traceId, spanId])
      assert.deepStrictEqual(exit, Exit.succeed({ traceparent: `00-${traceId}-${work.spanId}-01` }))
    }),
  )

  it.live("nowhere from a header that cannot be read, and not where nothing is traced", () =>
    Effect.gen(function* () {
      const { named } = yield* exported(
        Tracer.incoming({ traceparent: "00-nonsense" })(Effect.withSpan(Effect.void, "work")),
      )
      assert.strictEqual(named("work").parentSpanId, undefined)
      assert.deepStrictEqual(yield* Effect.withSpan(Tracer.outgoing, "untraced"), {})
    }),
  )
})
