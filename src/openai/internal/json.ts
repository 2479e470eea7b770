/**
 * Values from outside: looked at before they are believed.
 */
import * as Predicate from "effect/Predicate"

export interface Json {
  readonly [key: string]: unknown
}

export const asRecord = (value: unknown): Json => (Predicate.isObject(value) ? value : {})

export const asArray = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

export const asText = (value: unknown): string => (typeof value === "string" ? value : "")

/** A text that says something. */
export const named = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined

export const asNumber = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined)

/** A whole number from 0 up that is exact. */
export const asCount = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined
