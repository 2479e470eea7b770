/**
 * Events as lines of text: one JSON object each, readable with `jq`. A line holds structure, numbers and hashes; the
 * texts the hashes stand for go to a side store, so that dropping them there changes no digest here.
 */
import type { Recorded } from "../event/Event.ts"

/** A piece of content that belongs to the side store. */
export interface Stored {
  readonly hash: string
  readonly text: string
}

/** The line of an event, and the texts that it refers to by hash. */
export const encode = (recorded: Recorded): { readonly line: string; readonly contents: ReadonlyArray<Stored> } => {
  const contents: Array<Stored> = []
  const { seq, atMillis, run, event } = recorded
  const head = { seq, at: new Date(atMillis).toISOString(), run }
  const line = JSON.stringify({ ...head, ...(detach(event, contents) as object) })
  return { line, contents }
}

/** Copies a value, leaving out the text of each content and collecting it instead. */
const detach = (value: unknown, into: Array<Stored>): unknown => {
  if (Array.isArray(value)) return value.map((item) => detach(item, into))
  if (typeof value !== "object" || value === null) return value
  if (isContent(value)) {
    into.push({ hash: value.hash, text: value.text })
    return { hash: value.hash, bytes: value.bytes }
  }
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, detach(item, into)]))
}

const isContent = (value: object): value is { hash: string; bytes: number; text: string } =>
  "hash" in value && "bytes" in value && "text" in value && typeof value.text === "string"
