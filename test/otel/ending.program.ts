/** Run in a process of its own: writes a span and a line, never closes its layer, and ends as it is told. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { Otel } from "../../src/otel/index.ts"

const how = process.argv[2]
const scope = Effect.runSync(Scope.make())
const context = await Effect.runPromise(Layer.buildWithScope(Otel.layer(), scope))
await Effect.runPromise(
  Effect.andThen(Effect.withSpan(Effect.void, "one"), Effect.logInfo("a line")).pipe(Effect.provideContext(context)),
)
// An export takes a while to come by itself.
process.stdout.write("ready\n")
if (how === "own") {
  process.on("SIGTERM", () => {
    void Effect.runPromise(Scope.close(scope, Exit.void)).finally(() => process.exit(7))
  })
}
if (how !== "idle") setInterval(() => undefined, 1_000)
