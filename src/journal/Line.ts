/**
 * Events as lines of text: one JSON object each, readable with `jq`. A line holds structure, numbers and hashes; the
 * texts the hashes stand for go to a side store, so that dropping them there changes no digest here.
 */
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { type Content, fromText } from "../event/Content.ts"
import { Event, type Recorded } from "../event/Event.ts"

/** A piece of content that belongs to the side store. */
export interface Stored {
  readonly hash: string
  readonly text: string
}

/** Sentences in which a tool, a check or a person may quote what they saw: on a line they are content like any other. */
const quoting: { readonly [Tag in Event["_tag"]]?: ReadonlyArray<string> } = {
  Decided: ["why"],
  CallFailed: ["message"],
  CallEnded: ["message"],
  Verified: ["detail"],
  Stopping: ["detail"],
  ApprovalRequested: ["reason"],
  ApprovalDecided: ["note"],
}

const quotedIn = (tag: string): ReadonlyArray<string> => quoting[tag as Event["_tag"]] ?? []

/** The line of an event, and the texts that it refers to by hash. */
export const encode = (recorded: Recorded): { readonly line: string; readonly contents: ReadonlyArray<Stored> } => {
  const contents: Array<Stored> = []
  const { seq, atMillis, run, event } = recorded
  const detached = JSON.stringify(detach(event, { into: contents, quoting: quotedIn(event._tag) }))
  const line = `{"seq":${seq},"at":"${isoOf(atMillis)}","run":${JSON.stringify(run)},${detached.slice(1)}`
  return { line, contents }
}

let isoMillis = Number.NaN
let iso = ""
const isoOf = (atMillis: number): string => {
  if (atMillis !== isoMillis) [isoMillis, iso] = [atMillis, new Date(atMillis).toISOString()]
  return iso
}

/** The value without the text of each content, which is collected instead; the same value where there is none. */
const detach = (
  value: unknown,
  to: { readonly into: Array<Stored>; readonly quoting: ReadonlyArray<string> },
): unknown => {
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) {
    let copy: Array<unknown> | undefined
    for (let index = 0; index < value.length; index++) {
      const item = detach(value[index], to)
      if (item !== value[index]) (copy ??= value.slice())[index] = item
    }
    return copy ?? value
  }
  if (isContent(value)) {
    if (value.text === undefined) return value
    to.into.push({ hash: value.hash, text: value.text })
    return { hash: value.hash, bytes: value.bytes }
  }
  const fields = value as Readonly<Record<string, unknown>>
  let copy: Record<string, unknown> | undefined
  for (const key in fields) {
    const item = fields[key]
    const quotes = typeof item === "string" && to.quoting.includes(key)
    const kept = quotes ? detach(fromText(item), to) : typeof item === "object" ? detach(item, to) : item
    if (kept !== item) (copy ??= { ...fields })[key] = kept
  }
  return copy ?? value
}

const isContent = (value: object): value is Content =>
  typeof (value as { readonly hash?: unknown }).hash === "string" &&
  "bytes" in value &&
  Object.keys(value).every((key) => key === "hash" || key === "bytes" || key === "text")

const Head = Schema.Struct({ seq: Schema.Finite, at: Schema.String, run: Schema.String })

const decodeHead = Schema.decodeUnknownExit(Head)
const decodeEvent = Schema.decodeUnknownExit(Event)

/**
 * An event from its line; `textOf` finds a text in the side store. Where it was dropped the event has hashes alone.
 *
 * **Fails with** a sentence that says what is wrong with the line.
 */
export const decode = (line: string, textOf: (hash: string) => string | undefined): Result.Result<Recorded, string> => {
  const parsed = Result.try((): unknown => JSON.parse(line))
  if (Result.isFailure(parsed)) return Result.fail("it is not JSON")
  const head = decodeHead(parsed.success)
  if (Exit.isFailure(head)) return Result.fail("it has no seq, at or run")
  const { _tag } = parsed.success as { readonly _tag?: unknown }
  const event = decodeEvent(attach(parsed.success, { textOf, quoting: quotedIn(String(_tag)) }))
  if (Exit.isFailure(event)) return Result.fail(`it is no event that this version knows (${String(_tag)})`)
  const { seq, at, run } = head.value
  return Result.succeed({ seq, atMillis: Date.parse(at), run, event: event.value })
}

/** The opposite of {@link detach}. */
const attach = (
  value: unknown,
  from: { readonly textOf: (hash: string) => string | undefined; readonly quoting: ReadonlyArray<string> },
): unknown => {
  if (Array.isArray(value)) return value.map((item) => attach(item, from))
  if (typeof value !== "object" || value === null) return value
  if (isContent(value)) {
    const text = from.textOf(value.hash)
    return text === undefined ? value : { ...value, text }
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => {
      const attached = attach(item, from)
      const quotes = from.quoting.includes(key) && typeof attached === "object" && attached !== null
      return [key, quotes ? quoted(attached as Content) : attached]
    }),
  )
}

const quoted = (content: Content): string => content.text ?? `(dropped, ${content.hash})`

/** Whether an event lacks a text that was dropped: then the run cannot go on from it. */
export const lacksText = (value: unknown): boolean => {
  if (Array.isArray(value)) return value.some(lacksText)
  if (typeof value === "string") return value.startsWith("(dropped, sha256:")
  if (typeof value !== "object" || value === null) return false
  return isContent(value) ? value.text === undefined : Object.values(value).some(lacksText)
}
