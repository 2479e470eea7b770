/** Wrong holds, bills and corrections. */
import * as Result from "effect/Result"
import * as Accounts from "../../src/budget/Account.ts"
import { add, amounts, equals, fits, map, min, nonZero, subtract, zero } from "../../src/budget/Dimension.ts"
import { operations } from "../../src/budget/Operations.ts"
import { changeFund, disguised, freeOf, missing, withFund, withoutDebtors, withoutLine } from "./books.ts"
import { linesBelow, small, threeNodes, twoDimensions } from "./configurations.ts"
import type { Defect } from "./defects.ts"

const holding: ReadonlyArray<Defect> = [
  {
    // Both racers look before either has taken.
    name: "check and apply apart",
    law: "I1 local conservation",
    world: small,
    wrong: {
      hold: (books, ref, reserve, wanted) =>
        disguised(
          books,
          ref.account,
          (self) => withFund(self, reserve, () => ({ held: zero })),
          () => operations.hold(books, ref, reserve, wanted),
        ),
    },
  },
  {
    name: "borrow downward",
    law: "I10 senior reserve",
    world: small,
    wrong: {
      hold: (books, ref, reserve, wanted) => {
        const before = books.account(ref.account)
        const short = missing(wanted, freeOf(before.funds.explore))
        if (reserve === "explore" && fits(short, freeOf(before.funds.output)))
          books.put(Accounts.move(before, "output", "explore", short))
        const held = operations.hold(books, ref, reserve, wanted)
        if (Result.isFailure(held)) books.put(before)
        return held
      },
    },
  },
  {
    name: "hold under a freeze",
    law: "I12 freeze",
    world: small,
    wrong: {
      hold: (books, ref, reserve, wanted) =>
        disguised(
          books,
          ref.account,
          (self) => ({ ...self, state: "Open" }),
          () => operations.hold(books, ref, reserve, wanted),
        ),
    },
  },
  {
    name: "hold that keeps the dimensions that fit, though refused",
    law: "Refusal",
    world: twoDimensions,
    wrong: {
      hold: (books, ref, reserve, wanted) => {
        const held = operations.hold(books, ref, reserve, wanted)
        const { funds, state } = books.account(ref.account)
        if (Result.isSuccess(held) || state !== "Open") return held
        const vector = amounts(wanted)
        const there = freeOf(funds[reserve])
        const fitting = map((d) => (vector[d] <= there[d] ? vector[d] : 0))
        if (!equals(fitting, zero))
          changeFund(books, ref.account, reserve, (fund) => ({ held: add(fund.held, fitting) }))
        return held
      },
    },
  },
  {
    name: "extendHold applied though refused",
    law: "Refusal",
    world: small,
    wrong: {
      extendHold: (books, ref, extra) => {
        const extended = operations.extendHold(books, ref, extra)
        const hold = books.hold(ref)
        if (Result.isFailure(extended) && hold !== undefined)
          books.putHold({ ...hold, amounts: add(hold.amounts, amounts(extra)) })
        return extended
      },
    },
  },
  {
    name: "extendHold that sets nothing aside",
    law: "I2 links",
    world: small,
    wrong: {
      extendHold: (books, ref, extra) => {
        const before = books.account(ref.account)
        const extended = operations.extendHold(books, ref, extra)
        books.put(before)
        return extended
      },
    },
  },
]

const billing: ReadonlyArray<Defect> = [
  {
    name: "settle after void",
    law: "I7 resolve once",
    world: small,
    wrong: {
      settle: (books, ref, actual) => {
        const hold = books.hold(ref)
        if (hold?.state === "Voided") {
          const self = books.account(ref.account)
          const held = add(self.funds[hold.reserve].held, hold.amounts)
          books.put({ ...withFund(self, hold.reserve, () => ({ held })), pendingHolds: self.pendingHolds + 1 })
          books.putHold({ ...hold, state: "Pending" })
        }
        return operations.settle(books, ref, actual)
      },
    },
  },
  {
    // What was sent and never answered is given back as if it had not been sent.
    name: "void after send",
    law: "I4 each bill once",
    world: small,
    wrong: {
      release: (books, ref, state) => {
        if (state === "Voided" || books.hold(ref)?.state !== "Pending") return operations.release(books, ref, state)
        const released = operations.release(books, ref, "Voided")
        if (Result.isSuccess(released)) books.putHold({ ...released.success, state })
        return released
      },
    },
  },
  {
    name: "void that books the hold as used",
    law: "I4 each bill once",
    world: small,
    wrong: {
      release: (books, ref, state) => {
        const before = books.hold(ref)
        const released = operations.release(books, ref, state)
        if (before?.state === "Pending" && state === "Voided")
          changeFund(books, ref.account, before.reserve, ({ used }) => ({ used: add(used, before.amounts) }))
        return released
      },
    },
  },
  {
    name: "over-run forgotten",
    law: "I4 ledger covers bill",
    world: small,
    wrong: {
      settle: (books, ref, actual) => {
        const held = books.hold(ref)?.amounts ?? zero
        return operations.settle(books, ref, nonZero(min(amounts(actual), held)))
      },
    },
  },
  {
    name: "debt never covered",
    law: "I6 debt",
    world: small,
    wrong: {
      settle: (books, ref, actual) => {
        const hold = books.hold(ref)
        if (hold?.state !== "Pending") return operations.settle(books, ref, actual)
        const within = min(amounts(actual), hold.amounts)
        const excess = subtract(amounts(actual), within)
        const settled = operations.settle(books, ref, nonZero(within))
        if (equals(excess, zero)) return settled
        const self = books.account(ref.account)
        books.put({ ...self, debt: add(self.debt, excess) })
        books.debtors.add(ref.account)
        return settled
      },
    },
  },
  {
    name: "debt covered at the bill but not from later refunds",
    law: "I6 debt",
    world: small,
    wrong: { release: (books, ref, state) => withoutDebtors(books, () => operations.release(books, ref, state)) },
  },
  {
    name: "over-run covered from above that stays there",
    law: "I2 links",
    world: small,
    wrong: {
      settle: (books, ref, actual) => {
        const above = books.pathOf(ref.account).slice(1)
        const settled = operations.settle(books, ref, actual)
        for (const account of above) books.put(account)
        return settled
      },
    },
  },
  {
    name: "settle that forgets to release the hold",
    law: "I2 links",
    world: small,
    wrong: {
      settle: (books, ref, actual) => {
        const hold = books.hold(ref)
        const settled = operations.settle(books, ref, actual)
        if (Result.isSuccess(settled) && hold?.state === "Pending")
          changeFund(books, ref.account, hold.reserve, ({ held }) => ({ held: add(held, hold.amounts) }))
        return settled
      },
    },
  },
]

const adjusting: ReadonlyArray<Defect> = [
  {
    name: "adjust to zero",
    law: "I4 ledger covers bill",
    world: small,
    wrong: { adjust: (books, ref) => operations.adjust(books, ref, {}) },
  },
  {
    name: "adjust twice",
    law: "I7 resolve once",
    world: small,
    wrong: {
      adjust: (books, ref, actual) => {
        const hold = books.hold(ref)
        if (hold?.state === "Adjusted") books.putHold({ ...hold, state: "Assumed" })
        return operations.adjust(books, ref, actual)
      },
    },
  },
  {
    name: "adjust that ends at a closed account",
    law: "I4 each bill once",
    world: small,
    wrong: {
      adjust: (books, ref, actual) => {
        const open = books.pathOf(ref.account).find(({ state }) => state !== "Closed")
        const adjusted = operations.adjust(books, ref, actual)
        if (open !== undefined && open.id !== ref.account) books.put(open)
        return adjusted
      },
    },
  },
  {
    name: "adjust that leaves the rows of closed accounts between as they were",
    law: "I8 refund",
    world: threeNodes,
    wrong: {
      adjust: (books, ref, actual) => {
        const closed = books.pathOf(ref.account).filter(({ state }) => state === "Closed")
        const adjusted = operations.adjust(books, ref, actual)
        for (const account of closed) books.put(account)
        return adjusted
      },
    },
  },
  {
    name: "adjust that serves only the line next to the hold",
    law: "Line, hopeless",
    world: linesBelow,
    wrong: {
      adjust: (books, ref, actual) => {
        const path = books.pathOf(ref.account).slice(2)
        const run = path.reduceRight(
          (inner, { id }) =>
            () =>
              withoutLine(books, id, inner),
          () => operations.adjust(books, ref, actual),
        )
        return run()
      },
    },
  },
]

export const holds: ReadonlyArray<Defect> = [...holding, ...billing, ...adjusting]
