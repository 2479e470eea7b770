/**
 * Killing the repair job at a moment, going on with it in another process, and looking at what is left: whether it came
 * to its answer, whether any effect happened twice, and whether the books are right.
 */
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { Budget, type Event } from "../../src/index.ts"
import * as Audit from "../../src/journal/Audit.ts"
import { FileJournal } from "../../src/node/index.ts"
import type { Life, Moment } from "./dying.ts"

const entry = path.resolve("test/repair/dying.ts")
const example = path.resolve("examples/repair.ts")
const project = path.resolve("examples/repair/project")

/** Where and how: all runs lie in one folder, and processes share what was compiled. */
export interface Setting {
  readonly folder: string
  readonly cache: string
}

/** A run that is to be killed, once or twice, and resumed after each time. */
export interface Point {
  readonly name: string
  readonly run: string
  readonly first: Moment
  readonly second?: Moment
}

/** What became of it. */
export interface Found {
  readonly point: Point
  /** The last event that the first process had written. */
  readonly lastEvent: string
  readonly resumedSteps: number
  readonly before: Budget.Amounts
  readonly after: Budget.Amounts
  readonly outcome: string
  /** How often the patch was in the file when the first process was dead, and in the end. */
  readonly patches: readonly [number, number]
  /** Whatever is not as it has to be. */
  readonly defects: ReadonlyArray<string>
}

interface Ended {
  readonly code: number | null
  readonly signal: string | null
  readonly stdout: string
  readonly stderr: string
}

// --- processes

const started = ({ folder, cache }: Setting, args: ReadonlyArray<string>): Promise<Ended> =>
  new Promise((resolve) => {
    const inherited = Object.entries(process.env).filter(([name]) => !/^(OPENAI|OTEL)_/.test(name))
    const env = { ...Object.fromEntries(inherited), NODE_COMPILE_CACHE: cache }
    const child = spawn(process.execPath, args, { cwd: folder, env })
    let [stdout, stderr] = ["", ""]
    child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()))
    child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()))
    child.on("close", (code, signal) => resolve({ code, signal, stdout, stderr }))
  })

const live = (setting: Setting, life: Life): Promise<Ended> => started(setting, [entry, JSON.stringify(life)])

const workOf = ({ folder }: Setting, run: string): string => path.join(folder, ".bursar/repair", run)

/**
 * Ends what a killed process has left running: whatever runs in the folder that it worked in. Comes back when nothing
 * does any more. Only Linux tells where a process runs; elsewhere the tests are given time to end by themselves.
 */
const endOrphans = async (folder: string): Promise<void> => {
  if (process.platform !== "linux") return new Promise((resolve) => setTimeout(resolve, 2000))
  for (;;) {
    const orphans = fs.readdirSync("/proc").filter((pid) => /^\d+$/.test(pid) && runsIn(pid, folder))
    if (orphans.length === 0) return
    for (const pid of orphans) end(Number(pid))
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

const runsIn = (pid: string, folder: string): boolean => {
  try {
    return fs.readlinkSync(`/proc/${pid}/cwd`).startsWith(folder)
  } catch {
    return false
  }
}

const end = (pid: number): void => {
  try {
    process.kill(pid, "SIGKILL")
  } catch {
    // It was faster.
  }
}

// --- reading

const eventsOf = ({ folder }: Setting, run: string): Promise<ReadonlyArray<Event.Recorded>> =>
  Effect.runPromise(FileJournal.read({ directory: path.join(folder, ".bursar/runs"), run }))

/** What was spent for good, per dimension, as the entries say. */
const spentIn = (events: ReadonlyArray<Event.Recorded>): Budget.Amounts =>
  events.reduce((sum, { event }) => {
    if (event._tag === "Settled") return Budget.add(sum, Budget.amounts(event.actual))
    if (event._tag === "Assumed") return Budget.add(sum, Budget.amounts(event.held))
    return event._tag === "Carved" ? Budget.add(sum, Budget.amounts(event.charge)) : sum
  }, Budget.zero)

const stepsAfterResume = (events: ReadonlyArray<Event.Recorded>): number => {
  const at = events.findIndex(({ event }) => event._tag === "RunResumed")
  return at < 0 ? 0 : events.slice(at).filter(({ event }) => event._tag === "Decided").length
}

// --- what has to hold

const fixed = `written.exec(text.normalize("NFKC").trim())`

const patchesIn = (source: string): number => source.split('.normalize("NFKC")').length - 1

/** The project as it was, with the one change that repairs it, and nothing besides. */
const worldDefects = (work: string): ReadonlyArray<string> => {
  const expected = filesOf(project)
  const source = expected.get("src/price.js") ?? ""
  expected.set("src/price.js", source.replace("written.exec(text.trim())", fixed))
  const found = filesOf(work)
  return [...new Set([...expected.keys(), ...found.keys()])]
    .filter((name) => expected.get(name) !== found.get(name))
    .map((name) => `${name} is not what it has to be`)
}

const filesOf = (root: string): Map<string, string> =>
  new Map(
    fs
      .readdirSync(root, { recursive: true, withFileTypes: true })
      .filter((one) => one.isFile())
      .map((one) => path.join(one.parentPath, one.name))
      .map((file) => [path.relative(root, file), fs.readFileSync(file, "utf8")] as const),
  )

const tagged = <Tag extends Event.Event["_tag"]>(events: ReadonlyArray<Event.Recorded>, tag: Tag) =>
  events.flatMap(({ event }) => (event._tag === tag ? [event as Event.EventOf<Tag>] : []))

/** No call has two results, and one call alone has changed something. */
const effectDefects = (events: ReadonlyArray<Event.Recorded>): ReadonlyArray<string> => {
  const ends = tagged(events, "CallEnded")
  const results = Map.groupBy(ends, ({ agent, call }) => `${agent} ${call}`)
  const twice = [...results].filter(([, list]) => list.length > 1).map(([call]) => `${call} has two results`)
  const effects = tagged(events, "CallStarted").filter(({ effect }) => effect !== "read")
  const changing = new Set(
    effects
      .filter(({ agent, call }) => results.get(`${agent} ${call}`)?.[0]?.stateChanged === true)
      .map(({ agent, call }) => `${agent} ${call}`),
  )
  const changes = ends.filter(({ outcome, stateChanged }) => outcome === "ok" && stateChanged).length
  return [
    ...twice,
    ...(changing.size === 1 && changes === 1 ? [] : [`${changes} results of ${changing.size} calls changed something`]),
  ]
}

const resolutions = ["Settled", "Voided", "Assumed"]

/** Every hold has one resolution; the books that the entries make balance, and are those that were reported. */
const bookDefects = (
  events: ReadonlyArray<Event.Recorded>,
  reported: ReadonlyArray<Budget.Row>,
): ReadonlyArray<string> => {
  const open = new Map<string, number>()
  for (const { event } of events) {
    if (event._tag === "Held") open.set(`${event.account} ${event.hold}`, 0)
    if (!resolutions.includes(event._tag) || !("hold" in event)) continue
    const id = `${event.account} ${event.hold}`
    open.set(id, (open.get(id) ?? 0) + 1)
  }
  const holds = [...open].filter(([, count]) => count !== 1).map(([id, count]) => `${id} is resolved ${count} times`)
  const entries = events.flatMap(({ event, atMillis }) => ("agent" in event ? [] : [{ entry: event, atMillis }]))
  const ledger = Budget.Ledger.restore(entries, { record: () => 0, nowMillis: () => events.at(-1)!.atMillis })
  if (Result.isFailure(ledger)) return [...holds, `the entries contradict: ${JSON.stringify(ledger.failure)}`]
  const rows = Budget.statement(ledger.success)
  const isReported = JSON.stringify(rows) === JSON.stringify(reported)
  return [
    ...holds,
    ...Budget.imbalances(rows),
    ...Budget.imbalances(reported),
    ...Budget.violations(ledger.success),
    ...(isReported ? [] : ["the books that were reported are not those of the journal"]),
  ]
}

const spendDefects = (stages: ReadonlyArray<Budget.Amounts>): ReadonlyArray<string> =>
  stages
    .slice(1)
    .flatMap((after, index) =>
      Budget.dimensions
        .filter((dimension) => after[dimension] < stages[index]![dimension])
        .map((dimension) => `${dimension}: ${stages[index]![dimension]} were spent, later ${after[dimension]}`),
    )

// --- one point

interface Printed {
  readonly reason: string
  readonly changedFiles: ReadonlyArray<string>
  readonly tests: { readonly before: number | null; readonly after: number | null }
  readonly accounts: ReadonlyArray<Budget.Row>
}

/** Kills a run at its moments, goes on with it each time, and looks at everything. */
export const kill = (setting: Setting, point: Point): Effect.Effect<Found> =>
  Effect.promise(() => killed(setting, point))

const killed = async (setting: Setting, point: Point): Promise<Found> => {
  const { run } = point
  const defects: Array<string> = []
  const stages: Array<Budget.Amounts> = []
  const dies = async (life: Life): Promise<ReadonlyArray<Event.Recorded>> => {
    const { code, signal, stderr } = await live(setting, life)
    await endOrphans(work)
    if (signal !== "SIGKILL") defects.push(`it was to be killed, and ended with ${code ?? signal}: ${stderr}`)
    const events = await eventsOf(setting, run)
    stages.push(spentIn(events))
    return events
  }
  const work = workOf(setting, run)
  const patches = () => patchesIn(fs.readFileSync(path.join(work, "src/price.js"), "utf8"))
  const before = await dies({ run, resume: false, moment: point.first })
  const patchesBefore = patches()
  if (point.second !== undefined) await dies({ run, resume: true, moment: point.second })
  const { code, stdout, stderr } = await started(setting, [example, "--resume", run, "--json"])
  const events = await eventsOf(setting, run)
  stages.push(spentIn(events))
  const printed = JSON.parse(stdout === "" ? "{}" : stdout) as Partial<Printed>
  const outcome = printed.reason ?? `exit ${code}: ${stderr.trim()}`
  const audit = Audit.audit(events)
  if (code !== 0 || outcome !== "completed") defects.push(`it ended ${outcome}`)
  if (printed.tests?.before !== 1 || printed.tests.after !== 0) defects.push("the tests do not pass")
  if (String(printed.changedFiles) !== "src/price.js") defects.push(`changed: ${String(printed.changedFiles)}`)
  defects.push(
    ...worldDefects(work),
    ...effectDefects(events),
    ...bookDefects(events, printed.accounts ?? []),
    ...spendDefects(stages),
    ...Audit.defects(audit).map(({ kind, what }) => `${kind}: ${what}`),
  )
  return {
    point,
    lastEvent: wordsOf(before.at(-1)),
    resumedSteps: stepsAfterResume(events),
    before: stages[0]!,
    after: stages.at(-1)!,
    outcome,
    patches: [patchesBefore, patches()],
    defects,
  }
}

const wordsOf = (recorded: Event.Recorded | undefined): string => {
  if (recorded === undefined) return "nothing"
  const { event } = recorded
  return [event._tag, ...("tool" in event ? [event.tool] : [])].join(" ")
}

/** How many events a run has that nobody kills; it also fills the cache of compiled code. */
export const undisturbed = (setting: Setting): Effect.Effect<number> =>
  Effect.promise(async () => {
    const run = "undisturbed"
    const { code, stderr } = await live(setting, { run, resume: false })
    if (code !== 0) throw new Error(`it does not even run undisturbed: ${stderr}`)
    return (await eventsOf(setting, run)).length
  })
