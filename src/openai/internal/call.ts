/**
 * One request over the wire and the one report about it.
 *
 * Its laws: at most one HTTP request leaves (no retry, no redirect); one timeout covers it from its first byte to the
 * last of its reply; interruption and timeout close the connection; whatever happens, the report is made once.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { OpenAI } from "openai"
import type * as Provider from "../../model/Provider.ts"
import { type Failure, fromError, type Target, Unread, type Wire } from "./failure.ts"
import { type Assembly, type Ending, StreamReader } from "./stream.ts"

/** Where requests go. */
export interface Line {
  readonly client: OpenAI
  readonly timeoutMillis: number
}

/** A request, and how its reply is read. */
export interface Outgoing {
  readonly method: "get" | "post"
  readonly target: Target
  readonly path: string
  readonly body: string | undefined
  readonly headers: Readonly<Record<string, string>>
  /** Puts the events together, where the reply comes as such. */
  readonly assembly: () => Assembly
  readonly onText: (delta: string) => void
  readonly timeoutMillis?: number
}

/** Sends once: the reply as JSON says it, `undefined` where it is no JSON. Reports it, or what became of it. */
export const send = (
  line: Line,
  outgoing: Outgoing,
  on: { readonly report: (report: Provider.Report) => void; readonly toReport: (reply: unknown) => Provider.Report },
): Effect.Effect<unknown, Failure> =>
  Effect.suspend(() => {
    const wire: Wire = {
      sent: false,
      status: undefined,
      isLate: false,
      id: undefined,
      reply: undefined,
      abort: new AbortController(),
    }
    const reportOf = (exit: Exit.Exit<unknown, Failure>): Provider.Report => {
      if (Exit.isSuccess(exit)) return on.toReport(exit.value)
      // Interrupted after the last byte that matters.
      if (wire.reply !== undefined) return on.toReport(wire.reply.body)
      const failure = Cause.findErrorOption(exit.cause)
      if (failure._tag === "Some") return failure.value.report
      return wire.sent ? lost(wire.id) : { _tag: "NotSent" }
    }
    return Effect.callback<unknown, Failure>((resume) => {
      const close = () => {
        clearTimeout(timer)
        wire.abort.abort()
      }
      const timer = setTimeout(() => {
        wire.isLate = true
        close()
        // A `fetch` that does not listen would be waited for without end.
        if (wire.status === undefined) resume(Effect.fail(fromError(undefined, wire, outgoing.target)))
      }, outgoing.timeoutMillis ?? line.timeoutMillis)
      const settled = exchange(line, outgoing, wire).then(Effect.succeed, (error: unknown) =>
        error instanceof Broken ? Effect.die(error.reason) : Effect.fail(fromError(error, wire, outgoing.target)),
      )
      // Nothing of the request outlives it, whichever way it ended.
      void settled.finally(close).then(resume)
      return Effect.sync(close)
    }).pipe(Effect.onExit((exit) => Effect.sync(() => on.report(reportOf(exit)))))
  })

const lost = (id: string | undefined): Provider.Report => (id === undefined ? { _tag: "Lost" } : { _tag: "Lost", id })

/** A listener that threw: a mistake of the program, not of the provider. */
class Broken extends Error {
  readonly reason: unknown
  constructor(reason: unknown) {
    super("a listener threw")
    this.reason = reason
  }
}

const exchange = async (line: Line, outgoing: Outgoing, wire: Wire): Promise<unknown> => {
  const response = await line.client[outgoing.method](outgoing.path, {
    ...(outgoing.body === undefined ? {} : { body: outgoing.body }),
    headers: { ...(outgoing.body === undefined ? {} : { "content-type": "application/json" }), ...outgoing.headers },
    fetchOptions: { [wireKey]: wire } as object,
  }).asResponse()
  const type = response.headers.get("content-type") ?? ""
  if (response.body !== null && type.startsWith("text/event-stream")) {
    const ending = await read(response.body, outgoing, wire)
    if (ending._tag === "Whole") return ending.body
    throw new Unread(ending)
  }
  wire.reply = { body: parsed(await response.text()) }
  return wire.reply.body
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const read = async (body: ReadableStream<Uint8Array>, outgoing: Outgoing, wire: Wire): Promise<Ending> => {
  const assembly = outgoing.assembly()
  const stream = new StreamReader(assembly, (delta) => {
    try {
      outgoing.onText(delta)
    } catch (reason) {
      throw new Broken(reason)
    }
  })
  const reader = body.getReader()
  wire.abort.signal.addEventListener("abort", () => void reader.cancel().catch(() => undefined), { once: true })
  for (;;) {
    const { done, value } = await reader.read()
    if (wire.abort.signal.aborted) throw new Error("nobody waits for it any more")
    const ending = done ? stream.end() : stream.push(value)
    wire.id = assembly.id()
    if (ending === undefined) continue
    if (ending._tag === "Whole") wire.reply = { body: ending.body }
    if (!done && ending._tag === "Whole") await linger(reader)
    return ending
  }
}

/** How long a connection is given to end by itself, so that it can be used again. */
const lingerMillis = 20

/** Reads what follows the end of a reply, which is nothing; a server that keeps the connection open is not waited for. */
const linger = async (reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> => {
  let timer: NodeJS.Timeout | undefined
  const enough = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, lingerMillis)
  })
  const drain = async () => {
    while (!(await reader.read()).done);
  }
  // The reply is whole: what happens to its connection now does not matter.
  await Promise.race([drain().catch(() => undefined), enough])
  clearTimeout(timer)
}

const wireKey = Symbol("bursar/openai/wire")

/**
 * The `fetch` for a client. The `openai` package tells a failure by its class alone; how far the request got is seen
 * only here. Redirects are not followed: the second request would be another one, and may go to somebody else.
 */
export const watched =
  (fetch: typeof globalThis.fetch): typeof globalThis.fetch =>
  async (url, init) => {
    const wire = (init as { readonly [wireKey]?: Wire } | undefined)?.[wireKey]
    if (wire === undefined) throw new Error("a request that nobody watches")
    const request = { ...init, signal: wire.abort.signal, redirect: "manual" } as const
    wire.sent = !wire.abort.signal.aborted
    const response = await fetch(url, request)
    wire.status = response.status
    return response
  }
