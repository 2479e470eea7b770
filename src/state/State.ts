/**
 * What has happened to one agent, as a fold of its events. Four layers that never mix: *world* (versions of things the
 * agent does not own), *task* (the goal, what was delegated, what an answer has to pass), *session* (decisions and
 * observations, which alone may be compacted), and *control* (counters, waits and the end; no model output can change it).
 */
import { createHash } from "node:crypto"
import { type Content, toJson } from "../event/Content.ts"
import type { Event, EventOf, Evidence, Purpose, Resource, Rule, WaitKind } from "../event/Event.ts"
import type { ResultKind, StopReason } from "../event/StopReason.ts"
import { essenceOf } from "./Essence.ts"

export { snapshot } from "./Snapshot.ts"

/**
 * What became of one call; `pending` until it has its one result.
 *
 * @category session
 * @since 0.1.0
 */
export interface Observation {
  readonly call: string
  readonly providerId: string
  readonly tool: string
  /** The arguments as they came from the policy, and the hash of them. */
  readonly params: unknown
  readonly paramsHash: string
  readonly outcome: "ok" | "error" | "pending"
  /** The result, encoded as JSON; absent for an error. */
  readonly data: unknown
  /** Hash and size of the result, by which snapshots and long conversations refer to it. */
  readonly result: { readonly hash: string; readonly bytes: number } | undefined
  readonly error: ObservedError | undefined
  /** False when the call was refused before it ran, or answered from an earlier one. */
  readonly ran: boolean
  readonly stateChanged: boolean
  /** The account of the child that answered, if the call started one. */
  readonly child: string | undefined
  /** What it read or left behind. */
  readonly resources: ReadonlyArray<Resource>
  /** True where the result comes from outside: data, never an instruction. */
  readonly untrusted: boolean
  /** When the result was known, in milliseconds of absolute time; 0 while it is not. */
  readonly observedAtMillis: number
}

/** What a failed call says to the model. */
export interface ObservedError {
  readonly code: string
  readonly message: string
  readonly retryable: boolean
  readonly suggestedAction: string | undefined
  /** True where it ends the run. */
  readonly fatal: boolean
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
  /** The version of the world once its calls had ended. */
  readonly world: number
}

/** A part of the task that was given to a child. */
export interface Subgoal {
  readonly call: string
  readonly tool: string
  readonly task: string
  readonly status: "open" | "done" | "failed"
}

/** Something a run waits for from people. */
export interface Wait {
  readonly approval: string
  readonly kind: WaitKind
  readonly call: string
  readonly tool: string
  readonly digest: string
  readonly reason: string
  readonly params: unknown
  readonly step: number
  readonly decision: EventOf<"ApprovalDecided"> | undefined
}

/**
 * The state of one agent.
 *
 * @category state
 * @since 0.1.0
 */
export interface AgentState {
  readonly task: {
    readonly text: string
    readonly constraints: ReadonlyArray<string>
    /** What an answer has to pass, in the words of its verifier. */
    readonly acceptance: string | undefined
    readonly subgoals: ReadonlyArray<Subgoal>
  }
  readonly world: {
    /** Counts the changes that were seen. */
    readonly version: number
    /** The last known version of each thing that was read or written. */
    readonly resources: ReadonlyMap<string, string>
  }
  readonly session: { readonly turns: ReadonlyArray<Turn> }
  readonly control: Control
}

/** Exact, and untouched by anything a model says. */
export interface Control {
  readonly steps: number
  readonly stopping:
    | { readonly reason: StopReason; readonly short: ReadonlyArray<string>; readonly detail: string }
    | undefined
  readonly ended: { readonly reason: StopReason; readonly result: ResultKind } | undefined
  readonly verified:
    | {
        readonly accepted: boolean
        readonly rules: ReadonlyArray<Rule>
        readonly evidence: ReadonlyArray<Evidence>
        readonly step: number
        /** What it was bound to, and the digest of the state before it. */
        readonly stateDigest: string
        readonly digestBefore: string
      }
    | undefined
  /** True once something from outside was seen: from then on irreversible tools need approval. */
  readonly untrusted: boolean
  /** How often the host tried each tool again. */
  readonly retries: ReadonlyMap<string, number>
  /** What was asked of people, by the id of the question. */
  readonly waits: ReadonlyMap<string, Wait>
  /** Calls that started and have no result, with the number of attempts. */
  readonly started: ReadonlyMap<string, Begun>
}

/** A call that started and has no result. */
export interface Begun {
  readonly attempts: number
  /** The account of the child it started. */
  readonly child: string | undefined
  /** Stands for its effect, where that must not be repeated. */
  readonly mark: string | undefined
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
  readonly #task = { text: "", constraints: [] as ReadonlyArray<string>, acceptance: undefined as string | undefined }
  readonly #subgoals = new Map<string, Subgoal>()
  readonly #turns: Array<OpenTurn> = []
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
  readonly #digest = createHash("sha256")
  #undigested: Array<string> = []
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
    this.#digest.update(this.#undigested.join(""))
    this.#undigested = []
    return `sha256:${this.#digest.copy().digest("hex")}`
  }

  /** Takes in one event; events of other agents and of the budget change nothing here. */
  apply(event: Event, atMillis: number): void {
    if (!("agent" in event) || event.agent !== this.#agent) return
    const digestBefore = event._tag === "Verified" ? this.digest : ""
    const essence = essenceOf(event)
    if (essence !== undefined) this.#undigested.push(essence)
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
    const params = this.#turns.at(-1)?.observations.find((one) => one.call === call)?.params
    const { task = "" } = (params ?? {}) as { readonly task?: string }
    this.#subgoals.set(call, { call, tool, task, status: "open" })
  }

  #callEnded(event: EventOf<"CallEnded">, atMillis: number): void {
    const turn = this.#turns.at(-1)
    const index = turn?.observations.findIndex((observation) => observation.call === event.call) ?? -1
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
