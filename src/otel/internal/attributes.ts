/** Effect's values as OpenTelemetry takes them: attributes, instants and the text of an error. */
import type * as Otel from "@opentelemetry/api"
import * as Inspectable from "effect/Inspectable"

/** An instant in nanoseconds as seconds and the rest. */
export const hrTime = (nanos: bigint): Otel.HrTime => [Number(nanos / 1_000_000_000n), Number(nanos % 1_000_000_000n)]

/** `undefined` when there is nothing to tell; an object becomes JSON. */
export const toAttributeValue = (value: unknown): Otel.AttributeValue | undefined => {
  switch (typeof value) {
    case "string":
    case "number":
    case "boolean":
      return value
    case "bigint":
      return fromBigint(value)
    case "undefined":
      return undefined
    case "function":
    case "symbol":
      return String(value)
    case "object":
      return value === null ? undefined : fromObject(value)
  }
}

// A number where it is exact, so that a backend can add it up.
const fromBigint = (value: bigint): number | string =>
  BigInt.asIntN(54, value) === value ? Number(value) : value.toString()

const fromObject = (value: object): Otel.AttributeValue => {
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "Invalid Date" : value.toISOString()
  if (value instanceof Error) return messageOf(value)
  return isUniform(value) ? [...value] : Inspectable.toStringUnknown(value, 0)
}

type Uniform = ReadonlyArray<string> & ReadonlyArray<number> & ReadonlyArray<boolean>

const isUniform = (value: object): value is Uniform => {
  if (!Array.isArray(value)) return false
  const type = typeof value[0]
  if (value.length > 0 && type !== "string" && type !== "number" && type !== "boolean") return false
  return value.every((item) => typeof item === type)
}

export const toAttributes = (values: Readonly<Record<string, unknown>>): Otel.Attributes => {
  const attributes: Otel.Attributes = {}
  for (const key in values) {
    const converted = toAttributeValue(values[key])
    if (converted !== undefined) attributes[key] = converted
  }
  return attributes
}

/** One line for a status; the name stands in for a message that is missing, since an empty status tells nothing. */
export const messageOf = (error: unknown): string => {
  if (typeof error === "string") return error
  if (typeof error !== "object" || error === null) return `Unknown error: ${String(error)}`
  if ("message" in error && typeof error.message === "string" && error.message !== "") return error.message
  if ("_tag" in error && typeof error._tag === "string") return error._tag
  return error instanceof Error ? error.name : "Unknown error"
}
