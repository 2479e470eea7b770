/**
 * The model that a job asks where there is a key: OpenAI, or whatever `OPENAI_BASE_URL` names, at the price that the user
 * gave, else at that of the table. A model that the table does not know has none, and is refused under a cap on money.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Model, type Price } from "../../src/index.ts"

/** Loaded where a model is asked. */
export const modelOf = (price: Price.Price | undefined) =>
  Layer.unwrap(
    Effect.map(
      Effect.promise(() => Promise.all([import("../../src/openai/index.ts"), import("../../src/prices/index.ts")])),
      ([{ OpenAi }, { Prices }]) =>
        price === undefined
          ? Layer.effect(Model.CurrentModel)(
              Effect.flatMap(Model.CurrentModel, (model) =>
                Effect.orElseSucceed(Prices.priced(model, { provider: "openai" }), () => model),
              ),
            ).pipe(Layer.provide(OpenAi.layerConfig()))
          : OpenAi.layerConfig({ price }),
    ),
  )
