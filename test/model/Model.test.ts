import { assert, describe, it } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as ResponseIdTracker from "effect/ai/ResponseIdTracker"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { Agent, Contract, type Event, Journal, Model, Policy, Provider } from "../../src/index.ts"
import { all, results, run, stopped } from "../support/journalled.ts"
import { bare } from "../support/scripts.ts"

type Parts = ReadonlyArray<Response.PartEncoded>
type Answer = (options: LanguageModel.ProviderOptions) => Effect.Effect<Parts, AiError.AiError>

/** A language model made by hand; it keeps what it was asked. */
const provider = (...answers: ReadonlyArray<Answer>) => {
  const asked: Array<LanguageModel.ProviderOptions> = []
  const service = Effect.runSync(
    LanguageModel.make({
      generateText: (options) => {
        asked.push(options)
        return answers[Math.min(asked.length, answers.length) - 1]!(options) as never
      },
      streamText: () => Stream.die("no streams here"),
    }),
  )
  return { asked, model: Model.fromLanguageModel(service, { model: "by-hand" }) }
}

const finish = (reason: Response.FinishReason = "stop"): Response.PartEncoded =>
  ({
    type: "finish",
    reason,
    usage: {
      inputTokens: { total: 40, uncached: 30, cacheRead: 10, cacheWrite: undefined },
      outputTokens: { total: 7, text: 7, reasoning: undefined },
    },
  }) as never

const says =
  (text: string): Answer =>
  () =>
    Effect.succeed([{ type: "text", text }, finish()])
const callsFor =
  (name: string, params: unknown): Answer =>
  () =>
    Effect.succeed([{ type: "tool-call", id: "c1", name, params } as never, finish("tool-calls")])

const executed: Array<string> = []
const Danger = Contract.annotate(
  Tool.make("danger", {
    parameters: Schema.Struct({ key: Schema.String }),
    success: Schema.String,
    needsApproval: true,
  }),
  { effect: "write" },
)
const Plain = Tool.make("plain", { parameters: Schema.Struct({ key: Schema.String }), success: Schema.String })
const toolkit = Toolkit.make(Danger, Plain)
const handlers = toolkit.toLayer({
  danger: ({ key }) => Effect.sync(() => (executed.push(key), `did ${key}`)),
  plain: ({ key }) => Effect.sync(() => (executed.push(key), `did ${key}`)),
})

const request = (messages: ReadonlyArray<Prompt.Message>): Model.Request => ({ messages, tools: [Danger] })
const user = (text: string) => Prompt.userMessage({ content: [Prompt.textPart({ text })] })

const generateText = (model: Model.Model, of: Model.Request) =>
  Effect.flatMap(Provider.OnReport, (report) => model.call(of, { maxOutputTokens: 100, headers: {}, report })).pipe(
    Effect.provide(handlers),
  )

describe("three holes in effect/ai", () => {
  it.effect("a call is handed on and not executed, whether its tool needs approval or not", () =>
    Effect.gen(function* () {
      executed.length = 0
      for (const tool of [Danger, Plain]) {
        const { model, asked } = provider(callsFor(tool.name, { key: "x" }))
        const reply = yield* generateText(model, { messages: [user("go")], tools: [Danger, Plain] })
        assert.deepStrictEqual(reply.calls, [{ id: "c1", name: tool.name, params: { key: "x" } }])
        assert.deepStrictEqual([executed, asked.length], [[], 1])
        assert.deepStrictEqual(
          asked[0]!.tools.map((offered) => offered.name),
          ["danger", "plain"],
        )
      }
    }),
  )

  it.effect("a call with wrong arguments, or of a tool that does not exist, is handed on as it came", () =>
    Effect.gen(function* () {
      for (const [name, params] of [
        ["plain", { wrong: 1 }],
        ["nowhere", { key: "x" }],
      ] as const) {
        const reply = yield* generateText(provider(callsFor(name, params)).model, request([user("go")]))
        assert.deepStrictEqual(reply.calls, [{ id: "c1", name, params }])
      }
    }),
  )

  it.effect("a call that the provider has run itself is no call for the host", () =>
    Effect.gen(function* () {
      const { model } = provider(() =>
        Effect.succeed([
          { type: "tool-call", id: "c1", name: "hosted", params: {}, providerExecuted: true } as never,
          { type: "text", text: "found" },
          finish(),
        ]),
      )
      const reply = yield* generateText(model, request([user("go")]))
      assert.deepStrictEqual([reply.text, reply.calls], ["found", []])
    }),
  )

  it.effect("that needs approval waits for a person, in the host's own executor", () =>
    Effect.gen(function* () {
      executed.length = 0
      const { model } = provider(callsFor("danger", { key: "y" }), says("done"))
      const agent = Agent.make("a", { policy: Policy.fromModel(model), toolkit })
      const { outcome, events } = yield* run(agent, { steps: 5 }).pipe(Effect.provide(handlers))
      assert.isTrue(outcome._tag === "Suspended" && outcome.waitsFor[0]?.tool === "danger")
      assert.deepStrictEqual([executed, results(events)], [[], []])
    }),
  )

  it.effect("approval parts in the prompt execute nothing, and do not reach the provider", () =>
    Effect.gen(function* () {
      executed.length = 0
      const { model, asked } = provider(says("done"))
      const approved = [
        user("go"),
        Prompt.assistantMessage({
          content: [
            Prompt.toolCallPart({ id: "c1", name: "danger", params: { key: "z" }, providerExecuted: false }),
            Prompt.toolApprovalRequestPart({ approvalId: "a1", toolCallId: "c1" }),
          ],
        }),
        Prompt.toolMessage({ content: [Prompt.toolApprovalResponsePart({ approvalId: "a1", approved: true })] }),
      ]
      assert.strictEqual((yield* generateText(model, request(approved))).text, "done")
      assert.deepStrictEqual([executed, asked.length], [[], 1])
      assert.notInclude(JSON.stringify(asked[0]!.prompt), "approval")
      // Without tools, too: the wrap-up sends the same prompt.
      yield* generateText(model, { messages: approved, tools: [] })
      assert.deepStrictEqual(executed, [])
    }),
  )

  it.effect("with a ResponseIdTracker in context one call sends exactly one request, with the whole prompt", () =>
    Effect.gen(function* () {
      const refusing = provider(() =>
        Effect.fail(
          AiError.make({
            module: "test",
            method: "generateText",
            reason: new AiError.InvalidRequestError({ description: "unknown response id" }),
          }),
        ),
      )
      const tracker: ResponseIdTracker.Service = {
        clearUnsafe: () => {},
        markParts: () => {},
        prepareUnsafe: (prompt) => Option.some({ previousResponseId: "earlier", prompt }),
      }
      const failure = yield* generateText(refusing.model, request([user("go")])).pipe(
        Effect.provideService(ResponseIdTracker.ResponseIdTracker, tracker),
        Effect.flip,
      )
      assert.strictEqual(failure.code, "InvalidRequestError")
      assert.strictEqual(refusing.asked.length, 1)
      assert.isUndefined(refusing.asked[0]!.previousResponseId)
    }),
  )
})

describe("one call", () => {
  const reported = (model: Model.Model, of: Model.Request) =>
    Effect.gen(function* () {
      const reports: Array<Provider.Report> = []
      const exit = yield* generateText(model, of).pipe(
        Effect.provideService(Provider.OnReport, (report) => reports.push(report)),
        Effect.result,
      )
      return { exit, reports }
    })

  it.effect("reports the usage of the reply where the provider does not report itself", () =>
    Effect.gen(function* () {
      const { reports } = yield* reported(provider(says("x")).model, request([user("go")]))
      assert.deepStrictEqual(reports, [
        {
          _tag: "Replied",
          model: undefined,
          usage: {
            inputTokens: 40,
            cachedInputTokens: 10,
            cacheWriteInputTokens: undefined,
            outputTokens: 7,
            reasoningTokens: undefined,
          },
        },
      ])
    }),
  )

  it.effect("believes the provider's own reports, and makes none beside them", () =>
    Effect.gen(function* () {
      const own: Provider.Report = { _tag: "Replied", usage: undefined, model: "by-hand-2" }
      const { model } = provider(() =>
        Effect.gen(function* () {
          const report = yield* Provider.OnReport
          report(own)
          report({ _tag: "Lost" })
          return [{ type: "text", text: "x" }, finish()] satisfies Parts
        }),
      )
      assert.deepStrictEqual((yield* reported(model, request([user("go")]))).reports, [own, { _tag: "Lost" }])
    }),
  )

  it.effect("that sends again by itself is billed for all that it sent", () =>
    Effect.gen(function* () {
      const price = {
        inputPicoUsd: 1_000,
        cachedInputPicoUsd: 1_000,
        cacheWriteInputPicoUsd: 1_000,
        outputPicoUsd: 1_000,
      }
      const replied = (inputTokens: number, outputTokens: number): Provider.Report => ({
        _tag: "Replied",
        usage: { inputTokens, outputTokens, cachedInputTokens: 0, cacheWriteInputTokens: 0, reasoningTokens: 0 },
        model: undefined,
      })
      const refused: Provider.Report = { _tag: "Refused", status: 429, retryAfterMillis: undefined }
      const bookings = [
        [[refused, replied(9, 1)], "exact", 10],
        [[{ _tag: "NotSent" }, replied(9, 1)], "exact", 10],
        [[replied(9, 1), refused], "exact", 10],
        [[replied(9, 1), replied(19, 1)], "assumed"],
        [[{ _tag: "Lost" }, replied(9, 1)], "assumed"],
        [[{ ...refused, status: 408 }, replied(9, 1)], "assumed"],
      ] as const
      for (const [reports, certainty, money] of bookings) {
        const { model } = provider(() =>
          Effect.gen(function* () {
            const report = yield* Provider.OnReport
            for (const one of reports) report(one)
            return [{ type: "text", text: "x" }, finish()] satisfies Parts
          }),
        )
        const events: Array<Event.Recorded> = []
        const agent = Agent.make("a", {
          policy: Policy.fromModel({ ...model, price }, { maxOutputTokens: 50 }),
          ...bare,
        })
        yield* Agent.run(agent, "go", { budget: { money: "1 USD" } }).pipe(
          Effect.provideService(Journal.Journal, Journal.toArray(events)),
        )
        const [decided] = all(events, "Decided")
        const [held] = all(events, "Held")
        assert.deepStrictEqual([decided?.certainty, decided?.used.money], [certainty, money ?? held?.amounts.money])
      }
    }),
  )

  it.effect("says what a failure means for the bill, and keeps no text of it", () =>
    Effect.gen(function* () {
      const failing = (reason: AiError.AiErrorReason) =>
        provider(() => Effect.fail(AiError.make({ module: "test", method: "generateText", reason })))
      for (const [reason, report, retryable] of [
        [new AiError.RateLimitError({ retryAfter: Duration.seconds(3) }), "Refused", true],
        [new AiError.AuthenticationError({ kind: "InvalidKey" }), "Refused", false],
        [new AiError.InternalProviderError({ description: "CANARY" }), "Lost", true],
      ] as const) {
        const { exit, reports } = yield* reported(failing(reason).model, request([user("go")]))
        assert.deepStrictEqual(
          reports.map((one) => one._tag),
          [report],
        )
        assert.isTrue(exit._tag === "Failure")
        if (exit._tag !== "Failure") return
        assert.deepStrictEqual([exit.failure.code, exit.failure.retryable], [reason._tag, retryable])
        assert.strictEqual(exit.failure.retryAfterMillis, reason._tag === "RateLimitError" ? 3000 : undefined)
        assert.notInclude(JSON.stringify(exit.failure) + exit.failure.message, "CANARY")
      }
    }),
  )

  it.effect("asks for JSON where an answer is asked for, and keeps what does not fit as text", () =>
    Effect.gen(function* () {
      const answer = { tool: Danger, schema: Schema.Struct({ n: Schema.Number }) }
      const good = provider(says('{"n":1}'))
      assert.strictEqual((yield* generateText(good.model, { ...request([user("go")]), answer })).text, '{"n":1}')
      assert.strictEqual(good.asked[0]!.responseFormat.type, "json")
      const bad = provider(says("no JSON at all"))
      const { exit, reports } = yield* reported(bad.model, { ...request([user("go")]), answer })
      assert.isTrue(exit._tag === "Success" && exit.success.text === "no JSON at all")
      assert.deepStrictEqual(
        reports.map((one) => one._tag),
        ["Replied"],
      )
    }),
  )

  it.effect("is a layer over any LanguageModel", () =>
    Effect.gen(function* () {
      const service = yield* LanguageModel.make({
        generateText: () => Effect.succeed([{ type: "text", text: "hi" } as const, finish()]),
        streamText: () => Stream.die("no streams here"),
      })
      const layer = Model.layer({ model: "m" }).pipe(Layer.provide(Layer.succeed(LanguageModel.LanguageModel)(service)))
      const { outcome, events } = yield* run(Agent.make("a"), { steps: 3 }).pipe(Effect.provide(layer))
      assert.isTrue(outcome._tag === "Completed" && outcome.answer === "hi")
      assert.strictEqual(all(events, "Decided")[0]!.used.inputTokens, 40)
      const { outcome: unpriced } = yield* run(Agent.make("a"), { money: "1 USD" }).pipe(Effect.provide(layer))
      assert.strictEqual(stopped(unpriced).reason, "unpriced")
    }),
  )
})
