/**
 * Random lives of a tree: commands drawn as small numbers, and what each means for the tree as it stands. Amounts are
 * drawn near the limits, where a lost or gained unit shows.
 */
import * as Arbitrary from "effect/Arbitrary"
import type * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { HoldRef } from "../../src/budget/Books.ts"
import { type Account, free } from "../../src/budget/Account.ts"
import type { Grant } from "../../src/budget/Dimension.ts"
import type { Refusal } from "../../src/budget/Refusal.ts"
import { forAgent, type Plan, type Reserve, reserves } from "../../src/budget/Reserve.ts"
import type { WindowPlan } from "../../src/budget/Window.ts"
import { max, type Tree } from "./tree.ts"

/** Each number equally often: integers would come mostly from the edges. */
const upTo = (maximum: number) => Schema.Literals(Array.from({ length: maximum + 1 }, (_, n) => n))

/** As often as they come in a run: mostly holds and their ends. */
const names = [
  ...(["hold", "hold", "hold", "hold", "hold", "hold", "carve", "carve", "carve", "carve", "carveAll"] as const),
  ...(["settle", "settle", "settle", "settle", "void", "assume", "close", "close", "close"] as const),
  ...(["move", "amend", "pause", "pause", "resume", "resume", "freeze", "wait"] as const),
  ...(["extendHold", "extendHold", "adjust", "adjust", "adjust", "topUp", "topUp", "reclaim", "reclaim"] as const),
]

const sizes = 18

const Command = Schema.Struct({
  name: upTo(names.length - 1),
  account: upTo(11),
  hold: upTo(5),
  reserve: upTo(7),
  other: upTo(3),
  sizes: Schema.Tuple([upTo(sizes - 1), upTo(sizes - 1), upTo(sizes - 1)]),
  plan: upTo(2),
  chance: upTo(7),
})

export type Command = (typeof Command)["Type"]

/** Where a life starts: which root, and what happens then. */
export const Life = Arbitrary.all({
  root: Arbitrary.schema(upTo(5)),
  plan: Arbitrary.schema(upTo(2)),
  deadline: Arbitrary.schema(Schema.Boolean),
  commands: Arbitrary.array(Arbitrary.schema(Command), { minLength: 1, maxLength: 60 }),
})

export const roots: ReadonlyArray<Grant> = [
  { steps: 10, money: 1000, toolCalls: 9 },
  { steps: 5, money: max, toolCalls: 3 },
  { steps: 2 ** 31, money: 2 ** 31 - 1, toolCalls: 2 ** 31 + 1 },
  { steps: 3, toolCalls: 4 },
  { steps: max, money: max, toolCalls: max },
  { money: 7 },
]

export const plans: ReadonlyArray<Plan> = [
  { _tag: "Explicit" },
  forAgent({ check: { steps: 1 }, answer: { ticks: 0 } }),
  { _tag: "Explicit", output: { steps: 1 }, verify: { steps: 1 }, retry: { steps: 1 } },
]

const windows: ReadonlyArray<WindowPlan> = [
  { _tag: "Scope" },
  { _tag: "Agent", verifier: true },
  { _tag: "Agent", verifier: false },
]

/** An amount near what is free in a reserve (`near`), or near what it began with, or at the edge of exact numbers. */
const sizeOf = (size: number, near: number | undefined, opening: number): number | undefined => {
  const around = near ?? 7
  const [half, quarter] = [Math.floor(around / 2), Math.floor(around / 4)]
  const usual = [undefined, 0, 1, 1, 2, 3, half, half, quarter, quarter, quarter]
  const amount = [...usual, around, around, around - 1, around + 1, opening, 2 ** 31, max][size]
  return amount === undefined ? undefined : Math.min(max, Math.max(0, amount))
}

const drawn = ["steps", "money", "toolCalls"] as const

const grantNear = (command: Command, self: Account, near: (d: (typeof drawn)[number]) => number | undefined): Grant =>
  Object.fromEntries(
    drawn.flatMap((d, n) => {
      const size = sizeOf(command.sizes[n]!, near(d), self.opening.explore[d])
      return size === undefined ? [] : [[d, size]]
    }),
  )

/** What was done, and what came of it. */
export interface Done {
  readonly name: (typeof names)[number]
  readonly account: Account
  readonly reserve: Reserve
  readonly hold: HoldRef | undefined
  readonly grant: Grant
  readonly charge: Grant
  readonly results: Results
  /** Delivers the same once more; absent where nothing tells a delivery from a new wish: no id, or no operation. */
  readonly again?: () => Results
}

type Results = ReadonlyArray<Result.Result<unknown, Refusal>>
type Doing = Omit<Done, "results" | "again">

const nothing = (doing: Doing): Done => ({ ...doing, results: [] })
const once = (doing: Doing, run: () => Results): Done => ({ ...doing, results: run() })
const repeatable = (doing: Doing, run: () => Results): Done => ({ ...doing, results: run(), again: run })

const pick = <A>(among: ReadonlyArray<A>, index: number): A => among[index % among.length]!

/** Where a command has a chance; now and then one goes elsewhere, to be refused. */
const fits = (name: Done["name"], account: Account): boolean => {
  switch (name) {
    case "settle":
    case "void":
    case "assume":
    case "extendHold":
      return account.pendingHolds > 0
    case "resume":
      return account.pausedBy === account.id
    case "close":
      return account.pendingHolds + account.openChildren === 0 && account.state !== "Closed"
    case "topUp":
    case "reclaim":
      return account.state === "Open" && account.parent !== undefined
    default:
      return account.state === "Open"
  }
}

/** Every hold that was assumed, with what was held; mostly those that were not corrected yet. */
const assumedIn = (tree: Tree, command: Command) => {
  const adjusted = new Set(
    tree.entries.flatMap((one) => (one._tag === "Adjusted" ? [`${one.account} ${one.hold}`] : [])),
  )
  return tree.entries.flatMap((one) =>
    one._tag === "Assumed" && (command.chance === 3 || !adjusted.has(`${one.account} ${one.hold}`))
      ? [{ account: one.account, id: one.hold, held: one.held }]
      : [],
  )
}

/** Carries a command out on the tree as it stands; `number` makes its ids unique, or not: ids are used again at times. */
export const carryOut = (tree: Tree, command: Command, number: number): Done => {
  const { ledger } = tree
  const { accounts } = ledger
  const name = names[command.name]!
  const fitting = accounts.filter((account) => fits(name, account))
  const stray = command.chance === 2 || (name === "close" && command.chance === 5)
  const self = pick(stray || fitting.length === 0 ? accounts : fitting, command.account)
  // Half of all work is exploring.
  const reserve = reserves[Math.max(0, command.reserve - 4)]!
  const pending = ledger.pendingHolds(self.id)
  const hold = pending[command.hold % Math.max(1, pending.length)]
  const freeIn = (account: Account, from: Reserve) => (d: (typeof drawn)[number]) =>
    account.caps[d] ? free(account.funds[from], d) : undefined
  const available = freeIn(self, reserve)
  const charge: Grant = command.chance % 2 === 0 ? { toolCalls: 1 } : {}
  const done = { name, account: self, reserve, hold, charge, grant: grantNear(command, self, available) }
  const id = command.chance === 1 ? self.id : `n${number}`
  const unnamed = command.chance === 4 && command.hold < 3
  /** Under an id, which may be in use, or without one. */
  const named = (doing: Doing, run: (id?: string) => Result.Result<unknown, Refusal>): Done =>
    unnamed ? once(doing, () => [run()]) : repeatable(doing, () => [run(command.chance === 1 ? "again" : `n${number}`)])
  switch (name) {
    case "hold": {
      const ref = { account: self.id, id: command.chance === 1 ? "again" : `n${number}` }
      return repeatable({ ...done, hold: ref }, () => [ledger.hold(ref, reserve, done.grant)])
    }
    case "extendHold": {
      const ref = hold ?? { account: self.id, id: "none" }
      if (hold === undefined && !stray) return nothing(done)
      const grant = grantNear(command, self, freeIn(self, hold?.reserve ?? "explore"))
      const doing = { ...done, reserve: hold?.reserve ?? reserve, hold: ref, grant }
      return named(doing, (id) => ledger.extendHold(ref, grant, id))
    }
    case "carve":
    case "carveAll":
      return accounts.length >= 12 ? nothing(done) : open(tree, command, number, { ...done, id })
    case "settle": {
      if (hold === undefined && !stray) return nothing(done)
      const near = command.chance < 5 && hold !== undefined ? (d: (typeof drawn)[number]) => hold.amounts[d] : available
      const bill = grantNear(command, self, near)
      const ref = hold ?? { account: self.id, id: "none" }
      return repeatable({ ...done, grant: bill }, () => [ledger.settle(ref, bill)])
    }
    case "void":
    case "assume":
      if (hold === undefined && !stray) return nothing(done)
      return repeatable(done, () => [ledger[name](hold ?? { account: self.id, id: "none" })])
    case "adjust": {
      const assumed = assumedIn(tree, command)
      if (assumed.length === 0 && !stray) return nothing(done)
      const found = stray ? undefined : pick(assumed, command.account)
      const ref = found ?? hold ?? { account: self.id, id: "none" }
      const account = ledger.account(ref.account)
      const bill = grantNear(command, account, (d) => found?.held[d] ?? 0)
      return repeatable({ ...done, account, hold: ref, grant: bill }, () => [ledger.adjust(ref, bill)])
    }
    case "close":
      // A closed root ends the life: seldom.
      if (self.parent === undefined && command.chance + command.hold > 0) return nothing(done)
      return repeatable(done, () => [ledger.close(self.id)])
    case "move":
      return named(done, (id) => ledger.move(self.id, reserve, reserves[command.other]!, done.grant, id))
    case "amend": {
      const grant = grantNear(command, ledger.root, (d) => grantedOf(ledger.root, d))
      return named({ ...done, account: ledger.root, grant }, (id) => ledger.amend(grant, id))
    }
    case "topUp": {
      const above = self.parent === undefined ? self : ledger.account(self.parent.id)
      const grant = grantNear(command, self, freeIn(above, self.parent?.reserve ?? "explore"))
      return named({ ...done, grant }, (id) => ledger.topUp(self.id, grant, id))
    }
    case "reclaim": {
      const grant = grantNear(command, self, freeIn(self, "explore"))
      return named({ ...done, grant }, (id) => ledger.reclaim(self.id, grant, id))
    }
    case "pause":
      if (self.parent === undefined && command.chance < 6) return nothing(done)
      return once(done, () => [ledger.pause(self.id, "pause")])
    case "resume":
      if (fitting.length === 0 && !stray) return nothing(done)
      return once(done, () => [ledger.resume(self.id)])
    case "freeze":
      if (command.chance > 3 && (self.parent !== undefined || command.chance > 6))
        ledger.freeze(self.id, `freeze ${number}`, { closingWork: command.chance % 2 === 0 })
      return nothing(done)
    case "wait":
      tree.clock.millis += command.hold
      return nothing(done)
  }
}

/** Carves one child, or as many as there are, in equal parts. */
const open = (tree: Tree, command: Command, number: number, doing: Doing & { readonly id: string }): Done => {
  const { account, charge, grant, id, reserve } = doing
  const opening = {
    name: `n${number}`,
    reserves: plans[command.plan]!,
    window: windows[command.plan]!,
    ...(command.chance === 0 ? { wallClockMillis: 40 } : {}),
    charge,
  }
  if (doing.name === "carve") {
    const atMost = { _tag: "AtMost" as const, grant, floor: command.chance > 5 ? { steps: 1 } : {} }
    const ask = command.chance > 3 ? atMost : { _tag: "Exactly" as const, grant }
    return repeatable(doing, () => [tree.ledger.carve(account.id, { ...opening, id, reserve, ask })])
  }
  const count = Math.min(command.chance, 12 - tree.ledger.accounts.length)
  const one = (n: number) => ({ ...opening, id: `${id}-${n}`, floor: { steps: command.hold % 3 } })
  const batch = Array.from({ length: count }, (_, n) => one(n))
  return repeatable(doing, () => tree.ledger.carveAll(account.id, batch, reserve))
}

const grantedOf = (self: Account, d: (typeof drawn)[number]): number | undefined =>
  self.caps[d] ? reserves.reduce((sum, reserve) => sum + self.funds[reserve].allocated[d], 0) : undefined
