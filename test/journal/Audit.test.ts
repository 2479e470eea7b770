import { assert, describe, it } from "@effect/vitest"
import * as Content from "../../src/event/Content.ts"
import type { Event, Recorded } from "../../src/event/Event.ts"
import * as Audit from "../../src/journal/Audit.ts"
import {
  changed,
  everything,
  finish,
  listsOf,
  moved,
  placeOf,
  renumbered,
  run,
  twice,
  wish,
  without,
} from "./Written.ts"

const sound = everything()

const place = <Tag extends Event["_tag"]>(tag: Tag, fits?: Parameters<typeof placeOf<Tag>>[2]): number =>
  placeOf(sound, tag, fits)

describe("an audit of a sound run", () => {
  it("finds nothing, and counts what happened", () => {
    const audit = Audit.audit(sound)
    assert.deepStrictEqual(Audit.defects(audit), [])
    assert.isTrue(audit.isSound)
    assert.strictEqual(audit.state, "ended")
    assert.deepStrictEqual(audit.counts, {
      events: 82,
      agents: 3,
      children: 2,
      steps: 10,
      decisions: { call: 4, finish: 4, invalid: 2, failed: 1 },
      calls: 7,
      results: { ok: 6, error: 1 },
      attempts: 6,
      approvals: { requested: 1, decided: 1 },
      verifications: { accepted: 1, rejected: 1 },
      suspensions: 1,
      resumes: 1,
    })
  })

  it("is the same when the texts were dropped", () => {
    const bare = JSON.parse(JSON.stringify(sound), (key, value: unknown) =>
      key === "text" && typeof value === "string" ? undefined : value,
    ) as ReadonlyArray<Recorded>
    assert.notInclude(JSON.stringify(bare), "the task of lead")
    assert.deepStrictEqual(Audit.audit(bare), Audit.audit(sound))
  })

  it("has nothing to say about nothing", () => {
    const audit = Audit.audit([])
    assert.deepStrictEqual([audit.isSound, audit.state, audit.run], [true, "open", undefined])
  })

  it("finds nothing as far as the run has come, wherever it was cut off", () => {
    for (let length = 0; length < sound.length; length++) {
      const audit = Audit.audit(sound.slice(0, length))
      assert.deepStrictEqual(Audit.defects(audit), [], `${length} events`)
      const tags = sound.slice(0, length).map(({ event }) => event._tag)
      const waits = tags.includes("RunSuspended") && !tags.includes("RunResumed")
      assert.strictEqual(audit.state, waits ? "suspended" : "open", `${length} events`)
    }
  })

  it("takes a budget around a plain Effect for a run that is over when its root is closed", () => {
    const events = run(
      (writer) => {
        writer.pay("lead", "spend-1", { hold: { money: 5 } })
        writer.ledger.close("lead")
      },
      { frame: false },
    )
    const audit = Audit.audit(events)
    assert.deepStrictEqual([audit.isSound, audit.state], [true, "ended"])
    assert.strictEqual(Audit.audit(events.slice(0, -1)).state, "open")
  })

  it("lets a run be refused or cancelled before its root has started", () => {
    const refused: ReadonlyArray<Event> = [
      { _tag: "RunStarted", agent: "lead", task: Content.fromText(""), bursar: "0.1.0" },
      { _tag: "RunEnded", agent: "lead", reason: "refused_at_open", result: "none" },
    ]
    const events = refused.map((event, seq) => ({ seq, atMillis: 0, run: "r", event }))
    assert.isTrue(Audit.audit(events).isSound)
    assert.deepStrictEqual(listsOf(changed<"RunEnded">(events, 1, { reason: "deadline" })), ["completion"])
  })
})

/** The sound run, broken in one place, and the lists that are not empty then. */
const broken: ReadonlyArray<readonly [name: string, events: ReadonlyArray<Recorded>, lists: ReadonlyArray<string>]> = [
  ["a number is left out", sound.map((one) => (one.seq < 40 ? one : { ...one, seq: one.seq + 1 })), ["gaps"]],
  ["two numbers are exchanged", sound.with(3, { ...sound[3]!, seq: 4 }).with(4, { ...sound[4]!, seq: 3 }), ["gaps"]],
  [
    "a process that took the run up is left out",
    run((one) => {
      const resumed = { _tag: "RunResumed", agent: "lead", after: "crash", bursar: "0.1.0" } as const
      one.start("lead")
      one.record({ ...resumed, epoch: 1 })
      one.record({ ...resumed, epoch: 3 })
      finish(one, 1)
    }),
    ["gaps"],
  ],
  ["an event is of another run", sound.with(9, { ...sound[9]!, run: "other" }), ["gaps"]],
  [
    "a decision was made at the second attempt at once",
    changed<"Decided">(sound, place("Decided"), { attempt: 2 }),
    ["gaps"],
  ],
  ["a failed attempt at a decision is missing", without(sound, place("DecisionFailed")), ["gaps"]],
  ["an attempt of a call starts after none", without(sound, place("CallFailed")), ["gaps"]],
  [
    "the attempts of a call begin with another number",
    changed<"CallStarted">(
      sound,
      placeOf(sound, "CallStarted", ({ tool }) => tool === "send"),
      { attempt: 0 },
    ),
    ["gaps"],
  ],
  [
    "a call is decided twice",
    changed<"Decided">(
      sound,
      place("Decided", ({ agent, step }) => agent === "lead" && step === 3),
      {
        calls: [wish("step-2/call-1", "send")],
      },
    ),
    ["duplicateCalls", "digests"],
  ],
  [
    "an attempt is started twice",
    twice(
      sound,
      place("CallStarted", ({ tool }) => tool === "write"),
    ),
    ["duplicateCalls"],
  ],
  ["a result is there twice", twice(sound, place("CallEnded")), ["duplicateResults", "digests"]],
  ["an attempt fails twice", twice(sound, place("CallFailed")), ["duplicateResults"]],
  [
    "a result is missing",
    without(
      sound,
      place("CallEnded", ({ tool }) => tool === "nowhere"),
    ),
    ["missingResults", "digests"],
  ],
  [
    "a decision is missing",
    without(
      sound,
      place("Decided", ({ agent, step }) => agent === "lead/scout-2" && step === 2),
    ),
    ["orphanResults", "digests"],
  ],
  [
    "a result is of another tool",
    changed<"CallEnded">(
      sound,
      place("CallEnded", ({ tool }) => tool === "nowhere"),
      { tool: "other" },
    ),
    ["orphanResults"],
  ],
  [
    "a result is of another child",
    changed<"CallStarted">(
      sound,
      placeOf(sound, "CallStarted", ({ child }) => child === "lead/scout-1"),
      { child: "lead/scout-2" },
    ),
    ["orphanResults"],
  ],
  [
    "a call runs in another step",
    changed<"CallStarted">(
      sound,
      place("CallStarted", ({ tool }) => tool === "send"),
      { step: 3 },
    ),
    ["orphanResults"],
  ],
  [
    "a result comes before its decision",
    moved(
      sound,
      place("CallEnded", ({ tool }) => tool === "nowhere"),
      place("Decided", ({ agent, step }) => agent === "lead" && step === 2),
    ),
    ["earlyResults", "digests"],
  ],
  [
    "a call ran without a start",
    without(
      sound,
      place("CallStarted", ({ tool }) => tool === "write"),
    ),
    ["earlyResults"],
  ],
  [
    "a call has a result without having run",
    run((one) => {
      one.start("lead")
      one.decide("lead", 1, { kind: "call", calls: [wish("step-1/call-1", "search")] })
      one.endCall("lead", { step: 1, call: "step-1/call-1", tool: "search" }, { ran: false })
      finish(one, 2)
    }),
    ["earlyResults"],
  ],
  [
    "a hold is never resolved",
    without(
      sound,
      place("Settled", ({ account }) => account === "lead"),
    ),
    ["unmatchedHolds", "spend"],
  ],
  ["a hold is resolved without having been placed", without(sound, place("Held")), ["unmatchedHolds", "spend"]],
  ["a hold is resolved twice", twice(sound, place("Settled")), ["unmatchedHolds", "spend"]],
  ["a hold is placed twice", twice(sound, place("Held")), ["unmatchedHolds", "spend"]],
  [
    "an account stays open",
    without(
      sound,
      place("Closed", ({ account }) => account === "lead"),
    ),
    ["openAccounts"],
  ],
  [
    "an account closes before its child",
    without(
      sound,
      place("Closed", ({ account }) => account === "lead/scout-1"),
    ),
    ["openAccounts", "spend"],
  ],
  [
    "an account closes before its agent has ended",
    moved(
      sound,
      placeOf(sound, "Closed", ({ account }) => account === "lead"),
      placeOf(sound, "AgentEnded", ({ agent }) => agent === "lead"),
    ),
    ["openAccounts"],
  ],
  [
    "there are two roots",
    renumbered(sound.toSpliced(2, 0, changed<"Opened">(sound, 1, { account: "other", path: "other" })[1]!)),
    ["openAccounts", "spend"],
  ],
  ["an account is closed twice", twice(sound, place("Closed")), ["openAccounts", "spend"]],
  [
    "an account was never opened",
    without(
      sound,
      place("Carved", ({ account }) => account === "lead/scout-1"),
    ),
    ["openAccounts", "spend"],
  ],
  [
    "a call starts a child that is not its agent's",
    changed<"CallStarted">(
      sound,
      placeOf(sound, "CallStarted", ({ child }) => child !== undefined),
      { child: "lead" },
    ),
    ["orphanResults", "openAccounts"],
  ],
  [
    "a bill is another one",
    changed<"Settled">(sound, place("Settled"), { actual: { steps: 1, money: 299_999 } }),
    ["spend"],
  ],
  ["an account closes with another sum", changed<"Closed">(sound, place("Closed"), { own: { steps: 1 } }), ["spend"]],
  [
    "an agent hides its over-run",
    changed<"AgentEnded">(
      sound,
      place("AgentEnded", ({ agent }) => agent === "lead/scout-2"),
      { overran: false },
    ),
    ["spend"],
  ],
  [
    "a state is another one",
    changed<"AgentEnded">(sound, place("AgentEnded"), { stateDigest: Content.digest("other") }),
    ["digests"],
  ],
  ["an agent counts other steps", changed<"AgentEnded">(sound, place("AgentEnded"), { steps: 1 }), ["digests"]],
  [
    "a text was exchanged",
    changed<"AgentStarted">(sound, place("AgentStarted"), {
      task: { ...Content.fromText("the task of lead"), text: "another task" },
    }),
    ["digests"],
  ],
  [
    "a text has another size",
    changed<"AgentStarted">(sound, place("AgentStarted"), { task: { ...Content.fromText("the task"), bytes: 9 } }),
    ["digests"],
  ],
  [
    "an effect happens twice under its key",
    changed<"CallStarted">(
      sound,
      place("CallStarted", ({ tool }) => tool === "send"),
      {
        effect: "write",
        key: "k",
      },
    ),
    ["effects"],
  ],
  [
    "a result is taken from a call without one",
    changed<"CallEnded">(
      sound,
      place("CallEnded", ({ replayed }) => replayed !== undefined),
      {
        replayed: "lead step-9/call-1",
      },
    ),
    ["effects"],
  ],
]

describe("an audit finds", () => {
  it.each(broken)("that %s", (_, events, lists) => {
    assert.deepStrictEqual(listsOf(events), lists)
    for (const { what, seq } of Audit.defects(Audit.audit(events))) {
      assert.isAbove(what.length, 10)
      assert.isNumber(seq)
    }
  })

  it("that something is missing, whichever line it is, or that the run is not over any more", () => {
    sound.forEach((_, index) => {
      const audit = Audit.audit(sound.toSpliced(index, 1))
      if (index === sound.length - 1) assert.strictEqual(audit.state, "open")
      else assert.isAbove(audit.gaps.length, 0, `event ${index}`)
    })
  })

  it("the same where somebody numbered the rest anew, but for what nothing else depends on", () => {
    const unseen = sound.flatMap(({ event }, index) => (Audit.audit(without(sound, index)).isSound ? [event._tag] : []))
    // A refusal changes nothing; that the run stood still is in its books as well; without its end it is open.
    assert.deepStrictEqual(unseen, ["Refused", "RunSuspended", "RunEnded"])
  })

  it("that something is there twice, whichever line it is, numbered anew or not", () => {
    sound.forEach((one, index) => {
      assert.isAbove(Audit.audit(sound.toSpliced(index, 0, one)).gaps.length, 0, `event ${index}`)
      assert.isFalse(Audit.audit(twice(sound, index)).isSound, `event ${index}, numbered anew`)
    })
  })

  it("that two neighbours of one agent were exchanged, wherever it matters", () => {
    // A refusal changes nothing; a failed attempt stands before the retry, wherever; an entry and an event are of two kinds.
    const indifferent = sound.slice(0, -1).flatMap((one, index) => {
      const exchanged = renumbered(sound.with(index, sound[index + 1]!).with(index + 1, one))
      return Audit.audit(exchanged).isSound ? [`${one.event._tag} ${sound[index + 1]!.event._tag}`] : []
    })
    for (const pair of ["Decided CallStarted", "AgentEnded Closed", "Held Settled", "Decided Verified"]) {
      assert.notInclude(indifferent, pair)
    }
  })

  it("nothing beyond what is broken: one defect has its event, agent and call", () => {
    const index = place("CallEnded", ({ tool }) => tool === "nowhere")
    const [defect, ...rest] = Audit.audit(without(sound, index)).missingResults
    assert.deepStrictEqual(rest, [])
    assert.deepStrictEqual(defect, {
      seq: place("Decided", ({ agent, step }) => agent === "lead" && step === 2),
      agent: "lead",
      call: "step-2/call-2",
      what: "step-2/call-2 (nowhere) was decided and never had a result",
    })
  })
})
