/**
 * The body of one Responses request, made from what `effect/ai` hands a provider. Nothing here touches the network.
 */
import * as AiError from "effect/ai/AiError"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as OpenAiStructuredOutput from "effect/ai/OpenAiStructuredOutput"
import * as Tool from "effect/ai/Tool"
import * as Result from "effect/Result"
import type { FunctionTool, ResponseCreateParamsNonStreaming } from "openai/resources/responses/responses"
import { toInput } from "./input.ts"
import { toStrict } from "./strict.ts"

/** The body to send, or why it cannot be built. */
export const toBody = (
  model: string,
  options: LanguageModel.ProviderOptions,
  maxOutputTokens: number | undefined,
): Result.Result<ResponseCreateParamsNonStreaming, AiError.AiErrorReason> =>
  Result.gen(function* () {
    const input = yield* toInput(options.prompt)
    const tools = yield* Result.all(options.tools.map(toFunction))
    const format = yield* toFormat(options.responseFormat)
    return {
      model,
      input,
      store: false,
      ...(maxOutputTokens === undefined ? {} : { max_output_tokens: maxOutputTokens }),
      ...(tools.length === 0
        ? {}
        : { tools, tool_choice: toToolChoice(options.toolChoice), parallel_tool_calls: true }),
      ...(format === undefined ? {} : { text: { format } }),
    }
  })

const toFunction = (tool: Tool.Any): Result.Result<FunctionTool, AiError.AiErrorReason> => {
  if (Tool.isProviderDefined(tool)) return refuseTool(tool, "tools run by the provider are not supported")
  const schema = Result.try(() => Tool.getJsonSchema(tool))
  if (Result.isFailure(schema)) return refuseTool(tool, "its parameters have no JSON schema")
  const asked = Tool.getStrictMode(tool)
  const strict = asked === false ? undefined : toStrict(schema.success)
  const description = Tool.getDescription(tool)
  return Result.succeed({
    type: "function",
    name: tool.name,
    parameters: strict ?? schema.success,
    strict: strict !== undefined || asked === true,
    ...(description === undefined ? {} : { description }),
  })
}

const refuseTool = (tool: Tool.Any, description: string) =>
  Result.fail(new AiError.ToolConfigurationError({ toolName: tool.name, description }))

// A `oneOf` needs no list on the wire: `effect/ai` has already cut the tools down to it.
const toToolChoice = (
  choice: LanguageModel.ToolChoice<string>,
): NonNullable<ResponseCreateParamsNonStreaming["tool_choice"]> => {
  if (typeof choice === "string") return choice
  return "tool" in choice ? { type: "function", name: choice.tool } : (choice.mode ?? "auto")
}

const toFormat = (format: LanguageModel.ProviderOptions["responseFormat"]) => {
  if (format.type === "text") return Result.succeed(undefined)
  return Result.try({
    try: () => ({
      type: "json_schema" as const,
      name: format.objectName.replaceAll(/[^\w-]/g, "_").slice(0, 64),
      schema: OpenAiStructuredOutput.toCodecOpenAI(format.schema).jsonSchema,
      strict: true,
    }),
    catch: () =>
      new AiError.UnsupportedSchemaError({
        description: `the schema of "${format.objectName}" cannot be expressed in OpenAI's structured output`,
      }),
  })
}
