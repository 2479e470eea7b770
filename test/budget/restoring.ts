/**
 * Two ledgers side by side, the one that was and the one from its journal, and journals that were changed.
 */
import { assert } from "@effect/vitest"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { free } from "../../src/budget/Account.ts"
import { dimensions, type Grant } from "../../src/budget/Dimension.ts"
import { Entry } from "../../src/budget/Entry.ts"
import { Ledger } from "../../src/budget/Ledger.ts"
import { reserves } from "../../src/budget/Reserve.ts"
import type { RestoreFailure } from "../../src/budget/Restore.ts"
import { statement, violations } from "../../src/budget/Statement.ts"
import { carryOut, type Command } from "./commands.ts"
import { ok, type Tree } from "./tree.ts"

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Array(Entry)))

/** The entries as they come back from the lines of a file. */
export const fromJson = (entries: ReadonlyArray<Entry>): ReadonlyArray<Entry> => decode(JSON.stringify(entries))

const written = (entries: ReadonlyArray<Entry>) => entries.map((entry) => ({ entry }))

/** What restoring these entries answers; what it writes itself is not kept. */
export const tryRestore = (entries: ReadonlyArray<Entry>): Result.Result<Ledger, RestoreFailure> =>
  Ledger.restore(written(entries), { record: () => {}, nowMillis: () => 0 })

/** A tree from a journal, whose entries are those of the journal and what it writes from then on. */
export const restored = (entries: ReadonlyArray<Entry>, millis = 0): Tree => {
  const [all, clock] = [[...entries], { millis }]
  const options = { record: (entry: Entry) => void all.push(entry), nowMillis: () => clock.millis }
  return { ledger: Result.getOrThrow(Ledger.restore(written(entries), options)), entries: all, clock }
}

/** Everything that can be asked of a ledger without changing it. */
const facts = ({ ledger }: Tree) => ({
  accounts: ledger.accounts,
  open: ledger.accounts.map(({ id }) => ledger.childrenOf(id).map((child) => child.id)),
  holds: ledger.accounts.map(({ id }) => ledger.pendingHolds(id)),
  pending: ledger.pendingHolds(),
  statement: statement(ledger),
  violations: violations(ledger),
  reachable: ledger.accounts.map(({ id }) => reserves.map((reserve) => ledger.reachable(id, reserve))),
  left: ledger.accounts.map(({ id }) => reserves.map((reserve) => ledger.leftMillis(id, reserve))),
})

export const checkAlike = (one: Tree, other: Tree): void => assert.deepStrictEqual(facts(other), facts(one))

/** Restores at this moment, from the entries as they are and as they come back from a file, and compares. */
export const checkNow = (tree: Tree): void => {
  for (const entries of [tree.entries, fromJson(tree.entries)]) {
    const copy = restored(entries, tree.clock.millis)
    if (copy.entries.length === entries.length) checkAlike(tree, copy)
    // Whoever waited has left the line, which is written down; with that it can be restored once more.
    const again = restored(copy.entries, tree.clock.millis)
    assert.deepStrictEqual(again.entries, copy.entries)
    checkAlike(copy, again)
  }
}

/** Several ledgers behind one tree: what is done is done on all of them, and has to come out the same. */
export interface World {
  /** Does the same on each ledger and compares the answers and what was written. */
  readonly each: (act: (tree: Tree) => unknown) => void
  /** From here on also on a ledger that is restored from the journal of the first. */
  readonly split: () => void
  /** Compares all that can be asked of them. */
  readonly check: () => void
}

export const together = (first: Tree): World => {
  const worlds = [first]
  let now = first
  /** Also what was built on the tree earlier acts on the ledger whose turn it is. */
  const ledger = new Proxy(first.ledger, {
    get: (_, name) => {
      const value: unknown = Reflect.get(now.ledger, name, now.ledger)
      return typeof value === "function" ? (value.bind(now.ledger) as unknown) : value
    },
  })
  const tree: Tree = {
    ledger,
    clock: first.clock,
    get entries() {
      return now.entries
    },
  }
  const on = (world: Tree, millis: number, act: (tree: Tree) => unknown) => {
    now = world
    world.clock.millis = millis
    const before = world.entries.length
    const answer = act({ ...tree, clock: world.clock, entries: world.entries })
    return { answer, entries: world.entries.slice(before) }
  }
  const each = (act: (tree: Tree) => unknown) => {
    const { millis } = first.clock
    const [one, ...others] = worlds.map((world) => on(world, millis, act))
    for (const other of others) assert.deepStrictEqual(other, one)
  }
  const split = () => {
    const { clock, entries } = first
    const copy = restored(fromJson(entries), clock.millis)
    // The first one is not restored: there they leave the line one by one.
    for (const entry of copy.entries.slice(entries.length))
      if (entry._tag === "Refused" && entry.reason._tag === "DeadlinePassed") first.ledger.leaveLine(entry.account)
    assert.deepStrictEqual(copy.entries, entries)
    worlds.push(copy)
    checkAlike(first, copy)
  }
  const check = () => {
    for (const other of worlds) checkAlike(first, other)
  }
  return { each, split, check }
}

/** Carries a command out, and now and then what the commands leave out: lines, and the end of a subtree. */
export const extra = (
  tree: Tree,
  command: Command,
  number: number,
  onRepeatable: (again: () => unknown) => void = () => {},
): unknown => {
  const { again, ...done } = carryOut(tree, command, number)
  if (again !== undefined) onRepeatable(again)
  if (command.plan === 0) return done
  const { ledger } = tree
  const among = ledger.accounts.filter((one) => one.parent !== undefined && one.state !== "Closed")
  const self = among[command.account % Math.max(1, among.length)]
  if (self === undefined) return done
  const ends: Array<unknown> = []
  if (command.other === 1) {
    const parent = ledger.account(self.parent!.id)
    // A little more than what is there at once.
    const wish = (more: number): Grant =>
      Object.fromEntries(
        (["steps", "money"] as const)
          .filter((d) => self.caps[d])
          .map((d) => [d, free(self.funds.explore, d) + free(parent.funds[self.parent!.reserve], d) + more]),
      )
    const wanted = { need: wish(command.hold), least: wish(command.hold % 3) }
    ledger.wait(self.id, wanted, (ended) => void ends.push(ended))
  }
  if (command.other === 2 && command.chance > 4) ledger.leaveLine(self.id)
  if (command.other === 3 && command.chance === 7) ledger.sweep(self.id, "nobody looks after it")
  return { done, ends, waiting: ledger.accounts.filter(({ id }) => ledger.isWaiting(id)) }
}

/** Every hold is resolved and every account closed, leaves first. */
export const endAll = ({ ledger }: Tree): void => {
  for (const { id } of ledger.accounts.toReversed()) {
    for (const hold of ledger.pendingHolds(id)) ok(ledger.assume(hold))
    ok(ledger.close(id))
  }
}

/** The journal with one of its entries replaced by others. */
export const broken = (
  entries: ReadonlyArray<Entry>,
  at: number,
  change: (entry: Entry) => ReadonlyArray<Entry>,
): ReadonlyArray<Entry> => [...entries.slice(0, at), ...change(entries[at]!), ...entries.slice(at + 1)]

/** The amount of an entry that a later one depends on, under its name. */
const telling: { readonly [Tag in Entry["_tag"]]?: string } = {
  Carved: "grant",
  Held: "amounts",
  Extended: "amounts",
  Settled: "actual",
  Voided: "held",
  Assumed: "held",
  Adjusted: "actual",
  ToppedUp: "amounts",
  Reclaimed: "amounts",
  Overran: "excess",
  DebtPaid: "paid",
  Closed: "own",
}

/** The places of entries with an amount, on whose being there and being right another one depends. */
export const telltale = (entries: ReadonlyArray<Entry>): ReadonlyArray<number> =>
  entries.flatMap((entry, at) => (Object.keys(amountsOf(entry) ?? {}).length > 0 ? [at] : []))

const amountsOf = (entry: Entry): Grant | undefined =>
  (entry as unknown as Readonly<Record<string, Grant>>)[telling[entry._tag] ?? ""]

/** The entry with one more of something it names. */
export const oneMore = (entry: Entry): Entry => {
  const grant = amountsOf(entry)!
  const d = dimensions.find((one) => grant[one] !== undefined)!
  return { ...entry, [telling[entry._tag]!]: { ...grant, [d]: grant[d]! + 1 } }
}
