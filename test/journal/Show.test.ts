import { assert, describe, it } from "@effect/vitest"
import * as Content from "../../src/event/Content.ts"
import type { Recorded } from "../../src/event/Event.ts"
import * as Show from "../../src/journal/Show.ts"
import { changed, everything, finish, placeOf, run, wish, Writer } from "./Written.ts"

const sound = everything()

const whole = `
run run-1: ended completed, full
2026-11-30T10:15:00.010Z + 61.21s, 82 events, bursar 0.1.0

lead: completed, full
  task  the task of lead
  own   5 steps, 5 tool calls, 0.000301 USD
  tree  11 steps, 6 tool calls, 0.001601 USD
    0.05s   1  call (0.0003 USD): I split it.
                 search  ok            0.52s  [untrusted] {"query":"power loss"} -> "a result"
                   attempt 1 failed: ETIMEDOUT no result
                 scout   ok            0.80s  [lead/scout-1] "a result"
                 scout   ok            0.80s  [lead/scout-2] "a result"
    0.94s   2  call
                 send     ok            0.02s  [irreversible] "a result"
                   asks for approval: it cannot be undone
                   approved, says ann after 60.05s: go on
                 nowhere  ENOTOOL           -  there is no tool nowhere
    0.98s      waits for lead/step-2/call-1/approval
   60.99s      goes on after a suspension, for the 1st time
   61.08s   3  attempt 1 failed (retryable): EPROVIDER overloaded
   61.11s   3  finish (attempt 2): "wrong"
   61.14s      not accepted: passed cites
                 failed tests: npm test
                 npm test: exit code 1
   61.17s   4  finish: "right"
   61.18s      accepted: cites, tests
                 npm test: exit code 0
   61.19s      ends completed, full

  lead/scout-1: completed, full
    task  the task of lead/scout-1
    own   2 steps, 1 tool call, 0.0001 USD
      0.62s   1  call
                   write  ok            0.02s  [write] "a result"
      0.76s   2  finish (0.0001 USD): "found"
      0.77s      ends completed, full

  lead/scout-2: budget:steps, partial
    task  the task of lead/scout-2
    own   4 steps, 0.0012 USD
      0.65s   1  invalid: it is no JSON
      0.72s   2  call
                   write  ok                -  [as lead/scout-1 step-1/call-1] "a result"
      0.81s      over-run: 0.0003 USD above the hold step-3/explore/attempt-1
                   0.0001 USD from explore of lead/scout
                   0.0002 USD from explore of lead
      0.82s   3  invalid (0.0012 USD)
      0.83s      refused: hold step-4/explore/attempt-1
                   steps: 1 asked, 0 available in the explore reserve of lead/scout
      0.84s      has to stop: budget:steps, short of steps, because of budget:steps
      0.87s   4  finish (wrap-up): "half"
      0.88s      ends budget:steps, partial

account: used/granted  steps    money (USD)  tool calls
lead                    5/20  0.000301/0.01        5/20
  scout-1                2/4   0.0001/0.001         1/3
  scout-2                4/4  0.0012/0.0012         0/1
all                    11/20  0.001601/0.01        6/20
left                       9       0.008399          14
`.trim()

describe("a run is shown", () => {
  it("as a tree of agents with all that happened, and its books", () => {
    assert.deepStrictEqual(Show.show(sound).split("\n"), whole.split("\n"))
  })

  it("in 100 columns, however much is said in it", () => {
    const long = "word ".repeat(500)
    const index = placeOf(sound, "Decided")
    const events = changed<"Decided">(sound, index, {
      text: Content.fromText(long),
      calls: [wish("step-1/call-1", "t".repeat(300), { query: long })],
    })
    const lines = Show.show(events).split("\n")
    for (const line of lines) assert.isAtMost([...line].length, 100)
    assert.isTrue(lines.some((line) => line.endsWith("…")))
  })

  it("without the texts that were dropped", () => {
    const bare = JSON.parse(JSON.stringify(sound), (key, value: unknown) =>
      key === "text" && typeof value === "string" ? undefined : value,
    ) as ReadonlyArray<Recorded>
    const index = placeOf(bare, "CallEnded", ({ code }) => code === "ENOTOOL")
    const dropped = changed<"CallEnded">(bare, index, { message: `(dropped, ${Content.digest("x")})` })
    const text = Show.show(dropped)
    for (const word of ["the task", "a result", "I split it", "power loss", "dropped", "sha256"]) {
      assert.notInclude(text, word)
    }
    assert.include(text, "nowhere  ENOTOOL           -\n")
  })

  it("without anything that a terminal takes for a command, or that turns a line around", () => {
    const evil = "a\u001b[2Jb\r\nc\u202Ed\u0007e\u009b1mf\u2028g"
    const index = placeOf(sound, "Decided")
    const named = changed<"Decided">(sound, index, {
      text: Content.fromText(evil),
      model: evil,
      calls: [wish("step-1/call-1", evil, evil)],
    })
    const ended = changed<"CallEnded">(named, placeOf(named, "CallEnded"), { code: evil, message: evil })
    const text = Show.show(ended.map((one) => ({ ...one, run: evil })))
    // oxlint-disable-next-line no-control-regex -- that is what must not be there
    assert.notMatch(text.replaceAll("\n", ""), /[\p{Cc}\p{Cf}\u2028]/u)
    assert.include(text, "a [2Jb c d e 1mf g")
  })

  it("as far as it has come", () => {
    assert.strictEqual(Show.show([]), "no events")
    const open = Show.show(sound.slice(0, 30))
    assert.include(open, "run run-1: open")
    assert.include(open, "lead/scout-2: open")
    assert.include(open, "not used")
    const suspended = Show.show(sound.slice(0, placeOf(sound, "RunSuspended") + 1))
    assert.include(suspended, "lead: suspended")
    for (let length = 1; length < sound.length; length++) assert.isNotEmpty(Show.show(sound.slice(0, length)))
  })

  it("whatever is missing of it", () => {
    sound.forEach((_, index) => assert.include(Show.show(sound.toSpliced(index, 1)), "account: used/granted"))
  })

  it("as a budget around a plain Effect, which has accounts only", () => {
    const writer = new Writer({ grant: { steps: 9, inputTokens: 9_000, money: 5_000_000, toolCalls: 2 }, frame: false })
    writer.pay("lead", "spend-1", { hold: { inputTokens: 1_200 } })
    writer.ledger.close("lead")
    assert.deepStrictEqual(Show.show(writer.events).split("\n").slice(2), [
      "",
      "account: used/granted  steps  tokens in  money (USD)  tool calls",
      "lead                     0/9  1200/9000   0.00/0.005         0/2",
      "all                      0/9  1200/9000   0.00/0.005         0/2",
      "left                       9       7800        0.005           2",
    ])
  })
})

describe("the numbers of a run", () => {
  it("are those of its agents and its accounts", () => {
    const { accounts, agents, ...rest } = Show.summarize(sound)
    assert.deepStrictEqual(rest, {
      run: "run-1",
      state: "ended",
      reason: "completed",
      result: "full",
      bursar: "0.1.0",
      events: 82,
      startedAtMillis: sound[0]!.atMillis,
      lastAtMillis: sound.at(-1)!.atMillis,
    })
    assert.deepStrictEqual(
      agents.map(({ agent, parent, reason, steps, calls, own, tree }) => {
        return [agent, parent, reason, steps, calls, own.money, tree.money]
      }),
      [
        ["lead", undefined, "completed", 4, 5, 301_000, 1_601_000],
        ["lead/scout-1", "lead", "completed", 2, 1, 100_000, 100_000],
        ["lead/scout-2", "lead", "budget:steps", 4, 1, 1_200_000, 1_200_000],
      ],
    )
    assert.deepStrictEqual(
      accounts.map(({ account, isClosed, overran }) => [account, isClosed, overran]),
      [
        ["lead", true, true],
        ["lead/scout-1", true, false],
        ["lead/scout-2", true, true],
      ],
    )
  })

  it("count debt apart from use", () => {
    const events = run((one) => {
      one.start("lead")
      one.pay("lead", "bill", { hold: { money: 1 }, actual: { money: 15_000_000 } })
      finish(one, 1)
    })
    const [account] = Show.summarize(events).accounts
    assert.deepStrictEqual([account!.own.money, account!.debt.money], [10_000_000, 5_000_000])
    assert.include(Show.show(events), "0.005 USD owed")
  })
})
