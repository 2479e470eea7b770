/**
 * What has happened to one agent, as a fold of its events. Four layers that never mix: *world* (versions of things the
 * agent does not own), *task* (the goal, what was delegated, what an answer has to pass), *session* (decisions and
 * observations, which alone may be compacted), and *control* (counters, waits and the end; no model output can change it).
 */
import { createHash, type Hash } from "node:crypto"
import { type Content, digest, toJson } from "../event/Content.ts"
import type { Event, EventOf, Rule } from "../event/Event.ts"
import type { AgentState, Begun, Control, Observation, ObservedError, Subgoal, Turn, Wait } from "./AgentState.ts"
import { essenceOf } from "./Essence.ts"

export type { AgentState, Begun, Control, Observation, ObservedError, Subgoal, Turn, Wait } from "./AgentState.ts"
export { snapshot } from "./Snapshot.ts"

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
  readonly #task = { text: "", constraints: [] as ReadonlyArray<string>, acceptance: undefined as string | undefined }
  readonly #subgoals = new Map<string, Subgoal>()
  readonly #turns: Array<OpenTurn> = []
  /** Where the calls of the last turn stand in it. */
  #places: ReadonlyMap<string, number> | undefined
  readonly #resources = new Map<string, string>()
  #version = 0
  readonly #retries = new Map<string, number>()
  readonly #waits = new Map<string, Wait>()
  readonly #started = new Map<string, Begun>()
  readonly #control: Mutable<Control> = {
    steps: 0,
    stopping: undefined,
    ended: undefined,
    verified: undefined,
    untrusted: false,
    retries: this.#retries,
    waits: this.#waits,
    started: this.#started,
  }
  /** Made once there is much to digest: it is costly, and most agents live shortly. */
  #digest: Hash | undefined
  #undigested: Array<string> = []
  #undigestedLength = 0
  readonly #state: AgentState

  constructor(agent: string) {
    this.#agent = agent
    const [version, subgoals] = [() => this.#version, this.#subgoals]
    const task = Object.defineProperty(this.#task, "subgoals", { enumerable: true, get: () => [...subgoals.values()] })
    this.#state = {
      task: task as unknown as AgentState["task"],
      world: {
        get version() {
          return version()
        },
        resources: this.#resources,
      },
      session: { turns: this.#turns },
      control: this.#control,
    }
  }

  /** The state as it is now; it changes as events come in. */
  get state(): AgentState {
    return this.#state
  }

  /**
   * A digest of what the agent knows and has done. It is made of hashes, so that it is the same whether or not the texts
   * were kept.
   */
  get digest(): string {
    if (this.#digest === undefined) return digest(this.#undigested.join(""))
    return `sha256:${this.#digested().copy().digest("hex")}`
  }

  #digested(): Hash {
    this.#digest ??= createHash("sha256")
    this.#digest.update(this.#undigested.join(""))
    this.#undigested = []
    this.#undigestedLength = 0
    return this.#digest
  }

  /** Takes in one event; events of other agents and of the budget change nothing here. */
  apply(event: Event, atMillis: number): void {
    if (!("agent" in event) || event.agent !== this.#agent) return
    const digestBefore = event._tag === "Verified" ? this.digest : ""
    const essence = essenceOf(event)
    if (essence !== undefined) {
      this.#undigested.push(essence)
      this.#undigestedLength += essence.length
      if (this.#undigestedLength > longText) this.#digested()
    }
    switch (event._tag) {
      case "AgentStarted":
        this.#task.text = event.task.text ?? ""
        this.#task.constraints = event.constraints
        this.#task.acceptance = event.acceptance
        this.#control.untrusted ||= event.untrusted ?? false
        return
      case "Decided":
        return this.#decided(event)
      case "DecisionFailed":
        this.#control.steps = event.step
        return
      case "CallStarted":
        return this.#callStarted(event)
      case "CallFailed":
        this.#retries.set(event.tool, (this.#retries.get(event.tool) ?? 0) + 1)
        return
      case "CallEnded":
        return this.#callEnded(event, atMillis)
      case "ApprovalRequested":
      case "ApprovalDecided":
        return this.#waited(event)
      case "Verified":
        return this.#verified(event, digestBefore)
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

  #decided(event: EventOf<"Decided">): void {
    this.#control.steps = event.step
    this.#places = undefined
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
        paramsHash: call.params.hash,
        ...unknownYet,
      })),
      world: this.#version,
    })
  }

  #callStarted(event: EventOf<"CallStarted">): void {
    const { call, tool, child } = event
    this.#started.set(call, { attempts: event.attempt, child, mark: event.mark })
    if (child === undefined) return
    const params = this.#turns.at(-1)?.observations[this.#placeOf(call)]?.params
    const { task = "" } = (params ?? {}) as { readonly task?: string }
    this.#subgoals.set(call, { call, tool, task, status: "open" })
  }

  #callEnded(event: EventOf<"CallEnded">, atMillis: number): void {
    const turn = this.#turns.at(-1)
    const index = this.#placeOf(event.call)
    this.#started.delete(event.call)
    if (turn === undefined || index < 0) return
    const pending = turn.observations[index]!
    turn.observations[index] = {
      call: pending.call,
      providerId: pending.providerId,
      tool: pending.tool,
      params: pending.params,
      paramsHash: pending.paramsHash,
      outcome: event.outcome,
      data: event.outcome === "ok" && event.result !== undefined ? toJson(event.result) : undefined,
      result: referenceOf(event.result),
      error: event.outcome === "ok" ? undefined : errorOf(event),
      ran: event.ran,
      stateChanged: event.stateChanged,
      child: event.child,
      resources: event.resources ?? [],
      untrusted: event.untrusted ?? false,
      observedAtMillis: atMillis,
    }
    this.#learn(event)
    turn.world = this.#version
    const subgoal = this.#subgoals.get(event.call)
    if (subgoal !== undefined) {
      this.#subgoals.set(event.call, { ...subgoal, status: event.outcome === "ok" ? "done" : "failed" })
    }
    if (event.untrusted === true) this.#control.untrusted = true
  }

  /** Where a call stands in the last turn, or -1. A turn may have very many. */
  #placeOf(call: string): number {
    const observations = this.#turns.at(-1)?.observations ?? []
    if (observations.length <= 8) return observations.findIndex((one) => one.call === call)
    this.#places ??= new Map(observations.map((one, index) => [one.call, index]))
    return this.#places.get(call) ?? -1
  }

  /** Counts a change where something is not as it was, or where a call says that it changed something. */
  #learn(event: EventOf<"CallEnded">): void {
    const resources = event.resources ?? []
    let moved = event.stateChanged && resources.length === 0
    for (const { path, version } of resources) {
      const known = this.#resources.get(path)
      if (known !== version && (known !== undefined || event.stateChanged)) moved = true
      this.#resources.set(path, version)
    }
    if (moved) this.#version++
  }

  #waited(event: EventOf<"ApprovalRequested"> | EventOf<"ApprovalDecided">): void {
    if (event._tag === "ApprovalRequested") {
      const { approval, kind, call, tool, reason, step } = event
      const params = toJson(event.params)
      this.#waits.set(approval, {
        approval,
        kind,
        call,
        tool,
        digest: event.digest,
        reason,
        params,
        step,
        decision: undefined,
      })
      return
    }
    const wait = this.#waits.get(event.approval)
    if (wait !== undefined) this.#waits.set(event.approval, { ...wait, decision: event })
  }

  #verified(event: EventOf<"Verified">, digestBefore: string): void {
    const { accepted, rules, evidence, step, stateDigest } = event
    this.#control.verified = { accepted, rules, evidence, step, stateDigest, digestBefore }
    if (!accepted) this.#turns.at(-1)?.feedback.push(rejection(rules))
  }
}

const longText = 8_192

const unknownYet = {
  outcome: "pending",
  data: undefined,
  result: undefined,
  error: undefined,
  ran: false,
  stateChanged: false,
  child: undefined,
  resources: [],
  untrusted: false,
  observedAtMillis: 0,
} as const

const referenceOf = (content: Content | undefined): Observation["result"] =>
  content === undefined ? undefined : { hash: content.hash, bytes: content.bytes }

const errorOf = (event: EventOf<"CallEnded">): ObservedError => ({
  code: event.code ?? "EFAILED",
  message: event.message ?? "",
  retryable: event.retryable,
  suggestedAction: event.suggestedAction,
  fatal: event.fatal ?? false,
})

const rejection = (rules: ReadonlyArray<Rule>): string =>
  `The answer was not accepted. ${rules
    .filter((rule) => !rule.passed)
    .map((rule) => `${rule.name}: ${rule.detail}`)
    .join("; ")}`
