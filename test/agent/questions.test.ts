import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { TestClock } from "effect/testing"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { Agent, Audit, Budget, Contract, type Event, Journal, Proposal } from "../../src/index.ts"
import { all, broken, unbalanced } from "../support/journalled.ts"
import { ask, calls, plays } from "../support/scripts.ts"

const parameters = Schema.Struct({ to: Schema.String })

/** Letters that are only sent when a person agrees, and pages from outside. */
const Send = Contract.annotate(Tool.make("send", { parameters, success: Schema.String }), {
  effect: "irreversible",
  approval: true,
})
const Look = Contract.annotate(Tool.make("look", { parameters, success: Schema.String }), {
  effect: "read",
  trust: "untrusted",
})
const Pay = Contract.annotate(Tool.make("pay", { parameters, success: Schema.String }), { effect: "irreversible" })
const toolkit = Toolkit.make(Send, Look, Pay)

const office = () => {
  const sent: Array<string> = []
  const handlers = toolkit.toLayer({
    send: ({ to }) => Effect.sync(() => (sent.push(to), "sent")),
    look: ({ to }) => Effect.succeed(`a page about ${to}`),
    pay: ({ to }) => Effect.sync(() => (sent.push(`paid ${to}`), "paid")),
  })
  return { sent, handlers }
}

const to = (tool: string, name: string) => ({ tool, params: { to: name } })

const writer = (name: string) =>
  Agent.make(name, { policy: plays(calls(to("send", name)), Proposal.finish(`${name} is done`)), toolkit })

const deep = Agent.make("deep", {
  policy: plays(calls(ask("inner")), Proposal.finish("deep is done")),
  children: [Agent.asTool(writer("inner"))],
})

const lead = Agent.make("lead", {
  policy: plays(calls(ask("deep"), ask("other")), Proposal.finish("all done")),
  children: [Agent.asTool(deep), Agent.asTool(writer("other"))],
}) as unknown as Agent.Agent<string>

const budget: Budget.Input = { steps: 100, toolCalls: 60, wallClock: "1 hour" }

type Office = ReturnType<typeof office>

const started = (agent: Agent.Agent<string>, at: Office, events: Array<Event.Recorded>) =>
  Agent.run(agent, "task", { budget, runId: "run" }).pipe(
    Effect.provide(at.handlers),
    Effect.provideService(Journal.Journal, Journal.toArray(events)),
  )

const resumed = (
  agent: Agent.Agent<string>,
  at: Office,
  to: { events: Array<Event.Recorded>; answers?: Array<Agent.Answer> },
) =>
  Agent.resume(agent, { run: "run", answers: to.answers ?? [] }).pipe(
    Effect.provide(at.handlers),
    Effect.provideService(Journal.Journal, Journal.toArray(to.events)),
  )

const questionsOf = (outcome: Agent.Outcome<string>): ReadonlyArray<Agent.Question> =>
  outcome._tag === "Suspended" ? outcome.waitsFor : assert.fail(`the run does not wait: ${outcome._tag}`)

const yes = ({ approval, digest }: Agent.Question): Agent.Answer => ({
  approval,
  digest,
  decision: "approved",
  by: "ada",
})

const spent = (events: ReadonlyArray<Event.Recorded>): number =>
  all(events, "Settled").reduce((sum, { actual }) => sum + (actual.steps ?? 0) + (actual.toolCalls ?? 0), 0)

describe("two questions at two depths", () => {
  it.effect("are answered one after the other; after a crash at any event between them, nothing is sent twice", () =>
    Effect.gen(function* () {
      const first = office()
      const events: Array<Event.Recorded> = []
      const both = questionsOf(yield* started(lead, first, events))
      assert.deepStrictEqual(both.map((one) => one.agent).toSorted(), ["lead/deep-1/inner-1", "lead/other-1"])
      const other = both.find((one) => one.agent === "lead/other-1")!
      const inner = both.find((one) => one.agent !== "lead/other-1")!
      yield* TestClock.adjust("1 day")
      assert.deepStrictEqual(questionsOf(yield* resumed(lead, first, { events, answers: [yes(other)] })), [inner])
      assert.deepStrictEqual(first.sent, ["other"])
      const from = events.findIndex(({ event }) => event._tag === "RunResumed")
      for (let end = from + 1; end <= events.length; end++) {
        const journal = events.slice(0, end)
        const before = spent(journal)
        const at = office()
        // What had ended is known to be out; what had only started may be: a person has to say.
        const open = questionsOf(yield* resumed(lead, at, { events: journal }))
        const answers = open.map((one): Agent.Answer =>
          one.kind === "uncertain" ? { ...yes(one), decision: "happened" } : yes(one),
        )
        const outcome = yield* resumed(lead, at, { events: journal, answers })
        const where = `after event ${end - 1} (${events[end - 1]!.event._tag})`
        assert.strictEqual(outcome._tag === "Completed" ? outcome.answer : outcome._tag, "all done", where)
        assert.deepStrictEqual([...broken(journal), ...unbalanced(outcome.report.accounts)], [], where)
        assert.deepStrictEqual(Audit.defects(Audit.audit(journal)), [], where)
        assert.isAtLeast(spent(journal), before, where)
        const wasSent = events.slice(0, end).some(({ event }) => event._tag === "CallStarted" && event.tool === "send")
        assert.deepStrictEqual(at.sent.toSorted(), wasSent ? ["inner"] : ["inner", "other"], where)
      }
    }),
  )
})

describe("what was read from outside", () => {
  it.effect("is remembered over a crash: what cannot be undone still needs a person", () =>
    Effect.gen(function* () {
      const payer = Agent.make("payer", {
        policy: plays(calls(to("look", "x")), calls(to("pay", "y")), Proposal.finish("done")),
        toolkit,
      }) as Agent.Agent<string>
      const events: Array<Event.Recorded> = []
      questionsOf(yield* started(payer, office(), events))
      const looked = events.findIndex(({ event }) => event._tag === "CallEnded" && event.tool === "look")
      for (let end = looked + 1; end < events.length; end++) {
        const at = office()
        const [question] = questionsOf(yield* resumed(payer, at, { events: events.slice(0, end) }))
        assert.deepStrictEqual([question!.tool, at.sent], ["pay", []], `after event ${end - 1}`)
      }
    }),
  )
})

describe("inside a budget that is not its own", () => {
  it.effect("a run that would wait ends there, since nobody could go on with it", () =>
    Effect.gen(function* () {
      const at = office()
      const events: Array<Event.Recorded> = []
      const outcome = yield* Agent.run(writer("solo") as Agent.Agent<string>, "task").pipe(
        Budget.open(budget),
        Effect.provide(at.handlers),
        Effect.provideService(Journal.Journal, Journal.toArray(events)),
      )
      assert.deepStrictEqual([outcome._tag === "Stopped" && outcome.reason, at.sent], ["blocked", []])
      const closed = all(events, "Closed").map((one) => one.account)
      assert.deepStrictEqual(closed, ["root/solo-1", "root"])
      assert.deepStrictEqual(
        all(events, "AgentEnded").map((one) => one.reason),
        ["blocked"],
      )
    }),
  )
})
