/**
 * One run of a seed, with the tree and with the counter, and what is wrong with it.
 */
import * as Result from "effect/Result"
import { Budget } from "../../src/index.ts"
import { counter } from "./Counter.ts"
import { draw, type Plan } from "./Plan.ts"
import { play } from "./Play.ts"
import { larger, type Overshoot, overshoot, Provider } from "./Provider.ts"
import { Random, runShuffled } from "./Schedule.ts"
import { tree } from "./Tree.ts"
import { Watch } from "./Watch.ts"

/** How a run ended. */
export interface Ended {
  readonly most: Overshoot
  readonly holdsLeft: number
}

/** How a run of the tree ended, with everything that is wrong with it, in words. */
export interface TreeEnded extends Ended {
  readonly entries: number
  readonly complaints: ReadonlyArray<string>
}

export interface Race {
  readonly tree: TreeEnded
  readonly counter: Ended
  readonly interrupted: boolean
}

/** Every so many runs the whole books are recomputed after each entry. */
const thoroughOneIn = 64

/** Plays a seed with both. */
export const race = async (seed: number): Promise<Race> => {
  const plan = draw(new Random(seed))
  const tree = await withTree(plan, seed)
  return { tree, counter: await withCounter(plan, seed), interrupted: isInterrupted(plan) }
}

const isInterrupted = (plan: Plan): boolean =>
  plan.cancelledAfter !== undefined ||
  plan.actors.some((actor) => actor.interruptedAfter !== undefined || actor.timeoutAfter !== undefined)

/** The same interleavings for both, as far as both step aside at the same points. */
const scheduled = (seed: number): Random => new Random(~seed)

const withTree = async (plan: Plan, seed: number): Promise<TreeEnded> => {
  const provider = new Provider()
  const watch = new Watch(plan.cap, provider, seed % thoroughOneIn === 0)
  const { till, ledger } = tree(plan, provider, watch)
  const { complaints } = watch
  const exit = await runShuffled(play(till, plan, complaints), scheduled(seed))
  if (exit === undefined) complaints.push("nothing can go on")
  const accounts = ledger.accounts
  const holdsLeft = accounts.reduce((sum, { id }) => sum + ledger.pendingHolds(id).length, 0)
  if (holdsLeft > 0) complaints.push(`${holdsLeft} holds left`)
  const left = accounts.filter(({ id, state }) => id !== "root" && state !== "Closed").map(({ id }) => id)
  if (left.length > 0) complaints.push(`left open: ${left.join(", ")}`)
  complaints.push(...Budget.violations(ledger))
  if (Result.isFailure(ledger.close("root"))) complaints.push("the root cannot be closed")
  complaints.push(...Budget.imbalances(Budget.statement(ledger)), ...unbooked(ledger, provider))
  const most = larger(watch.most, overshoot(plan.cap, provider.billed))
  if (most.amount > 0) complaints.push(`overspent by ${most.amount}`)
  return { most, holdsLeft, complaints, entries: watch.entries }
}

/** I4: whatever was billed is in the books. */
const unbooked = (ledger: Budget.Ledger, provider: Provider): ReadonlyArray<string> => {
  const used = Budget.used(ledger.root)
  return Budget.dimensions
    .filter((d) => (provider.billed[d] ?? 0) > used[d] + ledger.root.debt[d])
    .map((d) => `${provider.billed[d]} ${d} billed, ${used[d]} booked`)
}

const withCounter = async (plan: Plan, seed: number): Promise<Ended> => {
  const { till, counted } = counter(plan, new Provider())
  await runShuffled(play(till, plan, []), scheduled(seed))
  return counted
}
