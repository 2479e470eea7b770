/**
 * What the command says, as text of 100 columns.
 */
import { type Row } from "../budget/Statement.ts"
import * as Audit from "../journal/Audit.ts"
import { accountTable } from "../journal/show/AccountTable.ts"
import { aligned, clipped, counted, inOneLine, timeOf, width } from "../journal/show/Words.ts"
import type * as Metrics from "../journal/Metrics.ts"
import type { Replay } from "../journal/Replay.ts"
import type { Summary } from "../journal/Show.ts"
import { formatMoney } from "../budget/Amount.ts"
import type { Log } from "./Logs.ts"

/** An audit: how much there was, what was looked at, and every defect. */
export const auditText = (audit: Audit.Audit, log: Log): ReadonlyArray<string> => {
  const isSound = audit.isSound && log.unreadable.length === 0
  const kinds = Object.entries(Audit.kinds) as ReadonlyArray<readonly [Audit.Kind, string]>
  return [
    `run ${inOneLine(audit.run ?? "")}: ${audit.state}, ${isSound ? "sound" : "NOT SOUND"}`,
    ...countLines(audit.counts),
    "",
    ...kinds.flatMap(([kind, law]) => [
      `${audit[kind].length === 0 ? "ok    " : "WRONG "}  ${kind.padEnd(16)}  ${law}`,
      ...audit[kind].map(({ seq, what }) => `        event ${seq}: ${inOneLine(what)}`),
    ]),
    ...damageIn(log),
  ]
}

const countLines = (counts: Audit.Counts): ReadonlyArray<string> => {
  const { agents, approvals, attempts, calls, children, decisions, events, results, steps, verifications } = counts
  const table: ReadonlyArray<readonly [string, string]> = [
    [
      "events",
      `${events} of ${counted(agents, "agent")}, ${children} of them below another; ${counted(steps, "step")}`,
    ],
    [
      "decisions",
      `${decisions.call} call, ${decisions.finish} finish, ${decisions.invalid} invalid, ${decisions.failed} failed`,
    ],
    ["calls", `${calls} decided, ${counted(attempts, "attempt")}, ${results.ok} ok, ${results.error} error`],
    ["checks", `${verifications.accepted} accepted, ${verifications.rejected} rejected`],
    [
      "people",
      `${approvals.requested} asked, ${approvals.decided} answered; ${counted(counts.suspensions, "suspension")}, ${counted(counts.resumes, "resume")}`,
    ],
  ]
  return table.map(([name, what]) => `  ${name.padEnd(9)}  ${what}`)
}

/** What is wrong with the files themselves. */
export const damageIn = ({ unreadable, isCutOff }: Log): ReadonlyArray<string> => [
  ...unreadable.map(
    ({ file, line, what }) =>
      `WRONG   line ${line} of the ${file === "log" ? "log" : "contents"} cannot be read: ${what}`,
  ),
  ...(isCutOff
    ? ["note    the last line was cut off in the middle and counts for nothing; a resume takes it away"]
    : []),
]

/** A replay: every state and whether it is as it was recorded, and the books. */
export const replayText = (replay: Replay): ReadonlyArray<string> => [
  `run ${inOneLine(replay.run ?? "")}: ${replay.equal ? "as it was recorded" : "NOT as it was recorded"}`,
  "",
  ...aligned(
    [
      ["agent", "state", ""],
      ...replay.agents.map(({ agent, digest, equal, recorded }) => [
        inOneLine(agent),
        digest.slice(0, 23) || "nothing",
        recorded === undefined
          ? "has not ended"
          : equal
            ? "as recorded"
            : `recorded ${inOneLine(recorded).slice(0, 23)}`,
      ]),
    ],
    "left",
  ),
  "",
  ...(replay.contradiction === undefined
    ? accountTable(replay.accounts.map(sumOf))
    : [`WRONG   the books cannot be rebuilt: ${inOneLine(replay.contradiction)}`]),
]

const sumOf = (row: Row) => ({ ...row, isClosed: row.state === "Closed" })

/** A run in a list of runs; absent numbers are of one that could not be read. */
export interface Listed {
  readonly run: string
  readonly summary: Summary | undefined
  readonly problem: string | undefined
}

/** The runs of a folder, a line for each. */
export const runsText = (runs: ReadonlyArray<Listed>, directory: string): ReadonlyArray<string> => {
  if (runs.length === 0) return [`no runs in ${inOneLine(directory)}`]
  const rows = runs.map(({ run, summary, problem }) =>
    summary === undefined
      ? [inOneLine(run), clipped(`unreadable: ${inOneLine(problem ?? "")}`, width - run.length - 2)]
      : [inOneLine(run), ...numbersOf(summary)],
  )
  return aligned([["run", "started", "state", "took", "agents", "steps", "money"], ...rows], "left")
}

/** Figures of many runs: first of all of them, then by the reason they stopped for. */
export const metricsText = (metrics: Metrics.Metrics): ReadonlyArray<string> => {
  const { failures, successes } = metrics
  const figures: ReadonlyArray<readonly [string, string]> = [
    ["runs", `${metrics.runs}, of which ${metrics.ended} ended and ${successes.runs} completed`],
    ["success rate", percent(metrics.successRate)],
    ["mean steps", `${rounded(successes.meanSteps)} of successes, ${rounded(failures.meanSteps)} of failures`],
    ["cost", `${costOf(metrics.costNanoUsdPerRun)} a run, ${costOf(metrics.costNanoUsdPerSuccess)} a success`],
    ["tool errors", `${percent(metrics.toolErrorRate)} of calls; ${percent(metrics.recoveryRate)} recovered from`],
    [
      "stuck",
      `${percent(metrics.noProgress)} of agents made no progress, ${percent(metrics.repeatedActions)} repeated`,
    ],
    [
      "people",
      `${percent(metrics.humanTakeOvers)} of runs; ${percent(metrics.refusedPermissions)} of calls not permitted`,
    ],
  ]
  const rows = [{ reason: "all", ...metrics }, ...metrics.byReason].map((one) => [
    inOneLine(one.reason),
    String(one.runs),
    rounded(one.meanSteps),
    rounded(one.stepsP50),
    rounded(one.stepsP95),
    one.latencyMillisP50 === undefined ? "-" : timeOf(one.latencyMillisP50),
    one.latencyMillisP95 === undefined ? "-" : timeOf(one.latencyMillisP95),
    costOf(one.costNanoUsdPerRun),
  ])
  const head = ["stopped for", "runs", "mean steps", "p50", "p95", "time p50", "p95", "cost a run"]
  return [...figures.map(([name, what]) => `${name.padEnd(13)} ${what}`), "", ...aligned([head, ...rows], "left")]
}

const percent = (share: number | undefined): string => (share === undefined ? "-" : `${(share * 100).toFixed(1)} %`)
const rounded = (value: number | undefined): string => (value === undefined ? "-" : String(Number(value.toFixed(1))))
const costOf = (nanoUsd: number | undefined): string => (nanoUsd === undefined ? "-" : formatMoney(Math.ceil(nanoUsd)))

const numbersOf = ({ accounts, agents, lastAtMillis = 0, reason, result, startedAtMillis, state }: Summary) => {
  const used = accounts.reduce((sum, { own }) => sum + own.steps, 0)
  const money = accounts.reduce((sum, { own }) => sum + own.money, 0)
  return [
    startedAtMillis === undefined ? "-" : new Date(startedAtMillis).toISOString().slice(0, 19),
    reason === undefined ? state : `${reason}, ${result}`,
    startedAtMillis === undefined ? "-" : timeOf(lastAtMillis - startedAtMillis),
    String(agents.length),
    String(used),
    formatMoney(money),
  ]
}
