/**
 * The tools a request offers and the form of the answer it asks for, in both protocols.
 *
 * Schemas are enforced ("strict") where OpenAI can enforce them as they stand. Each tool and each form is made once.
 */
import * as AiError from "effect/ai/AiError"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as OpenAiStructuredOutput from "effect/ai/OpenAiStructuredOutput"
import * as Tool from "effect/ai/Tool"
import type { JsonSchema } from "effect/JsonSchema"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Settings } from "../Options.ts"
import type { Converted } from "./input.ts"
import { toStrict } from "./strict.ts"

/** The tools of a request as the JSON of a list, in the protocol of `settings`. One text for each list of tools. */
export const makeTools = ({ isResponses, strict }: Settings) => {
  const lists = new WeakMap<ReadonlyArray<Tool.Any>, Converted<string>>()
  const toJson = (tool: Tool.Any): Converted<string> =>
    Result.map(toFunction(tool, strict), ({ isStrict, ...made }) =>
      JSON.stringify(
        isResponses
          ? { type: "function", ...made, strict: isStrict }
          : { type: "function", function: { ...made, ...(isStrict ? { strict: true } : {}) } },
      ),
    )
  return (tools: ReadonlyArray<Tool.Any>): Converted<string> => {
    const known = lists.get(tools)
    if (known !== undefined) return known
    const made = Result.map(Result.all(tools.map(toJson)), (all) => `[${all.join(",")}]`)
    lists.set(tools, made)
    return made
  }
}

interface FunctionTool {
  readonly name: string
  readonly description?: string
  readonly parameters: JsonSchema
  readonly isStrict: boolean
}

const toFunction = (tool: Tool.Any, strict: boolean): Converted<FunctionTool> => {
  if (Tool.isProviderDefined(tool)) return refuse(tool, "tools run by the provider are not supported")
  const schema = Result.try(() => Tool.getJsonSchema(tool))
  if (Result.isFailure(schema)) return refuse(tool, "its parameters have no JSON schema")
  const asked = strict ? Tool.getStrictMode(tool) : false
  const enforced = asked === false ? undefined : toStrict(schema.success)
  const description = Tool.getDescription(tool)
  return Result.succeed({
    name: tool.name,
    ...(description === undefined ? {} : { description }),
    parameters: enforced ?? schema.success,
    isStrict: enforced !== undefined || asked === true,
  })
}

const refuse = (tool: Tool.Any, description: string) =>
  Result.fail(new AiError.ToolConfigurationError({ toolName: tool.name, description }))

/** Which tool is to be called. A `oneOf` needs no list on the wire: `effect/ai` has already cut the tools down to it. */
export const toChoice = (choice: LanguageModel.ToolChoice<string>, isResponses: boolean): unknown => {
  if (typeof choice === "string") return choice
  if (!("tool" in choice)) return choice.mode ?? "auto"
  return isResponses ? { type: "function", name: choice.tool } : { type: "function", function: { name: choice.tool } }
}

/** The form of an answer. */
export interface Form {
  readonly name: string
  readonly schema: JsonSchema
  readonly strict: boolean
  /** From the text that came to the same answer as its own schema encodes it. */
  readonly reword: (text: string) => string
}

/** The form on the wire, where it stands in `text` or `response_format`. */
export const toFormat = ({ name, schema, strict }: Form, isResponses: boolean): unknown =>
  isResponses
    ? { format: { type: "json_schema", name, schema, strict } }
    : { type: "json_schema", json_schema: { name, schema, ...(strict ? { strict } : {}) } }

/** The form that `effect/ai` decodes: what OpenAI can enforce, whatever the schema. */
export const codecForm = (objectName: string, schema: Schema.Top): Converted<Form> =>
  Result.try({
    try: () => ({
      name: objectName.replaceAll(/[^\w-]/g, "_").slice(0, 64),
      schema: OpenAiStructuredOutput.toCodecOpenAI(schema as Schema.Codec<unknown, unknown>).jsonSchema,
      strict: true,
      reword: same,
    }),
    catch: () =>
      new AiError.UnsupportedSchemaError({
        description: `the schema of "${objectName}" cannot be expressed in OpenAI's structured output`,
      }),
  })

const same = (text: string): string => text

/** The form that Bursar decodes: the schema of the tool as it stands, also where OpenAI cannot enforce it so. */
export const makeForms = ({ strict }: Settings) => {
  const forms = new WeakMap<Tool.Any, Form>()
  return (answer: { readonly tool: Tool.Any; readonly schema: Schema.Top }): Form => {
    const known = forms.get(answer.tool)
    if (known !== undefined) return known
    const plain = Tool.getJsonSchema(answer.tool)
    const enforced = strict ? toStrict(plain) : undefined
    const form =
      enforced === undefined
        ? ((strict ? Result.getOrUndefined(Result.try(() => reworded(answer.schema))) : undefined) ?? {
            name: "answer",
            schema: plain,
            strict: false,
            reword: same,
          })
        : { name: "answer", schema: enforced, strict: true, reword: same }
    forms.set(answer.tool, form)
    return form
  }
}

/** A schema that OpenAI can enforce only in other words, such as `null` for what may be left out. */
const reworded = (schema: Schema.Top): Form => {
  const own = schema as Schema.Codec<unknown, unknown>
  const { codec, jsonSchema } = OpenAiStructuredOutput.toCodecOpenAI(own)
  const decode = Schema.decodeUnknownResult(codec as Schema.Codec<unknown, unknown>)
  const encode = Schema.encodeUnknownResult(own)
  return {
    name: "answer",
    schema: jsonSchema,
    strict: true,
    // What does not fit is still a reply: its text is kept for the host to judge.
    reword: (text) =>
      Result.try((): unknown => JSON.parse(text)).pipe(
        Result.flatMap((value) => Result.mapError(decode(value), () => undefined)),
        Result.flatMap((value) => Result.mapError(encode(value), () => undefined)),
        Result.map((value) => JSON.stringify(value)),
        Result.getOrElse(() => text),
      ),
  }
}
