/**
 * The queue of spans on their way out, as those see it who fill it. Its law: a queue that is emptied loses nothing,
 * because who fills it waits; and nobody waits for one that is not emptied.
 */
import type { SpanExporter, SpanProcessor } from "@opentelemetry/sdk-trace-base"
import * as Effect from "effect/Effect"
import type { Room } from "../../telemetry/Room.ts"

/**
 * So long without anything having arrived is waited for, and no longer until something has: ten times a tenth of a second,
 * since one long tenth, in which this process itself was busy, tells nothing of the exporter.
 */
const patience = { times: 10, millis: 100 }

interface Waiting {
  /** True at the end of a span, false before the start of another part. */
  readonly ends: boolean
  readonly go: () => void
}

/** Counts what is in a queue of a size. */
export class Queue {
  readonly #size: number
  #spans = 0
  #waiting: Array<Waiting> = []
  #stalled = false
  #timer: ReturnType<typeof setInterval> | undefined

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
          this.#left(result.error === undefined)
          done(result)
        }),
      shutdown: () => exporter.shutdown(),
      forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
    }
  }

  /**
   * A quarter of the queue is for starting further parts, another for ending what has started; half of it is kept for what
   * cannot wait, such as marks.
   */
  readonly room: Room = {
    isFull: (ends) => !this.#stalled && this.#spans > this.#limit(ends),
    wait: (ends) =>
      Effect.callback<void>((resume) => {
        const waiting: Waiting = { ends, go: () => resume(Effect.void) }
        if (!this.room.isFull(ends)) return waiting.go()
        this.#waiting.push(waiting)
        this.#watch()
        return Effect.sync(() => {
          this.#waiting = this.#waiting.filter((other) => other !== waiting)
        })
      }),
  }

  #limit(ends: boolean): number {
    return this.#size / (ends ? 2 : 4)
  }

  #left(arrived: boolean): void {
    this.#stalled = !arrived
    this.#unwatch()
    if (this.#stalled) return this.#letGo(this.#waiting.length, true)
    this.#serve()
    if (this.#waiting.length > 0) this.#watch()
  }

  #serve(): void {
    this.#letGo(this.#limit(true) - this.#spans, true)
    this.#letGo(this.#limit(false) - this.#spans, false)
  }

  #watch(): void {
    if (this.#timer !== undefined) return
    let left = patience.times
    this.#timer = setInterval(() => {
      const before = this.#waiting.length
      // Those who were let go may have brought less than there was room for.
      this.#serve()
      if (this.#waiting.length === 0) return this.#unwatch()
      if (this.#waiting.length < before) left = patience.times
      else if (--left === 0) this.#left(false)
    }, patience.millis)
  }

  #unwatch(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Lets so many go, those first who wait to end something; each of them may bring a span. */
  #letGo(most: number, ends: boolean): void {
    const goes = this.#waiting
      .filter((one) => this.#stalled || one.ends === ends)
      .slice(0, Math.max(0, Math.ceil(most)))
    if (goes.length === 0) return
    const going = new Set(goes)
    this.#waiting = this.#waiting.filter((one) => !going.has(one))
    for (const { go } of goes) go()
  }
}
