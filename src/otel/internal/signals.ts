/**
 * Sending what is left when a process ends that does not close its layers: when it has nothing more to do, and when it is
 * told to end. Whoever handles such a signal himself ends the process himself; else it ends as it would have.
 */

const told = ["SIGTERM", "SIGINT"] as const

/** Calls `flush` before the process ends; answers with how to stop that. */
export const beforeEnd = (flush: () => Promise<void>): (() => void) => {
  const onSignal = (signal: NodeJS.Signals): void => {
    const alone = process.listenerCount(signal) === 1
    void flush().finally(() => {
      if (alone) again(signal)
    })
  }
  /** Nobody listens any more: the process ends as it would have. */
  const again = (signal: NodeJS.Signals): void => {
    stop()
    process.kill(process.pid, signal)
  }
  const onIdle = (): void => {
    // Once: what it sends would be followed by another end.
    process.off("beforeExit", onIdle)
    void flush()
  }
  const stop = (): void => {
    process.off("beforeExit", onIdle)
    for (const signal of told) process.off(signal, onSignal)
  }
  process.on("beforeExit", onIdle)
  for (const signal of told) process.on(signal, onSignal)
  return stop
}
