/**
 * The rest of an account's life: moving between reserves, changed caps, the end of new work, and standing still.
 */
import * as Result from "effect/Result"
import * as Accounts from "./Account.ts"
import type { Account, State } from "./Account.ts"
import { type Books, notOpen, type Request, underOf } from "./Books.ts"
import { payDebts } from "./Debt.ts"
import { add, amounts, dimensions, type Grant, invalidAmount, map, nonZero, onlyCapped, validate } from "./Dimension.ts"
import { leave, serve, serveAround } from "./Line.ts"
import type { Refusal } from "./Refusal.ts"
import { type Reserve, reserves } from "./Reserve.ts"
import { clamp, endOf, shift, type Window } from "./Window.ts"

const ok = Result.succeed

/** What is to move between two reserves. */
export interface Moving {
  readonly from: Reserve
  readonly to: Reserve
  readonly wanted: Grant
}

/** Moves what is free in a reserve to a senior one. **Fails with** `Insufficient`, `NotOpen`, `InvalidAmount`. */
export const move = (books: Books, account: string, moving: Moving, id?: string): Result.Result<Account, Refusal> => {
  const request = books.request("move", account, id, moving)
  return books.once(request, () => {
    const { from, to } = moving
    const refused = (reason: Refusal) => books.refused("move", account, id ?? account, reason, request)
    const valid = validate(moving.wanted, "move")
    if (Result.isFailure(valid)) return refused(valid.failure)
    if (reserves.indexOf(to) <= reserves.indexOf(from)) {
      return refused(invalidAmount("move.to", to, `move upward only, from ${reserves.join(" < ")}`))
    }
    const self = books.account(account)
    if (self.state !== "Open") return refused(notOpen(self))
    const vector = onlyCapped(amounts(valid.success), self.caps)
    const shortages = Accounts.shortagesWithin(self, from, vector)
    if (shortages.length > 0) return refused({ _tag: "Insufficient", shortages })
    const moved = Accounts.move(self, from, to, vector)
    books.put(moved)
    books.record({ _tag: "Moved", account, from, to, amounts: nonZero(vector), ...underOf(request) })
    return ok(moved)
  })
}

/**
 * Changes the caps of the root: raises at once into explore, lowers to no less than what is used, held, carved or kept
 * in a senior reserve. A dimension left out stays as it is.
 *
 * **Fails with** `InvalidAmount`, also for a dimension that was opened without a cap: what is already carved from it has
 * none either. `NotOpen` when the run is over.
 */
export const amend = (books: Books, root: string, caps: Grant, id?: string): Result.Result<Account, Refusal> => {
  const request = books.request("amend", root, id, caps)
  return books.once(request, () => applyCaps(books, caps, request))
}

const applyCaps = (books: Books, caps: Grant, request: Request): Result.Result<Account, Refusal> => {
  const self = books.account(request.account)
  const refused = (reason: Refusal) => books.refused("amend", self.id, self.id, reason, request)
  const valid = validate(caps, "amend")
  if (Result.isFailure(valid)) return refused(valid.failure)
  if (self.state === "Closed") return refused(notOpen(self))
  const uncapped = dimensions.find((d) => valid.success[d] !== undefined && !self.caps[d])
  if (uncapped !== undefined) {
    const remedy = "leave it out: a run opened without that cap cannot get one"
    return refused(invalidAmount(`amend.${uncapped}`, caps[uncapped], remedy))
  }
  const before = Accounts.granted(self)
  const fund = self.funds.explore
  const change = map((d) => {
    const cap = valid.success[d]
    if (cap === undefined) return 0
    return Math.max(cap - before[d], -Accounts.free(fund, d))
  })
  const amended = Accounts.withFund(self, "explore", { ...fund, allocated: add(fund.allocated, change) })
  books.put(amended)
  books.record({
    _tag: "Amended",
    account: self.id,
    from: nonZero(before),
    to: nonZero(Accounts.granted(amended)),
    wanted: valid.success,
    ...underOf(request),
  })
  payDebts(books)
  serveAround(books, self.id)
  return ok(books.account(self.id))
}

/**
 * Ends new work in an account and everything below it, top down. With `closingWork` the verification and the wrap-up
 * may still be paid; without, nothing new may start. The first cause stays; a later one is only recorded.
 */
export const freeze = (books: Books, id: string, cause: string, options?: { readonly closingWork?: boolean }): void => {
  const closingWork = options?.closingWork ?? false
  const state: State = closingWork ? "Frozen" : "Draining"
  const frozen = books.account(id)
  const atMillis = books.nowMillis()
  const changed: Array<Account> = []
  books.walk(id, (self) => {
    if (self.state === "Closed" || self.state === "Draining" || self.state === state) return
    changed.push(self)
    books.put({ ...goOn(books, self, atMillis), state, cause: self.state === "Frozen" ? self.cause : cause })
  })
  if (changed.length === 0 && (frozen.state === "Closed" || frozen.cause === cause)) return
  const time = changed.some((self) => self.pausedAtMillis !== undefined) ? { atMillis } : {}
  books.record({ _tag: "Frozen", account: id, cause, closingWork, ...time })
  for (const self of changed) leave(books, self.id, notOpen(books.account(self.id)))
}

/** Stops holds, carves and the time of an account and everything below it. **Fails with** `NotOpen`. */
export const pause = (books: Books, id: string, cause: string): Result.Result<Account, Refusal> => {
  if (books.account(id).state !== "Open") return books.refused("pause", id, id, notOpen(books.account(id)))
  const atMillis = books.nowMillis()
  books.walk(id, (self) => {
    if (self.state === "Open") books.put({ ...self, state: "Paused", cause, pausedAtMillis: atMillis, pausedBy: id })
  })
  books.record({ _tag: "Paused", account: id, cause, atMillis })
  return ok(books.account(id))
}

/**
 * Lets a paused account go on. Its deadline, and those below it, move by the time it was paused, but not past the
 * point at which its parent must go on. **Fails with** `NotOpen` when it is not paused itself, or its parent is still.
 */
export const resume = (books: Books, id: string): Result.Result<Account, Refusal> => {
  const paused = books.account(id)
  if (paused.state !== "Paused" || paused.pausedBy !== id) return books.refused("resume", id, id, notOpen(paused))
  const parent = paused.parent === undefined ? undefined : books.account(paused.parent.id)
  if (parent !== undefined && parent.state !== "Open") return books.refused("resume", id, id, notOpen(parent))
  const atMillis = books.nowMillis()
  const pausedMillis = atMillis - paused.pausedAtMillis!
  books.walk(id, (self) => {
    if (self.state === "Paused" && self.pausedBy === id)
      books.put({ ...goOn(books, self, atMillis), state: "Open", cause: "" })
  })
  books.record({ _tag: "Resumed", account: id, pausedMillis, atMillis })
  books.walk(id, (self) => serve(books, self.id))
  serveAround(books, id)
  return ok(books.account(id))
}

/** Lets the clock of a paused account run again: its window moves by the time it stood still. */
const goOn = (books: Books, self: Account, atMillis: number): Account => {
  if (self.pausedAtMillis === undefined) return self
  const pausedMillis = atMillis - self.pausedAtMillis
  const window = self.window === undefined ? undefined : within(books, self, shift(self.window, pausedMillis))
  return { ...self, pausedAtMillis: undefined, pausedBy: undefined, window }
}

/** A window cut off where the parent must go on. */
const within = (books: Books, self: Account, window: Window): Window => {
  const parent = self.parent === undefined ? undefined : books.account(self.parent.id)
  const limit = parent === undefined ? undefined : endOf(parent.window, self.parent!.reserve)
  return limit === undefined ? window : clamp(window, limit)
}
