import assert from "node:assert/strict"
import { test } from "node:test"
import { currencyOf, signOf } from "../src/currency.js"
import { formatPrice } from "../src/format.js"

test("every sign leads to its currency and back", () => {
  for (const sign of ["$", "€", "£", "¥"]) assert.equal(signOf(currencyOf(sign)), sign)
})

test("a currency that is not ours has no sign", () => {
  assert.equal(currencyOf("CHF"), undefined)
  assert.throws(() => signOf("CHF"), RangeError)
})

test("a price is printed with two digits of cents", () => {
  assert.equal(formatPrice({ currency: "GBP", cents: 305 }), "£3.05")
})
