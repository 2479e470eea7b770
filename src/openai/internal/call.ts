/**
 * One request over the wire and the one report about it.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type { OpenAI } from "openai"
import type { Response as Reply, ResponseCreateParamsNonStreaming } from "openai/resources/responses/responses"
import type * as Provider from "../../model/Provider.ts"
import { type Failure, fromError, type Target, type Wire } from "./failure.ts"
import { toReport } from "./reply.ts"

/**
 * Sends `body` once. Whatever happens, interruption included, `report` is called once before this ends.
 * Interruption aborts the HTTP request.
 */
export const send = (options: {
  readonly client: OpenAI
  readonly target: Target
  readonly body: ResponseCreateParamsNonStreaming
  readonly headers: Readonly<Record<string, string>>
  readonly report: (report: Provider.Report) => void
}): Effect.Effect<Reply, Failure> =>
  Effect.suspend(() => {
    const wire: Wire = { sent: false, status: undefined }
    return Effect.tryPromise({
      try: (signal) =>
        options.client
          .withOptions({ fetch: watched(wire) })
          .responses.create(options.body, { signal, headers: options.headers }),
      catch: (error) => fromError(error, wire, options.target),
    }).pipe(Effect.onExit((exit) => Effect.sync(() => options.report(reportOf(exit, wire)))))
  })

// The `openai` package tells a failure by its class alone; how far the request got is seen only here.
const watched =
  (wire: Wire): typeof fetch =>
  async (url, init) => {
    wire.sent = true
    const response = await fetch(url, init)
    wire.status = response.status
    return response
  }

const reportOf = (exit: Exit.Exit<Reply, Failure>, wire: Wire): Provider.Report => {
  if (Exit.isSuccess(exit)) return toReport(exit.value)
  const failure = Cause.findErrorOption(exit.cause)
  if (Option.isSome(failure)) return failure.value.report
  return wire.sent ? { _tag: "Lost" } : { _tag: "NotSent" }
}
