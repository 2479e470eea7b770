/**
 * Agents, tools and policies that tests are made of.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { Contract, Policy, Proposal } from "../../src/index.ts"

/** A policy that proposes one thing after the other, and the last one for ever. */
export const plays = (...proposals: ReadonlyArray<Proposal.Proposal | ((view: Policy.View) => Proposal.Proposal)>) =>
  Policy.make((view) => {
    const next = proposals[Math.min(view.turns.length, proposals.length - 1)]!
    return typeof next === "function" ? next(view) : next
  })

const parameters = Schema.Struct({ key: Schema.String, note: Schema.optionalKey(Schema.String) })

const made = <Name extends string>(name: Name, contract: Contract.Options) =>
  Contract.annotate(
    Tool.make(name, { description: name, parameters, success: Schema.String, failure: Schema.String }),
    contract,
  )

/** A tool of each kind. */
export const toolkit = Toolkit.make(
  made("read", { effect: "read", timeout: "10 seconds", retries: 0 }),
  made("write", { effect: "write", timeout: "10 seconds", whenUncertain: "tell" }),
  made("poll", { effect: "read", polling: true }),
  made("seek", { effect: "read", volatile: ["note"] }),
)

type Handle = (params: typeof parameters.Type) => Effect.Effect<string, string>

/** What the tools do: everything answers with its key, unless said otherwise. */
export const handled = (handlers: { readonly [name: string]: Handle } = {}) => {
  const echo: Handle = ({ key }) => Effect.succeed(key)
  return toolkit.toLayer({ read: echo, write: echo, poll: echo, seek: echo, ...handlers } as never)
}

export const read = (key: string) => ({ tool: "read", params: { key } })
export const write = (key: string) => ({ tool: "write", params: { key } })
export const ask = (agent: string, task = "a part") => ({ tool: agent, params: { task } })

export const calls = (...each: ReadonlyArray<Proposal.ProposedCall>) => Proposal.callAll(each)

/** Reads something new at each step and never finishes by itself, but answers when it is asked to wrap up. */
export const explorer = Policy.make((view) =>
  view.purpose === "wrap_up" ? Proposal.finish("what I have") : calls(read(`key ${view.step}`)),
)

/** No reserves: everything is explore, and nothing is kept for a wrap-up. */
export const bare = { reserves: {} } as const
