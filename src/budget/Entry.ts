/**
 * What the budget tree writes to the journal: one entry for each operation, with its numbers. The tree can be rebuilt
 * from them.
 */
import * as Schema from "effect/Schema"
import { dimensions, type Dimension } from "./Dimension.ts"
import { Refusal } from "./Refusal.ts"
import { reserves } from "./Reserve.ts"

const count = Schema.optionalKey(Schema.Finite)

/** Amounts as a journal line shows them: a dimension that is 0 (or uncapped, in a grant) is left out. */
export const Sparse = Schema.Struct({
  steps: count,
  ticks: count,
  inputTokens: count,
  outputTokens: count,
  money: count,
  toolCalls: count,
} satisfies Record<Dimension, typeof count>)

/** The name of a reserve. */
export const ReserveName = Schema.Literals(reserves)

/** The name of a dimension. */
export const DimensionName = Schema.Literals(dimensions)

const ByReserve = Schema.Struct({ explore: Sparse, retry: Sparse, verify: Sparse, output: Sparse })

const Times = Schema.Struct({
  exploreEndMillis: Schema.Finite,
  verifyEndMillis: Schema.Finite,
  deadlineMillis: Schema.Finite,
})

const Taken = Schema.Struct({
  account: Schema.String,
  reserve: ReserveName,
  dimension: DimensionName,
  amount: Schema.Finite,
})

const opened = {
  account: Schema.String,
  path: Schema.String,
  grant: Sparse,
  reserves: ByReserve,
  window: Schema.optionalKey(Times),
  /** In percent. */
  exploreAtMost: Schema.optionalKey(Sparse),
}

const Limits = Schema.Struct({ maxDepth: Schema.Finite, maxOpenChildren: Schema.Finite })

/** The id that the caller gave an operation, and a digest of what was asked under it; see `digest`. */
const under = { under: Schema.optionalKey(Schema.Struct({ id: Schema.String, content: Schema.String })) }

const resolved = { account: Schema.String, hold: Schema.String, reserve: ReserveName }

/**
 * One operation of the budget tree. `_tag` is the past tense of the operation.
 *
 * @category journal
 * @since 0.1.0
 */
export const Entry = Schema.Union([
  /** `limits` are left out where they are the usual ones. */
  Schema.TaggedStruct("Opened", { ...opened, limits: Schema.optionalKey(Limits) }),
  /** `content` is the digest of what was asked; the id of the account is the one it came under. */
  Schema.TaggedStruct("Carved", {
    ...opened,
    parent: Schema.String,
    reserve: ReserveName,
    asked: Sparse,
    charge: Sparse,
    content: Schema.String,
  }),
  /** `unpriced` where nobody knew what the call would cost: its money stands at nothing and is not known. */
  Schema.TaggedStruct("Held", {
    ...resolved,
    amounts: Sparse,
    moved: Sparse,
    unpriced: Schema.optionalKey(Schema.Literal(true)),
  }),
  Schema.TaggedStruct("Settled", { ...resolved, held: Sparse, actual: Sparse }),
  Schema.TaggedStruct("Voided", { ...resolved, held: Sparse }),
  Schema.TaggedStruct("Assumed", { ...resolved, held: Sparse }),
  Schema.TaggedStruct("Extended", { ...resolved, amounts: Sparse, moved: Schema.optionalKey(Sparse), ...under }),
  Schema.TaggedStruct("Adjusted", { ...resolved, held: Sparse, actual: Sparse, landedOn: Schema.String }),
  Schema.TaggedStruct("ToppedUp", { account: Schema.String, parent: Schema.String, amounts: Sparse, ...under }),
  Schema.TaggedStruct("Reclaimed", { account: Schema.String, parent: Schema.String, amounts: Sparse, ...under }),
  Schema.TaggedStruct("Waited", {
    account: Schema.String,
    parent: Schema.String,
    need: Sparse,
    least: Sparse,
    returned: Sparse,
  }),
  Schema.TaggedStruct("Served", { account: Schema.String, parent: Schema.String, amounts: Sparse }),
  Schema.TaggedStruct("Overran", {
    ...resolved,
    excess: Sparse,
    covered: Schema.Array(Taken),
    debt: Sparse,
  }),
  Schema.TaggedStruct("DebtPaid", { account: Schema.String, paid: Sparse, covered: Schema.Array(Taken) }),
  Schema.TaggedStruct("Moved", {
    account: Schema.String,
    from: ReserveName,
    to: ReserveName,
    amounts: Sparse,
    ...under,
  }),
  Schema.TaggedStruct("Amended", { account: Schema.String, from: Sparse, to: Sparse, wanted: Sparse, ...under }),
  /** `atMillis`, on the clock of the ledger, only where it let a clock run again that had been paused. */
  Schema.TaggedStruct("Frozen", {
    account: Schema.String,
    cause: Schema.String,
    closingWork: Schema.Boolean,
    atMillis: Schema.optionalKey(Schema.Finite),
  }),
  Schema.TaggedStruct("Paused", { account: Schema.String, cause: Schema.String, atMillis: Schema.Finite }),
  Schema.TaggedStruct("Resumed", {
    account: Schema.String,
    pausedMillis: Schema.Finite,
    atMillis: Schema.Finite,
  }),
  Schema.TaggedStruct("Closed", {
    account: Schema.String,
    granted: Sparse,
    own: Sparse,
    children: Sparse,
    returned: Sparse,
    debt: Sparse,
  }),
  Schema.TaggedStruct("Refused", {
    account: Schema.String,
    operation: Schema.String,
    id: Schema.String,
    reason: Refusal,
    /** Present where the refusal stays: under that id it is given again. */
    ...under,
  }),
])

/** @since 0.1.0 */
export type Entry = (typeof Entry)["Type"]
