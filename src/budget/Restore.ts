/**
 * A tree from its journal. The operations that the entries name are run again by the same functions that ran them first,
 * and what these write down is compared with what is there: a restore is at the same time an audit of the journal.
 *
 * What follows from another entry (`Overran`, `DebtPaid`, `Served`, the refusal of one who waited in vain) is not run but
 * compared. Time does not pass: no check of a deadline refuses what was accepted once, and windows are taken as recorded,
 * as long as no child outlives its parent.
 *
 * **Not found**: a change of what nothing else in the journal depends on. Refusals change no books and are believed; where
 * a window ends, and what a digest stands for, cannot be recomputed; and an operation that may happen twice in the same
 * way and came without an id (a move, a top-up) may be there twice, until the numbers of a later entry say otherwise.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { Books, defaultLimits, type Hold, type HoldRef, type Limits } from "./Books.ts"
import type { Carving } from "./Carve.ts"
import { dimensions, type Dimension, type Grant } from "./Dimension.ts"
import type { Entry } from "./Entry.ts"
import { calls } from "./Holds.ts"
import { operations } from "./Operations.ts"
import { describe } from "./Refusal.ts"
import type { Plan } from "./Reserve.ts"

/**
 * A journal that cannot have been written by the operations it names. `index` is the place of the entry, from 0, and
 * `field` the first field that differs; empty when it is the whole entry. `journal` and `books` are what the one and the
 * other say, as JSON or in words.
 *
 * @category errors
 * @since 0.1.0
 */
export class RestoreFailure extends Schema.TaggedError<RestoreFailure>()("RestoreFailure", {
  index: Schema.Finite,
  field: Schema.String,
  journal: Schema.String,
  books: Schema.String,
}) {
  override get message(): string {
    const { books, field, index, journal } = this
    return field === ""
      ? `entries[${index}]: the journal says ${journal}, the books say ${books}`
      : `entries[${index}]: ${field} is ${journal} in the journal and ${books} in the books`
  }
}

/** The books as they were, and how far the numbers of ids went, by the path and name they follow. */
export interface Restored {
  readonly books: Books
  readonly root: string
  readonly numbers: ReadonlyMap<string, number>
}

/** Runs a journal again; see `Ledger.restore`. */
export const restore = (
  entries: ReadonlyArray<{ readonly entry: Entry }>,
  live: { readonly record: (entry: Entry) => void; readonly nowMillis: () => number },
): Result.Result<Restored, RestoreFailure> => {
  const first = entries[0]?.entry
  if (first?._tag !== "Opened") return differs(0, { field: "", journal: shown(first), books: "that a root is opened" })
  const replay = new Replay(first.limits ?? defaultLimits)
  const numbers = new Map<string, number>()
  for (let index = 0; index < entries.length; index++) {
    const { entry } = entries[index]!
    const difference = replay.take(entry)
    if (difference !== undefined) return differs(index, difference)
    countIds(numbers, entry)
  }
  const books = replay.books.fork(live.record, live.nowMillis)
  for (const entry of replay.missing) books.record(entry)
  for (const { child } of books.waiting.toReversed()) operations.leave(books, child, gone)
  for (const hold of pendingIn(books)) calls.add(hold)
  return Result.succeed({ books, root: first.account, numbers })
}

/** Who waited went away with the process, as by `leaveLine`. */
const gone = { _tag: "DeadlinePassed", reserve: "explore", leftMillis: 0, neededMillis: 1 } as const

/** Every hold that is pending anywhere in a tree. */
export const pendingIn = (books: Books): ReadonlyArray<Hold> =>
  books.accounts.flatMap(({ id, pendingHolds }) =>
    pendingHolds === 0 ? [] : books.holdsOf(id).filter((hold) => hold.state === "Pending"),
  )

/** Keeps the highest number of those ids that look as if they had been given out by `Ledger.freshId`. */
const countIds = (numbers: Map<string, number>, entry: Entry): void => {
  const count = (account: string, id: string): void => {
    if (!id.startsWith(`${account}/`)) return
    const [, name, number] = /^(.*)-(\d{1,15})$/s.exec(id) ?? []
    if (name !== undefined) numbers.set(name, Math.max(Number(number), numbers.get(name) ?? 0))
  }
  if (entry._tag === "Carved") count(entry.parent, entry.account)
  if (entry._tag === "Held") count(entry.account, entry.hold)
  if (entry._tag === "Refused") count(entry.account, entry.id)
  if ("under" in entry && entry.under !== undefined) count(entry.account, entry.under.id)
}

interface Difference {
  readonly field: string
  readonly journal: string
  readonly books: string
}

const differs = (index: number, difference: Difference): Result.Result<never, RestoreFailure> =>
  Result.fail(new RestoreFailure({ index, ...difference }))

const shown = (value: unknown): string => (value === undefined ? "nothing" : (JSON.stringify(value) ?? typeof value))

/** The first difference between what the journal and what the books have written; a field without a value is none. */
const differenceIn = (journal: unknown, books: unknown, field: string): Difference | undefined => {
  if (journal === books) return undefined
  if (!isObject(journal) || !isObject(books) || Array.isArray(journal) !== Array.isArray(books))
    return { field, journal: shown(journal), books: shown(books) }
  for (const name of new Set([...Object.keys(books), ...Object.keys(journal)])) {
    const difference = differenceIn(journal[name], books[name], field === "" ? name : `${field}.${name}`)
    if (difference !== undefined) return difference
  }
  return undefined
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null

/** Books that are told when it is and what the content of an operation was, and the entries they write. */
class Replay {
  readonly books: Books
  /** What the last operation wrote, and how much of it was found in the journal. */
  #written: Array<Entry> = []
  #found = 0
  #nowMillis = -Infinity
  #content = ""

  constructor(limits: Limits) {
    this.books = new Books({
      record: (entry) => void this.#written.push(entry),
      nowMillis: () => this.#nowMillis,
      limits,
      digest: () => this.#content,
    })
  }

  /** What the last operation wrote beyond the end of the journal. */
  get missing(): ReadonlyArray<Entry> {
    return this.#written.slice(this.#found)
  }

  /** Takes the next entry: it names an operation, or what was written by the last one. */
  take(entry: Entry): Difference | undefined {
    if (this.#found === this.#written.length) {
      ;[this.#written, this.#found] = [[], 0]
      const reason = this.#rerun(entry)
      if (reason !== undefined) return { field: "", journal: shown(entry), books: reason }
    }
    const written = this.#written[this.#found++]
    if (written?._tag !== entry._tag) return { field: "", journal: shown(entry), books: sentence(written) }
    return differenceIn(entry, written, "")
  }

  /** Runs the operation of an entry; answers with why that cannot be done at all. */
  #rerun(entry: Entry): string | undefined {
    this.#nowMillis = "atMillis" in entry && entry.atMillis !== undefined ? entry.atMillis : -Infinity
    this.#content = entry._tag === "Carved" ? entry.content : ("under" in entry && entry.under?.content) || ""
    const account = entry._tag === "Carved" ? entry.parent : entry.account
    const isKnown = entry._tag === "Opened" || entry._tag === "Refused" || this.books.has(account)
    if (!isKnown) return `that there is no account ${account}`
    const done = Result.try(() => this.#apply(entry))
    return Result.isFailure(done) ? `that it fails: ${String(done.failure)}` : undefined
  }

  #apply(entry: Entry): void {
    const { books } = this
    switch (entry._tag) {
      case "Opened":
        return this.#open(entry)
      case "Carved":
        operations.carve(books, entry.parent, this.#carvingOf(entry), entry.content, { window: entry.window })
        return
      case "ToppedUp":
        return void operations.topUp(books, entry.account, entry.amounts, entry.under?.id)
      case "Reclaimed":
        return void operations.reclaim(books, entry.account, entry.amounts, entry.under?.id)
      case "Closed":
        return void operations.close(books, entry.account)
      case "Waited":
        return operations.wait(books, entry.account, entry, () => {})
      case "Moved": {
        const { account, amounts, from, to } = entry
        return void operations.move(books, account, { from, to, wanted: amounts }, entry.under?.id)
      }
      case "Amended":
        return void operations.amend(books, entry.account, entry.wanted, entry.under?.id)
      case "Frozen":
        return operations.freeze(books, entry.account, entry.cause, entry)
      case "Paused":
        return void operations.pause(books, entry.account, entry.cause)
      case "Resumed":
        return void operations.resume(books, entry.account)
      case "Refused":
        return this.#refuse(entry)
      case "Overran":
      case "DebtPaid":
      case "Served":
        return
      default:
        return this.#applyToHold(entry)
    }
  }

  #applyToHold(entry: OfHold): void {
    const { books } = this
    const ref: HoldRef = { account: entry.account, id: entry.hold }
    switch (entry._tag) {
      case "Held":
        return void operations.hold(books, ref, entry.reserve, entry.amounts, entry)
      case "Extended":
        return void operations.extendHold(books, ref, entry.amounts, entry.under?.id)
      case "Settled":
        return void operations.settle(books, ref, entry.actual)
      case "Voided":
      case "Assumed":
        return void operations.release(books, ref, entry._tag)
      case "Adjusted":
        return void operations.adjust(books, ref, entry.actual)
    }
  }

  /** There is one root. */
  #open(entry: EntryOf<"Opened">): void {
    if (this.books.accounts.length > 0) return
    const { account: id, grant, path: name, window } = entry
    const opened = operations.openRoot(this.books, { id, name, grant, reserves: planOf(entry) }, { window })
    if (Result.isFailure(opened)) throw new Error(describe(opened.failure))
  }

  /** A wish that is granted what was granted, if the parent has it. */
  #carvingOf(entry: EntryOf<"Carved">): Carving {
    const { account: id, asked, charge, path, reserve } = entry
    const name = path.slice(this.books.account(entry.parent).path.length + 1)
    const grant: { [D in Dimension]?: number } = {}
    for (const d of dimensions) if (entry.grant[d] !== undefined) grant[d] = asked[d] ?? 0
    return { id, name, reserve, charge, reserves: planOf(entry), ask: { _tag: "AtMost", grant, floor: {} } }
  }

  /**
   * A refusal changed nothing, and is remembered where it stays. But one who stood in line may have left it so, by itself
   * or because its account was closed.
   */
  #refuse(entry: EntryOf<"Refused">): void {
    const { books } = this
    const { account, operation, reason, under } = entry
    if (operation === "wait" && books.has(account) && books.isWaiting(account)) {
      if (reason._tag === "DeadlinePassed") return operations.leave(books, account, reason)
      if (reason._tag === "NotOpen" && reason.state === "closed") return void operations.close(books, account)
    }
    const request = under === undefined ? undefined : { operation, account, ...under }
    if (request === undefined || books.remember(request, Result.fail(reason))) this.#written.push(entry)
  }
}

type EntryOf<Tag extends Entry["_tag"]> = Extract<Entry, { readonly _tag: Tag }>

type OfHold = EntryOf<"Held" | "Extended" | "Settled" | "Voided" | "Assumed" | "Adjusted">

const sentence = (written: Entry | undefined): string =>
  written?._tag === "Refused" ? `that it is refused: ${describe(written.reason)}` : shown(written)

/** The reserves as they were opened. */
const planOf = ({
  exploreAtMost,
  reserves,
}: {
  readonly exploreAtMost?: Grant
  readonly reserves: EntryOf<"Opened">["reserves"]
}): Plan => {
  const { output, retry, verify } = reserves
  return { _tag: "Explicit", output, verify, retry, exploreAtMost }
}
