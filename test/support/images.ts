/** The first bytes of images of a given size, and nothing of their pictures. */
export interface Size {
  readonly width: number
  readonly height: number
}

const ascii = (text: string): ReadonlyArray<number> => Array.from(text, (letter) => letter.charCodeAt(0))

/** A whole number as so many bytes, the largest first. */
const big = (value: number, bytes: number): ReadonlyArray<number> =>
  Array.from({ length: bytes }, (_, index) => (value >>> (8 * (bytes - 1 - index))) & 0xff)

const little = (value: number, bytes: number): ReadonlyArray<number> => big(value, bytes).toReversed()

export const png = ({ height, width }: Size): Uint8Array =>
  Uint8Array.from([
    0x89,
    ...ascii("PNG\r\n\x1A\n"),
    ...big(13, 4),
    ...ascii("IHDR"),
    ...big(width, 4),
    ...big(height, 4),
    8,
    6,
  ])

export const gif = ({ height, width }: Size): Uint8Array =>
  Uint8Array.from([...ascii("GIF89a"), ...little(width, 2), ...little(height, 2), 0, 0])

/** With segments of these lengths before the frame, as cameras write them. */
export const jpeg = ({ height, width }: Size, segments: ReadonlyArray<number> = [16]): Uint8Array => {
  const before = segments.flatMap((length) => [0xff, 0xe1, ...big(length + 2, 2), ...Array<number>(length).fill(0xc0)])
  const frame = [0xff, 0xff, 0xc2, ...big(17, 2), 8, ...big(height, 2), ...big(width, 2), 3]
  return Uint8Array.from([0xff, 0xd8, ...before, 0xff, 0xc4, ...big(4, 2), 0, 0, ...frame])
}

export const webp = ({ height, width }: Size, kind: "VP8 " | "VP8L" | "VP8X"): Uint8Array => {
  const head = [...ascii("RIFF"), ...little(100, 4), ...ascii("WEBP"), ...ascii(kind), ...little(50, 4)]
  const bits = (BigInt(width) - 1n) | ((BigInt(height) - 1n) << 14n)
  const body = {
    "VP8 ": [0, 0, 0, 0x9d, 0x01, 0x2a, ...little(width, 2), ...little(height, 2)],
    VP8L: [0x2f, ...little(Number(bits), 4), 0, 0, 0, 0, 0],
    VP8X: [0, 0, 0, 0, ...little(width - 1, 3), ...little(height - 1, 3)],
  }[kind]
  return Uint8Array.from([...head, ...body])
}
