/**
 * Opening accounts for the children of one reply. All of a batch are admitted together, from the parent's explore as it
 * stands then, so that children asked for at once get equal parts and not a shrinking series.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Budget from "../budget/Budget.ts"
import { sentenceOf } from "../event/StopReason.ts"
import type { Ending } from "../loop/Loop.ts"
import type { ChildResult, Delegate, OpenedChild } from "../tool/Setting.ts"
import { type Agent, type Child, decodeTask } from "./Definition.ts"
import type { Run } from "./Run.ts"

interface Wish<R> {
  readonly child: Child<R>
  readonly id: string
  readonly task: string
}

/** Starting a child is one tool call of its parent. */
const charge: Budget.Grant = { toolCalls: 1 }

/** The children of an agent as the executor sees them. */
export const delegateOf = <A, R>(
  agent: Agent<A, R>,
  at: { readonly run: Run; readonly account: string },
  open: (child: Agent<never, R>, account: string, task: string) => OpenedChild,
): Delegate => {
  if (agent.children.length === 0) return noChildren
  const byName = new Map(agent.children.map((child) => [child.tool.name, child]))
  return {
    names: new Set(byName.keys()),
    decode: (_tool, params) =>
      decodeTask(typeof params === "string" ? asJson(params) : params).pipe(
        Effect.map(({ task }) => task),
        Effect.mapError((error) => ({ code: "EINVAL", message: error.message })),
      ),
    openAll: (batch) => {
      const wishes = batch.map((one): Wish<R> => {
        const child = byName.get(one.tool)!
        return { child, task: one.task, id: at.run.ledger.freshId(at.account, child.tool.name) }
      })
      const opened = carveAll(at.run.ledger, at.account, wishes)
      return wishes.map(({ child, id, task }) => Result.map(opened.get(id)!, () => open(child.agent, id, task)))
    },
    goOn: ({ tool, task }, account) => open(byName.get(tool)!.agent, account, task),
    endSuspended: () => at.run.endSuspendedBelow(at.account),
  }
}

/** Of an agent that knows no children: nothing of it is ever called but the end. */
const noChildren: Delegate = {
  names: new Set(),
  decode: (tool) => Effect.fail({ code: "ENOTOOL", message: `there is no child ${tool}` }),
  openAll: () => [],
  goOn: (call) => {
    throw new Error(`there is no child ${call.tool}`)
  },
  endSuspended: () => {},
}

const asJson = (text: string): unknown =>
  Result.getOrElse(
    Result.try((): unknown => JSON.parse(text)),
    () => text,
  )

type Carved = Map<string, Result.Result<Budget.Account, Budget.Refusal>>

/** Fixed asks first, in order, among all that are still to be carved; then equal parts of what is left for the others. */
const carveAll = <R>(ledger: Budget.Ledger, parent: string, wishes: ReadonlyArray<Wish<R>>): Carved => {
  const carved: Carved = new Map()
  const explore = exploreOf(ledger, parent)
  for (const wish of wishes) {
    const { ask } = wish.child
    if (ask === undefined) continue
    const rest = equalPart(exploreOf(ledger, parent), wishes.length - carved.size)
    const grant = { ...rest, ...ask }
    carved.set(wish.id, ledger.carve(parent, { ...openingOf(wish), ask: { _tag: "Exactly", grant }, charge }))
  }
  const even = wishes.filter((wish) => wish.child.ask === undefined)
  const results = ledger.carveAll(
    parent,
    even.map((wish) => ({ ...openingOf(wish), charge, floor: floorOf(wish.child), ...mostOf(wish.child, explore) })),
  )
  even.forEach((wish, index) => carved.set(wish.id, results[index]!))
  return carved
}

const openingOf = <R>(wish: Wish<R>): Budget.Opening => ({
  id: wish.id,
  name: wish.child.tool.name,
  reserves: wish.child.agent.reserves,
  window: wish.child.agent.window,
  wallClockMillis: wish.child.wallClockMillis,
})

const exploreOf = (ledger: Budget.Ledger, parent: string): Budget.Grant => ledger.reachable(parent, "explore")

const perCapped = (grant: Budget.Grant, f: (amount: number, dimension: Budget.Dimension) => number): Budget.Grant =>
  Object.fromEntries(
    Budget.dimensions.filter((d) => grant[d] !== undefined).map((d) => [d, Math.max(0, f(grant[d] ?? 0, d))]),
  )

/** An equal part of what is left once each of `count` children is charged. */
const equalPart = (left: Budget.Grant, count: number): Budget.Grant =>
  perCapped(left, (amount, d) => Math.floor((amount - count * (charge[d] ?? 0)) / count))

const mostOf = <R>(child: Child<R>, explore: Budget.Grant): { readonly most?: Budget.Grant } => {
  const { shareMillionths } = child
  if (shareMillionths === undefined) return {}
  const [million, rest] = [1_000_000, (amount: number) => ((amount % 1_000_000) * shareMillionths) / 1_000_000]
  return {
    most: perCapped(explore, (amount) => Math.floor(amount / million) * shareMillionths + Math.floor(rest(amount))),
  }
}

/** What a child cannot work without: what its parent says, and what its own answer and check need. */
const floorOf = <R>(child: Child<R>): Budget.Grant => {
  const { reserves } = child.agent
  if (reserves._tag === "Explicit") return child.atLeast
  const needed = Budget.add(Budget.amounts(reserves.answer), Budget.amounts(reserves.check))
  const stated = Budget.amounts(child.atLeast)
  return Object.fromEntries(Budget.dimensions.map((d) => [d, Math.max(needed[d], stated[d])]))
}

// --- results

/** What a child that has ended brings its parent. */
export const childResult = <R>(
  child: Agent<never, R>,
  account: string,
  run: Run,
  ending: Ending<never>,
): ChildResult => {
  const answer = ending.answer === undefined ? undefined : child.answer.encode(ending.answer)
  return resultOf({ name: child.name, account, ...ending, answer, untrusted: run.isUntrusted(account) })
}

const resultOf = (
  of: Pick<Ending<never>, "reason" | "result" | "text"> & {
    readonly name: string
    readonly account: string
    readonly answer: unknown
    readonly untrusted: boolean
  },
): ChildResult => {
  const { account: child, reason, untrusted } = of
  const answer = of.answer === undefined ? {} : { answer: of.answer }
  const text = of.text === undefined ? {} : { text: of.text }
  const ok = (data: unknown): ChildResult => ({
    _tag: "Ended",
    child,
    outcome: "ok",
    data,
    error: undefined,
    untrusted,
  })
  if (reason === "completed") return ok({ status: "completed", ...answer })
  if (of.result === "partial") return ok({ status: "stopped", reason, ...answer, ...text })
  const message = `${of.name} stopped without a result: ${reason}. ${sentenceOf(reason)}`
  const error = { code: "ESTOPPED", message }
  return { _tag: "Ended", child, outcome: "error", data: undefined, error, untrusted }
}
