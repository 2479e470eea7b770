/**
 * Writing the journal of a run by hand: what an agent would record, with real books below it, and the time going on by
 * ten milliseconds with each event. And breaking such a journal in one place.
 */
import * as Result from "effect/Result"
import type { Carving } from "../../src/budget/Carve.ts"
import { Ledger } from "../../src/budget/Ledger.ts"
import type { Reserve } from "../../src/budget/Reserve.ts"
import * as Content from "../../src/event/Content.ts"
import type { Event, EventOf, Recorded } from "../../src/event/Event.ts"
import * as Audit from "../../src/journal/Audit.ts"
import { Fold } from "../../src/state/State.ts"
import type { Grant } from "../../src/budget/Dimension.ts"

type Of<Tag extends Event["_tag"]> = Omit<EventOf<Tag>, "_tag">

/** A run that is written event by event. */
export class Writer {
  readonly events: Array<Recorded> = []
  readonly ledger: Ledger
  readonly #folds = new Map<string, Fold>()
  #millis = Date.parse("2026-11-30T10:15:00.000Z")

  constructor(options: { readonly grant: Grant; readonly frame?: boolean }) {
    if (options.frame !== false) {
      this.record({ _tag: "RunStarted", agent: "lead", task: Content.fromText("the task"), bursar: "0.1.0" })
    }
    const opened = Ledger.openRoot({
      id: "lead",
      name: "lead",
      grant: options.grant,
      reserves: {
        _tag: "Explicit",
        output: { steps: 1 },
        verify: { money: 2_000_000 },
        retry: { steps: 2, toolCalls: 2 },
      },
      record: (entry) => this.record(entry),
      nowMillis: () => this.#millis,
    })
    this.ledger = Result.getOrThrow(opened)
  }

  record(event: Event): void {
    this.#millis += 10
    this.events.push({ seq: this.events.length, atMillis: this.#millis, run: "run-1", event })
    if (!("agent" in event)) return
    const fold = this.#folds.get(event.agent) ?? new Fold(event.agent)
    this.#folds.set(event.agent, fold)
    fold.apply(event, this.#millis)
  }

  /** Lets time go by. */
  wait(millis: number): void {
    this.#millis += millis
  }

  carve(parent: string, carving: Carving): void {
    Result.getOrThrow(this.ledger.carve(parent, carving))
  }

  start(agent: string, more: Partial<Of<"AgentStarted">> = {}): void {
    const name = agent.split("/").at(-1)!.replace(/-\d+$/, "")
    const task = Content.fromText(`the task of ${agent}`)
    this.record({ _tag: "AgentStarted", agent, name, policy: "scripted", task, constraints: [], ...more })
  }

  /** Holds, and settles with what was used. */
  pay(account: string, id: string, options: { reserve?: Reserve; hold: Grant; actual?: Grant }): void {
    const ref = { account, id }
    Result.getOrThrow(this.ledger.hold(ref, options.reserve ?? "explore", options.hold))
    Result.getOrThrow(this.ledger.settle(ref, options.actual ?? options.hold))
  }

  /** A decision that costs a step, and tokens where it says so. */
  decide(
    agent: string,
    step: number,
    of: Partial<Of<"Decided">> & { kind: Of<"Decided">["kind"]; hold?: Grant },
  ): void {
    const { hold, ...decided } = of
    const { purpose = "explore", attempt = 1 } = decided
    const used = { steps: 1, ...decided.used }
    const reserve = purpose === "wrap_up" ? "output" : attempt > 1 ? "retry" : "explore"
    this.pay(agent, `step-${step}/${purpose}/attempt-${attempt}`, { reserve, hold: hold ?? used, actual: used })
    this.record({ _tag: "Decided", agent, step, attempt, purpose, certainty: "exact", ...decided, used })
  }

  decisionFailed(agent: string, step: number, attempt = 1): void {
    const id = `step-${step}/explore/attempt-${attempt}`
    Result.getOrThrow(this.ledger.hold({ account: agent, id }, attempt > 1 ? "retry" : "explore", { steps: 1 }))
    Result.getOrThrow(this.ledger.assume({ account: agent, id }))
    const failed = { code: "EPROVIDER", message: "overloaded", retryable: true, purpose: "explore" } as const
    this.record({ _tag: "DecisionFailed", agent, step, attempt, ...failed })
  }

  /** An attempt of a call starts; its hold is placed and stays. */
  startCall(agent: string, at: Call, more: Partial<Of<"CallStarted">> = {}): void {
    const attempt = more.attempt ?? 1
    const hold = { account: agent, id: holdOf(at, attempt) }
    if (more.child === undefined) {
      Result.getOrThrow(this.ledger.hold(hold, attempt > 1 ? "retry" : "explore", { toolCalls: 1 }))
    }
    this.record({ _tag: "CallStarted", agent, ...at, attempt, version: "1", effect: "read", ...more })
  }

  settleCall(agent: string, at: Call, attempt = 1): void {
    Result.getOrThrow(this.ledger.settle({ account: agent, id: holdOf(at, attempt) }, { toolCalls: 1 }))
  }

  endCall(agent: string, at: Call, more: Partial<Of<"CallEnded">> = {}): void {
    const ok = { outcome: "ok", retryable: false, ran: true, stateChanged: false } as const
    this.record({ _tag: "CallEnded", agent, ...at, ...ok, result: Content.fromJson("a result"), ...more })
  }

  /** A call from its start to its end. */
  call(agent: string, at: Call, start: Partial<Of<"CallStarted">> = {}, end: Partial<Of<"CallEnded">> = {}): void {
    this.startCall(agent, at, start)
    this.settleCall(agent, at, start.attempt)
    this.endCall(agent, at, end)
  }

  ask(agent: string, at: Call, more: Partial<Of<"ApprovalRequested">> = {}): void {
    const approval = `${agent}/${at.call}/${more.kind ?? "approval"}`
    const asked = { approval, kind: "approval", reason: "it cannot be undone", params: Content.fromJson({}) } as const
    this.record({ _tag: "ApprovalRequested", agent, ...at, ...asked, digest: Content.digest(approval), ...more })
  }

  answer(agent: string, at: Call, more: Partial<Of<"ApprovalDecided">> = {}): void {
    const approval = `${agent}/${at.call}/${more.kind ?? "approval"}`
    const said = { approval, kind: "approval", decision: "approved", by: "ann" } as const
    this.record({ _tag: "ApprovalDecided", agent, ...at, ...said, ...more })
  }

  verify(agent: string, step: number, accepted: boolean): void {
    const rules = [
      { name: "cites", passed: true, detail: "" },
      { name: "tests", passed: accepted, detail: "npm test" },
    ]
    const evidence = [{ command: "npm test", exitCode: accepted ? 0 : 1 }]
    const stateDigest = this.digestOf(agent)
    this.record({ _tag: "Verified", agent, step, accepted, rules, evidence, stateDigest })
  }

  stop(agent: string, step: number, reason: Of<"Stopping">["reason"], short: ReadonlyArray<string> = []): void {
    this.record({ _tag: "Stopping", agent, step, reason, short, detail: `because of ${reason}` })
  }

  /** Ends an agent and closes its account. */
  end(agent: string, reason: Of<"AgentEnded">["reason"], result: Of<"AgentEnded">["result"]): void {
    const { steps } = this.#folds.get(agent)!.state.control
    const { overran } = this.ledger.account(agent)
    this.record({ _tag: "AgentEnded", agent, reason, result, steps, overran, stateDigest: this.digestOf(agent) })
    Result.getOrThrow(this.ledger.close(agent))
  }

  endRun(reason: Of<"RunEnded">["reason"], result: Of<"RunEnded">["result"]): void {
    this.record({ _tag: "RunEnded", agent: "lead", reason, result })
  }

  digestOf(agent: string): string {
    return this.#folds.get(agent)?.digest ?? ""
  }
}

/** A call in a step. */
export interface Call {
  readonly step: number
  readonly call: string
  readonly tool: string
}

const holdOf = ({ call }: Call, attempt: number): string => (attempt === 1 ? call : `${call}/attempt-${attempt}`)

/** A call as a decision names it. */
export const wish = (call: string, tool: string, params: unknown = {}) => ({
  call,
  providerId: "",
  tool,
  params: Content.fromJson(params),
})

export const at = (step: number, number: number, tool: string): Call => ({
  step,
  call: `step-${step}/call-${number}`,
  tool,
})

/**
 * A sound run with everything in it: two children, one of which wraps up; failed decisions, repeated attempts, a result
 * that is taken from an earlier call, approvals, a rejected and an accepted answer, a bill above its hold, a refusal, and a
 * suspension.
 */
export const everything = (): ReadonlyArray<Recorded> => {
  const run = new Writer({ grant: { steps: 20, toolCalls: 20, money: 10_000_000 } })
  run.start("lead", { acceptance: "all(cites, tests)" })
  const [search, first, second] = [at(1, 1, "search"), at(1, 2, "scout"), at(1, 3, "scout")]
  const calls = [
    wish(search.call, "search", { query: "power loss" }),
    wish(first.call, "scout"),
    wish(second.call, "scout"),
  ]
  run.decide("lead", 1, { kind: "call", calls, used: { money: 300_000 }, text: Content.fromText("I split it.") })
  run.startCall("lead", search)
  const ask = (toolCalls: number) => ({ _tag: "Exactly", grant: { steps: 4, toolCalls, money: 1_000_000 } }) as const
  run.carve("lead", { id: "lead/scout-1", name: "scout", ask: ask(3), charge: { toolCalls: 1 } })
  run.carve("lead", {
    id: "lead/scout-2",
    name: "scout",
    ask: ask(1),
    charge: { toolCalls: 1 },
    reserves: { _tag: "Explicit", output: { steps: 1 } },
  })
  run.startCall("lead", first, { child: "lead/scout-1" })
  run.startCall("lead", second, { child: "lead/scout-2" })
  run.start("lead/scout-1")
  run.start("lead/scout-2", { untrusted: true })
  run.wait(400)
  run.record({ _tag: "CallFailed", agent: "lead", ...search, attempt: 1, code: "ETIMEDOUT", message: "no result" })
  run.settleCall("lead", search)
  run.startCall("lead", search, { attempt: 2 })
  run.settleCall("lead", search, 2)
  run.endCall("lead", search, { untrusted: true, resources: [{ path: "a.md", version: "1" }] })
  scouts(run)
  run.endCall("lead", first, { child: "lead/scout-1" })
  run.endCall("lead", second, { child: "lead/scout-2" })
  finishing(run)
  return run.events
}

const scouts = (run: Writer): void => {
  const [one, two] = ["lead/scout-1", "lead/scout-2"]
  const [write, again] = [at(1, 1, "write"), at(2, 1, "write")]
  run.decide(one, 1, { kind: "call", calls: [wish(write.call, "write")] })
  run.decide(two, 1, { kind: "invalid", why: "it is no JSON" })
  run.call(one, write, { effect: "write", key: "k" }, { stateChanged: true })
  run.decide(two, 2, { kind: "call", calls: [wish(again.call, "write")] })
  run.endCall(two, again, { ran: false, replayed: `${one} ${write.call}` })
  run.decide(one, 2, { kind: "finish", answer: Content.fromJson("found"), used: { money: 100_000 } })
  run.end(one, "completed", "full")
  // The bill of the third decision is above its hold, and above all the account has.
  run.decide(two, 3, { kind: "invalid", hold: { steps: 1, money: 900_000 }, used: { steps: 1, money: 1_200_000 } })
  run.ledger.hold({ account: two, id: "step-4/explore/attempt-1" }, "explore", { steps: 1 })
  run.stop(two, 4, "budget:steps", ["steps"])
  run.decide(two, 4, { kind: "finish", purpose: "wrap_up", answer: Content.fromJson("half") })
  run.end(two, "budget:steps", "partial")
}

const finishing = (run: Writer): void => {
  const [send, stay] = [at(2, 1, "send"), at(2, 2, "nowhere")]
  run.decide("lead", 2, { kind: "call", calls: [wish(send.call, "send"), wish(stay.call, "nowhere")] })
  run.ask("lead", send)
  run.endCall("lead", stay, { outcome: "error", code: "ENOTOOL", message: "there is no tool nowhere", ran: false })
  Result.getOrThrow(run.ledger.pause("lead", "approval"))
  run.record({ _tag: "RunSuspended", agent: "lead", waitsFor: [`lead/${send.call}/approval`] })
  run.wait(60_000)
  run.record({ _tag: "RunResumed", agent: "lead", epoch: 1, after: "suspension", bursar: "0.1.0" })
  run.answer("lead", send, { note: "go on" })
  Result.getOrThrow(run.ledger.resume("lead"))
  run.call("lead", send, { effect: "irreversible" }, { stateChanged: true })
  run.decisionFailed("lead", 3)
  run.decide("lead", 3, { kind: "finish", attempt: 2, answer: Content.fromJson("wrong") })
  run.pay("lead", "step-3/verify-1", { reserve: "verify", hold: { money: 1_000 } })
  run.verify("lead", 3, false)
  run.decide("lead", 4, { kind: "finish", answer: Content.fromJson("right") })
  run.verify("lead", 4, true)
  run.end("lead", "completed", "full")
  run.endRun("completed", "full")
}

/** Numbers the events anew, so that a change does not show in the numbers. */
export const renumbered = (events: ReadonlyArray<Recorded>): ReadonlyArray<Recorded> =>
  events.map((one, seq) => ({ ...one, seq }))

/** The place of the `nth` event of a kind, from 0, that fits. */
export const placeOf = <Tag extends Event["_tag"]>(
  events: ReadonlyArray<Recorded>,
  tag: Tag,
  fits: (event: EventOf<Tag>) => boolean = () => true,
): number => {
  const index = events.findIndex(({ event }) => event._tag === tag && fits(event as EventOf<Tag>))
  if (index < 0) throw new Error(`there is no ${tag} that fits`)
  return index
}

/** Without the event at a place. */
export const without = (events: ReadonlyArray<Recorded>, index: number): ReadonlyArray<Recorded> =>
  renumbered(events.toSpliced(index, 1))

/** With the event at a place there twice. */
export const twice = (events: ReadonlyArray<Recorded>, index: number): ReadonlyArray<Recorded> =>
  renumbered(events.toSpliced(index, 0, events[index]!))

/** With the event at a place changed. */
export const changed = <Tag extends Event["_tag"]>(
  events: ReadonlyArray<Recorded>,
  index: number,
  more: Partial<Of<Tag>>,
): ReadonlyArray<Recorded> =>
  events.with(index, { ...events[index]!, event: Object.assign({}, events[index]!.event, more) })

/** With the event at a place moved to another, as if it had happened there. */
export const moved = (events: ReadonlyArray<Recorded>, from: number, to: number): ReadonlyArray<Recorded> =>
  renumbered(events.toSpliced(from, 1).toSpliced(to, 0, events[from]!))

/** The lists that are not empty. */
export const listsOf = (events: ReadonlyArray<Recorded>): ReadonlyArray<string> => [
  ...new Set(Audit.defects(Audit.audit(events)).map(({ kind }) => kind)),
]

/** The sentences of one list. */
export const said = (events: ReadonlyArray<Recorded>, kind: Audit.Kind): string =>
  Audit.defects(Audit.audit(events))
    .flatMap((one) => (one.kind === kind ? [one.what] : []))
    .join("\n")

/** A small run that the given steps are put into, between the start of the agent and its end. */
export const run = (
  body: (run: Writer) => void,
  options: { readonly frame?: boolean } = {},
): ReadonlyArray<Recorded> => {
  const writer = new Writer({ grant: { steps: 20, toolCalls: 20, money: 10_000_000 }, ...options })
  body(writer)
  return writer.events
}

export const finish = (writer: Writer, step: number): void => {
  writer.decide("lead", step, { kind: "finish", answer: Content.fromJson("done") })
  writer.end("lead", "completed", "full")
  writer.endRun("completed", "full")
}
