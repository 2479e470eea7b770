/**
 * Matching the patterns of a model, which may be such that they never come to an end. They run in a thread of their own,
 * which is ended when it has taken too long.
 */
import { Worker } from "node:worker_threads"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as ToolError from "../../tool/ToolError.ts"
import { pathForMatcher, patternForMatcher } from "./glob.ts"

/** A thread that matches, with what it has left of its time. */
export interface Matcher {
  /** Which of the paths a glob names. */
  readonly glob: (
    pattern: string,
    paths: ReadonlyArray<string>,
  ) => Effect.Effect<ReadonlySet<number>, ToolError.ToolError>
  /** In which of the lines there is something that a regular expression matches. */
  readonly regexp: (
    pattern: { readonly source: string; readonly flags: string },
    lines: ReadonlyArray<string>,
  ) => Effect.Effect<ReadonlySet<number>, ToolError.ToolError>
}

/** A question to the thread, and its answer. */
interface Question {
  readonly kind: "glob" | "regexp"
  readonly source: string
  readonly flags: string
  readonly items: ReadonlyArray<string>
}
type Answer = { readonly found: ReadonlyArray<number> } | { readonly problem: string }

/** It is kept as text so that it runs from the sources, from the built package and from a bundle. */
const program = `
const { parentPort } = require("node:worker_threads")
const { matchesGlob } = require("node:path").posix
parentPort.on("message", ({ kind, source, flags, items }) => {
  try {
    const expression = kind === "regexp" ? new RegExp(source, flags) : undefined
    const matches = expression ? (item) => expression.test(item) : (item) => matchesGlob(item, source)
    const found = []
    items.forEach((item, index) => { if (matches(item)) found.push(index) })
    parentPort.postMessage({ found })
  } catch (error) {
    parentPort.postMessage({ problem: String(error && error.message) })
  }
})
`

/**
 * Starts a thread that ends with the scope.
 *
 * **Units**: `millis` is the time for everything that is asked of it together.
 */
export const make = (millis: number): Effect.Effect<Matcher, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(start, (worker) => Effect.promise(() => worker.terminate())),
    (worker) => {
      const time = { left: millis }
      const ask = (question: Question) =>
        Effect.map(asking(worker, question, time), (found): ReadonlySet<number> => new Set(found))
      return {
        glob: (pattern, paths) =>
          ask({ kind: "glob", source: patternForMatcher(pattern), flags: "", items: paths.map(pathForMatcher) }),
        regexp: ({ source, flags }, lines) => ask({ kind: "regexp", source, flags, items: lines }),
      }
    },
  )

const memory = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 32 }

const start = Effect.callback<Worker>((resume) => {
  const worker = new Worker(program, { eval: true, execArgv: [], env: {}, resourceLimits: memory })
  worker.once("online", () => resume(Effect.succeed(worker)))
  worker.once("error", (error) => resume(Effect.die(error)))
})

/** The time is that of the machine: no other clock bounds what a processor does. */
const asking = (
  worker: Worker,
  question: Question,
  time: { left: number },
): Effect.Effect<ReadonlyArray<number>, ToolError.ToolError> =>
  Effect.callback((resume) => {
    const startMillis = performance.now()
    const stop = () => {
      clearTimeout(timer)
      worker.off("message", onAnswer)
      worker.off("error", onError)
      time.left -= performance.now() - startMillis
    }
    const end = (result: Effect.Effect<ReadonlyArray<number>, ToolError.ToolError>) => {
      stop()
      resume(result)
    }
    const onAnswer = (answer: Answer) =>
      end("found" in answer ? Effect.succeed(answer.found) : Effect.fail(unusable(question, answer.problem)))
    const onError = () => end(Effect.fail(unusable(question, "it takes too much memory")))
    const timer = setTimeout(
      () => end(Effect.fail(unusable(question, "it takes too long; use a simpler one"))),
      Math.max(0, time.left),
    )
    worker.on("message", onAnswer)
    worker.on("error", onError)
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    worker.postMessage(question)
    return Effect.sync(stop)
  })

const unusable = ({ kind }: Question, why: string): ToolError.ToolError =>
  ToolError.mistake("EPATTERN", `the ${kind === "glob" ? "glob" : "regular expression"} cannot be used: ${why}`)
