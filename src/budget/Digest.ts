/**
 * What stands for the content of an operation under its id, in memory and in the journal: long enough that two contents
 * never share one by chance, short enough for every line. It guards against mistakes, not against malice.
 *
 * Every carve has one, so it is made in one walk over the content: no text is built and no names are sorted. Two lanes of
 * 32 bits, each with the finaliser of MurmurHash3 [Appleby]; the fields of an object are added up, so that their order
 * does not count.
 */

/**
 * Equal for equal content, whatever the order of its fields; a field that is `undefined` counts as left out, and -0 as 0.
 */
export const digest = (content: unknown): string =>
  lane(content, 0x9747b28c).toString(36).padStart(7, "0") + lane(content, 0x3c6ef372).toString(36).padStart(7, "0")

const mix = (hash: number, word: number): number => {
  let mixed = Math.imul(hash ^ word, 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return (mixed ^ (mixed >>> 16)) >>> 0
}

/** Kinds of values, so that `1`, `"1"` and `[1]` differ. */
const kind = { text: 1, number: 2, other: 3, list: 4, fields: 5 } as const

const lane = (value: unknown, seed: number): number => {
  if (typeof value === "string") return ofText(value, mix(seed, kind.text))
  if (typeof value === "number") return ofNumber(value, mix(seed, kind.number))
  if (typeof value !== "object" || value === null)
    return ofText(String(value), mix(mix(seed, kind.other), typeof value === "bigint" ? 1 : 0))
  if (Array.isArray(value)) {
    let hash = mix(mix(seed, kind.list), value.length)
    for (const item of value) hash = mix(hash, lane(item, seed))
    return hash
  }
  const fields = value as Readonly<Record<string, unknown>>
  let sum = mix(seed, kind.fields)
  for (const name in fields) {
    const field = fields[name]
    if (field !== undefined) sum = (sum + mix(mix(ofName(name), seed), lane(field, seed))) >>> 0
  }
  return mix(seed, sum)
}

/** Names of fields are few, and come again and again. */
const names = new Map<string, number>()

const ofName = (name: string): number => {
  const known = names.get(name)
  if (known !== undefined) return known
  const made = ofText(name, 0)
  if (names.size < 1000) names.set(name, made)
  return made
}

const ofText = (text: string, seed: number): number => {
  let hash = mix(seed, text.length)
  for (let at = 0; at < text.length; at++) hash = mix(hash, text.charCodeAt(at))
  return hash
}

/** Whole numbers by their two halves, which tell all of them apart; any other by how it is written. */
const ofNumber = (value: number, seed: number): number =>
  Number.isSafeInteger(value)
    ? mix(mix(seed, value >>> 0), Math.floor(value / 2 ** 32) >>> 0)
    : ofText(String(value), seed)
