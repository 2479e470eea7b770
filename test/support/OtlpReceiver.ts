/**
 * A receiver of OTLP/HTTP for tests: what was exported, spans as a flat list and everything as raw bytes.
 *
 * It listens on 127.0.0.1 alone and takes protobuf and JSON, compressed or not. A span is in the list when its request
 * was answered, so after the exporting layer has closed everything that will come is there.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { gunzipSync } from "node:zlib"
import * as Otlp from "../otel/otlp.ts"

export type { ReceivedSpan } from "../otel/otlp.ts"

export interface ReceivedRequest {
  readonly path: string
  readonly headers: http.IncomingHttpHeaders
  /** Decompressed. */
  readonly body: Buffer
}

export interface OtlpReceiver {
  /** For `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  readonly url: string
  readonly requests: ReadonlyArray<ReceivedRequest>
  /** In the order of their arrival, that is of their end. */
  readonly spans: ReadonlyArray<Otlp.ReceivedSpan>
  /** All bytes that came, one character a byte: to search for what must not have been exported. */
  readonly bytes: () => string
}

export interface Options {
  /** Other than 200 refuses every request, after reading it. */
  readonly status?: number
  /** Reads requests and never answers them. */
  readonly silent?: boolean
  /** Only counts spans by name, and keeps no requests: for very many of them. */
  readonly count?: Map<string, number>
}

/** A receiver that lives as long as the scope. */
export const make = (options: Options = {}): Effect.Effect<OtlpReceiver, never, Scope.Scope> =>
  Effect.gen(function* () {
    const requests: Array<ReceivedRequest> = []
    const spans: Array<Otlp.ReceivedSpan> = []
    const server = http.createServer((request, response) => {
      receive(request, (received) => {
        if (options.count !== undefined) {
          for (const name of Otlp.namesIn(received.body)) options.count.set(name, (options.count.get(name) ?? 0) + 1)
          response.writeHead(200, { "content-type": "application/x-protobuf" }).end()
          return
        }
        requests.push(received)
        if (options.silent === true) return
        const type = String(request.headers["content-type"])
        const decoded = answer(received, type, options.status ?? 200)
        for (const span of decoded.spans) spans.push(span)
        response.writeHead(decoded.status, { "content-type": type }).end(type === "application/json" ? "{}" : "")
      })
    })
    yield* Effect.acquireRelease(listen(server), () => close(server))
    const { port } = server.address() as AddressInfo
    const bytes = () => requests.map(({ body }) => body.toString("latin1")).join("\n")
    return { url: `http://127.0.0.1:${port}`, requests, spans, bytes }
  })

/** An address at which nobody listens. */
export const nowhere: Effect.Effect<string> = Effect.scoped(Effect.map(make(), ({ url }) => url))

const receive = (request: http.IncomingMessage, use: (received: ReceivedRequest) => void): void => {
  const chunks: Array<Buffer> = []
  request.on("data", (chunk: Buffer) => chunks.push(chunk))
  request.on("end", () => {
    const body = Buffer.concat(chunks)
    const isZipped = request.headers["content-encoding"] === "gzip"
    use({ path: request.url ?? "", headers: request.headers, body: isZipped ? gunzipSync(body) : body })
  })
}

const answer = (
  { body, path }: ReceivedRequest,
  type: string,
  status: number,
): { readonly status: number; readonly spans: ReadonlyArray<Otlp.ReceivedSpan> } => {
  if (path === "/v1/metrics" || path === "/v1/logs") return { status, spans: [] }
  if (path !== "/v1/traces") return { status: 404, spans: [] }
  if (status !== 200) return { status, spans: [] }
  try {
    return { status, spans: type === "application/json" ? Otlp.fromJson(body) : Otlp.fromProtobuf(body) }
  } catch {
    return { status: 400, spans: [] }
  }
}

const listen = (server: http.Server): Effect.Effect<void> =>
  Effect.callback((resume) => {
    server.listen(0, "127.0.0.1", () => resume(Effect.void))
  })

const close = (server: http.Server): Effect.Effect<void> =>
  Effect.callback((resume) => {
    server.close(() => resume(Effect.void))
    server.closeAllConnections()
  })
