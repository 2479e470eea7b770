/**
 * The chunks of a Chat Completions stream, put together to the completion they are pieces of.
 *
 * Servers break it up in ways of their own. A fragment of a call may come without index, id or name, with all of them
 * repeated, or under the index of another call; usage may come at the end, on every chunk (a running total, of which the
 * last counts), beside a choice, or never; so may the reason of the end.
 */
import { textIn, usageIn } from "./chatReply.ts"
import { asArray, asNumber, asRecord, asText, type Json, named } from "./json.ts"
import type { Assembly, Step } from "./stream.ts"

/** Puts the chunks of a stream together. */
export const assembly = (): Assembly => {
  const about: Record<string, unknown> = {}
  const message = { content: "", refusal: "", reasoning_content: "" }
  const calls = new Calls()
  let hasBegun = false
  let reason: string | undefined
  let usage: unknown
  const step = (chunk: Json): Step => {
    const error = chunk["error"]
    if (error !== undefined && error !== null) return { failed: { code: asRecord(error)["code"] } }
    for (const name of ["id", "model", "created", "service_tier"]) about[name] = chunk[name] ?? about[name]
    const choice = asArray(chunk["choices"])
      .map(asRecord)
      .find((one) => (one["index"] ?? 0) === 0)
    usage = usageIn(chunk, choice) ?? usage
    if (choice === undefined) return {}
    hasBegun = true
    reason = named(choice["finish_reason"]) ?? reason
    // Some servers send the last piece as a message.
    const delta = asRecord(choice["delta"] ?? choice["message"])
    asArray(delta["tool_calls"]).map(asRecord).forEach(calls.add)
    const [content, refusal] = [textIn(delta["content"]), asText(delta["refusal"])]
    message.content += content
    message.refusal += refusal
    message.reasoning_content += asText(delta["reasoning_content"] ?? delta["reasoning"])
    return { text: content + refusal }
  }
  return {
    step,
    // Without `[DONE]` the reason of the end says that nothing is missing.
    whole: (isDone) => {
      if (!isDone && reason === undefined) return undefined
      const choice = { index: 0, finish_reason: reason, message: { ...message, tool_calls: calls.all } }
      return { ...about, choices: hasBegun ? [choice] : [], usage }
    },
    id: () => named(about["id"]),
  }
}

interface Begun {
  readonly index: number | undefined
  id: string
  readonly function: { name: string; arguments: string }
}

/** Calls out of their fragments. */
class Calls {
  readonly all: Array<Begun> = []

  readonly add = (fragment: Json): void => {
    const { arguments: args, name } = asRecord(fragment["function"])
    const of = { index: asNumber(fragment["index"]), id: asText(fragment["id"]), name: asText(name) }
    const text = typeof args === "object" && args !== null ? JSON.stringify(args) : asText(args)
    const found = this.#find(of)
    // Nothing can follow what is whole: a fragment that names its call again begins another one, or says the same twice.
    const isAgain = found !== undefined && of.name !== "" && text.trim() !== "" && isWhole(found.function.arguments)
    if (isAgain && of.id !== "" && of.id === found.id && text === found.function.arguments) return
    const call = found === undefined || isAgain ? this.#begin(of.index) : found
    if (call.id === "") call.id = of.id
    if (call.function.name === "") call.function.name = of.name
    call.function.arguments += text
  }

  #begin(index: number | undefined): Begun {
    const call = { index, id: "", function: { name: "", arguments: "" } }
    this.all.push(call)
    return call
  }

  /** The call that a fragment belongs to: by its id, else by its index, else the last. */
  #find(of: Of): Begun | undefined {
    const known = of.id === "" ? undefined : this.all.findLast((one) => one.id === of.id && isAt(one, of.index))
    const call = known ?? this.all.findLast((one) => isAt(one, of.index))
    return call === undefined || isOther(call, of) ? undefined : call
  }
}

interface Of {
  readonly index: number | undefined
  readonly id: string
  readonly name: string
}

const isAt = (call: Begun, index: number | undefined): boolean => index === undefined || call.index === index

const isOther = (call: Begun, of: Of): boolean => {
  if (of.id !== "" && call.id !== "") return of.id !== call.id
  return of.name !== "" && call.function.name !== "" && of.name !== call.function.name
}

const isWhole = (text: string): boolean => {
  if (!text.trimEnd().endsWith("}")) return false
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
