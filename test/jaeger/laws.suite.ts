/**
 * The laws of traces (T1 to T11) over what Jaeger stored of runs that stop for every reason there is, of one that goes on
 * in another process, of one that is killed and of one too large for a trace.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { assert, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { search, type StoredTrace } from "../../examples/jaeger/Query.ts"
import { Agent, type Event, Journal, Policy } from "../../src/index.ts"
import { OpenAi } from "../../src/openai/index.ts"
import { ScriptedModel, TestingServer } from "../../src/testing/index.ts"
import * as Names from "../../src/telemetry/Names.ts"
import { fanOut, spansOf } from "../otel/fanOut.ts"
import { type Any, driven, kit, questions, resumed, says } from "../support/driven.ts"
import { all } from "../support/journalled.ts"
import { bare } from "../support/scripts.ts"
import { canary, play, type Stop, stops } from "../telemetry/everyStop.ts"
import { broken, facts, links, marks, trees } from "../telemetry/laws.ts"
import { shapeOf } from "../telemetry/Row.ts"
import { type Started, sending, stored, virtual } from "./Recording.ts"
import { rowsOf, toleranceNanos } from "./Rows.ts"
import { live, Standing, standing, until } from "./Standing.ts"

interface Sent {
  readonly stop: Stop
  readonly started: ReadonlyArray<Started>
  readonly events: ReadonlyArray<Event.Recorded>
}

const sent = (stop: Stop, stack: Standing["Service"]) =>
  Effect.map(virtual(sending(play(stop), stack)), ({ started, value }) => ({ stop, started, events: value }))

/**
 * On a virtual clock what is last in an agent begins when the agent ends; an instant is a nanosecond long when it is
 * exported, and Jaeger sees it end so much too late.
 */
const isInstant = /^clock skew adjustment disabled; not applying calculated delta of -[\d.]*0001m?s$/

/** What a journal says, but for which traces it is told in. */
const withoutTraces = (events: ReadonlyArray<Event.Recorded>) =>
  events.map(({ event, ...rest }) => ({ ...rest, event: { ...event, trace: undefined } }))

const count = (text: string, word: string): number => text.split(word).length - 1

const rootOf = (started: ReadonlyArray<Started>): string => started[0]!.traceId

/** How many traces a search for each reason finds; those of the runs that stopped for it are all among them. */
const foundBy = (key: string, runs: ReadonlyArray<Sent>, { query }: Standing["Service"]) =>
  Effect.map(
    Effect.forEach(stops, ({ reason }) =>
      Effect.map(search(query, { service: "bursar", tags: { [key]: reason } }), (traces) => {
        const found = traces.map(({ traceId }) => traceId)
        const due = runs.filter(({ stop }) => stop.reason === reason).map(({ started }) => rootOf(started))
        assert.includeMembers(found, due, `${key} ${reason}`)
        return found.length
      }),
    ),
    (counts) => counts.reduce((total, count) => total + count, 0),
  )

layer(standing(), live)("what Jaeger stored", (it) => {
  it.effect("of a run that stops for each reason keeps the laws of traces, and holds no content", (context) =>
    Effect.gen(function* () {
      const stack = yield* Standing
      const runs = yield* Effect.forEach(stops, (stop) => sent(stop, stack))
      const again = yield* Effect.forEach(stops, (stop) => sent(stop, stack))
      const figures = { spans: 0, stored: 0, lost: 0, surplus: 0, "canary hits": 0, bytes: 0, journals: 0 }
      for (const [n, { events, started, stop }] of runs.entries()) {
        const { lost, rows, surplus, traces } = yield* stored(stack, started)
        const text = traces.map((trace) => trace.text).join("\n")
        assert.deepStrictEqual([lost, surplus], [0, 0], stop.reason)
        assert.deepStrictEqual(broken(rows, events, { toleranceNanos }), [], stop.reason)
        const warnings = traces.flatMap(({ spans }) => spans.flatMap((span) => span.warnings))
        assert.deepStrictEqual(
          warnings.filter((one) => !isInstant.test(one)),
          [],
          stop.reason,
        )
        const { rows: others } = yield* stored(stack, again[n]!.started)
        assert.deepStrictEqual(shapeOf(others), shapeOf(rows), stop.reason)
        assert.include(JSON.stringify(events), canary)
        assert.include(text, stop.reason)
        figures.journals += count(JSON.stringify(events), canary)
        figures.spans += started.length
        figures.stored += rows.length
        figures.lost += lost
        figures.surplus += surplus
        figures.bytes += text.length
        figures["canary hits"] += count(text, canary)
        const untraced = yield* virtual(play(stop))
        assert.deepStrictEqual(withoutTraces(events), withoutTraces(untraced), stop.reason)
      }
      assert.strictEqual(figures["canary hits"], 0)
      const one = yield* foundBy(Names.runStopReason, [...runs, ...again], stack)
      const other = yield* foundBy(Names.stopReason, [...runs, ...again], stack)
      assert.strictEqual(one, runs.length + again.length)
      // A child of the run that is complete stopped for a reason of its own.
      assert.isAbove(other, one)
      context.task.meta.figures = {
        runs: runs.length,
        "runs again, traced the same": again.length,
        "spans sent": figures.spans,
        "spans stored": figures.stored,
        lost: figures.lost,
        "stored twice or unasked": figures.surplus,
        "spans per run": (figures.stored / runs.length).toFixed(1),
        "canaries in the journals": figures.journals,
        "bytes of traces searched for them": figures.bytes,
        "canary hits": figures["canary hits"],
        "runs found by why they stopped": one,
        "runs found by why any agent of them stopped": other,
      }
    }),
  )

  it.effect(
    "of a run that goes on in another process has no request twice, and leads from one trace to the other",
    (context) =>
      Effect.gen(function* () {
        const stack = yield* Standing
        const tools = kit({ pay: [{ effect: "irreversible", approval: true }, ({ key }) => Effect.succeed(key)] })
        const script = [
          { calls: [{ name: "pay", params: { key: "x" } }], usage: { input: 7, output: 3 } },
          { text: "done", usage: { input: 9, output: 2 } },
        ]
        const { model, requests } = ScriptedModel.make(script, { name: "small" })
        const policy = Policy.fromModel(model, { maxOutputTokens: 5 })
        const clerk = Agent.make("root", { ...bare, policy, toolkit: tools.toolkit }) as unknown as Any
        const events: Array<Event.Recorded> = []
        const budget = { steps: 9, toolCalls: 9 }
        const given = <A, E, R>(self: Effect.Effect<A, E, R>) =>
          virtual(sending(self.pipe(Effect.provide(tools.handlers)) as Effect.Effect<A, unknown>, stack))
        const first = yield* given(driven(clerk, { budget, events }, (handle) => handle.await))
        const [question] = questions(first.value)
        const second = yield* given(resumed(clerk, events, [says(question!, "approved")]))
        const { lost, rows, surplus } = yield* stored(stack, [...first.started, ...second.started])
        assert.deepStrictEqual([lost, surplus], [0, 0])
        assert.deepStrictEqual(broken(rows, events, { toleranceNanos }), [])
        const chats = rows.filter(({ name }) => name === "chat small").length
        assert.strictEqual(chats, requests.length)
        assert.strictEqual(chats, script.length)
        const [one, other] = rows.filter(({ name }) => name === "invoke_agent root")
        assert.deepStrictEqual(
          other!.links.map(({ spanId, traceId }) => [traceId, spanId]),
          [[one!.traceId, one!.spanId]],
        )
        context.task.meta.figures = {
          traces: 2,
          "requests to the model": requests.length,
          "spans of requests": chats,
          lost,
        }
      }),
  )

  it.effect("of a provider that fails with what it was told holds none of it", (context) =>
    Effect.gen(function* () {
      const stack = yield* Standing
      const server = yield* TestingServer.make({ script: [{ status: 400, errorMessage: canary, errorCode: "bad" }] })
      const events: Array<Event.Recorded> = []
      const model = yield* OpenAi.model({ model: "gpt-test", apiKey: Redacted.make("sk-none"), baseUrl: server.url })
      const lead = Agent.make("lead", {
        instructions: canary,
        policy: Policy.fromModel(model, { maxOutputTokens: 9 }),
        ...bare,
      })
      const { started, value } = yield* sending(
        Agent.run(lead, canary, { budget: { steps: 3 }, runId: "refused" }).pipe(
          Effect.provideService(Journal.Journal, Journal.toArray(events)),
        ),
        stack,
      )
      assert.strictEqual(value._tag, "Stopped")
      assert.strictEqual(all(events, "RunEnded")[0]?.reason, "model_error")
      assert.strictEqual(server.ledger.requests, 1)
      const { lost, rows, traces } = yield* stored(stack, started)
      assert.deepStrictEqual(broken(rows, events, { toleranceNanos }), [])
      const hits = traces.reduce((total, { text }) => total + count(text, canary), 0)
      assert.deepStrictEqual([lost, hits], [0, 0])
      context.task.meta.figures = { "spans stored": rows.length, lost, "canary hits": hits }
    }).pipe(Effect.scoped),
  )

  it.effect("of a process that was killed tells of every agent that was open", (context) =>
    Effect.gen(function* () {
      const { otlp, query } = yield* Standing
      const env = { PATH: process.env["PATH"], OTEL_EXPORTER_OTLP_ENDPOINT: otlp, OTEL_BSP_SCHEDULE_DELAY: "50" }
      const child = yield* Effect.acquireRelease(
        Effect.sync(() => spawn(process.execPath, ["test/otel/killed.program.ts"], { env, stdio: "inherit" })),
        (child) => Effect.sync(() => child.kill("SIGKILL")),
      )
      const ended = once(child, "exit")
      const looked = search(query, { service: "bursar", tags: { [Names.runId]: "killed" } })
      const countOf = (traces: ReadonlyArray<StoredTrace>) => traces.flatMap(({ spans }) => spans).length
      const open = ["lead", "lead/sleeper-1", "lead/sleeper-2", "lead/sleeper-3"]
      yield* until("the starts", looked, (traces) => countOf(traces) >= open.length)
      child.kill("SIGKILL")
      assert.deepStrictEqual(yield* Effect.promise(() => ended), [null, "SIGKILL"])
      const rows = rowsOf(yield* looked)
      assert.sameDeepMembers(
        rows.map(({ attributes, name }) => [name, attributes[Names.nodeId]]),
        open.map((node) => ["bursar.start", node]),
      )
      const complaints = [...trees(rows, { killed: true }), ...facts(rows), ...marks(rows, []), ...links(rows)]
      assert.deepStrictEqual(complaints, [])
      context.task.meta.figures = { "agents open when it was killed": open.length, "told of in Jaeger": rows.length }
    }).pipe(Effect.scoped),
  )

  it.effect(
    "of 20,000 children that end at once is all of it",
    (context) =>
      Effect.gen(function* () {
        const stack = yield* Standing
        const events: Array<Event.Recorded> = []
        const size = { groups: 40, each: 500, runId: "fan-out" }
        const { started, value } = yield* sending(
          Effect.provideService(fanOut(size), Journal.Journal, Journal.toArray(events)),
          stack,
        )
        assert.strictEqual(value._tag, "Completed")
        const { lost, rows, surplus, traces } = yield* stored(stack, started)
        const names = Object.fromEntries(
          [...Map.groupBy(rows, ({ name }) => name)].map(([name, all]) => [name, all.length]),
        )
        const { "bursar.continuation": continuations = 0, ...rest } = names
        assert.deepStrictEqual(rest, spansOf(size))
        assert.deepStrictEqual([lost, surplus], [0, 0])
        assert.strictEqual(continuations, traces.length - 1)
        assert.deepStrictEqual(broken(rows, events, { toleranceNanos }), [])
        context.task.meta.figures = {
          children: size.groups * size.each,
          traces: traces.length,
          "spans sent": started.length,
          "spans stored": rows.length,
          lost,
        }
      }),
    240_000,
  )
})
