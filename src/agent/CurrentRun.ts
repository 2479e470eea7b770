/**
 * The run and the account that the current Effect belongs to, for what is an agent itself and runs inside another: judges.
 */
import * as Context from "effect/Context"
import type { Run } from "./Run.ts"

/** @internal */
export const CurrentRun = Context.Reference<{ readonly run: Run; readonly account: string } | undefined>(
  "bursar/agent/CurrentRun",
  { defaultValue: () => undefined },
)
