/**
 * The tools of one agent, ready to run: each with its contract, a decoder for its arguments and its handler. Built once
 * for each run from the handlers in context, so that a call costs no more than decoding, running and encoding.
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Tool from "effect/ai/Tool"
import * as Contract from "./Contract.ts"

/** Arguments that a tool cannot be called with, or a failure that its handler returned. The model sees the message. */
export interface ToolFailure {
  readonly code: string
  readonly message: string
}

/** A tool that can be run. Its result is encoded as JSON. */
export interface Runnable {
  readonly tool: Tool.Any
  readonly contract: Contract.Contract
  readonly decode: (params: unknown) => Effect.Effect<unknown, ToolFailure>
  readonly run: (params: unknown, call: string) => Effect.Effect<unknown, ToolFailure>
}

/** Tools by name. */
export type ToolSet = ReadonlyMap<string, Runnable>

/** Finds the handlers of `tools` in the context; a handler that is missing is a mistake of the program. */
export const make = (tools: ReadonlyArray<Tool.Any>): Effect.Effect<ToolSet> =>
  Effect.contextWith((context: Context.Context<never>) =>
    Effect.sync(() => new Map(tools.map((tool) => [tool.name, runnable(tool, context)]))),
  )

const runnable = (tool: Tool.Any, context: Context.Context<never>): Runnable => {
  const handler = context.mapUnsafe.get(tool.id) as Tool.Handler<string> | undefined
  if (handler === undefined) throw new Error(`no handler is provided for the tool ${tool.name}`)
  const services = Context.merge(context, handler.context)
  const encode = Schema.encodeUnknownEffect(Schema.toCodecJson(tool.successSchema))
  return {
    tool,
    contract: Contract.of(tool),
    decode: (params) =>
      decoder(tool)(params).pipe(Effect.provideContext(services)) as Effect.Effect<unknown, ToolFailure>,
    run: (params, call) =>
      handler.handler(params, { toolCallId: call, preliminary: () => Effect.void }).pipe(
        Effect.flatMap((result) => encode(result)),
        Effect.mapError(failureOf),
        Effect.provideContext(services as Context.Context<unknown>),
      ) as Effect.Effect<unknown, ToolFailure>,
  }
}

const strict = { onExcessProperty: "error", errors: "all" } as const

/** Arguments may come as a JSON value or as the raw string of the model. */
const decoder = (tool: Tool.Any): ((params: unknown) => Effect.Effect<unknown, ToolFailure, unknown>) => {
  const schema: unknown = tool.parametersSchema
  const decode = Schema.isSchema(schema)
    ? Schema.decodeUnknownEffect(schema as Schema.Codec<unknown, unknown, unknown>, strict)
    : (params: unknown) => Effect.succeed(params)
  return (params) =>
    parse(params).pipe(
      Effect.flatMap(decode),
      Effect.mapError((error): ToolFailure => ({ code: "EINVAL", message: messageOf(error) })),
    )
}

/** A handler that declares no parameters may be called with nothing at all. */
const parse = (params: unknown): Effect.Effect<unknown, Error> => {
  if (typeof params !== "string") return Effect.succeed(params ?? {})
  return Effect.try({
    try: (): unknown => JSON.parse(params),
    catch: () => new Error("the arguments are not valid JSON"),
  })
}

const failureOf = (error: unknown): ToolFailure => ({
  code: Schema.isSchemaError(error) ? "ERESULT" : "EFAILED",
  message: messageOf(error),
})

/** A failure in one line: its message, or the tag of a failure without one. */
export const messageOf = (error: unknown): string => {
  if (typeof error === "string") return error
  if (typeof error !== "object" || error === null) return String(error)
  if ("message" in error && typeof error.message === "string" && error.message !== "") return error.message
  return "_tag" in error && typeof error._tag === "string" ? error._tag : "failed without a message"
}

/** The first thing that went wrong in a cause, in one line. */
export const messageOfCause = (cause: Cause.Cause<unknown>): string => messageOf(Cause.squash(cause))
