import { assert, describe, it } from "@effect/vitest"
import * as fs from "node:fs"
import type { Row } from "../telemetry/Row.ts"
import { draw } from "./draw.ts"
import { read } from "./read.ts"

const file = (path: string): string => fs.readFileSync(new URL(path, import.meta.url), "utf8")
const stored = file("research.json")
const rows = read(stored)

const texts = (picture: string): ReadonlyArray<string> =>
  [...picture.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map(([, text]) => text ?? "")

/** As Jaeger's query API answers. */
const jaeger = (rows: ReadonlyArray<Row>): string =>
  JSON.stringify({
    data: [
      {
        spans: rows.map((row) => ({
          traceID: row.traceId,
          spanID: row.spanId,
          operationName: row.name,
          references: [
            ...row.links.map(({ spanId, traceId }) => ({ refType: "FOLLOWS_FROM", traceID: traceId, spanID: spanId })),
            ...(row.parentId === undefined
              ? []
              : [{ refType: "CHILD_OF", traceID: row.traceId, spanID: row.parentId }]),
          ],
          startTime: Number(row.startNanos / 1_000n),
          duration: Number(row.endNanos / 1_000n - row.startNanos / 1_000n),
          tags: [
            ...Object.entries(row.attributes).map(([key, value]) => ({ key, value })),
            ...(row.status.code === "error"
              ? [
                  { key: "otel.status_code", value: "ERROR" },
                  { key: "otel.status_description", value: row.status.message },
                ]
              : []),
          ],
          logs: row.events.map(({ name }) => ({ fields: [{ key: "event", value: name }] })),
        })),
      },
    ],
  })

describe("a picture of a stored trace", () => {
  it("is the one in the README", () => {
    assert.strictEqual(draw(rows), file("../../examples/research.svg"))
  })

  it("does not depend on the order in which spans were stored", () => {
    assert.strictEqual(draw(rows.toReversed()), draw(rows))
  })

  it("is the same from Jaeger, which counts microseconds", () => {
    assert.deepStrictEqual(texts(draw(read(jaeger(rows)))), texts(draw(rows)))
  })

  it("shows every span but the marks, below its parent, with what it came to", () => {
    const shown = texts(draw(rows))
    const names = rows.map(({ name }) => name).filter((name) => name !== "bursar.start" && name !== "bursar.mark")
    assert.sameMembers(
      shown.filter((text) => names.includes(text)),
      names,
    )
    assert.deepStrictEqual(
      shown.slice(1, 4).map((text) => text.replace(/^[\d.]+ \w+/, "TIME")),
      ["invoke_agent lead", "TIME  completed", "bursar.step"],
    )
  })

  it("draws what failed in red, what stopped with a mark, and escapes what it shows", () => {
    const [first] = rows
    const failed: Row = { ...first!, name: "execute_tool <a>", status: { code: "error", message: "it & that" } }
    const mark: Row = { ...first!, spanId: "m", name: "bursar.mark", parentId: first!.spanId }
    const picture = draw([failed, mark])
    assert.include(picture, "execute_tool &lt;a&gt;")
    assert.include(picture, "it &amp; that")
    assert.include(picture, "#c0392b")
    assert.include(picture, "<circle")
  })

  it("is not made of another file", () => {
    assert.throws(() => read("{}"), "neither Jaeger's data nor OTLP's resourceSpans")
  })
})
