/**
 * What stands for the content of an operation under its id, in memory and in the journal: long enough that two contents
 * never share one by chance, short enough for every line.
 */
import { hash } from "node:crypto"

/**
 * Equal for equal content, whatever the order of its fields; a field that is `undefined` counts as left out, and -0 as 0.
 */
export const digest = (content: unknown): string => hash("sha256", canonical(content), "base64url").slice(0, 12)

const canonical = (value: unknown): string => {
  if (typeof value === "string") return `${value.length}"${value}`
  if (typeof value === "bigint") return `${value}n`
  if (typeof value !== "object" || value === null) return String(value)
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
  const fields = value as Readonly<Record<string, unknown>>
  let text = ""
  for (const name of Object.keys(fields).toSorted())
    if (fields[name] !== undefined) text += `${canonical(name)}:${canonical(fields[name])},`
  return `{${text}}`
}
