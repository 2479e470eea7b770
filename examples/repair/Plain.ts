/**
 * Deciding without a model: policies that are ordinary functions of what was seen so far. They run the tests, read what
 * those print, look up the function it is about, and change it where a rule says how.
 */
import { Policy, Proposal, type State } from "../../src/index.ts"
import { counted } from "../shared/Table.ts"
import * as Clues from "./Clues.ts"
import * as Mend from "./Mend.ts"
import type { Diagnosis, Fix, Report, Vector } from "./Team.ts"

type Seen = ReadonlyArray<State.Observation>

const observationsOf = (view: Policy.View): Seen => view.turns.flatMap((turn) => turn.observations)

interface Ran {
  readonly exitCode: number | null
  readonly stdout: string
}

interface Page {
  readonly path: string
  readonly version: string
  readonly text: string
}

interface Hits {
  readonly hits: ReadonlyArray<{ readonly path: string; readonly line: number; readonly text: string }>
}

interface ChildResult<A> {
  readonly status: "completed" | "stopped"
  readonly reason?: string
  readonly answer?: A
}

/** What each tool answers with. */
interface Results {
  readonly run_command: Ran
  readonly search_files: Hits
  readonly investigator: ChildResult<Diagnosis>
  readonly fixer: ChildResult<Fix>
}

const last = <Tool extends keyof Results>(seen: Seen, tool: Tool): Results[Tool] | undefined =>
  seen.findLast((one) => one.tool === tool && one.outcome === "ok")?.data as Results[Tool] | undefined

const pageOf = (seen: Seen, path: string): Page | undefined =>
  seen
    .filter((one) => one.tool === "read_file" && one.outcome === "ok")
    .map((one) => one.data as Page)
    .findLast((page) => page.path === path)

const runTests = (test: Vector): Proposal.Proposal => Proposal.call("run_command", test)

// --- the investigator

/** Runs the tests, reads the first one that fails, and looks up the function that it is about. */
export const investigator = (test: Vector): Policy.Policy =>
  Policy.make((view) => {
    const seen = observationsOf(view)
    const ran = last(seen, "run_command")
    if (view.purpose === "wrap_up") return Proposal.finish(diagnosisOf(seen))
    if (ran === undefined) return runTests(test)
    const [failure] = Clues.failures(ran.stdout)
    if (failure === undefined) return Proposal.finish(diagnosisOf(seen))
    const { at } = failure
    if (pageOf(seen, at.file) === undefined) return Proposal.call("read_file", { path: at.file })
    const name = functionOf(seen, failure)
    const hits = last(seen, "search_files")
    if (name === undefined) return Proposal.finish(diagnosisOf(seen))
    if (hits === undefined) return Proposal.call("search_files", definitionsOf(name))
    const [hit] = hits.hits
    return hit === undefined || pageOf(seen, hit.path) !== undefined
      ? Proposal.finish(diagnosisOf(seen))
      : Proposal.call("read_file", { path: hit.path })
  })

const definitionsOf = (name: string) => ({
  query: String.raw`function ${name}\(|(const|let) ${name} =`,
  regexp: true,
  glob: "**/*.{js,mjs,cjs,ts,mts,cts}",
})

/** The function that gave the error, else the one that the test calls. */
const functionOf = (seen: Seen, failure: Clues.Failure): string | undefined =>
  failure.raisedIn?.function ?? callOf(seen, failure)?.function

const callOf = (seen: Seen, { at }: Clues.Failure): Clues.Call | undefined =>
  Clues.callIn(pageOf(seen, at.file)?.text.split("\n")[at.line - 1] ?? "")

const diagnosisOf = (seen: Seen): Diagnosis => {
  const ran = last(seen, "run_command")
  const all = Clues.failures(ran?.stdout ?? "")
  const failing = all.map((one) => one.name)
  const [failure] = all
  if (failure === undefined) {
    return { failing, cause: ran?.exitCode === 0 ? "No test fails." : "The output of the tests names no test." }
  }
  const name = functionOf(seen, failure)
  const hit = last(seen, "search_files")?.hits[0]
  const input = callOf(seen, failure)?.input
  return {
    failing,
    cause: causeOf(seen, failure, input),
    ...(name === undefined || hit === undefined ? {} : { suspect: { function: name, file: hit.path, line: hit.line } }),
    ...(input === undefined ? {} : { input }),
  }
}

/** The error, and what is special about the input; the same text in ordinary characters may stand in another test. */
const causeOf = (seen: Seen, { at, error }: Clues.Failure, input: string | undefined): string => {
  const wide = input === undefined ? [] : Clues.fullWidthIn(input)
  if (input === undefined || wide.length === 0) return error
  const plain = Clues.ordinary(input)
  const lines = pageOf(seen, at.file)?.text.split("\n") ?? []
  const line = lines.findIndex((text) => text.includes(JSON.stringify(plain))) + 1
  const known = line === 0 ? "" : `, which line ${line} of ${at.file} expects to be understood`
  return `${error}. ${wide.join(" ")} in "${input}" is full-width; in ordinary characters it is "${plain}"${known}.`
}

// --- the fixer

/** What the fixer is to do, in words; the lines with a name are read back by {@link targetOf}. */
const taskOf = ({ failing, cause, suspect, input }: Diagnosis): string =>
  [
    `Make ${counted(failing.length, "failing test")} pass: ${failing.join("; ")}.`,
    `cause: ${cause}`,
    ...(suspect === undefined ? [] : [`function: ${suspect.function}`, `file: ${suspect.file}`]),
    ...(input === undefined ? [] : [`input: ${JSON.stringify(input)}`]),
  ].join("\n")

interface Target {
  readonly function: string
  readonly file: string
  readonly input: string
}

const targetOf = (task: string): Target | undefined => {
  const line = (name: string) => new RegExp(`^${name}: (.+)$`, "m").exec(task)?.[1]
  const [name, file, input] = [line("function"), line("file"), line("input")]
  if (name === undefined || file === undefined || input === undefined) return undefined
  return { function: name, file, input: JSON.parse(input) as string }
}

/** Reads the file, sees the tests fail, changes the function, and sees the tests pass. */
export const fixer = (test: Vector): Policy.Policy =>
  Policy.make((view) => {
    const seen = observationsOf(view)
    const target = targetOf(view.task)
    if (view.purpose === "wrap_up" || target === undefined) return Proposal.finish(fixOf(seen, target))
    // What was read before a patch, or before one that came to nothing, says nothing about the file any more.
    const patched = seen.findLastIndex((one) => one.tool === "patch_file")
    const changed = patched >= 0 && seen[patched]?.outcome === "ok"
    const since = seen.slice(patched + 1)
    const page = pageOf(since, target.file)
    if (!changed && page === undefined) return Proposal.call("read_file", { path: target.file })
    const ran = last(since, "run_command")
    if (ran === undefined) return runTests(test)
    if (changed || ran.exitCode === 0 || page === undefined) return Proposal.finish(fixOf(seen, target))
    const edit = Mend.edit(page.text, target.function, target.input)
    return edit === undefined
      ? Proposal.finish(fixOf(seen, target))
      : Proposal.call("patch_file", { path: page.path, version: page.version, edits: [edit] })
  })

const fixOf = (seen: Seen, target: Target | undefined): Fix => {
  const changes = seen.filter((one) => one.stateChanged).flatMap((one) => one.resources)
  const files = [...new Set(changes.map((resource) => resource.path))]
  if (target === undefined) return { summary: "The task names no function, file and input.", files }
  const rule = Mend.ruleName(target.input)
  const what = files.length > 0 && rule !== undefined ? rule : "nothing was changed"
  return { summary: `${target.function} in ${target.file}: ${what}.`, files }
}

// --- the maintainer

/** **Units**: how often each is asked. */
const mostAsked = 2

/** Has the cause found out, has it mended, and reports. */
export const maintainer: Policy.Policy = Policy.make((view) => {
  const seen = observationsOf(view)
  const asked = (tool: string) => seen.filter((one) => one.tool === tool).length
  const diagnosis = last(seen, "investigator")?.answer
  const fix = last(seen, "fixer")?.answer
  if (view.purpose === "wrap_up") return Proposal.finish(reportOf(diagnosis, fix))
  if (diagnosis === undefined && asked("investigator") < mostAsked) {
    return Proposal.call("investigator", { task: `Find out why the tests fail. ${view.task}` })
  }
  if (diagnosis !== undefined && (fix?.files ?? []).length === 0 && asked("fixer") < mostAsked) {
    return Proposal.call("fixer", { task: taskOf(diagnosis) })
  }
  return Proposal.finish(reportOf(diagnosis, fix))
})

const reportOf = (diagnosis: Diagnosis | undefined, fix: Fix | undefined): Report => ({
  summary: fix?.summary ?? "Nothing was changed.",
  cause: diagnosis?.cause ?? "The cause was not found out.",
  files: fix?.files ?? [],
})
