/**
 * The checks checked: each defect is put into the shipped code, and the property of conservation must find it.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { vi } from "vitest"
import type * as Accounts from "../../src/budget/Account.ts"
import type * as Adjust from "../../src/budget/Adjust.ts"
import type * as Carve from "../../src/budget/Carve.ts"
import type * as Children from "../../src/budget/Children.ts"
import type * as Cover from "../../src/budget/Cover.ts"
import { add, amounts, type Grant, subtract, zero } from "../../src/budget/Dimension.ts"
import type * as Holds from "../../src/budget/Holds.ts"
import type * as Life from "../../src/budget/Life.ts"
import type * as Reserve from "../../src/budget/Reserve.ts"
import type * as Window from "../../src/budget/Window.ts"
import { Life as AnyLife } from "./commands.ts"
import { live } from "./laws.ts"

type Pure = typeof Accounts & typeof Carve & typeof Cover & typeof Reserve & typeof Window
type Steps = typeof Adjust &
  typeof Life &
  Pick<typeof Children, "topUp" | "reclaim"> &
  Pick<typeof Holds, "extend" | "settle">
type Module = Pure & Steps
type Defects = { readonly [F in keyof Module]?: (real: Module[F]) => Module[F] }

const seeded = vi.hoisted(() => {
  const state: { defects: Record<string, (real: unknown) => unknown> } = { defects: {} }
  type Call = (...args: ReadonlyArray<unknown>) => unknown
  /** The module as it is, but each function asks first whether a defect is seeded in it. */
  const seedable = async (original: () => Promise<object>) =>
    Object.fromEntries(
      Object.entries(await original()).map(([name, real]: [string, unknown]) => {
        const call: Call = (...args) => ((state.defects[name]?.(real) ?? real) as Call)(...args)
        return [name, typeof real === "function" ? call : real]
      }),
    )
  return { state, seedable }
})

vi.mock("../../src/budget/Account.ts", seeded.seedable)
vi.mock("../../src/budget/Adjust.ts", seeded.seedable)
vi.mock("../../src/budget/Carve.ts", seeded.seedable)
vi.mock("../../src/budget/Children.ts", seeded.seedable)
vi.mock("../../src/budget/Cover.ts", seeded.seedable)
vi.mock("../../src/budget/Holds.ts", seeded.seedable)
vi.mock("../../src/budget/Life.ts", seeded.seedable)
vi.mock("../../src/budget/Reserve.ts", seeded.seedable)
vi.mock("../../src/budget/Window.ts", seeded.seedable)

/** Lives until one breaks a law, at most `runs`; the law it broke, or nothing. */
const search = (defects: Defects, runs: number): Effect.Effect<string | undefined> => {
  let broken: string | undefined
  const lawful = (life: Parameters<typeof live>[0]): boolean => {
    try {
      live(life)
      return true
    } catch (error) {
      broken ??= String(error)
      return false
    }
  }
  return Effect.sync(() => void (seeded.state.defects = defects as typeof seeded.state.defects)).pipe(
    Effect.andThen(Arbitrary.checkEffect(AnyLife, lawful, { runs, size: 100, maxShrinks: 0, seed: 7 })),
    Effect.ensuring(Effect.sync(() => void (seeded.state.defects = {}))),
    Effect.map((result) => (result._tag === "Falsified" ? (broken ?? "falsified") : undefined)),
  )
}

const without = (
  self: Accounts.Account,
  reserve: Reserve.Reserve,
  change: Partial<Accounts.Fund>,
): Accounts.Account => {
  return { ...self, funds: { ...self.funds, [reserve]: { ...self.funds[reserve], ...change } } }
}

/** Forgets under which id an operation came. */
const forgetful =
  <A, B, C, D>(real: (a: A, b: B, c: C, id?: string) => D) =>
  (a: A, b: B, c: C): D =>
    real(a, b, c)

const addUse = (self: Accounts.Account, reserve: Reserve.Reserve, more: Grant): Accounts.Account =>
  without(self, reserve, { used: add(self.funds[reserve].used, amounts(more)) })

const defects: ReadonlyArray<readonly [name: string, defects: Defects]> = [
  [
    "a carve that does not debit the parent",
    {
      giveToChild: (real) => (self, reserve, grant, charge) =>
        without(real(self, reserve, grant, charge), reserve, { carved: self.funds[reserve].carved }),
    },
  ],
  [
    "a carve that does not book its charge",
    { giveToChild: (real) => (self, reserve, grant) => real(self, reserve, grant, zero) },
  ],
  [
    "a carve from the limit instead of what is left",
    {
      availableIn: () => (self, reserve) =>
        Object.fromEntries(
          Object.entries(self.funds[reserve].allocated).filter(([d]) => self.caps[d as keyof typeof self.caps]),
        ),
    },
  ],
  [
    "a close that refunds twice",
    {
      takeFromChild: (real) => (self, child, reserve) => {
        const after = real(self, child, reserve)
        const granted = amounts(child.funds.explore.allocated)
        return without(after, reserve, { carved: subtract(after.funds[reserve].carved, granted) })
      },
    },
  ],
  [
    "a close that refunds what was used",
    {
      takeFromChild: (real) => (self, child, reserve) =>
        without(real(self, child, reserve), reserve, { used: self.funds[reserve].used }),
    },
  ],
  [
    "a close that forgets debt",
    {
      takeFromChild:
        (real) =>
        (...args) => ({ ...real(...args), debt: args[0].debt }),
    },
  ],
  [
    "a hold that is applied without its check",
    {
      shortagesOf: () => () => [],
      hold: () => (self, reserve, wanted) => {
        const held = add(self.funds[reserve].held, wanted)
        const account = { ...without(self, reserve, { held }), pendingHolds: self.pendingHolds + 1 }
        return Result.succeed({ account, moved: zero })
      },
    },
  ],
  [
    "a settlement that keeps the hold",
    {
      resolve: (real) => (self, hold, bill) => {
        const { account, excess } = real(self, hold, bill)
        return { account: without(account, hold.reserve, { held: self.funds[hold.reserve].held }), excess }
      },
    },
  ],
  [
    "a settlement that books no more than the hold",
    { resolve: (real) => (self, hold, bill) => ({ ...real(self, hold, bill), excess: zero }) },
  ],
  ["an over-run that is forgotten", { cover: () => (path) => ({ path, sources: [], uncovered: zero }) }],
  [
    "an over-run whose cover stays with the ancestor",
    {
      cover: (real) => (path, reserve, excess) => {
        const covered = real(path, reserve, excess)
        return { ...covered, path: [covered.path[0]!, ...path.slice(1)] }
      },
    },
  ],
  [
    "debt that later refunds do not pay",
    { payDebt: () => (path) => ({ path, sources: [], uncovered: path[0]!.debt }) },
  ],
  ["a move without its check", { shortagesWithin: () => () => [] }],
  [
    "a freeze that leaves the subtree open",
    {
      freeze: (real) => (books, id, cause, options) => {
        const below = books.childrenOf(id)
        real(books, id, cause, options)
        for (const child of below) books.put(child)
      },
    },
  ],
  [
    "a resume that opens what was frozen or paused for itself",
    {
      resume: (real) => (books, id) => {
        const resumed = real(books, id)
        if (Result.isSuccess(resumed)) books.walk(id, (account) => books.put({ ...account, state: "Open" }))
        return resumed
      },
    },
  ],
  [
    "a pause that leaves the subtree open",
    {
      pause: (real) => (books, id, cause) => {
        const below = books.childrenOf(id)
        const paused = real(books, id, cause)
        for (const child of below) books.put(child)
        return paused
      },
    },
  ],
  [
    "a child that outlives what funds it",
    { childDeadline: (real) => (options) => real({ ...options, parent: undefined, askedMillis: 1000 }) },
  ],
  [
    "an adjustment that can be made twice",
    {
      adjust: (real) => (books, ref, actual) =>
        Result.map(real(books, ref, actual), (hold) => {
          books.putHold({ ...hold, state: "Assumed" })
          return hold
        }),
    },
  ],
  [
    "an adjustment that gives back where the account has closed, and nowhere else",
    {
      adjust: (real) => (books, ref, actual) => {
        const above = books.pathOf(ref.account).find((account) => account.state !== "Closed")
        const adjusted = real(books, ref, actual)
        if (Result.isSuccess(adjusted) && above !== undefined && above.id !== ref.account) books.put(above)
        return adjusted
      },
    },
  ],
  [
    "a top-up that does not debit the parent",
    {
      topUp: (real) => (books, child, wanted, id) => {
        const parent = books.pathOf(child)[1]
        const topped = real(books, child, wanted, id)
        if (Result.isSuccess(topped) && parent !== undefined) books.put(parent)
        return topped
      },
    },
  ],
  [
    "a reclaim that takes what is free in the child and loses it",
    {
      reclaim: (real) => (books, child, wanted, id) => {
        const parent = books.pathOf(child)[1]
        const reclaimed = real(books, child, wanted, id)
        if (Result.isSuccess(reclaimed) && parent !== undefined) books.put(parent)
        return reclaimed
      },
    },
  ],
  ["a top-up that is given again when it is delivered twice", { topUp: forgetful }],
  ["a reclaim that is taken again when it is delivered twice", { reclaim: forgetful }],
  ["an extension that is set aside again when it is delivered twice", { extend: forgetful }],
  [
    "a settlement that is booked again when it is delivered twice",
    {
      settle: (real) => (books, ref, actual) => {
        const hold = books.hold(ref)
        if (hold?.state === "Settled") books.put(addUse(books.account(ref.account), hold.reserve, actual))
        return real(books, ref, actual)
      },
    },
  ],
  [
    "an extension that is not set aside",
    {
      extend: (real) => (books, ref, extra, id) => {
        const before = books.account(ref.account)
        const extended = real(books, ref, extra, id)
        books.put(before)
        return extended
      },
    },
  ],
  [
    "a split that makes something of nothing",
    {
      split: (real) => (grant, plan, account) =>
        Result.map(real(grant, plan, account), (parts) => ({
          ...parts,
          retry: add(parts.retry, amounts({ steps: 1 })),
        })),
    },
  ],
]

describe("the property of conservation", () => {
  it.effect("holds without a seeded defect", () =>
    Effect.map(search({}, 60), (broken) => assert.strictEqual(broken, undefined)),
  )

  it.effect.each(defects)("finds %s", ([, defects]) =>
    Effect.map(search(defects, 2000), (broken) => assert.isDefined(broken)),
  )
})
