/**
 * Keeping the beginning and the end of an output that may be of any size.
 */
import { headOf, tailOf } from "./text.ts"

/** An output as it was kept. */
export interface Captured {
  /** Where something is missing in the middle, a line says how much. */
  readonly text: string
  /** All that came. */
  readonly bytes: number
  readonly truncated: boolean
}

/** Collects an output; keeps at most `maxBytes` of it. */
export interface Capture {
  readonly add: (chunk: Buffer) => void
  readonly done: () => Captured
}

export const capture = (maxBytes: number): Capture => {
  const headBytes = Math.ceil(maxBytes / 2)
  const tailBytes = maxBytes - headBytes
  let total = 0
  let head = Buffer.alloc(0)
  let tail: Array<Buffer> = []
  let inTail = 0
  const addToTail = (chunk: Buffer): void => {
    tail.push(chunk)
    inTail += chunk.length
    // Now and then, so that not every chunk copies what is kept.
    if (inTail > 2 * tailBytes + 65_536) {
      tail = [Buffer.concat(tail).subarray(inTail - tailBytes)]
      inTail = tailBytes
    }
  }
  return {
    add: (chunk) => {
      total += chunk.length
      const room = headBytes - head.length
      if (room > 0) head = Buffer.concat([head, chunk.subarray(0, room)])
      if (chunk.length > room) addToTail(Buffer.from(chunk.subarray(Math.max(0, room))))
    },
    done: () => {
      const rest = Buffer.concat(tail)
      if (total <= maxBytes) return { text: Buffer.concat([head, rest]).toString(), bytes: total, truncated: false }
      const first = headOf(head, headBytes)
      const last = tailOf(rest, tailBytes)
      const missing = total - first.length - last.length
      return {
        text: `${first.toString()}\n[${missing} bytes left out]\n${last.toString()}`,
        bytes: total,
        truncated: true,
      }
    },
  }
}
