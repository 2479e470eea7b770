/**
 * A bank whose replies are lost, and clerks who pay through it.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { Agent, type Budget, Contract, type Event, type Policy, ToolError } from "../../src/index.ts"
import { type Any, driven, lawful, pass, resumed, stands } from "./driven.ts"
import { all } from "./journalled.ts"
import { bare } from "./scripts.ts"

const Amount = Schema.Number.check(Schema.isGreaterThan(0))
export const parameters = Schema.Struct({ to: Schema.String, cents: Amount })

export type Lost = "reply" | "time" | "nothing"

/** A bank whose first replies are lost, each after the payment was made. It knows the keys of what was paid. */
export const bank = (contract: Contract.Options, lost: ReadonlyArray<Lost> = ["reply"]) => {
  const paid: Array<string> = []
  const keys = new Map<string, string>()
  let asked = 0
  const Pay = Contract.annotate(
    Tool.make("pay", { parameters, success: Schema.String, failure: ToolError.ToolError }),
    contract,
  )
  const toolkit = Toolkit.make(Pay)
  const handlers = toolkit.toLayer({
    pay: ({ to, cents }) =>
      Effect.gen(function* () {
        const { key } = (yield* Contract.CurrentCall)!
        const known = contract.idempotency === "key" ? keys.get(key) : undefined
        const receipt = known ?? `receipt ${keys.size + 1}`
        if (known === undefined) {
          keys.set(contract.idempotency === "key" ? key : `${keys.size}`, receipt)
          paid.push(`${to} ${cents}`)
        }
        const fault = lost[asked++] ?? "nothing"
        if (fault === "time") return yield* Effect.never
        return fault === "reply" ? yield* Effect.fail(ToolError.lost("ELOST", "no reply")) : receipt
      }),
  })
  const clerk = (policy: Policy.Policy, settings: Partial<Agent.Settings> = {}) =>
    Agent.make("clerk", { policy, toolkit, ...bare, settings }) as unknown as Any
  return { paid, handlers, clerk }
}

export const pay = (cents: number, to = "ada") => ({ tool: "pay", params: { to, cents } })
export const budget: Budget.Input = { steps: 20, toolCalls: 20, wallClock: "1 day" }

export type Bank = ReturnType<typeof bank>

/** Runs for an hour, to the end or a question. */
export const lives = (
  at: Bank,
  policy: Policy.Policy,
  options: { toolCalls?: number; settings?: Partial<Agent.Settings> } = {},
) =>
  Effect.gen(function* () {
    const events: Array<Event.Recorded> = []
    const agent = at.clerk(policy, options.settings)
    const given = { ...budget, toolCalls: options.toolCalls ?? 20 }
    const outcome = yield* driven(agent, { budget: given, events }, (handle) =>
      Effect.andThen(pass(3_600_000), handle.await),
    )
    if (outcome._tag === "Suspended") stands(events)
    else lawful(outcome, events)
    const answered = (answers: ReadonlyArray<Agent.Answer>) =>
      Effect.tap(resumed(agent, events, answers), (ended) =>
        Effect.sync(() => (ended._tag === "Suspended" ? stands(events) : lawful(ended, events))),
      )
    return { outcome, events, answered }
  }).pipe(Effect.provide(at.handlers))

export const withBank = <A, E>(at: Bank, effect: Effect.Effect<A, E>) => Effect.provide(effect, at.handlers)

export const lastData = (events: ReadonlyArray<Event.Recorded>) =>
  all(events, "CallEnded").map((one) => (one.result === undefined ? one.code : JSON.parse(one.result.text!)))
