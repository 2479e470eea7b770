import assert from "node:assert/strict"
import { test } from "node:test"
import { parsePrice, PriceError } from "../src/price.js"

test("a price has a sign and an amount", () => {
  assert.deepEqual(parsePrice("$5"), { currency: "USD", cents: 500 })
  assert.deepEqual(parsePrice("£3.50"), { currency: "GBP", cents: 350 })
  assert.deepEqual(parsePrice("¥19.90"), { currency: "CNY", cents: 1990 })
})

test("a sign may be the code of its currency", () => {
  assert.deepEqual(parsePrice("EUR 12.5"), { currency: "EUR", cents: 1250 })
})

test("space around a price is not part of it", () => {
  assert.deepEqual(parsePrice(" € 7.05 "), { currency: "EUR", cents: 705 })
})

test("a price may be typed with full-width characters", () => {
  const price = { currency: "CNY", cents: 1990 }
  assert.deepEqual(parsePrice("￥19.90"), price)
  assert.deepEqual(parsePrice("￥１９．９０"), price)
})

test("a text that is no price is refused", () => {
  for (const text of ["", "5", "$", "$-5", "$1.234", "five dollars"]) {
    assert.throws(() => parsePrice(text), PriceError)
  }
})
