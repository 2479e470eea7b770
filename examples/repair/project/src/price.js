import { currencyOf } from "./currency.js"

/** A text that is no price. */
export class PriceError extends Error {
  name = "PriceError"
}

const written = /^([^\d\s.]{1,3})\s*(\d{1,9})(?:\.(\d{1,2}))?$/

/**
 * Reads a price such as "$5", "£3.50" or "EUR 12.5".
 *
 * Throws a PriceError for a text that is none.
 */
export function parsePrice(text) {
  const match = written.exec(text.trim())
  if (match === null) throw new PriceError(`not a price: ${text}`)
  const [, sign, whole, rest = ""] = match
  const currency = currencyOf(sign)
  if (currency === undefined) throw new PriceError(`not a currency we sell in: ${sign}`)
  return { currency, cents: Number(whole) * 100 + Number(rest.padEnd(2, "0")) }
}
