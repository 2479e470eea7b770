/**
 * Messages and tools of Chat Completions in the form of Responses, and whether calls and outputs pair up.
 */
import { record, records } from "./Json.ts"
import type { Json } from "./Turn.ts"

/** Chat messages as Responses items, in order. */
export const toItems = (messages: ReadonlyArray<Json>): ReadonlyArray<Json> =>
  messages.flatMap((message): ReadonlyArray<Json> => {
    const { content, refusal, role, tool_call_id: id, tool_calls: calls } = message
    if (role === "tool") return [{ type: "function_call_output", call_id: id, output: toContent(content, role) }]
    const refused = typeof refusal === "string" ? [{ role, content: [{ type: "refusal", refusal }] }] : []
    const said = content === null || content === undefined ? [] : [{ role, content: toContent(content, role) }]
    return [...said, ...refused, ...(records(calls) ?? []).map(toCall)]
  })

const toCall = (call: Json): Json => {
  const { arguments: args, name } = record(call["function"])
  return { type: "function_call", call_id: call["id"], name, arguments: args }
}

const toContent = (content: unknown, role: unknown): unknown =>
  records(content)?.map((part) => {
    const { image_url: image, type } = part
    if (type === "text") return { ...part, type: role === "assistant" ? "output_text" : "input_text" }
    if (type !== "image_url") return part
    const { detail, url } = record(image)
    return { type: "input_image", image_url: url, detail: detail ?? "auto" }
  }) ?? content

/** Chat tools in the flat form of Responses; what is no list of tools as it is. */
export const toTools = (tools: unknown): ReadonlyArray<Json> | undefined =>
  records(tools)?.map((tool) =>
    tool["type"] === "function" ? { type: "function", ...record(tool["function"]) } : tool,
  ) ?? (tools as ReadonlyArray<Json> | undefined)

/** What is wrong with the calls and outputs of a conversation: each call has one output, after it. */
export const unpaired = (items: ReadonlyArray<Json>): string | undefined => {
  const open = new Map<unknown, number>()
  for (const item of items) {
    const id = item["call_id"]
    const count = open.get(id) ?? 0
    if (item["type"] === "function_call") open.set(id, count + 1)
    if (item["type"] !== "function_call_output") continue
    if (count === 0) return `no tool call found for function call output with call_id ${JSON.stringify(id)}`
    open.set(id, count - 1)
  }
  const [id] = [...open].find(([, count]) => count > 0) ?? []
  return id === undefined ? undefined : `no tool output found for function call ${JSON.stringify(id)}`
}
