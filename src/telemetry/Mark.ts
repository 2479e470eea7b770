/**
 * Spans of no length: a span is exported when it ends, so these tell of what is still under way, and are there although
 * the process was killed. `bursar.start` stands where an agent begins; `bursar.mark` where one stops, is frozen or ran
 * over, with `bursar.keep` for a sampler that has to decide before the run has ended.
 */
import * as Exit from "effect/Exit"
import type * as Tracer from "effect/Tracer"
import type { EventOf } from "../event/Event.ts"
import { isError, sentenceOf } from "../event/StopReason.ts"
import * as Names from "./Names.ts"
import { type Source, start } from "./Start.ts"
import { enter, keep, leave } from "./Trail.ts"
import { type Address, exitOf, Writer } from "./Writer.ts"

/** What is marked. */
export type Marked = EventOf<"AgentStarted"> | EventOf<"Stopping"> | EventOf<"Frozen"> | EventOf<"Overran">

/** Writes a mark below a span: that of the account, or of the nearest one above it. */
export const write = (
  source: Source,
  of: {
    readonly span: Writer
    readonly event: Marked
    readonly seq: number
    readonly account: string
    readonly path: string
  },
): void => {
  const { event, span } = of
  if (!span.isOn) return
  const facts = factsOf(of)
  if (event._tag !== "AgentStarted") keep(span.made)
  const place = enter(source, { parent: span.made, part: { spans: 1 }, facts })
  const made = start(source, {
    name: event._tag === "AgentStarted" ? "bursar.start" : "bursar.mark",
    kind: "internal",
    parent: place.parent,
    links: place.links,
    attributes: { ...facts, ...saidOf(event, facts, span), [Names.seq]: of.seq },
  })
  place.put(made)
  made.end(made.status.startTime, Exit.void)
  leave(source, made)
}

type Facts = Readonly<Record<string, unknown>>

const factsOf = ({ account, path, span }: { readonly account: string; readonly path: string; readonly span: Writer }) =>
  span.facts[Names.nodeId] === account
    ? span.facts
    : {
        ...span.facts,
        [Names.nodeId]: account,
        [Names.nodePath]: path,
        [Names.nodeDepth]: path.split("/").length - 1,
        [Names.agentName]: path.split("/").at(-1),
      }

const saidOf = (event: Marked, facts: Facts, span: Writer): Facts => {
  switch (event._tag) {
    case "AgentStarted":
      return Object.fromEntries([...span.made.attributes].filter(([key]) => isLimit(key)))
    case "Stopping":
      return {
        [Names.keep]: true,
        [Names.mark]: "stop",
        [Names.stopReason]: event.reason,
        ...(facts[Names.nodeDepth] === 0 ? { [Names.runStopReason]: event.reason } : {}),
      }
    case "Frozen":
      return { [Names.keep]: true, [Names.mark]: "freeze", "bursar.reason": event.cause }
    case "Overran":
      return { [Names.keep]: true, [Names.mark]: "overrun", [Names.overrun]: true }
  }
}

const isLimit = (key: string): boolean =>
  key === Names.uncapped ||
  key === Names.deadlineRemaining ||
  (key.startsWith("bursar.budget.") && key.endsWith(".limit"))

/** The span of a run that came to none: refused when it was opened, or ended by somebody who did not go on with it. */
export const neverBegan = (
  source: Source,
  of: {
    readonly run: string
    readonly account: string
    readonly path: string
    /** How the run ended; absent for a scope, which failed. */
    readonly end: EventOf<"RunEnded"> | undefined
    readonly parent: Tracer.AnySpan | undefined
    readonly before: Address | undefined
    readonly write: (span: Writer) => void
  },
): void => {
  const { end, path } = of
  const name = path.split("/").at(-1) ?? path
  const facts = {
    [Names.runId]: of.run,
    [Names.nodeId]: of.account,
    [Names.nodePath]: path,
    [Names.nodeDepth]: 0,
    [Names.agentName]: name,
    [Names.schema]: Names.schemaVersion,
  }
  const reason = end?.reason ?? "refused_at_open"
  const result = end?.result ?? "none"
  const made = start(source, {
    name: end === undefined ? `bursar.scope ${name}` : `invoke_agent ${name}`,
    kind: "internal",
    parent: of.parent,
    links: [],
    attributes: {
      ...facts,
      ...(end === undefined
        ? {}
        : { [Names.operation]: "invoke_agent", [Names.agentId]: of.account, [Names.runStopReason]: reason }),
      [Names.stopReason]: reason,
      [Names.result]: result,
      [Names.keep]: true,
    },
  })
  const writer = new Writer(made, { clock: source.clock, facts, content: undefined })
  of.write(writer)
  if (of.before !== undefined) writer.link(of.before, "resumes")
  if (isError(reason, result)) writer.fail(`bursar.${reason}`, sentenceOf(reason))
  made.end(made.status.startTime, exitOf(Exit.void, writer))
}
