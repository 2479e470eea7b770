/**
 * Events as lines of text: one JSON object each, readable with `jq`. A line holds structure, numbers and hashes; the
 * texts the hashes stand for go to a side store, so that dropping them there changes no digest here.
 */
import { fromText } from "../event/Content.ts"
import type { Event, Recorded } from "../event/Event.ts"

/** A piece of content that belongs to the side store. */
export interface Stored {
  readonly hash: string
  readonly text: string
}

/** Sentences in which a tool, a check or a decoder may quote what it saw: on a line they are content like any other. */
const quoting: { readonly [Tag in Event["_tag"]]?: ReadonlyArray<string> } = {
  Decided: ["why"],
  CallEnded: ["message"],
  Verified: ["detail"],
}

/** The line of an event, and the texts that it refers to by hash. */
export const encode = (recorded: Recorded): { readonly line: string; readonly contents: ReadonlyArray<Stored> } => {
  const contents: Array<Stored> = []
  const { seq, atMillis, run, event } = recorded
  const head = { seq, at: new Date(atMillis).toISOString(), run }
  const detached = detach(event, { into: contents, quoting: quoting[event._tag] ?? [] })
  const line = JSON.stringify({ ...head, ...(detached as object) })
  return { line, contents }
}

/** Copies a value, leaving out the text of each content and collecting it instead. */
const detach = (
  value: unknown,
  to: { readonly into: Array<Stored>; readonly quoting: ReadonlyArray<string> },
): unknown => {
  if (Array.isArray(value)) return value.map((item) => detach(item, to))
  if (typeof value !== "object" || value === null) return value
  if (isContent(value)) {
    to.into.push({ hash: value.hash, text: value.text })
    return { hash: value.hash, bytes: value.bytes }
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => {
      const quotes = typeof item === "string" && to.quoting.includes(key)
      return [key, detach(quotes ? fromText(item) : item, to)]
    }),
  )
}

const isContent = (value: object): value is { hash: string; bytes: number; text: string } =>
  "hash" in value && "bytes" in value && "text" in value && typeof value.text === "string"
