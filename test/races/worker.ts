/** Runs a part of the seeds in a thread of its own. */
import { parentPort, workerData } from "node:worker_threads"
import { run } from "./Tally.ts"

// Thousands of refusals are made here, and nobody reads where.
if (workerData.quick) Error.stackTraceLimit = 0
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- another thread, not another window
parentPort!.postMessage(await run(workerData))
