import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { Agent, type Budget, type Contract, type Event, Policy, Proposal } from "../../src/index.ts"
import { all, results, run, stopped } from "../support/journalled.ts"
import { attempts, completed, type Handle, kit, lawful, resumed, rowOf, use } from "../support/driven.ts"
import { calls } from "../support/scripts.ts"

/** Plays its turns, the last one for ever, and answers when it is asked to wrap up. */
const playing = (...turns: ReadonlyArray<Proposal.Proposal>): Policy.Policy =>
  Policy.make((view) =>
    view.purpose === "wrap_up" ? Proposal.finish("so far") : turns[Math.min(view.turns.length, turns.length - 1)]!,
  )

/** Plays its turns over and over. */
const cycling = (...turns: ReadonlyArray<Proposal.Proposal>): Policy.Policy =>
  Policy.make((view) =>
    view.purpose === "wrap_up" ? Proposal.finish("so far") : turns[view.turns.length % turns.length]!,
  )

const echo: Handle = ({ key }) => Effect.succeed(key)

const tools = (over: { readonly [name: string]: readonly [Contract.Options, Handle] } = {}) =>
  kit({
    read: [{ effect: "read" }, echo],
    write: [{ effect: "write" }, echo],
    poll: [{ effect: "read", polling: true }, echo],
    seek: [{ effect: "read", volatile: ["note"] }, echo],
    ...over,
  })

const lives = (
  policy: Policy.Policy,
  settings: Partial<Agent.Settings>,
  options: { readonly budget?: Budget.Input; readonly kit?: ReturnType<typeof kit> } = {},
) =>
  Effect.gen(function* () {
    const { toolkit, handlers } = options.kit ?? tools()
    const agent = Agent.make("a", { policy, toolkit, settings, reserves: { output: { steps: 1 } } })
    const ran = yield* run(agent, options.budget ?? { steps: 20, toolCalls: 99 }).pipe(Effect.provide(handlers))
    lawful(ran.outcome, ran.events)
    return ran
  })

const off = { noProgress: undefined }

/** The reason of the end, the steps of exploring, and how many calls ran. */
const endOf = ({
  outcome,
  events,
}: {
  readonly outcome: Agent.Outcome<string>
  readonly events: ReadonlyArray<Event.Recorded>
}) => [
  outcome._tag === "Stopped" ? outcome.reason : outcome._tag,
  all(events, "Decided").filter((one) => one.purpose === "explore").length,
  attempts(events).length,
]

describe("a repeated action", () => {
  const third = { ...off, repeatedAction: 3 }

  it.effect("is refused at the third time, before it runs: two executions, and a last answer", () =>
    Effect.gen(function* () {
      const ran = yield* lives(playing(calls(use("read"))), third)
      assert.deepStrictEqual(endOf(ran), ["repeated_action", 3, 2])
      assert.deepStrictEqual(results(ran.events), ["ok", "ok", "EREPEATED"])
      assert.deepInclude(all(ran.events, "CallEnded")[2], { ran: false, retryable: false })
      const { partial, result } = stopped(ran.outcome)
      assert.deepStrictEqual(
        [partial, result, all(ran.events, "Decided").at(-1)!.purpose],
        ["so far", "partial", "wrap_up"],
      )
      assert.deepStrictEqual([rowOf(ran.outcome).own.toolCalls, rowOf(ran.outcome).own.steps], [2, 4])
    }),
  )

  it.effect("is off unless asked for", () =>
    Effect.gen(function* () {
      const ran = yield* lives(playing(calls(use("read"))), off, { budget: { steps: 9, toolCalls: 99 } })
      assert.deepStrictEqual(endOf(ran), ["budget:steps", 8, 8])
    }),
  )

  it.effect("counts anew after a write: the world is another one", () =>
    Effect.gen(function* () {
      const read = calls(use("read"))
      const write = calls(use("write"))
      const ran = yield* lives(playing(read, read, write, read, read, write, Proposal.finish("done")), third)
      assert.deepStrictEqual(endOf(ran), ["Completed", 7, 6])
      const without = yield* lives(playing(read, calls(use("read", "other")), read, read), third)
      assert.deepStrictEqual(endOf(without), ["repeated_action", 4, 3])
    }),
  )

  it.effect("is the same whatever the order of its arguments, and without those that mean nothing", () =>
    Effect.gen(function* () {
      const one = calls({ tool: "read", params: { key: "k", note: "n" } })
      const other = calls({ tool: "read", params: { note: "n", key: "k" } })
      assert.deepStrictEqual(endOf(yield* lives(playing(one, other, one), third)), ["repeated_action", 3, 2])
      const seek = (note: string) => calls({ tool: "seek", params: { key: "k", note } })
      const volatile = yield* lives(playing(seek("1"), seek("2"), seek("3")), third)
      assert.deepStrictEqual(endOf(volatile), ["repeated_action", 3, 2])
      const read = (note: string) => calls({ tool: "read", params: { key: "k", note } })
      const meant = yield* lives(playing(read("1"), read("2"), read("3"), Proposal.finish("x")), third)
      assert.deepStrictEqual(endOf(meant), ["Completed", 4, 3])
    }),
  )

  it.effect("is the whole reply: the same call among others is another action", () =>
    Effect.gen(function* () {
      const other = (key: string) => calls(use("read"), use("read", key))
      const ran = yield* lives(playing(other("1"), other("2"), other("3"), Proposal.finish("x")), third)
      assert.deepStrictEqual(endOf(ran), ["Completed", 4, 6])
    }),
  )

  it.effect("is none for a tool that polls", () =>
    Effect.gen(function* () {
      const poll = calls(use("poll"))
      const ran = yield* lives(playing(poll, poll, poll, poll, poll, Proposal.finish("x")), third)
      assert.deepStrictEqual(endOf(ran), ["Completed", 6, 5])
    }),
  )

  it.effect("is counted on after a resume", () =>
    Effect.gen(function* () {
      const { toolkit, handlers } = tools()
      const agent = Agent.make("a", { policy: playing(calls(use("read"))), toolkit, settings: third })
      const { events } = yield* run(agent, { steps: 20 }).pipe(Effect.provide(handlers))
      const ends = events.flatMap(({ event }, index) => (event._tag === "CallEnded" ? [index + 1] : []))
      for (const end of ends.slice(0, 2)) {
        const journal = events.slice(0, end)
        const outcome = yield* resumed(agent, journal).pipe(Effect.provide(handlers))
        lawful(outcome, journal)
        assert.deepStrictEqual(endOf({ outcome, events: journal }), ["repeated_action", 3, 2])
      }
    }),
  )
})

describe("no progress", () => {
  it.effect("is seen after four equal steps, and nothing more is tried", () =>
    Effect.gen(function* () {
      const ran = yield* lives(playing(calls(use("read"))), {})
      assert.deepStrictEqual(endOf(ran), ["no_progress", 4, 4])
      assert.deepStrictEqual([stopped(ran.outcome).partial, rowOf(ran.outcome).own.steps], ["so far", 5])
    }),
  )

  it.effect("turned off leaves it to the budget: four steps, budget:steps", () =>
    Effect.gen(function* () {
      const ran = yield* lives(playing(calls(use("read"))), off, { budget: { steps: 5, toolCalls: 99 } })
      assert.deepStrictEqual(endOf(ran), ["budget:steps", 4, 4])
    }),
  )

  it.effect("is seen in a circle of two and of three steps, after four rounds, and not in one of four", () =>
    Effect.gen(function* () {
      const [a, b, c, d] = ["a", "b", "c", "d"].map((key) => calls(use("read", key))) as [
        Proposal.Proposal,
        Proposal.Proposal,
        Proposal.Proposal,
        Proposal.Proposal,
      ]
      assert.deepStrictEqual(endOf(yield* lives(cycling(a, b), {})), ["no_progress", 8, 8])
      assert.deepStrictEqual(endOf(yield* lives(cycling(a, b, c), {})), ["no_progress", 12, 12])
      assert.deepStrictEqual(endOf(yield* lives(cycling(a, b, c, d), {})), ["budget:steps", 19, 19])
    }),
  )

  it.effect("is seen wherever the circle begins", () =>
    Effect.gen(function* () {
      const [a, b] = [calls(use("read", "a")), calls(use("read", "b"))]
      const ran = yield* lives(playing(b, b, a, b, a, b, a, b, a, b, a, b), {})
      // The last eight of nine: b a b a b a b a.
      assert.deepStrictEqual(endOf(ran), ["no_progress", 9, 9])
    }),
  )

  it.effect("is not one where the results differ, or a poll is among the steps", () =>
    Effect.gen(function* () {
      let count = 0
      const differs = kit({ read: [{ effect: "read" }, () => Effect.sync(() => `${count++}`)] })
      assert.deepStrictEqual(endOf(yield* lives(playing(calls(use("read"))), {}, { kit: differs })), [
        "budget:steps",
        19,
        19,
      ])
      assert.deepStrictEqual(endOf(yield* lives(playing(calls(use("poll"))), {})), ["budget:steps", 19, 19])
    }),
  )

  it.effect("is one with equal failures too, and with arguments that only seem to differ", () =>
    Effect.gen(function* () {
      const seek = Policy.make((view) =>
        view.purpose === "wrap_up"
          ? Proposal.finish("so far")
          : calls({ tool: "seek", params: { note: `${view.step}`, key: "k" } }),
      )
      assert.deepStrictEqual(endOf(yield* lives(seek, {})), ["no_progress", 4, 4])
      const write = kit({ write: [{ effect: "write", stateChanged: () => false }, echo] })
      assert.deepStrictEqual(endOf(yield* lives(playing(calls(use("write"))), {}, { kit: write })), [
        "no_progress",
        4,
        4,
      ])
    }),
  )

  it.effect("is not one while writes change the world", () =>
    Effect.gen(function* () {
      const ran = yield* lives(playing(calls(use("write"))), {})
      assert.deepStrictEqual(endOf(ran), ["budget:steps", 19, 19])
    }),
  )

  it.effect("is not one where what was read has another version between equal reads", () =>
    Effect.gen(function* () {
      let version = 0
      const versioned = (moves: boolean) =>
        kit({
          read: [
            { effect: "read", resources: ({ key }) => [{ path: key, version: `${moves ? version++ : version}` }] },
            () => Effect.succeed("the same text"),
          ],
        })
      const moving = yield* lives(playing(calls(use("read"))), {}, { kit: versioned(true) })
      assert.deepStrictEqual(endOf(moving), ["budget:steps", 19, 19])
      const still = yield* lives(playing(calls(use("read"))), {}, { kit: versioned(false) })
      assert.deepStrictEqual(endOf(still), ["no_progress", 4, 4])
    }),
  )

  it.effect("is one where a write leaves everything as it was: the same version of the same thing", () =>
    Effect.gen(function* () {
      const same = kit({
        write: [{ effect: "write", resources: ({ key }) => [{ path: key, version: "1" }] }, echo],
      })
      const ran = yield* lives(playing(calls(use("write"))), {}, { kit: same })
      // The first of them made the version known.
      assert.deepStrictEqual(endOf(ran), ["no_progress", 4, 4])
    }),
  )

  it.effect("is what the user's measure says: no step ahead for so long", () =>
    Effect.gen(function* () {
      const measure = (at: { readonly session: { readonly turns: ReadonlyArray<unknown> } }) =>
        Math.min(at.session.turns.length, 3)
      const settings = { noProgress: { repeat: 99, period: 1, measure, patience: 5 } }
      const newer = Policy.make((view) =>
        view.purpose === "wrap_up" ? Proposal.finish("so far") : calls(use("read", `${view.step}`)),
      )
      const ran = yield* lives(newer, settings)
      // It last changed in step 3; the fifth step after it is the eighth.
      assert.deepStrictEqual(endOf(ran), ["no_progress", 8, 8])
      assert.include(stopped(ran.outcome).detail, "5 steps")
    }),
  )

  it.effect("is none where the measure moves, however equal the steps are", () =>
    Effect.gen(function* () {
      const settings = {
        noProgress: {
          repeat: 4,
          period: 3,
          measure: (at: { readonly control: { readonly steps: number } }) => at.control.steps,
        },
      }
      const ran = yield* lives(playing(calls(use("read"))), settings)
      assert.deepStrictEqual(endOf(ran), ["budget:steps", 19, 19])
    }),
  )

  it.effect("is counted on after a resume", () =>
    Effect.gen(function* () {
      const { toolkit, handlers } = tools()
      const agent = Agent.make("a", { policy: playing(calls(use("read"))), toolkit })
      const { events } = yield* run(agent, { steps: 20 }).pipe(Effect.provide(handlers))
      const ends = events.flatMap(({ event }, index) => (event._tag === "CallEnded" ? [index + 1] : []))
      for (const end of ends) {
        const journal = events.slice(0, end)
        const outcome = yield* resumed(agent, journal).pipe(Effect.provide(handlers))
        lawful(outcome, journal)
        assert.deepStrictEqual(endOf({ outcome, events: journal }), ["no_progress", 4, 4], `after event ${end - 1}`)
      }
    }),
  )

  it.effect(
    "is looked at before an answer is asked for, not after: four equal steps and then an answer are too late",
    () =>
      Effect.gen(function* () {
        const read = calls(use("read"))
        const three = yield* lives(playing(read, read, read, Proposal.finish("done")), {})
        assert.strictEqual(completed(three.outcome).answer, "done")
        const four = yield* lives(playing(read, read, read, read, Proposal.finish("done")), {})
        assert.strictEqual(stopped(four.outcome).reason, "no_progress")
      }),
  )
})
