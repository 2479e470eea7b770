/**
 * From a request to generate to its end: checked, asked of the script, answered, booked, stored.
 *
 * Its law: each request gets one entry, settled once: by its reply, its refusal, the script's cut, its client's going
 * away, its cancellation or the server's stop.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import { text } from "node:stream/consumers"
import { type Answer, answer, refused, whole } from "./Answer.ts"
import type { Arrival, Books, OpenEntry, Outcome } from "./Books.ts"
import * as Chat from "./Chat.ts"
import { deliver, type Faults, type Outgoing } from "./Deliver.ts"
import { parsed, record } from "./Json.ts"
import type { Reply } from "./Reply.ts"
import { ask, type Asked, bodyOf, isRefusal, type Protocol, type Refusal } from "./Request.ts"
import * as Responses from "./Responses.ts"
import type { StartOptions, ReceivedRequest } from "./Server.ts"
import type { Store } from "./Store.ts"
import { tempersOf } from "./Temper.ts"
import type { Timers } from "./Timers.ts"
import { none, type Tokens } from "./Tokens.ts"
import { type Turn, turnFor } from "./Turn.ts"

/** What the requests of one server share. */
export interface Hub {
  readonly options: StartOptions
  readonly books: Books
  readonly store: Store
  readonly timers: Timers
  readonly requests: Array<ReceivedRequest>
  /** Turns asked of the script. */
  turns: number
  /** Aborted when the server stops. */
  readonly stopping: AbortController
}

/** A request under way. */
interface Exchange {
  readonly hub: Hub
  readonly entry: OpenEntry
  readonly response: ServerResponse
  /** Aborted when the reply is over or its client gone. */
  readonly over: AbortController
  readonly headers: Readonly<Record<string, string>>
  /** What to book when the client goes away now. */
  gone: () => void
}

/** Answers one request to generate. */
export const generate = async (
  hub: Hub,
  protocol: Protocol,
  { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
): Promise<void> => {
  const sent = parsed(await text(request))
  const body = bodyOf(protocol, sent, hub.store.conversation)
  if (!isRefusal(body)) hub.requests.push({ headers: request.headers, protocol, body, sent: record(sent) })
  const asked = isRefusal(body) ? body : ask(protocol, body)
  const exchange = open(hub, arrivalOf(protocol, sent, asked, request), response)
  if (isRefusal(asked)) return refuse(exchange, asked, "refused")
  const n = hub.turns++
  const turn = await turnFor(hub.options.script, asked.body, n).catch((error: unknown) => String(error))
  if (exchange.entry.outcome !== "open") return
  if (turn === undefined || typeof turn === "string") {
    const message = turn ?? `the script has no turn for request ${n}`
    return refuse(exchange, { status: 500, message, code: "past_script" }, "pastScript")
  }
  const answered = answer(turn, asked, n, tempersOf(turn.temper, hub.options.temper))
  const { reply } = answered
  named(exchange.entry, reply)
  return asked.background && reply !== undefined
    ? behind(exchange, answered, reply, turn)
    : ahead(exchange, answered, turn)
}

const arrivalOf = (
  protocol: Protocol,
  sent: unknown,
  asked: Asked | Refusal,
  { headers }: IncomingMessage,
): Arrival => {
  const { model, stream } = record(sent)
  const { traceparent } = headers
  return {
    protocol,
    streamed: stream === true,
    model: typeof model === "string" ? model : "",
    serviceTier: isRefusal(asked) ? "default" : asked.tier,
    traceparent: Array.isArray(traceparent) ? traceparent[0] : traceparent,
  }
}

const open = (hub: Hub, arrival: Arrival, response: ServerResponse): Exchange => {
  const entry = hub.books.arrive(arrival)
  const headers = { "x-request-id": "req_testing", ...hub.options.headers }
  const gone = () => void hub.books.settle(entry, endedBy(hub), none)
  const exchange: Exchange = { hub, entry, response, over: new AbortController(), headers, gone }
  response.once("close", () => {
    exchange.gone()
    exchange.over.abort()
    hub.books.close(entry)
  })
  return exchange
}

const endedBy = (hub: Hub): "stopped" | "aborted" => (hub.stopping.signal.aborted ? "stopped" : "aborted")

const named = (entry: OpenEntry, reply: Reply | undefined): void => {
  if (reply === undefined) return
  entry.id = reply.asked.protocol === "chat" ? Chat.idOf(reply.n) : Responses.idOf(reply.n)
  entry.model = reply.model
  entry.serviceTier = reply.tier
}

const refuse = (exchange: Exchange, refusal: Refusal, outcome: "refused" | "pastScript"): Promise<void> =>
  send(exchange, refused(refusal), { faults: noFaults, book: () => settle(exchange, outcome, none) })

const settle = ({ entry, hub }: Exchange, outcome: Exclude<Outcome, "open">, tokens: Tokens): boolean =>
  hub.books.settle(entry, outcome, tokens)

const noFaults: Faults = { chunkLatencyMs: 0 }

const faultsOf = (turn: Turn, { chunkLatencyMs }: StartOptions): Faults => ({
  ...turn,
  chunkLatencyMs: turn.chunkLatencyMs ?? chunkLatencyMs ?? 0,
})

const send = (
  { entry, headers, hub, over, response }: Exchange,
  outgoing: Outgoing,
  { book, faults }: { readonly faults: Faults; readonly book: (ending: "whole" | "cut") => void },
): Promise<void> =>
  deliver({ ...outgoing, headers: { ...headers, ...outgoing.headers } }, faults, {
    response,
    signal: over.signal,
    timers: hub.timers,
    book,
    sent: (bytes) => {
      entry.sentBytes += bytes
    },
  })

/** Answers while the client waits: who goes away before the end has aborted it. */
const ahead = async (exchange: Exchange, { billed, outcome, outgoing, reply }: Answer, turn: Turn): Promise<void> => {
  const { hub, over } = exchange
  const { options, store, timers } = hub
  if (reply !== undefined) store.begin(reply, undefined)
  exchange.gone = () => {
    const ending = endedBy(hub)
    const isBilled = options.billsAborted === true && ending === "aborted"
    if (!settle(exchange, ending, isBilled ? billed : none) || reply === undefined) return
    if (isBilled) store.end(reply, Responses.endOf(reply))
    else store.drop(reply)
  }
  await timers.sleep(turn.latencyMs ?? options.latencyMs ?? 0, over.signal)
  const book = (ending: "whole" | "cut"): void => {
    const isNew = settle(exchange, ending === "cut" ? "cut" : outcome, billed)
    if (isNew && reply !== undefined) store.end(reply, Responses.endOf(reply))
  }
  return send(exchange, outgoing, { faults: faultsOf(turn, options), book })
}

/** Answers in the background: it goes on without its client until it ends, is cancelled or the server stops. */
const behind = async (exchange: Exchange, answered: Answer, reply: Reply, turn: Turn): Promise<void> => {
  const { hub, over, response } = exchange
  const { options, store, stopping, timers } = hub
  const { billed, outcome, outgoing } = answered
  const cancelled = new AbortController()
  const ended = AbortSignal.any([cancelled.signal, stopping.signal])
  store.begin(reply, () => {
    settle(exchange, "cancelled", options.billsAborted === true ? billed : none)
    store.end(reply, "cancelled")
    cancelled.abort()
    if (reply.asked.streamed) response.destroy()
  })
  exchange.gone = () => {}
  const latencyMs = turn.latencyMs ?? options.latencyMs ?? 0
  const faults = faultsOf(turn, options)
  const work = async (): Promise<void> => {
    await timers.sleep(latencyMs, ended)
    const hasStopped = stopping.signal.aborted
    const isNew = settle(exchange, hasStopped ? "stopped" : outcome, hasStopped ? none : billed)
    if (isNew) store.end(reply, Responses.endOf(reply))
  }
  const working = work()
  const book = (): void => {}
  if (reply.asked.streamed) {
    await timers.sleep(latencyMs, over.signal)
    await send(exchange, outgoing, { faults, book })
  } else {
    await send(exchange, whole(200, JSON.stringify(Responses.unfinished(reply, "queued"))), { faults, book })
  }
  await working
}
