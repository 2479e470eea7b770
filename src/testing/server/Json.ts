/**
 * Looking into parsed JSON of unknown shape.
 */
import type { Json } from "./Turn.ts"

/** Whether a value is an object, and no list. */
export const isRecord = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The value when it is an object, else one without fields. */
export const record = (value: unknown): Json => (isRecord(value) ? value : {})

/** The value when it is a list of objects, else none. */
export const records = (value: unknown): ReadonlyArray<Json> | undefined =>
  Array.isArray(value) && value.every(isRecord) ? value : undefined

/** What a body holds; `undefined` when it is no JSON. */
export const parsed = (body: string): unknown => {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}
