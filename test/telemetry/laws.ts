/**
 * The laws of traces (section 6 of what they are specified by), as pure functions over spans from anywhere: out of a
 * tracer, an exporter or a store. Each answers with what is wrong, in sentences; nothing, where all is well.
 */
import { Agent, type Event } from "../../src/index.ts"
import { isError } from "../../src/event/StopReason.ts"
import { all } from "../support/journalled.ts"
import { aboveOf, byTrace, idOf, isOurs, type Row } from "./Row.ts"

/** How a trace came about, where that changes what may be asked of it. */
export interface Circumstances {
  /** A process was killed: spans that were open are missing, and what was below them has no parent. */
  readonly killed?: boolean
  /** What a store rounds times by. */
  readonly toleranceNanos?: bigint
}

type Complaints = ReadonlyArray<string>

const usage = "gen_ai.usage."

/** Every law that one run breaks, given all of its spans and its whole journal. */
export const broken = (
  rows: ReadonlyArray<Row>,
  events: ReadonlyArray<Event.Recorded>,
  circumstances: Circumstances = {},
): Complaints => [
  ...trees(rows, circumstances),
  ...facts(rows),
  ...mirrored(rows, events),
  ...usages(rows, events),
  ...elsewhere(rows),
  ...told(rows, events),
  ...inside(rows, circumstances),
  ...statuses(rows),
  ...stopped(rows, events),
  ...marks(rows, events),
  ...links(rows),
]

/** T1: one root in each trace, no orphans, at most so deep and so large. */
export const trees = (rows: ReadonlyArray<Row>, { killed = false }: Circumstances = {}): Complaints =>
  [...byTrace(rows)].flatMap(([traceId, trace]) => {
    const byId = new Map(trace.map((row) => [row.spanId, row]))
    const roots = trace.filter(({ parentId }) => parentId === undefined)
    const orphans = trace.filter(({ parentId }) => parentId !== undefined && !byId.has(parentId))
    const depth = (row: Row): number => {
      const parent = row.parentId === undefined ? undefined : byId.get(row.parentId)
      return parent === undefined ? 1 : 1 + depth(parent)
    }
    const deepest = Math.max(...trace.map(depth))
    return [
      ...(roots.length === 1 || killed ? [] : [`the trace ${traceId} has ${roots.length} roots`]),
      ...(killed ? [] : orphans.map(({ name }) => `${name} in ${traceId} has no parent`)),
      ...(byId.size === trace.length ? [] : [`the trace ${traceId} has a span twice`]),
      ...(trace.length <= 2_000 ? [] : [`the trace ${traceId} has ${trace.length} spans`]),
      ...(deepest <= 64 ? [] : [`the trace ${traceId} is ${deepest} levels deep`]),
    ]
  })

/** Run and node stand on every span, so that one search finds all of it. */
export const facts = (rows: ReadonlyArray<Row>): Complaints =>
  rows
    .filter(isOurs)
    .flatMap(({ name, attributes }) =>
      ["bursar.run.id", "bursar.node.id", "bursar.node.path", "bursar.node.depth", "bursar.schema"]
        .filter((key) => !(key in attributes))
        .map((key) => `${name} has no ${key}`),
    )

const isNode = ({ name }: Row): boolean => name.startsWith("invoke_agent ") || name.startsWith("bursar.scope ")

/** Agents that started in a process that wrote traces. */
const isTraced = ({ trace }: Event.EventOf<"AgentStarted">): boolean => trace !== undefined

/** T2: each account that came to run has one span (one for each process that went on with it), under that of its parent. */
export const mirrored = (rows: ReadonlyArray<Row>, events: ReadonlyArray<Event.Recorded>): Complaints => {
  const above = aboveOf(rows)
  const nodeAbove = (row: Row): Row | undefined => {
    const next = above(row)
    return next === undefined || isNode(next) ? next : nodeAbove(next)
  }
  const nodes = rows.filter(isNode)
  const parents = new Map<unknown, string | undefined>([
    ...all(events, "Opened").map(({ account }) => [account, undefined] as const),
    ...all(events, "Carved").map(({ account, parent }) => [account, parent] as const),
  ])
  const started = all(events, "AgentStarted")
    .filter(isTraced)
    .map(({ agent }) => agent)
  const most = 1 + all(events, "RunResumed").length
  const byAccount = Map.groupBy(nodes, ({ attributes }) => attributes["bursar.node.id"])
  return [
    ...started
      .map((agent) => [agent, byAccount.get(agent)?.length ?? 0] as const)
      .filter(([, count]) => count < 1 || count > most)
      .map(([agent, count]) => `the account ${agent} has ${count} spans`),
    ...nodes.flatMap((row) => {
      const id = row.attributes["bursar.node.id"]
      const parent = nodeAbove(row)?.attributes["bursar.node.id"]
      return parents.has(id) && parent !== parents.get(id)
        ? [`the span of ${String(id)} is under that of ${String(parent)}`]
        : []
    }),
  ]
}

/** Holds of requests to models, as opposed to calls of tools. */
const isRequest = ({ held }: { readonly held: Event.EventOf<"Settled">["held"] }): boolean =>
  held.inputTokens !== undefined || held.outputTokens !== undefined

/** T3: what the spans of requests say was used is what the ledger booked as exact; what is assumed says nothing. */
export const usages = (rows: ReadonlyArray<Row>, events: ReadonlyArray<Event.Recorded>): Complaints => {
  const chats = rows.filter(({ name }) => name.startsWith("chat "))
  const sum = (key: string) => chats.reduce((total, row) => total + Number(row.attributes[key] ?? 0), 0)
  const booked = (d: "inputTokens" | "outputTokens") =>
    all(events, "Settled")
      .filter(isRequest)
      .reduce((total, { actual }) => total + (actual[d] ?? 0), 0)
  const pairs = [
    ["input", sum(`${usage}input_tokens`), booked("inputTokens")],
    ["output", sum(`${usage}output_tokens`), booked("outputTokens")],
  ] as const
  return [
    ...pairs.flatMap(([word, spans, ledger]) =>
      spans === ledger ? [] : [`${spans} ${word} tokens on spans, ${ledger} in the ledger`],
    ),
    ...chats
      .filter((row) => row.attributes["bursar.usage.certainty"] === "assumed" && hasUsage(row))
      .map(({ spanId }) => `the assumed request ${spanId} tells of usage`),
  ]
}

const hasUsage = ({ attributes }: Row): boolean => Object.keys(attributes).some((key) => key.startsWith(usage))

/** T4: usage stands on spans of requests and nowhere else. */
export const elsewhere = (rows: ReadonlyArray<Row>): Complaints =>
  rows
    .filter((row) => isOurs(row) && !row.name.startsWith("chat ") && hasUsage(row))
    .map(({ name }) => `${name} tells of usage`)

/** T5: each refusal, end of new work and over-run of the journal has its event, by its number. */
export const told = (rows: ReadonlyArray<Row>, events: ReadonlyArray<Event.Recorded>): Complaints => {
  const seen = new Set(
    rows.flatMap((row) => [
      ...row.events.map(({ name, attributes }) => `${name} ${String(attributes["bursar.seq"])}`),
      ...(row.name === "bursar.mark"
        ? [`${String(row.attributes["bursar.mark"])} ${String(row.attributes["bursar.seq"])}`]
        : []),
    ]),
  )
  const names = { Refused: "bursar.budget.refused", Frozen: "bursar.frozen", Overran: "bursar.budget.overrun" } as const
  return events.flatMap(({ event, seq }) =>
    event._tag === "Refused" || event._tag === "Frozen" || event._tag === "Overran"
      ? seen.has(`${names[event._tag]} ${seq}`)
        ? []
        : [`${event._tag} ${seq} of ${event.account} has no event`]
      : [],
  )
}

/** A span that took no time is given so much when it is exported. */
const instantNanos = 1n

/** T6: a span lies in the time of its parent. */
export const inside = (rows: ReadonlyArray<Row>, { toleranceNanos = 0n }: Circumstances = {}): Complaints => {
  const byId = new Map(rows.map((row) => [idOf(row), row]))
  return rows.flatMap((row) => {
    const parent = row.parentId === undefined ? undefined : byId.get(`${row.traceId} ${row.parentId}`)
    if (parent === undefined) return []
    const early = row.startNanos + toleranceNanos < parent.startNanos
    const late = row.endNanos > parent.endNanos + instantNanos + toleranceNanos
    return early || late ? [`${row.name} ${early ? "starts before" : "ends after"} ${parent.name}`] : []
  })
}

/** Statuses are those of the table of stop reasons, with its fixed sentences. */
export const statuses = (rows: ReadonlyArray<Row>): Complaints =>
  rows.flatMap(({ attributes, name, status }) => {
    const reason = attributes["bursar.stop.reason"] as Agent.StopReason | undefined
    if (!name.startsWith("invoke_agent ") || reason === undefined) return []
    const failed = isError(reason, attributes["bursar.result"] as Agent.ResultKind)
    const message = failed ? Agent.sentenceOf(reason) : ""
    const type = failed ? `bursar.${reason}` : undefined
    return (status.code === "error") === failed && status.message === message && attributes["error.type"] === type
      ? []
      : [`${name} ended with ${reason} and is ${status.code} ${status.message}`]
  })

/** Why the run stopped stands on the span and the mark of its root and nowhere else, so that one search finds runs. */
export const stopped = (rows: ReadonlyArray<Row>, events: ReadonlyArray<Event.Recorded>): Complaints => {
  const key = "bursar.run.stop.reason"
  const reasons = all(events, "RunEnded").map(({ reason }) => reason)
  const said = rows.filter(({ attributes }) => key in attributes)
  const isRoot = ({ attributes, name }: Row) =>
    attributes["bursar.node.depth"] === 0 && (name.startsWith("invoke_agent ") || name === "bursar.mark")
  return [
    ...said.filter((row) => !isRoot(row)).map(({ name }) => `${name} says why the run stopped`),
    ...said
      .filter(({ attributes }) => !reasons.includes(attributes[key] as Agent.StopReason))
      .map(({ attributes, name }) => `${name} says that the run stopped for ${String(attributes[key])}`),
    ...reasons
      .filter((reason) => !said.some(({ attributes, name }) => name !== "bursar.mark" && attributes[key] === reason))
      .map((reason) => `no agent says that the run stopped for ${reason}`),
  ]
}

/** T10: an agent that started has said so at once; so does each stop. Both take no time. */
export const marks = (rows: ReadonlyArray<Row>, events: ReadonlyArray<Event.Recorded>): Complaints => {
  const early = rows.filter(({ name }) => name === "bursar.start" || name === "bursar.mark")
  const said = new Set(early.map(({ attributes, name }) => `${name} ${String(attributes["bursar.seq"])}`))
  return [
    ...early
      .filter(({ startNanos, endNanos }) => endNanos - startNanos > instantNanos)
      .map(({ name, spanId }) => `${name} ${spanId} takes time`),
    ...early
      .filter(({ attributes, name }) => (name === "bursar.mark") !== (attributes["bursar.keep"] === true))
      .map(({ name, spanId }) => `${name} ${spanId} is not to be kept, or is`),
    ...events.flatMap(({ event, seq }) =>
      event._tag === "AgentStarted" && isTraced(event) && !said.has(`bursar.start ${seq}`)
        ? [`${event.agent} has no mark of its start`]
        : [],
    ),
  ]
}

/** A link leads into another trace: within one, a viewer would take it for the parent. */
export const links = (rows: ReadonlyArray<Row>): Complaints =>
  rows.flatMap((row) =>
    row.links.filter(({ traceId }) => traceId === row.traceId).map(() => `${row.name} links into its own trace`),
  )
