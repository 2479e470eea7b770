/**
 * A local HTTP server that speaks the Responses and the Chat Completions protocol from a script and keeps its own
 * ledger. Plain Node, so that it also runs in a process of its own; `TestingServer` makes a scoped resource of it.
 *
 * Its laws: it listens on 127.0.0.1 only; once stopped it has no connection, no timer and no listener left.
 */
import { once } from "node:events"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import { text } from "node:stream/consumers"
import { refused, whole } from "./Answer.ts"
import * as Books from "./Books.ts"
import { countInput } from "./Counter.ts"
import type { Outgoing } from "./Deliver.ts"
import { generate, type Hub } from "./Generate.ts"
import { parsed } from "./Json.ts"
import type { Protocol, Refusal } from "./Request.ts"
import type { Wire } from "./Reply.ts"
import * as Store from "./Store.ts"
import type { Tempers } from "./Temper.ts"
import * as Timers from "./Timers.ts"
import { checkScript, type Json, type RequestBody, type Script } from "./Turn.ts"

/**
 * A request as it arrived.
 *
 * @category ledger
 * @since 0.1.0
 */
export interface ReceivedRequest {
  readonly headers: { readonly [name: string]: string | ReadonlyArray<string> | undefined }
  readonly protocol: Protocol
  /** As the script sees it: the same form in both protocols, with the whole conversation. */
  readonly body: RequestBody
  /** As it was sent. */
  readonly sent: Json
}

/** How to start a server; the same as `TestingServer.Options`, with plain numbers for durations. */
export interface StartOptions {
  readonly script: Script
  readonly temper?: Tempers | undefined
  readonly latencyMs?: number | undefined
  readonly chunkLatencyMs?: number | undefined
  readonly billsAborted?: boolean | undefined
  readonly hasCounter?: boolean | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly port?: number | undefined
}

/** A server that listens. */
export interface Running {
  readonly url: string
  readonly requests: ReadonlyArray<ReceivedRequest>
  readonly entries: ReadonlyArray<Books.Entry>
  readonly ledger: () => Books.Ledger
  readonly openConnections: () => number
  readonly openRequests: () => number
  readonly openTimers: () => number
  /** Calls `listener` after every change of the ledger, until the returned function is called. */
  readonly onChange: (listener: () => void) => () => void
  /** Destroys every connection and stops listening; harmless when repeated. */
  readonly stop: () => Promise<void>
}

/** Starts listening on 127.0.0.1. Rejects on a script with a turn that is none, and on a port that is taken. */
export const start = async (options: StartOptions): Promise<Running> => {
  checkScript(options.script)
  const hub: Hub = {
    options,
    books: Books.make(),
    store: Store.make(),
    timers: Timers.make(),
    requests: [],
    turns: 0,
    stopping: new AbortController(),
  }
  const sockets = new Set<Socket>()
  const server = createServer((request, response) => {
    handle(hub, request, response).catch(() => response.destroy())
  })
  server.on("connection", (socket) => {
    sockets.add(socket)
    socket.once("close", () => sockets.delete(socket))
  })
  server.listen(options.port ?? 0, "127.0.0.1")
  await once(server, "listening")
  return {
    url: urlOf(server),
    requests: hub.requests,
    entries: hub.books.entries,
    ledger: hub.books.ledger,
    openConnections: () => sockets.size,
    openRequests: hub.books.open,
    openTimers: hub.timers.running,
    onChange: hub.books.onChange,
    stop: () => stop(server, sockets, hub),
  }
}

const urlOf = (server: Server): string => {
  // A listening TCP server has an AddressInfo.
  const { port } = server.address() as AddressInfo
  return `http://127.0.0.1:${port}/v1`
}

const stop = async (server: Server, sockets: ReadonlySet<Socket>, hub: Hub): Promise<void> => {
  hub.stopping.abort()
  if (!server.listening) return
  // The server has closed a moment before the last of its sockets has.
  const closed = [server, ...sockets].map((one) => new Promise((resolve) => one.once("close", resolve)))
  server.close()
  for (const socket of sockets) socket.destroy()
  await Promise.all(closed)
}

const handle = (hub: Hub, request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const path = request.url?.replace(/\?.*$/s, "") ?? ""
  const [, id, action] = /^\/v1\/responses\/([^/]+)(\/cancel)?$/.exec(path) ?? []
  switch (`${request.method} ${path}`) {
    case "POST /v1/responses":
      return generate(hub, "responses", { request, response })
    case "POST /v1/chat/completions":
      return generate(hub, "chat", { request, response })
    case "POST /v1/responses/input_tokens":
      return count(hub, request, response)
  }
  if (request.method === "GET" && id !== undefined && action === undefined) {
    hub.books.note("retrieved")
    return answer(hub, response, hub.store.retrieve(decodeURIComponent(id)))
  }
  if (request.method === "POST" && id !== undefined && action !== undefined) {
    return answer(hub, response, hub.store.cancel(decodeURIComponent(id)))
  }
  return answer(hub, response, { status: 404, message: `no ${request.method} ${path} here` })
}

const count = async (hub: Hub, request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const counted = await countInput(hub, parsed(await text(request)))
  if ("object" in counted) hub.books.note("counted")
  return answer(hub, response, counted)
}

const answer = async (hub: Hub, response: ServerResponse, found: Wire | Refusal): Promise<void> =>
  write(response, isRefusal(found) ? refused(found) : whole(200, JSON.stringify(found)), hub.options.headers)

const isRefusal = (found: Wire | Refusal): found is Refusal => typeof found["status"] === "number"

const write = (response: ServerResponse, outgoing: Outgoing, headers: StartOptions["headers"]): void => {
  response.writeHead(outgoing.status, { ...headers, ...outgoing.headers })
  response.end(outgoing.pieces.join(""))
}
