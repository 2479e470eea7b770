/**
 * What the host needs to know of a tool and the model never sees. It is an annotation on an `effect/ai` tool.
 *
 * Where a contract says nothing, `effect/ai`'s own hints do: `Readonly` makes a read, `Destructive: false` a write, and a
 * tool without any is treated as the dangerous kind.
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import { dual } from "effect/Function"
import * as Tool from "effect/ai/Tool"

/**
 * What a tool does to the world: nothing (`read`), something that can be undone (`write`), or something that cannot
 * (`irreversible`). Reads run side by side; anything with an effect runs in order.
 *
 * @category contracts
 * @since 0.1.0
 */
export type EffectKind = "read" | "write" | "irreversible"

/**
 * What can be said of a tool.
 *
 * **Units**: `timeout` is a duration, one minute unless given; `costNanoUsd` is nano-USD for each started call.
 *
 * @category contracts
 * @since 0.1.0
 */
export interface Options {
  readonly effect?: EffectKind
  readonly timeout?: Duration.Input
  readonly costNanoUsd?: number
  /** Names of arguments that differ from call to call without meaning anything, such as a request id. */
  readonly volatile?: ReadonlyArray<string>
  /** True for a tool that is asked again and again until something is done: exempt from the no-progress guard. */
  readonly polling?: boolean
}

/** A contract with nothing left open. */
export interface Contract {
  readonly effect: EffectKind
  readonly timeoutMillis: number
  readonly costNanoUsd: number
  readonly volatile: ReadonlyArray<string>
  readonly polling: boolean
}

const Annotation = Context.Reference<Options>("bursar/tool/Contract", { defaultValue: () => ({}) })

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
  <T extends Tool.Any>(tool: T, options: Options): T
} = dual(2, <T extends Tool.Any>(tool: T, options: Options): T => tool.annotate(Annotation, options) as unknown as T)

/**
 * The contract of a tool, with the defaults filled in.
 *
 * @category contracts
 * @since 0.1.0
 */
export const of = (tool: Tool.Any): Contract => {
  const given = Context.get(tool.annotations, Annotation)
  return {
    effect: given.effect ?? hinted(tool),
    timeoutMillis: Duration.toMillis(Duration.fromInputUnsafe(given.timeout ?? "1 minute")),
    costNanoUsd: given.costNanoUsd ?? 0,
    volatile: given.volatile ?? [],
    polling: given.polling ?? false,
  }
}

const hinted = (tool: Tool.Any): EffectKind => {
  if (Context.get(tool.annotations, Tool.Readonly)) return "read"
  return Context.get(tool.annotations, Tool.Destructive) ? "irreversible" : "write"
}
