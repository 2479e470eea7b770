/**
 * Looks at the books after every single entry, from inside the callback that records it, and keeps a count of its own
 * that is made of nothing but the entries.
 */
import { free } from "../../src/budget/Account.ts"
import { Budget } from "../../src/index.ts"
import { larger, none, type Overshoot, overshoot, type Provider } from "./Provider.ts"

type Sums = { [D in Budget.Dimension]?: number }

export class Watch {
  readonly complaints: Array<string> = []
  most: Overshoot = none
  entries = 0
  readonly #cap: Budget.Grant
  readonly #some: ReadonlyArray<Budget.Dimension>
  readonly #provider: Provider
  readonly #thorough: boolean
  readonly #open = new Set<string>()
  readonly #holds = new Map<string, "pending" | "resolved">()
  readonly #used: Sums = {}
  readonly #held: Sums = {}
  readonly #seen = new Map<string, Budget.Account>()
  readonly #allUsed = [0, 0, 0]
  readonly #allHeld = [0, 0, 0]
  readonly #allOwed = [0, 0, 0]
  readonly #spent: Sums = {}
  #frozen = false
  ledger: Budget.Ledger | undefined

  constructor(cap: Budget.Grant, provider: Provider, thorough: boolean) {
    this.#cap = cap
    this.#some = Budget.dimensions.filter((d) => cap[d] !== undefined)
    this.#provider = provider
    this.#thorough = thorough
  }

  readonly record = (entry: Budget.Entry): void => {
    this.entries++
    this.#follow(entry)
    const { ledger } = this
    if (ledger === undefined) return
    // Once the root is closed there is no account left to look at.
    if (this.#open.size > 0) this.#look(ledger, entry._tag)
    if (this.#thorough) this.complaints.push(...Budget.violations(ledger).map((one) => `at ${entry._tag}: ${one}`))
  }

  /** Keeps count by what the entries say. */
  #follow(entry: Budget.Entry): void {
    switch (entry._tag) {
      case "Opened":
        this.#open.add(entry.account)
        break
      case "Carved":
        if (this.#frozen) this.complaints.push(`${entry.account} carved after the freeze`)
        this.#open.add(entry.account)
        this.#add(this.#used, entry.charge, 1)
        break
      case "Closed": {
        if (!this.#open.delete(entry.account)) this.complaints.push(`${entry.account} closed twice`)
        const before = this.#seen.get(entry.account)
        if (before !== undefined) this.#count(before, -1)
        break
      }
      case "Held":
        if (this.#frozen) this.complaints.push(`${entry.hold} held after the freeze`)
        this.#holds.set(`${entry.account} ${entry.hold}`, "pending")
        this.#add(this.#held, entry.amounts, 1)
        break
      case "Settled":
      case "Voided":
      case "Assumed": {
        const id = `${entry.account} ${entry.hold}`
        if (this.#holds.get(id) !== "pending") this.complaints.push(`${id} ${entry._tag} although not pending`)
        this.#holds.set(id, "resolved")
        this.#add(this.#held, entry.held, -1)
        this.#add(this.#used, entry._tag === "Settled" ? entry.actual : entry._tag === "Assumed" ? entry.held : {}, 1)
        break
      }
      case "Served":
        if (this.ledger?.account(entry.parent).state !== "Open")
          this.complaints.push(`${entry.account} served by ${entry.parent}, which is not open`)
        break
      case "Frozen":
        this.#frozen = true
        break
      default:
    }
  }

  #add(sums: Sums, amounts: Budget.Grant, times: 1 | -1): void {
    for (const d of this.#some) {
      const amount = amounts[d]
      if (amount !== undefined) sums[d] = (sums[d] ?? 0) + times * amount
    }
  }

  /** What every open account uses, holds and owes together: never more than the caps, and what the entries say. */
  #look(ledger: Budget.Ledger, after: string): void {
    for (const id of this.#open) {
      const account = ledger.account(id)
      const before = this.#seen.get(id)
      if (account === before) continue
      if (before !== undefined) this.#count(before, -1)
      this.#count(account, 1)
      this.#seen.set(id, account)
      this.#belowNothing(account, after)
    }
    for (const [index, d] of this.#some.entries()) {
      const [used, held] = [this.#allUsed[index]!, this.#allHeld[index]!]
      if (used !== (this.#used[d] ?? 0))
        this.complaints.push(`after ${after}: ${used} ${d} used, the entries say ${this.#used[d] ?? 0}`)
      if (held !== (this.#held[d] ?? 0))
        this.complaints.push(`after ${after}: ${held} ${d} held, the entries say ${this.#held[d] ?? 0}`)
      this.#spent[d] = used + held + this.#allOwed[index]!
    }
    this.#note(overshoot(this.#cap, this.#spent))
    this.#note(overshoot(this.#cap, this.#provider.billed))
  }

  #note(over: Overshoot): void {
    if (over.amount > 0) this.most = larger(this.most, over)
  }

  /** Records are replaced, never changed: one that was counted is taken out again when there is a new one. */
  #count({ funds, debt }: Budget.Account, times: 1 | -1): void {
    const { explore, retry, verify, output } = funds
    for (let index = 0; index < this.#some.length; index++) {
      const d = this.#some[index]!
      this.#allUsed[index]! += times * (explore.used[d] + retry.used[d] + verify.used[d] + output.used[d])
      this.#allHeld[index]! += times * (explore.held[d] + retry.held[d] + verify.held[d] + output.held[d])
      this.#allOwed[index]! += times * debt[d]
    }
  }

  #belowNothing({ id, funds }: Budget.Account, after: string): void {
    const { explore, retry, verify, output } = funds
    for (const d of this.#some) {
      if (free(explore, d) < 0 || free(retry, d) < 0 || free(verify, d) < 0 || free(output, d) < 0)
        this.complaints.push(`after ${after}: ${id} has less than nothing of ${d}`)
    }
  }
}
