import { assert, describe, it } from "@effect/vitest"
import * as Api from "@opentelemetry/api"
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base"
import * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import * as Otel from "../../src/otel/Otel.ts"
import * as OtlpReceiver from "../support/OtlpReceiver.ts"
import { exported, isTraced, layer, type Variables } from "./exporting.ts"

const one = Effect.withSpan(Effect.succeed("done"), "one")
const somewhere = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318" }

describe("nothing is provided", () => {
  const cases: ReadonlyArray<readonly [string, Variables]> = [
    ["without an endpoint", {}],
    ["with an empty endpoint", { OTEL_EXPORTER_OTLP_ENDPOINT: " " }],
    ["when the SDK is disabled", { ...somewhere, OTEL_SDK_DISABLED: "true" }],
    ["when the SDK is disabled, in capitals", { ...somewhere, OTEL_SDK_DISABLED: "TRUE" }],
    ["when there is to be no exporter of spans", { ...somewhere, OTEL_TRACES_EXPORTER: "none" }],
    [
      "when it is disabled, before anything else is looked at",
      { ...somewhere, OTEL_SDK_DISABLED: "true", OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" },
    ],
  ]
  for (const [name, variables] of cases) {
    it.effect(name, () =>
      Effect.gen(function* () {
        assert.isFalse(yield* isTraced.pipe(Effect.provide(layer(variables))))
      }),
    )
  }

  it("and nothing of the SDK is loaded", { timeout: 30_000 }, async () => {
    const { stderr, stdout } = await promisify(execFile)(process.execPath, [`${import.meta.dirname}/off.program.ts`], {
      env: { PATH: process.env["PATH"] },
    })
    assert.deepStrictEqual(JSON.parse(stdout), { isTraced: false, loaded: ["@opentelemetry/api"] })
    assert.strictEqual(stderr, "")
  })
})

describe("a configuration is refused", () => {
  const cases: ReadonlyArray<readonly [string, Variables, string]> = [
    [
      "gRPC",
      { ...somewhere, OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" },
      "OTEL_EXPORTER_OTLP_PROTOCOL=grpc: expected http/protobuf or http/json; gRPC is not built in, and collectors take HTTP on port 4318",
    ],
    [
      "an unknown protocol for traces",
      { ...somewhere, OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "carrier-pigeon" },
      "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=carrier-pigeon: expected http/protobuf or http/json",
    ],
    [
      "an address that is none, without quoting it",
      { OTEL_EXPORTER_OTLP_ENDPOINT: "user:secret@host" },
      "OTEL_EXPORTER_OTLP_ENDPOINT: expected an http or https address",
    ],
  ]
  for (const [name, variables, message] of cases) {
    it.effect(name, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(one.pipe(Effect.provide(layer(variables))))
        assert.strictEqual(error._tag, "OtelConfigError")
        assert.strictEqual(error.message, message)
      }),
    )
  }
})

describe("the layer", () => {
  it.live(
    "loses none of 20,000 spans that end together",
    () =>
      Effect.gen(function* () {
        const program = Effect.gen(function* () {
          const together = yield* Deferred.make<void>()
          const waiting = Effect.withSpan(Deferred.await(together), "waiting")
          yield* Effect.forEach(Array.from({ length: 20_000 }), () => waiting, { concurrency: "unbounded" }).pipe(
            Effect.andThen(Effect.void),
            Effect.zip(Effect.andThen(Effect.yieldNow, Deferred.succeed(together, undefined)), { concurrent: true }),
          )
        })
        const { exit, spans } = yield* exported(program)
        assert.isTrue(Exit.isSuccess(exit))
        assert.strictEqual(new Set(spans.map(({ spanId }) => spanId)).size, 20_000)
      }),
    60_000,
  )

  it.live(
    "sends a queue of more batches than an exporter sends at once by default",
    () =>
      Effect.gen(function* () {
        const variables = { OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "10", OTEL_BSP_MAX_QUEUE_SIZE: "1000" }
        const program = Effect.forEach(Array.from({ length: 500 }), () => one, { discard: true })
        const { receiver, spans } = yield* exported(program, { variables })
        assert.strictEqual(spans.length, 500)
        assert.strictEqual(receiver.requests.length, 50)
      }),
    60_000,
  )

  it.live("lets the environment shrink the queue", () =>
    Effect.gen(function* () {
      const variables = { OTEL_BSP_MAX_QUEUE_SIZE: "5" }
      const program = Effect.sync(() => {
        const tracer = Api.trace.getTracer("test")
        for (let count = 0; count < 20; count++) tracer.startSpan("one").end()
      })
      const { spans } = yield* exported(program, { variables })
      assert.isBelow(spans.length, 20)
    }),
  )

  const down: ReadonlyArray<readonly [string, Effect.Effect<string, never, Scope.Scope>]> = [
    ["nobody listens", OtlpReceiver.nowhere],
    ["exports are refused", Effect.map(OtlpReceiver.make({ status: 400 }), ({ url }) => url)],
    ["exports are put off", Effect.map(OtlpReceiver.make({ status: 503 }), ({ url }) => url)],
    ["exports are never answered", Effect.map(OtlpReceiver.make({ silent: true }), ({ url }) => url)],
  ]
  for (const [name, receiving] of down) {
    it.live(`leaves a program alone when ${name}, and ends`, () =>
      Effect.scoped(
        Effect.gen(function* () {
          // An export may go on for longer than this test is given: what ends it is the limit of the layer.
          const variables = { OTEL_EXPORTER_OTLP_ENDPOINT: yield* receiving, OTEL_EXPORTER_OTLP_TIMEOUT: "60000" }
          const options = { shutdownTimeout: "50 millis" } as const
          assert.strictEqual(yield* one.pipe(Effect.provide(layer(variables, options))), "done")
        }),
      ),
    )
  }

  it.effect("ends under a test clock too", () =>
    Effect.gen(function* () {
      const { spans } = yield* exported(one)
      assert.strictEqual(spans.length, 1)
    }),
  )

  it.live("starts again after it was closed, and leaves no globals behind", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* exported(one)).spans.length, 1)
      assert.strictEqual((yield* exported(one)).spans.length, 1)
      assert.isFalse(Api.trace.getTracer("test").startSpan("late").isRecording())
      assert.deepStrictEqual(Api.propagation.fields(), [])
    }),
  )

  it.live("shares one SDK while several are open, until the last is closed", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { spans, url } = yield* OtlpReceiver.make()
        const provided = Effect.provide(layer({ OTEL_EXPORTER_OTLP_ENDPOINT: url }), { local: true })
        const [opened, closed] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const longer = Deferred.succeed(opened, undefined).pipe(
          Effect.andThen(Deferred.await(closed)),
          Effect.andThen(Effect.withSpan(Effect.void, "longer")),
          provided,
        )
        const shorter = Deferred.await(opened).pipe(Effect.andThen(Effect.withSpan(Effect.void, "shorter")), provided)
        const fiber = yield* Effect.forkChild(longer)
        yield* shorter
        const names = () => spans.map(({ name }) => name)
        assert.deepStrictEqual(names(), ["shorter"])
        yield* Deferred.succeed(closed, undefined)
        yield* Fiber.join(fiber)
        assert.deepStrictEqual(names(), ["shorter", "longer"])
      }),
    ),
  )

  it.live("sends traces to their own address as it stands", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { requests, url } = yield* OtlpReceiver.make()
        const variables = { ...somewhere, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${url}/elsewhere` }
        yield* one.pipe(Effect.provide(layer(variables)))
        assert.deepStrictEqual(
          requests.map(({ path }) => path),
          ["/elsewhere"],
        )
      }),
    ),
  )

  it.live("exports to the endpoint of its options when the environment names none", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { spans, url } = yield* OtlpReceiver.make()
        yield* one.pipe(Effect.provide(layer({}, { endpoint: `${url}/` })))
        assert.strictEqual(spans.length, 1)
      }),
    ),
  )

  it.live("takes its options from a configuration", () =>
    Effect.gen(function* () {
      const receiver = yield* OtlpReceiver.make()
      const configured = Otel.layerConfig({ endpoint: Config.String("APP_TRACES"), serviceName: Config.String("APP") })
      const provider = ConfigProvider.fromUnknown({ APP_TRACES: receiver.url, APP: "research" })
      yield* one.pipe(Effect.provide(configured.pipe(Layer.provide(ConfigProvider.layer(provider)))))
      assert.strictEqual(receiver.spans[0]?.resource["service.name"], "research")
    }).pipe(Effect.scoped),
  )

  it.live("names the service by the environment, then the option, then itself", () =>
    Effect.gen(function* () {
      const name = (options: Otel.Options, variables: Variables) =>
        Effect.map(exported(one, { ...options, variables }), ({ spans }) => spans[0]?.resource["service.name"])
      assert.strictEqual(yield* name({}, {}), "bursar")
      assert.strictEqual(yield* name({ serviceName: "option" }, {}), "option")
      assert.strictEqual(yield* name({ serviceName: "option" }, { OTEL_SERVICE_NAME: "variable" }), "variable")
    }),
  )

  it.live("tells nothing of the process but what the environment says", () =>
    Effect.gen(function* () {
      const { spans } = yield* exported(one)
      const keys = Object.keys(spans[0]?.resource ?? {}).filter((key) => !key.startsWith("telemetry.sdk."))
      assert.deepStrictEqual(keys, ["service.name"])
    }),
  )

  it.live("leaves headers, compression, limits and resource to the variables that the SDK reads", () => {
    const variables = {
      OTEL_EXPORTER_OTLP_HEADERS: "x-tenant=research",
      OTEL_EXPORTER_OTLP_COMPRESSION: "gzip",
      OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT: "4",
      OTEL_RESOURCE_ATTRIBUTES: "service.name=named,deployment.environment.name=test",
    }
    const inProcess = Effect.acquireRelease(
      Effect.sync(() => Object.assign(process.env, variables)),
      () => Effect.sync(() => Object.keys(variables).forEach((name) => delete process.env[name])),
    )
    return Effect.gen(function* () {
      yield* inProcess
      const { receiver, spans } = yield* exported(
        Effect.withSpan(Effect.void, "one", { attributes: { a: "abcdef" } }),
        {
          variables,
        },
      )
      assert.strictEqual(spans[0]?.attributes["a"], "abcd")
      assert.strictEqual(spans[0]?.resource["service.name"], "named")
      assert.strictEqual(spans[0]?.resource["deployment.environment.name"], "test")
      assert.strictEqual(receiver.requests[0]?.headers["x-tenant"], "research")
      assert.strictEqual(receiver.requests[0]?.headers["content-encoding"], "gzip")
    }).pipe(Effect.scoped)
  })

  it.live("exports one signal alone where the environment says so", () =>
    Effect.gen(function* () {
      const variables = { OTEL_METRICS_EXPORTER: "none", OTEL_LOGS_EXPORTER: "none" }
      const { receiver } = yield* exported(Effect.andThen(Effect.log("a line"), one), { variables })
      assert.deepStrictEqual(
        receiver.requests.map(({ path }) => path),
        ["/v1/traces"],
      )
      assert.isFalse(Symbol.for("io.opentelemetry.js.api.logs") in globalThis)
    }),
  )
})

describe("another's tracer provider", () => {
  const inMemory = () => {
    const exporter = new InMemorySpanExporter()
    return { exporter, provider: new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }) }
  }

  it.effect("is used when it is given, and stays open", () =>
    Effect.gen(function* () {
      const { exporter, provider } = inMemory()
      yield* one.pipe(Effect.provide(Otel.layerTracerProvider(provider)))
      assert.deepStrictEqual(
        exporter.getFinishedSpans().map(({ name }) => name),
        ["one"],
      )
    }),
  )

  it.live("is used when it is registered, and no second SDK is started", () =>
    Effect.gen(function* () {
      const { exporter, provider } = inMemory()
      Api.trace.setGlobalTracerProvider(provider)
      const { spans } = yield* exported(one).pipe(Effect.ensuring(Effect.sync(() => Api.trace.disable())))
      assert.deepStrictEqual(spans, [])
      assert.strictEqual(exporter.getFinishedSpans().length, 1)
    }),
  )
})
