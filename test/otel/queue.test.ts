import { assert, describe, it } from "@effect/vitest"
import { core } from "@opentelemetry/sdk-node"
import { type ReadableSpan, type SpanExporter, NoopSpanProcessor } from "@opentelemetry/sdk-trace-base"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { Queue } from "../../src/otel/internal/queue.ts"
import * as OtlpReceiver from "../support/OtlpReceiver.ts"
import { layer } from "./exporting.ts"
import { fanOut, spansOf } from "./fanOut.ts"

/** A queue that is filled by hand and emptied by hand. */
const queue = (size: number) => {
  const made = new Queue(size)
  const processor = made.counting(new NoopSpanProcessor())
  const span = { spanContext: () => ({ traceFlags: 1 }) } as ReadableSpan
  let failing = false
  const inner: SpanExporter = {
    export: (_, done) =>
      done(
        failing
          ? { code: core.ExportResultCode.FAILED, error: new Error("down") }
          : { code: core.ExportResultCode.SUCCESS },
      ),
    shutdown: () => Promise.resolve(),
  }
  const exporter = made.emptying(inner)
  return {
    room: made.room,
    fill: (count: number) => Array.from({ length: count }, () => processor.onEnd(span)),
    empty: (count: number, fails = false) => {
      failing = fails
      exporter.export(
        Array.from({ length: count }, () => span),
        () => {},
      )
    },
  }
}

describe("a queue", () => {
  it.live("that is a quarter full is waited for before something starts, one that is half full before it ends", () =>
    Effect.gen(function* () {
      const { fill, room } = queue(20)
      const full = (count: number) => (fill(count), [room.isFull(false), room.isFull(true)])
      assert.deepStrictEqual(
        [full(5), full(1), full(4), full(1)],
        [
          [false, false],
          [true, false],
          [true, false],
          [true, true],
        ],
      )
    }),
  )

  it.live("lets as many go as there is room for, and those first who end something", () =>
    Effect.gen(function* () {
      const { empty, fill, room } = queue(20)
      fill(20)
      const gone: Array<string> = []
      const waits = (name: string, ends: boolean) =>
        Effect.forkChild(
          Effect.andThen(
            room.wait(ends),
            Effect.sync(() => gone.push(name)),
          ),
          { startImmediately: true },
        )
      const fibers = yield* Effect.all([waits("start", false), waits("end 1", true), waits("end 2", true)])
      empty(9)
      yield* Effect.yieldNow
      assert.deepStrictEqual(gone, [])
      empty(2)
      yield* Effect.yieldNow
      assert.deepStrictEqual(gone, ["end 1"])
      empty(5)
      yield* Effect.forEach(fibers, Fiber.join)
      assert.deepStrictEqual(gone, ["end 1", "end 2", "start"])
    }),
  )

  it.live("forgets those who do not wait any more", () =>
    Effect.gen(function* () {
      const { empty, fill, room } = queue(20)
      fill(11)
      const fiber = yield* Effect.forkChild(room.wait(true), { startImmediately: true })
      const other = yield* Effect.forkChild(room.wait(true), { startImmediately: true })
      yield* Fiber.interrupt(fiber)
      empty(2)
      yield* Fiber.join(other)
    }),
  )

  it.live("whose export fails is not waited for until one succeeds again", () =>
    Effect.gen(function* () {
      const { empty, fill, room } = queue(20)
      fill(19)
      const waiting = yield* Effect.all(
        [true, false].map((ends) => Effect.forkChild(room.wait(ends), { startImmediately: true })),
      )
      empty(1, true)
      yield* Effect.forEach(waiting, Fiber.join)
      assert.isFalse(room.isFull(true))
      empty(1)
      assert.isTrue(room.isFull(true))
    }),
  )

  it.live("that is not emptied at all is waited for once, and no more", () =>
    Effect.gen(function* () {
      const { fill, room } = queue(20)
      fill(20)
      yield* Effect.all([room.wait(true), room.wait(false)], { concurrency: 2 })
      assert.isFalse(room.isFull(true))
      yield* room.wait(true)
    }),
  )

  it.live("counts what it drops as gone", () =>
    Effect.gen(function* () {
      const { empty, fill, room } = queue(20)
      fill(1_000)
      empty(15)
      assert.isFalse(room.isFull(false))
      yield* room.wait(false)
    }),
  )
})

describe("a large fan-out", () => {
  const [groups, each] = [40, 500]
  const children = groups * each

  it.live(
    `of ${children.toLocaleString("en")} children that end at once loses no span`,
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const count = new Map<string, number>()
          const { url } = yield* OtlpReceiver.make({ count })
          const variables = {
            OTEL_METRICS_EXPORTER: "none",
            OTEL_LOGS_EXPORTER: "none",
            // A fifth of what comes: without waiting it would run over.
            OTEL_BSP_MAX_QUEUE_SIZE: "16384",
          }
          const outcome = yield* fanOut({ groups, each }).pipe(
            Effect.provide(
              layer({ OTEL_EXPORTER_OTLP_ENDPOINT: url, ...variables }, { shutdownTimeout: "60 seconds" }),
            ),
          )
          assert.strictEqual(outcome._tag, "Completed")
          const { "bursar.continuation": continuations, ...rest } = Object.fromEntries(count)
          assert.deepStrictEqual(rest, spansOf({ groups, each }))
          assert.isAbove(continuations ?? 0, (children * 4) / 2_000 - 2)
        }),
      ),
    240_000,
  )
})
