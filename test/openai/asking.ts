/** What the tests of this folder share: one key, and asking a server with every report kept. */
import * as Effect from "effect/Effect"
import type * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as Model from "../../src/model/Model.ts"
import type { Report } from "../../src/model/Provider.ts"
import * as Provider from "../../src/model/Provider.ts"
import * as OpenAi from "../../src/openai/OpenAi.ts"

export const key = "sk-test-0123456789abcdef"

/** Runs `effect` against the server at `baseUrl`, its reports into `reports`. */
export const asking =
  (baseUrl: string, reports: Array<Report> = [], options: Partial<OpenAi.Options> = {}) =>
  <A, E, R>(
    effect: Effect.Effect<A, E, R>,
  ): Effect.Effect<A, E, Exclude<R, LanguageModel.LanguageModel | Model.CurrentModel>> =>
    effect.pipe(
      Effect.provide(Layer.orDie(OpenAi.layer({ model: "gpt-test", apiKey: Redacted.make(key), baseUrl, ...options }))),
      Effect.provideService(Provider.OnReport, (report) => void reports.push(report)),
    )

/** Asks and expects no answer: the error and the reports. */
export const failing = (baseUrl: string, options: Partial<OpenAi.Options> = {}) =>
  Effect.gen(function* () {
    const reports: Array<Report> = []
    const error: AiError.AiError = yield* LanguageModel.generateText({ prompt: "a private question" }).pipe(
      asking(baseUrl, reports, options),
      Effect.flip,
    )
    return { error, reports }
  })
