import { assert, describe, it } from "@effect/vitest"
import type { Event, Recorded } from "../../src/event/Event.ts"
import { at, changed, everything, finish, moved, placeOf, run, said, twice, wish, without } from "./Written.ts"

const sound = everything()

const place = <Tag extends Event["_tag"]>(tag: Tag, fits?: Parameters<typeof placeOf<Tag>>[2]): number =>
  placeOf(sound, tag, fits)

/** The contract of ending, one breach after the other, with what the audit says about it. */
const endings: ReadonlyArray<readonly [name: string, events: ReadonlyArray<Recorded>, says: RegExp]> = [
  [
    "is completed by a call",
    run((one) => {
      one.start("lead")
      one.decide("lead", 1, { kind: "call", calls: [] })
      one.end("lead", "completed", "full")
      one.endRun("completed", "full")
    }),
    /last decision was no answer \(call\)/,
  ],
  [
    "is completed without a decision",
    run((one) => {
      one.start("lead")
      one.end("lead", "completed", "full")
      one.endRun("completed", "full")
    }),
    /without any decision/,
  ],
  [
    "is completed by a wrap-up",
    changed<"AgentEnded">(
      sound,
      place("AgentEnded", ({ agent }) => agent === "lead/scout-2"),
      { reason: "completed", result: "full" },
    ),
    /last decision was no answer \(wrap_up\)/,
  ],
  [
    "is completed with an answer that was rejected",
    run((one) => {
      one.start("lead")
      one.decide("lead", 1, { kind: "finish" })
      one.verify("lead", 1, false)
      one.end("lead", "completed", "full")
      one.endRun("completed", "full")
    }),
    /an answer that was not accepted/,
  ],
  [
    "is completed with an answer that was never checked",
    run((one) => {
      one.start("lead", { acceptance: "tests" })
      finish(one, 1)
    }),
    /never checked \(tests\)/,
  ],
  [
    "is completed with an earlier answer's check",
    run((one) => {
      one.start("lead", { acceptance: "tests" })
      one.decide("lead", 1, { kind: "finish" })
      one.verify("lead", 1, true)
      finish(one, 2)
    }),
    /never checked/,
  ],
  [
    "is completed although a rule failed",
    changed<"Verified">(
      sound,
      place("Verified", ({ accepted }) => accepted),
      {
        rules: [{ name: "tests", passed: false, detail: "" }],
      },
    ),
    /did not pass tests/,
  ],
  [
    "checks an answer that was not given",
    changed<"Verified">(sound, place("Verified"), { step: 2 }),
    /checks an answer of step 2, and there is none/,
  ],
  [
    "is completed with half an answer",
    changed<"AgentEnded">(sound, place("AgentEnded"), { result: "partial" }),
    /a result that is partial/,
  ],
  [
    "stops with a full answer",
    changed<"AgentEnded">(
      sound,
      place("AgentEnded", ({ reason }) => reason !== "completed"),
      { result: "full" },
    ),
    /with a full result/,
  ],
  ["stops without a cause", without(sound, place("Stopping")), /no cause was recorded/],
  [
    "stops for another reason than its first cause",
    changed<"Stopping">(sound, place("Stopping"), { reason: "deadline" }),
    /its first cause was deadline/,
  ],
  [
    "is completed although it had to stop",
    run((one) => {
      one.start("lead")
      one.decide("lead", 1, { kind: "finish" })
      one.stop("lead", 1, "cancelled")
      one.end("lead", "completed", "full")
      one.endRun("completed", "full")
    }),
    /although it had to stop: cancelled/,
  ],
  [
    "starts a call after it had to stop",
    run((one) => {
      const call = at(1, 1, "search")
      one.start("lead")
      one.decide("lead", 1, { kind: "call", calls: [wish(call.call, "search")] })
      one.stop("lead", 1, "cancelled")
      one.call("lead", call)
      one.end("lead", "cancelled", "none")
      one.endRun("cancelled", "none")
    }),
    /starts after lead had to stop/,
  ],
  [
    "explores after it had to stop",
    changed<"Decided">(
      sound,
      place("Decided", ({ purpose }) => purpose === "wrap_up"),
      { purpose: "explore" },
    ),
    /explores although it had to stop/,
  ],
  [
    "wraps up without a cause",
    changed<"Decided">(sound, place("Decided"), { purpose: "wrap_up" }),
    /wraps up without a cause|although it had to stop/,
  ],
  ["has to stop twice", twice(sound, place("Stopping")), /has to stop a second time/],
  [
    "decides before its start",
    moved(
      sound,
      place("AgentStarted", ({ agent }) => agent === "lead/scout-1"),
      place("Decided", ({ agent, step }) => agent === "lead/scout-1" && step === 2),
    ),
    /before lead\/scout-1 has started/,
  ],
  [
    "ends before its child",
    moved(
      sound,
      place("AgentEnded", ({ agent }) => agent === "lead/scout-2"),
      sound.length - 2,
    ),
    /lead ends before its child lead\/scout-2/,
  ],
  [
    "never ends",
    without(
      sound,
      place("AgentEnded", ({ agent }) => agent === "lead/scout-1"),
    ),
    /lead\/scout-1 started and never ended/,
  ],
  ["ends twice", twice(sound, place("AgentEnded")), /ends a second time/],
  ["starts twice", twice(sound, place("AgentStarted")), /starts a second time/],
  ["acts and never starts", without(sound, place("AgentStarted")), /acts and never started/],
  [
    "decides after its end",
    moved(
      sound,
      place("Decided", ({ agent, step }) => agent === "lead" && step === 4),
      sound.length - 2,
    ),
    /Decided after lead has ended/,
  ],
]

describe("an audit finds that an agent", () => {
  it.each(endings)("%s", (_, events, says) => {
    assert.match(said(events, "completion"), says)
  })
})

describe("an audit finds that a run", () => {
  it.each<readonly [string, ReadonlyArray<Recorded>, RegExp]>([
    ["ends twice", twice(sound, sound.length - 1), /ends a second time/],
    ["goes on after its end", moved(sound, 70, sound.length - 1), /goes on up to event/],
    [
      "ends otherwise than its root",
      changed<"RunEnded">(sound, sound.length - 1, { reason: "deadline" }),
      /ended completed \(full\), and the run deadline/,
    ],
    [
      "ends as that of another agent",
      changed<"RunEnded">(sound, sound.length - 1, { agent: "lead/scout-1" }),
      /the run of lead ends as that of/,
    ],
    ["never started", without(sound, 0), /never started/],
    ["starts twice", twice(sound, 0), /starts a second time/],
    ["started late", moved(sound, 0, 1), /before the run started/],
    ["works while it is suspended", without(sound, place("RunResumed")), /CallStarted while the run is suspended/],
    [
      "is suspended as that of another agent",
      changed<"RunSuspended">(sound, place("RunSuspended"), { agent: "lead/scout-1" }),
      /RunSuspended of lead\/scout-1, and the run is that of lead/,
    ],
    [
      "is taken up as that of another agent",
      changed<"RunResumed">(sound, place("RunResumed"), { agent: "other" }),
      /RunResumed of other, and the run is that of lead/,
    ],
    [
      "waits for a question that nobody asked",
      changed<"RunSuspended">(sound, place("RunSuspended"), { waitsFor: ["other"] }),
      /waits for other, which is no open question/,
    ],
    [
      "waits for a question that was answered",
      moved(sound, place("RunSuspended"), place("ApprovalDecided")),
      /waits for lead\/step-2\/call-1\/approval, which is no open question/,
    ],
    [
      "goes on without having been suspended or paused",
      run((one) => {
        one.start("lead")
        one.record({ _tag: "RunResumed", agent: "lead", epoch: 1, after: "suspension", bursar: "0.1.0" })
        finish(one, 1)
      }),
      /a suspension that never was/,
    ],
    ["lost its first line and is still open", without(sound.slice(0, 40), 0), /root of a run that never started/],
  ])("%s", (_, events, says) => {
    assert.match(said(events, "completion"), says)
  })
})

describe("an accepted answer", () => {
  it("may have failed a rule where one of several is enough", () => {
    const verified = changed<"Verified">(
      sound,
      place("Verified", ({ accepted }) => accepted),
      {
        rules: [
          { name: "cites", passed: false, detail: "" },
          { name: "tests", passed: true, detail: "" },
        ],
      },
    )
    const start = place("AgentStarted", ({ agent }) => agent === "lead")
    assert.match(said(verified, "completion"), /did not pass cites/)
    const either = changed<"AgentStarted">(verified, start, { acceptance: "any(cites, tests)" })
    assert.strictEqual(said(either, "completion"), "")
  })
})
