/**
 * The state of one agent, layer by layer: what a policy reads.
 */
import type { Evidence, EventOf, Purpose, Resource, Rule, WaitKind } from "../event/Event.ts"
import type { ResultKind, StopReason } from "../event/StopReason.ts"

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
