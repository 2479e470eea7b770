import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Config from "../../examples/jaeger/Config.ts"
import { given } from "../../examples/jaeger/Options.ts"
import { temporary } from "../../examples/jaeger/Stack.ts"
import { run } from "./Starting.ts"

describe("options that cannot be used are told in a sentence", () => {
  const wrong: ReadonlyArray<readonly [args: ReadonlyArray<string>, sentence: RegExp]> = [
    [["--port", "4318"], /--port is "4318": give NAME=NUMBER, with a name of otlp-http, .* and 0 for any free port/],
    [["--port", "ui=1"], /--port is "ui=1": give NAME=NUMBER/],
    [["--port", "query=70000"], /--port is "query=70000": give NAME=NUMBER/],
    [["--keep", "many"], /--keep is "many": give a percentage from 0 to 100/],
    [["--keep", "101"], /--keep is "101": give a percentage/],
    [["--ui", "/nowhere"], /--ui is "\/nowhere": give the folder of a built jaeger-ui/],
    [["--quick"], /--quick: use npm run jaeger -- \[--build\]/],
    [["--keep"], /--keep: use npm run jaeger/],
    [["extra"], /--extra: use npm run jaeger/],
  ]
  for (const [args, sentence] of wrong) {
    it.effect(args.join(" "), () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(given(args))
        assert.match(error.message, sentence)
      }),
    )
  }

  it.live("with exit code 2 and nothing else", () =>
    Effect.gen(function* () {
      const { code, stderr, stdout } = yield* run(["--keep", "101"], { cwd: yield* temporary })
      assert.deepStrictEqual([code, stdout], [2, ""])
      assert.match(stderr, /^--keep is "101": .*\n$/)
    }).pipe(Effect.scoped),
  )
})

describe("ports", () => {
  const files = Config.read("/nowhere")

  it("are those of the files, and differ", () => {
    const ports = Object.values(Config.portsOf(files))
    assert.strictEqual(new Set(ports).size, Config.portNames.length)
    assert.isTrue(ports.every((port) => Number.isInteger(port) && port > 1024))
  })

  it("move one by one wherever they stand, so that the collector still finds Jaeger", () => {
    const moved = Config.withPorts(files, { "jaeger-otlp-grpc": 1, "collector-telemetry": 2 })
    assert.deepStrictEqual(Config.portsOf(moved), {
      ...Config.portsOf(files),
      "jaeger-otlp-grpc": 1,
      "collector-telemetry": 2,
    })
    const exporter = Config.get(moved.collector, ["exporters", "otlp_grpc/jaeger", "endpoint"])
    assert.strictEqual(exporter, "127.0.0.1:1")
  })

  it("of the files bring Jaeger and the collector together", () => {
    const receiver = Config.get(files.jaeger, ["receivers", "otlp", "protocols", "grpc", "endpoint"])
    assert.strictEqual(Config.get(files.collector, ["exporters", "otlp_grpc/jaeger", "endpoint"]), receiver)
  })

  it.effect("may be chosen, all and one", () =>
    Effect.gen(function* () {
      const { ports } = yield* given(["--free-ports", "--port", "query=17000"])
      assert.deepStrictEqual(ports, {
        ...(Object.fromEntries(Config.portNames.map((name) => [name, 0])) as Config.Ports),
        query: 17_000,
      })
    }),
  )
})

describe("the sampler", () => {
  const kept = ["collector", "service", "pipelines", "traces/keep", "processors"]

  it("is all that keeping everything leaves out", () => {
    const files = Config.read("/nowhere")
    const processors = Config.get(files, kept) as ReadonlyArray<string>
    assert.include(processors, "tail_sampling")
    const without = processors.filter((name) => name !== "tail_sampling")
    assert.deepStrictEqual(Config.keepAll(files), Config.set(files, kept, without))
  })
})
