/**
 * Writing down what was decided.
 */
import { amounts, type Hold, nonZero } from "../budget/Budget.ts"
import * as Content from "../event/Content.ts"
import type { Call, EventOf, Purpose } from "../event/Event.ts"
import type { Told } from "../model/Meter.ts"
import type { Fallback } from "../policy/Policy.ts"
import type { Proposal } from "../policy/Proposal.ts"
import type { Decided } from "./Decide.ts"
import type { Machine } from "./Machine.ts"

/**
 * A decision to call tools. Each call gets an id of ours, which no other call of the agent has: a wrap-up may follow calls
 * of its own step.
 */
export const calls = <A, R>(
  machine: Machine<A, R>,
  decided: Decided,
  purpose: Purpose,
  proposal: Extract<Proposal, { _tag: "Call" }>,
): ReadonlyArray<Call> => {
  const place = purpose === "wrap_up" ? `step-${machine.step}/wrap_up` : `step-${machine.step}`
  const proposed = proposal.calls.map((one, index): Call => ({
    call: `${place}/call-${index + 1}`,
    providerId: one.id ?? "",
    tool: one.tool,
    params: Content.fromJson(one.params ?? null),
  }))
  machine.record({ ...of(machine, decided, purpose), kind: "call", calls: proposed, ...textOf(proposal) })
  return proposed
}

/** A decision that the host cannot use. */
export const invalid = <A, R>(
  machine: Machine<A, R>,
  decided: Decided,
  purpose: Purpose,
  proposal: Extract<Proposal, { _tag: "Invalid" }>,
): void => machine.record({ ...of(machine, decided, purpose), kind: "invalid", why: proposal.why, ...textOf(proposal) })

/** A decision to finish; `why` says what is wrong with an answer that does not decode. */
export const answer = <A, R>(
  machine: Machine<A, R>,
  decided: Decided,
  purpose: Purpose,
  proposal: Extract<Proposal, { _tag: "Finish" }> & { readonly why: string | undefined },
): void => {
  const { why } = proposal
  const event = {
    ...of(machine, decided, purpose),
    answer: Content.fromJson(proposal.answer ?? null),
    ...textOf(proposal),
  }
  machine.record(
    why === undefined
      ? { ...event, kind: "finish" }
      : { ...event, kind: "invalid", why: `The answer does not have the form that was asked for: ${why}` },
  )
}

/** What a provider told about a call that is booked at its hold. A response that it keeps may be asked for later. */
export const reported = <A, R>(machine: Machine<A, R>, hold: Hold, told: Told): void => {
  const { model, servedBy, tier, response, usage } = told
  const raw = Object.entries(usage ?? {}).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, Number.isFinite(value) ? value : String(value)] as const],
  )
  const { agent, step } = machine
  const event: EventOf<"Reported"> = {
    _tag: "Reported",
    agent,
    step,
    bookedAt: hold.id,
    model,
    ...(servedBy === undefined ? {} : { servedBy }),
    ...(tier === undefined ? {} : { tier }),
    ...(response === undefined ? {} : { response }),
    ...(raw.length === 0 ? {} : { usage: Object.fromEntries(raw) }),
  }
  machine.record(event)
  machine.noteReport(event)
}

/** A model has failed for good; the next one is asked from here on, if there is one. */
export const fellBack = <A, R>(
  machine: Machine<A, R>,
  of: { readonly purpose: Purpose; readonly from: string; readonly fallback: Fallback },
): void => {
  const { purpose, from, fallback } = of
  const { to, unpriced } = fallback
  const { agent, step } = machine
  const next = to === undefined ? {} : { to: to.model, at: to.at }
  const event: EventOf<"FellBack"> = { _tag: "FellBack", agent, step, purpose, from, unpriced, ...next }
  machine.record(event)
  machine.noteFallback(event)
}

const textOf = (proposal: Proposal) => (proposal.text === undefined ? {} : { text: Content.fromText(proposal.text) })

const of = <A, R>(machine: Machine<A, R>, { attempt, decision }: Decided, purpose: Purpose) => ({
  _tag: "Decided" as const,
  agent: machine.agent,
  step: machine.step,
  attempt,
  purpose,
  used: nonZero(amounts(decision.used)),
  certainty: decision.certainty,
  ...(decision.model === undefined ? {} : { model: decision.model }),
  ...(decision.tier === undefined ? {} : { tier: decision.tier }),
  ...(decision.promptHash === undefined ? {} : { promptHash: decision.promptHash }),
})
