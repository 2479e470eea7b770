/**
 * A model provider on this machine: a real HTTP server that speaks the Responses protocol from a script.
 *
 * It shows what a provider saw and would bill, which is the other half of every claim about a budget. Its laws: it
 * listens on 127.0.0.1 only; its ledger is its own, kept before the reply leaves, so that a client holding a reply
 * finds it counted; what the protocol forbids (a tool call without its output, `max_output_tokens` below 16) is
 * refused as the provider would.
 *
 * For a process of its own, `node src/testing/server/main.ts --script FILE [--port N] [--ledger FILE]` prints
 * `{"url":...}` when it listens and stops on SIGTERM.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type Ledger, type ReceivedRequest, type Running, start } from "./server/Server.ts"
import type { Script } from "./server/Turn.ts"

export type { Ledger, ReceivedRequest } from "./server/Server.ts"
export { Call, type RequestBody, type Script, Turn, TurnUsage } from "./server/Turn.ts"

/**
 * What the server says and how long it takes.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options {
  readonly script: Script
  /** How long the model thinks before each reply, in real time; none when absent. A turn may set its own. */
  readonly latency?: Duration.Input | undefined
  /** Counts the tokens of a reply whose client went away before it, as gateways do. */
  readonly billsAborted?: boolean | undefined
  /** A fixed port instead of a free one. */
  readonly port?: number | undefined
}

/**
 * A server that listens. `ledger`, `requests` and `openConnections` show the present moment each time they are read.
 *
 * @category models
 * @since 0.1.0
 */
export interface TestingServer {
  /** The base URL for a client, up to and with `/v1`. */
  readonly url: string
  /** The requests with a readable body, in order of arrival. */
  readonly requests: ReadonlyArray<ReceivedRequest>
  readonly ledger: Ledger
  /** TCP connections open now, idle ones included. */
  readonly openConnections: number
  /** Destroys every connection, replies under way included, and stops listening. */
  readonly kill: Effect.Effect<void>
  /** Waits until the ledger satisfies `predicate`, woken by its changes. */
  readonly until: (predicate: (ledger: Ledger) => boolean) => Effect.Effect<void>
}

/**
 * Starts a server that stops, with all its connections, when the scope closes.
 *
 * Tokens of a turn that states no usage are worked out: a quarter of the bytes of the input's texts and the tools'
 * JSON, and a quarter of the bytes of the reply, both rounded up.
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
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options): Effect.Effect<TestingServer, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(() =>
      start({
        script: options.script,
        latencyMs: Duration.toMillis(Duration.fromInputUnsafe(options.latency ?? 0)),
        billsAborted: options.billsAborted,
        port: options.port,
      }),
    ),
    (running) => Effect.promise(() => running.stop()),
  ).pipe(Effect.map(toServer))

const toServer = (running: Running): TestingServer => ({
  url: running.url,
  requests: running.requests,
  get ledger() {
    return running.ledger()
  },
  get openConnections() {
    return running.openConnections()
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
