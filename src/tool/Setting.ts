/**
 * What the executor needs to know of the agent whose calls it runs, and of what stands above it.
 */
import type * as Effect from "effect/Effect"
import type * as Prompt from "effect/ai/Prompt"
import type * as Result from "effect/Result"
import type { Hold, Purse, Refusal } from "../budget/Budget.ts"
import type { Call, Event } from "../event/Event.ts"
import type { AgentState } from "../state/State.ts"
import type { CallResult, Ending, Refused } from "./CallResult.ts"
import type { EffectLedger, Receipt } from "./EffectLedger.ts"
import type { Permissions } from "./Permission.ts"
import type { Runnable, ToolFailure, ToolSet } from "./ToolSet.ts"

/** What a child agent brought back. */
export interface ChildResult {
  readonly _tag: "Ended"
  readonly child: string
  readonly outcome: "ok" | "error"
  readonly data: unknown
  readonly error: ToolFailure | undefined
  /** True where it saw something from outside. */
  readonly untrusted: boolean
}

/** A child that waits for people: it has no result yet. */
export interface ChildSuspended {
  readonly _tag: "Suspended"
  readonly waitsFor: ReadonlyArray<string>
}

/** Lets the interruption of the caller in where the work can be interrupted. */
export type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** A child whose account is open and which has not started yet, or has to go on. */
export interface OpenedChild {
  readonly account: string
  /**
   * Runs the child to its end and closes its account. It is started where nothing can interrupt it and lets itself be
   * interrupted through `restore`; then too it ends with a result.
   */
  readonly run: (restore: Restore) => Effect.Effect<ChildResult | ChildSuspended>
  /** Closes the account of a child that was never started. */
  readonly abandon: Effect.Effect<void>
}

/** A call of a child, as decided. */
export interface ChildCall {
  readonly call: string
  readonly tool: string
  readonly task: string
}

/**
 * Opens children for calls. Provided by the room of agents; here only its shape is known.
 */
export interface Delegate {
  readonly names: ReadonlySet<string>
  /** Decodes the arguments of a child's call into its task. */
  readonly decode: (tool: string, params: unknown) => Effect.Effect<string, ToolFailure>
  /** Carves accounts for a batch, at once; each is either open or refused. */
  readonly openAll: (batch: ReadonlyArray<ChildCall>) => ReadonlyArray<Result.Result<OpenedChild, Refusal>>
  /** A child that an earlier process started. */
  readonly goOn: (call: ChildCall, account: string) => OpenedChild
  /** Ends the children that stand still, because their parent ends. */
  readonly endSuspended: () => void
}

/** How calls of one reply run: how many at a time, and whether effects wait for each other. */
export interface Concurrency {
  readonly calls: number
  readonly effects: "ordered" | "concurrent"
}

/** Everything the executor needs to know. */
export interface Setting {
  readonly run: string
  /** How often the run was resumed. */
  readonly epoch: number
  readonly agent: string
  readonly step: number
  readonly purse: Purse
  readonly tools: ToolSet
  readonly delegate: Delegate
  readonly record: (event: Event) => void
  readonly flush: Effect.Effect<void>
  readonly concurrency: Concurrency
  /** The state of the agent, as it is now. */
  readonly state: AgentState
  readonly effects: EffectLedger
  readonly permissions: Permissions
  /** Returns once the account is not paused; ask for it where it is. */
  readonly whenOpen: Effect.Effect<void>
  /** What the model was shown; for tools that decide by it whether they need approval. */
  readonly messages: () => ReadonlyArray<Prompt.Message>
}

/** A call of a tool that may run: its arguments are read, it is permitted, and its preconditions hold. */
export interface Ready {
  readonly _tag: "Tool"
  readonly call: Call
  readonly runnable: Runnable
  readonly params: unknown
  /** Stands for tool, version and arguments. */
  readonly print: () => string
  /** The key under which its effect counts once; absent where it does not. */
  readonly key: string | undefined
  /** The number of the next attempt: above 1 where an earlier process had begun. */
  readonly attempt: number
  /** True where an earlier process began it, and what became of that is unknown. */
  readonly begun: boolean
}

/** A call before anything runs. */
export type Prepared =
  | Refused
  | Ready
  | { readonly _tag: "Task"; readonly call: Call; readonly task: string }
  | { readonly _tag: "Started"; readonly call: Call; readonly child: OpenedChild }
  /** Answered by the result of another call of the same reply. */
  | { readonly _tag: "Twin"; readonly call: Call; readonly of: string }
  /** Its effect has happened: answered with the receipt. */
  | { readonly _tag: "Replay"; readonly call: Call; readonly receipt: Receipt }
  /** An earlier process began it, and what it came to is known without running it again. */
  | { readonly _tag: "Known"; readonly call: Call; readonly ending: Ending }
  /** Stands still until a person has answered. */
  | { readonly _tag: "Waiting"; readonly call: Call; readonly approval: string }
  /** Comes after one that stands still. */
  | { readonly _tag: "Later"; readonly call: Call }

/** A call on its way: with its result, with its hold, or with its open child. */
export type Admitted =
  | Exclude<Prepared, Ready | { readonly _tag: "Task" } | { readonly _tag: "Started" }>
  | (Ready & { readonly hold: Hold })
  | { readonly _tag: "Child"; readonly call: Call; readonly child: OpenedChild; readonly started: boolean }

/** The calls of one decision, and what has become of them so far. */
export interface Batch {
  readonly setting: Setting
  readonly results: Map<string, CallResult>
  /** Calls that stand still, with the questions they wait for. */
  readonly waiting: Map<string, ReadonlyArray<string>>
}
