/** Wrong carvings, closes and transfers. */
import * as Result from "effect/Result"
import * as Accounts from "../../src/budget/Account.ts"
import { add, fits, subtract, zero } from "../../src/budget/Dimension.ts"
import { operations } from "../../src/budget/Operations.ts"
import { changeFund, disguised, freeOf, missing, withFund } from "./books.ts"
import { small, threeNodes } from "./configurations.ts"
import type { Defect } from "./defects.ts"

export const children: ReadonlyArray<Defect> = [
  {
    name: "carve from the limit instead of what is left",
    law: "I11 structure",
    world: small,
    wrong: {
      carve: (books, parent, carving) =>
        disguised(
          books,
          parent,
          (self) => withFund(self, "explore", () => ({ held: zero, carved: zero, used: zero })),
          () => operations.carve(books, parent, carving),
        ),
    },
  },
  {
    name: "carve from a senior reserve",
    law: "I10 senior reserve",
    world: small,
    wrong: {
      carve: (books, parent, carving) => {
        const before = books.account(parent)
        const short = missing(carving.ask.grant, freeOf(before.funds.explore))
        if (fits(short, freeOf(before.funds.output))) books.put(Accounts.move(before, "output", "explore", short))
        const carved = operations.carve(books, parent, carving)
        if (Result.isFailure(carved)) books.put(before)
        return carved
      },
    },
  },
  {
    name: "moved child deadline",
    law: "I11 structure",
    world: small,
    wrong: {
      carve: (books, parent, carving) => {
        const carved = operations.carve(books, parent, carving)
        if (Result.isFailure(carved)) return carved
        const deadlineMillis = books.nowMillis() + carving.wallClockMillis!
        const window = { exploreEndMillis: deadlineMillis, verifyEndMillis: deadlineMillis, deadlineMillis }
        books.put({ ...carved.success, window })
        return carved
      },
    },
  },
  {
    name: "carve that books nothing at the parent",
    law: "I2 links",
    world: small,
    wrong: {
      carve: (books, parent, carving) => {
        const { funds } = books.account(parent)
        const carved = operations.carve(books, parent, carving)
        if (Result.isSuccess(carved)) books.put({ ...books.account(parent), funds })
        return carved
      },
    },
  },
  {
    name: "close with a pending hold",
    law: "I11 structure",
    world: small,
    wrong: {
      close: (books, id) => {
        const self = books.account(id)
        if (self.state !== "Closed" && self.openChildren === 0) books.put({ ...self, pendingHolds: 0 })
        return operations.close(books, id)
      },
    },
  },
  {
    name: "close with an open child",
    law: "I11 structure",
    world: threeNodes,
    wrong: {
      close: (books, id) => {
        const self = books.account(id)
        const isIdle = self.state !== "Closed" && self.pendingHolds === 0
        if (self.parent !== undefined && isIdle) books.put({ ...self, openChildren: 0 })
        return operations.close(books, id)
      },
    },
  },
  {
    name: "refund twice",
    law: "I7 resolve once",
    world: small,
    wrong: {
      close: (books, id) => {
        const self = books.account(id)
        if (self.state === "Closed" && self.parent !== undefined)
          books.put(Accounts.takeFromChild(books.account(self.parent.id), self, self.parent.reserve))
        return operations.close(books, id)
      },
    },
  },
  {
    name: "close that drops the child's use",
    law: "I8 refund",
    world: small,
    wrong: {
      close: (books, id) => {
        const self = books.account(id)
        const closed = operations.close(books, id)
        if (Result.isSuccess(closed) && self.state !== "Closed" && self.parent !== undefined)
          changeFund(books, self.parent.id, "explore", ({ used }) => ({ used: subtract(used, Accounts.used(self)) }))
        return closed
      },
    },
  },
  {
    name: "close that returns what was used",
    law: "I9 monotone",
    world: small,
    wrong: {
      close: (books, id) => {
        const self = books.account(id)
        const closed = operations.close(books, id)
        if (Result.isSuccess(closed) && self.state !== "Closed" && self.parent !== undefined)
          changeFund(books, self.parent.id, "explore", ({ allocated }) => ({
            allocated: add(allocated, Accounts.used(self)),
          }))
        return closed
      },
    },
  },
  {
    name: "close that forgets the child's debt",
    law: "I4 ledger covers bill",
    world: small,
    wrong: {
      close: (books, id) => {
        const { parent, state } = books.account(id)
        const closed = operations.close(books, id)
        if (Result.isFailure(closed) || state === "Closed" || parent === undefined) return closed
        books.put({ ...books.account(parent.id), debt: zero })
        return closed
      },
    },
  },
  {
    name: "close that a freeze puts off for ever",
    law: "Progress",
    world: small,
    wrong: {
      close: (books, id) =>
        books.account(id).state === "Draining"
          ? books.refused("close", id, id, { _tag: "NotQuiescent", pendingHolds: 0, openChildren: 0 })
          : operations.close(books, id),
    },
  },
  {
    name: "topUp that does not debit the parent",
    law: "I2 links",
    world: small,
    wrong: {
      topUp: (books, child, wanted) => {
        const parent = books.account(books.account(child).parent!.id)
        const answer = operations.topUp(books, child, wanted)
        books.put(parent)
        return answer
      },
    },
  },
  {
    name: "topUp under a freeze",
    law: "I12 freeze",
    world: small,
    wrong: {
      topUp: (books, child, wanted) =>
        disguised(
          books,
          child,
          (self) => ({ ...self, state: "Open" }),
          () => operations.topUp(books, child, wanted),
        ),
    },
  },
  {
    name: "reclaim of held amounts",
    law: "I1 local conservation",
    world: small,
    wrong: {
      reclaim: (books, child, wanted) =>
        disguised(
          books,
          child,
          (self) => withFund(self, "explore", () => ({ held: zero })),
          () => operations.reclaim(books, child, wanted),
        ),
    },
  },
  {
    name: "reclaim that keeps what it took",
    law: "I2 links",
    world: small,
    wrong: {
      reclaim: (books, child, wanted) => {
        const parent = books.account(books.account(child).parent!.id)
        const answer = operations.reclaim(books, child, wanted)
        books.put(parent)
        return answer
      },
    },
  },
]
