/**
 * A model provider on this machine: a real HTTP server that speaks the Responses and the Chat Completions protocol,
 * streamed and not, from a script; well or badly tempered, and with any fault the wire can have.
 *
 * It shows what a provider saw and would bill, which is the other half of every claim about a budget. Its laws: it
 * listens on 127.0.0.1 only; its ledger is its own, kept before the reply leaves, so that a client holding a reply
 * finds it counted; what it states never changes what it bills; what the protocol forbids (a tool call without its
 * output, `max_output_tokens` below 16) is refused as the provider would.
 *
 * | path | what |
 * | --- | --- |
 * | `POST /v1/responses` | Responses; `stream`, `background`, `previous_response_id`, `store` (unless `false`) |
 * | `POST /v1/responses/input_tokens` | the input counter |
 * | `GET /v1/responses/:id` | a stored response, with its usage also where the reply left that out or was cut |
 * | `POST /v1/responses/:id/cancel` | the end of a response in the background |
 * | `POST /v1/chat/completions` | Chat Completions; `stream`, `stream_options.include_usage` |
 *
 * For a process of its own, `npx bursar-testing-server --script FILE` prints `{"url":...}` when it listens and stops on
 * SIGTERM; `--help` lists its options.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Entry, Ledger } from "./server/Books.ts"
import { type ReceivedRequest, type Running, start } from "./server/Server.ts"
import type { Tempers } from "./server/Temper.ts"
import type { Script } from "./server/Turn.ts"

export type { Entry, Ledger, Outcome } from "./server/Books.ts"
export type { Protocol } from "./server/Request.ts"
export type { ReceivedRequest } from "./server/Server.ts"
export { Temper, Tempers } from "./server/Temper.ts"
export { Call, Failure, type Json, type RequestBody, type Script, Stated, Turn, TurnUsage } from "./server/Turn.ts"

/**
 * What the server says, how it behaves and how long it takes.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options {
  readonly script: Script
  /** How it deviates from what is asked, unless a turn says otherwise; absent, it says what the script says. */
  readonly temper?: Tempers | undefined
  /** How long the model thinks before each reply, in real time; none when absent. A turn may set its own. */
  readonly latency?: Duration.Input | undefined
  /** The time between the events of a stream, in real time; none when absent. A turn may set its own. */
  readonly chunkLatency?: Duration.Input | undefined
  /** Counts the tokens of a reply whose client went away before its end, as gateways do. */
  readonly billsAborted?: boolean | undefined
  /** Whether there is an input counter; there is when absent. Compatible servers have none. */
  readonly hasCounter?: boolean | undefined
  /** Sent with every answer, such as `x-ratelimit-remaining-requests`. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** A fixed port instead of a free one. */
  readonly port?: number | undefined
}

/**
 * A server that listens. Everything but `url` and `kill` shows the present moment each time it is read.
 *
 * @category models
 * @since 0.1.0
 */
export interface TestingServer {
  /** The base URL for a client, up to and with `/v1`. */
  readonly url: string
  /** The requests to generate with a readable body, in order of arrival. */
  readonly requests: ReadonlyArray<ReceivedRequest>
  /** The totals. */
  readonly ledger: Ledger
  /** The ledger, request by request, in order of arrival. */
  readonly entries: ReadonlyArray<Entry>
  /** TCP connections open now, idle ones included. */
  readonly openConnections: number
  /** Requests to generate whose reply is not over. */
  readonly openRequests: number
  /** Timers running for replies. */
  readonly openTimers: number
  /** Destroys every connection, replies under way included, and stops listening. */
  readonly kill: Effect.Effect<void>
  /** Waits until the ledger satisfies `predicate`, woken by its changes and by the end of each reply. */
  readonly until: (predicate: (ledger: Ledger) => boolean) => Effect.Effect<void>
}

/**
 * Starts a server that stops, with all its connections, when the scope closes.
 *
 * Tokens of a turn that states no usage are worked out: a quarter of the bytes of the input's texts (instructions,
 * the JSON of the tools and of an answer's schema, and all of a continued conversation included), with 85 for an image
 * of low detail and 765 for another; and a quarter of the bytes of the reply, both rounded up.
 *
 * **Dies** on a script with a turn that is none, and on a port that is taken.
 *
 * **Example** (A model that answers twice)
 *
 * ```ts
 * import { TestingServer } from "bursar/testing"
 * import * as Effect from "effect/Effect"
 *
 * const program = Effect.scoped(
 *   Effect.gen(function* () {
 *     const script = [{ text: "one", usage: { input: 10, output: 2 } }, { text: "two", usage: { input: 12, output: 2 } }]
 *     const server = yield* TestingServer.make({ script })
 *     for (const content of ["first", "second"]) {
 *       const body = JSON.stringify({ model: "any", input: [{ role: "user", content }] })
 *       yield* Effect.promise(() => fetch(`${server.url}/responses`, { method: "POST", body }))
 *     }
 *     return server.ledger
 *   }),
 * )
 * const ledger = await Effect.runPromise(program)
 * ledger.replies // => 2
 * ledger.inputTokens // => 22
 * ```
 *
 * **Example** (A model that states half of what it bills, over Chat Completions)
 *
 * ```ts
 * import { TestingServer } from "bursar/testing"
 * import * as Effect from "effect/Effect"
 *
 * const program = Effect.scoped(
 *   Effect.gen(function* () {
 *     const script = [{ text: "one", usage: { input: 10, output: 2 } }]
 *     const server = yield* TestingServer.make({ script, temper: "under-reports" })
 *     const body = JSON.stringify({ model: "any", messages: [{ role: "user", content: "first" }] })
 *     const response = yield* Effect.promise(() => fetch(`${server.url}/chat/completions`, { method: "POST", body }))
 *     const { usage } = JSON.parse(yield* Effect.promise(() => response.text()))
 *     return { stated: usage.prompt_tokens, billed: server.entries[0]?.inputTokens }
 *   }),
 * )
 * await Effect.runPromise(program) // => { stated: 5, billed: 10 }
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options): Effect.Effect<TestingServer, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(() =>
      start({
        script: options.script,
        temper: options.temper,
        latencyMs: millis(options.latency),
        chunkLatencyMs: millis(options.chunkLatency),
        billsAborted: options.billsAborted,
        hasCounter: options.hasCounter,
        headers: options.headers,
        port: options.port,
      }),
    ),
    (running) => Effect.promise(() => running.stop()),
  ).pipe(Effect.map(toServer))

const millis = (duration: Duration.Input = 0): number => Duration.toMillis(Duration.fromInputUnsafe(duration))

const toServer = (running: Running): TestingServer => ({
  url: running.url,
  requests: running.requests,
  entries: running.entries,
  get ledger() {
    return running.ledger()
  },
  get openConnections() {
    return running.openConnections()
  },
  get openRequests() {
    return running.openRequests()
  },
  get openTimers() {
    return running.openTimers()
  },
  kill: Effect.promise(() => running.stop()),
  until: (predicate) =>
    Effect.callback((resume) => {
      if (predicate(running.ledger())) return resume(Effect.void)
      const stop = running.onChange(() => {
        if (!predicate(running.ledger())) return
        stop()
        resume(Effect.void)
      })
      return Effect.sync(stop)
    }),
})
