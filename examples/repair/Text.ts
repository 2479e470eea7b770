/**
 * What a person reads of the repair job: its events as they happen, then the report.
 */
import type { Agent, Event } from "../../src/index.ts"
import { budgetTables, clipped, endings, eventWords } from "../shared/Table.ts"
import { type Done, exitCodeIn } from "./Job.ts"
import type { Report } from "./Team.ts"

/** What an event says; of tests their exit code, of changes the file, of checks the rules. */
export const wordsOf = (event: Event.Event): string | undefined => {
  switch (event._tag) {
    case "CallEnded": {
      const code = exitCodeIn(event)
      if (code !== undefined) return `${event.agent} sees the tests end with exit code ${code}`
      const changed = event.stateChanged ? (event.resources ?? []).map(({ path }) => path) : []
      return changed.length > 0 ? `${event.agent} has changed ${changed.join(", ")}` : eventWords(event)
    }
    case "Verified": {
      const failed = event.rules.filter((rule) => !rule.passed).map(({ name, detail }) => `${name}: ${detail}`)
      const [first = ""] = failed
      return failed.length === 0
        ? `${event.agent}: checked, ${event.rules.map(({ name }) => name).join(" and ")}`
        : `${event.agent}: the answer was not accepted: ${clipped(first.replaceAll("\n", " "), 100)}`
    }
    case "RunResumed":
      return `${event.agent} goes on after a ${event.after}`
    default:
      return eventWords(event)
  }
}

/** How it ended, in one word of the journal. */
export const reasonOf = (outcome: Agent.Outcome<unknown>): string => {
  if (outcome._tag === "Completed") return "completed"
  return outcome._tag === "Stopped" ? outcome.reason : "suspended"
}

export const reportOf = ({ outcome }: Done): Report | undefined => {
  if (outcome._tag === "Completed") return outcome.answer
  return outcome._tag === "Stopped" ? outcome.partial : undefined
}

const exitCode = (code: number | null): string => (code === null ? "none" : String(code))

/** The report for a person. */
export const asText = (done: Done): string => {
  const { after, diff, order, outcome } = done
  const { accounts, ends, journal, run } = outcome.report
  const report = reportOf(done)
  return [
    "",
    `Outcome: ${reasonOf(outcome)}${outcome._tag === "Stopped" && outcome.detail !== "" ? ` (${outcome.detail})` : ""}`,
    ...(report === undefined ? [] : ["", report.summary, `Cause: ${report.cause}`]),
    "",
    diff === "" ? "Nothing was changed." : diff.trimEnd(),
    "",
    `Tests (${order.test.join(" ")}): exit code ${exitCode(order.before)} before, ${exitCode(after)} after`,
    ...(outcome._tag === "Completed" ? outcome.rules.map((rule) => `Rule ${rule.name}: passed`) : []),
    "",
    budgetTables(accounts),
    "",
    endings(ends),
    "",
    `${order.isCopy ? "Copy" : "Project"}: ${order.root}`,
    `Journal: ${journal ?? "none"}`,
    `Look at it: npm run bursar -- audit ${run}`,
    `            npm run bursar -- show ${run}`,
    ...(outcome._tag === "Suspended" ? [`Go on: npm run example -- repair --resume ${run}`] : []),
  ].join("\n")
}

/** The report for a program. */
export const asJson = (done: Done): string => {
  const { after, changedFiles, diff, order, outcome } = done
  const { accounts, ends, journal, overran, run } = outcome.report
  const rules = outcome._tag === "Completed" ? outcome.rules : []
  const { before, project, root, test } = order
  return JSON.stringify(
    {
      reason: reasonOf(outcome),
      report: reportOf(done),
      run,
      project,
      root,
      tests: { command: test, before, after },
      rules,
      changedFiles,
      diff,
      agents: ends,
      accounts,
      overran,
      journal,
    },
    null,
    2,
  )
}

/** 0 completed, 1 an error, 3 a limit was hit, 130 cancelled. */
export const exitCodeOf = ({ outcome }: Done): number => {
  if (outcome._tag === "Completed") return 0
  if (outcome._tag === "Suspended") return 3
  if (outcome.reason === "cancelled") return 130
  return ["model_error", "unpriced", "tool_error"].includes(outcome.reason) ? 1 : 3
}
