/**
 * A finished reply as the parts of a stream: every text becomes a start, one delta and an end.
 */
import type * as AiResponse from "effect/ai/Response"

export const toStreamParts = (
  parts: ReadonlyArray<AiResponse.PartEncoded>,
): ReadonlyArray<AiResponse.StreamPartEncoded> => parts.flatMap((part, index) => fromPart(part, `${index}`))

const fromPart = (part: AiResponse.PartEncoded, id: string): ReadonlyArray<AiResponse.StreamPartEncoded> => {
  if (part.type === "text") {
    return [
      { type: "text-start", id, metadata: part.metadata },
      { type: "text-delta", id, delta: part.text },
      { type: "text-end", id },
    ]
  }
  if (part.type !== "reasoning") return [part]
  return [
    { type: "reasoning-start", id },
    { type: "reasoning-delta", id, delta: part.text },
    { type: "reasoning-end", id },
  ]
}
