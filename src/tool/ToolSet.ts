/**
 * The tools of one agent, ready to run: each with its contract, a decoder for its arguments and its handler. Built once
 * for each run from the handlers in context, so that a call costs no more than decoding, running and encoding.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Tool from "effect/ai/Tool"
import * as Contract from "./Contract.ts"
import { andThen, isDone } from "./Immediate.ts"
import type { FailureClass } from "./ToolError.ts"

/** A call that cannot be made, or a failure that a handler returned. The model sees code, message and action. */
export interface ToolFailure {
  readonly code: string
  readonly message: string
  /** A `mistake` unless it says otherwise. */
  readonly class?: FailureClass
  readonly suggestedAction?: string
  readonly retryAfterMillis?: number
  readonly mayHaveHappened?: boolean
}

/** A tool that can be run. Its result is encoded as JSON. */
export interface Runnable {
  readonly tool: Tool.Any
  readonly contract: Contract.Contract
  readonly decode: (params: unknown) => Effect.Effect<unknown, ToolFailure>
  readonly run: (params: unknown, at: Contract.Calling) => Effect.Effect<Produced, ToolFailure>
  /** From what the tool yields to JSON. */
  readonly encode: (result: unknown) => Effect.Effect<unknown, ToolFailure>
}

/** What a tool yielded, as it is and as JSON. */
export interface Produced {
  readonly value: unknown
  readonly data: unknown
}

/** Tools by name. */
export type ToolSet = ReadonlyMap<string, Runnable>

/** Finds the handlers of `tools` in the context. */
export const make = (tools: ReadonlyArray<Tool.Any>): Effect.Effect<ToolSet> =>
  Effect.contextWith((context: Context.Context<never>) =>
    Effect.sync(() => new Map(tools.map((tool) => [tool.name, runnable(tool, context)]))),
  )

const runnable = (tool: Tool.Any, context: Context.Context<never>): Runnable => {
  const handler = context.mapUnsafe.get(tool.id) as Tool.Handler<string> | undefined
  if (handler === undefined) return unhandled(tool)
  // Of a service that both have, the caller's wins: its span, its clock. So does `effect/ai`.
  const services = mergedOnto(handler.context)
  const inServices = <A>(self: Effect.Effect<A, ToolFailure>): Effect.Effect<A, ToolFailure> =>
    Exit.isExit(self) ? self : Effect.updateContext(self, services)
  const inCall =
    (at: Contract.Calling) =>
    (caller: Context.Context<never>): Context.Context<never> =>
      Context.add(services(caller), Contract.CurrentCall, at)
  const { contract, decode, encode } = compiled(tool)
  return {
    tool,
    contract,
    decode: (params) => inServices(decode(params)),
    run: (params, at) => {
      const called: Effect.Effect<Produced, ToolFailure> = Effect.matchEffect(
        Effect.suspend(() => handler.handler(params, { toolCallId: at.call, preliminary: () => Effect.void })),
        {
          onFailure: (error) => Effect.fail(failureOf(error)),
          onSuccess: (value) => andThen(encode(value), (data) => Effect.succeed<Produced>({ value, data })),
        },
      )
      return Effect.updateContext(called, inCall(at))
    },
    encode: (result) => inServices(encode(result)),
  }
}

/** Merges contexts; that of the last caller is kept, since a run calls from the same place again and again. */
const mergedOnto = (own: Context.Context<never>): ((caller: Context.Context<never>) => Context.Context<never>) => {
  let last: Context.Context<never> | undefined
  let merged = own
  return (caller) => {
    if (caller !== last) {
      merged = Context.merge(own, caller)
      last = caller
    }
    return merged
  }
}

/** What of a tool is the same in every run. */
interface Compiled {
  readonly contract: Contract.Contract
  readonly decode: (params: unknown) => Effect.Effect<unknown, ToolFailure>
  readonly encode: (result: unknown) => Effect.Effect<unknown, ToolFailure>
}

const known = new WeakMap<Tool.Any, Compiled>()

const compiled = (tool: Tool.Any): Compiled => {
  const before = known.get(tool)
  if (before !== undefined) return before
  const toJson = Schema.encodeUnknownEffect(Schema.toCodecJson(tool.successSchema as Schema.Codec<unknown, unknown>))
  const encode = (result: unknown) => {
    const encoded = toJson(result)
    return isDone(encoded) ? encoded : Effect.mapError(encoded, failureOf)
  }
  const made = { contract: Contract.of(tool), decode: decoder(tool), encode }
  known.set(tool, made)
  return made
}

/** A mistake of the program. It shows when the tool is called and ends the run like any tool that breaks down. */
const unhandled = (tool: Tool.Any): Runnable => ({
  tool,
  contract: Contract.of(tool),
  decode: Effect.succeed,
  run: () =>
    Effect.fail({ code: "EFATAL", class: "fatal", message: `no handler is provided for the tool ${tool.name}` }),
  encode: Effect.succeed,
})

const strict = { onExcessProperty: "error", errors: "all" } as const

/** Arguments may come as a JSON value or as the raw string of the model; a handler without any may be called with nothing. */
const decoder = (tool: Tool.Any): Compiled["decode"] => {
  const schema: unknown = tool.parametersSchema
  const decode = Schema.isSchema(schema)
    ? Schema.decodeUnknownEffect(schema as Schema.Codec<unknown, unknown>, strict)
    : (params: unknown) => Effect.succeed(params)
  return (params) => {
    const parsed = Result.try((): unknown => (typeof params === "string" ? JSON.parse(params) : (params ?? {})))
    if (Result.isFailure(parsed)) return Effect.fail({ code: "EINVAL", message: "the arguments are not valid JSON" })
    const decoded = Result.try(() => decode(parsed.success))
    if (Result.isFailure(decoded)) return Effect.fail(unreadable)
    return isDone(decoded.success)
      ? decoded.success
      : decoded.success.pipe(
          Effect.mapError((error): ToolFailure => ({ code: "EINVAL", message: messageOf(error) })),
          Effect.catchDefect(() => Effect.fail(unreadable)),
        )
  }
}

const unreadable: ToolFailure = { code: "EFATAL", class: "fatal", message: "its arguments could not be read" }

/** A `ToolError` says itself what it is; anything else is a mistake, under its own code if it has one. */
const failureOf = (error: unknown): ToolFailure => {
  if (Schema.isSchemaError(error)) return { code: "ERESULT", message: messageOf(error) }
  if (typeof error !== "object" || error === null) return { code: "EFAILED", message: messageOf(error) }
  const { code, suggestedAction, retryAfterMillis, mayHaveHappened } = error as { readonly [key: string]: unknown }
  const failure: ToolFailure = { code: typeof code === "string" ? code : "EFAILED", message: messageOf(error) }
  if (!("_tag" in error && error._tag === "ToolError")) return failure
  return {
    ...failure,
    class: (error as unknown as { readonly class: FailureClass }).class,
    ...(typeof suggestedAction === "string" ? { suggestedAction } : {}),
    ...(typeof retryAfterMillis === "number" ? { retryAfterMillis } : {}),
    ...(mayHaveHappened === true ? { mayHaveHappened } : {}),
  }
}

/** A failure in one line: its message, or the tag of a failure without one. */
export const messageOf = (error: unknown): string => {
  if (typeof error === "string") return error
  if (typeof error !== "object" || error === null) return String(error)
  if ("message" in error && typeof error.message === "string" && error.message !== "") return error.message
  return "_tag" in error && typeof error._tag === "string" ? error._tag : "failed without a message"
}

/** The first thing that went wrong in a cause, in one line. */
export const messageOfCause = (cause: Cause.Cause<unknown>): string => messageOf(Cause.squash(cause))
