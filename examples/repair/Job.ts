/**
 * The repair job: a project whose tests fail in, one whose tests pass out, on a budget. A run whose process was killed
 * goes on in another one.
 */
import * as fs from "node:fs/promises"
import { fileURLToPath } from "node:url"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { Agent, type Event, Journal, Permission, type Price } from "../../src/index.ts"
import { Check, Command, FileJournal, Files } from "../../src/node/index.ts"
import { modelOf } from "../shared/Asked.ts"
import { readPrice, WrongOption } from "../shared/Options.ts"
import * as Options from "./Options.ts"
import * as Order from "./Order.ts"
import { leftBehind, modelTeam, plainTeam, type Report, type TeamOptions, testTime } from "./Team.ts"

/** What the user asked for. */
export interface Asked extends Options.Given {
  /** An earlier run to go on with. */
  readonly resume?: string | undefined
  /** The name of a new run; one is made without it. */
  readonly run?: string
  /** True to let the language model of the environment decide. */
  readonly useModel: boolean
  /** Where runs are kept: journals in `runs`, copies of projects in `repair`. */
  readonly folder: string
  readonly onEvent: (event: Event.Recorded) => void
  /** Resolves when the user wants it to end. */
  readonly cancelled: Effect.Effect<void>
}

/** What came of it. */
export interface Done {
  readonly order: Order.Order
  readonly outcome: Agent.Outcome<Report>
  readonly diff: string
  readonly changedFiles: ReadonlyArray<string>
  /** The exit code of the tests the last time that anybody ran them. */
  readonly after: number | null
}

/** The user wanted it to end before it had begun. */
export class Cancelled extends Schema.TaggedError<Cancelled>()("Cancelled", {}) {
  override get message(): string {
    return "cancelled before anything was spent"
  }
}

const builtIn = fileURLToPath(new URL("./project", import.meta.url))

/** Runs the job. Nothing is spent before every option has been checked. */
export const run = (asked: Asked) =>
  Effect.gen(function* () {
    return asked.resume === undefined ? yield* start(asked) : yield* goOn(asked, asked.resume)
  })

const start = (asked: Asked) =>
  Effect.gen(function* () {
    const { folder, useModel } = asked
    yield* Options.checkTogether(asked, useModel)
    const price = yield* readPrice(asked.price)
    const budget = yield* Options.budgetOf(asked)
    const test = yield* Options.readTest(asked.test)
    const project = yield* Options.readProject(asked.project ?? builtIn)
    const run = asked.run ?? Order.freshRun()
    const isCopy = asked.inPlace !== true
    const places = Order.placesOf(folder, run)
    const { runs } = places
    yield* checkPlace({ project, runs, isCopy })
    const order: Order.Order = {
      version: 1,
      run,
      project,
      root: isCopy ? places.work : project,
      isCopy,
      test,
      decidedBy: useModel ? "model" : "functions",
      ...(asked.price === undefined ? {} : { price: asked.price }),
      before: null,
    }
    const task = `Repair the project in this folder: its tests, ${test.join(" ")}, have to pass.`
    const discard = Effect.tapError(() => Order.discard(folder, run))
    const opening = (team: Agent.Agent<Report>) => discard(Agent.spawn(team, task, { budget, runId: run }))
    const prepared = yield* discard(Effect.raceFirst(prepare(order, places), asTooEarly(asked.cancelled)))
    return yield* carryOut(prepared, { asked, price, opening })
  })

const asTooEarly = (cancelled: Effect.Effect<void>) => Effect.andThen(cancelled, new Cancelled())

/** The journal lies where no agent writes, or a check would never find the world as it was a moment ago. */
const checkPlace = (of: { readonly project: string; readonly runs: string; readonly isCopy: boolean }) =>
  Effect.gen(function* () {
    yield* Effect.promise(() => fs.mkdir(of.runs, { recursive: true }))
    const runs = yield* Effect.promise(() => fs.realpath(of.runs))
    if (of.isCopy || !Options.isWithin(of.project, runs)) return
    const remedy = `the journal would lie in the project (${runs}): start this from another folder`
    return yield* new WrongOption({ option: "in-place", remedy })
  })

/** Copies the project, sees its tests fail, and remembers what it was. */
const prepare = (order: Order.Order, places: ReturnType<typeof Order.placesOf>) =>
  Effect.gen(function* () {
    if (order.isCopy) yield* Order.copy(order.project, order.root)
    const how = { ...Order.vectorOf(order), cwd: order.root, env: Order.env(), timeout: testTime }
    const asTyped = order.test.join(" ")
    const wrongTest = (remedy: string) => new WrongOption({ option: "test", value: asTyped, remedy })
    const { exitCode } = yield* Effect.mapError(Command.run(how), ({ message }) => wrongTest(message))
    if (exitCode === 0) return yield* wrongTest("these tests pass: there is nothing to repair")
    const baseline = yield* Check.baseline(order.root, { store: places.baseline, ignore: leftBehind })
    const known = { ...order, before: exitCode }
    yield* Order.keep(places.order, known)
    return { order: known, baseline }
  })

const goOn = (asked: Asked, run: string) =>
  Effect.gen(function* () {
    yield* Options.checkResumed(asked)
    const order = yield* Order.find(asked.folder, run)
    if (order.decidedBy === "model" && !asked.useModel) {
      const remedy = "a language model decides in this run: set OPENAI_API_KEY"
      return yield* new WrongOption({ option: "resume", value: run, remedy })
    }
    const price = yield* readPrice(asked.price ?? order.price)
    const { baseline: store } = Order.placesOf(asked.folder, run)
    const baseline = yield* Check.baseline(order.root, { store, ignore: leftBehind })
    const opening = (team: Agent.Agent<Report>) => Agent.spawnResumed(team, { run })
    return yield* carryOut({ order, baseline }, { asked, price, opening })
  })

interface Prepared {
  readonly order: Order.Order
  readonly baseline: Check.Baseline
}

interface How<E> {
  readonly asked: Asked
  readonly price: Price.Price | undefined
  readonly opening: (team: Agent.Agent<Report>) => Effect.Effect<Agent.Handle<Report>, E, Scope.Scope>
}

/** Runs the agents to their end, and looks at what they left. */
const carryOut = <E>({ order, baseline }: Prepared, { asked, price, opening }: How<E>) =>
  Effect.gen(function* () {
    const { root } = order
    const team: TeamOptions = { root, baseline, test: Order.vectorOf(order), env: Order.env() }
    const isModel = order.decidedBy === "model"
    // What the agents need is provided below.
    const agent = (isModel ? modelTeam(team) : plainTeam(team)) as Agent.Agent<Report>
    const journals = FileJournal.layer({ directory: Order.placesOf(asked.folder, order.run).runs })
    const outcome = yield* toEnd(opening(agent), asked).pipe(
      Effect.provide([toolsOf(team), journals, isModel ? modelOf(price) : Layer.empty]),
    )
    const diff = yield* Check.diff({ root, baseline })
    const { changedFiles } = yield* Check.since({ root, baseline })
    const events = yield* FileJournal.read({ directory: Order.placesOf(asked.folder, order.run).runs, run: order.run })
    const after = events.reduce<number | null>((code, { event }) => exitCodeIn(event) ?? code, order.before)
    return { order, outcome, diff, changedFiles, after } satisfies Done
  })

/** Waits for the end, or ends it when the user wants that. */
const toEnd = <E>(opening: Effect.Effect<Agent.Handle<Report>, E, Scope.Scope>, { cancelled, onEvent }: Asked) =>
  Effect.scoped(
    Effect.gen(function* () {
      const journal = yield* Journal.Journal
      const handle = yield* Effect.provideService(opening, Journal.Journal, Journal.tap(journal, onEvent))
      const watch = yield* Effect.forkChild(Effect.andThen(cancelled, handle.cancel))
      const outcome = yield* handle.await
      yield* Fiber.interrupt(watch)
      return outcome
    }),
  )

/** The files of the folder and its tests, and nothing else. */
const toolsOf = ({ root, test, env }: TeamOptions) => {
  const isTest = ({ command, args }: Command.Vector) =>
    command === test.command && JSON.stringify(args) === JSON.stringify(test.args)
  return Layer.mergeAll(
    Files.layer({ root }),
    Command.layer({ root, env, timeout: testTime, allow: isTest }),
    Permission.layer({ allow: ["files:read", "files:write", `command:${test.command}`] }),
  )
}

/** The exit code of the tests, where an event tells of a run of them. */
export const exitCodeIn = (event: Event.Event): number | undefined => {
  if (event._tag === "Verified") {
    const code = event.evidence.findLast((one) => "exitCode" in one)?.["exitCode"]
    return typeof code === "number" ? code : undefined
  }
  if (event._tag !== "CallEnded" || event.tool !== "run_command" || event.outcome !== "ok") return undefined
  const { exitCode } = JSON.parse(event.result?.text ?? "{}") as { readonly exitCode?: number | null }
  return exitCode ?? undefined
}
