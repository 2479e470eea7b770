/**
 * How large the traces are that we are writing, and where a span goes whose trace is full: under a `bursar.continuation`,
 * the root of a trace of its own, with a link to the span that it belongs under. A viewer of traces gets slow at some
 * thousands of spans and breaks down at some depth.
 *
 * Its law: only whole parts of a run go elsewhere (an agent, a step, a call), never a span between two others; and a trace
 * has one root.
 */
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type * as Tracer from "effect/Tracer"
import * as Names from "./Names.ts"
import { type Source, start } from "./Start.ts"

/** A trace that is as large as this takes no further parts. */
export const mostSpans = 1_900

/** An agent has some levels below it: none starts where they would come below this. */
export const mostDepth = 64

const below = 3

/** A trace that is older than this takes no further parts. */
export const longestMillis = 3_600_000

interface Trail {
  readonly root: Tracer.AnySpan
  readonly startedMillis: number
  spans: number
  /** Spans of ours that have not ended, in this trace and in those that go on from it; the continuations aside. */
  readonly open: { count: number }
  /** The one that all of them go on from; absent on itself. */
  readonly first: Trail | undefined
  /** True once something happened for which a sampler should keep what comes. */
  kept: boolean
  /** What did not fit into this one. */
  next: Trail | undefined
}

interface Place {
  readonly trail: Trail
  /** Of the span, where the root has 1. */
  readonly depth: number
}

const places = new WeakMap<Tracer.AnySpan, Place>()

/** A part of a run, for what comes after it to be counted with it. */
export interface Part {
  /** How many spans come at least, this one among them. */
  readonly spans: number
  /** True where agents begin: how deep they go is up to them. */
  readonly deep?: boolean
}

/** Where a span goes. */
export interface Entered {
  readonly parent: Tracer.AnySpan | undefined
  readonly links: ReadonlyArray<Tracer.SpanLink>
  /** To be called with the span once it is there. */
  readonly put: (span: Tracer.Span) => void
}

const noLinks: ReadonlyArray<Tracer.SpanLink> = []

/** Finds the place for a span under `parent`; a `part` may go on in another trace. */
export const enter = (
  source: Source,
  options: {
    readonly parent: Tracer.AnySpan | undefined
    readonly part: Part | undefined
    /** What a continuation says of the run that goes on in it. */
    readonly facts: Readonly<Record<string, unknown>>
  },
): Entered => {
  const { parent, part } = options
  const above = parent === undefined ? undefined : placeOf(source, parent)
  if (parent === undefined || above === undefined) {
    const put = (span: Tracer.Span) => {
      const trail = open(source, span)
      trail.spans = trail.open.count = 1
      places.set(span, { trail, depth: 1 })
    }
    return { parent, links: noLinks, put }
  }
  if (part === undefined || !isFull(source, above, part)) return inside(parent, above)
  const trail = following(source, above.trail, { ...options, part })
  const link = { span: parent, attributes: { [Names.link]: "continues" } }
  return { ...inside(trail.root, { trail, depth: 1 }), links: [link] }
}

const inside = (parent: Tracer.AnySpan, { trail, depth }: Place): Entered => ({
  parent,
  links: noLinks,
  put: (span) => {
    trail.spans++
    trail.open.count++
    places.set(span, { trail, depth: depth + 1 })
  },
})

/** Counts what we write under a span of somebody else as one trace, as deep as it is there. */
const placeOf = (source: Source, span: Tracer.AnySpan): Place => {
  const known = places.get(span)
  if (known !== undefined) return known
  const parent = span._tag === "Span" ? Option.getOrUndefined(span.parent) : undefined
  const above = parent === undefined ? undefined : placeOf(source, parent)
  const place =
    above === undefined ? { trail: open(source, span), depth: 1 } : { trail: above.trail, depth: above.depth + 1 }
  places.set(span, place)
  return place
}

const open = ({ clock }: Source, root: Tracer.AnySpan, before?: Trail): Trail => ({
  root,
  startedMillis: clock.currentTimeMillisUnsafe(),
  spans: 0,
  open: before?.open ?? { count: 0 },
  kept: before?.kept ?? false,
  first: before === undefined ? undefined : (before.first ?? before),
  next: undefined,
})

const isFull = (source: Source, { trail, depth }: Place, part: Part): boolean =>
  trail.spans + part.spans > mostSpans ||
  (part.deep === true && depth + 1 + below > mostDepth) ||
  source.clock.currentTimeMillisUnsafe() - trail.startedMillis > longestMillis

/** The first of the following traces that has room for a part. */
const following = (
  source: Source,
  first: Trail,
  options: { readonly part: Part; readonly facts: Readonly<Record<string, unknown>> },
): Trail => {
  let trail = first
  do trail = trail.next ??= continuation(source, trail, options.facts)
  while (isFull(source, { trail, depth: 1 }, options.part))
  return trail
}

const continuation = (source: Source, before: Trail, facts: Readonly<Record<string, unknown>>): Trail => {
  const root = start(source, {
    name: "bursar.continuation",
    kind: "internal",
    parent: undefined,
    root: true,
    links: [{ span: before.root, attributes: { [Names.link]: "continues" } }],
    attributes: before.kept ? { ...facts, [Names.keep]: true } : facts,
  })
  const trail = open(source, root, before)
  trail.spans = 1
  places.set(root, { trail, depth: 1 })
  return trail
}

/**
 * To be called when a span that was put has ended: with the last one of all, wherever it is, end the traces that went on.
 * Not with the last one of a trace: what is in those behind it may go on for longer.
 */
export const leave = ({ clock }: Source, span: Tracer.Span): void => {
  const trail = places.get(span)?.trail
  if (trail === undefined || --trail.open.count > 0) return
  const first = trail.first ?? trail
  for (let { next } = first; next !== undefined; next = next.next) end(next.root, clock.currentTimeNanosUnsafe())
  first.next = undefined
}

const end = (root: Tracer.AnySpan, nanos: bigint): void => {
  if (root._tag === "Span") root.end(nanos, Exit.void)
}

/** Says of every trace that goes on from that of `span`, now or later, that it is worth keeping. */
export const keep = (span: Tracer.AnySpan): void => {
  const first = places.get(span)?.trail
  if (first === undefined) return
  first.kept = true
  for (let { next } = first; next !== undefined; next = next.next) {
    next.kept = true
    if (next.root._tag === "Span") next.root.attribute(Names.keep, true)
  }
}
