/** A server of the bytes a test wants to see arrive, and a model that asks it. */
import { once } from "node:events"
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import { text } from "node:stream/consumers"
import * as Effect from "effect/Effect"
import * as Prompt from "effect/ai/Prompt"
import * as Redacted from "effect/Redacted"
import type { Call, Model, ModelFailure, Reply, Request } from "../../src/model/Model.ts"
import type { Report } from "../../src/model/Provider.ts"
import * as OpenAi from "../../src/openai/OpenAi.ts"
import { key } from "./asking.ts"

/** A request as it arrived. */
export interface Arrived {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: { readonly [name: string]: unknown }
}

/** Serves whatever `answer` writes. `open` are the requests whose connection still stands and whose reply is not over. */
export const serve = (answer: (response: ServerResponse, request: Arrived) => void) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const requests: Array<Arrived> = []
      const sockets = new Set<Socket>()
      const state = { open: 0, connections: 0 }
      const server = createServer((request, response) => {
        state.open++
        response.once("close", () => state.open--)
        void text(request).then((body) => {
          const { headers, method = "", url = "" } = request
          const arrived = { method, path: url, headers, body: body === "" ? {} : JSON.parse(body) } satisfies Arrived
          requests.push(arrived)
          return answer(response, arrived)
        })
      })
      server.on("connection", (socket) => {
        state.connections++
        sockets.add(socket)
        socket.once("close", () => sockets.delete(socket))
      })
      server.listen(0, "127.0.0.1")
      await once(server, "listening")
      const { port } = server.address() as AddressInfo
      return { url: `http://127.0.0.1:${port}/v1`, requests, state, sockets, server }
    }),
    ({ server, sockets }) =>
      Effect.promise(async () => {
        const closed = once(server, "close")
        server.close()
        for (const socket of sockets) socket.destroy()
        await closed
      }),
  )

/** Sends events, and ends properly. */
export const events = (response: ServerResponse, body: string): void => {
  response.writeHead(200, { "content-type": "text/event-stream" })
  response.end(body)
}

/** Sends a JSON body. */
export const json = (response: ServerResponse, body: unknown, status = 200): void => {
  response.writeHead(status, { "content-type": "application/json" })
  response.end(JSON.stringify(body))
}

export const modelAt = (
  url: string,
  options: Partial<OpenAi.Options> = {},
): Effect.Effect<Model, OpenAi.OptionsError> =>
  OpenAi.model({ model: "gpt-test", apiKey: Redacted.make(key), baseUrl: url, ...options })

export const user = (content: string): Prompt.Message =>
  Prompt.userMessage({ content: [Prompt.textPart({ text: content })] })

export const question: Request = { messages: [user("a private question")], tools: [] }

/** What came of one call: the reply or the failure, every report, and what was heard. */
export interface Came {
  readonly reply: Reply | undefined
  readonly failure: ModelFailure | undefined
  readonly reports: ReadonlyArray<Report>
  readonly heard: string
}

export const call = (
  model: Model,
  request: Request = question,
  how: Partial<Call> & { readonly listens?: boolean } = {},
): Effect.Effect<Came> =>
  Effect.gen(function* () {
    const reports: Array<Report> = []
    const heard: Array<string> = []
    const { listens = false, ...rest } = how
    const exit = yield* Effect.result(
      model.call(request, {
        maxOutputTokens: 100,
        headers: {},
        report: (report) => void reports.push(report),
        ...(listens ? { onText: (delta: string) => void heard.push(delta) } : {}),
        ...rest,
      }),
    )
    const [reply, failure] = exit._tag === "Success" ? [exit.success, undefined] : [undefined, exit.failure]
    return { reply, failure, reports, heard: heard.join("") }
  })
