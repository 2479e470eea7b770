/**
 * The state of an agent as a conversation for a language model, and a reply of the model as a proposal.
 *
 * Messages of a turn are made once: a history only grows at its end. Calls go out under our own ids, which are unique,
 * whatever ids the provider gave.
 */
import * as Prompt from "effect/ai/Prompt"
import { dimensions } from "../budget/Budget.ts"
import { wordOf } from "../event/StopReason.ts"
import type { Reply, Request } from "../model/Model.ts"
import type { Observation, Turn } from "../state/State.ts"
import { finishTool } from "./Answer.ts"
import type { View } from "./Policy.ts"
import { invalid, type Proposal } from "./Proposal.ts"

/** The request that asks for the next decision, or for the last answer. */
export const requestFor = (view: View): Request => {
  const wrapUp = view.purpose === "wrap_up"
  const messages = [
    ...opening(view),
    ...view.turns.flatMap(messagesOf),
    Prompt.userMessage({ content: [Prompt.textPart({ text: wrapUp ? closing : standing(view) })] }),
  ]
  if (wrapUp && !view.answer.isText) {
    return { messages, tools: [], answer: { tool: view.answer.finish, schema: view.answer.parameters } }
  }
  return { messages, tools: wrapUp ? [] : view.answer.isText ? view.tools : [...view.tools, view.answer.finish] }
}

const closing =
  "The budget for this task is nearly used up, and tools are withdrawn. Give your answer now from what you know, and say what is missing."

/** What is left, so that the model can plan with it. */
const standing = (view: View): string => {
  const { explore } = view.left
  const left = dimensions.flatMap((d) => (explore[d] === undefined ? [] : [`${wordOf(d)} ${explore[d]}`]))
  const time = view.leftMillis === undefined ? [] : [`time ${Math.floor(view.leftMillis / 1000)} s`]
  const parts = [...left, ...time]
  return parts.length === 0 ? "Go on." : `Go on. Left for this task: ${parts.join(", ")}.`
}

const howToFinish = (view: View): string =>
  view.answer.isText ? "Answer in plain text once you are done." : `Give your answer by calling ${finishTool}.`

interface Opening {
  readonly system: string
  readonly task: string
  readonly messages: ReadonlyArray<Prompt.Message>
}

/** The opening of a conversation is the same in every step, unless a policy shows its model another view. */
const openings = new WeakMap<ReadonlyArray<Turn>, Opening>()

const opening = (view: View): ReadonlyArray<Prompt.Message> => {
  const [system, { task }] = [`${view.instructions}\n\n${howToFinish(view)}`, view]
  const known = openings.get(view.turns)
  if (known?.system === system && known.task === task) return known.messages
  const messages = [
    Prompt.systemMessage({ content: system }),
    Prompt.userMessage({ content: [Prompt.textPart({ text: task })] }),
  ]
  openings.set(view.turns, { system, task, messages })
  return messages
}

const encoded = new WeakMap<Turn, ReadonlyArray<Prompt.Message>>()

const messagesOf = (turn: Turn): ReadonlyArray<Prompt.Message> => {
  const known = encoded.get(turn)
  if (known !== undefined) return known
  const made = [...said(turn), ...answered(turn)]
  encoded.set(turn, made)
  return made
}

const said = (turn: Turn): ReadonlyArray<Prompt.Message> => {
  const text = turn.text === undefined || turn.text === "" ? [] : [Prompt.textPart({ text: turn.text })]
  const calls = turn.observations.map((one) =>
    Prompt.toolCallPart({ id: one.call, name: one.tool, params: one.params, providerExecuted: false }),
  )
  const answer = turn.answer === undefined || turn.answer === turn.text ? undefined : JSON.stringify(turn.answer)
  const finish = answer === undefined || answer === turn.text ? [] : [Prompt.textPart({ text: answer })]
  const content = [...text, ...finish, ...calls]
  return content.length === 0 ? [] : [Prompt.assistantMessage({ content })]
}

const answered = (turn: Turn): ReadonlyArray<Prompt.Message> => {
  const results = turn.observations.map((one) =>
    Prompt.toolResultPart({
      id: one.call,
      name: one.tool,
      isFailure: one.outcome === "error",
      result: resultOf(one),
      providerExecuted: false,
    }),
  )
  return [
    ...(results.length === 0 ? [] : [Prompt.toolMessage({ content: results })]),
    ...turn.feedback.map((text) => Prompt.userMessage({ content: [Prompt.textPart({ text })] })),
  ]
}

const resultOf = (one: Observation): unknown =>
  one.error === undefined ? (one.data ?? null) : { code: one.error.code, message: one.error.message }

/** What a reply proposes. A `finish` among other calls does not finish: the host answers it like a wrong call. */
export const propose = (reply: Reply, view: View): Proposal => {
  const text = reply.text === "" ? {} : { text: reply.text }
  if (view.purpose === "wrap_up" && reply.calls.length === 0) return wrapUpOf(reply, view)
  const [only] = reply.calls
  if (only?.name === finishTool && reply.calls.length === 1) {
    return { _tag: "Finish", answer: view.answer.unwrap(only.params), ...text }
  }
  if (reply.calls.length > 0) {
    const calls = reply.calls.map((one) => ({ tool: one.name, params: one.params, id: one.id }))
    return { _tag: "Call", calls, ...text }
  }
  if (reply.text === "") return invalid("The reply was empty.")
  if (reply.cut) return { ...invalid("The reply was cut off by the limit on its length."), ...text }
  return view.answer.isText
    ? { _tag: "Finish", answer: reply.text, ...text }
    : { ...invalid(`Text alone does not finish this task: call ${finishTool}.`), ...text }
}

const wrapUpOf = (reply: Reply, view: View): Proposal => {
  if (reply.text === "") return invalid("The reply was empty.")
  const answer = view.answer.isText ? reply.text : view.answer.unwrap(reply.text)
  return { _tag: "Finish", answer, text: reply.text }
}
