/**
 * A reply that streams, read to its end and put together again. Nothing here touches the network.
 *
 * Its law: a stream is a reply only when it says that it is over. One that was cut, whatever had come of it by then,
 * is none: there is no reply to take a call from.
 */
import { EventReader, type ServerEvent } from "./events.ts"
import { asRecord, type Json } from "./json.ts"

/** What an event comes to. */
export interface Step {
  /** What it adds to the text of the reply. */
  readonly text?: string
  /** The reply is over with it. */
  readonly isEnd?: boolean
  /** The reply failed with it. */
  readonly failed?: { readonly code: unknown }
}

/** Puts the events of one protocol together. */
export interface Assembly {
  readonly step: (event: Json, name: string) => Step
  /** The reply as if it had not streamed, or `undefined` as long as it is not over; `isDone` says `[DONE]` came. */
  readonly whole: (isDone: boolean) => unknown
  /** The id of the reply, as soon as it is known. */
  readonly id: () => string | undefined
}

/** How a stream ended. */
export type Ending =
  | { readonly _tag: "Whole"; readonly body: unknown }
  | { readonly _tag: "Cut"; readonly id: string | undefined; readonly why: "cut" | "unreadable" }
  | { readonly _tag: "Failed"; readonly id: string | undefined; readonly code: unknown }

/** Reads one stream, piece by piece. */
export class StreamReader {
  readonly #events = new EventReader()
  // Of a character in two pieces the first half is kept.
  readonly #decoder = new TextDecoder()
  readonly #assembly: Assembly
  readonly #onText: (delta: string) => void
  #ending: Ending | undefined

  constructor(assembly: Assembly, onText: (delta: string) => void) {
    this.#assembly = assembly
    this.#onText = onText
  }

  /** How it ended, or `undefined` as long as more may come. */
  push(bytes: Uint8Array): Ending | undefined {
    return this.#take(this.#events.push(this.#decoder.decode(bytes, { stream: true })))
  }

  /** How it ended, now that no more will come. */
  end(): Ending {
    const before = this.#take(this.#events.push(this.#decoder.decode()))
    if (before !== undefined) return before
    const { events, isCut } = this.#events.end()
    const ending = this.#take(events)
    if (ending !== undefined) return ending
    const body = isCut ? undefined : this.#assembly.whole(false)
    return body === undefined ? this.cut() : { _tag: "Whole", body }
  }

  /** How it ended, if the connection broke now. */
  cut(why: "cut" | "unreadable" = "cut"): Ending {
    return { _tag: "Cut", id: this.#assembly.id(), why }
  }

  #take(events: ReadonlyArray<ServerEvent>): Ending | undefined {
    for (const event of events) {
      if (this.#ending !== undefined) break
      this.#ending = this.#one(event)
    }
    return this.#ending
  }

  #one({ data, name }: ServerEvent): Ending | undefined {
    if (data.trim() === "[DONE]") return this.#over(true)
    const event = parsed(data)
    if (event === undefined) return this.cut("unreadable")
    const { failed, isEnd, text } = this.#assembly.step(event, name)
    if (failed !== undefined) return { _tag: "Failed", id: this.#assembly.id(), code: failed.code }
    if (text !== undefined && text !== "") this.#onText(text)
    return isEnd === true ? this.#over(false) : undefined
  }

  #over(isDone: boolean): Ending {
    const body = this.#assembly.whole(isDone)
    return body === undefined ? this.cut() : { _tag: "Whole", body }
  }
}

const parsed = (data: string): Json | undefined => {
  try {
    const value: unknown = JSON.parse(data)
    return typeof value === "object" && value !== null ? asRecord(value) : undefined
  } catch {
    return undefined
  }
}
