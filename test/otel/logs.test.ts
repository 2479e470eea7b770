import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { exported } from "./exporting.ts"

interface Record {
  readonly severityNumber: number
  readonly severityText: string
  readonly body: { readonly stringValue: string }
  readonly attributes: ReadonlyArray<{ readonly key: string; readonly value: { readonly stringValue?: string } }>
  readonly traceId?: string
  readonly spanId?: string
}

const logged = <A, E>(program: Effect.Effect<A, E>, options: Parameters<typeof exported>[1] = {}) =>
  Effect.map(exported(program, { protocol: "http/json", ...options }), ({ receiver, spans }) => ({
    spans,
    records: receiver.requests
      .filter(({ path }) => path === "/v1/logs")
      .flatMap(({ body }) => {
        const request = JSON.parse(body.toString()) as {
          readonly resourceLogs: ReadonlyArray<{
            readonly scopeLogs: ReadonlyArray<{ readonly logRecords: ReadonlyArray<Record> }>
          }>
        }
        return request.resourceLogs.flatMap(({ scopeLogs }) => scopeLogs.flatMap(({ logRecords }) => logRecords))
      }),
  }))

const attributesOf = ({ attributes }: Record) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue]))

describe("a line of the log", () => {
  it.live("is exported with the span it was written in", () =>
    Effect.gen(function* () {
      const line = Effect.logWarning("low on", { money: 3 }).pipe(Effect.annotateLogs("part", "one"))
      const { records, spans } = yield* logged(Effect.withSpan(line, "work"))
      const [record, ...more] = records
      assert.deepStrictEqual(more, [])
      assert.deepStrictEqual(
        [record?.body.stringValue, record?.severityText, record?.severityNumber],
        ['low on {"money":3}', "WARN", 13],
      )
      assert.deepStrictEqual([record?.traceId, record?.spanId], [spans[0]?.traceId, spans[0]?.spanId])
      assert.deepStrictEqual(attributesOf(record!), { part: "one" })
    }),
  )

  it.live("outside of a span has none", () =>
    Effect.gen(function* () {
      const { records } = yield* logged(Effect.logInfo("alone"))
      assert.deepStrictEqual(
        records.map(({ body, spanId, traceId }) => [body.stringValue, traceId, spanId]),
        [["alone", undefined, undefined]],
      )
    }),
  )

  it.live("tells of a failure by its type, and of what it says where that is asked for", () =>
    Effect.gen(function* () {
      const failing = Effect.logError("it failed").pipe(Effect.andThen(Effect.die(new TypeError("secret"))))
      const program = Effect.sandbox(failing).pipe(Effect.catch((cause) => Effect.logError(cause)))
      const [, plain] = (yield* logged(program)).records
      assert.deepStrictEqual(attributesOf(plain!), { "exception.type": "TypeError" })
      const [, told] = (yield* logged(program, { exceptions: true })).records
      assert.deepStrictEqual(attributesOf(told!), { "exception.type": "TypeError", "exception.message": "secret" })
    }),
  )
})
