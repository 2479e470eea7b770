/**
 * What the span of an agent says at its start and at its end.
 */
import * as Budget from "../budget/Budget.ts"
import { dimensionOf } from "../event/StopReason.ts"
import type { Ending } from "../loop/Loop.ts"
import * as Names from "../telemetry/Names.ts"
import type { Options, TraceSpan } from "../telemetry/Trace.ts"
import type { Agent } from "./Definition.ts"
import type { Run } from "./Run.ts"

interface At {
  readonly run: Run
  readonly account: string
}

export const factsOf = <A, R>(agent: Agent<A, R>, at: At) => {
  const account = at.run.ledger.account(at.account)
  return {
    [Names.runId]: at.run.id,
    [Names.nodeId]: account.id,
    [Names.nodePath]: account.path,
    [Names.nodeDepth]: account.depth,
    [Names.agentName]: agent.name,
    [Names.schema]: Names.schemaVersion,
  }
}

/** The span of an agent: a part of the run that may go on in another trace. */
export const of = <A, R>(agent: Agent<A, R>, at: At): Options => ({
  attributes: () => atStart(agent, at),
  of: { _tag: "Account", account: at.account },
  // Itself and the mark of its start.
  part: { spans: 2, deep: true },
})

const atStart = <A, R>(agent: Agent<A, R>, at: At): Readonly<Record<string, unknown>> => {
  const account = at.run.ledger.account(at.account)
  const grant = Budget.granted(account)
  const limits = Budget.dimensions.filter((d) => account.caps[d]).map((d) => [Names.budget(d, "limit"), grant[d]])
  const left = at.run.ledger.leftMillis(account.id, "output")
  return {
    [Names.operation]: "invoke_agent",
    [Names.agentId]: account.id,
    [Names.uncapped]: Budget.dimensions.filter((d) => !account.caps[d]),
    ...Object.fromEntries(limits),
    ...(account.parent === undefined ? {} : { [Names.reserve]: account.parent.reserve }),
    ...(left === undefined ? {} : { [Names.deadlineRemaining]: left }),
    [Names.policy]: agent.policy.name,
  }
}

const said = (role: "user" | "assistant", content: string) => [{ role, parts: [{ type: "text", content }] }]

/** What it was told, where traces are to hold that. */
export const begun = <A, R>(span: TraceSpan, agent: Agent<A, R>, task: string): void => {
  span.content(Names.content.systemInstructions, () =>
    agent.instructions === "" ? undefined : [{ type: "text", content: agent.instructions }],
  )
  span.content(Names.content.inputMessages, () => said("user", task))
}

/** How it ended, and what it said where traces are to hold that. */
export const ended = <A, R>(
  span: TraceSpan,
  ending: Ending<A>,
  { agent, at }: { readonly agent: Agent<A, R>; readonly at: At },
): void => {
  span.attributes(atEnd(ending, at))
  span.content(Names.content.outputMessages, () => {
    const answer = ending.answer === undefined ? ending.text : agent.answer.encode(ending.answer)
    return answer === undefined
      ? undefined
      : said("assistant", typeof answer === "string" ? answer : JSON.stringify(answer))
  })
}

const atEnd = <A>(ending: Ending<A>, at: At): Readonly<Record<string, unknown>> => {
  const account = at.run.ledger.account(at.account)
  const [own, tree, left] = [Budget.ownUsed(account), Budget.used(account), Budget.unused(account)]
  const dimension = dimensionOf(ending.reason)
  const perDimension = Budget.dimensions.flatMap((d) => [
    [Names.used(d, "own"), own[d]],
    [Names.used(d, "tree"), tree[d]],
    ...(account.caps[d] ? [[Names.budget(d, "refunded"), left[d]]] : []),
    ...(account.debt[d] > 0 ? [[Names.budget(d, "debt"), account.debt[d]]] : []),
  ])
  return {
    [Names.stopReason]: ending.reason,
    ...(account.depth === 0 ? { [Names.runStopReason]: ending.reason } : {}),
    [Names.result]: ending.result,
    ...(dimension === undefined ? {} : { [Names.stopDimension]: dimension }),
    ...(account.overran ? { [Names.overrun]: true } : {}),
    ...Object.fromEntries(perDimension),
  }
}
