/** How the value of an example is compared with the one its comment promises. */
import * as Equal from "effect/Equal"
import { inspect, isDeepStrictEqual } from "node:util"

const isPlain = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype

/**
 * Deep equality, except that a literal object or array of the expectation is equal to any object or array with the
 * same own fields, whatever its class: an example shows fields, not constructors. A field that is `undefined` is
 * still a field.
 */
const matches = (actual: unknown, expected: unknown): boolean => {
  if (isPlain(expected) && typeof actual === "object" && actual !== null && !Array.isArray(actual)) {
    const fields: Readonly<Record<string, unknown>> = { ...actual }
    const names = Object.keys(expected)
    return (
      names.length === Object.keys(fields).length &&
      names.every((name) => Object.hasOwn(fields, name) && matches(fields[name], expected[name]))
    )
  }
  if (Array.isArray(expected) && Array.isArray(actual)) {
    return expected.length === actual.length && expected.every((value, index) => matches(actual[index], value))
  }
  return isDeepStrictEqual(actual, expected) || Equal.equals(actual, expected)
}

/** Throws when `actual` is not what the example at `where` promises; else gives it back. */
export const same = <A>(actual: A, expected: unknown, where: string): A => {
  if (matches(actual, expected)) return actual
  throw new Error(`${where} is ${inspect(actual, { depth: 8 })}, not ${inspect(expected, { depth: 8 })}`)
}
