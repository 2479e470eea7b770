/**
 * One random conversation, by seed: an agent (sometimes with children) under random caps, a provider that answers over
 * real HTTP as it pleases, and sometimes somebody who cancels at a random moment.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Tracer from "effect/Tracer"
import { Agent, type Budget, Contract, type Event, Journal, Policy, type Price } from "../../src/index.ts"
import { OpenAi } from "../../src/openai/index.ts"
import { TestingServer } from "../../src/testing/index.ts"
import { Random } from "../races/Schedule.ts"
import { provider, type Said } from "./Provider.ts"

/** A request as its span saw it, in the order in which the spans of one account began. */
export interface Sent {
  readonly account: string
  readonly spanId: string
}

/** What a conversation came to, on both sides of the wire. */
export interface Ended {
  readonly outcome: Agent.Outcome<string>
  readonly events: ReadonlyArray<Event.Recorded>
  readonly grant: Budget.Grant
  readonly price: Price.Price
  readonly sent: ReadonlyArray<Sent>
  readonly said: ReadonlyMap<number, Said>
  readonly entries: ReadonlyArray<TestingServer.Entry>
  /** Milliseconds from the cancel until no request was open at the server; `undefined` where nobody cancelled. */
  readonly closedAfterMillis: number | undefined
  /** What was still open at the server at the end, idle connections aside. */
  readonly leftOpen: number
}

const price: Price.Price = {
  inputPicoUsd: 1_250_000,
  cachedInputPicoUsd: 125_000,
  cacheWriteInputPicoUsd: 1_562_500,
  outputPicoUsd: 10_000_000,
}

// --- the agent

const key = Schema.Struct({ key: Schema.String })
const Look = Contract.annotate(Tool.make("look", { parameters: key, success: Schema.String }), { effect: "read" })
const Store = Contract.annotate(Tool.make("store", { parameters: key, success: Schema.String }), {
  effect: "write",
  idempotency: "key",
})
const Wreck = Contract.annotate(
  Tool.make("wreck", { parameters: key, success: Schema.String, failure: Schema.String }),
  { effect: "write", idempotency: "none", whenUncertain: "tell" },
)
const toolkit = Toolkit.make(Look, Store, Wreck)
const handlers = toolkit.toLayer({
  look: ({ key }) => Effect.succeed(`${key} is known`),
  store: ({ key }) => Effect.succeed(`${key} is kept`),
  wreck: ({ key }) => Effect.fail(`${key} cannot be wrecked`),
})

interface Plan {
  readonly agent: Agent.Agent<string>
  readonly grant: Budget.Grant
  readonly cancelAfterRequests: number | undefined
  readonly model: Partial<OpenAi.Options>
  readonly billsAborted: boolean
}

const planOf = (seed: number): Plan => {
  const random = new Random(seed)
  const settings = { backoffMillis: 0, modelRetries: random.between(0, 3) }
  const policy = Policy.model({ maxOutputTokens: random.between(60, 400), minOutputTokens: 16 })
  const instructions = "You look things up and keep them."
  const helper = Agent.asTool(Agent.make("helper", { instructions, toolkit, settings, policy }))
  const children = random.chance(0.2) ? [helper] : []
  const maybe = (amount: number) => (random.chance(0.15) ? undefined : amount)
  const caps = {
    steps: random.between(2, 20),
    ticks: maybe(random.between(5, 60)),
    inputTokens: maybe(random.between(1_000, 40_000)),
    outputTokens: maybe(random.between(100, 6_000)),
    money: maybe(random.between(2_000_000, 100_000_000)),
    toolCalls: maybe(random.between(0, 20)),
  }
  return {
    agent: Agent.make("root", { instructions, toolkit, children, settings, policy }) as Agent.Agent<string>,
    grant: Object.fromEntries(Object.entries(caps).filter(([, amount]) => amount !== undefined)),
    cancelAfterRequests: random.chance(0.2) ? random.between(1, 4) : undefined,
    model: modelOf(random),
    billsAborted: random.chance(0.5),
  }
}

const modelOf = (random: Random): Partial<OpenAi.Options> => ({
  protocol: random.pick(["responses", "chat"] as const),
  stream: random.chance(0.5),
})

const inputOf = ({ money, ...counters }: Budget.Grant): Budget.Input => ({
  ...counters,
  ...(money === undefined ? {} : { money: `${(money / 1e9).toFixed(9)} USD` }),
  wallClock: "30 seconds",
})

// --- the run

/** Keeps which account each request to a model belongs to. */
const noting = (sent: Array<Sent>): Tracer.Tracer =>
  Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      if (options.name.startsWith("chat ")) noteLater(sent, span)
      return span
    },
  })

const noteLater = (sent: Array<Sent>, span: Tracer.NativeSpan): void => {
  const account = () => String(span.attributes.get("bursar.node.id"))
  sent.push({
    spanId: span.spanId,
    get account() {
      return account()
    },
  })
}

/** How long a request may take, in real time: hanging ones end so. */
const patience = "250 millis"

export const converse = (seed: number): Effect.Effect<Ended> =>
  Effect.scoped(
    Effect.gen(function* () {
      const plan = planOf(seed)
      const { said, script } = provider(seed, { faults: 0.2, tempers: 0.35 })
      const server = yield* TestingServer.make({ script, billsAborted: plan.billsAborted })
      const model = OpenAi.layer({
        model: "gpt-test",
        apiKey: Redacted.make("none"),
        baseUrl: server.url,
        timeout: patience,
        price,
        ...plan.model,
      })
      const [events, sent]: [Array<Event.Recorded>, Array<Sent>] = [[], []]
      const cancelled = yield* Deferred.make<number>()
      const run = Effect.gen(function* () {
        const handle = yield* Agent.spawn(plan.agent, "Keep what you find.", {
          budget: inputOf(plan.grant),
          runId: `c-${seed}`,
        })
        const { cancelAfterRequests: after } = plan
        if (after === undefined) return yield* handle.await
        const canceller = yield* Effect.forkChild(
          Effect.andThen(
            server.until(({ requests }) => requests >= after),
            Effect.suspend(() => {
              Deferred.doneUnsafe(cancelled, Exit.succeed(performance.now()))
              return handle.cancel
            }),
          ),
        )
        const outcome = yield* handle.await
        yield* Fiber.interrupt(canceller)
        return outcome
      }).pipe(
        Effect.scoped,
        Effect.provide([handlers, model]),
        Effect.provideService(Journal.Journal, Journal.toArray(events)),
        Effect.provideService(Tracer.Tracer, noting(sent)),
        Effect.orDie,
      )
      const outcome = yield* run
      const at = Option.getOrUndefined(yield* Deferred.poll(cancelled))
      yield* Effect.timeoutOption(
        server.until(() => server.openRequests === 0),
        "1 second",
      )
      return {
        outcome,
        events,
        grant: plan.grant,
        price,
        sent,
        said,
        entries: server.entries,
        closedAfterMillis: at === undefined ? undefined : performance.now() - (yield* at),
        leftOpen: server.openRequests + server.openTimers,
      }
    }),
  )
