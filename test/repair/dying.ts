/**
 * The repair job, decided by plain functions, in a process that kills itself with SIGKILL at a chosen moment: no handler
 * runs, nothing is written any more. `node test/repair/dying.ts '{"run":"r1","resume":false,"at":12}'` in the folder
 * where runs are kept; `{}` of a moment lets it live.
 */
import * as Effect from "effect/Effect"
import type { Event } from "../../src/index.ts"
import { run } from "../../examples/repair/Job.ts"

/**
 * When to die: at the n-th event that this process records; or at the n-th start or end of a tool, before that is written,
 * or so long after it.
 */
export type Moment =
  | { readonly at: number }
  | {
      readonly event: "CallStarted" | "CallEnded"
      readonly tool: string
      readonly nth: number
      readonly afterMillis?: number
    }

export interface Life {
  readonly run: string
  readonly resume: boolean
  readonly moment?: Moment
}

const die = (): void => {
  process.kill(process.pid, "SIGKILL")
}

/** Looks at each event, and dies when the moment has come. */
const dyingAt = (moment: Moment | undefined): ((recorded: Event.Recorded) => void) => {
  let seen = 0
  const isIt = (event: Event.Event): boolean => {
    if (moment === undefined) return false
    if ("at" in moment) return ++seen === moment.at
    return event._tag === moment.event && event.tool === moment.tool && ++seen === moment.nth
  }
  return ({ event }) => {
    if (!isIt(event)) return
    const after = moment !== undefined && "afterMillis" in moment ? moment.afterMillis : undefined
    if (after === undefined) die()
    else if (after === 0) setImmediate(die)
    else setTimeout(die, after)
  }
}

const life = JSON.parse(process.argv[2] ?? "{}") as Life
const done = await Effect.runPromise(
  run({
    ...(life.resume ? { resume: life.run } : { run: life.run }),
    useModel: false,
    folder: ".bursar",
    onEvent: dyingAt(life.moment),
    cancelled: Effect.never,
  }),
)
console.log(done.outcome._tag)
