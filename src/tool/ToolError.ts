/**
 * How a tool fails. There are four kinds of failure and four treatments of them, whatever the tool:
 *
 * | class | meaning | what the host does |
 * | --- | --- | --- |
 * | `transient` | it may work the next time | tries again by itself, from the retry reserve, with backoff and a cap |
 * | `mistake` | the model asked for something that cannot be | tells the model |
 * | `permission` | it may not be done | tells the model, never tries again |
 * | `fatal` | nothing can be built on this tool any more | ends the run |
 */
import * as Schema from "effect/Schema"

/**
 * What a failure asks of the host; see the table above.
 *
 * @category errors
 * @since 0.1.0
 */
export const FailureClass = Schema.Literals(["transient", "mistake", "permission", "fatal"])

/** @since 0.1.0 */
export type FailureClass = (typeof FailureClass)["Type"]

/**
 * A failure of a tool. The model sees code, message and suggested action, so write them for it: what is wrong and what to
 * do instead. No stack, no secret.
 *
 * A tool declares it as its `failure`. Any other failure is a `mistake` under its own `code`, or `EFAILED`.
 *
 * **Units**: `retryAfterMillis` is how long a transient failure asks to wait at least.
 *
 * **Example** (A conflict that the model can mend)
 *
 * ```ts
 * import { ToolError } from "bursar"
 *
 * const conflict = ToolError.mistake("ECONFLICT", "the text was not found: read the file again")
 * conflict.class // => "mistake"
 * ```
 *
 * @category errors
 * @since 0.1.0
 */
export class ToolError extends Schema.TaggedError<ToolError>()("ToolError", {
  code: Schema.String,
  class: FailureClass,
  message: Schema.String,
  suggestedAction: Schema.optionalKey(Schema.String),
  retryAfterMillis: Schema.optionalKey(Schema.Finite),
  /** True where the reply was lost: what was asked for may have happened. */
  mayHaveHappened: Schema.optionalKey(Schema.Boolean),
}) {}

interface More {
  readonly suggestedAction?: string
  readonly retryAfterMillis?: number
  readonly mayHaveHappened?: boolean
}

const of =
  (kind: FailureClass) =>
  (code: string, message: string, more: More = {}): ToolError =>
    new ToolError({ code, class: kind, message, ...more })

/** It may work the next time. @category constructors @since 0.1.0 */
export const transient = of("transient")

/**
 * The reply was lost: what was asked for may have happened. An effect that counts once under its key is tried again with
 * it; any other is not, until it is known what became of it.
 *
 * @category constructors @since 0.1.0
 */
export const lost = (code: string, message: string): ToolError => transient(code, message, { mayHaveHappened: true })

/** The model asked for something that cannot be. @category constructors @since 0.1.0 */
export const mistake = of("mistake")

/** It may not be done. @category constructors @since 0.1.0 */
export const permission = of("permission")

/** Nothing can be built on this tool any more: the run ends. @category constructors @since 0.1.0 */
export const fatal = of("fatal")

/** The action a failure suggests that only a person can resolve: the run then stops as `blocked`. */
export const stopAndRequestHuman = "stop_and_request_human"
