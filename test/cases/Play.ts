/**
 * Plays a case on a virtual clock: its script becomes models, tools, children and a verifier of Bursar.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import * as Toolkit from "effect/ai/Toolkit"
import {
  Agent,
  type Budget,
  type Event,
  Journal,
  Policy,
  type Proposal,
  State,
  ToolError,
  Verifier,
} from "../../src/index.ts"
import type { ScriptedModel } from "../../src/testing/index.ts"
import type { Case, Child, Tool as ToolScript, Turn } from "./Case.ts"
import { endsStep } from "./Steps.ts"
import { curtainMillis, pass } from "./Time.ts"
import { keyOf, toolOf } from "./Tools.ts"
import { type Conversation, type Converse, grantOf, inputOf, reservesOf, scripted } from "./Script.ts"

/** What a case came to. */
export interface Played {
  readonly outcome: Agent.Outcome<string>
  readonly events: ReadonlyArray<Event.Recorded>
  readonly requests: ReadonlyArray<ScriptedModel.Sent>
  readonly sideEffects: number
  readonly pastScript: number
  readonly wallMillis: number
}

interface Script {
  readonly turns: ReadonlyArray<Turn>
  readonly wrapUp: Turn | undefined
}

/** The conversation of one agent: the turns in order, and the wrap-up when it is asked for. */
class Talk {
  readonly turns: Conversation
  readonly wrapUp: Conversation | undefined
  readonly #script: Script
  readonly #one: Case

  constructor(script: Script, one: Case, converse: Converse) {
    this.#script = script
    this.#one = one
    this.turns = converse(one, script.turns)
    this.wrapUp = script.wrapUp === undefined ? undefined : converse(one, [script.wrapUp])
  }

  policy(purpose: string): Policy.Policy {
    const closing = purpose === "wrap_up" ? this.wrapUp : undefined
    const scripted = closing ?? this.turns
    const turn = closing === undefined ? this.#script.turns[this.turns.requests.length] : this.#script.wrapUp
    const { max_out, min_out } = this.#one.limits ?? {}
    const max = turn?.max_out ?? max_out ?? turn?.usage?.out ?? 0
    return Policy.fromModel(scripted.model, { maxOutputTokens: max, minOutputTokens: min_out ?? max })
  }
}

/** A case on the stage: its conversations, its tools and their effects. */
class Stage {
  readonly one: Case
  readonly conversations: Array<Talk> = []
  readonly effects = new Set<string>()
  readonly #attempts = new Map<string, number>()
  /** Told when the process dies in a call; until then it lives. */
  readonly crash = Deferred.makeUnsafe<void>()
  #living = true
  #amended = false
  handle: Agent.Handle<string> | undefined
  /** Everything recorded so far. */
  events: ReadonlyArray<Event.Recorded> = []
  readonly tools: ReadonlyArray<ToolScript>
  readonly toolkit: Toolkit.Toolkit<{}>

  readonly #converse: Converse
  readonly isQuiet: Theatre["isQuiet"]

  constructor(one: Case, { converse, isQuiet }: Theatre) {
    this.one = one
    this.#converse = converse
    this.isQuiet = isQuiet
    const all = [one, ...Object.values(one.children ?? {})].flatMap((agent) => agent.tools ?? [])
    this.tools = [...new Map(all.map((tool) => [tool.name, tool])).values()]
    this.toolkit = this.toolkitOf(this.tools)
  }

  toolkitOf(tools: ReadonlyArray<ToolScript>): Toolkit.Toolkit<{}> {
    const retries = this.one.budget.tool_retries ?? {}
    return Toolkit.make(...tools.map((tool) => toolOf(tool, retries[tool.name] ?? 0))) as never
  }

  get handlers(): Layer.Layer<never> {
    const handlers = Object.fromEntries(
      this.tools.map((tool) => [
        tool.name,
        (params: unknown, at: { toolCallId: string }) => this.#run(tool, params, at.toolCallId),
      ]),
    )
    return this.toolkit.toLayer(handlers as never) as never
  }

  /** Records into an array; after the step that the case names, the owner amends the caps. */
  journal(events: Array<Event.Recorded>): Journal.Journal {
    this.events = events
    const { amend } = this.one
    return Journal.tap(Journal.toArray(events), ({ event }) => {
      if (amend === undefined || this.#amended || !endsStep(event, amend.after_step, events)) return
      this.#amended = true
      Effect.runSync(this.handle!.amend(inputOf(amend.budget)))
    })
  }

  /** A policy that plays the script anew for each run of its agent. */
  policy(script: Script): Policy.Policy {
    const running = new WeakMap<object, Talk>()
    let last: Talk | undefined
    const conversationOf = (view: Policy.View): Talk => {
      const known = running.get(view.turns)
      if (known !== undefined) return known
      // A run that was resumed goes on in the script where it was.
      if (view.turns.length > 0 && last !== undefined) return last
      const made = new Talk(script, this.one, this.#converse)
      running.set(view.turns, made)
      last = made
      this.conversations.push(made)
      return made
    }
    return {
      name: "script",
      wrapUpNeeds: (view) => {
        const conversation = conversationOf(view)
        return conversation.wrapUp === undefined
          ? Effect.succeed({ steps: 1, ticks: 1 })
          : conversation.policy("wrap_up").wrapUpNeeds(view)
      },
      attempt: (view, terms) =>
        Effect.map(conversationOf(view).policy(view.purpose).attempt(view, terms), (attempt) => ({
          ...attempt,
          use: (hold) =>
            Effect.map(attempt.use(hold), (decision) => ({ ...decision, proposal: spawning(decision.proposal) })),
        })),
    }
  }

  verifier(): Verifier.Verifier<string> | undefined {
    const { verifier } = this.one
    if (verifier === undefined) return undefined
    let asked = 0
    const verdicts = verifier.verdicts.map((text): Turn => ({ text, ...verifier }))
    const judge = this.#converse(this.one, verdicts)
    const max = verifier.max_out ?? this.one.limits?.max_out ?? 0
    const policy = Policy.fromModel(judge.model, { maxOutputTokens: max, minOutputTokens: max })
    return Verifier.make<string, unknown>("verdict", ({ task }, pay) =>
      Effect.gen(function* () {
        const verdict = verifier.verdicts[asked++]
        if (verifier.kind === "model") {
          const terms = { reserve: "verify", attempt: 1, moneyIsCapped: false }
          yield* pay(yield* policy.attempt(judgement(task), terms))
        }
        return [{ name: "verdict", passed: verdict === "pass", detail: verdict ?? "no verdict left" }]
      }),
    )
  }

  /** Whether this is the call in which the process dies: once. */
  #dies(tool: ToolScript, call: string): boolean {
    const during = this.one.crash_at?.during
    if (during === undefined || !this.#living) return false
    const decided = this.events.flatMap(({ event }) => (event._tag === "Decided" ? (event.calls ?? []) : []))
    const id = decided.findLast((one) => one.call === call && one.tool === tool.name)?.providerId
    if (during !== tool.name && during !== id) return false
    this.#living = false
    return true
  }

  #run(tool: ToolScript, params: unknown, call: string): Effect.Effect<unknown, string | ToolError.ToolError> {
    return Effect.suspend((): Effect.Effect<unknown, string | ToolError.ToolError> => {
      const attempt = this.#attempts.get(tool.name) ?? 0
      this.#attempts.set(tool.name, attempt + 1)
      const behaviour = tool.behave[Math.min(attempt, tool.behave.length - 1)] ?? "ok"
      const happen = Effect.sync(() => {
        if (tool.effect === true) this.effects.add(keyOf(tool, params, call, this.effects.size))
      })
      const wait = Effect.sleep(tool.ms ?? 0)
      if (this.#dies(tool, call)) {
        const last = this.one.crash_at?.after_effect === true ? Effect.andThen(wait, happen) : Effect.void
        return last.pipe(Effect.andThen(Deferred.succeed(this.crash, undefined)), Effect.andThen(Effect.never))
      }
      const result = tool.results?.[Math.min(attempt, tool.results.length - 1)] ?? `${tool.name} done`
      switch (behaviour) {
        case "transient":
          return Effect.andThen(wait, Effect.fail(ToolError.transient("EAGAIN", `${tool.name}: not now`)))
        case "permanent":
          return Effect.andThen(wait, Effect.fail(`${tool.name}: ${behaviour} failure`))
        case "hang":
          return Effect.never
        case "effect_then_hang":
          return wait.pipe(Effect.andThen(happen), Effect.andThen(Effect.never))
        case "big":
          return wait.pipe(Effect.andThen(happen), Effect.as("x".repeat((tool.result_tokens ?? 1000) * 4)))
        default:
          return wait.pipe(Effect.andThen(happen), Effect.as(result))
      }
    })
  }
}

/** What a judge sees: the task alone; its verdict is scripted. */
const judgement = (task: string): Policy.View => ({
  agent: "judge",
  instructions: "Judge the answer.",
  task,
  state: new State.Fold("judge").state,
  turns: [],
  step: 1,
  purpose: "explore",
  tools: [],
  answer: Agent.make("judge").answer as Policy.View["answer"],
  left: { explore: {}, retry: {}, verify: {}, output: {} },
  leftMillis: undefined,
})

/** In the cases a child is started by a tool `spawn`; in Bursar each child is a tool of its own. */
const spawning = (proposal: Proposal.Proposal): Proposal.Proposal =>
  proposal._tag !== "Call"
    ? proposal
    : {
        ...proposal,
        calls: proposal.calls.map((call) => {
          const child = call.tool === "spawn" ? (call.params as { child?: unknown } | undefined)?.child : undefined
          return typeof child === "string" ? { ...call, tool: child, params: { task: child } } : call
        }),
      }

const spawned = (turns: ReadonlyArray<Turn>): ReadonlyArray<string> => [
  ...new Set(
    turns
      .flatMap((turn) => turn.calls ?? [])
      .flatMap((call) => {
        const child = call.tool === "spawn" ? call.args?.["child"] : undefined
        return typeof child === "string" ? [child] : []
      }),
  ),
]

const settingsOf = (one: Case): Partial<Omit<Agent.Settings, "wrapUp">> => ({
  backoffMillis: 0,
  modelRetries: one.limits?.model_retries ?? 2,
  noProgress: one.limits?.no_progress,
  concurrency: { calls: 1000, effects: "concurrent" },
})

const childOf = (stage: Stage, name: string, above: ReadonlyArray<string>): Agent.Child => {
  const child: Child = stage.one.children![name]!
  const { ask } = child
  const agent = Agent.make(name, {
    policy: stage.policy({ turns: child.turns, wrapUp: child.wrap_up }),
    toolkit: stage.toolkitOf(child.tools ?? []),
    reserves: reservesOf(child.reserves),
    settings: settingsOf(stage.one),
    children: childrenOf(stage, child.turns, [...above, name]),
  })
  return Agent.asTool<string, never>(agent, {
    atLeast: grantOf(child.min ?? {}),
    ...(ask === "even"
      ? {}
      : { ask: grantOf(ask), ...(ask.wall_ms === undefined ? {} : { wallClockMillis: ask.wall_ms }) }),
  })
}

const childrenOf = (
  stage: Stage,
  turns: ReadonlyArray<Turn>,
  above: ReadonlyArray<string>,
): ReadonlyArray<Agent.Child> =>
  spawned(turns)
    .filter((name) => stage.one.children?.[name] !== undefined && !above.includes(name))
    .map((name) => childOf(stage, name, above))

/**
 * Where a case is played: what makes its conversations, and, where they leave this process, whether all is quiet there.
 * Time passes only then.
 */
export interface Theatre {
  readonly converse: Converse
  readonly isQuiet?: () => boolean
}

/** Plays a case; in this process unless told where. */
export const play = (
  one: Case,
  theatre: Theatre = { converse: scripted },
): Effect.Effect<Played, Budget.BudgetError | Agent.ResumeFailure> =>
  Effect.gen(function* () {
    const stage = new Stage(one, theatre)
    const verify = stage.verifier()
    const root = Agent.make("root", {
      policy: stage.policy({ turns: one.turns, wrapUp: one.wrap_up }),
      toolkit: stage.toolkitOf(one.tools ?? []),
      reserves: reservesOf(one.reserves),
      settings: settingsOf(one),
      children: childrenOf(stage, one.turns, []),
      ...(verify === undefined ? {} : { verify }),
    })
    const before: Array<Event.Recorded> = []
    const first = yield* Effect.scoped(
      Effect.gen(function* () {
        const handle = yield* Agent.spawn(root, one.title, { budget: inputOf(one.budget), runId: one.id })
        stage.handle = handle
        const outcome = yield* Effect.raceFirst(watched(stage, handle), Deferred.await(stage.crash))
        // What is recorded from here on is the work of a process that is gone.
        return { outcome, events: [...before] }
      }),
    ).pipe(Effect.provideService(Journal.Journal, stage.journal(before)), Effect.provide(stage.handlers))
    const { outcome, events } =
      first.outcome === undefined
        ? yield* resumed(stage, root, first.events)
        : { outcome: first.outcome, events: first.events }
    const ended = events.find(({ event }) => event._tag === "RunEnded")
    const [conversation] = stage.conversations
    return {
      outcome,
      events,
      requests: [...(conversation?.turns.requests ?? []), ...(conversation?.wrapUp?.requests ?? [])],
      sideEffects: stage.effects.size,
      pastScript: stage.conversations.reduce(
        (sum, one) => sum + one.turns.pastScript() + (one.wrapUp?.pastScript() ?? 0),
        0,
      ),
      wallMillis: ended?.atMillis ?? Infinity,
    }
  }).pipe(Effect.provide(TestClock.layer()))

interface Finished {
  readonly outcome: Agent.Outcome<string>
  readonly events: ReadonlyArray<Event.Recorded>
}

/** Lets time pass, and cancels where the case says so. */
const watched = (stage: Stage, handle: Agent.Handle<string>): Effect.Effect<Agent.Outcome<string>> =>
  Effect.gen(function* () {
    const { cancel_at: cancelAt } = stage.one
    if (cancelAt !== undefined) {
      yield* pass(cancelAt.ms, stage.isQuiet)
      if (cancelAt.agent === "root") return yield* handle.cancel
      const rows = yield* handle.statement
      const target = rows.find((row) => row.name === cancelAt.agent && row.state !== "Closed")
      if (target !== undefined) yield* handle.cancelAgent(target.account)
    }
    return yield* stage.isQuiet === undefined
      ? Effect.andThen(TestClock.adjust(curtainMillis), handle.await)
      : Effect.raceFirst(handle.await, Effect.andThen(pass(curtainMillis, stage.isQuiet), Effect.never))
  })

/** Another process goes on from the journal of the one that died. */
const resumed = (stage: Stage, root: Agent.Agent<string>, before: ReadonlyArray<Event.Recorded>) =>
  Effect.gen(function* () {
    const events = [...before]
    const outcome = yield* Effect.scoped(
      Effect.gen(function* () {
        const handle = yield* Agent.spawnResumed(root, { run: stage.one.id })
        stage.handle = handle
        return yield* watched(stage, handle)
      }),
    ).pipe(Effect.provideService(Journal.Journal, stage.journal(events)), Effect.provide(stage.handlers))
    return { outcome, events } satisfies Finished
  })
