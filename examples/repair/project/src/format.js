import { signOf } from "./currency.js"

/** A price as it stands on a receipt, such as "£3.50". */
export function formatPrice({ currency, cents }) {
  const whole = Math.floor(cents / 100)
  const rest = String(cents % 100).padStart(2, "0")
  return `${signOf(currency)}${whole}.${rest}`
}
