/**
 * The form of an answer: a schema, the `finish` tool that asks for it, and how to read it back.
 *
 * An agent whose answer is a string may finish with free text. Any other answer comes through the `finish` tool, and in
 * the wrap-up as a JSON reply.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import * as Tool from "effect/ai/Tool"

/** The form of an answer of type `A`. */
export interface AnswerFormat<A> {
  readonly isText: boolean
  readonly finish: Tool.Any
  /** The schema of the parameters of `finish`: the answer itself, or a struct around it where it is not an object. */
  readonly parameters: Schema.Top
  /** From the parameters of `finish` to the encoded answer. */
  readonly unwrap: (params: unknown) => unknown
  /** From the encoded answer to the answer, or to a sentence that says what is wrong. */
  readonly decode: (encoded: unknown) => Effect.Effect<A, string>
  /** As JSON; `undefined` for a schema that can only be read. */
  readonly encode: (answer: A) => unknown
}

/** The name of the tool that ends a run. */
export const finishTool = "finish"

export const make = <A>(schema: Schema.Codec<A, unknown>): AnswerFormat<A> => {
  const json = Schema.toCodecJson(schema)
  const isObject = SchemaAST.isObjects(Schema.toEncoded(json).ast)
  const parameters = isObject ? json : Schema.Struct({ answer: json })
  const decode = Schema.decodeUnknownEffect(json, { onExcessProperty: "ignore", errors: "all" })
  const encode = Schema.encodeSync(json)
  return {
    isText: SchemaAST.isString(schema.ast),
    finish: Tool.make(finishTool, {
      description: "Give the final answer. Call it alone, once the task is done.",
      parameters: parameters as never,
    }),
    parameters,
    unwrap: (params) => (isObject ? fromText(params) : (fromText(params) as { answer?: unknown } | undefined)?.answer),
    decode: (encoded) =>
      Effect.suspend(() => decode(encoded)).pipe(
        Effect.mapError((error) => error.message),
        Effect.catchDefect(() => Effect.fail("it could not be read")),
      ),
    encode: (answer) => Result.getOrUndefined(Result.try((): unknown => encode(answer))),
  }
}

/** Models sometimes send arguments as a string of JSON. */
const fromText = (params: unknown): unknown => {
  if (typeof params !== "string") return params
  return Result.getOrElse(
    Result.try((): unknown => JSON.parse(params)),
    () => params,
  )
}
