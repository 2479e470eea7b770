/**
 * Bytes on the wire, with every fault that can befall them there: cuts, silence, noise and delays at any byte.
 *
 * Its law: the ledger is told before the byte leaves that lets the client know the end, and before a connection is cut.
 */
import type { ServerResponse } from "node:http"
import type { Timers } from "./Timers.ts"
import type { Turn } from "./Turn.ts"

/** What is to leave, when nothing goes wrong. */
export interface Outgoing {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** Whether the pieces are events that leave one by one. */
  readonly streamed: boolean
  readonly pieces: ReadonlyArray<string>
  /** The piece after which the client knows the end. */
  readonly finishAt: number
}

/** The faults of a turn. */
export type Faults = Pick<Turn, "cut" | "hang" | "garbage" | "delays"> & { readonly chunkLatencyMs: number }

/** Where it leaves, and who is told. */
export interface Way {
  readonly response: ServerResponse
  /** Aborted when there is nobody left to write to. */
  readonly signal: AbortSignal
  readonly timers: Timers
  /** Books the end, `"cut"` when the connection will be. */
  readonly book: (outcome: "whole" | "cut") => void
  readonly sent: (bytes: number) => void
}

/** One thing to do, in order. */
type Step =
  | { readonly do: "write"; readonly bytes: Buffer; readonly finishes: boolean }
  | { readonly do: "sleep"; readonly millis: number }
  | { readonly do: "cut" }
  | { readonly do: "hang" }
  | { readonly do: "end" }

/** Sends it; resolves when the last byte has left, nothing will ever follow, or nobody is left to read it. */
export const deliver = async (outgoing: Outgoing, faults: Faults, way: Way): Promise<void> => {
  const { book, response, signal } = way
  if (signal.aborted) return
  if (faults.hang === true) return
  if (faults.cut === "beforeHeaders") {
    book("cut")
    return void response.destroy()
  }
  const steps = plan(outgoing, faults)
  const ending = steps.at(-1)?.do === "cut" ? "cut" : "whole"
  const length = Buffer.byteLength(outgoing.pieces.join(""))
  // Where there is no body, the headers are the end.
  if (length === 0) book(ending)
  response.writeHead(outgoing.status, {
    ...outgoing.headers,
    ...(outgoing.streamed ? {} : { "content-length": String(length) }),
  })
  response.flushHeaders()
  for (const step of steps) {
    await take(step, ending, way)
    if (signal.aborted || response.destroyed) return
  }
}

const take = async (step: Step, ending: "whole" | "cut", way: Way): Promise<void> => {
  const { book, response, sent, signal, timers } = way
  switch (step.do) {
    case "sleep":
      return timers.sleep(step.millis, signal)
    case "write":
      if (step.finishes) book(ending)
      sent(step.bytes.length)
      return new Promise((resolve) => response.write(step.bytes, () => resolve()))
    case "cut":
      book(ending)
      // The bytes before it are with the system by now, and leave.
      await new Promise((resolve) => setImmediate(resolve))
      return void response.destroy()
    case "hang":
      return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }))
    case "end":
      return void response.end()
  }
}

/** Everything to do after the headers. */
const plan = (outgoing: Outgoing, faults: Faults): ReadonlyArray<Step> => {
  const pieces = noisy(outgoing, faults.garbage)
  const total = pieces.reduce((sum, piece) => sum + piece.length, 0)
  const stop = stopAt(faults, total)
  const steps: Array<Step> = []
  let at = 0
  for (const [index, piece] of pieces.entries()) {
    if (index > 0 && faults.chunkLatencyMs > 0) steps.push({ do: "sleep", millis: faults.chunkLatencyMs })
    const end = Math.min(at + piece.length, stop?.at ?? total)
    const isLast = stop !== undefined && stop.at <= at + piece.length
    steps.push(
      ...writes(piece, { at, end, finishes: index === outgoing.finishAt && end === at + piece.length }, faults),
    )
    at += piece.length
    if (isLast) return [...steps, { do: stop.do }]
  }
  return [...steps, { do: stop?.do ?? "end" }]
}

/** Where it stops for good, if it does: a stop past the end stops nothing. */
const stopAt = (
  { cut, hang }: Faults,
  total: number,
): { readonly at: number; readonly do: "cut" | "hang" } | undefined => {
  const place = cut === true ? Math.floor(total / 2) : cut
  if (typeof place === "number" && place <= total) return { at: place, do: "cut" }
  return typeof hang === "number" && hang <= total ? { at: hang, do: "hang" } : undefined
}

/** The part of a piece up to `end`, with the delays inside it. */
const writes = (
  piece: Buffer,
  { at, end, finishes }: { readonly at: number; readonly end: number; readonly finishes: boolean },
  { delays = [] }: Faults,
): ReadonlyArray<Step> => {
  const inside = delays.filter(({ atByte }) => atByte >= at && atByte < end).toSorted((a, b) => a.atByte - b.atByte)
  const steps: Array<Step> = []
  let from = at
  const write = (to: number): void => {
    if (to > from)
      steps.push({ do: "write", bytes: piece.subarray(from - at, to - at), finishes: finishes && to === end })
    from = to
  }
  for (const { atByte, millis } of inside) {
    write(atByte)
    steps.push({ do: "sleep", millis })
  }
  write(end)
  return steps
}

/** The pieces as bytes, noise from a byte on; as long as before. */
const noisy = ({ pieces, streamed }: Outgoing, garbage: number | undefined): ReadonlyArray<Buffer> => {
  const bytes = pieces.map((piece) => Buffer.from(piece))
  if (garbage === undefined) return bytes
  const noise = streamed ? "data: <noise\n\n" : "<noise "
  let at = 0
  for (const piece of bytes) {
    const from = Math.max(0, garbage - at)
    if (from < piece.length) piece.fill(noise, from)
    at += piece.length
  }
  return bytes
}
