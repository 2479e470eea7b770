/**
 * What the budget tree costs: hold and settle, carve and close, and a refusal; pure and inside an Effect; at several
 * depths and with many open accounts. Ratios are to {@link Baseline}, within this run.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { Budget } from "../../src/index.ts"
import { Baseline } from "./Baseline.ts"
import { type Candidate, collect, measure, nanosOf, table, type Target, type Timed, verdicts } from "./Measure.ts"

const large = 2 ** 40
const grant = { steps: large, ticks: large, inputTokens: large, outputTokens: large, money: large, toolCalls: large }
const worst = { steps: 1, ticks: 1, inputTokens: 900, outputTokens: 400, money: 5_000, toolCalls: 1 }
const actual = { steps: 1, ticks: 1, inputTokens: 850, outputTokens: 120, money: 3_100, toolCalls: 1 }
const slice = { steps: 64, ticks: 64, inputTokens: 90_000, outputTokens: 40_000, money: 500_000, toolCalls: 64 }
const calls = 2_000

/** Entries are made and dropped, as by a journal that keeps nothing. */
let sunk = 0
const record = (entry: object): void => {
  sunk += "_tag" in entry ? 1 : 0
}

const openLedger = (): Budget.Ledger =>
  Result.getOrThrow(
    Budget.Ledger.openRoot({
      id: "root",
      name: "root",
      grant,
      record,
      nowMillis: () => 0,
      limits: { maxDepth: 128, maxOpenChildren: 1_000_000 },
    }),
  )

const carve = (ledger: Budget.Ledger, parent: string, id: string, ask: Budget.Grant): Budget.Account =>
  Result.getOrThrow(ledger.carve(parent, { id, name: "child", ask: { _tag: "Exactly", grant: ask } }))

/** A ledger with a chain down to `depth`; answers with the account at its end. */
const chain = (depth: number): { readonly ledger: Budget.Ledger; readonly account: string } => {
  const ledger = openLedger()
  let account = "root"
  for (let level = 1; level < depth; level++) {
    const id = `${account}/n`
    const left = Object.fromEntries(Budget.dimensions.map((d) => [d, large - level * 1_000]))
    carve(ledger, account, id, left)
    account = id
  }
  return { ledger, account }
}

/** A ledger in which `count` accounts are open beside each other. */
const crowd = (count: number): { readonly ledger: Budget.Ledger; readonly account: string } => {
  const ledger = openLedger()
  for (let index = 1; index < count; index++) carve(ledger, "root", `c${index}`, slice)
  return { ledger, account: "root" }
}

const holdAndSettle = (at: () => { readonly ledger: Budget.Ledger; readonly account: string }) => () => {
  const { ledger, account } = at()
  return () => {
    for (let index = 0; index < calls; index++) {
      const ref = { account, id: `h${index}` }
      ledger.hold(ref, "explore", worst)
      ledger.settle(ref, actual)
    }
    return calls
  }
}

const carveAndClose = (at: () => { readonly ledger: Budget.Ledger; readonly account: string }) => () => {
  const { ledger, account } = at()
  return () => {
    for (let index = 0; index < calls; index++) {
      ledger.carve(account, { id: `k${index}`, name: "child", ask: { _tag: "Exactly", grant: slice } })
      ledger.close(`k${index}`)
    }
    return calls
  }
}

const refusal = (at: () => { readonly ledger: Budget.Ledger; readonly account: string }) => () => {
  const { ledger, account } = at()
  return () => {
    for (let index = 0; index < calls; index++)
      ledger.hold({ account, id: `r${index}` }, "explore", { steps: large * 2 })
    return calls
  }
}

const floor: ReadonlyArray<Candidate> = [
  {
    name: "floor: hold + settle",
    prepare: () => {
      const baseline = new Baseline(grant, record)
      return () => {
        for (let index = 0; index < calls; index++) {
          baseline.hold("root", `h${index}`, worst)
          baseline.settle(`h${index}`, actual)
        }
        return calls
      }
    },
  },
  {
    name: "floor: carve + close",
    prepare: () => {
      const baseline = new Baseline(grant, record)
      return () => {
        for (let index = 0; index < calls; index++) {
          baseline.carve("root", `k${index}`, slice)
          baseline.close("root", `k${index}`)
        }
        return calls
      }
    },
  },
]

const inEffect = (name: string, body: (ledger: Budget.Ledger, index: number) => unknown): Candidate => ({
  name,
  prepare: () => {
    const ledger = openLedger()
    let index = 0
    const one = Effect.suspend(() => Effect.succeed(body(ledger, index++)))
    const loop = Effect.gen(function* () {
      for (let call = 0; call < calls; call++) yield* one
    })
    return () => {
      Effect.runSync(loop)
      return calls
    }
  },
})

const spendOnce = (ledger: Budget.Ledger, index: number): unknown => {
  const ref = { account: "root", id: `h${index}` }
  ledger.hold(ref, "explore", worst)
  return ledger.settle(ref, actual)
}

const depths = [1, 8, 64]
const crowds = [1, 1_000, 100_000]

const candidates = (): ReadonlyArray<Candidate> => {
  const crowded = new Map(crowds.map((count) => [count, crowd(count)]))
  let fresh = 0
  const reused = (count: number) => () => {
    // Ids are never used twice: a new account for each round, beside the crowd.
    const { ledger } = crowded.get(count)!
    const id = `round${++fresh}`
    carve(ledger, "root", id, Object.fromEntries(Budget.dimensions.map((d) => [d, 2 ** 32])))
    return { ledger, account: id }
  }
  return [
    ...floor,
    ...depths.map((depth) => ({ name: `hold + settle, depth ${depth}`, prepare: holdAndSettle(() => chain(depth)) })),
    ...depths.map((depth) => ({ name: `carve + close, depth ${depth}`, prepare: carveAndClose(() => chain(depth)) })),
    ...depths.map((depth) => ({ name: `refusal, depth ${depth}`, prepare: refusal(() => chain(depth)) })),
    ...crowds.map((count) => ({ name: `hold + settle, ${count} open`, prepare: holdAndSettle(reused(count)) })),
    inEffect("Effect: empty suspend", () => undefined),
    inEffect("Effect: hold + settle", spendOnce),
  ]
}

const heapPerAccount = (): number => {
  const count = 20_000
  const ledger = openLedger()
  if (!collect()) return Number.NaN
  const before = process.memoryUsage().heapUsed
  for (let index = 0; index < count; index++) carve(ledger, "root", `c${index}`, slice)
  collect()
  const bytes = (process.memoryUsage().heapUsed - before) / count
  return ledger.accounts.length > count ? bytes : Number.NaN
}

const targets = (timed: ReadonlyArray<Timed>): ReadonlyArray<Target> => {
  const of = (name: string) => nanosOf(timed, name)
  const held = of("hold + settle, depth 1")
  const inside = of("Effect: hold + settle") - of("Effect: empty suspend")
  const flat = (names: ReadonlyArray<string>) => Math.max(...names.map(of)) / Math.min(...names.map(of))
  const ratio = (name: string, measured: number, most: number): Target => ({ name, measured, most, unit: "x" })
  return [
    ratio("hold + settle to the floor", held / of("floor: hold + settle"), 3),
    ratio("carve + close to the floor", of("carve + close, depth 1") / of("floor: carve + close"), 3),
    ratio("flat in depth (hold + settle)", flat(depths.map((d) => `hold + settle, depth ${d}`)), 1.5),
    ratio("flat in depth (carve + close)", flat(depths.map((d) => `carve + close, depth ${d}`)), 1.5),
    ratio("flat in open accounts", flat(crowds.map((c) => `hold + settle, ${c} open`)), 1.5),
    { name: "inside Effect, over pure", measured: (inside - held) / 1000, most: 1.5, unit: " µs" },
    { name: "heap per open account", measured: heapPerAccount() / 1024, most: 1.5, unit: " KiB" },
  ]
}

export const budget = async (): Promise<void> => {
  const timed = await measure(candidates())
  const base = nanosOf(timed, "floor: hold + settle")
  const rows = timed.map(({ name, nanos }) => [name, (nanos / 1000).toFixed(2), `${(nanos / base).toFixed(2)}x`])
  console.log(table([["workload", "µs", "to hold + settle of the floor"], ...rows]))
  console.log()
  console.log(verdicts(targets(timed)))
  if (sunk === 0) throw new Error("no entry was recorded")
}
