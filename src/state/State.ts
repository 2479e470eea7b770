/**
 * What has happened to one agent, as a fold of its events. Four layers that never mix: *world* (facts about things the
 * agent does not own), *task* (the goal), *session* (decisions and observations, which alone may be compacted), and
 * *control* (counters and the end; no model output can change it).
 */
import type { Event, Purpose, Rule } from "../event/Event.ts"
import type { ResultKind, StopReason } from "../event/StopReason.ts"
import { digest, toJson } from "../event/Content.ts"

/**
 * What became of one call. Every call has exactly one.
 *
 * @category session
 * @since 0.1.0
 */
export interface Observation {
  readonly call: string
  readonly providerId: string
  readonly tool: string
  /** The arguments as they came from the policy. */
  readonly params: unknown
  readonly outcome: "ok" | "error"
  /** The result, encoded as JSON; absent for an error. */
  readonly data: unknown
  readonly error: { readonly code: string; readonly message: string; readonly retryable: boolean } | undefined
  /** False when the call was refused before it ran. */
  readonly ran: boolean
  readonly stateChanged: boolean
  /** The account of the child that answered, if the call started one. */
  readonly child: string | undefined
}

/**
 * One decision and what came of it. `feedback` is what the host has to say about it: why it could not be used, or why
 * the answer was not accepted.
 *
 * @category session
 * @since 0.1.0
 */
export interface Turn {
  readonly step: number
  readonly purpose: Purpose
  readonly kind: "call" | "finish" | "invalid"
  readonly text: string | undefined
  readonly answer: unknown
  readonly observations: ReadonlyArray<Observation>
  readonly feedback: ReadonlyArray<string>
}

/**
 * The state of one agent.
 *
 * @category state
 * @since 0.1.0
 */
export interface AgentState {
  readonly task: { readonly text: string }
  readonly world: { readonly version: number }
  readonly session: { readonly turns: ReadonlyArray<Turn> }
  readonly control: {
    readonly steps: number
    readonly stopping:
      | { readonly reason: StopReason; readonly short: ReadonlyArray<string>; readonly detail: string }
      | undefined
    readonly ended: { readonly reason: StopReason; readonly result: ResultKind } | undefined
    readonly verified: { readonly accepted: boolean; readonly rules: ReadonlyArray<Rule> } | undefined
  }
}

type Mutable<A> = { -readonly [K in keyof A]: A[K] }

interface OpenTurn extends Mutable<Turn> {
  observations: Array<Observation>
  feedback: Array<string>
}

/**
 * The state of one agent while its events come in. Appending costs the same at any length.
 *
 * @category state
 * @since 0.1.0
 */
export class Fold {
  readonly #agent: string
  readonly #turns: Array<OpenTurn> = []
  #task = ""
  #version = 0
  readonly #control: Mutable<AgentState["control"]> = {
    steps: 0,
    stopping: undefined,
    ended: undefined,
    verified: undefined,
  }

  constructor(agent: string) {
    this.#agent = agent
  }

  get state(): AgentState {
    return {
      task: { text: this.#task },
      world: { version: this.#version },
      session: { turns: this.#turns },
      control: this.#control,
    }
  }

  /** Takes in one event; events of other agents and of the budget change nothing here. */
  apply(event: Event): void {
    if (!("agent" in event) || event.agent !== this.#agent) return
    switch (event._tag) {
      case "AgentStarted":
        this.#task = event.task.text ?? ""
        return
      case "Decided":
        return this.#decided(event)
      case "DecisionFailed":
        this.#control.steps = event.step
        return
      case "CallEnded":
        return this.#callEnded(event)
      case "Verified":
        this.#control.verified = { accepted: event.accepted, rules: event.rules }
        if (!event.accepted) this.#say(rejection(event.rules))
        return
      case "Stopping":
        this.#control.stopping ??= { reason: event.reason, short: event.short, detail: event.detail }
        return
      case "AgentEnded":
        this.#control.ended = { reason: event.reason, result: event.result }
        return
      default:
        return
    }
  }

  #decided(event: Extract<Event, { _tag: "Decided" }>): void {
    this.#control.steps = event.step
    this.#turns.push({
      step: event.step,
      purpose: event.purpose,
      kind: event.kind,
      text: event.text?.text,
      answer: event.answer === undefined ? undefined : toJson(event.answer),
      feedback: event.why === undefined ? [] : [event.why],
      observations: (event.calls ?? []).map((call) => ({
        call: call.call,
        providerId: call.providerId,
        tool: call.tool,
        params: toJson(call.params),
        outcome: "error",
        data: undefined,
        error: { code: "EPENDING", message: "no result yet", retryable: false },
        ran: false,
        stateChanged: false,
        child: undefined,
      })),
    })
  }

  #callEnded(event: Extract<Event, { _tag: "CallEnded" }>): void {
    const turn = this.#turns.at(-1)
    const index = turn?.observations.findIndex((observation) => observation.call === event.call) ?? -1
    if (turn === undefined || index < 0) return
    if (event.stateChanged) this.#version++
    turn.observations[index] = {
      ...turn.observations[index]!,
      outcome: event.outcome,
      data: event.outcome === "ok" && event.result !== undefined ? toJson(event.result) : undefined,
      error:
        event.outcome === "ok"
          ? undefined
          : { code: event.code ?? "EFAILED", message: event.message ?? "", retryable: event.retryable },
      ran: event.ran,
      stateChanged: event.stateChanged,
      child: event.child,
    }
  }

  #say(text: string): void {
    this.#turns.at(-1)?.feedback.push(text)
  }
}

const rejection = (rules: ReadonlyArray<Rule>): string =>
  `The answer was not accepted. ${rules
    .filter((rule) => !rule.passed)
    .map((rule) => `${rule.name}: ${rule.detail}`)
    .join("; ")}`

/** A digest of what an agent knows and has done: what a verification is bound to. */
export const digestOf = (state: AgentState): string =>
  digest(JSON.stringify([state.task.text, state.world.version, state.session.turns]))
