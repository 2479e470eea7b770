/**
 * A run for every reason for which one can stop, each with the same word in every text that a user, a model, a tool or an
 * agent brings.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import { TestClock } from "effect/testing"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import {
  Agent,
  type Budget,
  Contract,
  type Event,
  Journal,
  Policy,
  Proposal,
  ToolError,
  Verifier,
} from "../../src/index.ts"
import { Listeners } from "../../src/telemetry/Listener.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { settled } from "../support/journalled.ts"
import { bare, plays } from "../support/scripts.ts"

/** Stands in every text, and may stand nowhere in what is exported. */
export const canary = "CANARY"

const price = { inputPicoUsd: 1000, cachedInputPicoUsd: 1000, cacheWriteInputPicoUsd: 1000, outputPicoUsd: 1000 }
const usage = { input: 10, output: 5 }

const parameters = Schema.Struct({ key: Schema.String })

const tool = <Name extends string>(name: Name, contract: Contract.Options) =>
  Contract.annotate(
    Tool.make(name, { description: canary, parameters, success: Schema.String, failure: ToolError.ToolError }),
    contract,
  )

const toolkit = Toolkit.make(
  tool("read", { effect: "read", retries: 0 }),
  tool("slow", { effect: "read", retries: 0, timeout: "1 hour" }),
  tool("flaky", { effect: "read", retries: 1 }),
  tool("deny", { effect: "read", retries: 0 }),
  tool("break", { effect: "read", retries: 0 }),
)

const handlers = toolkit.toLayer({
  read: ({ key }) => Effect.succeed(`${canary} ${key}`),
  slow: () => Effect.never,
  flaky: () => Effect.fail(ToolError.transient("EBUSY", canary)),
  deny: () => Effect.fail(ToolError.permission("EPERM", canary, { suggestedAction: "stop_and_request_human" })),
  break: () => Effect.die(new Error(canary)),
})

const call = (name: string, key = "x") => ({ tool: name, params: { key: `${canary} ${key}` } })
const calls = (...each: ReadonlyArray<Proposal.ProposedCall>) => Proposal.callAll(each)

/** A model that reads something new at each step. */
const reading = () =>
  ScriptedModel.make(
    Array.from({ length: 9 }, (_, index) => ({
      text: `${canary} thought`,
      calls: [{ name: "read", params: { key: `${canary} ${index}` } }],
      usage,
    })),
    { price, name: "small" },
  ).model

const asking = () => Policy.fromModel(reading(), { maxOutputTokens: 5 })

type Made = Agent.Agent<string>

const lead = (
  policy: Policy.Policy,
  more: {
    readonly verify?: Verifier.Verifier<string>
    readonly settings?: Partial<Agent.Settings>
    readonly reserves?: Agent.Reserves
    readonly children?: ReadonlyArray<Agent.Child>
  } = {},
): Made =>
  Agent.make("lead", {
    instructions: canary,
    constraints: [canary],
    policy,
    toolkit,
    ...bare,
    ...more,
  }) as unknown as Made

/** How a run is started, and for what reason its root stops. */
export interface Stop {
  readonly reason: Agent.StopReason
  readonly agent: () => Made
  readonly budget: Budget.Input
  /** Other than running it to its end. */
  readonly drive?: (agent: Made, budget: Budget.Input) => Effect.Effect<unknown, unknown>
}

const start = (agent: Made, budget: Budget.Input) => Agent.spawn(agent, canary, { budget, runId: "run" })

/** Runs to the end, on a clock that jumps a day ahead. */
const toEnd = (agent: Made, budget: Budget.Input) =>
  Effect.scoped(
    Effect.gen(function* () {
      const handle = yield* start(agent, budget)
      yield* settled
      yield* TestClock.adjust("1 day")
      return yield* handle.await
    }),
  )

const interrupted = (agent: Made, budget: Budget.Input) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(Agent.run(agent, canary, { budget, runId: "run" }))
    yield* settled
    yield* Fiber.interrupt(fiber)
  })

/** The process is gone while a call is under way; somebody ends the run from its journal. */
const abandoned = (agent: Made, budget: Budget.Input) =>
  Effect.gen(function* () {
    const { journal, left } = yield* gone(agent, budget)
    yield* Agent.abandon("run").pipe(Effect.provideService(Journal.Journal, Journal.toArray(journal)))
    yield* left(journal)
  })

/** The journal as a process leaves that is killed while its first call is under way. */
const gone = (agent: Made, budget: Budget.Input) =>
  Effect.gen(function* () {
    const whole = yield* Journal.Journal
    const journal: Array<Event.Recorded> = []
    yield* interrupted(agent, budget).pipe(
      Effect.provideService(Journal.Journal, Journal.toArray(journal)),
      // What that process made of spans, and counted, is gone with it.
      Effect.withTracerEnabled(false),
      Effect.provideService(Listeners, []),
    )
    journal.splice(1 + journal.findIndex(({ event }) => event._tag === "CallStarted"))
    // Into the journal of the test goes what the one who ends it leaves.
    const left = (events: ReadonlyArray<Event.Recorded>) =>
      Effect.scoped(Effect.map(whole.open("run"), (log) => events.forEach(({ event }) => log.record(event))))
    return { journal, left }
  })

const idle = Agent.make("idle", { instructions: canary, policy: plays(Proposal.invalid(canary)), ...bare })
const sleeper = Agent.make("sleeper", { policy: Policy.make(() => Effect.never), ...bare })

const ask = (agent: string) => ({ tool: agent, params: { task: canary } })

/** One for each reason. */
export const stops: ReadonlyArray<Stop> = [
  {
    reason: "completed",
    agent: () =>
      lead(
        plays(
          calls(call("read"), call("flaky"), ask("idle"), call(canary)),
          Proposal.finish(`${canary} draft`),
          Proposal.finish(`${canary} final`),
        ),
        {
          verify: Verifier.predicate<string>("final", ({ answer }) => answer.includes("final") || canary),
          children: [Agent.asTool(idle, { description: canary })],
        },
      ),
    budget: { steps: 40, toolCalls: 20 },
  },
  { reason: "budget:steps", agent: () => lead(asking()), budget: { steps: 3 } },
  { reason: "budget:ticks", agent: () => lead(asking()), budget: { ticks: 3 } },
  { reason: "budget:input_tokens", agent: () => lead(asking()), budget: { inputTokens: 35 } },
  { reason: "budget:output_tokens", agent: () => lead(asking()), budget: { outputTokens: 19 } },
  { reason: "budget:money", agent: () => lead(asking()), budget: { money: "0.000000050 USD" } },
  { reason: "budget:tool_calls", agent: () => lead(asking()), budget: { toolCalls: 3 } },
  { reason: "deadline", agent: () => lead(plays(calls(call("slow")))), budget: { wallClock: "4 seconds" } },
  { reason: "no_progress", agent: () => lead(plays(calls(call("read")))), budget: { steps: 20 } },
  {
    reason: "repeated_action",
    agent: () => lead(plays(calls(call("read"))), { settings: { repeatedAction: 3, noProgress: undefined } }),
    budget: { steps: 20 },
  },
  { reason: "invalid_decisions", agent: () => lead(plays(Proposal.invalid(canary))), budget: { steps: 20 } },
  {
    reason: "unverified",
    agent: () =>
      lead(plays(Proposal.finish(canary)), {
        verify: Verifier.make("slow", () => Effect.never),
        reserves: { verifyMillis: 500 },
      }),
    budget: { steps: 9, wallClock: "1 second" },
  },
  { reason: "blocked", agent: () => lead(plays(calls(call("deny")))), budget: { steps: 9 } },
  { reason: "tool_error", agent: () => lead(plays(calls(call("break")))), budget: { steps: 9 } },
  {
    reason: "model_error",
    agent: () =>
      lead(
        Policy.fromModel(
          ScriptedModel.make([{ fault: { status: 429 } }, { fault: "cut" }, { fault: { status: 400 } }]).model,
        ),
      ),
    budget: { steps: 9, inputTokens: 100_000 },
  },
  { reason: "unpriced", agent: () => lead(Policy.fromModel(ScriptedModel.make([]).model)), budget: { money: "1 USD" } },
  {
    reason: "cancelled",
    agent: () =>
      lead(plays(calls(ask("sleeper"), call("slow"))), { children: [Agent.asTool(sleeper, { description: canary })] }),
    budget: { steps: 20, toolCalls: 9 },
    drive: interrupted,
  },
  {
    reason: "refused_at_open",
    agent: () => lead(asking(), { reserves: { output: { steps: 9 } } }),
    budget: { steps: 3 },
    drive: (agent, budget) => Effect.ignore(toEnd(agent, budget)),
  },
  {
    reason: "owner_lost",
    agent: () => lead(plays(calls(call("slow")))),
    budget: { steps: 20 },
    drive: abandoned,
  },
]

/** Runs one of them, and answers with its journal. */
export const play = ({ agent, budget, drive = toEnd }: Stop): Effect.Effect<ReadonlyArray<Event.Recorded>, unknown> =>
  Effect.gen(function* () {
    const events: Array<Event.Recorded> = []
    yield* drive(agent(), budget).pipe(
      Effect.provide(handlers as never),
      Effect.provideService(Journal.Journal, Journal.toArray(events)),
    )
    return events
  }) as Effect.Effect<ReadonlyArray<Event.Recorded>, unknown>
