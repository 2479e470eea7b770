/**
 * What must be true of a tree at every moment, checked against a naive record of what was asked and billed. Written from
 * the contract, without the sums of `Account` and `Statement`.
 */
import { assert } from "@effect/vitest"
import { isDeepStrictEqual } from "node:util"
import * as Result from "effect/Result"
import type { Account, State } from "../../src/budget/Account.ts"
import { dimensions, type Dimension, type Grant } from "../../src/budget/Dimension.ts"
import type { Entry } from "../../src/budget/Entry.ts"
import { type Reserve, reserves } from "../../src/budget/Reserve.ts"
import { imbalances, statement, violations } from "../../src/budget/Statement.ts"
import { carryOut, type Command, type Done, plans, roots } from "./commands.ts"
import { max, open, records, sameRecords, type Tree } from "./tree.ts"

/** What a bystander would have written down. Exact at any size. */
interface Witness {
  readonly billed: Record<Dimension, bigint>
  readonly excess: Record<Dimension, bigint>
  readonly pending: Map<string, Grant>
  readonly assumed: Map<string, Grant>
}

const nothing = (): Record<Dimension, bigint> =>
  Object.fromEntries(dimensions.map((d) => [d, 0n])) as Record<Dimension, bigint>

const sum = (numbers: ReadonlyArray<number>): bigint => numbers.reduce((total, one) => total + BigInt(one), 0n)

/** What still counts: closed accounts are part of their parent, but a closed root of nothing. */
const alive = (tree: Tree): ReadonlyArray<Account> =>
  tree.ledger.accounts.filter((one) => one.state !== "Closed" || one.parent === undefined)

const over = (accounts: ReadonlyArray<Account>, part: "allocated" | "held" | "carved" | "used", d: Dimension): bigint =>
  sum(accounts.flatMap((account) => reserves.map((reserve) => account.funds[reserve][part][d])))

/** Writes down what an accepted operation means; what left no `entries` was delivered before and means nothing more. */
const witnessed = (witness: Witness, done: Done, entries: ReadonlyArray<Entry>): void => {
  const bill = (grant: Grant, times = 1) => {
    for (const d of dimensions) witness.billed[d] += BigInt(grant[d] ?? 0) * BigInt(times)
  }
  if (!done.results.some(Result.isSuccess) || entries.every(({ _tag }) => _tag === "Refused")) return
  const key = done.hold === undefined ? "" : `${done.hold.account} ${done.hold.id}`
  const held = witness.pending.get(key) ?? {}
  const exceeded = (by: Grant, amounts: Grant) => {
    for (const d of dimensions) {
      const more = BigInt(by[d] ?? 0) - BigInt(amounts[d] ?? 0)
      if (more > 0n) witness.excess[d] += more
    }
  }
  switch (done.name) {
    case "carve":
    case "carveAll":
      return bill(done.charge, entries.filter(({ _tag }) => _tag === "Carved").length)
    case "hold":
      return void witness.pending.set(key, done.grant)
    case "settle":
      exceeded(done.grant, held)
      bill(done.grant)
      return void witness.pending.delete(key)
    case "assume":
      bill(held)
      witness.assumed.set(key, held)
      return void witness.pending.delete(key)
    case "extendHold": {
      const more = (d: Dimension) => (held[d] ?? 0) + (done.grant[d] ?? 0)
      return void witness.pending.set(key, Object.fromEntries(dimensions.map((d) => [d, more(d)])))
    }
    case "adjust": {
      const assumed = witness.assumed.get(key)
      if (assumed === undefined) return assert.fail(`${key} was adjusted, although it is not assumed`)
      exceeded(done.grant, assumed)
      bill(done.grant)
      bill(assumed, -1)
      return void witness.assumed.delete(key)
    }
    case "void":
      return void witness.pending.delete(key)
    default:
  }
}

/** Without the assertions of the library: these are asked a million times. */
const same = <A>(actual: A, expected: A, what: string): void => {
  if (actual !== expected) assert.fail(`${what}: ${String(actual)} is not ${String(expected)}`)
}

const holds = (law: boolean, otherwise: string): void => {
  if (!law) assert.fail(otherwise)
}

/** I1, I2, I6 by the module itself; I3, I4, I5 and I11 against the witness. */
const checkState = (tree: Tree, witness: Witness): void => {
  same(violations(tree.ledger).join("; "), "", "laws")
  const { root } = tree.ledger
  const open = alive(tree)
  for (const d of dimensions) {
    const [held, used] = [over(open, "held", d), over(open, "used", d)]
    const debt = sum(open.map((account) => account.debt[d]))
    const pending = sum([...witness.pending.values()].map((grant) => grant[d] ?? 0))
    same(held, pending, `held ${d}`)
    same(used + debt, witness.billed[d], `billed ${d}`)
    if (!root.caps[d]) continue
    const grant = over([root], "allocated", d)
    const free = over(open, "allocated", d) - held - over(open, "carved", d) - used
    same(free + held + used, grant, `I3 ${d}`)
    holds(used + held <= grant, `${d} is overspent`)
    holds(witness.billed[d] <= grant + witness.excess[d], `${d} is overspent by more than the over-runs`)
  }
  for (const account of open) checkAccount(tree, account)
}

const checkAccount = (tree: Tree, account: Account): void => {
  for (const reserve of reserves) {
    const fund = account.funds[reserve]
    for (const part of [fund.allocated, fund.held, fund.carved, fund.used])
      for (const d of dimensions)
        if (!(Number.isSafeInteger(part[d]) && part[d] >= 0)) assert.fail(`${account.id} ${d}`)
  }
  if (account.parent === undefined) return
  const parent = tree.ledger.account(account.parent.id)
  holds(parent.state !== "Closed", `I11 ${account.id} has a closed parent`)
  for (const d of dimensions) if (parent.caps[d] && !account.caps[d]) assert.fail(`${account.id} has no cap of ${d}`)
  if (parent.window === undefined) return
  const { exploreEndMillis, verifyEndMillis, deadlineMillis } = parent.window
  const limit = { explore: exploreEndMillis, retry: exploreEndMillis, verify: verifyEndMillis, output: deadlineMillis }
  holds(account.window!.deadlineMillis <= limit[account.parent.reserve], `I11 ${account.id} outlives its parent`)
}

const worksOpen = new Set(["hold", "extendHold", "carve", "carveAll", "move", "topUp", "reclaim"])

/** I9 and I12: what may be accepted under whom, and what never falls. */
const checkTransition = (tree: Tree, before: ReadonlyArray<Account>, done: Done, written: number): void => {
  const byId = new Map(before.map((account) => [account.id, account]))
  const states: Array<string> = []
  for (let id: string | undefined = done.account.id; id !== undefined; id = byId.get(id)!.parent?.id)
    states.push(byId.get(id)!.state)
  const closing =
    (done.name === "hold" || done.name === "extendHold") && (done.reserve === "verify" || done.reserve === "output")
  const lawful = closing ? ["Open", "Frozen"] : ["Open"]
  const news = tree.entries.slice(written)
  // What was only answered again may be so anywhere.
  if (worksOpen.has(done.name) && news.some(({ _tag }) => _tag !== "Refused")) {
    holds(lawful.includes(states[0]!), `I12 ${done.name} on an account that is ${states[0]}`)
    if (!closing) same([...new Set(states)].join(), "Open", `I12 ${done.name}`)
  }
  for (const account of tree.ledger.accounts) {
    const earlier = byId.get(account.id)
    if (earlier === undefined || earlier === account) continue
    if (earlier.state !== account.state) checkStep(earlier, account, done)
    const covered = news.some(({ _tag }) => _tag === "Overran" || _tag === "DebtPaid")
    if (!covered && !["topUp", "reclaim", "amend"].includes(done.name))
      for (const d of dimensions)
        if (over([account], "allocated", d) !== over([earlier], "allocated", d))
          assert.fail(`I9 the grant of ${account.id} changed`)
    for (const reserve of reserves)
      for (const d of dimensions) {
        const [now, then] = [account.funds[reserve], earlier.funds[reserve]]
        if (now.used[d] < then.used[d] && done.name !== "adjust") assert.fail(`I9 the use of ${account.id} fell`)
        if (reserve !== "explore" && now.allocated[d] < account.opening[reserve][d] && !shrunk(tree, done, reserve))
          assert.fail(`I10 ${reserve} of ${account.id} shrank`)
      }
  }
}

/** Where an account may go from each state; out of a pause only with the resume of what was paused. */
const next = {
  Open: ["Paused", "Frozen", "Draining", "Closed"],
  Paused: ["Open", "Frozen", "Draining", "Closed"],
  Frozen: ["Draining", "Closed"],
  Draining: ["Closed"],
  Closed: [],
} satisfies Record<State, ReadonlyArray<State>>

const checkStep = (earlier: Account, account: Account, done: Done): void => {
  assert.include(next[earlier.state], account.state, `${account.id} was ${earlier.state}`)
  if (account.state !== "Open") return
  same(done.name, "resume", earlier.id)
  same(done.account.id, earlier.pausedBy, earlier.id)
}

/** A senior reserve shrinks only by a cover, or by a move to a more senior one. */
const shrunk = (tree: Tree, done: Done, reserve: Reserve): boolean =>
  tree.entries.some((entry) => entry._tag === "Overran" || (entry._tag === "Moved" && entry.from === reserve)) ||
  done.name === "move"

/** Delivered once more, at once or later, an operation changes nothing and is answered the same. */
const checkDelivery = (tree: Tree, done: Done, atOnce: boolean): void => {
  if (done.again === undefined) return
  const [before, written] = [records(tree.ledger), tree.entries.length]
  const answers = done.again()
  sameRecords(before, records(tree.ledger))
  same(answers.length, done.results.length, "answers")
  done.results.forEach((first, index) => {
    const second = answers[index]!
    if (atOnce && !isDeepStrictEqual(second, first)) assert.deepStrictEqual(second, first, `${done.name} twice`)
    // Who has taken the id of another may be told that, or that nothing goes any more.
    same(Result.isSuccess(second), Result.isSuccess(first), `${done.name} delivered late`)
  })
  const refusals = answers.filter(Result.isFailure).length
  const more = tree.entries.slice(written)
  holds(more.length <= refusals && more.every((entry) => entry._tag === "Refused"), "a delivery is written down")
}

/** What came under an id of its own, or was applied: only that is answered the same whenever it comes. */
const isRemembered = (done: Done): boolean =>
  done.again !== undefined &&
  done.results.length > 0 &&
  (!["settle", "void", "assume", "adjust", "close"].includes(done.name) || done.results.every(Result.isSuccess))

/** Ids live as long as their account; a carve, a close and an adjustment leave something behind. */
const lives = (tree: Tree, done: Done): boolean =>
  tree.ledger.account(done.account.id).state !== "Closed" || done.name === "close" || done.name === "adjust"

/** Every hold is resolved and every account closed, leaves first; then nothing is missing. */
const end = (tree: Tree, witness: Witness): void => {
  const { ledger } = tree
  for (const account of ledger.accounts.toReversed()) {
    for (const hold of ledger.pendingHolds(account.id)) {
      const written = tree.entries.length
      const results = [ledger.assume(hold)]
      witnessed(witness, { ...nobody, name: "assume", account, hold, results }, tree.entries.slice(written))
      assert.isTrue(Result.isSuccess(results[0]!))
    }
    if (account.parent !== undefined && account.state !== "Closed")
      assert.isTrue(Result.isSuccess(ledger.close(account.id)))
    checkState(tree, witness)
  }
  correct(tree, witness)
  const { root } = ledger
  for (const d of dimensions) {
    assert.strictEqual(over([root], "held", d) + over([root], "carved", d), 0n)
    assert.strictEqual(over([root], "used", d) + BigInt(root.debt[d]), witness.billed[d])
  }
  assert.deepStrictEqual(imbalances(statement(ledger)), [])
  if (root.state !== "Closed") assert.isTrue(Result.isSuccess(ledger.close(root.id)))
  assert.deepStrictEqual(imbalances(statement(ledger)), [])
}

/** The bills of all that was assumed become known after all, below, at and above what was held. */
const correct = (tree: Tree, witness: Witness): void => {
  ;[...witness.assumed].forEach(([key, held], index) => {
    const [account = "", id = ""] = key.split(" ")
    const near = (amount: number) =>
      Math.min(max, [0, Math.floor(amount / 2), amount, amount + 1, amount + 3][index % 5]!)
    const grant = Object.fromEntries(dimensions.map((d) => [d, near(held[d] ?? 0)]))
    const again = () => [tree.ledger.adjust({ account, id }, grant)]
    const [self, written] = [tree.ledger.account(account), tree.entries.length]
    const done: Done = {
      ...nobody,
      name: "adjust",
      account: self,
      hold: { account, id },
      grant,
      results: again(),
      again,
    }
    witnessed(witness, done, tree.entries.slice(written))
    checkState(tree, witness)
    checkDelivery(tree, done, true)
  })
}

const nobody = { reserve: "explore", grant: {}, charge: {} } as const

/** How often each operation was accepted and refused: a property that never gets through checks nothing. */
export type Marks = Map<string, number>

export interface AnyLife {
  readonly root: number
  readonly plan: number
  readonly deadline: boolean
  readonly commands: ReadonlyArray<Command>
}

/** The tree a life begins with. */
export const begin = (life: AnyLife): Tree => {
  const grant = roots[life.root]!
  const plan = grant.steps === undefined ? plans[0]! : plans[life.plan]!
  const window = { window: { _tag: "Agent", verifier: true }, wallClockMillis: 200 } as const
  return open(grant, { reserves: plan, ...(life.deadline ? window : {}) })
}

/** Lives one life and checks the laws after every operation. */
export const live = (life: AnyLife, marks?: Marks): void => {
  const tree = begin(life)
  const witness: Witness = { billed: nothing(), excess: nothing(), pending: new Map(), assumed: new Map() }
  const earlier: Array<Done> = []
  life.commands.forEach((command, number) => {
    const [before, accounts, written] = [records(tree.ledger), tree.ledger.accounts, tree.entries.length]
    const done = carryOut(tree, command, number)
    for (const result of done.results) {
      const mark = `${done.name} ${Result.isSuccess(result) ? "accepted" : "refused"}`
      marks?.set(mark, (marks.get(mark) ?? 0) + 1)
    }
    if (done.results.length > 0 && done.results.every(Result.isFailure)) sameRecords(before, records(tree.ledger))
    witnessed(witness, done, tree.entries.slice(written))
    checkState(tree, witness)
    checkTransition(tree, accounts, done, written)
    checkDelivery(tree, done, true)
    if (isRemembered(done)) earlier.push(done)
    const late = earlier[(number * 7 + command.hold) % Math.max(1, earlier.length)]
    if (late !== undefined && lives(tree, late)) checkDelivery(tree, late, false)
  })
  end(tree, witness)
  if (marks !== undefined) {
    const any = (name: string, has: (account: Account) => boolean) => {
      if (tree.ledger.accounts.some(has)) marks.set(name, (marks.get(name) ?? 0) + 1)
    }
    any("life with an over-run", (account) => account.overran)
    any("life with debt", (account) => dimensions.some((d) => account.debt[d] > 0))
    any("life with grandchildren", (account) => account.depth > 1)
    any("life with an adjustment after a close", ({ id }) =>
      tree.entries.some((entry) => entry._tag === "Adjusted" && entry.account === id && entry.landedOn !== id),
    )
    any("life with debt paid", (account) =>
      tree.entries.some((entry) => entry._tag === "DebtPaid" && entry.account === account.id),
    )
  }
}
