/**
 * What a user may ask the repair job for, and what of it cannot be used. Amounts stay as they were typed.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { Budget } from "../../src/index.ts"
import { flagOf, wrong, type WrongOption } from "../shared/Options.ts"

/** The options as they were given; what was not given is absent. */
export interface Given {
  readonly project?: string | undefined
  readonly test?: string | undefined
  readonly inPlace?: boolean | undefined
  readonly steps?: string | undefined
  readonly toolCalls?: string | undefined
  readonly money?: string | undefined
  readonly wallClock?: string | undefined
  readonly price?: string | undefined
}

/** Refuses options that make no sense together. */
export const checkTogether = (given: Given, useModel: boolean): Effect.Effect<void, WrongOption> => {
  const needsKey = "plain functions know the built-in project alone: set OPENAI_API_KEY to let a language model decide"
  if (!useModel && given.project !== undefined) return wrong("project", given.project, needsKey)
  if (!useModel && given.test !== undefined) return wrong("test", given.test, needsKey)
  if (given.inPlace === true && given.project === undefined) {
    return wrong("in-place", undefined, "the built-in project stays as it is: name yours with --project")
  }
  return Effect.void
}

const keptByRun = ["project", "test", "inPlace", "steps", "toolCalls", "money", "wallClock"] as const

/** What may stand beside `--resume`: a run keeps what it was started with. */
export const checkResumed = (given: Given): Effect.Effect<void, WrongOption> => {
  const name = keptByRun.find((one) => given[one] !== undefined && given[one] !== false)
  return name === undefined
    ? Effect.void
    : wrong(flagOf(name), undefined, "leave it out: a run that is resumed keeps what it was started with")
}

const defaults = { steps: "60", toolCalls: "120", wallClock: "5 minutes" }

/** The budget, with defaults for what was not given. **Fails with** `BudgetError` for an amount that is none. */
export const budgetOf = (given: Given): Effect.Effect<Budget.Input, Budget.BudgetError> => {
  const { money, steps = defaults.steps, toolCalls = defaults.toolCalls, wallClock = defaults.wallClock } = given
  const budget: Budget.Input = { steps, toolCalls, wallClock, money }
  const parsed = Budget.parse(budget)
  return Result.isSuccess(parsed)
    ? Effect.succeed(budget)
    : Effect.fail(new Budget.BudgetError({ operation: "open", account: "maintainer", reason: parsed.failure }))
}

/** Words a shell would make something of. */
const ofShell = /[|&;<>()$`\\"'*?[\]{}~#!\n]|^\S+=/

/** A command as a list of words. There is no shell, so nothing that only a shell understands may stand in it. */
export const readTest = (text: string | undefined): Effect.Effect<ReadonlyArray<string>, WrongOption> => {
  if (text === undefined) return Effect.succeed(["node", "--test"])
  const words = text.split(/\s+/).filter((word) => word !== "")
  const shell = ofShell.exec(text.trim())?.[0]
  if (shell !== undefined) {
    const remedy = `${JSON.stringify(shell)} is for a shell, and there is none: put it into a script and name that`
    return wrong("test", text, remedy)
  }
  return words.length === 0 ? wrong("test", text, 'give a command, such as "npm test"') : Effect.succeed(words)
}

/** The real path of the folder of a project. */
export const readProject = (text: string): Effect.Effect<string, WrongOption> =>
  Effect.suspend(() => {
    const found = Result.try(() => fs.realpathSync(text))
    return Result.isSuccess(found) && fs.statSync(found.success).isDirectory()
      ? Effect.succeed(found.success)
      : wrong("project", text, "there is no such folder")
  })

/** Whether `inner` lies in the folder `outer`, or is it. Both are real paths. */
export const isWithin = (outer: string, inner: string): boolean => {
  const relative = path.relative(outer, inner)
  return relative === "" || (!relative.startsWith(`..${path.sep}`) && relative !== ".." && !path.isAbsolute(relative))
}
