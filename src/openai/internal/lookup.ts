/**
 * What a provider tells beside replies: how many input tokens a question has, and how a stored reply ended.
 *
 * Its law: neither ever fails. Where the provider cannot tell, nobody knows.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type * as Provider from "../../model/Provider.ts"
import type { Ask } from "./body.ts"
import { send } from "./call.ts"
import { makeTarget } from "./client.ts"
import { asCount, asRecord } from "./json.ts"
import { reportOf } from "./report.ts"
import { assembly } from "./responsesReply.ts"
import type { Talk } from "./talk.ts"

/** How long a lookup may take: without it, a call would wait for its bound. */
const lookupMillis = 10_000

/** No reply that is billed: nothing to report. */
const unbilled = { report: () => {}, toReport: (): Provider.Report => ({ _tag: "NotSent" }) }

const quietly = { headers: {}, assembly, onText: () => {} }

/** Asks the input counter. One that is not there is not asked again. */
export const makeCount = ({ line, options, settings, writer }: Talk) => {
  const path = "/responses/input_tokens"
  const target = makeTarget(options, settings, "POST", path)
  const timeoutMillis = Math.min(lookupMillis, settings.timeoutMillis)
  let isThere = settings.hasCounter
  return (ask: Ask): Effect.Effect<number | undefined> =>
    Effect.suspend(() => {
      const body = isThere ? Result.getOrUndefined(writer.counted(ask)) : undefined
      if (body === undefined) return Effect.succeed(undefined)
      return send(line, { method: "post", target, path, body: body.json, timeoutMillis, ...quietly }, unbilled).pipe(
        // A question of no tokens is none.
        Effect.map((reply) => asCount(asRecord(reply)["input_tokens"]) || undefined),
        Effect.catch(({ report }) => {
          // Of a question that continued a reply, 404 may mean that reply.
          const missing = body.continues === undefined ? [404, 405, 501] : [405, 501]
          if (report._tag === "Refused" && missing.includes(report.status)) isThere = false
          return Effect.succeed(undefined)
        }),
      )
    })
}

const ended = new Set<unknown>(["completed", "incomplete", "failed", "cancelled"])

/** Looks a stored reply up. */
export const makeRetrieve =
  ({ line, options, settings }: Talk) =>
  (id: string): Effect.Effect<Provider.Report | undefined> => {
    // An id is part of an address.
    if (!/^[\w-]{1,256}$/.test(id)) return Effect.succeed(undefined)
    const path = `/responses/${id}`
    const target = makeTarget(options, settings, "GET", path)
    const timeoutMillis = Math.min(lookupMillis, settings.timeoutMillis)
    return send(line, { method: "get", target, path, body: undefined, timeoutMillis, ...quietly }, unbilled).pipe(
      Effect.map((reply) => (ended.has(asRecord(reply)["status"]) ? reportOf(reply, settings) : undefined)),
      Effect.option,
      Effect.map(Option.getOrUndefined),
    )
  }
