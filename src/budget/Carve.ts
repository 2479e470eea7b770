/**
 * Deciding what a child gets. Pure: it looks at the parent's record and answers with a grant or a refusal.
 */
import * as Result from "effect/Result"
import * as Accounts from "./Account.ts"
import type { Account } from "./Account.ts"
import { type Amounts, dimensions, type Dimension, type Grant, validate } from "./Dimension.ts"
import type { Refusal, Shortage } from "./Refusal.ts"
import type { Plan, Reserve } from "./Reserve.ts"
import type { WindowPlan } from "./Window.ts"

/**
 * What a child asks for: exactly that or a refusal, or as much of it as there is but not under a floor.
 *
 * A dimension left out is uncapped where the parent's is, and a cap of zero where the parent has a cap.
 *
 * @category delegating
 * @since 0.1.0
 */
export type Ask =
  | { readonly _tag: "Exactly"; readonly grant: Grant }
  | { readonly _tag: "AtMost"; readonly grant: Grant; readonly floor: Grant }

/** How a new account is to be divided and how long it may live. */
export interface Opening {
  readonly id: string
  readonly name: string
  readonly reserves?: Plan
  readonly window?: WindowPlan
  /** Milliseconds from now; absent = none of its own. */
  readonly wallClockMillis?: number | undefined
  /** Milliseconds without which opening it makes no sense. */
  readonly minimumMillis?: number
}

/** A child to carve. */
export interface Carving extends Opening {
  readonly ask: Ask
  /** The reserve of the parent that funds it. */
  readonly reserve?: Reserve
  /** What starting it costs the parent, booked at once: a spawn is one tool call, a scope is nothing. */
  readonly charge?: Grant
}

/** A child of a batch that gets an equal part: not under `floor`, not above `most`. */
export interface EvenCarving extends Opening {
  readonly floor: Grant
  readonly most?: Grant | undefined
  readonly charge: Grant
}

/** The grant a child gets: what it asked for, or as much of it as there is. */
export const decideGrant = (
  parent: Account,
  reserve: Reserve,
  carving: Carving,
  charge: Amounts,
): Result.Result<Grant, Refusal> => {
  const { ask } = carving
  const valid = validate(ask.grant, "ask")
  if (Result.isFailure(valid)) return Result.fail(valid.failure)
  const left = Accounts.availableIn(parent, reserve)
  const grant: { [D in Dimension]?: number } = {}
  const short: Array<Shortage> = []
  for (const d of dimensions) {
    const [wanted, limit] = [valid.success[d], left[d]]
    const room = limit === undefined ? undefined : limit - charge[d]
    const given = room === undefined ? wanted : Math.min(wanted ?? 0, Math.max(0, room))
    const needed = ask._tag === "Exactly" ? (wanted ?? 0) : (ask.floor[d] ?? 0)
    if (given !== undefined) grant[d] = given
    if (room !== undefined && needed > room) {
      const [asked, available] = [needed + charge[d], Math.max(0, limit ?? 0)]
      short.push({ dimension: d, reserve, asked, available, account: parent.path, whose: "parent" })
    } else if (given !== undefined && needed > given) {
      const account = `${parent.path}/${carving.name}`
      short.push({ dimension: d, reserve, asked: needed, available: given, account, whose: "minimum" })
    }
  }
  return short.length > 0 ? Result.fail({ _tag: "Insufficient", shortages: short }) : Result.succeed(grant)
}

/** An equal part, rounded down, of what is left after `count` charges. */
export const evenShare = (left: Grant, charge: Grant, count: number): Grant =>
  Object.fromEntries(
    dimensions
      .filter((d) => left[d] !== undefined)
      .map((d) => [d, Math.max(-1, Math.floor(((left[d] ?? 0) - count * (charge[d] ?? 0)) / count))]),
  )

/** A share of -1 means that not even the charges fit. */
export const fitsShare = (share: Grant, floor: Grant): boolean =>
  dimensions.every((d) => share[d] === undefined || (share[d] ?? 0) >= (floor[d] ?? 0))

export const ceiling = (share: Grant, most: Grant | undefined): Grant =>
  most === undefined
    ? share
    : Object.fromEntries(
        dimensions
          .filter((d) => share[d] !== undefined || most[d] !== undefined)
          .map((d) => [d, Math.min(share[d] ?? Number.MAX_SAFE_INTEGER, most[d] ?? Number.MAX_SAFE_INTEGER)]),
      )

export const shortOfFloor = (
  one: EvenCarving,
  share: Grant,
  of: { readonly parent: Account; readonly reserve: Reserve },
): ReadonlyArray<Shortage> =>
  dimensions
    .filter((d) => share[d] !== undefined && (share[d] ?? 0) < (one.floor[d] ?? 0))
    .map((dimension) => ({
      dimension,
      reserve: of.reserve,
      asked: (one.floor[dimension] ?? 0) + (one.charge[dimension] ?? 0),
      available: Math.max(0, share[dimension] ?? 0),
      account: `${of.parent.path}/${one.name}`,
      whose: "minimum" as const,
    }))
