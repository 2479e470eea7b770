/**
 * Waiting that can be counted, and that ends early with what waits.
 */

/** The timers of one server. */
export interface Timers {
  /** Resolves after so many milliseconds of real time, or as soon as `signal` aborts. */
  readonly sleep: (millis: number, signal: AbortSignal) => Promise<void>
  /** Timers running now. */
  readonly running: () => number
}

/** No timer yet. */
export const make = (): Timers => {
  let running = 0
  return {
    running: () => running,
    sleep: (millis, signal) => {
      if (millis === 0 || signal.aborted) return Promise.resolve()
      running += 1
      return new Promise((resolve) => {
        const end = (): void => {
          clearTimeout(timer)
          signal.removeEventListener("abort", end)
          running -= 1
          resolve()
        }
        const timer = setTimeout(end, millis)
        signal.addEventListener("abort", end, { once: true })
      })
    },
  }
}
