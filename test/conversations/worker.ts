/** Holds a part of the conversations in a thread of its own, and says what the thread has left open. */
import { parentPort, workerData } from "node:worker_threads"
import { run } from "./Tally.ts"

// Node warns of an emitter or a signal that gathers listeners.
let gathered = 0
process.on("warning", ({ name }) => {
  if (name === "MaxListenersExceededWarning") gathered++
})

const tally = await run(workerData)
const open = () => process.getActiveResourcesInfo().filter((kind) => kind.startsWith("TCP") || kind === "Timeout")

// What was closed is gone a moment later; nothing here waits longer than the deadline of a request.
const deadline = performance.now() + 2_000
while (open().length > 0 && performance.now() < deadline) await new Promise(setImmediate)
const left = open()
const counts = { ...tally.counts, "sockets and timers left": left.length, "warnings of listeners": gathered }
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- another thread, not another window
parentPort!.postMessage({ ...tally, counts })
