/** What the tests of this folder share: running a program under the layer, with the variables given and no others. */
import type * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Tracer from "effect/Tracer"
import * as Otel from "../../src/otel/Otel.ts"
import type { ReceivedSpan } from "../support/OtlpReceiver.ts"
import * as OtlpReceiver from "../support/OtlpReceiver.ts"

export type Variables = Readonly<Record<string, string>>

/** The layer in an environment of its own. */
export const layer = (
  variables: Variables,
  options: Otel.Options = {},
): Layer.Layer<never, Otel.OtelConfigError | Config.ConfigError> =>
  Otel.layer(options).pipe(Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(variables))))

/** Runs a program to the end of its layer: what it left, and the spans that arrived. */
export const exported = <A, E>(
  program: Effect.Effect<A, E>,
  options: Otel.Options & { readonly variables?: Variables } = {},
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const receiver = yield* OtlpReceiver.make()
      const variables = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, ...options.variables }
      const exit = yield* Effect.exit(program.pipe(Effect.provide(layer(variables, options), { local: true })))
      return { exit, receiver, spans: receiver.spans, named: (name: string) => named(receiver.spans, name) }
    }),
  )

const named = (spans: ReadonlyArray<ReceivedSpan>, name: string): ReceivedSpan => {
  const [first, ...rest] = spans.filter((span) => span.name === name)
  if (first === undefined || rest.length > 0) throw new Error(`${rest.length + 1} spans named ${name}, or none`)
  return first
}

/** Whether a tracer was provided, as opposed to the one that is always there. */
export const isTraced: Effect.Effect<boolean> = Effect.map(Effect.context(), (context) =>
  context.mapUnsafe.has(Tracer.TracerKey),
)
