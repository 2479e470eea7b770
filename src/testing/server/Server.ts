/**
 * A local HTTP server that answers `POST /v1/responses` from a script and keeps its own ledger. Plain Node, so that it
 * also runs in a process of its own; `TestingServer` makes a scoped resource of it.
 */
import { once } from "node:events"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import { text } from "node:stream/consumers"
import { checkScript, type RequestBody, type Script, type Turn, turnFor } from "./Turn.ts"
import { errorBody, faultOf, isRequest, toAnswer } from "./Wire.ts"

/**
 * What the server counted, on its side of the wire.
 *
 * - `requests`: requests that arrived whole. Each then counts under at most one of the following.
 * - `replies`: whole replies with status 200; their tokens are counted, whether or not the reply stated them.
 * - `cut`: replies whose connection the script destroyed; their tokens are counted too.
 * - `refused`: error statuses, scripted ones and those for a request a provider would not accept.
 * - `pastScript`: requests the script had no turn for.
 * - `aborted`: requests whose client went away before the reply.
 *
 * @category ledger
 * @since 0.1.0
 */
export interface Ledger {
  readonly requests: number
  readonly replies: number
  readonly cut: number
  readonly refused: number
  readonly pastScript: number
  readonly aborted: number
  readonly inputTokens: number
  readonly outputTokens: number
}

/**
 * A request as it arrived.
 *
 * @category ledger
 * @since 0.1.0
 */
export interface ReceivedRequest {
  readonly headers: { readonly [name: string]: string | ReadonlyArray<string> | undefined }
  readonly body: RequestBody
}

/** How to start a server. */
export interface StartOptions {
  readonly script: Script
  readonly latencyMs?: number | undefined
  readonly billsAborted?: boolean | undefined
  readonly port?: number | undefined
}

/** A server that listens. */
export interface Running {
  readonly url: string
  readonly requests: ReadonlyArray<ReceivedRequest>
  readonly ledger: () => Ledger
  readonly openConnections: () => number
  /** Calls `listener` after every change of the ledger, until the returned function is called. */
  readonly onChange: (listener: () => void) => () => void
  /** Destroys every connection and stops listening; harmless when repeated. */
  readonly stop: () => Promise<void>
}

/** The counters and what watches them. */
interface Books {
  ledger: Ledger
  readonly requests: Array<ReceivedRequest>
  readonly listeners: Set<() => void>
  /** Turns asked of the script. */
  turns: number
  stopped: boolean
}

const empty: Ledger = {
  requests: 0,
  replies: 0,
  cut: 0,
  refused: 0,
  pastScript: 0,
  aborted: 0,
  inputTokens: 0,
  outputTokens: 0,
}

/** Starts listening on 127.0.0.1. Rejects on a script with a turn that is none, and on a port that is taken. */
export const start = async (options: StartOptions): Promise<Running> => {
  checkScript(options.script)
  const books: Books = { ledger: empty, requests: [], listeners: new Set(), turns: 0, stopped: false }
  const sockets = new Set<Socket>()
  const server = createServer((request, response) => {
    handle(request, response, options, books).catch(() => response.destroy())
  })
  server.on("connection", (socket) => {
    sockets.add(socket)
    socket.once("close", () => sockets.delete(socket))
  })
  server.listen(options.port ?? 0, "127.0.0.1")
  await once(server, "listening")
  return {
    url: urlOf(server),
    requests: books.requests,
    ledger: () => books.ledger,
    openConnections: () => sockets.size,
    onChange: (listener) => {
      books.listeners.add(listener)
      return () => void books.listeners.delete(listener)
    },
    stop: () => stop(server, sockets, books),
  }
}

const urlOf = (server: Server): string => {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a listening TCP server has an AddressInfo
  const { port } = server.address() as AddressInfo
  return `http://127.0.0.1:${port}/v1`
}

const stop = async (server: Server, sockets: ReadonlySet<Socket>, books: Books): Promise<void> => {
  books.stopped = true
  if (!server.listening) return
  const closed = once(server, "close")
  server.close()
  for (const socket of sockets) socket.destroy()
  await closed
}

const count = (books: Books, changes: Partial<Ledger>): void => {
  const sum = (key: keyof Ledger) => books.ledger[key] + (changes[key] ?? 0)
  books.ledger = {
    requests: sum("requests"),
    replies: sum("replies"),
    cut: sum("cut"),
    refused: sum("refused"),
    pastScript: sum("pastScript"),
    aborted: sum("aborted"),
    inputTokens: sum("inputTokens"),
    outputTokens: sum("outputTokens"),
  }
  for (const listener of books.listeners) listener()
}

const handle = async (
  request: IncomingMessage,
  response: ServerResponse,
  options: StartOptions,
  books: Books,
): Promise<void> => {
  if (request.method !== "POST" || request.url !== "/v1/responses") {
    return send(response, { status: 404, body: errorBody(`no ${request.method} ${request.url} here`) })
  }
  const body = parse(await text(request))
  if (isRequest(body)) books.requests.push({ headers: request.headers, body })
  const fault = faultOf(body)
  if (fault !== undefined || !isRequest(body)) {
    count(books, { requests: 1, refused: 1 })
    return send(response, { status: 400, body: errorBody(fault ?? "no request") })
  }
  const n = books.turns++
  count(books, { requests: 1 })
  const gone = new Promise<"gone">((resolve) => response.once("close", () => resolve("gone")))
  const turn = await turnFor(options.script, body, n).catch((error: unknown) => String(error))
  if (turn === undefined || typeof turn === "string") {
    count(books, { pastScript: 1 })
    const message = turn ?? `the script has no turn for request ${n}`
    return send(response, { status: 500, body: errorBody(message, "past_script") })
  }
  await answer({ turn, body, n, gone, response, options, books })
}

const parse = (body: string): unknown => {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

const answer = async ({
  turn,
  body,
  n,
  gone,
  response,
  options,
  books,
}: {
  readonly turn: Turn
  readonly body: RequestBody
  readonly n: number
  readonly gone: Promise<"gone">
  readonly response: ServerResponse
  readonly options: StartOptions
  readonly books: Books
}): Promise<void> => {
  const reply = toAnswer(turn, body, n)
  const tokens = { inputTokens: reply.usage.input, outputTokens: reply.usage.output }
  const latencyMs = turn.latencyMs ?? options.latencyMs ?? 0
  if ((await think(latencyMs, gone)) === "gone" || response.destroyed) {
    if (!books.stopped) count(books, { aborted: 1, ...(options.billsAborted === true ? tokens : {}) })
    return
  }
  if (turn.cut === true) {
    count(books, { cut: 1, ...tokens })
    return cutShort(response, reply.body)
  }
  count(books, reply.status === 200 ? { replies: 1, ...tokens } : { refused: 1 })
  send(response, { ...reply, retryAfterSeconds: turn.retryAfterSeconds })
}

const think = async (latencyMs: number, gone: Promise<"gone">): Promise<"done" | "gone"> => {
  if (latencyMs === 0) return "done"
  let timer: NodeJS.Timeout | undefined
  const done = new Promise<"done">((resolve) => {
    timer = setTimeout(() => resolve("done"), latencyMs)
  })
  return Promise.race([done, gone]).finally(() => clearTimeout(timer))
}

const send = (
  response: ServerResponse,
  reply: { status: number; body: string; json?: boolean; retryAfterSeconds?: number | undefined },
): void => {
  response.writeHead(reply.status, {
    "content-type": reply.json === false ? "text/plain" : "application/json",
    "x-request-id": "req_testing",
    ...(reply.retryAfterSeconds === undefined ? {} : { "retry-after": String(reply.retryAfterSeconds) }),
  })
  response.end(reply.body)
}

const cutShort = (response: ServerResponse, body: string): void => {
  response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) })
  response.write(body.slice(0, Math.floor(body.length / 2)), () => response.destroy())
}
