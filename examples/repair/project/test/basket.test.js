import assert from "node:assert/strict"
import { test } from "node:test"
import { line, receipt, total } from "../src/basket.js"

const basket = [line("tea", 2, "£3.50"), line("milk", 1, "£1.20")]

test("a basket costs what its lines cost", () => {
  assert.deepEqual(total(basket), { currency: "GBP", cents: 820 })
})

test("a basket is of one currency", () => {
  assert.throws(() => total([...basket, line("bread", 1, "€2")]), RangeError)
})

test("a receipt ends with the total", () => {
  assert.equal(receipt(basket), "2 x tea  £3.50\n1 x milk  £1.20\ntotal  £8.20")
})
