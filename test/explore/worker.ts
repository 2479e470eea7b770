/** Explores one configuration in a thread of its own. */
import { parentPort, workerData } from "node:worker_threads"
import { operations } from "../../src/budget/Operations.ts"
import type { Configuration } from "./Model.ts"
import { explore } from "./Search.ts"

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- another thread, not another window
parentPort!.postMessage(explore(workerData as Configuration, operations))
