/**
 * The queue of spans on their way out, as those see it who fill it. Its law: a queue that is emptied loses nothing,
 * because who fills it waits; and nobody waits for one that is not emptied.
 */
import type { SpanExporter, SpanProcessor } from "@opentelemetry/sdk-trace-base"
import * as Effect from "effect/Effect"
import type { Room } from "../../telemetry/Room.ts"

/** So long without anything having arrived is waited for, and no longer until something has. */
const patienceMillis = 1_000

interface Waiting {
  readonly go: () => void
}

/** Counts what is in a queue of a size. */
export class Queue {
  readonly #size: number
  #spans = 0
  #waiting = new Set<Waiting>()
  #stalled = false
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(size: number) {
    this.#size = size
  }

  /** The processor whose queue it is, counted. */
  counting(processor: SpanProcessor): SpanProcessor {
    return {
      onStart: (span, context) => processor.onStart(span, context),
      onEnd: (span) => {
        // What does not fit is dropped there.
        if ((span.spanContext().traceFlags & 1) === 1 && this.#spans < this.#size) this.#spans++
        processor.onEnd(span)
      },
      forceFlush: () => processor.forceFlush(),
      shutdown: () => processor.shutdown(),
    }
  }

  /** The exporter that empties it, counted. */
  emptying(exporter: SpanExporter): SpanExporter {
    return {
      export: (spans, done) =>
        exporter.export(spans, (result) => {
          this.#spans = Math.max(0, this.#spans - spans.length)
          // 0 is success.
          this.#left(Number(result.code) === 0)
          done(result)
        }),
      shutdown: () => exporter.shutdown(),
      forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
    }
  }

  /** Half of it is kept for what does not wait: the ends of spans that have started. */
  readonly room: Room = {
    isFull: () => !this.#stalled && this.#spans > this.#size / 2,
    wait: Effect.callback<void>((resume) => {
      const waiting: Waiting = { go: () => resume(Effect.void) }
      if (!this.room.isFull()) return waiting.go()
      this.#waiting.add(waiting)
      this.#timer ??= setTimeout(() => this.#giveUp(), patienceMillis)
      return Effect.sync(() => this.#waiting.delete(waiting))
    }),
  }

  #left(arrived: boolean): void {
    if (arrived) this.#stalled = false
    else this.#stalled = true
    if (this.#stalled || this.#spans <= this.#size / 4) return this.#letGo()
    if (this.#timer === undefined) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#giveUp(), patienceMillis)
  }

  #giveUp(): void {
    this.#stalled = true
    this.#letGo()
  }

  #letGo(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const waiting = this.#waiting
    this.#waiting = new Set()
    for (const { go } of waiting) go()
  }
}
