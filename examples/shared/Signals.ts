/**
 * Ctrl-C: the first one asks for the end, the second one does not ask.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"

/** Resolves when the user wants the job to end. From the call on the process does not end by a first signal. */
export const cancellation = (): Effect.Effect<void> => {
  const cancelled = Deferred.makeUnsafe<void>()
  let signals = 0
  const onSignal = (): void => {
    if (++signals > 1) {
      process.stderr.write("ended at once\n")
      process.exit(130)
    }
    process.stderr.write("\ncancelling; once more to end at once\n")
    Deferred.doneUnsafe(cancelled, Effect.void)
  }
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal)
  return Deferred.await(cancelled)
}
