/**
 * Waiting before an attempt to decide: after a failure, or for the turn that the rate of a model gives. A wait is a tick,
 * and one that would pass the deadline is not begun.
 */
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import type * as Budget from "../budget/Budget.ts"
import type { DecisionFailure, Asking } from "../policy/Policy.ts"
import { inEpoch } from "../tool/Epoch.ts"
import type { Machine } from "./Machine.ts"
import { whileOpen } from "./Spend.ts"

/** The longest wait of our own; a provider may ask for a longer one. */
const longestMillis = 60_000

/** The longest wait that a provider is given where no deadline bounds it: a run is not held up for good by a header. */
export const longestAskedMillis = 3_600_000

/** How long to wait after attempt `tries` at a model failed: as it asked, but not less than our own growing wait. */
export const afterFailure = <A, R>(
  machine: Machine<A, R>,
  tries: number,
  failure: DecisionFailure,
): Effect.Effect<number> =>
  Effect.map(Random.next, (jitter) => {
    const own = Math.min(longestMillis, machine.settings.backoffMillis * 2 ** (tries - 1)) * (0.5 + jitter / 2)
    return Math.ceil(Math.max(failure.retryAfterMillis ?? 0, own))
  })

/** Where a wait is paid. */
interface Place {
  readonly id: string
  readonly reserve: Budget.Reserve
}

/** Waits, for a tick. **Fails with** `BudgetError` where that tick cannot be paid. */
export const pass = <A, R>(
  machine: Machine<A, R>,
  place: Place,
  millis: number,
): Effect.Effect<void, Budget.BudgetError> => Effect.asVoid(ticking(machine, place, Effect.sleep(millis)))

/**
 * Waits until it is the turn of an attempt. Without a rate, or where the turn has come, it costs nothing.
 *
 * **Fails with** `BudgetError` where the tick cannot be paid, and with the failure of the turn where it would come too late.
 */
export const forTurn = <A, R, R2>(
  machine: Machine<A, R>,
  place: Place,
  asking: Asking<R2>,
): Effect.Effect<void, Budget.BudgetError | { readonly _tag: "TooLate"; readonly failure: DecisionFailure }> => {
  const { ledger, account } = machine.purse
  const ask = Effect.suspend(() => {
    const within = ledger.leftMillis(account, place.reserve) ?? Infinity
    return asking.turn!(asking.hold(ledger.reachable(account, place.reserve)), within)
  }).pipe(Effect.mapError((failure) => ({ _tag: "TooLate", failure }) as const))
  const waitOut = (millis: number): Effect.Effect<void, Effect.Error<typeof ask>> =>
    Effect.andThen(
      Effect.sleep(millis),
      Effect.flatMap(ask, (more) => (more === 0 ? Effect.void : waitOut(more))),
    )
  if (asking.turn === undefined) return Effect.void
  return Effect.flatMap(ask, (millis) =>
    millis === 0 ? Effect.void : Effect.flatMap(ticking(machine, place, waitOut(millis)), ({ exit }) => exit),
  )
}

const ticking = <A, R, E>(
  machine: Machine<A, R>,
  { id, reserve }: Place,
  wait: Effect.Effect<void, E>,
): Effect.Effect<Budget.Spent<void, E>, Budget.BudgetError> =>
  whileOpen(
    machine,
    { id: inEpoch(id, machine.epoch), reserve },
    { hold: () => oneTick, use: () => wait, book: () => ({ _tag: "Settle", actual: oneTick }) },
  )

const oneTick: Budget.Grant = { ticks: 1 }
