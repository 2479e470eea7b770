/**
 * What has to hold before a call may run, in this order: a known name (`ENOTOOL`), arguments that can be read (`EINVAL`),
 * permission (`EPERM`), an effect that has not happened already, preconditions (`EPRECOND`), approval. Nothing has been
 * spent or changed until all of it holds; after a wait for approval all of it is checked again.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Content from "../event/Content.ts"
import type { Call } from "../event/Event.ts"
import * as Approval from "./Approval.ts"
import { isRepeatable, markOf } from "./Attempts.ts"
import { refused } from "./CallResult.ts"
import { meant, printOf } from "./EffectLedger.ts"
import { andThen, isDone } from "./Immediate.ts"
import type { Permission } from "./Permission.ts"
import type { Prepared, Ready, Setting } from "./Setting.ts"
import { stopAndRequestHuman } from "./ToolError.ts"
import { messageOf, messageOfCause, type ToolFailure } from "./ToolSet.ts"

/** Prepares the calls of one reply, in order. From the first that stands still on, the others wait behind it. */
export const prepareAll = (setting: Setting, calls: ReadonlyArray<Call>): Effect.Effect<ReadonlyArray<Prepared>> =>
  calls.length === 1
    ? andThen(twinOf(setting, calls[0]!) ?? prepare(setting, calls[0]!), (one) => Effect.succeed([one]))
    : Effect.map(
        Effect.forEach(calls, (call) => twinOf(setting, call) ?? prepare(setting, call)),
        behindOneThatWaits,
      )

const behindOneThatWaits = (prepared: ReadonlyArray<Prepared>): ReadonlyArray<Prepared> => {
  const still = prepared.findIndex((one) => one._tag === "Waiting")
  if (still < 0) return prepared
  return prepared.map((one, index) => (index < still || !mayChange(one) ? one : { _tag: "Later", call: one.call }))
}

/** Whether what is true of a call now may be otherwise once those before it have run. */
const mayChange = (one: Prepared): boolean => {
  if (one._tag === "Refused") return one.failure.code !== "ENOTOOL" && one.failure.code !== "EINVAL"
  return one._tag === "Tool" || one._tag === "Task" || one._tag === "Twin"
}

/** One id of the provider twice in one reply: with the same arguments it is one call, with others it is none. */
const twinOf = ({ state }: Setting, call: Call): Effect.Effect<Prepared> | undefined => {
  if (call.providerId === "") return undefined
  // Also one that has its result already: an earlier process may have come that far.
  const first = state.session.turns.at(-1)?.observations.find((one) => one.providerId === call.providerId)
  if (first === undefined || first.call === call.call) return undefined
  if (first.tool === call.tool && first.paramsHash === call.params.hash) {
    return Effect.succeed({ _tag: "Twin", call, of: first.call })
  }
  const message = "the id of this call was used for another call of the same reply"
  return Effect.succeed(refused(call, { code: "EINVAL", message }))
}

const prepare = (setting: Setting, call: Call): Effect.Effect<Prepared> => {
  const params = Content.toJson(call.params)
  if (setting.delegate.names.has(call.tool)) return prepareChild(setting, call, params)
  const runnable = setting.tools.get(call.tool)
  if (runnable === undefined) {
    const known = [...setting.tools.keys(), ...setting.delegate.names].join(", ")
    const message = `there is no tool ${call.tool}; there are: ${known}`
    return Effect.succeed(refused(call, { code: "ENOTOOL", message }))
  }
  const prepared = andThen(runnable.decode(params), (decoded) => {
    const { contract } = runnable
    const raw = rawOf(params)
    let printed: string | undefined
    const print = () => (printed ??= printOf(call.tool, contract.version, meant(raw, contract.volatile)))
    const key = keyOf(setting, { call, runnable, params: decoded, print })
    const attempts = setting.state.control.started.get(call.call)?.attempts ?? 0
    const [attempt, begun] = [attempts + 1, attempts > 0]
    return check(setting, { _tag: "Tool", call, runnable, params: decoded, print, key, attempt, begun }, raw)
  })
  return isDone(prepared) ? prepared : prepared.pipe(Effect.catch((failure) => Effect.succeed(refused(call, failure))))
}

/** The key under which the effect of a call counts once, if it has one. */
const keyOf = (
  { run, agent }: Setting,
  { call, runnable: { contract }, params, print }: Pick<Ready, "call" | "runnable" | "params" | "print">,
): string | undefined =>
  contract.effect === "read" || contract.idempotency !== "key"
    ? undefined
    : (contract.key(params as never, { agent, call: call.call }) ?? `${run}/${print()}`)

/** Arguments may come as the raw string of the model. */
const rawOf = (params: unknown): unknown =>
  typeof params === "string"
    ? Result.getOrElse(
        Result.try((): unknown => JSON.parse(params)),
        () => params,
      )
    : params

const prepareChild = (setting: Setting, call: Call, params: unknown): Effect.Effect<Prepared> => {
  const account = setting.state.control.started.get(call.call)?.child
  return setting.delegate.decode(call.tool, params).pipe(
    Effect.match({
      onFailure: (failure): Prepared => refused(call, failure),
      onSuccess: (task): Prepared =>
        account === undefined
          ? { _tag: "Task", call, task }
          : {
              _tag: "Started",
              call,
              child: setting.delegate.goOn({ call: call.call, tool: call.tool, task }, account),
            },
    }),
  )
}

const check = (setting: Setting, ready: Ready, raw: unknown): Effect.Effect<Prepared, ToolFailure> => {
  const { effect, scopes, approval, preconditions: asked } = ready.runnable.contract
  const asksNothing = scopes === undefined && approval === false && asked.length === 0
  // The way of a plain read.
  return effect === "read" && asksNothing ? Effect.succeed(ready) : checkAll(setting, ready, raw)
}

const checkAll = (setting: Setting, ready: Ready, raw: unknown): Effect.Effect<Prepared, ToolFailure> =>
  Effect.gen(function* (): Effect.fn.Return<Prepared, ToolFailure> {
    const asks = yield* permission(setting, ready, raw)
    // A call that began in an earlier process passed all of this then; what became of it is asked when it runs.
    if (ready.begun) return ready
    if (!isRepeatable(ready) && !isSettledBefore(setting, ready)) {
      const approval = setting.effects.questionAbout(markOf(ready))
      if (approval !== undefined) return { _tag: "Waiting", call: ready.call, approval }
      if (setting.effects.isUncertain(markOf(ready))) return yield* Effect.fail(stillUncertain)
    }
    const receipt = ready.key === undefined ? undefined : setting.effects.receipt(ready.key)
    if (receipt !== undefined) return { _tag: "Replay", call: ready.call, receipt }
    yield* preconditions(ready)
    const reason = asks ?? (yield* reasonToAsk(setting, ready))
    return reason === undefined ? ready : yield* approved(setting, ready, { raw, reason })
  })

/** A call before it in the same reply began the same effect, and is cleared up first. */
const isSettledBefore = ({ state }: Setting, ready: Ready): boolean =>
  [...state.control.started.values()].some(({ mark }) => mark === markOf(ready))

export const stillUncertain: ToolFailure = {
  code: "EUNCERTAIN",
  message: "nobody knows whether the same call had its effect before: find that out instead of repeating it",
}

/** Fails where a permission is denied; answers with a reason where a person has to be asked. */
const permission = (
  setting: Setting,
  { call, runnable, params }: Ready,
  raw: unknown,
): Effect.Effect<string | undefined, ToolFailure> =>
  Effect.gen(function* () {
    const agent = setting.purse.ledger.account(setting.purse.account).path
    let reason: string | undefined
    for (const scope of runnable.contract.scopes?.(params as never) ?? []) {
      const said: Permission = yield* setting.permissions.check({ agent, tool: call.tool, scope, params: raw })
      if (said === "ask") reason = `${scope} has to be agreed to`
      else if (said !== "allow") return yield* Effect.fail(denied(said.deny))
    }
    return reason
  })

const denied = (message: string): ToolFailure => ({
  code: "EPERM",
  class: "permission",
  message,
  suggestedAction: stopAndRequestHuman,
})

/** Every precondition of a call; one that breaks down does not hold. */
export const preconditions = ({ runnable, params }: Ready): Effect.Effect<void, ToolFailure> =>
  Effect.forEach(
    runnable.contract.preconditions,
    ({ name, check: holds }) =>
      Effect.suspend(() => holds(params as never)).pipe(
        Effect.catchCause((cause) => Effect.succeed({ message: messageOfCause(cause) })),
        Effect.flatMap((verdict) => (verdict === true ? Effect.void : Effect.fail(unfulfilled(name, verdict)))),
      ),
    { discard: true },
  )

const unfulfilled = (name: string, verdict: { readonly message: string; readonly stop?: boolean }): ToolFailure => ({
  code: "EPRECOND",
  class: "mistake",
  message: `${name}: ${verdict.message}`,
  ...(verdict.stop === true ? { suggestedAction: stopAndRequestHuman } : {}),
})

/** Why a person has to agree to a call, if one has to. */
const reasonToAsk = (
  setting: Setting,
  { call, runnable, params }: Ready,
): Effect.Effect<string | undefined, ToolFailure> => {
  const { contract } = runnable
  if (contract.effect === "irreversible" && setting.state.control.untrusted) {
    return Effect.succeed("it cannot be undone, and what the agent has read since comes from outside")
  }
  const { approval } = contract
  return Effect.suspend(() => {
    if (typeof approval === "boolean") return Effect.succeed(approval)
    const messages = {
      toolCallId: call.call,
      get messages() {
        return setting.messages()
      },
    }
    const needs = approval(params as never, messages)
    return Effect.isEffect(needs) ? needs : Effect.succeed(needs)
  }).pipe(
    Effect.map((needs) => (needs ? "its contract asks for approval" : undefined)),
    Effect.catchDefect((defect) =>
      Effect.fail<ToolFailure>({ code: "EFATAL", class: "fatal", message: `its approval: ${messageOf(defect)}` }),
    ),
  )
}

/** Goes on where a person has agreed to just this call; else the call stands still. */
const approved = (
  setting: Setting,
  ready: Ready,
  of: { readonly raw: unknown; readonly reason: string },
): Effect.Effect<Prepared, ToolFailure> =>
  Effect.suspend(() => {
    const { run, agent, step, state } = setting
    const { call } = ready
    const subject = { run, agent, call, version: ready.runnable.contract.version, params: of.raw }
    const standing = Approval.standing(state, subject, "approval")
    switch (standing._tag) {
      case "Open":
        return Effect.succeed<Prepared>({ _tag: "Waiting", call, approval: standing.approval })
      case "Decided":
        return standing.decision.decision === "approved"
          ? Effect.succeed(ready)
          : Effect.fail(saidNo(standing.decision.note))
      case "NotAsked": {
        const asked = Approval.question(state, subject, { kind: "approval", reason: of.reason, step })
        setting.record(asked)
        return Effect.succeed<Prepared>({ _tag: "Waiting", call, approval: asked.approval })
      }
    }
  })

const saidNo = (note: string | undefined): ToolFailure => ({
  code: "EDENIED",
  class: "permission",
  message: note === undefined ? "a person said no" : `a person said no: ${note}`,
  suggestedAction: stopAndRequestHuman,
})
