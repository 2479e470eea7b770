/**
 * Driving agents in tests through their handles, with tools that are made for one test.
 */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { Agent, type Budget, Contract, type Event, Journal, ToolError } from "../../src/index.ts"
import { all, broken, settled, unbalanced } from "./journalled.ts"

const parameters = Schema.Struct({ key: Schema.String, note: Schema.optionalKey(Schema.String) })

type Params = typeof parameters.Type
export type Handle = (params: Params) => Effect.Effect<string, ToolError.ToolError>

/** Tools of one test by name: what the host is told of each, and what each does. */
export const kit = (tools: { readonly [name: string]: readonly [Contract.Options<Params, string>, Handle] }) => {
  const made = Object.entries(tools).map(([name, [contract]]) =>
    Contract.annotate(Tool.make(name, { parameters, success: Schema.String, failure: ToolError.ToolError }), contract),
  )
  const toolkit = Toolkit.make(...made)
  const handlers = toolkit.toLayer(
    Object.fromEntries(Object.entries(tools).map(([name, [, handle]]) => [name, handle])) as never,
  )
  return { toolkit, handlers }
}

/** A call of a tool with a key. */
export const use = (tool: string, key = "x") => ({ tool, params: { key } })

/** The agent of a test, whatever services its tools need: they are provided beside it. */
export type Any = Agent.Agent<string>

/** Lets time pass, and everybody come to their next wait. */
export const pass = (millis: number): Effect.Effect<void> =>
  Effect.andThen(settled, Effect.andThen(TestClock.adjust(millis), settled))

/** Starts an agent whose journal is `events`; whatever happens with the handle happens in its scope. */
export const driven = <A, R, B, E, R2>(
  agent: Agent.Agent<A, R>,
  options: Agent.RunOptions & { readonly events?: Array<Event.Recorded> },
  drive: (handle: Agent.Handle<A>, events: ReadonlyArray<Event.Recorded>) => Effect.Effect<B, E, R2>,
): Effect.Effect<B, unknown, Exclude<R | R2, Scope.Scope>> => {
  const events = options.events ?? []
  return Effect.scoped(
    Effect.gen(function* () {
      const handle = yield* Agent.spawn(agent, "the task", { runId: "run", ...options })
      yield* settled
      return yield* drive(handle, events)
    }),
  ).pipe(Effect.provideService(Journal.Journal, Journal.toArray(events))) as never
}

/** Goes on with a run from its journal, and lets a day pass. */
export const resumed = <A, R>(
  agent: Agent.Agent<A, R>,
  events: Array<Event.Recorded>,
  answers: ReadonlyArray<Agent.Answer> = [],
): Effect.Effect<Agent.Outcome<A>, Agent.ResumeFailure, R> =>
  Effect.scoped(
    Effect.gen(function* () {
      const handle = yield* Agent.spawnResumed(agent, { run: "run", answers })
      yield* pass(86_400_000)
      return yield* handle.await
    }),
  ).pipe(Effect.provideService(Journal.Journal, Journal.toArray(events))) as never

/** Asserts that the journal of an ended run is complete and its books balance. */
export const lawful = <A>(outcome: Agent.Outcome<A>, events: ReadonlyArray<Event.Recorded>, where = ""): void =>
  assert.deepStrictEqual([...broken(events), ...unbalanced(outcome.report.accounts)], [], where)

/** Asserts that what the journal holds of a run that stands still contradicts nothing: every hold is resolved. */
export const stands = (events: ReadonlyArray<Event.Recorded>): void => {
  const resolved = [...all(events, "Settled"), ...all(events, "Voided"), ...all(events, "Assumed")]
  const id = (one: { readonly account: string; readonly hold: string }) => `${one.account} ${one.hold}`
  assert.deepStrictEqual(resolved.map(id).toSorted(), all(events, "Held").map(id).toSorted())
  assert.strictEqual(events.at(-1)!.event._tag, "RunSuspended")
}

export const completed = <A>(outcome: Agent.Outcome<A>): Agent.Completed<A> => {
  if (outcome._tag !== "Completed") throw new Error(`the run is not complete: ${JSON.stringify(outcome)}`)
  return outcome
}

export const questions = <A>(outcome: Agent.Outcome<A>): ReadonlyArray<Agent.Question> => {
  if (outcome._tag !== "Suspended") throw new Error(`the run does not wait: ${JSON.stringify(outcome)}`)
  return outcome.waitsFor
}

export const says = (
  { approval, digest }: Agent.Question,
  decision: Agent.Answer["decision"],
  result?: unknown,
): Agent.Answer => ({ approval, digest, decision, by: "ada", ...(result === undefined ? {} : { result }) })

/** The attempts of calls as they started: tool and number. */
export const attempts = (events: ReadonlyArray<Event.Recorded>): ReadonlyArray<string> =>
  all(events, "CallStarted").map((one) => `${one.tool} ${one.attempt}`)

/** When events of a kind happened, in milliseconds. */
export const timesOf = (events: ReadonlyArray<Event.Recorded>, tag: Event.Event["_tag"]): ReadonlyArray<number> =>
  events.flatMap(({ event, atMillis }) => (event._tag === tag ? [atMillis] : []))

/** The first row of a report: the agent that was run. */
export const rowOf = <A>(outcome: Agent.Outcome<A>, account?: string): Budget.Row =>
  outcome.report.accounts.find((row) => account === undefined || row.account === account)!
