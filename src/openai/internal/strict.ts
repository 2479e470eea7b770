/**
 * Whether a JSON schema lies inside the subset that OpenAI can enforce ("strict"), and what it looks like then.
 *
 * Bursar sends a tool's own schema, not a rewritten one, so that arguments come back in the shape the tool decodes.
 * The only change is closing objects: a model never needs properties that nobody declared.
 */
import type { JsonSchema } from "effect/JsonSchema"

/** The schema with its objects closed, or `undefined` when OpenAI could not enforce it. */
export const toStrict = (schema: JsonSchema): JsonSchema | undefined =>
  schema["type"] === "object" && schema["anyOf"] === undefined ? close(schema) : undefined

const close = (schema: JsonSchema): JsonSchema | undefined => {
  if (Object.keys(schema).some((key) => !keywords.has(key))) return undefined
  if (typeof schema["format"] === "string" && !formats.has(schema["format"])) return undefined
  const shape = schema["type"] === "object" ? closeObject(schema) : schema
  return shape === undefined ? undefined : closeChildren(shape)
}

const closeObject = (schema: JsonSchema): JsonSchema | undefined => {
  const properties = schema["properties"] ?? {}
  const required = Array.isArray(schema["required"]) ? schema["required"] : []
  const declared = Object.keys(properties)
  const open = schema["additionalProperties"]
  // An object that declares nothing and allows anything is a map: closing it would leave only `{}`.
  if (declared.length === 0 && open !== false) return undefined
  if (typeof open === "object" || declared.some((name) => !required.includes(name))) return undefined
  return { ...schema, properties, required, additionalProperties: false }
}

const closeChildren = (schema: JsonSchema): JsonSchema | undefined => {
  const closed: JsonSchema = { ...schema }
  for (const key of ["properties", "$defs"]) {
    if (!isSchema(schema[key])) continue
    const entries = Object.entries(schema[key]).map(([name, child]) => [name, closeUnknown(child)] as const)
    if (entries.some(([, child]) => child === undefined)) return undefined
    closed[key] = Object.fromEntries(entries)
  }
  if (schema["items"] !== undefined) {
    const items = closeUnknown(schema["items"])
    if (items === undefined) return undefined
    closed["items"] = items
  }
  if (Array.isArray(schema["anyOf"])) {
    const members = schema["anyOf"].map(closeUnknown)
    if (members.includes(undefined)) return undefined
    closed["anyOf"] = members
  }
  return closed
}

const closeUnknown = (value: unknown): JsonSchema | undefined =>
  isSchema(value) && Object.keys(value).length > 0 ? close(value) : undefined

const isSchema = (value: unknown): value is JsonSchema =>
  typeof value === "object" && value !== null && !Array.isArray(value)

// The keywords and formats OpenAI accepts in strict mode, as in `effect/ai/OpenAiStructuredOutput`.
const keywords = new Set(
  (
    "$ref $defs type title description enum const anyOf format " +
    "properties required additionalProperties items minItems maxItems " +
    "pattern multipleOf minimum exclusiveMinimum maximum exclusiveMaximum"
  ).split(" "),
)

const formats = new Set("date-time time date duration email hostname ipv4 ipv6 uuid".split(" "))
