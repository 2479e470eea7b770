/**
 * Debt is paid before anything else: whatever becomes free on the path of a debtor goes to its debt first.
 */
import type { Books } from "./Books.ts"
import { payDebt } from "./Cover.ts"
import { isZero, nonZero, subtract } from "./Dimension.ts"

/** Whatever has become free on the path of a debtor pays its debt first. */
export const payDebts = (books: Books): void => {
  for (const id of books.debtors) {
    const before = books.account(id)
    const paid = payDebt(books.pathOf(id))
    if (paid.sources.length === 0) continue
    for (const account of paid.path) books.put(account)
    const after = books.account(id)
    if (isZero(after.debt)) books.debtors.delete(id)
    const amount = nonZero(subtract(before.debt, after.debt))
    books.record({ _tag: "DebtPaid", account: id, paid: amount, covered: paid.sources })
  }
}
