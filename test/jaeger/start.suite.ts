/** `npm run jaeger` with the real two: what it prints, what it leaves behind, and whether the files are good. */
import { assert, describe, it, layer } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as net from "node:net"
import * as path from "node:path"
import * as Effect from "effect/Effect"
import * as Build from "../../examples/jaeger/Build.ts"
import * as Config from "../../examples/jaeger/Config.ts"
import { search } from "../../examples/jaeger/Query.ts"
import * as Stack from "../../examples/jaeger/Stack.ts"
import { idOf, send } from "./Sending.ts"
import { live, Standing, standing, until } from "./Standing.ts"
import { run, start } from "./Starting.ts"

const free = ["--free-ports"]
const ready = "Ctrl-C stops both."

/** The addresses that it printed. */
const addressesIn = (guide: string) => {
  const address = (pattern: RegExp): string => pattern.exec(guide)![1]!
  return {
    otlp: address(/OTEL_EXPORTER_OTLP_ENDPOINT=(\S+)/),
    query: address(/'(http:\/\/[\d.:]+)\/api/),
    metrics: address(/Metrics are at (\S+)\/metrics/),
  }
}

const isUp = (url: string): Effect.Effect<boolean> =>
  Effect.promise(() =>
    fetch(url).then(
      () => true,
      () => false,
    ),
  )

const down = (urls: ReadonlyArray<string>) =>
  until("an end of both", Effect.forEach(urls, isUp), (up) => up.every((one) => !one), "20 seconds")

const aSpan = () => ({
  traceId: idOf(16, "start"),
  spanId: idOf(8, "start"),
  name: "invoke_agent lead",
  startMillis: Date.now() - 5,
  endMillis: Date.now(),
  attributes: {},
})

const bursar = { resource: { "service.name": "bursar" } }

describe("npm run jaeger", () => {
  it.live("starts both, says how to send and read, stops both by Ctrl-C, and knows the next day what it was told", () =>
    Effect.gen(function* () {
      const cwd = yield* Stack.temporary
      const one = yield* start(free, { cwd })
      const first = addressesIn(yield* Effect.promise(() => one.printed(ready)))
      yield* send(first.otlp, [aSpan()], bursar)
      one.process.kill("SIGINT")
      const { code, stderr } = yield* Effect.promise(() => one.ended)
      assert.deepStrictEqual([code, stderr], [0, ""])
      assert.deepStrictEqual(yield* Effect.forEach(Object.values(first), isUp), [false, false, false])

      const another = yield* start(free, { cwd })
      const { query } = addressesIn(yield* Effect.promise(() => another.printed(ready)))
      const found = yield* search(query, { service: "bursar" })
      assert.deepStrictEqual(
        found.map(({ spans }) => spans.map(({ name }) => name)),
        [["invoke_agent lead"]],
      )
    }).pipe(Effect.scoped),
  )

  it.live("leaves nothing running when npm is told to end", () =>
    Effect.gen(function* () {
      const cwd = yield* Stack.temporary
      const { printed, process } = yield* start([...free, "--storage", cwd], { cwd, byNpm: true })
      const addresses = addressesIn(yield* Effect.promise(() => printed(ready)))
      assert.deepStrictEqual(yield* Effect.forEach(Object.values(addresses), isUp), [true, true, true])
      process.kill("SIGTERM")
      yield* down(Object.values(addresses))
    }).pipe(Effect.scoped),
  )

  it.live("leaves nothing running when it is killed", () =>
    Effect.gen(function* () {
      const cwd = yield* Stack.temporary
      const { printed, process } = yield* start(free, { cwd })
      const addresses = addressesIn(yield* Effect.promise(() => printed(ready)))
      process.kill("SIGKILL")
      yield* down(Object.values(addresses))
    }).pipe(Effect.scoped),
  )

  it.live("says which port is taken and starts nothing", () =>
    Effect.gen(function* () {
      const cwd = yield* Stack.temporary
      const server = net.createServer().listen(0, "127.0.0.1")
      const port = yield* Effect.callback<number>((resume) => {
        server.on("listening", () => resume(Effect.succeed((server.address() as net.AddressInfo).port)))
      })
      const { code, stderr, stdout } = yield* run([...free, "--port", `query=${port}`], { cwd })
      server.close()
      assert.strictEqual(code, 2)
      assert.include(
        stderr,
        `port ${port} (query) is taken: stop what listens there, or choose another with --port query=`,
      )
      assert.strictEqual(stdout, "")
      assert.deepStrictEqual(fs.readdirSync(cwd), [])
    }).pipe(Effect.scoped),
  )

  it.live("serves the pages it is given", () =>
    Effect.gen(function* () {
      const cwd = yield* Stack.temporary
      fs.writeFileSync(path.join(cwd, "index.html"), '<base href="/" data-inject-target="BASE_URL"/><p>pages</p>')
      const { printed } = yield* start([...free, "--ui", cwd], { cwd })
      const guide = yield* Effect.promise(() => printed(ready))
      const page = /(http:\S+)\/search\?service=bursar/.exec(guide)![1]!
      assert.include(yield* Effect.promise(() => fetch(page).then((response) => response.text())), "<p>pages</p>")
    }).pipe(Effect.scoped),
  )
})

describe("the files as they stand", () => {
  const validate = (program: keyof Build.Programs, file: string) =>
    Effect.map(
      Build.programs(() => {}),
      (programs) => spawnSync(programs[program], ["validate", "--config", file], { encoding: "utf8" }),
    )

  for (const [program, file] of [
    ["collector", Config.collectorFile],
    ["jaeger", Config.jaegerFile],
  ] as const) {
    it.live(`are good for the ${program}, and would not be with an unknown key`, () =>
      Effect.gen(function* () {
        const good = yield* validate(program, file)
        assert.strictEqual(good.status, 0, good.stderr)
        const broken = path.join(yield* Stack.temporary, "broken.yaml")
        fs.writeFileSync(broken, fs.readFileSync(file, "utf8").replace("batch:", "batch: { surprise: 1 }\n  batch/2:"))
        const bad = yield* validate(program, broken)
        assert.notStrictEqual(bad.status, 0)
        assert.include(bad.stderr, "surprise")
      }).pipe(Effect.scoped),
    )
  }
})

layer(standing({ change: (config) => config }), live)("the two that stand", (it) => {
  it.effect("complain of nothing that is deprecated or cannot be had", () =>
    Effect.gen(function* () {
      const { collector, jaeger } = yield* Standing
      const complaints = [collector, jaeger]
        .flatMap((one) => one.output().split("\n"))
        .filter((line) => /\t(warn|error)\t|deprecat/i.test(line) && !line.includes("ui assets not embedded"))
      assert.deepStrictEqual(complaints, [])
    }),
  )
})
