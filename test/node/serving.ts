/**
 * A server on this machine, and the tool that may fetch from it.
 */
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import * as Effect from "effect/Effect"
import { Fetch } from "../../src/node/index.ts"
import { call } from "./support.ts"

export const { fetch_url } = Fetch.toolkit.tools

/** A server on this machine, with what it was asked for. */
export const serving = (answer: http.RequestListener) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const asked: Array<string> = []
        const server = http.createServer((request, response) => {
          asked.push(`${request.headers.host?.replace(/:\d+$/, "")}${request.url}`)
          answer(request, response)
        })
        await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
        return { server, asked, port: (server.address() as AddressInfo).port }
      }),
      ({ server }) =>
        Effect.promise(() => {
          server.closeAllConnections()
          return new Promise((done) => server.close(done))
        }),
    ),
    ({ asked, port, server }) => ({ asked, server, port, at: (path: string) => `http://127.0.0.1:${port}${path}` }),
  )

/** Answers by path; headers first, then the body. */
export const pages =
  (
    known: Readonly<Record<string, readonly [number, http.OutgoingHttpHeaders, (string | Buffer)?]>>,
  ): http.RequestListener =>
  (request, response) => {
    const [status, headers, body] = known[request.url ?? ""] ?? [404, {}]
    response.writeHead(status, headers).end(body)
  }

export const fetched = (url: string, options: Fetch.Options = {}) =>
  call(fetch_url, { url }).pipe(Effect.provide(Fetch.layer({ allowAddresses: ["127.0.0.1"], ...options })))

export const text = { "content-type": "text/plain" }
