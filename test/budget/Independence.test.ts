/** What must not make a difference: how large a grant is, an errand that spends nothing, the order of what is independent. */
import { afterAll, assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Accounts from "../../src/budget/Account.ts"
import type { Hold } from "../../src/budget/Books.ts"
import { add, amounts, dimensions, type Grant, isZero, map, zero } from "../../src/budget/Dimension.ts"
import { type Plan, reserves, split } from "../../src/budget/Reserve.ts"
import { carryOut, Life } from "./commands.ts"
import { type AnyLife, begin } from "./laws.ts"
import { max, ok, type Tree } from "./tree.ts"

const deep = process.env.BURSAR_DEEP === "1"
const options = (runs: number) => ({ arbitrary: { runs: deep ? runs * 50 : runs, size: 100 }, timeout: 600_000 })

const upTo = (maximum: number) => Schema.Int.check(Schema.isBetween({ minimum: 0, maximum }))
const Amount = Schema.Union([upTo(30), upTo(300), upTo(max)])

const Split = Arbitrary.schema(
  Schema.Struct({
    grants: Schema.Tuple([Amount, Amount]),
    output: upTo(100),
    verify: upTo(100),
    retry: upTo(100),
    verifier: Schema.Boolean,
    answer: upTo(20),
    check: upTo(20),
  }),
)

describe("a split", () => {
  it.prop(
    "adds up, and a larger grant keeps no less in any senior reserve, whatever the plan",
    [Split],
    ([{ grants, verifier, ...drawn }]) => {
      const [output, verify] = [drawn.output, Math.min(drawn.verify, 100 - drawn.output)]
      const shares = { output, verify, retry: Math.min(drawn.retry, 100 - output - verify) }
      const every = (amount: number) => amounts(Object.fromEntries(dimensions.map((d) => [d, amount])))
      const plan: Plan = { _tag: "Shares", shares, verifier, answer: every(drawn.answer), check: every(drawn.check) }
      const [less, more] = grants.toSorted((a, b) => a - b).map((grant) => split(every(grant), plan, "root"))
      for (const [result, grant] of [
        [less!, Math.min(...grants)],
        [more!, Math.max(...grants)],
      ] as const) {
        if (Result.isFailure(result)) continue
        const parts = Object.values(result.success)
        // Exact, also where the sum of floats would not be.
        for (const d of dimensions)
          assert.strictEqual(
            parts.reduce((sum, part) => sum + BigInt(part[d]), 0n),
            BigInt(grant),
          )
      }
      if (Result.isFailure(less!)) return
      const [small, large] = [less!.success, ok(more!)]
      for (const reserve of ["output", "verify", "retry"] as const)
        for (const d of dimensions) assert.isAtLeast(large[reserve][d], small[reserve][d], `${reserve} ${d}`)
    },
    options(300),
  )
})

/** Lives a life without looking; the same life always makes the same tree. */
const lived = (life: AnyLife): Tree => {
  const tree = begin(life)
  life.commands.forEach((command, number) => void carryOut(tree, command, number))
  return tree
}

let errands = 0
let orders = 0
let overruns = 0

describe("a carve followed by a close", () => {
  it.prop(
    "is the identity on every account, in any state, from any reserve and for any ask",
    [Life, Arbitrary.schema(Schema.Struct({ steps: Amount, money: Amount, toolCalls: Amount }))],
    ([life, grant]) => {
      const tree = lived(life)
      const { accounts } = tree.ledger
      for (const parent of accounts)
        for (const reserve of ["explore", "retry", "verify"] as const) {
          const id = `errand ${parent.id} ${reserve}`
          const ask = { _tag: "AtMost" as const, grant, floor: {} }
          if (Result.isFailure(tree.ledger.carve(parent.id, { id, name: "errand", reserve, ask }))) continue
          ok(tree.ledger.close(id))
          errands += 1
          assert.deepStrictEqual(tree.ledger.account(parent.id), parent)
        }
      assert.deepStrictEqual(tree.ledger.accounts.slice(0, accounts.length), accounts)
    },
    options(150),
  )
})

/** Resolves every hold in flight, and corrects what was assumed, in the order given; `over` more than was held. */
const resolveAll = (
  tree: Tree,
  over: number,
  order: (holds: ReadonlyArray<() => boolean>) => ReadonlyArray<() => boolean>,
) => {
  const { ledger } = tree
  const pending = ledger.accounts.flatMap((account) => ledger.pendingHolds(account.id))
  const corrected = new Set(
    tree.entries.flatMap((one) => (one._tag === "Adjusted" ? [`${one.account} ${one.hold}`] : [])),
  )
  const assumed = tree.entries.flatMap((one) =>
    one._tag === "Assumed" && !corrected.has(`${one.account} ${one.hold}`)
      ? [{ account: one.account, id: one.hold, held: amounts(one.held) }]
      : [],
  )
  const bill = (held: Grant, n: number): Grant =>
    map((d) => (n % 2 === 0 ? Math.floor((held[d] ?? 0) / 2) : Math.min(max, (held[d] ?? 0) + over)))
  const resolve = (hold: Hold, n: number) => (): boolean => {
    if (n % 4 === 2) return Result.isSuccess(ledger.void(hold))
    if (n % 4 === 3 && over === 0) return Result.isSuccess(ledger.assume(hold))
    return Result.isSuccess(ledger.settle(hold, bill(hold.amounts, n)))
  }
  const adjust = (ref: (typeof assumed)[number], n: number) => () =>
    Result.isSuccess(ledger.adjust(ref, bill(ref.held, n)))
  const all = order([...pending.map(resolve), ...assumed.map(adjust)])
  return { count: all.length, accepted: all.map((run) => run()).every(Boolean) }
}

const shuffles: ReadonlyArray<<A>(list: ReadonlyArray<A>) => ReadonlyArray<A>> = [
  (list) => list.toReversed(),
  (list) => [...list.slice(Math.floor(list.length / 2)), ...list.slice(0, Math.floor(list.length / 2))],
  (list) => [...list.filter((_, n) => n % 2 === 1), ...list.filter((_, n) => n % 2 === 0)],
]

const owes = (tree: Tree): boolean => tree.ledger.accounts.some((account) => !isZero(account.debt))

describe("the order of independent resolutions", () => {
  it.prop(
    "makes no difference to any account",
    [Life],
    ([life]) => {
      const first = lived(life)
      // Who owes is paid by whoever comes first: that is not independent.
      if (owes(first)) return
      const { count, accepted } = resolveAll(first, 0, (list) => list)
      if (!accepted) return
      if (count > 1) orders += 1
      for (const shuffle of shuffles) {
        const second = lived(life)
        assert.isTrue(resolveAll(second, 0, shuffle).accepted)
        assert.deepStrictEqual(second.ledger.accounts, first.ledger.accounts)
      }
    },
    options(300),
  )

  it.prop(
    "makes no difference to what the run costs, over-runs included",
    [Life],
    ([life]) => {
      /** Use and debt of all that is alive: what was billed. */
      const cost = (tree: Tree) => {
        const alive = tree.ledger.accounts.filter((one) => one.state !== "Closed" || one.parent === undefined)
        return alive.reduce((sum, one) => add(sum, add(Accounts.used(one), one.debt)), zero)
      }
      const first = lived(life)
      const { count, accepted } = resolveAll(first, 2, (list) => list)
      if (!accepted) return
      if (count > 1) overruns += 1
      for (const shuffle of shuffles) {
        const second = lived(life)
        if (!resolveAll(second, 2, shuffle).accepted) continue
        assert.deepStrictEqual(cost(second), cost(first))
        for (const account of second.ledger.accounts)
          for (const reserve of reserves)
            for (const d of dimensions) assert.isAtLeast(account.funds[reserve].used[d], 0)
      }
    },
    options(300),
  )

  afterAll(() => {
    if (process.env.MARKS) console.log({ errands, orders, overruns })
    if (errands + orders + overruns === 0) return
    assert.isAbove(errands, 50, "errands")
    assert.isAbove(orders, 5, "orders")
    assert.isAbove(overruns, 5, "over-runs")
  })
})
