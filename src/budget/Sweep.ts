/**
 * Ending what nobody looks after any more.
 */
import { close } from "./Children.ts"
import type { Books } from "./Books.ts"
import { release } from "./Holds.ts"
import { freeze } from "./Life.ts"

/**
 * Freezes an account and everything below it, books each pending hold whole (its outcome is unknown), and closes bottom
 * up. An account that is closed already is left alone.
 */
export const sweep = (books: Books, id: string, cause: string): void => {
  const self = books.account(id)
  if (self.state === "Closed") return
  if (self.pendingHolds > 0 || self.openChildren > 0) freeze(books, id, cause)
  for (const child of books.childrenOf(id)) sweep(books, child.id, cause)
  for (const hold of books.holdsOf(id)) {
    if (hold.state === "Pending") release(books, { account: id, id: hold.id }, "Assumed")
  }
  close(books, id)
}
