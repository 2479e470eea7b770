/** The currencies we sell in, by the sign people write. A yuan and a yen share theirs; we sell in yuan. */
const bySign = new Map([
  ["$", "USD"],
  ["€", "EUR"],
  ["£", "GBP"],
  ["¥", "CNY"],
])

/** The code of the currency of a sign, or of the code itself; `undefined` for any other text. */
export function currencyOf(sign) {
  const code = sign.toUpperCase()
  return bySign.get(sign) ?? ([...bySign.values()].includes(code) ? code : undefined)
}

/** The sign of a currency. */
export function signOf(currency) {
  const found = [...bySign].find(([, code]) => code === currency)
  if (found === undefined) throw new RangeError(`we do not sell in ${currency}`)
  return found[0]
}
