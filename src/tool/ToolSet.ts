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

/** Finds the handlers of `tools` in the context. */
export const make = (tools: ReadonlyArray<Tool.Any>): Effect.Effect<ToolSet> =>
  Effect.contextWith((context: Context.Context<never>) =>
    Effect.sync(() => new Map(tools.map((tool) => [tool.name, runnable(tool, context)]))),
  )

const runnable = (tool: Tool.Any, context: Context.Context<never>): Runnable => {
  const handler = context.mapUnsafe.get(tool.id) as Tool.Handler<string> | undefined
  if (handler === undefined) return unhandled(tool)
  // Of a service that both have, the caller's wins: its span, its clock. So does `effect/ai`.
  const inServices = <A>(self: Effect.Effect<A, ToolFailure>): Effect.Effect<A, ToolFailure> =>
    Effect.updateContext(self, (caller: Context.Context<never>) => Context.merge(handler.context, caller))
  const encode = Schema.encodeUnknownEffect(Schema.toCodecJson(tool.successSchema))
  const decode = decoder(tool)
  return {
    tool,
    contract: Contract.of(tool),
    decode: (params) => inServices(decode(params) as Effect.Effect<unknown, ToolFailure>),
    run: (params, call) =>
      inServices(
        Effect.suspend(() => handler.handler(params, { toolCallId: call, preliminary: () => Effect.void })).pipe(
          Effect.flatMap((result) => encode(result)),
          Effect.mapError(failureOf),
        ) as Effect.Effect<unknown, ToolFailure>,
      ),
  }
}

/** A mistake of the program. It shows when the tool is called and ends the run like any tool that breaks down. */
const unhandled = (tool: Tool.Any): Runnable => ({
  tool,
  contract: Contract.of(tool),
  decode: Effect.succeed,
  run: () => Effect.fail({ code: "EFATAL", message: `no handler is provided for the tool ${tool.name}` }),
})

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
      Effect.catchDefect(() =>
        Effect.fail<ToolFailure>({ code: "EFATAL", message: "its arguments could not be read" }),
      ),
    )
}

/** A handler that declares no parameters may be called with nothing at all. */
const parse = (params: unknown): Effect.Effect<unknown, string> => {
  if (typeof params !== "string") return Effect.succeed(params ?? {})
  return Effect.try({
    try: (): unknown => JSON.parse(params),
    catch: () => "the arguments are not valid JSON",
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
