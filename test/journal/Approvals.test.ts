import { assert, describe, it } from "@effect/vitest"
import type { Event, Recorded } from "../../src/event/Event.ts"
import { at, changed, everything, finish, listsOf, placeOf, run, said, wish, type Writer } from "./Written.ts"

const sound = everything()

const place = <Tag extends Event["_tag"]>(tag: Tag, fits?: Parameters<typeof placeOf<Tag>>[2]): number =>
  placeOf(sound, tag, fits)

/** One irreversible call, with what comes before and after. */
const sending = (options: {
  readonly untrusted?: boolean
  readonly before?: (run: Writer, call: ReturnType<typeof at>) => void
  readonly after?: (run: Writer, call: ReturnType<typeof at>) => void
}): ReadonlyArray<Recorded> =>
  run((one) => {
    const [search, send] = [at(1, 1, "search"), at(2, 1, "send")]
    one.start("lead")
    one.decide("lead", 1, { kind: "call", calls: [wish(search.call, "search")] })
    one.call("lead", search, {}, options.untrusted === false ? {} : { untrusted: true })
    one.decide("lead", 2, { kind: "call", calls: [wish(send.call, "send")] })
    options.before?.(one, send)
    one.startCall("lead", send, { effect: "irreversible" })
    one.settleCall("lead", send)
    options.after?.(one, send)
    one.endCall("lead", send, { stateChanged: true })
    finish(one, 3)
  })

const asked = (decision: "approved" | "denied") => (one: Writer, call: ReturnType<typeof at>) => {
  one.ask("lead", call)
  one.answer("lead", call, { decision })
}

const again = (one: Writer, call: ReturnType<typeof at>): void => {
  one.record({ _tag: "CallFailed", agent: "lead", ...call, attempt: 1, code: "ETIMEDOUT", message: "no result" })
  one.startCall("lead", call, { effect: "irreversible", attempt: 2 })
  one.settleCall("lead", call, 2)
}

describe("what needs a person", () => {
  it("is sound where a person agreed, or where nothing came from outside", () => {
    assert.deepStrictEqual(listsOf(sending({ before: asked("approved") })), [])
    assert.deepStrictEqual(listsOf(sending({ untrusted: false })), [])
    const unclear = (one: Writer, call: ReturnType<typeof at>) => {
      one.ask("lead", call, { kind: "uncertain" })
      one.answer("lead", call, { kind: "uncertain", decision: "did_not_happen" })
      again(one, call)
    }
    assert.deepStrictEqual(listsOf(sending({ untrusted: false, after: unclear })), [])
  })

  it.each<readonly [string, ReadonlyArray<Recorded>, RegExp]>([
    ["starts unapproved after an untrusted result", sending({}), /unapproved after an untrusted result/],
    ["starts although it was denied", sending({ before: asked("denied") }), /was answered with denied/],
    [
      "starts although the question is open",
      sending({ before: (one, call) => one.ask("lead", call) }),
      /is still open/,
    ],
    [
      "is approved by an answer that nobody asked for",
      sending({ before: (one, call) => one.answer("lead", call) }),
      /is decided, and nobody asked/,
    ],
    [
      "is approved twice",
      sending({
        before: (one, call) => {
          asked("approved")(one, call)
          one.answer("lead", call)
        },
      }),
      /is decided a second time/,
    ],
    [
      "is asked for twice under one id",
      sending({
        before: (one, call) => {
          one.ask("lead", call)
          asked("approved")(one, call)
        },
      }),
      /is asked for a second time/,
    ],
    [
      "is approved by the answer about another call",
      sending({
        before: (one, call) => {
          one.ask("lead", at(1, 1, "search"), { approval: "a" })
          one.answer("lead", call, { approval: "a" })
        },
      }),
      /is decided for another call/,
    ],
    [
      "is approved by an answer to another kind of question",
      sending({
        before: (one, call) => {
          one.ask("lead", call)
          one.answer("lead", call, { decision: "happened" })
        },
      }),
      /is about approval, and the answer is happened/,
    ],
  ])("%s", (_, events, says) => {
    assert.match(said(events, "completion"), says)
  })

  it("is asked of a child too, whose task comes from one who has read something from outside", () => {
    const child = (approved: boolean) => {
      const index = place("CallStarted", ({ tool }) => tool === "write")
      const irreversible = changed<"CallStarted">(sound, index, { effect: "irreversible" })
      const start = place("AgentStarted", ({ agent }) => agent === "lead/scout-1")
      return approved ? irreversible : changed<"AgentStarted">(irreversible, start, { untrusted: true })
    }
    assert.deepStrictEqual(listsOf(child(true)), [])
    assert.match(said(child(false), "completion"), /step-1\/call-1 \(write\) is irreversible/)
  })

  it("does not happen twice when it cannot be undone", () => {
    const events = sending({ untrusted: false, after: again })
    assert.deepStrictEqual(listsOf(events), ["effects"])
    assert.match(said(events, "effects"), /is irreversible and was started before/)
  })
})
