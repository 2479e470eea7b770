/**
 * Deciding what a child gets. Pure: it looks at the parent's record and answers with a grant or a refusal.
 */
import * as Result from "effect/Result"
import * as Accounts from "./Account.ts"
import type { Account } from "./Account.ts"
import { type Amounts, dimensions, type Dimension, type Grant, invalidAmount, maximum, validate } from "./Dimension.ts"
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
  /** The reserve of the parent that funds it: explore unless stated, never output. */
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

/** Whether everything that the parent caps is asked for, caps nothing else, and fits together with the charge. */
const fitsWhole = (parent: Account, reserve: Reserve, grant: Grant, charge: Amounts): boolean => {
  for (const d of dimensions) {
    const wanted = grant[d]
    if (parent.caps[d] !== (wanted !== undefined)) return false
    if (wanted !== undefined && wanted + charge[d] > Accounts.spendable(parent, reserve, d)) return false
  }
  return true
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
  if (ask._tag === "Exactly" && fitsWhole(parent, reserve, valid.success, charge)) return valid
  const least = ask._tag === "Exactly" ? valid : validate(ask.floor, "floor")
  if (Result.isFailure(least)) return Result.fail(least.failure)
  const left = Accounts.availableIn(parent, reserve)
  const grant: { [D in Dimension]?: number } = {}
  const short: Array<Shortage> = []
  for (const d of dimensions) {
    const [wanted, limit] = [valid.success[d], left[d]]
    const room = limit === undefined ? undefined : limit - charge[d]
    const given = room === undefined ? wanted : Math.min(wanted ?? 0, Math.max(0, room))
    const needed = least.success[d] ?? 0
    if (given !== undefined) grant[d] = given
    if (room === undefined && parent.funds[reserve].carved[d] + (given ?? 0) > maximum) {
      return Result.fail(invalidAmount(`ask.${d}`, given, `keep the sum of all open children within ${maximum}`))
    }
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

/**
 * What each child of a batch is to get: the longest prefix for which every minimum fits an equal share, rounded down, of
 * what the reserve has left after the charges; the rest is refused. A request with an invalid amount is refused for
 * itself and does not count.
 */
export const evenly = (
  parent: Account,
  reserve: Reserve,
  batch: ReadonlyArray<EvenCarving>,
): ReadonlyArray<Result.Result<Carving, Refusal>> => {
  const invalid = batch.map(invalidOf)
  const sound = batch.filter((_, index) => invalid[index] === undefined)
  const left = Accounts.availableIn(parent, reserve)
  const count = longestPrefix(left, sound)
  const prefix = sound.slice(0, count + 1)
  let place = 0
  return batch.map((one, index) => {
    const wrong = invalid[index]
    if (wrong !== undefined) return Result.fail(wrong)
    if (place++ >= count) return Result.fail(shortBeyond(one, { left, prefix, parent, reserve }))
    const grant = ceiling(evenShare(left, one.charge, count), one.most)
    return Result.succeed({ ...one, reserve, ask: { _tag: "AtMost", grant, floor: one.floor } })
  })
}

const invalidOf = (one: EvenCarving): Refusal | undefined => {
  for (const [field, grant] of [
    ["floor", one.floor],
    ["charge", one.charge],
    ["most", one.most ?? {}],
  ] as const) {
    const valid = validate(grant, field)
    if (Result.isFailure(valid)) return valid.failure
  }
  return undefined
}

/** One more child never leaves more for the others, so the longest prefix that fits can be searched by halves. */
const longestPrefix = (left: Grant, batch: ReadonlyArray<EvenCarving>): number => {
  let [fits, most] = [0, batch.length]
  while (fits < most) {
    const count = Math.ceil((fits + most) / 2)
    if (isEnoughForAll(left, batch, count)) fits = count
    else most = count - 1
  }
  return fits
}

/** Whether an equal part of what is left is enough for each of the first `count`. */
const isEnoughForAll = (left: Grant, batch: ReadonlyArray<EvenCarving>, count: number): boolean => {
  const parts = evenShare(left, {}, count)
  for (let index = 0; index < count; index++) {
    const { charge, floor } = batch[index]!
    for (const d of dimensions) {
      const part = parts[d]
      if (part !== undefined && part - (charge[d] ?? 0) < (floor[d] ?? 0)) return false
    }
  }
  return true
}

/** An equal part, rounded down, of what is left, without the charge; below 0 where not even that fits. */
const evenShare = (left: Grant, charge: Grant, count: number): Grant => {
  const share: { [D in Dimension]?: number } = {}
  for (const d of dimensions) {
    if (left[d] !== undefined) share[d] = Math.floor(left[d] / count) - (charge[d] ?? 0)
  }
  return share
}

const ceiling = (share: Grant, most: Grant | undefined): Grant =>
  most === undefined
    ? share
    : Object.fromEntries(
        dimensions
          .filter((d) => share[d] !== undefined || most[d] !== undefined)
          .map((d) => [d, Math.min(share[d] ?? maximum, most[d] ?? maximum)]),
      )

/** Whose minimum, with its charge, an equal part would not reach if the prefix were one longer; its own, if it is so. */
const shortBeyond = (
  one: EvenCarving,
  at: {
    readonly left: Grant
    readonly prefix: ReadonlyArray<EvenCarving>
    readonly parent: Account
    readonly reserve: Reserve
  },
): Refusal => {
  const { left, prefix, parent, reserve } = at
  const shortOf = (one: EvenCarving): ReadonlyArray<Shortage> =>
    dimensions.flatMap((dimension) => {
      const asked = (one.floor[dimension] ?? 0) + (one.charge[dimension] ?? 0)
      const available = Math.floor((left[dimension] ?? Infinity) / prefix.length)
      const account = `${parent.path}/${one.name}`
      return asked > available ? [{ dimension, reserve, asked, available, account, whose: "minimum" as const }] : []
    })
  const own = shortOf(one)
  return { _tag: "Insufficient", shortages: own.length > 0 ? own : prefix.flatMap(shortOf) }
}
