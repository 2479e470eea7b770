/**
 * Server-sent events out of the text of a reply, however it is broken into pieces.
 *
 * Its law: the events do not depend on where the pieces end. Comments, which servers send to keep a connection open,
 * and fields other than `event` and `data` are nothing.
 */

/** One event. */
export interface ServerEvent {
  readonly name: string
  readonly data: string
}

/** Takes the text piece by piece. */
export class EventReader {
  /** What came of a line that has not ended. */
  #rest = ""
  /** A `\n` that begins the next piece belongs to the `\r` that ended this one. */
  #skipsLineFeed = false
  #name = ""
  #data: Array<string> = []

  /** The events that end in this piece. */
  push(piece: string): ReadonlyArray<ServerEvent> {
    const text = this.#skipsLineFeed && piece.startsWith("\n") ? piece.slice(1) : piece
    if (piece !== "") this.#skipsLineFeed = piece.endsWith("\r")
    const lines = (this.#rest + text).split(/\r\n|\n|\r/)
    this.#rest = lines.pop() ?? ""
    return lines.flatMap((line) => this.#take(line))
  }

  /**
   * The events that the end of the text ends. An event without the empty line after it is one where it is whole, that
   * is `[DONE]` or JSON; `isCut` says that something was left that is no event.
   */
  end(): { readonly events: ReadonlyArray<ServerEvent>; readonly isCut: boolean } {
    const events = [...this.#take(this.#rest), ...this.#take("")]
    const last = events.at(-1)
    if (last === undefined) return { events, isCut: isPart(this.#rest) }
    return isWhole(last.data) ? { events, isCut: false } : { events: events.slice(0, -1), isCut: true }
  }

  #take(line: string): ReadonlyArray<ServerEvent> {
    if (line === "") {
      const event = { name: this.#name, data: this.#data.join("\n") }
      const isEmpty = this.#data.length === 0
      this.#name = ""
      this.#data = []
      return isEmpty ? [] : [event]
    }
    const colon = line.indexOf(":")
    const field = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "")
    if (field === "data") this.#data.push(value)
    if (field === "event") this.#name = value
    return []
  }
}

/** Whether a line that was not ended may be part of an event: it is neither empty nor a comment. */
const isPart = (line: string): boolean => line.trim() !== "" && !line.startsWith(":")

const isWhole = (data: string): boolean => {
  if (data.trim() === "[DONE]") return true
  try {
    return typeof JSON.parse(data) === "object"
  } catch {
    return false
  }
}
