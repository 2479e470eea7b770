/**
 * The same work for a Bursar agent, for a loop over `effect/ai` written by hand, and for a loop over a plain function:
 * so many steps, each with one call of one tool, but for the last one, which answers. The model is a script without
 * latency; it only counts.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { Agent, type Budget, Contract, Journal, Model, Price, type Provider } from "../../src/index.ts"
import { FileJournal } from "../../src/node/index.ts"

/** One way to do the work. */
export interface Workload {
  readonly name: string
  /** Runs an agent of so many steps; `asked` is called each time the model is. */
  readonly run: (steps: number, asked: () => void) => Promise<void>
}

// --- the script

/** What the model of the run under way says: runs come one after the other, so that one model serves them all. */
const script = { step: 0, steps: 0, asked: (): void => {} }

const begin = (steps: number, asked: () => void): void => void Object.assign(script, { step: 0, steps, asked })

/** The argument of the next call, or `undefined` when it is time to answer. */
const turn = (): number | undefined => {
  script.asked()
  return ++script.step < script.steps ? script.step : undefined
}

const answer = "done"
const task = "Look up every number."
const instructions = "You look up numbers, one at a time."
const usage = { input: 400, output: 20 }
const lookup = (n: number): number => n + 1

/** Nothing that is faster because it stopped early may count. */
const check = (steps: number, said: unknown): void => {
  if (script.step !== steps || said !== answer) throw new Error(`${script.step} of ${steps} steps: ${String(said)}`)
}

// --- Bursar

const Lookup = Contract.annotate(
  Tool.make("lookup", { parameters: Schema.Struct({ n: Schema.Finite }), success: Schema.Finite }),
  { effect: "read" },
)
const toolkit = Toolkit.make(Lookup)
const handlers = toolkit.toLayer({ lookup: ({ n }) => Effect.succeed(lookup(n)) })
const agent = Agent.make("counter", { instructions, toolkit })
const price = Result.getOrThrow(Price.perMillion({ input: "0.25", output: "2.00" }))

/** A cap in every dimension, and none that is reached. */
const budget = (steps: number): Budget.Input => ({
  steps: 2 * steps + 20,
  ticks: 2 * steps + 20,
  toolCalls: 2 * steps + 20,
  inputTokens: 10 ** 10,
  outputTokens: 10 ** 8,
  money: "100000 USD",
  wallClock: "1 hour",
})

const replied: Provider.Report = {
  _tag: "Replied",
  usage: {
    inputTokens: usage.input,
    cachedInputTokens: undefined,
    cacheWriteInputTokens: undefined,
    outputTokens: usage.output,
    reasoningTokens: undefined,
  },
  model: "scripted",
}

/** Unlike `ScriptedModel` it keeps no requests. */
const own: Model.Model = {
  name: "scripted",
  provider: "scripted",
  price,
  countInput: () => ({ tokens: usage.input, bound: "counted" }),
  call: (_request, { report }) =>
    Effect.sync((): Model.Reply => {
      const n = turn()
      report(replied)
      return n === undefined
        ? { text: answer, calls: [], cut: false, finishReason: "stop" }
        : { text: "", calls: [{ id: "", name: "lookup", params: { n } }], cut: false, finishReason: "tool-calls" }
    }),
}

const bursar = (name: string, model: Layer.Layer<Model.CurrentModel>, journal: () => Layer.Layer<never>): Workload => ({
  name,
  run: async (steps, asked) => {
    begin(steps, asked)
    const run = Agent.run(agent, task, { budget: budget(steps) })
    const outcome = await Effect.runPromise(Effect.provide(run, [handlers, model, journal()]))
    check(steps, outcome._tag === "Completed" ? outcome.answer : `${outcome._tag} ${JSON.stringify(outcome)}`)
  },
})

const inMemory = (): Layer.Layer<never> => Layer.succeed(Journal.Journal)(Journal.toArray([]))

// --- effect/ai

const finish = (reason: "stop" | "tool-calls"): Response.FinishPartEncoded => ({
  type: "finish",
  reason,
  usage: {
    inputTokens: { total: usage.input, uncached: undefined, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: usage.output, text: undefined, reasoning: undefined },
  },
})

/** One provider for the whole process, as it would be: what it caches stays. */
const languageModel = Effect.runSync(
  LanguageModel.make({
    generateText: () =>
      Effect.sync(() => {
        const n = turn()
        return n === undefined
          ? [{ type: "text", text: answer }, finish("stop")]
          : [{ type: "tool-call", id: `call-${n}`, name: "lookup", params: { n } }, finish("tool-calls")]
      }),
    streamText: () => Stream.die("no streams here"),
  }),
)

const foreignModel = Model.layer({ model: "scripted", price }).pipe(
  Layer.provide(Layer.succeed(LanguageModel.LanguageModel)(languageModel)),
)

/** Tool calls are not resolved; the caller runs the tool and appends call and result to one array of messages. */
const byHand = Effect.gen(function* () {
  const { generateText } = yield* LanguageModel.LanguageModel
  const messages: Array<Prompt.Message> = [
    Prompt.systemMessage({ content: instructions }),
    Prompt.userMessage({ content: [Prompt.textPart({ text: task })] }),
  ]
  const tools = yield* toolkit
  for (;;) {
    const prompt = Prompt.fromMessages(messages)
    const reply = yield* generateText({ prompt, toolkit: tools, disableToolCallResolution: true })
    if (reply.toolCalls.length === 0) return reply.text
    const calls = reply.toolCalls.map(({ id, name, params }) =>
      Prompt.toolCallPart({ id, name, params, providerExecuted: false }),
    )
    const results = reply.toolCalls.map(({ id, name, params }) =>
      Prompt.toolResultPart({ id, name, isFailure: false, result: lookup(params.n), providerExecuted: false }),
    )
    messages.push(Prompt.assistantMessage({ content: calls }), Prompt.toolMessage({ content: results }))
  }
}).pipe(Effect.provide([handlers, Layer.succeed(LanguageModel.LanguageModel)(languageModel)]))

export const effectAi: Workload = {
  name: "effect/ai, own tool calls",
  run: async (steps, asked) => {
    begin(steps, asked)
    check(steps, await Effect.runPromise(byHand))
  },
}

// --- the floor

const ask = async (messages: ReadonlyArray<object>) => {
  const n = turn()
  if (messages.length === 0) throw new Error("nothing was asked")
  return n === undefined
    ? { text: answer, calls: [] }
    : { text: "", calls: [{ id: `call-${n}`, name: "lookup", params: { n } }] }
}

const plainly = async (): Promise<string> => {
  const messages: Array<object> = [{ role: "system", content: instructions }]
  messages.push({ role: "user", content: task })
  for (;;) {
    const { calls, text } = await ask(messages)
    if (calls.length === 0) return text
    messages.push({ role: "assistant", calls })
    for (const { id, params } of calls) messages.push({ role: "tool", id, result: await call(params) })
  }
}

const call = async ({ n }: { readonly n: number }): Promise<number> => lookup(n)

export const floor: Workload = {
  name: "floor: async function",
  run: async (steps, asked) => {
    begin(steps, asked)
    check(steps, await plainly())
  },
}

// --- all of them

export const memory = bursar("Bursar, in memory", Layer.succeed(Model.CurrentModel)(own), inMemory)

/** The same with further layers around it, which are made anew for each run. */
export const memoryUnder = (name: string, more: () => Layer.Layer<never>): Workload =>
  bursar(name, Layer.succeed(Model.CurrentModel)(own), () => Layer.merge(inMemory(), more()))

export const foreign = bursar("Bursar, foreign LanguageModel", foreignModel, inMemory)

export const onDisk = (directory: string): Workload =>
  bursar("Bursar, on disk", Layer.succeed(Model.CurrentModel)(own), () => FileJournal.layer({ directory }))
