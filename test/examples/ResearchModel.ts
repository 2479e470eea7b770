/**
 * A scripted "language model" for the research job: it reads the conversation it is sent, as a provider would see it, and
 * decides like a good model: researchers search, read and finish; the lead sends out three and reports.
 */
import type { TestingServer } from "../../src/testing/index.ts"

type Item = { readonly [key: string]: unknown }

const questions = ["aborted request errors", "AbortSignal option of a request", "what destroy does to running requests"]

const toolsOf = (body: TestingServer.RequestBody): ReadonlyArray<string> =>
  (body.tools ?? []).map((tool) => String(tool["name"]))

const outputs = (body: TestingServer.RequestBody): ReadonlyArray<unknown> =>
  body.input
    .filter((item: Item) => item["type"] === "function_call_output")
    .map((item: Item): unknown => {
      const output = String(item["output"])
      return output.startsWith("{") || output.startsWith("[") || output.startsWith('"') ? JSON.parse(output) : output
    })

interface Hit {
  readonly file: string
  readonly line: number
  readonly text: string
}

const call = (name: string, args: Readonly<Record<string, unknown>>, n: number) => ({
  id: `call_${n}`,
  name,
  arguments: args,
})

/** The first long line of what was read that speaks of the question. */
const quoteIn = (page: unknown): { readonly quote: string; readonly line: number } | undefined => {
  for (const text of String(page).split("\n")) {
    const match = /^(\d+): (.*)$/.exec(text)
    if (match !== null && /abort|request/i.test(match[2]!) && match[2]!.trim().split(/\s+/).length > 5) {
      return { line: Number(match[1]), quote: match[2]!.trim() }
    }
  }
  return undefined
}

const researcher = (body: TestingServer.RequestBody): TestingServer.Turn => {
  const seen = outputs(body)
  if (seen.length === 0) return { calls: [call("search", { query: "request aborted AbortSignal" }, 1)] }
  const hits = seen[0] as ReadonlyArray<Hit>
  const hit = hits[0]!
  if (seen.length === 1) {
    return { calls: [call("read", { file: hit.file, from: Math.max(1, hit.line - 2), to: hit.line + 4 }, 2)] }
  }
  const found = quoteIn(seen[1])
  const findings = found === undefined ? [] : [{ claim: "The documents say so.", file: hit.file, ...found }]
  return { calls: [call("finish", { findings }, 3)] }
}

const lead = (body: TestingServer.RequestBody): TestingServer.Turn => {
  const seen = outputs(body) as ReadonlyArray<{ readonly answer?: { readonly findings: ReadonlyArray<unknown> } }>
  if (seen.length === 0) return { calls: questions.map((task, index) => call("researcher", { task }, index + 1)) }
  const findings = seen.flatMap((one) => one.answer?.findings ?? [])
  return { calls: [call("finish", { summary: "Reported by a model.", findings, missing: [] }, 9)] }
}

/** Decides for whichever agent asks. */
export const script = (body: TestingServer.RequestBody): TestingServer.Turn =>
  toolsOf(body).includes("researcher") ? lead(body) : researcher(body)
