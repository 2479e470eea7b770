/** What the wrong operations do to the books: hide something from the shipped ones, or change it after them. */
import type { Account, Fund } from "../../src/budget/Account.ts"
import type { Books, Waiting } from "../../src/budget/Books.ts"
import { add, amounts, type Amounts, type Grant, map, subtract } from "../../src/budget/Dimension.ts"
import type { Reserve } from "../../src/budget/Reserve.ts"

/** An account with a fund changed. */
export const withFund = (self: Account, reserve: Reserve, change: (fund: Fund) => Partial<Fund>): Account => ({
  ...self,
  funds: { ...self.funds, [reserve]: { ...self.funds[reserve], ...change(self.funds[reserve]) } },
})

/** Changes a fund in the books. */
export const changeFund = (books: Books, id: string, reserve: Reserve, change: (fund: Fund) => Partial<Fund>): void =>
  books.put(withFund(books.account(id), reserve, change))

/**
 * Runs `operation` on books in which an account looks different, and puts back what was hidden: of numbers, the
 * difference.
 */
export const disguised = <A>(
  books: Books,
  id: string,
  disguise: (account: Account) => Account,
  operation: () => A,
): A => {
  const before = books.account(id)
  const shown = disguise(before)
  books.put(shown)
  const answer = operation()
  const after = books.account(id)
  books.put(after === shown ? before : restored(before, shown, after))
  return answer
}

const restored = (before: Account, shown: Account, after: Account): Account => {
  const fund = (reserve: Reserve): Fund => {
    const [was, looked, is] = [before.funds[reserve], shown.funds[reserve], after.funds[reserve]]
    const part = (name: keyof Fund): Amounts => add(is[name], subtract(was[name], looked[name]))
    return { allocated: part("allocated"), held: part("held"), carved: part("carved"), used: part("used") }
  }
  return {
    ...after,
    state: after.state === shown.state ? before.state : after.state,
    pendingHolds: after.pendingHolds + before.pendingHolds - shown.pendingHolds,
    openChildren: after.openChildren + before.openChildren - shown.openChildren,
    funds: { explore: fund("explore"), retry: fund("retry"), verify: fund("verify"), output: fund("output") },
  }
}

/** Runs `operation` with nobody in any line of these accounts, and lets them stand there again afterwards. */
export const withoutLine = <A>(books: Books, parent: string, operation: () => A): A => {
  const waiting: Array<Waiting> = []
  for (let head = books.headOfLine(parent); head !== undefined; head = books.headOfLine(parent)) {
    waiting.push(head)
    books.leaveLine(head.child)
  }
  const answer = operation()
  for (const one of waiting) books.joinLine(parent, one)
  return answer
}

/** Runs `operation` as if nobody owed anything. */
export const withoutDebtors = <A>(books: Books, operation: () => A): A => {
  const debtors = [...books.debtors]
  books.debtors.clear()
  const answer = operation()
  for (const id of debtors) books.debtors.add(id)
  return answer
}

/** By how much `wanted` is above `there`, in each dimension. */
export const missing = (wanted: Grant, there: Amounts): Amounts =>
  map((d) => Math.max(0, amounts(wanted)[d] - there[d]))

export const freeOf = ({ allocated, held, carved, used }: Fund): Amounts =>
  subtract(allocated, add(held, add(carved, used)))
