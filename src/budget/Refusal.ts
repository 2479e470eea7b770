/**
 * Why an operation on the budget tree was refused. A refusal is a value with numbers in its fields; when it is
 * returned, nothing has changed. {@link BudgetError} is the same value in the error channel of an Effect.
 */
import * as Schema from "effect/Schema"

/** One dimension that was short: how much was asked, how much there was, in which reserve, and of whose account. */
export const Shortage = Schema.Struct({
  dimension: Schema.String,
  reserve: Schema.String,
  asked: Schema.Finite,
  available: Schema.Finite,
  account: Schema.String,
  whose: Schema.Literals(["own", "parent", "minimum"]),
})

/**
 * One dimension that was short. `whose` tells whether the account itself, its parent, or the child's own minimum
 * was the obstacle.
 *
 * @category refusals
 * @since 0.1.0
 */
export type Shortage = (typeof Shortage)["Type"]

const Insufficient = Schema.TaggedStruct("Insufficient", { shortages: Schema.Array(Shortage) })
const InvalidAmount = Schema.TaggedStruct("InvalidAmount", {
  field: Schema.String,
  value: Schema.String,
  remedy: Schema.String,
})
const NotOpen = Schema.TaggedStruct("NotOpen", {
  account: Schema.String,
  state: Schema.String,
  cause: Schema.String,
})
const IdConflict = Schema.TaggedStruct("IdConflict", { id: Schema.String })
const UnknownId = Schema.TaggedStruct("UnknownId", { id: Schema.String })
const AlreadyResolved = Schema.TaggedStruct("AlreadyResolved", { id: Schema.String, state: Schema.String })
const NotQuiescent = Schema.TaggedStruct("NotQuiescent", {
  pendingHolds: Schema.Finite,
  openChildren: Schema.Finite,
})
const TooManyChildren = Schema.TaggedStruct("TooManyChildren", { limit: Schema.Finite })
const TooDeep = Schema.TaggedStruct("TooDeep", { limit: Schema.Finite })
const DeadlinePassed = Schema.TaggedStruct("DeadlinePassed", {
  reserve: Schema.String,
  leftMillis: Schema.Finite,
  neededMillis: Schema.Finite,
})

/**
 * The reason of a refusal.
 *
 * | reason | meaning |
 * | --- | --- |
 * | `Insufficient` | does not fit; lists **every** short dimension |
 * | `InvalidAmount` | what came from outside cannot be: not a natural number, reserves above the grant, a move down |
 * | `NotOpen` | the account, or one above it, is paused, frozen, draining or closed |
 * | `IdConflict` | the id is in use for something else |
 * | `UnknownId` | no such account or hold |
 * | `AlreadyResolved` | the hold was settled, voided or assumed before |
 * | `NotQuiescent` | an account cannot close with a pending hold or an open child |
 * | `TooManyChildren`, `TooDeep` | a structural cap |
 * | `DeadlinePassed` | too little time is left in the window of that reserve |
 *
 * @category refusals
 * @since 0.1.0
 */
export const Refusal = Schema.Union([
  Insufficient,
  InvalidAmount,
  NotOpen,
  IdConflict,
  UnknownId,
  AlreadyResolved,
  NotQuiescent,
  TooManyChildren,
  TooDeep,
  DeadlinePassed,
])

/** @since 0.1.0 */
export type Refusal = (typeof Refusal)["Type"]

/** @since 0.1.0 */
export type Insufficient = (typeof Insufficient)["Type"]

/** @since 0.1.0 */
export type InvalidAmount = (typeof InvalidAmount)["Type"]

/**
 * Says in one sentence, with numbers, why something was refused.
 *
 * @category refusals
 * @since 0.1.0
 */
export const describe = (refusal: Refusal): string => {
  switch (refusal._tag) {
    case "Insufficient":
      return refusal.shortages.map(describeShortage).join("; ")
    case "InvalidAmount":
      return `${refusal.field} is ${refusal.value}: ${refusal.remedy}`
    case "NotOpen":
      return `account ${refusal.account} is ${refusal.state}${refusal.cause === "" ? "" : ` (${refusal.cause})`}`
    case "IdConflict":
      return `the id ${refusal.id} is in use for something else`
    case "UnknownId":
      return `nothing has the id ${refusal.id}`
    case "AlreadyResolved":
      return `${refusal.id} is already ${refusal.state}`
    case "NotQuiescent":
      return `${refusal.pendingHolds} pending holds and ${refusal.openChildren} open children remain`
    case "TooManyChildren":
      return `at most ${refusal.limit} children may be open`
    case "TooDeep":
      return `the tree may be at most ${refusal.limit} levels deep`
    case "DeadlinePassed":
      return `${refusal.leftMillis} ms are left for ${refusal.reserve}, ${refusal.neededMillis} ms are needed`
  }
}

const describeShortage = (shortage: Shortage): string =>
  shortage.whose === "minimum"
    ? `${shortage.dimension}: ${shortage.account} would get ${shortage.available} but needs at least ${shortage.asked}`
    : `${shortage.dimension}: ${shortage.asked} asked, ${shortage.available} available in the ${shortage.reserve} reserve of ${shortage.account}`

/**
 * A refused operation on the budget tree, as the failure of an Effect. Nothing has changed.
 *
 * @category errors
 * @since 0.1.0
 */
export class BudgetError extends Schema.TaggedError<BudgetError>()("BudgetError", {
  operation: Schema.String,
  account: Schema.String,
  reason: Refusal,
}) {
  override get message(): string {
    return `${this.operation} refused for ${this.account}: ${describe(this.reason)}`
  }
}
