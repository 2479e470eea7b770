/**
 * Conversations of cases over real HTTP: a testing server says the script, and the model is the one behind
 * `bursar/openai`. What a turn takes (`ms`) passes on the clock of the test before its request is sent; the request itself
 * takes none of it, so that the same numbers are expected.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import type { Model } from "../../src/index.ts"
import { OpenAi } from "../../src/openai/index.ts"
import { type ScriptedModel, TestingServer } from "../../src/testing/index.ts"
import type { Case, Turn } from "./Case.ts"
import { type Conversation, type Converse, normalised, priceOf, statusOf } from "./Script.ts"

/** How the requests are sent. */
export interface Way {
  readonly stream: boolean
  readonly protocol: "responses" | "chat"
}

/** Ways to play a case; the Responses protocol refuses a limit on the output below 16. */
export const ways = (one: Case): ReadonlyArray<Way> => {
  const limits = [one.limits?.max_out ?? Infinity, ...turnsOf(one).map((turn) => turn.max_out ?? Infinity)]
  const protocols = Math.min(...limits) < 16 ? (["chat"] as const) : (["responses", "chat"] as const)
  return protocols.flatMap((protocol) => [true, false].map((stream) => ({ protocol, stream })))
}

const turnsOf = (one: Case): ReadonlyArray<Turn> =>
  [one, ...Object.values(one.children ?? {})].flatMap(({ turns }) => turns)

/** A stage for HTTP: its conversations, and whether no request is under way. */
export interface Wire {
  readonly converse: Converse
  readonly isQuiet: () => boolean
}

/** Servers stop with the scope. */
export const wire = (way: Way): Effect.Effect<Wire, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    let underWay = 0
    const during = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
      Effect.suspend(() => {
        underWay++
        return Effect.ensuring(
          effect,
          Effect.sync(() => underWay--),
        )
      })
    return {
      converse: (one, turns) => converse(one, turns, { way, scope, during }),
      isQuiet: () => underWay === 0,
    }
  })

interface At {
  readonly way: Way
  readonly scope: Scope.Scope
  readonly during: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>
}

/** How long a request may take, in real time: where one of them gets no reply, no longer than that has to be waited for. */
const patienceWith = (turns: ReadonlyArray<Turn>): Duration.Input =>
  turns.some(({ fault }) => fault === "timeout") ? "1 second" : "30 seconds"

const converse = (one: Case, turns: ReadonlyArray<Turn>, at: At): Conversation => {
  const requests: Array<ScriptedModel.Sent> = []
  const server = Effect.runSync(
    Effect.cached(TestingServer.make({ script: turns.map(toTurn) }).pipe(Effect.provideService(Scope.Scope, at.scope))),
  )
  const named = (name: string, others: ReadonlyArray<string>): Model.Model => {
    const [next, ...rest] = others
    const asked = Effect.runSync(
      Effect.cached(Effect.flatMap(server, ({ url }) => modelAt(one, name, { ...at, url, turns }))),
    )
    const turn = () => turns[requests.length]
    const counted = () => ({ tokens: turn()?.est_in ?? inputOf(turn()), bound: "counted" as const })
    return {
      name,
      provider: "openai",
      price: priceOf(one, name),
      countInput: counted,
      // The counter of the provider is asked where there is one.
      ...(at.way.protocol === "responses"
        ? { count: (request) => at.during(Effect.flatMap(asked, (model) => model.count!(request))) }
        : {}),
      call: (request, how) =>
        Effect.suspend(() => {
          const { ms = 0 } = turn() ?? {}
          const wait = ms > 0 ? Effect.sleep(ms) : Effect.void
          const send = Effect.gen(function* () {
            const { call } = yield* asked
            const { requests: received } = yield* server
            const n = received.length
            return yield* Effect.ensuring(
              call(request, how),
              Effect.sync(() => Object.assign(sent, onWire(received[n]?.sent, one.options?.[name]))),
            )
          })
          const sent = { request, maxOutputTokens: undefined, model: name, options: {} }
          requests.push(sent)
          return Effect.andThen(wait, at.during(send))
        }),
      ...(next === undefined ? {} : { fallback: named(next, rest) }),
    }
  }
  return {
    model: named(one.model, one.fallback ?? []),
    requests,
    pastScript: () => Math.max(0, requests.length - turns.length),
  }
}

const inputOf = (turn: Turn | undefined): number =>
  turn?.usage === undefined || turn.usage === null ? 0 : normalised(turn.usage).input

/** What of a request is compared, as it was sent. */
const onWire = (sent: unknown, options: Readonly<Record<string, unknown>> = {}) => {
  const body = sent as Readonly<Record<string, unknown>> | undefined
  return {
    maxOutputTokens: body?.["max_output_tokens"] ?? body?.["max_completion_tokens"],
    options: Object.fromEntries(Object.keys(options).map((name) => [name, body?.[name]])),
  }
}

const modelAt = (
  one: Case,
  name: string,
  { turns, url, way }: At & { readonly url: string; readonly turns: ReadonlyArray<Turn> },
): Effect.Effect<Model.Model> => {
  const exclusive = turns.some((turn) => turn.usage?.style === "exclusive")
  return OpenAi.model({
    model: name,
    apiKey: Redacted.make("none"),
    baseUrl: url,
    timeout: patienceWith(turns),
    protocol: way.protocol,
    stream: way.stream,
    ...(way.protocol === "responses" ? { counter: true } : {}),
    ...(exclusive ? { usageStyle: "exclusive" as const } : {}),
    ...(one.options?.[name] === undefined ? {} : { options: one.options[name] }),
  }).pipe(Effect.orDie)
}

/** A turn of a case in the words of the server. */
const toTurn = (turn: Turn): TestingServer.Turn => {
  const { calls, fault, finish, text, usage } = turn
  const status = statusOf(fault)
  if (status !== undefined) {
    return { status, ...(turn.retry_after_ms === undefined ? {} : { retryAfterMs: turn.retry_after_ms }) }
  }
  const billed = usage === undefined || usage === null ? undefined : normalised(usage)
  return {
    ...(text === undefined ? {} : { text }),
    ...(calls === undefined
      ? {}
      : {
          calls: calls.map((call) => ({ id: call.id, name: call.tool, arguments: call.bad_args ?? call.args ?? {} })),
        }),
    ...(finish === "length" ? { incomplete: "max_output_tokens" as const } : {}),
    ...(billed === undefined
      ? { usage: null }
      : {
          usage: {
            input: billed.input,
            output: billed.output,
            cached: billed.cached,
            cacheWrite: billed.written,
            ...(usage?.reasoning === undefined ? {} : { reasoning: usage.reasoning }),
          },
        }),
    ...(fault === "usage_missing" ? { stated: null } : {}),
    ...(usage?.style === "exclusive" ? { stated: statedOf(usage) } : {}),
    ...(turn.frames === undefined ? {} : { temper: "usage-on-every-chunk" as const }),
    countedInput: turn.est_in ?? billed?.input ?? 0,
    ...(fault === "truncated_stream" ? { cut: true as const } : {}),
    ...(fault === "timeout" ? { hang: true as const } : {}),
  }
}

/** The counts as a provider of the exclusive style states them: the parts on top of the totals. */
const statedOf = (usage: NonNullable<Turn["usage"]>): TestingServer.Stated => ({
  input: usage.in,
  output: usage.out,
  ...(usage.cached === undefined ? {} : { cached: usage.cached }),
  ...(usage.written === undefined ? {} : { cacheWrite: usage.written }),
  ...(usage.reasoning === undefined ? {} : { reasoning: usage.reasoning }),
})
