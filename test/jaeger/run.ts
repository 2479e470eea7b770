/**
 * Traces through a real collector into a real Jaeger and back: `npm run test:jaeger`, or with names of suites behind it.
 * Builds the two first where they are not built yet.
 *
 * It prints what the suites counted and closes with `N passed, N failed`; exit code 1 when any failed, was skipped or
 * none ran, 2 without a Go that can build the two.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { startVitest, type TestCase, type TestModule } from "vitest/node"
import * as Build from "../../examples/jaeger/Build.ts"

type Figures = Readonly<Record<string, string | number>>

const lineOf = (test: TestCase, figures: Figures): string =>
  [
    `${test.parent.type === "suite" ? `${test.parent.name}: ` : ""}${test.name}`,
    ...Object.entries(figures).map(([name, value]) => `  ${name}: ${value}`),
  ].join("\n")

const testsOf = (module: TestModule): ReadonlyArray<TestCase> => [...module.children.allTests()]

/** Of a file that could not be read, or whose Jaeger did not start, no test may have run at all. */
const isBroken = (module: TestModule): boolean =>
  !module.ok() && !testsOf(module).some((test) => test.result().state === "failed")

const suites = async (filters: ReadonlyArray<string>): Promise<number> => {
  const vitest = await startVitest([...filters], { config: "test/jaeger/vitest.config.ts", watch: false })
  const modules = vitest.state.getTestModules()
  const tests = modules.flatMap(testsOf)
  const inState = (state: string) => tests.filter((test) => test.result().state === state).length
  for (const test of tests) {
    const { figures } = test.meta()
    if (figures !== undefined) console.log(lineOf(test, figures))
  }
  const passed = inState("passed")
  const failed = inState("failed") + modules.filter(isBroken).length + vitest.state.getUnhandledErrors().length
  const skipped = tests.length - passed - inState("failed")
  await vitest.close()
  console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`)
  return passed === 0 || failed > 0 || skipped > 0 ? 1 : 0
}

const built = await Effect.runPromiseExit(Build.programs(console.log))
if (Exit.isFailure(built)) {
  const error = Cause.squash(built.cause)
  console.error(error instanceof Error ? error.message : String(error))
  process.exitCode = error instanceof Build.GoNeeded ? 2 : 1
} else {
  process.exitCode = await suites(process.argv.slice(2))
}
