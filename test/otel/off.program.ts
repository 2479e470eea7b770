/** Run in a process of its own: which packages of OpenTelemetry does a program load that exports nothing? */
import * as Effect from "effect/Effect"
import { createRequire } from "node:module"
import { Otel } from "../../src/otel/index.ts"
import { isTraced } from "./exporting.ts"

const packageOf = (path: string): ReadonlyArray<string> => /@opentelemetry\/[^/]+/.exec(path)?.slice(0, 1) ?? []

const program = Effect.withSpan(isTraced, "one").pipe(Effect.provide(Otel.layer()))
const found = await Effect.runPromise(program)
const loaded = Object.keys(createRequire(import.meta.url).cache).flatMap(packageOf)
process.stdout.write(JSON.stringify({ isTraced: found, loaded: [...new Set(loaded)] }))
