/**
 * A Jaeger and a collector for tests: on free ports, with storage that is gone afterwards; and waiting for what arrives
 * there, without ever sleeping for a fixed time.
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Build from "../../examples/jaeger/Build.ts"
import * as Config from "../../examples/jaeger/Config.ts"
import * as Stack from "../../examples/jaeger/Stack.ts"

declare module "vitest" {
  interface TaskMeta {
    /** What a test counted; printed at the end of `npm run test:jaeger`. */
    figures?: Readonly<Record<string, string | number>>
  }
}

/** The two that stand; what sends to them and reads from them. */
export class Standing extends Context.Service<Standing, Stack.Stack>()("test/jaeger/Standing") {}

export interface Options {
  readonly change?: (config: Config.Config) => Config.Config
  readonly env?: Readonly<Record<string, string>>
}

const anyPorts = Object.fromEntries(Config.portNames.map((name) => [name, 0])) as Config.Ports

// Between looking for free ports and taking them somebody else may have been quicker.
const isPort = (error: { readonly message: string }): boolean => /address already in use/.test(error.message)

/** For `layer`: real time, and patience while the two come up. */
export const live = { excludeTestServices: true, timeout: "2 minutes" } as const

/**
 * Both, as long as the tests of a file; without the sampler unless `change` says otherwise.
 *
 * **Example** (A test that sends and reads back)
 *
 * ```ts no-run
 * layer(standing(), live)("what was sent", (it) => {
 *   it.effect("arrives", () =>
 *     Effect.gen(function* () {
 *       const { otlp, query } = yield* Standing
 *       yield* send(otlp, [span], { resource: { "service.name": "bursar" } })
 *       yield* until("the span", find(query, span.traceId), (trace) => trace !== undefined)
 *     }),
 *   )
 * })
 * ```
 */
export const standing = ({ change = Config.keepAll, env }: Options = {}): Layer.Layer<Standing> =>
  Layer.effect(
    Standing,
    Effect.gen(function* () {
      const programs = yield* Build.programs(() => {})
      const storage = yield* Stack.temporary
      const start = Stack.start({ programs, storage, ports: anyPorts, change, env })
      return yield* Effect.retry(start, { times: 3, while: isPort })
    }).pipe(Effect.orDie),
  )

/**
 * Looks again and again until it is as it should be, and answers with what it was then; dies after a minute with what it
 * was last.
 */
export const until = <A, E, R>(
  what: string,
  look: Effect.Effect<A, E, R>,
  isSo: (found: A) => boolean,
  patience: Duration.Input = "60 seconds",
): Effect.Effect<A, E, R> => {
  let last: A | undefined
  return look.pipe(
    Effect.tap((found) => Effect.sync(() => (last = found))),
    Effect.repeat({ schedule: Schedule.spaced("100 millis"), until: isSo }),
    Effect.as(undefined),
    Effect.map(() => last as A),
    Effect.timeoutOrElse({
      duration: patience,
      orElse: () => Effect.die(new Error(`${what}: not so; it was ${JSON.stringify(last)?.slice(0, 2000)}`)),
    }),
  )
}

/** One number of a page for Prometheus. */
export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** Every number that a page for Prometheus shows. */
export const samples = (url: string): Effect.Effect<ReadonlyArray<Sample>> =>
  Effect.map(
    Effect.promise((signal) => fetch(url, { signal }).then((response) => response.text())),
    (page) =>
      page.split("\n").flatMap((line) => {
        const [, name, labels = "", value] = /^(\w+)(?:\{(.*?)\})? (\S+)/.exec(line) ?? []
        if (name === undefined) return []
        const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, text]) => [key!, text!] as const)
        return [{ name, labels: Object.fromEntries(pairs), value: Number(value) }]
      }),
  )

/** The sum of the numbers of that name whose labels are as given. */
export const sum = (all: ReadonlyArray<Sample>, name: string, labels: Readonly<Record<string, string>> = {}): number =>
  all
    .filter((one) => one.name === name && Object.entries(labels).every(([key, value]) => one.labels[key] === value))
    .reduce((total, { value }) => total + value, 0)
