/**
 * Where the repair job is killed: at events spread over the whole run, and a few milliseconds after a call has started.
 */
import type { Moment } from "./dying.ts"
import type { Point } from "./Killing.ts"

/**
 * The first event after the beginning has been written: a run that nothing is known of is started again, as nothing of it
 * has happened.
 */
const first = 4

const inWords = (moment: Moment): string => {
  if ("at" in moment) return `at event ${moment.at}`
  const { afterMillis, event, nth, tool } = moment
  if (afterMillis !== undefined) return `${afterMillis} ms into ${tool} ${nth}`
  return `${event === "CallStarted" ? "right before" : "right after"} ${tool} ${nth}`
}

const pointOf = (moments: readonly [Moment, Moment?], index: number, kind: string): Point => {
  const [once, again] = moments
  const name = again === undefined ? inWords(once) : `${inWords(once)}, then ${inWords(again)}`
  return { name, run: `${kind}-${index}`, first: once, ...(again === undefined ? {} : { second: again }) }
}

/** Twelve events from the first to the last of a run; every fourth of them kills the second process as well. */
export const spread = (events: number): ReadonlyArray<Point> =>
  Array.from({ length: 12 }, (_, index) => {
    const at = Math.round(first + (index * (events - first)) / 11)
    return pointOf(index % 4 === 1 ? [{ at }, { at: 7 + index }] : [{ at }], index, "event")
  })

const into = (tool: string, nth: number, afterMillis: number): Moment => ({
  event: "CallStarted",
  tool,
  nth,
  afterMillis,
})

const moments: ReadonlyArray<readonly [Moment, Moment?]> = [
  [into("run_command", 1, 0)],
  [into("run_command", 1, 60)],
  [into("run_command", 2, 20)],
  [into("run_command", 3, 20), into("run_command", 1, 40)],
  [{ event: "CallStarted", tool: "patch_file", nth: 1 }],
  [into("patch_file", 1, 0)],
  [into("patch_file", 1, 2)],
  // The patch is in the file, and nobody has written that down.
  [{ event: "CallEnded", tool: "patch_file", nth: 1 }],
]

/** While the tests run, and before, during and after the patch. */
export const timed: ReadonlyArray<Point> = moments.map((one, index) => pointOf(one, index, "timed"))
