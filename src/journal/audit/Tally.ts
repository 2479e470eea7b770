/**
 * The books of a run, added up from its entries by plain arithmetic, without the rules of the budget: what each account
 * was granted, what it used itself and through children, and what it owes. It takes whatever entries there are, so it
 * also tells about a log that is damaged or not finished.
 */
import {
  add,
  amounts,
  type Amounts,
  capped,
  type Capped,
  dimensions,
  type Grant,
  map,
  min,
  subtract,
  zero,
} from "../../budget/Dimension.ts"
import type { Entry } from "../../budget/Entry.ts"

/** One account, as its entries add up. */
export interface Sum {
  readonly account: string
  readonly path: string
  /** The account above; `undefined` for a root. */
  readonly parent: string | undefined
  readonly depth: number
  readonly capped: Capped
  /** In dimensions that are capped; 0 in the others. */
  readonly granted: Amounts
  readonly own: Amounts
  readonly children: Amounts
  readonly debt: Amounts
  readonly overran: boolean
  readonly isClosed: boolean
}

type Kept = { -readonly [K in keyof Sum]: Sum[K] }

type EntryOf<Tag extends Entry["_tag"]> = Extract<Entry, { readonly _tag: Tag }>

/** Adds up entries as they come. */
export class Tally {
  readonly #sums = new Map<string, Kept>()
  readonly #below = new Map<string, Set<string>>()

  /** Every account so far, in the order of their opening. */
  get sums(): ReadonlyArray<Sum> {
    return [...this.#sums.values()]
  }

  of(account: string): Sum | undefined {
    return this.#sums.get(account)
  }

  /** The accounts directly below one that are not closed. */
  openBelow(account: string): ReadonlyArray<string> {
    return [...(this.#below.get(account) ?? [])].filter((child) => this.#sums.get(child)?.isClosed === false)
  }

  /** What is left of the grant of an account, once all open children have closed. */
  static left({ capped, granted, own, children }: Sum): Amounts {
    return map((d) => (capped[d] ? granted[d] - own[d] - children[d] : 0))
  }

  take(entry: Entry): void {
    switch (entry._tag) {
      case "Opened":
        return this.#open(entry, undefined)
      case "Carved":
        this.#open(entry, entry.parent)
        return this.#use(entry.parent, entry.charge)
      case "Settled":
        return this.#use(entry.account, entry.actual)
      case "Assumed":
        return this.#use(entry.account, entry.held)
      case "Adjusted":
        return this.#adjust(entry)
      case "Overran":
        return this.#overrun(entry)
      case "DebtPaid":
        return this.#payDebt(entry)
      case "ToppedUp":
      case "Served":
        return this.#grant(entry.account, amounts(entry.amounts))
      case "Reclaimed":
        return this.#grant(entry.account, subtract(zero, amounts(entry.amounts)))
      case "Waited":
        return this.#grant(entry.account, subtract(zero, amounts(entry.returned)))
      case "Amended":
        return this.#grant(entry.account, subtract(amounts(entry.to), amounts(entry.from)))
      case "Closed":
        return this.#close(entry.account)
      default:
        return
    }
  }

  #open({ account, path, grant }: EntryOf<"Opened"> | EntryOf<"Carved">, parent: string | undefined): void {
    const above = parent === undefined ? undefined : this.#sums.get(parent)
    if (parent !== undefined) this.#below.set(parent, (this.#below.get(parent) ?? new Set()).add(account))
    this.#sums.set(account, {
      account,
      path,
      parent,
      depth: above === undefined ? 0 : above.depth + 1,
      capped: capped(grant),
      granted: amounts(grant),
      own: zero,
      children: zero,
      debt: zero,
      overran: false,
      isClosed: false,
    })
  }

  #use(account: string, more: Grant): void {
    const sum = this.#sums.get(account)
    if (sum !== undefined) sum.own = add(sum.own, amounts(more))
  }

  #grant(account: string, more: Amounts): void {
    const sum = this.#sums.get(account)
    if (sum !== undefined) sum.granted = map((d) => sum.granted[d] + (sum.capped[d] ? more[d] : 0))
  }

  /** The bill of an assumed hold: what was too much goes back along the closed path, what was too little was over-run. */
  #adjust({ account, held, actual, landedOn }: EntryOf<"Adjusted">): void {
    const [assumed, bill] = [amounts(held), amounts(actual)]
    const tooMuch = subtract(assumed, min(bill, assumed))
    const tooLittle = subtract(bill, min(bill, assumed))
    for (const [level, sum] of this.#pathOf(account).entries()) {
      if (level === 0) sum.own = subtract(sum.own, tooMuch)
      else sum.children = subtract(sum.children, tooMuch)
      if (sum.account === landedOn) break
    }
    this.#use(landedOn, tooLittle)
  }

  /** Part of a bill came from above and made the grants below it larger; what nothing covered is owed, not used. */
  #overrun({ account, covered, debt }: EntryOf<"Overran">): void {
    const sum = this.#sums.get(account)
    if (sum === undefined) return
    const owed = amounts(debt)
    sum.overran = true
    sum.own = subtract(sum.own, owed)
    sum.debt = add(sum.debt, owed)
    this.#takeFromAbove(account, covered)
  }

  #payDebt({ account, paid, covered }: EntryOf<"DebtPaid">): void {
    const sum = this.#sums.get(account)
    if (sum === undefined) return
    sum.own = add(sum.own, amounts(paid))
    sum.debt = subtract(sum.debt, amounts(paid))
    this.#takeFromAbove(account, covered)
  }

  #takeFromAbove(account: string, covered: EntryOf<"Overran">["covered"]): void {
    for (const { account: from, dimension, amount } of covered) {
      for (const below of this.#pathOf(account)) {
        if (below.path === from) break
        this.#grant(below.account, { ...zero, [dimension]: amount })
      }
    }
  }

  #close(account: string): void {
    const sum = this.#sums.get(account)
    if (sum === undefined || sum.isClosed) return
    sum.isClosed = true
    const above = sum.parent === undefined ? undefined : this.#sums.get(sum.parent)
    if (above === undefined) return
    above.children = add(above.children, add(sum.own, sum.children))
    above.debt = add(above.debt, sum.debt)
    above.overran ||= sum.overran
  }

  /** The account and everything above it, up to the root. */
  #pathOf(account: string): ReadonlyArray<Kept> {
    const path: Array<Kept> = []
    for (let id: string | undefined = account; id !== undefined; id = path.at(-1)!.parent) {
      const sum = this.#sums.get(id)
      if (sum === undefined || path.includes(sum)) break
      path.push(sum)
    }
    return path
  }
}

/** Adds up all entries among these events. */
export const tallyOf = (entries: ReadonlyArray<Entry>): Tally => {
  const tally = new Tally()
  for (const entry of entries) tally.take(entry)
  return tally
}

/** How one record of amounts differs from another, in words; `undefined` where they are the same. */
export const difference = (said: Grant, found: Amounts): string | undefined => {
  const other = dimensions.filter((d) => (said[d] ?? 0) !== found[d])
  return other.length === 0 ? undefined : other.map((d) => `${d}: ${said[d] ?? 0} is not ${found[d]}`).join(", ")
}
