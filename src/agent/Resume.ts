/**
 * Going on with a run: after a suspension, with the answers of people, or after its process is gone. Everything is rebuilt
 * from the journal: the ledger from its entries, each agent from its events. What had a result has it still; a decision
 * that was under way is booked at its hold; an effect that was under way is repeated only if it counts once.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Budget from "../budget/Budget.ts"
import * as Content from "../event/Content.ts"
import type { EventOf, Recorded } from "../event/Event.ts"
import { Journal, type JournalError, reopen as reopenLog } from "../journal/Journal.ts"
import * as Line from "../journal/Line.ts"
import { Observed } from "../journal/Observed.ts"
import * as Watch from "../telemetry/Watch.ts"
import type { Agent } from "./Definition.ts"
import { endAgents, foldOf } from "./Ends.ts"
import { endRun, opened, type Opened, version } from "./Open.ts"
import { Run } from "./Run.ts"

/**
 * What a person says to a question of a suspended run. It repeats the digest of the question, so that it fits nothing else.
 *
 * `happened` and `did_not_happen` answer what became of a call; `result` is what it brought, if that is known.
 *
 * @category resuming
 * @since 0.1.0
 */
export interface Answer {
  readonly approval: string
  readonly digest: string
  readonly decision: EventOf<"ApprovalDecided">["decision"]
  /** Who says so; it stands in the journal. */
  readonly by: string
  readonly note?: string
  readonly result?: unknown
}

/**
 * Why a run cannot go on. Nothing has happened.
 *
 * @category errors
 * @since 0.1.0
 */
export class ResumeError extends Schema.TaggedError<ResumeError>()("ResumeError", {
  run: Schema.String,
  reason: Schema.Literals(["ended", "another_agent", "content_dropped", "books_contradict", "no_run"]),
  detail: Schema.String,
}) {
  override get message(): string {
    return `the run ${this.run} cannot go on (${this.reason}): ${this.detail}`
  }
}

/**
 * An answer that is not accepted. Nothing has happened.
 *
 * - `unknown`: no such question was asked, or it needs no answer any more (it was answered, or its call has ended)
 * - `forged`: the digest is not that of the question
 * - `unfit`: the decision answers another kind of question, or its result is no JSON
 *
 * @category errors
 * @since 0.1.0
 */
export class ApprovalError extends Schema.TaggedError<ApprovalError>()("ApprovalError", {
  run: Schema.String,
  approval: Schema.String,
  reason: Schema.Literals(["unknown", "forged", "unfit"]),
}) {
  override get message(): string {
    return `the answer to ${this.approval} of the run ${this.run} is refused (${this.reason}): ${remedies[this.reason]}`
  }
}

const remedies = {
  unknown: "answer a question that the run waits for, once",
  forged: "repeat the digest of the question as it was asked",
  unfit:
    "say approved or denied to an approval, happened or did_not_happen (with a result in JSON) to an uncertain call",
}

/** Reads a run and gets it ready to go on. */
export const reopen = <A, R>(
  agent: Agent<A, R>,
  runId: string,
  answers: ReadonlyArray<Answer>,
): Effect.Effect<Opened<A, R>, JournalError | ResumeError | ApprovalError, Scope.Scope> =>
  Effect.gen(function* () {
    const { run, log, events, goOn } = yield* rebuild(runId)
    const started = events[0]!.event as EventOf<"RunStarted">
    if (started.agent !== agent.name) {
      const detail = `it was started by the agent ${started.agent}, not by ${agent.name}`
      return yield* new ResumeError({ run: runId, reason: "another_agent", detail })
    }
    if (events.some(({ event }) => Line.lacksText(event))) {
      const detail = "its content was dropped; it can be audited"
      return yield* new ResumeError({ run: runId, reason: "content_dropped", detail })
    }
    for (const [index, answer] of answers.entries()) yield* validate(run, answer, answers.slice(0, index))
    goOn()
    for (const answer of answers) recordAnswer(run, answer)
    takeOver(run, events)
    yield* log.flush
    return opened(agent, started.task.text ?? "", { run, log })
  })

/** Ends a run that nobody goes on with: its books close, and the journal says why. */
export const abandon = (
  runId: string,
  reason: "cancelled" | "owner_lost",
): Effect.Effect<Run, JournalError | ResumeError, Scope.Scope> =>
  Effect.gen(function* () {
    const { run, goOn } = yield* rebuild(runId)
    const { id } = run.ledger.root
    goOn()
    endAgents(run, id, reason)
    run.ledger.sweep(id, reason)
    yield* endRun(run, reason)
    return run
  })

// --- reading

interface Rebuilt {
  readonly run: Run
  readonly log: Observed
  readonly events: ReadonlyArray<Recorded>
  /** Records that the run goes on; nothing is written before. */
  readonly goOn: () => void
}

const rebuild = (runId: string): Effect.Effect<Rebuilt, JournalError | ResumeError, Scope.Scope> =>
  Effect.gen(function* () {
    const journal = yield* Journal
    const nowMillis = yield* Budget.monotonicMillis
    const { log: inner, events } = yield* reopenLog(journal, runId)
    const first = events[0]?.event
    const refused = (reason: ResumeError["reason"], detail: string) => new ResumeError({ run: runId, reason, detail })
    if (first === undefined) return yield* refused("no_run", "nothing of it was written: start it again")
    if (first._tag !== "RunStarted") return yield* refused("no_run", "its journal is not that of an agent")
    if (events.some(({ event }) => event._tag === "RunEnded")) return yield* refused("ended", "start a new run")
    const log = new Observed(inner)
    // Time does not run backwards, whatever the clock of this machine says.
    const last = events.at(-1)!.atMillis
    const now = () => Math.max(last, nowMillis())
    const entries = events.flatMap(({ event, atMillis }) => (isEntry(event) ? [{ entry: event, atMillis }] : []))
    if (entries.length === 0) return yield* refused("no_run", "it had no budget yet: start it again")
    // What a restore has to write itself (an operation that was cut off) comes after the note that the run was resumed.
    let withheld: Array<Budget.Entry> | undefined = []
    const record = (entry: Budget.Entry) => void (withheld === undefined ? log.record(entry) : withheld.push(entry))
    const ledger = Budget.Ledger.restore(entries, { record, nowMillis: now })
    if (Result.isFailure(ledger)) return yield* refused("books_contradict", ledger.failure.message)
    const epoch = 1 + events.filter(({ event }) => event._tag === "RunResumed").length
    const watch = yield* Watch.make(log, events)
    const run = new Run({ log, ledger: ledger.success, watch, earlier: { epoch, events } })
    const goOn = () => {
      recordResumed(run)
      for (const entry of withheld ?? []) log.record(entry)
      withheld = undefined
    }
    return { run, log, events, goOn }
  })

const recordResumed = ({ ledger: { root }, log, epoch }: Run): void => {
  const after = root.state === "Paused" ? "suspension" : "crash"
  log.record({ _tag: "RunResumed", agent: root.id, epoch, after, bursar: version })
}

const isEntry = (event: Recorded["event"]): event is Budget.Entry => !("agent" in event)

// --- answers

const fits = {
  approval: ["approved", "denied"],
  uncertain: ["happened", "did_not_happen"],
} as const

const validate = (run: Run, answer: Answer, before: ReadonlyArray<Answer>): Effect.Effect<void, ApprovalError> => {
  const { approval, result } = answer
  const question = before.some((one) => one.approval === approval) ? undefined : run.question(approval)
  const refused = (reason: ApprovalError["reason"]) => Effect.fail(new ApprovalError({ run: run.id, approval, reason }))
  if (question === undefined) return refused("unknown")
  if (question.digest !== answer.digest) return refused("forged")
  const isFit = (fits[question.kind] as ReadonlyArray<string>).includes(answer.decision)
  return isFit && Result.isSuccess(Result.try(() => JSON.stringify(result))) ? Effect.void : refused("unfit")
}

const recordAnswer = (run: Run, answer: Answer): void => {
  const { agent, step, call, tool, approval, kind } = run.question(answer.approval)!
  const event: EventOf<"ApprovalDecided"> = {
    _tag: "ApprovalDecided",
    agent,
    step,
    call,
    tool,
    approval,
    kind,
    decision: answer.decision,
    by: answer.by,
    ...(answer.note === undefined ? {} : { note: answer.note }),
    ...(answer.result === undefined ? {} : { result: Content.fromJson(answer.result) }),
  }
  run.takeUp({ seq: -1, atMillis: run.log.record(event), run: run.id, event })
}

// --- taking over

/** Brings the books to where work can go on: nothing pending, nothing paused, nobody left whom no agent waits for. */
const takeOver = (run: Run, events: ReadonlyArray<Recorded>): void => {
  const { root } = run.ledger
  const kept = new Set(goingOn(run, root.id))
  for (const { id, state } of run.ledger.accounts) if (state !== "Closed") resolveHolds(run, id, events)
  for (const { id, state, pausedBy } of run.ledger.accounts) {
    if (state === "Paused" && pausedBy === id) run.ledger.resume(id)
  }
  for (const { id, state } of run.ledger.accounts) {
    if (state !== "Closed" && !kept.has(id)) {
      endAgents(run, id, "cancelled")
      run.ledger.sweep(id, "the process ended")
    }
  }
}

/** An agent that goes on, and the children that its calls wait for. */
const goingOn = (run: Run, account: string): ReadonlyArray<string> => {
  const { started } = foldOf(run, account).state.control
  const children = [...started.values()].flatMap(({ child }) => child ?? [])
  const open = children.filter((child) => run.ledger.account(child).state !== "Closed")
  return [account, ...open.flatMap((child) => goingOn(run, child))]
}

/** A call that had not started cost nothing; what anything else cost, nobody knows any more. */
const resolveHolds = (run: Run, account: string, events: ReadonlyArray<Recorded>): void => {
  for (const hold of run.ledger.pendingHolds(account)) {
    const call = /^step-\d+\/call-\d+/.exec(hold.id)?.[0]
    const heldAt = events.findLastIndex(
      ({ event }) => event._tag === "Held" && event.account === account && event.hold === hold.id,
    )
    const started = events
      .slice(heldAt)
      .some(({ event }) => event._tag === "CallStarted" && event.agent === account && event.call === call)
    if (call !== undefined && !started) run.ledger.void(hold)
    else run.ledger.assume(hold)
  }
}
