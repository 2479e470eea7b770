/**
 * The research job: documents in, a report with citations out, on a budget.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { Agent, type Budget, type Event, Journal } from "../../src/index.ts"
import { FileJournal } from "../../src/node/index.ts"
import { modelOf } from "../shared/Asked.ts"
import { readPrice, wrong, type WrongOption } from "../shared/Options.ts"
import * as Corpus from "./Corpus.ts"
import * as Search from "./Search.ts"
import { modelTeam, plainTeam, type Report, toolsOf } from "./Team.ts"

/** What the user asked for; amounts as they were typed. */
export interface Options {
  readonly question: string
  readonly docs: string
  readonly budget: Budget.Input
  readonly researchers: string
  readonly price: string | undefined
  /** True to let the language model of the environment decide. */
  readonly useModel: boolean
  readonly journals: string
  readonly onEvent: (event: Event.Recorded) => void
  /** Resolves when the user wants it to end. */
  readonly cancelled: Effect.Effect<void>
}

/** What came of it. */
export interface Done {
  readonly corpus: Corpus.Corpus
  readonly outcome: Agent.Outcome<Report>
}

const mostResearchers = 16

const readResearchers = (text: string): Effect.Effect<number, WrongOption> =>
  /^\d{1,3}$/.test(text) && Number(text) >= 1 && Number(text) <= mostResearchers
    ? Effect.succeed(Number(text))
    : wrong("researchers", text, `give a whole number from 1 to ${mostResearchers}`)

/** Runs the job. Nothing is spent before every option has been checked. */
export const run = (options: Options) =>
  Effect.gen(function* () {
    const researchers = yield* readResearchers(options.researchers)
    const price = yield* readPrice(options.price)
    const corpus = yield* Corpus.load(options.docs)
    const index = Search.make(corpus)
    const team = { question: options.question, index, researchers }
    const model = options.useModel ? modelOf(price) : Layer.empty
    const agent = options.useModel ? modelTeam(team) : plainTeam(team)
    const start = Effect.gen(function* () {
      const journal = yield* Journal.Journal
      const handle = yield* Agent.spawn(agent as Agent.Agent<Report>, options.question, {
        budget: options.budget,
      }).pipe(Effect.provideService(Journal.Journal, Journal.tap(journal, options.onEvent)))
      const watch = yield* Effect.forkChild(Effect.andThen(options.cancelled, handle.cancel))
      const outcome = yield* handle.await
      yield* Fiber.interrupt(watch)
      return outcome
    })
    const outcome = yield* Effect.scoped(start).pipe(
      Effect.provide([toolsOf(index), model, FileJournal.layer({ directory: options.journals })]),
    )
    return { corpus, outcome } satisfies Done
  })
