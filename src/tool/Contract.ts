/**
 * What the host needs to know of a tool and the model never sees. It is an annotation on an `effect/ai` tool.
 *
 * Where a contract says nothing, `effect/ai`'s own hints do: `Readonly` makes a read, `Destructive: false` a write,
 * `Idempotent` one that may be repeated, `OpenWorld` one whose results are not to be trusted, `needsApproval: true` one
 * that a person has to approve. A tool without any hint is treated as the dangerous kind.
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import * as Tool from "effect/ai/Tool"
import type { Resource } from "../event/Event.ts"

/**
 * What a tool does to the world: nothing (`read`), something that can be undone (`write`), or something that cannot
 * (`irreversible`). Reads run side by side; anything with an effect runs in order. An irreversible tool is never repeated
 * by the host.
 *
 * @category contracts
 * @since 0.1.0
 */
export type EffectKind = "read" | "write" | "irreversible"

/**
 * What a second run of the same call does: nothing more (`natural`), nothing more if it carries the same key (`key`), or
 * everything once more (`none`).
 *
 * @category contracts
 * @since 0.1.0
 */
export type Idempotency = "natural" | "key" | "none"

/**
 * Something that must hold before a tool runs. It answers with `true`, or with what is wrong; `stop` says that no other
 * arguments will do and a person has to be asked: the run then stops as `blocked`.
 *
 * @category contracts
 * @since 0.1.0
 */
// oxlint-disable-next-line typescript/no-explicit-any -- as above
export interface Precondition<in P = any> {
  readonly name: string
  readonly check: (params: P) => Effect.Effect<Verdict, unknown>
}

/** @since 0.1.0 */
export type Verdict = true | { readonly message: string; readonly stop?: boolean }

/**
 * What became of an effect whose reply was lost: it happened, with this result; it did not happen; nobody knows.
 *
 * @category contracts
 * @since 0.1.0
 */
export type Reconciled<S = unknown> =
  | { readonly _tag: "Happened"; readonly result: S }
  | { readonly _tag: "DidNotHappen" }
  | { readonly _tag: "Unknown" }

/**
 * What can be said of a tool whose parameters are a `P` and whose success is an `S`.
 *
 * **Units**: `timeout` is a duration, one minute unless given; `costNanoUsd` is nano-USD for each started attempt;
 * `retries` is how often the host may try this tool again in the whole run of an agent (3); `backoff` is the wait before
 * the first of them, doubling up to 30 seconds (200 ms).
 *
 * @category contracts
 * @since 0.1.0
 */
// oxlint-disable-next-line typescript/no-explicit-any -- without a tool beside it, nothing is known of its parameters
export interface Options<P = any, S = any> {
  readonly effect?: EffectKind
  /** A read is `natural`; anything else is `none`, unless a hint or this says otherwise. */
  readonly idempotency?: Idempotency
  /** The key of a call. Calls with one key have one effect. By default: run, tool, version and arguments. */
  readonly key?: (params: P, at: { readonly agent: string; readonly call: string }) => string
  /** The permissions it needs, such as `files:write`. */
  readonly scope?: string | ((params: P) => ReadonlyArray<string>)
  /** Whether a person has to agree before it runs; for some arguments or all. */
  readonly approval?: boolean | ((params: P) => boolean)
  readonly preconditions?: ReadonlyArray<Precondition<P>>
  readonly timeout?: Duration.Input
  readonly retries?: number
  readonly backoff?: Duration.Input
  /**
   * A rate, over all runs of the process: `limit` calls at once, and one more for each `limit`-th part of the `window` that
   * passes. A call beyond it waits, within its time.
   */
  readonly quota?: { readonly limit: number; readonly window: Duration.Input }
  readonly costNanoUsd?: number
  /** Finds out what became of a call whose reply was lost. */
  readonly reconcile?: (params: P, key: string) => Effect.Effect<Reconciled<S>, unknown>
  /**
   * What to do about an effect of which nobody knows whether it happened: `ask` a person, while the run stands still, or
   * `tell` the model, and refuse the same call from then on. `ask` unless given.
   */
  readonly whenUncertain?: "ask" | "tell"
  /** `untrusted`: its results are shown as data, and after one, irreversible tools need approval. */
  readonly trust?: "trusted" | "untrusted"
  /** What a result says of the world: the things it read or left behind, each with its version. */
  readonly resources?: (params: P, result: S) => ReadonlyArray<Resource>
  /** Whether a call that came back changed the world; by default every call of a tool with an effect did. */
  readonly stateChanged?: (params: P, result: S) => boolean
  /** Names of arguments that differ from call to call without meaning anything, such as a request id. */
  readonly volatile?: ReadonlyArray<string>
  /** True for a tool that is asked again and again until something is done: exempt from the guards. */
  readonly polling?: boolean
  /** Changes when the tool comes to mean something else: approvals and keys do not carry over. */
  readonly version?: string
}

/** A contract with nothing left open. */
export interface Contract {
  readonly effect: EffectKind
  readonly idempotency: Idempotency
  readonly key: (params: never, at: { readonly agent: string; readonly call: string }) => string | undefined
  readonly scopes: ((params: never) => ReadonlyArray<string>) | undefined
  readonly approval: boolean | ((params: never, at: Tool.NeedsApprovalContext) => boolean | Effect.Effect<boolean>)
  readonly preconditions: ReadonlyArray<Precondition>
  readonly timeoutMillis: number
  readonly retries: number
  readonly backoffMillis: number
  readonly quota: { readonly limit: number; readonly windowMillis: number } | undefined
  readonly costNanoUsd: number
  readonly reconcile: ((params: never, key: string) => Effect.Effect<Reconciled, unknown>) | undefined
  readonly whenUncertain: "ask" | "tell"
  readonly untrusted: boolean
  readonly resources: ((params: never, result: never) => ReadonlyArray<Resource>) | undefined
  readonly stateChanged: ((params: never, result: never) => boolean) | undefined
  readonly volatile: ReadonlyArray<string>
  readonly polling: boolean
  readonly version: string
}

/**
 * The call that a handler is working on: its id, the key under which its effect counts once, and the number of the
 * attempt, from 1. Give the key to whatever the tool calls.
 *
 * @category running
 * @since 0.1.0
 */
export const CurrentCall = Context.Reference<Calling | undefined>("bursar/tool/CurrentCall", {
  defaultValue: () => undefined,
})

/** What a handler may know of its call. */
export interface Calling {
  readonly agent: string
  readonly call: string
  readonly key: string
  readonly attempt: number
}

const Annotation = Context.Reference<Options>("bursar/tool/Contract", { defaultValue: () => ({}) })

type OptionsFor<T extends Tool.Any> = Options<Tool.Parameters<T>, Tool.Success<T>>

/**
 * Adds a contract to a tool.
 *
 * **Example** (A read that may take five seconds)
 *
 * ```ts
 * import { Contract } from "bursar"
 * import * as Schema from "effect/Schema"
 * import * as Tool from "effect/ai/Tool"
 *
 * const Search = Contract.annotate(
 *   Tool.make("search", { parameters: Schema.Struct({ query: Schema.String }) }),
 *   { effect: "read", timeout: "5 seconds" },
 * )
 * Contract.of(Search).timeoutMillis // => 5000
 * ```
 *
 * @category contracts
 * @since 0.1.0
 */
export const annotate: {
  (options: Options): <T extends Tool.Any>(tool: T) => T
  <T extends Tool.Any>(tool: T, options: OptionsFor<T>): T
} = dual(2, <T extends Tool.Any>(tool: T, options: Options): T => tool.annotate(Annotation, options) as unknown as T)

/**
 * The contract of a tool, with the defaults filled in.
 *
 * @category contracts
 * @since 0.1.0
 */
export const of = (tool: Tool.Any): Contract => {
  const given = Context.get(tool.annotations, Annotation)
  const effect = given.effect ?? hinted(tool)
  const { scope, approval = needsApproval(tool), quota } = given
  return {
    effect,
    idempotency:
      given.idempotency ?? (effect === "read" || Context.get(tool.annotations, Tool.Idempotent) ? "natural" : "none"),
    key: given.key ?? (() => undefined),
    scopes: typeof scope === "function" ? scope : scope === undefined ? undefined : () => [scope],
    approval,
    preconditions: given.preconditions ?? [],
    timeoutMillis: millis(given.timeout ?? "1 minute"),
    retries: given.retries ?? 3,
    backoffMillis: millis(given.backoff ?? 200),
    quota: quota === undefined ? undefined : { limit: quota.limit, windowMillis: millis(quota.window) },
    costNanoUsd: given.costNanoUsd ?? 0,
    reconcile: given.reconcile,
    whenUncertain: given.whenUncertain ?? "ask",
    untrusted: given.trust === undefined ? isOpenWorld(tool) : given.trust === "untrusted",
    resources: given.resources,
    stateChanged: given.stateChanged,
    volatile: given.volatile ?? [],
    polling: given.polling ?? false,
    version: given.version ?? "1",
  }
}

const hinted = (tool: Tool.Any): EffectKind => {
  if (Context.get(tool.annotations, Tool.Readonly)) return "read"
  return Context.get(tool.annotations, Tool.Destructive) ? "irreversible" : "write"
}

/** Only where it was said: the default of the hint would make every tool one. */
const isOpenWorld = (tool: Tool.Any): boolean =>
  tool.annotations.mapUnsafe.has(Tool.OpenWorld.key) && Context.get(tool.annotations, Tool.OpenWorld)

const needsApproval = (tool: Tool.Any): Contract["approval"] =>
  (tool as { readonly needsApproval?: Contract["approval"] }).needsApproval ?? false

const millis = (input: Duration.Input): number => Duration.toMillis(Duration.fromInputUnsafe(input))
