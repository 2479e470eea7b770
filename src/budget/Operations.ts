/**
 * Every operation that changes a tree, as a record of functions over its books. {@link Ledger} is this record bound to
 * one tree; tests explore all interleavings of it, and replace one function at a time by a wrong one.
 */
import { adjust } from "./Adjust.ts"
import { carve, carveAll, close, openRoot, reclaim, topUp } from "./Children.ts"
import { extend, place, release, settle } from "./Holds.ts"
import { amend, freeze, move, pause, resume } from "./Life.ts"
import { leave, wait } from "./Line.ts"
import { sweep } from "./Sweep.ts"

export const operations = {
  openRoot,
  carve,
  carveAll,
  hold: place,
  extendHold: extend,
  settle,
  release,
  adjust,
  move,
  topUp,
  reclaim,
  amend,
  freeze,
  pause,
  resume,
  wait,
  leave,
  close,
  sweep,
}

/** The record of operations; a mutant has the same type. */
export type Operations = typeof operations
