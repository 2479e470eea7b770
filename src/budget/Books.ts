/**
 * Where the accounts of a tree are kept: a mutable map of immutable records, and the walk over it. It decides nothing.
 */
import * as Result from "effect/Result"
import type { Account } from "./Account.ts"
import type { Reserve } from "./Reserve.ts"
import { add, type Amounts, dimensions, invalidAmount, maximum, subtract, zero } from "./Dimension.ts"
import type { Entry } from "./Entry.ts"
import type { InvalidAmount, Refusal } from "./Refusal.ts"

/**
 * Names a hold: the account it was placed on and the id its maker gave it.
 *
 * @category holds
 * @since 0.1.0
 */
export interface HoldRef {
  readonly account: string
  readonly id: string
}

/**
 * An amount set aside for one call in flight. It leaves `Pending` exactly once.
 *
 * @category holds
 * @since 0.1.0
 */
export interface Hold extends HoldRef {
  readonly reserve: Reserve
  readonly amounts: Amounts
  readonly state: "Pending" | "Settled" | "Voided" | "Assumed"
}

/** A refusal as an operation answers it. */
export const refuse = (reason: Refusal): Result.Result<never, Refusal> => Result.fail(reason)

/** The refusal of an account that does not take the operation in its state. */
export const notOpen = (self: Account): Refusal => ({
  _tag: "NotOpen",
  account: self.path,
  state: self.state.toLowerCase(),
  cause: self.cause,
})

export class Books {
  readonly record: (entry: Entry) => void
  readonly nowMillis: () => number
  /** Accounts whose debt nothing has covered yet. */
  readonly debtors = new Set<string>()
  /** What the whole tree has used, owes and holds: no sum that an account ever keeps of these is larger. */
  #counted = zero
  readonly #accounts = new Map<string, Account>()
  readonly #children = new Map<string, Set<string>>()
  readonly #holds = new Map<string, Map<string, Hold>>()

  constructor(options: { readonly record: (entry: Entry) => void; readonly nowMillis: () => number }) {
    this.record = options.record
    this.nowMillis = options.nowMillis
  }

  has(id: string): boolean {
    return this.#accounts.has(id)
  }

  /** The account with that id; an unknown id is a mistake of the host, not a refusal. */
  account(id: string): Account {
    const account = this.#accounts.get(id)
    if (account === undefined) throw new Error(`no account has the id ${id}`)
    return account
  }

  /** Every account ever opened, parents before their children. */
  get accounts(): ReadonlyArray<Account> {
    return [...this.#accounts.values()]
  }

  /** The open children of an account. */
  childrenOf(id: string): ReadonlyArray<Account> {
    return [...(this.#children.get(id) ?? [])].map((child) => this.account(child))
  }

  /** The account and everything above it, up to the root. */
  pathOf(id: string): ReadonlyArray<Account> {
    const path = [this.account(id)]
    for (let above = path[0]!.parent; above !== undefined; above = path.at(-1)!.parent)
      path.push(this.account(above.id))
    return path
  }

  /** Visits an account and its open subtree, top down. */
  walk(id: string, visit: (account: Account) => void): void {
    visit(this.account(id))
    for (const child of this.#children.get(id) ?? []) this.walk(child, visit)
  }

  /** Why `more` in place of `less` would bring the counts of the tree past what is exact; only where there is no cap. */
  uncountable(field: string, more: Amounts, less: Amounts = zero): InvalidAmount | undefined {
    const d = dimensions.find((d) => this.#counted[d] - less[d] + more[d] > maximum)
    return d === undefined
      ? undefined
      : invalidAmount(
          `${field}.${d}`,
          more[d],
          `keep the sum of the run, ${this.#counted[d]} so far, within ${maximum}`,
        )
  }

  /** Counts `more` in place of `less`. */
  count(more: Amounts, less: Amounts = zero): void {
    this.#counted = add(subtract(this.#counted, less), more)
  }

  hold(ref: HoldRef): Hold | undefined {
    return this.#holds.get(ref.account)?.get(ref.id)
  }

  holdsOf(id: string): ReadonlyArray<Hold> {
    return [...(this.#holds.get(id)?.values() ?? [])]
  }

  /** Replaces the record of an account. */
  put(account: Account): void {
    this.#accounts.set(account.id, account)
  }

  putHold(hold: Hold): void {
    this.#holds.get(hold.account)!.set(hold.id, hold)
  }

  /** Takes in a new account. */
  adopt(account: Account): void {
    this.put(account)
    this.#children.set(account.id, new Set())
    this.#holds.set(account.id, new Map())
    if (account.parent !== undefined) this.#children.get(account.parent.id)!.add(account.id)
  }

  /** Leaves a tombstone: the record stays, its holds and its place among the open children go. */
  bury(account: Account): void {
    this.put(account)
    this.#holds.set(account.id, new Map())
    if (account.parent !== undefined) this.#children.get(account.parent.id)!.delete(account.id)
  }

  /** Records a refusal and answers with it. */
  refused(operation: string, account: string, id: string, reason: Refusal): Result.Result<never, Refusal> {
    this.record({ _tag: "Refused", account, operation, id, reason })
    return refuse(reason)
  }
}
