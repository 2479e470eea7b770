/**
 * The tools of a case as tools of Bursar, with the contracts that its words stand for.
 */
import * as Schema from "effect/Schema"
import * as Tool from "effect/ai/Tool"
import { Contract, ToolError } from "../../src/index.ts"
import type { Tool as ToolScript } from "./Case.ts"
import { nanoPerMicro } from "./Script.ts"

/** Stands for an effect in the world: the same effect twice is one. */
export const keyOf = (tool: ToolScript, params: unknown, call: string, count: number): string => {
  switch (tool.idem) {
    case "args":
      return `${tool.name}:${JSON.stringify(params)}`
    case "none":
      return `${tool.name}:#${count}`
    default:
      return `${tool.name}:${call}:${JSON.stringify(params)}`
  }
}

export const toolOf = (tool: ToolScript, retries: number): Tool.Any =>
  Contract.annotate(
    Tool.make(tool.name, {
      parameters: Schema.Record(Schema.String, Schema.Unknown),
      success: Schema.Unknown,
      failure: Schema.Union([Schema.String, ToolError.ToolError]),
    }),
    {
      effect: tool.effect === true ? "write" : "read",
      idempotency: tool.idem === "none" ? "none" : "key",
      ...(tool.idem === "args"
        ? {}
        : { key: (_params: unknown, at: { agent: string; call: string }) => `${at.agent} ${at.call}` }),
      whenUncertain: "tell",
      retries,
      backoff: 0,
      costNanoUsd: (tool.uusd ?? 0) * nanoPerMicro,
      ...(tool.timeout_ms === undefined ? {} : { timeout: tool.timeout_ms }),
      ...(tool.volatile === undefined ? {} : { volatile: tool.volatile }),
    },
  )
