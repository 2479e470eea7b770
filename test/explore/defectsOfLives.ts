/** Wrong moves between reserves, stops and waits. */
import * as Result from "effect/Result"
import * as Accounts from "../../src/budget/Account.ts"
import { add, amounts, fits, onlyCapped } from "../../src/budget/Dimension.ts"
import { operations } from "../../src/budget/Operations.ts"
import { changeFund, freeOf, withoutDebtors, withoutLine } from "./books.ts"
import { lines, small, threeNodes } from "./configurations.ts"
import type { Defect } from "./defects.ts"

const stopping: ReadonlyArray<Defect> = [
  {
    name: "move downward",
    law: "I10 senior reserve",
    world: small,
    wrong: {
      move: (books, id, moving) => {
        const self = books.account(id)
        const isThere = fits(amounts(moving.wanted), freeOf(self.funds[moving.from]))
        if (moving.to !== "explore" || self.state !== "Open" || !isThere) return operations.move(books, id, moving)
        const moved = Accounts.move(self, moving.from, moving.to, amounts(moving.wanted))
        books.put(moved)
        return Result.succeed(moved)
      },
    },
  },
  {
    name: "freeze that leaves the subtree open",
    law: "I12 freeze",
    world: small,
    wrong: {
      freeze: (books, id, cause, options) => {
        const below = books.childrenOf(id)
        operations.freeze(books, id, cause, options)
        for (const child of below) books.put(child)
      },
    },
  },
  {
    name: "freeze that a later, milder one undoes",
    law: "I12 freeze",
    world: small,
    wrong: {
      freeze: (books, id, cause, options) => {
        operations.freeze(books, id, cause, options)
        if (options?.closingWork === true) books.put({ ...books.account(id), state: "Frozen" })
      },
    },
  },
  {
    name: "pause that leaves the subtree open",
    law: "I12 freeze",
    world: small,
    wrong: {
      pause: (books, id, cause) => {
        const below = books.childrenOf(id)
        const paused = operations.pause(books, id, cause)
        if (Result.isSuccess(paused)) for (const child of below) books.put(child)
        return paused
      },
    },
  },
  {
    name: "resume that opens what was frozen",
    law: "I12 freeze",
    world: small,
    wrong: {
      resume: (books, id) => {
        const resumed = operations.resume(books, id)
        if (Result.isSuccess(resumed)) books.walk(id, (account) => books.put({ ...account, state: "Open" }))
        return resumed
      },
    },
  },
]

const waiting: ReadonlyArray<Defect> = [
  {
    name: "wait that keeps what it gave back",
    law: "I2 links",
    world: small,
    wrong: {
      wait: (books, id, wanted, onEnd) => {
        const before = books.account(id)
        operations.wait(books, id, wanted, onEnd)
        if (books.account(id) !== before) books.put(before)
      },
    },
  },
  {
    name: "wait whose gift does not pay debt first",
    law: "I6 debt",
    world: threeNodes,
    wrong: {
      wait: (books, id, wanted, onEnd) => withoutDebtors(books, () => operations.wait(books, id, wanted, onEnd)),
    },
  },
  {
    name: "wait that is served before its turn",
    law: "Line",
    world: lines,
    wrong: {
      wait: (books, id, wanted, onEnd) => {
        const { parent } = books.account(id)
        if (parent === undefined || books.isWaiting(id)) return operations.wait(books, id, wanted, onEnd)
        return withoutLine(books, parent.id, () => operations.wait(books, id, wanted, onEnd))
      },
    },
  },
  {
    name: "wait that is served beyond what is there",
    law: "I1 local conservation",
    world: lines,
    wrong: {
      wait: (books, id, wanted, onEnd) => {
        operations.wait(books, id, wanted, onEnd)
        const { caps, parent } = books.account(id)
        if (parent === undefined || books.leaveLine(id) === undefined) return
        const vector = onlyCapped(amounts(wanted.need), caps)
        changeFund(books, id, "explore", ({ allocated }) => ({ allocated: add(allocated, vector) }))
        changeFund(books, parent.id, "explore", ({ carved }) => ({ carved: add(carved, vector) }))
        onEnd(Result.succeed(vector))
      },
    },
  },
  {
    name: "wait that is served with less than its least",
    law: "Line",
    world: lines,
    wrong: {
      wait: (books, id, wanted, onEnd) => operations.wait(books, id, { ...wanted, least: {} }, onEnd),
    },
  },
  {
    name: "leave that does not serve the next",
    law: "Line",
    world: lines,
    wrong: {
      leave: (books, id, reason) => books.leaveLine(id)?.onEnd(Result.fail(reason)),
    },
  },
]

export const lives: ReadonlyArray<Defect> = [...stopping, ...waiting]
