import { formatPrice } from "./format.js"
import { parsePrice } from "./price.js"

/** A line of a basket: so many of an article at a price as somebody wrote it. */
export function line(article, count, price) {
  if (!Number.isInteger(count) || count < 1) throw new RangeError(`not a count: ${count}`)
  return { article, count, price: parsePrice(price) }
}

/** What a basket costs. All its lines have to be of one currency. */
export function total(lines) {
  const currencies = new Set(lines.map(({ price }) => price.currency))
  if (currencies.size !== 1) throw new RangeError("a basket has lines, all of one currency")
  const cents = lines.reduce((sum, { count, price }) => sum + count * price.cents, 0)
  return { currency: lines[0].price.currency, cents }
}

/** The receipt of a basket, a line for each of its lines and one for their total. */
export function receipt(lines) {
  const rows = lines.map(({ article, count, price }) => `${count} x ${article}  ${formatPrice(price)}`)
  return [...rows, `total  ${formatPrice(total(lines))}`].join("\n")
}
