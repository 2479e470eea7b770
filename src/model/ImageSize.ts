/**
 * The size of an image from its first bytes, for bounding what it costs: PNG, JPEG, GIF and WebP, the formats that
 * model providers take. What it cannot read has no size; a size is never guessed.
 */

/**
 * **Units**: pixels.
 */
export interface ImageSize {
  readonly width: number
  readonly height: number
}

/** In a photograph a preview and colour tables may stand before the size. */
const furthest = 262_144

/** The size of an image given as bytes or as base64; `undefined` when it cannot be told. */
export const sizeOf = (data: Uint8Array | string): ImageSize | undefined => {
  const bytes =
    typeof data === "string" ? Buffer.from(data.slice(0, (furthest / 3) * 4), "base64") : data.subarray(0, furthest)
  const found = read(new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength))
  return found !== undefined && found.width > 0 && found.height > 0 ? found : undefined
}

/** The size of an image in a `data:` address. */
export const sizeOfUrl = (url: string): ImageSize | undefined => {
  const match = /^data:[^,]{0,256};base64,/.exec(url)
  return match === null ? undefined : sizeOf(url.slice(match[0].length))
}

const read = (view: DataView): ImageSize | undefined => {
  if (starts(view, "\x89PNG\r\n\x1A\n") && starts(view, "IHDR", 12) && view.byteLength >= 24) {
    return { width: view.getUint32(16), height: view.getUint32(20) }
  }
  if (starts(view, "GIF8") && view.byteLength >= 10) {
    return { width: view.getUint16(6, true), height: view.getUint16(8, true) }
  }
  if (starts(view, "RIFF") && starts(view, "WEBP", 8) && view.byteLength >= 30) return readWebp(view)
  return starts(view, "\xFF\xD8") ? readJpeg(view) : undefined
}

const starts = (view: DataView, text: string, at = 0): boolean =>
  view.byteLength >= at + text.length &&
  Array.from(text).every((letter, index) => view.getUint8(at + index) === letter.charCodeAt(0))

/** Lossy, lossless and extended WebP each keep their size in another place. */
const readWebp = (view: DataView): ImageSize | undefined => {
  if (starts(view, "VP8 ", 12)) {
    return { width: view.getUint16(26, true) & 0x3fff, height: view.getUint16(28, true) & 0x3fff }
  }
  if (starts(view, "VP8L", 12)) {
    const bits = view.getUint32(21, true)
    return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 }
  }
  const uint24 = (at: number): number => view.getUint16(at, true) + view.getUint8(at + 2) * 65_536
  return starts(view, "VP8X", 12) ? { width: uint24(24) + 1, height: uint24(27) + 1 } : undefined
}

/** From segment to segment, up to the one that begins a frame. */
const readJpeg = (view: DataView): ImageSize | undefined => {
  let at = 2
  while (at + 9 <= view.byteLength) {
    if (view.getUint8(at) !== 0xff) return undefined
    const marker = view.getUint8(at + 1)
    if (marker === 0xff) at += 1
    else if (isFrame(marker)) return { width: view.getUint16(at + 7), height: view.getUint16(at + 5) }
    else if (standsAlone(marker)) at += 2
    else at += 2 + view.getUint16(at + 2)
  }
  return undefined
}

/** Every start of a frame; three numbers in between mean tables. */
const isFrame = (marker: number): boolean => marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)

const standsAlone = (marker: number): boolean => marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8)
