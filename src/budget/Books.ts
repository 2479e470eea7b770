/**
 * Where the accounts of a tree are kept: a mutable map of immutable records, and the walk over it. It decides nothing.
 *
 * It also remembers what every id was used for, so that an operation delivered twice is applied once.
 */
import * as Result from "effect/Result"
import type { Account } from "./Account.ts"
import { digest } from "./Digest.ts"
import { type Amounts, type Dimension, dimensions, invalidAmount, maximum, zero } from "./Dimension.ts"
import type { Entry } from "./Entry.ts"
import type { InvalidAmount, Refusal } from "./Refusal.ts"
import type { Reserve } from "./Reserve.ts"

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
 * An amount set aside for one call in flight. It leaves `Pending` exactly once; an assumed one may be corrected once.
 *
 * @category holds
 * @since 0.1.0
 */
export interface Hold extends HoldRef {
  readonly reserve: Reserve
  readonly amounts: Amounts
  readonly state: "Pending" | "Settled" | "Voided" | "Assumed" | "Adjusted"
  /** The part of `amounts` that was added after it was placed. */
  readonly extended?: Amounts
  /** True where nobody knew the price: its money is not held and not known. */
  readonly unpriced?: true
  /** The bill it was settled with or adjusted to, and the answer to that. */
  readonly resolution?: Resolution
}

/** What became of a settled hold. */
export interface Settlement {
  /** What the bill exceeded the hold by. */
  readonly excess: Amounts
  /** True when the hold's own reserve paid the whole bill. */
  readonly covered: boolean
  /** The dimensions that were covered from elsewhere, or not at all. */
  readonly short: ReadonlyArray<Dimension>
}

/** A child that stands in line at its parent. */
export interface Waiting {
  readonly child: string
  readonly reserve: Reserve
  readonly need: Amounts
  readonly least: Amounts
  readonly onEnd: (ended: Result.Result<Amounts, Refusal>) => void
}

/** The bill a hold was settled with, and the answer. */
export interface Resolution {
  readonly bill: Amounts
  readonly settlement: Settlement
}

/** Structural caps of a tree. */
export interface Limits {
  readonly maxDepth: number
  readonly maxOpenChildren: number
}

/** Deep chains are hard to read in a trace and leave nothing at the bottom; see the module docs of `Reserve`. */
export const defaultLimits: Limits = { maxDepth: 16, maxOpenChildren: 1024 }

/** A refusal as an operation answers it. */
export const refuse = (reason: Refusal): Result.Result<never, Refusal> => Result.fail(reason)

/** The refusal of an account that does not take the operation in its state. */
export const notOpen = (self: Account): Refusal => ({
  _tag: "NotOpen",
  account: self.path,
  state: self.state.toLowerCase(),
  cause: self.cause,
})

/** What an id was used for, and the answer. */
interface Answered {
  readonly operation: string
  readonly content: string
  readonly answer: Result.Result<unknown, Refusal>
}

/** An operation that came under an id of its caller. */
export interface Request {
  readonly operation: string
  readonly account: string
  /** Without one the operation is always a new one. */
  readonly id: string | undefined
  /** The digest of what was asked; empty without an id. */
  readonly content: string
}

/** The id of an operation as its entry shows it; nothing without one. */
export const underOf = ({
  id,
  content,
}: Request): { readonly under?: { readonly id: string; readonly content: string } } =>
  id === undefined ? {} : { under: { id, content } }

const none: ReadonlyArray<Hold> = []

/** Holds, accounts and other operations have ids of their own: a hold may be called like a child. */
const keyOf = (operation: string, id: string): string =>
  operation === "hold" || operation === "carve" ? `${operation} ${id}` : `other ${id}`

export class Books {
  readonly record: (entry: Entry) => void
  readonly nowMillis: () => number
  readonly limits: Limits
  /** What stands for the content of an operation under its id. */
  readonly digest: (content: unknown) => string
  /** Accounts whose debt nothing has covered yet. */
  readonly debtors = new Set<string>()
  readonly #accounts = new Map<string, Account>()
  readonly #children = new Map<string, Set<string>>()
  readonly #holds = new Map<string, Map<string, Hold>>()
  readonly #answers = new Map<string, Map<string, Answered>>()
  /** The digest of what each account was carved with. */
  readonly #carvings = new Map<string, string>()
  /** Who waits at which account, first come first. */
  readonly #lines = new Map<string, Array<Waiting>>()
  /** What all accounts use and hold together: in capped dimensions at most the grant, in the others whatever was billed. */
  readonly #counted: { -readonly [D in Dimension]: number } = { ...zero }

  constructor(options: {
    readonly record: (entry: Entry) => void
    readonly nowMillis: () => number
    readonly limits?: Limits
    readonly digest?: (content: unknown) => string
  }) {
    this.record = options.record
    this.nowMillis = options.nowMillis
    this.limits = options.limits ?? defaultLimits
    this.digest = options.digest ?? digest
  }

  /** A copy that shares every record and goes its own way from here. */
  fork(record: (entry: Entry) => void, nowMillis: () => number = this.nowMillis): Books {
    const copy = new Books({ record, nowMillis, limits: this.limits })
    for (const [id, account] of this.#accounts) copy.#accounts.set(id, account)
    for (const [id, children] of this.#children) copy.#children.set(id, new Set(children))
    for (const [id, holds] of this.#holds) copy.#holds.set(id, new Map(holds))
    for (const [id, answers] of this.#answers) copy.#answers.set(id, new Map(answers))
    for (const [id, carving] of this.#carvings) copy.#carvings.set(id, carving)
    for (const [id, line] of this.#lines) copy.#lines.set(id, line)
    for (const id of this.debtors) copy.debtors.add(id)
    copy.count(this.#counted)
    return copy
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
    const counted = this.#counted
    for (const d of dimensions) {
      if (counted[d] - less[d] + more[d] <= maximum) continue
      const remedy = `keep the sum of the run, ${counted[d]} so far, within ${maximum}`
      return invalidAmount(`${field}.${d}`, more[d], remedy)
    }
    return undefined
  }

  /** Counts `more` in place of `less`. */
  count(more: Amounts, less: Amounts = zero): void {
    const counted = this.#counted
    counted.steps += more.steps - less.steps
    counted.ticks += more.ticks - less.ticks
    counted.inputTokens += more.inputTokens - less.inputTokens
    counted.outputTokens += more.outputTokens - less.outputTokens
    counted.money += more.money - less.money
    counted.toolCalls += more.toolCalls - less.toolCalls
  }

  hold(ref: HoldRef): Hold | undefined {
    return this.#holds.get(ref.account)?.get(ref.id)
  }

  holdsOf(id: string): ReadonlyArray<Hold> {
    const holds = this.#holds.get(id)
    return holds === undefined ? none : [...holds.values()]
  }

  /** Replaces the record of an account. */
  put(account: Account): void {
    this.#accounts.set(account.id, account)
  }

  putHold(hold: Hold): void {
    const known = this.#holds.get(hold.account)
    if (known === undefined) this.#holds.set(hold.account, new Map([[hold.id, hold]]))
    else known.set(hold.id, hold)
  }

  /** Takes in a new account; `carving` is the digest of what it was carved with. */
  adopt(account: Account, carving?: string): void {
    this.put(account)
    if (carving !== undefined) this.#carvings.set(account.id, carving)
    if (account.parent === undefined) return
    const siblings = this.#children.get(account.parent.id)
    if (siblings === undefined) this.#children.set(account.parent.id, new Set([account.id]))
    else siblings.add(account.id)
  }

  /**
   * Leaves a tombstone: the record stays, its place among the open children goes, and so do its holds, but for assumed
   * ones, whose bill may still become known or come once more.
   */
  bury(account: Account): void {
    this.put(account)
    const kept = this.holdsOf(account.id).filter((hold) => hold.state === "Assumed" || hold.state === "Adjusted")
    this.#holds.delete(account.id)
    for (const hold of kept) this.putHold(hold)
    this.#children.delete(account.id)
    this.#answers.delete(account.id)
    if (account.parent !== undefined) this.#children.get(account.parent.id)!.delete(account.id)
  }

  get hasLines(): boolean {
    return this.#lines.size > 0
  }

  /** Whether a child stands in line at its parent. */
  isWaiting(id: string): boolean {
    if (this.#lines.size === 0) return false
    const parent = this.account(id).parent?.id ?? ""
    return this.#lines.get(parent)?.some((one) => one.child === id) === true
  }

  headOfLine(parent: string): Waiting | undefined {
    return this.#lines.get(parent)?.[0]
  }

  joinLine(parent: string, waiting: Waiting): void {
    this.#lines.set(parent, [...(this.#lines.get(parent) ?? []), waiting])
  }

  leaveLine(child: string): Waiting | undefined {
    const parent = this.account(child).parent?.id ?? ""
    const line = this.#lines.get(parent) ?? []
    const waiting = line.find((one) => one.child === child)
    const rest = line.filter((one) => one.child !== child)
    if (rest.length === 0) this.#lines.delete(parent)
    else this.#lines.set(parent, rest)
    return waiting
  }

  /** Everyone who stands in a line, those of one line in its order. */
  get waiting(): ReadonlyArray<Waiting> {
    return [...this.#lines.values()].flat()
  }

  /** An operation as it came from the caller. */
  request(operation: string, account: string, id: string | undefined, content: unknown): Request {
    return { operation, account, id, content: id === undefined ? "" : this.digest(content) }
  }

  /** Records a refusal and answers with it; under the id of `request`, if it is a new one, it stays refused. */
  refused(
    operation: string,
    account: string,
    id: string,
    reason: Refusal,
    request?: Request,
  ): Result.Result<never, Refusal> {
    const answer = refuse(reason)
    const under = request !== undefined && this.remember(request, answer) ? underOf(request) : {}
    this.record({ _tag: "Refused", account, operation, id, reason, ...under })
    return answer
  }

  /**
   * Applies an operation once: under an id that was used for the same, the first answer is given again and nothing
   * happens; under one that was used for something else, it is refused. A refused id stays refused.
   */
  once<A>(request: Request, apply: () => Result.Result<A, Refusal>): Result.Result<A, Refusal> {
    const { account, id } = request
    if (id === undefined) return apply()
    const known = this.#answers.get(account)?.get(keyOf(request.operation, id))
    if (known === undefined) {
      const answer = apply()
      if (Result.isSuccess(answer)) this.remember(request, answer)
      return answer
    }
    return known.operation === request.operation && known.content === request.content
      ? (known.answer as Result.Result<A, Refusal>)
      : this.refused(request.operation, account, id, { _tag: "IdConflict", id })
  }

  /** Whether an id of an account was answered; for holds and accounts only refusals are remembered so. */
  hasAnswered(operation: string, account: string, id: string): boolean {
    return this.#answers.get(account)?.has(keyOf(operation, id)) === true
  }

  /** Whether an account was carved with that request. */
  wasCarvedBy({ account, content, id = "" }: Request): boolean {
    return this.#accounts.get(id)?.parent?.id === account && this.#carvings.get(id) === content
  }

  /** Remembers an answer for as long as its account lives; false where the id is none, or was used before. */
  remember(request: Request, answer: Result.Result<unknown, Refusal>): boolean {
    const { account, content, id, operation } = request
    // A refusal of what came under the id of a hold or an account would hide what that id really was used for.
    if (id === undefined || this.hasAnswered(operation, account, id) || this.#isTaken(request)) return false
    const answers = this.#answers.get(account) ?? new Map<string, Answered>()
    this.#answers.set(account, answers)
    answers.set(keyOf(operation, id), { operation, content, answer })
    return true
  }

  #isTaken({ account, id = "", operation }: Request): boolean {
    return operation === "hold" ? this.hold({ account, id }) !== undefined : operation === "carve" && this.has(id)
  }
}
